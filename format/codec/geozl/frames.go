package geozl

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
)

// init registers the decompressor of the frames of rumi files: the standard codecs of OpenZL, and those of this
// package, which writers of generation 2 use.
func init() {
	options := openzl.Options{Custom: Codecs()}
	chunk.Register(chunk.OpenZL, func() chunk.Decompressor { return frames{openzl.NewDecoder(options)} })
}

// frames decodes frames of one output.
type frames struct{ d *openzl.Decoder }

// Decompress implements chunk.Decompressor.
func (f frames) Decompress(dst, src []byte, t *chunk.Tile) error {
	return f.d.Decompress(dst, src, t.Number)
}
