package shuffle

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOrderIsAPermutation: At is a bijection and Position its inverse, for every position.
func TestOrderIsAPermutation(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 255, 256, 257, 1000, 4099} {
		for epoch := range uint64(3) {
			o := NewOrder(42, epoch, n, true)
			seen := make([]bool, n)
			for p := range n {
				i := o.At(p)
				if seen[i] {
					t.Fatalf("n %d epoch %d: sample %d twice", n, epoch, i)
				}
				seen[i] = true
				if back := o.Position(i); back != p {
					t.Fatalf("n %d epoch %d: Position(At(%d)) = %d", n, epoch, p, back)
				}
			}
		}
	}
}

func TestOrderOfLargeEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		o := NewOrder(rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch"), n, true)
		p := rapid.Int64Range(0, n-1).Draw(t, "p")
		i := o.At(p)
		if i < 0 || i >= n {
			t.Fatalf("At(%d) = %d of %d", p, i, n)
		}
		if back := o.Position(i); back != p {
			t.Fatalf("Position(At(%d)) = %d", p, back)
		}
	})
}

func TestOrderWithoutShuffleIsDatasetOrder(t *testing.T) {
	o := NewOrder(1, 2, 10, false)
	for p := range int64(10) {
		if o.At(p) != p || o.Position(p) != p {
			t.Fatalf("position %d gives sample %d", p, o.At(p))
		}
	}
}

// chiSquare returns the statistic divided by its degrees of freedom: about 1 for uniform counts.
func chiSquare(counts []int, expected float64, freedom int64) float64 {
	sum := 0.0
	for _, c := range counts {
		d := float64(c) - expected
		sum += d * d / expected
	}
	return sum / float64(freedom)
}

// uniformity counts over many orders which sample is at a position and which sample follows which,
// and returns both statistics per degree of freedom: about 1 if all are equally frequent.
func uniformity(n int64, orders int, at func(k int, p int64) int64) (position, follower float64) {
	counts, next := make([]int, n*n), make([]int, n*n)
	for k := range orders {
		prev := int64(-1)
		for p := range n {
			i := at(k, p)
			counts[p*n+i]++
			if prev >= 0 {
				next[prev*n+i]++
			}
			prev = i
		}
	}
	pairs := next[:0:0]
	for i, c := range next {
		if int64(i)/n != int64(i)%n {
			pairs = append(pairs, c)
		}
	}
	e, freedom := float64(orders)/float64(n), (n-1)*(n-1)
	return chiSquare(counts, e, freedom), chiSquare(pairs, e, freedom)
}

// TestOrderIsUniform: a sample is equally likely at every position, and equally likely to follow
// any other sample. Fisher-Yates shuffles of math/rand stay within the bounds by a margin; an order
// with four rounds does not.
func TestOrderIsUniform(t *testing.T) {
	const orders = 20000
	for _, n := range []int64{3, 5, 7, 16, 37, 100} {
		var perm []int
		r := rand.New(rand.NewPCG(1, uint64(n)))
		fyPos, fyNext := uniformity(n, orders, func(_ int, p int64) int64 {
			if p == 0 {
				perm = r.Perm(int(n))
			}
			return int64(perm[p])
		})
		var o Order
		pos, next := uniformity(n, orders, func(k int, p int64) int64 {
			if p == 0 {
				o = NewOrder(uint64(k), 7, n, true)
			}
			return o.At(p)
		})
		t.Logf("n %d: positions %.2f (Fisher-Yates %.2f), followers %.2f (%.2f)", n, pos, fyPos, next, fyNext)
		bound := 1 + 8/float64(n-1)
		if pos > bound || next > bound {
			t.Errorf("n %d: chi-square of positions %.2f and followers %.2f a degree of freedom, at most %.2f",
				n, pos, next, bound)
		}
	}
}

// TestEpochsDiffer: the orders of two epochs, or of two seeds, agree at about one position in
// total.
func TestEpochsDiffer(t *testing.T) {
	const n = 10000
	a, b, c := NewOrder(1, 0, n, true), NewOrder(1, 1, n, true), NewOrder(2, 0, n, true)
	same := 0
	for p := range int64(n) {
		if a.At(p) == b.At(p) || a.At(p) == c.At(p) {
			same++
		}
	}
	if same > 12 {
		t.Errorf("%d of %d positions keep their sample over epochs or seeds", same, n)
	}
}

func TestWindowIsUniformAndInside(t *testing.T) {
	counts := make([]int, 13*9)
	for p := range int64(117 * 400) {
		box := Window(Crop{
			Seed: 3, Epoch: 1, Position: p,
			Height: 36, Width: 32, H: 24, W: 24, AlignY: 1, AlignX: 1,
		})
		y, x := box.Y, box.X
		if y < 0 || y > 12 || x < 0 || x > 8 {
			t.Fatalf("corner (%d, %d)", y, x)
		}
		counts[y*9+x]++
	}
	if c := chiSquare(counts, 400, 116); c > 1.5 || c < 0.6 {
		t.Errorf("chi-square of corners is %.3f a degree of freedom", c)
	}
	for p := range int64(100) {
		box := Window(Crop{
			Seed: 3, Epoch: 1, Position: p,
			Height: 37, Width: 20, H: 24, W: 24, AlignY: 4, AlignX: 2,
		})
		y, x := box.Y, box.X
		if y%4 != 0 || y > 12 || x != 0 {
			t.Fatalf("aligned corner (%d, %d)", y, x)
		}
	}
}

