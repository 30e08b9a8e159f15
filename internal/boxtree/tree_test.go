package boxtree

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTree promises that the tree finds the boxes that a look at every box finds, of any number and in any place.
func TestTree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 16, 17, 255, 256, 257, 5000} {
		boxes := make([]Box, n)
		for i := range boxes {
			x, y, size := rnd.Float64()*1000, rnd.Float64(), rnd.ExpFloat64()
			switch boxes[i] = Around(x, y, x+size*10, y+size/100); rnd.IntN(20) {
			case 0:
				boxes[i] = Nothing
			case 1:
				boxes[i][rnd.IntN(4)] = float32(math.NaN())
			case 2:
				boxes[i] = Around(x, y, x, y)
			case 3:
				boxes[i] = Around(-1e300, y, 1e300, y)
			}
		}
		tree := New(boxes)
		around := Nothing
		for _, b := range boxes {
			if b[0] <= b[2] && b[1] <= b[3] {
				around = Box{min(around[0], b[0]), min(around[1], b[1]), max(around[2], b[2]), max(around[3], b[3])}
			}
		}
		if got := tree.Bounds(); got != around {
			t.Fatalf("the box around %d boxes is %v, want %v", n, got, around)
		}
		for range 200 {
			x, y := rnd.Float64()*1000, rnd.Float64()
			b := Around(x, y, x+rnd.ExpFloat64()*50, y+rnd.ExpFloat64()/20)
			got := tree.Search(nil, &b)
			slices.Sort(got)
			var want []uint32
			for i := range boxes {
				if c := boxes[i]; c[0] <= b[2] && b[0] <= c[2] && c[1] <= b[3] && b[1] <= c[3] {
					want = append(want, uint32(i))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("of %d boxes %v are found, want %v", n, got, want)
			}
		}
	}
}

// TestHilbert promises that the curve visits every cell once, and that its steps go to a neighbour.
func TestHilbert(t *testing.T) {
	const side = 64
	at := map[uint32][2]int{}
	for y := range side {
		for x := range side {
			at[hilbert(uint32(x), uint32(y))] = [2]int{x, y}
		}
	}
	for d := uint32(1); d < side*side; d++ {
		a, b := at[d-1], at[d]
		if dx, dy := a[0]-b[0], a[1]-b[1]; dx*dx+dy*dy != 1 {
			t.Fatalf("step %d goes from %v to %v", d, a, b)
		}
	}
}
