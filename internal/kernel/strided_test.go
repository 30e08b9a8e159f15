package kernel

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// Sums at every distance, of rows of every length below several vectors, are those of the loop that the specification
// words. What lies beside the row stays.
func TestStridedSumsAgainstTheObviousLoop(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8} {
		for stride := 1; stride <= 68; stride++ {
			all := randomBytes(r, 300*size+128, 0)
			for n := 0; n <= 300; n++ {
				for offset := 64; offset < 66; offset++ {
					got := slices.Clone(all)
					want := slices.Clone(all)
					UndoHorizontal(got[offset:offset+n*size], n*size, size, stride)
					row := want[offset : offset+n*size]
					for i := stride; i < n; i++ {
						putNumber(row[i*size:], size, number(row[i*size:], size)+number(row[(i-stride)*size:], size))
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("size %d stride %d n %d offset %d", size, stride, n, offset)
					}
				}
			}
		}
	}
}

// Numbers at every distance come to the front, whatever their number, and nothing else is written.
func TestStridedCopyAgainstTheObviousLoop(t *testing.T) {
	r := rng()
	for _, size := range []int{1, 2, 4, 8, 16} {
		for stride := 1; stride <= 20; stride++ {
			src := randomBytes(r, (300*stride+1)*size, 1)
			blank := randomBytes(r, 302*size, 1)
			for n := 0; n <= 300; n++ {
				from := src[:max((n-1)*stride+1, 0)*size] // ends with the last number
				got, want := slices.Clone(blank), slices.Clone(blank)
				Copy(got[size:], 1, from, stride, n, size)
				for i := range n {
					copy(want[(i+1)*size:(i+2)*size], from[i*stride*size:])
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("size %d stride %d n %d", size, stride, n)
				}
			}
		}
	}
}

// BenchmarkStrided is a row of an interleaved tile of 128 columns: its predictor, and one of its bands.
func BenchmarkStrided(b *testing.B) {
	for _, c := range []struct{ size, stride int }{{1, 3}, {1, 4}, {2, 3}, {2, 6}, {2, 13}, {4, 1}, {4, 4}} {
		name := fmt.Sprintf("%dbits/%dbands", 8*c.size, c.stride)
		row := randomBytes(rng(), 128*c.size*c.stride, 0)
		band := make([]byte, 128*c.size)
		b.Run("sum/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(row)))
			for b.Loop() {
				UndoHorizontal(row, len(row), c.size, c.stride)
			}
		})
		b.Run("copy/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(band)))
			for b.Loop() {
				Copy(band, 1, row, c.stride, 128, c.size)
			}
		})
	}
}
