package pixels

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestRatioAgainstFractions: a ratio is the reduced fraction of the sides, it holds for assets of the same fractions
// alone, and it scales aligned windows exactly.
func TestRatioAgainstFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 300)
		size := func(name string) *chunk.Index {
			return &chunk.Index{Height: side.Draw(t, name+" height"), Width: side.Draw(t, name+" width")}
		}
		first, other := size("first"), size("other")
		y, x := big.NewRat(int64(other.Height), int64(first.Height)), big.NewRat(int64(other.Width), int64(first.Width))
		fits := true
		for _, number := range []*big.Int{y.Num(), y.Denom(), x.Num(), x.Denom()} {
			fits = fits && number.Int64() <= 64
		}
		got, err := NewRatio(first, other)
		if fits != (err == nil) || err != nil && fault.KindOf(err) != fault.Unsupported {
			t.Fatalf("%v and %v: %v", y, x, err)
		}
		if want := (ratio{numY: int(y.Num().Int64()), DenY: int(y.Denom().Int64()), numX: int(x.Num().Int64()),
			DenX: int(x.Denom().Int64())}); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		a, b := size("a"), size("b")
		if rapid.Bool().Draw(t, "same height") {
			a.Height, b.Height = got.DenY*a.Height, got.numY*a.Height
		}
		if rapid.Bool().Draw(t, "same width") {
			a.Width, b.Width = got.DenX*a.Width, got.numX*a.Width
		}
		holds := y.Cmp(big.NewRat(int64(b.Height), int64(a.Height))) == 0 &&
			x.Cmp(big.NewRat(int64(b.Width), int64(a.Width))) == 0
		if got.Holds(a, b) != holds {
			t.Fatalf("%+v of %+v and %+v: %v", got, a, b, !holds)
		}
		n := rapid.IntRange(-5, 5).Draw(t, "n")
		w := shuffle.Box{Y: n * got.DenY, X: (n + 1) * got.DenX, H: (n + 2) * got.DenY, W: (n + 3) * got.DenX}
		want := shuffle.Box{Y: n * got.numY, X: (n + 1) * got.numX, H: (n + 2) * got.numY, W: (n + 3) * got.numX}
		if got.Scale(w) != want {
			t.Fatalf("%+v of %+v: %+v, want %+v", got, w, got.Scale(w), want)
		}
	})
}

// TestNumbersOfSizes: sizes are rounded, multiplied and bounded as large numbers are.
func TestNumbersOfSizes(t *testing.T) {
	for size := range 200 {
		if n := Align64(size); n%64 != 0 || n < size || n-size >= 64 {
			t.Fatalf("%d is aligned to %d", size, n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 99).Draw(t, "a"), rapid.IntRange(1, 99).Draw(t, "b")
		least := a
		for least%b != 0 {
			least += a
		}
		if Lcm(a, b) != least {
			t.Fatalf("of %d and %d: %d, want %d", a, b, Lcm(a, b), least)
		}
		factor := rapid.OneOf(rapid.IntRange(-2, 9), rapid.Int())
		factors := rapid.SliceOfN(factor, 0, 5).Draw(t, "factors")
		bound := rapid.OneOf(rapid.Int64Range(1, 500), rapid.Int64Range(1, 1<<62)).Draw(t, "bound")
		product := big.NewInt(1)
		for _, f := range factors {
			product.Mul(product, big.NewInt(int64(max(f, 1))))
		}
		want := int64(-1)
		if product.Cmp(big.NewInt(bound)) <= 0 {
			want = product.Int64()
		}
		if got := BoundedBytes(bound, factors...); got != want {
			t.Fatalf("%v up to %d: %d, want %d", factors, bound, got, want)
		}
	})
}

// TestShapesInMessages: a shape in a message has the numbers of the shape.
func TestShapesInMessages(t *testing.T) {
	if got := num.As[int64]([]int{3, -1, 0}); !slices.Equal(got, []int64{3, -1, 0}) {
		t.Error(got)
	}
	if err := OverMemory("batch", 3, " of 5 bytes", 14); fault.KindOf(err) != fault.Limit ||
		!strings.HasPrefix(err.Error(), "batch: 3 rows of 5 bytes are over the 14 bytes") {
		t.Error(err)
	}
}
