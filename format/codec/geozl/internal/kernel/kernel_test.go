package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// plane draws residuals of whole rows and the width of a row.
func plane[T Unsigned](t *rapid.T) ([]T, int) {
	width := rapid.IntRange(1, 50).Draw(t, "width")
	n := width * rapid.IntRange(1, 6).Draw(t, "rows")
	res := make([]T, n)
	for i := range res {
		res[i] = T(rapid.Uint64().Draw(t, "residual"))
	}
	return res, width
}

// neighbours returns W, N, NW, NE and NN of sample i as integers that cannot overflow.
func neighbours[T Unsigned](d []T, i, width int) [5]*big.Int {
	at := func(ok bool, k int) *big.Int {
		if !ok {
			return new(big.Int)
		}
		return new(big.Int).SetUint64(uint64(d[k]))
	}
	x, y := i%width, i/width
	return [5]*big.Int{at(x > 0, i-1), at(y > 0, i-width), at(x > 0 && y > 0, i-width-1),
		at(x+1 < width && y > 0, i-width+1), at(y > 1, i-2*width)}
}

func testPredictor[T Unsigned](t *testing.T) {
	add := func(x ...*big.Int) *big.Int {
		s := new(big.Int)
		for _, v := range x {
			s.Add(s, v)
		}
		return s
	}
	neg := func(x *big.Int) *big.Int { return new(big.Int).Neg(x) }
	sort3 := func(a, b, c *big.Int) *big.Int {
		s := []*big.Int{a, b, c}
		slices.SortFunc(s, (*big.Int).Cmp)
		return s[1]
	}
	for name, p := range map[string]struct {
		run     func(dst, res []T, width int)
		predict func(n [5]*big.Int) *big.Int
	}{
		"delta_w": {DeltaW[T], func(n [5]*big.Int) *big.Int { return n[0] }},
		"delta_n": {DeltaN[T], func(n [5]*big.Int) *big.Int { return n[1] }},
		"planar":  {Planar[T], func(n [5]*big.Int) *big.Int { return add(n[0], n[1], neg(n[2])) }},
		"med":     {Med[T], func(n [5]*big.Int) *big.Int { return sort3(n[0], n[1], add(n[0], n[1], neg(n[2]))) }},
		"average": {Average[T], func(n [5]*big.Int) *big.Int { return new(big.Int).Rsh(add(n[0], n[1]), 1) }},
		"wp_static": {func(d, r []T, w int) { WPStatic(d, r, w, &Weights{Of: [4]int64{5, -3, 2, 1}, Shift: 2}) },
			func(n [5]*big.Int) *big.Int {
				k := new(big.Int)
				for i, c := range []int64{5, -3, 2, 1} {
					k.Add(k, new(big.Int).Mul(big.NewInt(c), n[1+i]))
				}
				k.Add(k, big.NewInt(2))
				return add(n[0], k.Rsh(wrap64(k), 2))
			}},
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			res, width := plane[T](t)
			want := make([]T, len(res))
			for i, r := range res {
				p := p.predict(neighbours(want, i, width))
				want[i] = r + T(new(big.Int).And(p, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
			}
			got := make([]T, len(res))
			p.run(got, res, width)
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			p.run(res, res, width)
			if !slices.Equal(res, want) {
				t.Fatalf("in place: got %v, want %v", res, want)
			}
		}))
	}
}

// wrap64 wraps an integer into 64 bits with a sign, as the sum of WPStatic does.
func wrap64(x *big.Int) *big.Int {
	low := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64))
	return big.NewInt(int64(low.Uint64()))
}

// TestPredictors: predictors agree with the formulas of the specifications.
func TestPredictors(t *testing.T) {
	t.Run("8", testPredictor[uint8])
	t.Run("16", testPredictor[uint16])
	t.Run("32", testPredictor[uint32])
	t.Run("64", testPredictor[uint64])
}

// TestZigzagPredictors: predictors of mapped values equal the predictor of the values before
// mapping.
func TestZigzagPredictors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res, width := plane[uint16](t)
		mapped := make([]uint16, len(res))
		for i, v := range res {
			s := int16(v)
			mapped[i] = uint16(s<<1 ^ s>>15)
		}
		want, got := make([]uint16, len(res)), make([]uint16, len(res))
		Planar(want, res, width)
		PlanarZigzag(got, mapped, width)
		if !slices.Equal(got, want) {
			t.Fatal("planar differs")
		}
		Med(want, res, width)
		MedZigzag(got, mapped, width)
		if !slices.Equal(got, want) {
			t.Fatal("med differs")
		}
	})
}

