package recipe

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// TestHashes: of hashes in clusters, those are found that a comparison with all finds.
func TestHashes(t *testing.T) {
	for _, within := range []int{0, 1, 3, 4, 7, 12, maxDistance} {
		r := rand.New(rand.NewPCG(1, uint64(within)))
		s := newHashes(within)
		var kept []uint64
		for range 1500 {
			h := r.Uint64()
			if len(kept) > 0 && r.IntN(3) > 0 {
				h = kept[r.IntN(len(kept))]
				for range r.IntN(2*within + 2) {
					h ^= 1 << r.IntN(64)
				}
			}
			near := false
			for _, k := range kept {
				near = near || bits.OnesCount64(k^h) <= within
			}
			if s.add(h) == near {
				t.Fatalf("within %d: hash %x is near another: %t", within, h, near)
			}
			if !near {
				kept = append(kept, h)
			}
		}
		if len(kept) < 500 || len(kept) == 1500 {
			t.Errorf("within %d: %d are kept", within, len(kept))
		}
	}
}

// TestHashOf: the bits of a hash are those of the means of cells, gathered cell by cell.
func TestHashOf(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, shape := range [][3]int{{1, 8, 9}, {3, 32, 32}, {2, 11, 100}} {
		n := shape[0] * shape[1] * shape[2]
		tensor := &loader.Tensor{DType: chunk.Uint8, Data: make([]byte, n),
			Shape: []int64{1, int64(shape[0]), int64(shape[1]), int64(shape[2])}}
		valid := make([]byte, n)
		for i := range n {
			tensor.Data[i], valid[i] = byte(r.Uint32()), byte(min(1, r.IntN(4)))
		}
		mean := func(row, column int) (sum, count int) {
			for b := range shape[0] {
				for y := range shape[1] {
					for x := range shape[2] {
						i := (b*shape[1]+y)*shape[2] + x
						if y*8/shape[1] == row && x*9/shape[2] == column && valid[i] == 1 {
							sum, count = sum+int(tensor.Data[i]), count+1
						}
					}
				}
			}
			return sum, count
		}
		got, err := hashOf(tensor, valid)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 64 {
			a, na := mean(bit/8, bit%8)
			b, nb := mean(bit/8, bit%8+1)
			want := na > 0 && nb > 0 && a*nb < b*na
			if (got>>(63-bit)&1 == 1) != want {
				t.Errorf("%v: bit %d of %x, want %t", shape, bit, got, want)
			}
		}
	}
}

// TestImagesWithoutHash: images whose hashes would all be equal are refused, as all chips but one would be left out.
func TestImagesWithoutHash(t *testing.T) {
	for _, c := range []struct {
		height, width int64
		of            chunk.DType
	}{{7, 9, chunk.Uint8}, {8, 8, chunk.Uint8}, {1, 1, chunk.Float32}, {32, 32, chunk.Complex64}} {
		n := int(c.height * c.width)
		tensor := &loader.Tensor{Name: "image", DType: c.of, Shape: []int64{1, 1, c.height, c.width},
			Data: make([]byte, n*c.of.Size())}
		_, err := hashOf(tensor, bytes.Repeat([]byte{1}, n))
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "field image") {
			t.Errorf("%d by %d %s: %v", c.height, c.width, c.of, err)
		}
	}
}

// BenchmarkHashes adds a million hashes, none near another.
func BenchmarkHashes(b *testing.B) {
	for range b.N {
		r := rand.New(rand.NewPCG(1, 1))
		s := newHashes(4)
		for range 1000000 {
			s.add(r.Uint64())
		}
	}
}