// TestEverySampleOncePerEpoch: over all ranks and steps every sample comes once, shapes agree, and
// the global batch is the same set for any world size.
func TestEverySampleOncePerEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 300).Draw(t, "n")
		g := rapid.IntRange(1, 40).Draw(t, "g")
		world := rapid.IntRange(1, 12).Draw(t, "world")
		drop := rapid.Bool().Draw(t, "drop")
		o := NewOrder(rapid.Uint64().Draw(t, "seed"), 0, n, true)
		seen := map[int64]int{}
		count, rows := steps.Count(n, g, drop), make([]int64, world)
		for s := range count {
			for rank := range world {
				tk := steps.StepTicket(0, s, g, rank, world)
				if tk.Rows() != steps.LocalRows(g, world) {
					t.Fatalf("rank %d has %d rows", rank, tk.Rows())
				}
				for k := range tk.Rows() {
					if p := tk.Position(k, n); p >= 0 {
						if p/int64(g) != s {
							t.Fatalf("position %d in step %d", p, s)
						}
						seen[o.At(p)]++
						rows[rank]++
					}
				}
			}
		}
		for rank, want := range rows {
			if got := steps.RankRows(n, g, rank, world, drop); got != want {
				t.Fatalf("rank %d of %d has %d rows, not %d", rank, world, want, got)
			}
		}
		want := n
		if drop {
			want = n - n%int64(g)
		}
		if int64(len(seen)) != want {
			t.Fatalf("%d samples, want %d", len(seen), want)
		}
		for i, c := range seen {
			if c != 1 {
				t.Fatalf("sample %d came %d times", i, c)
			}
		}
	})
}

func TestStateStep(t *testing.T) {
	for _, c := range []struct {
		samples, n int64
		g          int
		step       int64
		ok         bool
	}{
		{0, 10, 4, 0, true},
		{4, 10, 4, 1, true},
		{10, 10, 4, 3, true},
		{5, 10, 4, 0, false},
		{12, 10, 4, 0, false},
		{-4, 10, 4, 0, false},
	} {
		got, err := steps.State{Version: steps.Version, Samples: c.samples}.Step(c.n, c.g)
		if (err == nil) != c.ok || got != c.step {
			t.Errorf("%+v: step %d, %v", c, got, err)
		}
	}
	if _, err := (steps.State{Version: steps.Version + 1}).Step(1, 1); err == nil {
		t.Error("a later version was accepted")
	}
}

// vectors holds testdata/order.json: what docs/order.md promises. The Python package reproduces it.
type vectors struct {
	Version int `json:"version"`
	Hash    []struct {
		Seed  uint64   `json:"seed"`
		Words []uint64 `json:"words"`
		H     uint64   `json:"h"`
	} `json:"hash"`
	Orders []struct {
		Seed  uint64     `json:"seed"`
		Epoch uint64     `json:"epoch"`
		N     int64      `json:"n"`
		At    [][2]int64 `json:"at"`
	} `json:"orders"`
	Windows []struct {
		Seed   uint64 `json:"seed"`
		Epoch  uint64 `json:"epoch"`
		P      int64  `json:"p"`
		Height int    `json:"height"`
		Width  int    `json:"width"`
		H      int    `json:"h"`
		W      int    `json:"w"`
		AlignY int    `json:"align_y"`
		AlignX int    `json:"align_x"`
		Y      int    `json:"y"`
		X      int    `json:"x"`
	} `json:"windows"`
	Tickets []struct {
		steps.Ticket
		N         int64   `json:"n"`
		Positions []int64 `json:"positions"`
	} `json:"tickets"`
}

func TestVectors(t *testing.T) {
	b := testfile.Read(t, "../testdata/order.json")
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != steps.Version || len(v.Hash) == 0 || len(v.Orders) == 0 || len(v.Windows) == 0 ||
		len(v.Tickets) == 0 {
		t.Fatalf("vectors of version %d, or an empty list", v.Version)
	}
	for _, c := range v.Hash {
		if got := splitmix.Hash(c.Seed, c.Words...); got != c.H {
			t.Errorf("Hash(%d, %v) = %d, want %d", c.Seed, c.Words, got, c.H)
		}
	}
	for _, c := range v.Orders {
		o := NewOrder(c.Seed, c.Epoch, c.N, true)
		for _, pi := range c.At {
			if got := o.At(pi[0]); got != pi[1] {
				t.Errorf("order %d/%d of %d: At(%d) = %d, want %d", c.Seed, c.Epoch, c.N, pi[0], got, pi[1])
			}
		}
	}
	for _, c := range v.Windows {
		got := Window(Crop{
			Seed: c.Seed, Epoch: c.Epoch, Position: c.P,
			Height: c.Height, Width: c.Width, H: c.H, W: c.W, AlignY: c.AlignY, AlignX: c.AlignX,
		})
		if got != (Box{c.Y, c.X, c.H, c.W}) {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	for _, c := range v.Tickets {
		for k, want := range c.Positions {
			if got := c.Position(k, c.N); got != want || c.Rows() != len(c.Positions) {
				t.Errorf("%+v: row %d is position %d, want %d", c, k, got, want)
			}
		}
	}
}

func BenchmarkAt(b *testing.B) {
	o := NewOrder(1, 1, 1_000_000, true)
	b.ReportAllocs()
	for i := range b.N {
		o.At(int64(i % 1_000_000))
	}
}
