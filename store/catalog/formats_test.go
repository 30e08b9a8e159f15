package catalog_test

import (
	_ "github.com/chaski-eo/chaski/format/picture"
	_ "github.com/chaski-eo/chaski/format/tables/text"
	_ "github.com/chaski-eo/chaski/rumi"
	_ "github.com/chaski-eo/chaski/source/archive"
	_ "github.com/chaski-eo/chaski/store/zarr"
)
