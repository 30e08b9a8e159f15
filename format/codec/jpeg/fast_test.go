package jpeg

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestVectors: the vectors of a processor give the samples of the plain code, for blocks of ordinary files, of few
// coefficients, and of any numbers, and for rows of any length.
func TestVectors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		var block [64]int32
		last := rnd.IntN(64)
		for k := range last + 1 {
			switch i % 3 {
			case 0:
				block[zigzag[k]] = int32(rnd.IntN(4096) - 2048)
			case 1:
				block[zigzag[k]] = int32(rnd.IntN(3)-1) << rnd.IntN(32)
			default:
				block[zigzag[k]] = int32(rnd.Uint32())
			}
		}
		const stride = 11
		got, want := make([]byte, 7*stride+8), make([]byte, 7*stride+8)
		same := block
		inverse(got, stride, &block, last)
		inversePlain(want, stride, &same, last)
		if !bytes.Equal(got, want) {
			t.Fatalf("case %d, %d coefficients: % x\nwant % x", i, last+1, got, want)
		}
	}
	for n := 3; n < 70; n++ {
		rows := make([]byte, 3*n)
		for i := range rows {
			rows[i] = byte(rnd.Uint32())
		}
		a, b, c := rows[:n], rows[n:2*n], rows[2*n:]
		got, want := make([]byte, 3*n), make([]byte, 3*n)
		toRGB(got, a, b, c)
		toRGBPlain(want, a, b, c)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d pixels: % x\nwant % x", n, got, want)
		}
		spreadRows(got[:2*n], a, b)
		spreadRowsPlain(want[:2*n], a, b, 0)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d samples: % x\nwant % x", n, got, want)
		}
	}
}
