package catalog_test

import _ "github.com/chaski-eo/chaski/store/zarr"