// slowBody is pforBody bit by bit, as the specification has it: word j of lane l is at byte j*16 +
// l*width, value i is slot i/lanes of lane i%lanes.
func slowBody(src []byte, width, nbits int) []byte {
	lanes := 16 / width
	dst := make([]byte, PforBlock*width)
	for i := range PforBlock {
		for k := range nbits {
			pos := i/lanes*nbits + k
			at := pos/(8*width)*16 + i%lanes*width + pos%(8*width)/8
			dst[i*width+k/8] |= src[at] >> (pos % 8) & 1 << (k % 8)
		}
	}
	return dst
}

// TestPforBody: the body follows the layout of the specification, for every width and number of
// bits.
func TestPforBody(t *testing.T) {
	src := make([]byte, 32*64)
	for i := range src {
		src[i] = byte(i*i*7 + i>>3)
	}
	for _, width := range []int{1, 2, 4, 8} {
		for nbits := range 8*width + 1 {
			got := make([]byte, PforBlock*width)
			pforBody(got, src[:32*nbits], width, nbits)
			if want := slowBody(src, width, nbits); !slices.Equal(got, want) {
				t.Fatalf("width %d, %d bits differ", width, nbits)
			}
		}
	}
}

// TestPforExceptions: exceptions have their upper bits at their positions, in either form of these, whatever follows
// the block; positions that do not rise, and bitmaps of another count, are refused.
func TestPforExceptions(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		width := 1 << r.IntN(4)
		nbits := r.IntN(8 * width)
		extra, count := 1+r.IntN(8*width-nbits), 1+r.IntN(PforBlock-1)
		positions := r.Perm(PforBlock)[:count]
		slices.Sort(positions)
		list := r.IntN(2) == 0
		head, places := byte(extra), make([]byte, PforBlock/8)
		if list {
			head, places = head|128, places[:0]
		}
		high := make([]byte, (count*extra+7)/8)
		body := make([]byte, nbits*PforBlock/8)
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		want := slowBody(body, width, nbits)
		for i, position := range positions {
			if list {
				places = append(places, byte(position))
			} else {
				places[position/8] |= 1 << (position % 8)
			}
			for bit := range extra {
				set := byte(r.IntN(2))
				high[(i*extra+bit)/8] |= set << ((i*extra + bit) % 8)
				want[position*width+(nbits+bit)/8] |= set << ((nbits + bit) % 8)
			}
		}
		src := slices.Concat([]byte{byte(nbits), byte(count), head}, places, high, body)
		got := make([]byte, PforBlock*width)
		if !Pfor(got, src, width) || !slices.Equal(got, want) {
			t.Fatalf("width %d, %d + %d bits, %d exceptions, list %v: other numbers", width, nbits, extra, count, list)
		}
		if list && count > 1 {
			src[4] = src[3]
		} else if !list {
			src[3+r.IntN(PforBlock/8)] ^= 1 << r.IntN(8)
		} else {
			continue
		}
		if Pfor(got, src, width) {
			t.Fatalf("list %v: wrong positions are taken", list)
		}
	}
}

// TestHalf: the result is the nearest 16-bit float, away from zero in the middle of two.
func TestHalf(t *testing.T) {
	value := func(h uint16) float64 {
		exp, man := int(h>>10&31), float64(h&1023)
		v := math.Ldexp(man, -24)
		if exp > 0 {
			v = math.Ldexp(1024+man, exp-25)
		}
		return v
	}
	for h := range uint16(0x7bff) {
		a, b := value(h), value(h+1)
		mid := (a + b) / 2
		for v, want := range map[float64]uint16{a: h, mid: h + 1, math.Nextafter(mid, 0): h, b: h + 1} {
			if float64(float32(v)) != v {
				v = float64(math.Nextafter32(float32(mid), 0))
			}
			if got := Half(float32(v)); got != want {
				t.Fatalf("%v: got %#x, want %#x", v, got, want)
			}
			if got := Half(float32(-v)); got != want|0x8000 {
				t.Fatalf("-%v: got %#x", v, got)
			}
		}
	}
	for v, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, float32(math.Inf(-1)): 0xfc00} {
		if got := Half(v); got != want {
			t.Errorf("%v: got %#x, want %#x", v, got, want)
		}
	}
}
