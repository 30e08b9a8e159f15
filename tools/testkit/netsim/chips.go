package netsim

import (
	"bytes"
	"math/rand/v2"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// Chip returns a TOG of uint16 noise, which hardly compresses, with shape (bands, side, side). Each
// seed yields another one.
func Chip(seed uint64, bands, side, tile int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	pixels := make([]byte, 2*bands*side*side)
	for i := range pixels {
		pixels[i] = byte(r.Uint32())
	}
	var b bytes.Buffer
	err := tog.Write(&b, pixels, tog.Options{
		Shape: [3]int{bands, side, side}, DType: chunk.Uint16, Tile: tile, Level: 1, Predictor: chunk.NoPredictor,
	})
	if err != nil {
		panic("netsim: " + err.Error()) // the options are right
	}
	return b.Bytes()
}
