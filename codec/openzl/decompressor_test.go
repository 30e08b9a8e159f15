package openzl_test

import (
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/openzl"
)

var _ chunk.Decompressor = (*openzl.Decoder)(nil)
