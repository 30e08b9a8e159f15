package paste_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"github.com/chaski-eo/chaski/ops/paste"
	"github.com/chaski-eo/chaski/shuffle"
)

// Two windows of 2 by 4 pixels, every 2 columns, make an image of 2 by 6: from the one to the other the values pass
// over by the distances to their edges.
func ExampleImage() {
	var image []byte
	err := paste.Image(paste.Options{
		Bands: 1, Height: 2, Width: 6, Blend: paste.Linear, MaxBytes: 1 << 20,
		Grid: shuffle.Grid{H: 2, W: 4, StrideY: 2, StrideX: 2, AlignY: 1, AlignX: 1},
	}, func(j int64, dst []float32) error {
		for i := range dst { // what a model says of window j
			dst[i] = float32(9 * j)
		}
		return nil
	}, func(_, _ int, strip []byte) error {
		image = append(image, strip...)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for x := range 6 { // the first row
		fmt.Print(math.Float32frombits(binary.LittleEndian.Uint32(image[4*x:])), " ")
	}
	// Output: 0 0 3 6 9 9
}
