package geozl

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
)

// init registers the decompressor of the frames of rumi files: the standard codecs of OpenZL, and the codecs of
// this package, which writers of generation 2 use.
func init() {
	options := openzl.Options{Custom: Codecs()}
	chunk.Register(chunk.OpenZL, func() chunk.Decompressor { return frames{openzl.NewDecoder(options)} })
	chunk.RegisterRecoder(newRecoder)
}

// frames decodes frames of one output.
type frames struct{ d *openzl.Decoder }

// Decompress implements chunk.Decompressor.
func (f frames) Decompress(dst, src []byte, t *chunk.Tile) error {
	return f.d.Decompress(dst, src, t.Number)
}

// recoderGraph decodes faster than zstd, and takes about as many bytes for numbers that change
// little from pixel to pixel.
const recoderGraph = "planar>zigzag>pfor"

func newRecoder() chunk.Recoder {
	encoder, err := openzl.NewEncoder(recoderGraph, openzl.EncodeOptions{Geozl: openzl.Geozl19, Fast: true})
	if err != nil {
		return nil // the graph is one of the package's
	}
	return encoder
}
