package picture

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// slowUnfilter undoes a filter as section 9.2 of the specification of PNG says, byte by byte.
func slowUnfilter(in, up []byte, size int, filter byte) []byte {
	out := make([]byte, len(in))
	abs := func(n int) int { return max(n, -n) }
	for i := range in {
		a, b, c := 0, int(up[i]), 0
		if i >= size {
			a, c = int(out[i-size]), int(up[i-size])
		}
		predictor := 0
		switch filter {
		case 1:
			predictor = a
		case 2:
			predictor = b
		case 3:
			predictor = (a + b) / 2
		case 4:
			p := a + b - c
			switch pa, pb, pc := abs(p-a), abs(p-b), abs(p-c); {
			case pa <= pb && pa <= pc:
				predictor = a
			case pb <= pc:
				predictor = b
			default:
				predictor = c
			}
		}
		out[i] = in[i] + byte(predictor)
	}
	return out
}

// TestUnfilterAgainstTheSpecification: every filter, for pixels of every size and rows of many lengths, gives what the
// specification says, and touches nothing beside the rows.
func TestUnfilterAgainstTheSpecification(t *testing.T) {
	guard.Faults(t)
	r := rand.New(rand.NewPCG(1, 2))
	outs, ins, ups := guard.New(t, 4096), guard.New(t, 4096), guard.New(t, 4096)
	for size := 1; size <= 8; size++ {
		for pixels := range 140 {
			for filter := range byte(5) {
				n := pixels * size
				back := r.IntN(2) == 0
				out, in, up := outs.At(back, n), ins.At(back, n), ups.At(back, n)
				most := []uint32{256, 4}[r.IntN(2)] // small numbers have ties
				for i := range in {
					in[i], up[i], out[i] = byte(r.Uint32N(most)), byte(r.Uint32N(most)), 0xee
				}
				if !unfilter(out, in, up, size, filter) {
					t.Fatal("unknown")
				}
				if want := slowUnfilter(in, up, size, filter); !bytes.Equal(out, want) {
					t.Fatalf("filter %d, %d pixels of %d bytes:\n%x\n%x", filter, pixels, size, out, want)
				}
			}
		}
	}
	if unfilter(nil, nil, nil, 1, 5) {
		t.Error("filter 5 is known")
	}
}
