package tiff

import (
	_ "github.com/chaski-eo/chaski/format/codec/jpeg"
	_ "github.com/chaski-eo/chaski/format/codec/lerc"
	_ "github.com/chaski-eo/chaski/format/codec/webp"
	_ "github.com/chaski-eo/chaski/format/codec/xz"
)
