package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// TestPforReadsItsBytesOnly: a body of pfor is unpacked without a byte before or after it, also where its
// last word holds many numbers.
func TestPforReadsItsBytesOnly(t *testing.T) {
	guard.Faults(t)
	from, to := guard.New(t, 1<<12), guard.New(t, 1<<12)
	body := make([]byte, 32*64)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	for _, back := range []bool{false, true} {
		for _, width := range []int{1, 2, 4, 8} {
			for nbits := range 8*width + 1 {
				dst, src := to.At(back, PforBlock*width), from.Put(back, body[:32*nbits])
				pforBody(dst, src, width, nbits)
				if !slices.Equal(dst, slowBody(src, width, nbits)) {
					t.Fatalf("width %d, %d bits differ", width, nbits)
				}
			}
		}
	}
}

// TestWeightsReadTheirRowsOnly: wp_static reads no sample before the first row or after the last.
func TestWeightsReadTheirRowsOnly(t *testing.T) {
	t.Run("8", testWeightedRows[uint8])
	t.Run("16", testWeightedRows[uint16])
}

func testWeightedRows[T Unsigned](t *testing.T) {
	guard.Faults(t)
	from, to := guard.New(t, 1<<12), guard.New(t, 1<<12)
	w := Weights{Of: [4]int64{5, -3, 2, 1}, Shift: 2}
	size := 1
	if ^T(0) > 255 {
		size = 2
	}
	for _, back := range []bool{false, true} {
		for width := 1; width < 70; width++ {
			n := 4 * width * size
			dst, ok := cast.Of[T](to.At(back, n))
			res, ok2 := cast.Of[T](from.At(back, n))
			if !ok || !ok2 {
				t.Skip("without unsafe, rows are not cast")
			}
			WPStatic(dst, res, width, &w)
		}
	}
}
