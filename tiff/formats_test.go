package tiff

import (
	_ "github.com/chaski-eo/chaski/codec/jpeg"
	_ "github.com/chaski-eo/chaski/codec/lerc"
	_ "github.com/chaski-eo/chaski/codec/webp"
	_ "github.com/chaski-eo/chaski/codec/xz"
)
