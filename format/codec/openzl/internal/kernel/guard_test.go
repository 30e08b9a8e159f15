package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/internal/fse"
	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// rooms are memory regions whose ends fault. They hold the arguments of a kernel.
type rooms struct {
	dst, src, more, last, fifth *guard.Room
	rng                         *rand.Rand
}

func newRooms(t *testing.T) *rooms {
	guard.Faults(t)
	r := &rooms{rng: rand.New(rand.NewPCG(11, 12))}
	for _, p := range []**guard.Room{&r.dst, &r.src, &r.more, &r.last, &r.fifth} {
		*p = guard.New(t, 1<<15)
	}
	return r
}

// noise returns n random bytes at an end of a room.
func (r *rooms) noise(in *guard.Room, back bool, n int) []byte {
	b := in.At(back, n)
	for i := range b {
		b[i] = byte(r.rng.Uint32())
	}
	return b
}

// TestNothingOutsideIsTouched: on valid and on invalid input of every length, no kernel reads or
// writes outside of its arguments.
func TestNothingOutsideIsTouched(t *testing.T) { eachLoop(t, testNothingOutside) }

func testNothingOutside(t *testing.T) {
	defer func(n int) { quadLeast = n }(quadLeast)
	r := newRooms(t)
	for _, back := range []bool{false, true} {
		for n := range 301 {
			r.plain(back, n)
			r.entropy(t, back, n, 4*n)
			r.entropy(t, back, 4*n, n)
			r.entropy(t, back, 8*n, 12*n)
			r.sequences(back, n)
		}
	}
}

// plain runs the kernels that take any input.
func (r *rooms) plain(back bool, n int) {
	for _, w := range []int{1, 2, 4, 8} {
		src, dst := r.noise(r.src, back, n*w), r.dst.At(back, n*w)
		Zigzag(dst, src, w)
		if n == pforBlock {
			var masks aboveMasks
			above(&masks, src, w, ^uint64(0))
			for nbits := 1; nbits < 8*w; nbits++ {
				pack(r.dst.At(back, nbits*pforBlock/8), src, lowestOf(w), nbits, w)
			}
		}
		if n > 0 {
			Delta(r.dst.At(back, n*w), r.noise(r.more, back, w), src[w:], w)
		}
		for _, bits := range []int{1, 3, 8*w - 1, 8 * w} {
			Bitunpack(dst, r.noise(r.more, back, (n*bits+7)/8), w, bits)
		}
		for _, from := range []int{1, 2, 4, 8} {
			if from <= w {
				Widen(dst, r.noise(r.more, back, n*from), w, from, 5)
			}
		}
	}
	codes := r.noise(r.more, back, n)
	for i := range codes {
		codes[i] %= 45
	}
	for _, extra := range []int{0, 7, 8, 9, n, 4 * n} {
		OffsetCodes.Decode(r.dst.At(back, 4*n), codes, r.noise(r.src, back, extra))
		LengthCodes.Decode(r.dst.At(back, 4*n), codes, r.noise(r.src, back, extra))
	}
}

// entropy decodes noise into out symbols, by tables of few and of many bits.
func (r *rooms) entropy(t *testing.T, back bool, in, out int) {
	src, dst := r.noise(r.src, back, in), r.dst.At(back, out)
	if in > 0 && r.rng.IntN(2) == 0 {
		src[in-1] |= 1 // an end mark
	}
	if q := (in - 6) / 4; in > 10 && r.rng.IntN(2) == 0 { // four streams of one size
		for i := range 3 {
			src[2*i], src[2*i+1] = byte(q), byte(q>>8)
		}
		for i := 1; i < 4; i++ {
			src[6+i*q-1] |= 1
		}
	}
	var h HuffmanTable
	for _, weights := range [][]byte{{1, 1}, {5, 4, 3, 2, 1, 1}, flat(8), steep(11), steep(12)} {
		if !h.Build(r.more.Put(back, weights)) {
			t.Fatal("refused")
		}
		for _, quadLeast = range []int{0, 1 << 30} {
			h.Decode4(dst, src)
		}
		h.Decode1(dst, src)
	}
	var f FSETable
	for _, norm := range [][]int16{{-1, 20, 1, 7, 1, -1, 1}, {31, -1}, {1, 2048, 2047}, {4095, 1}} {
		if !f.Build(norm) {
			t.Fatal("refused")
		}
		for _, states := range []int{2, 4} {
			f.Decode(dst, src, states)
		}
	}
	fse.Counts(make([]int16, 256), src)
}

// flat returns the weights of 1<<bits symbols of one length.
func flat(bits int) []byte {
	w := make([]byte, 1<<bits)
	for i := range w {
		w[i] = 1
	}
	return w
}

// steep returns the weights of a code whose lengths are 1, 2, ... up to bits, and bits again.
func steep(bits int) []byte {
	w := []byte{1}
	for i := 1; i <= bits; i++ {
		w = append(w, byte(i))
	}
	return w
}

// sequences runs the matchers on tokens that are about half sound.
func (r *rooms) sequences(back bool, n int) {
	u32 := func(in *guard.Room, n, most int) []byte {
		b := in.At(back, 4*n)
		for i := range n {
			v := uint64(r.rng.IntN(most))
			if r.rng.IntN(20) == 0 {
				v = uint64(r.rng.Uint32())
			}
			PutLE(b, i, 4, v)
		}
		return b
	}
	for shift := range uint(4) {
		s := FieldSequences{
			Literals: r.noise(r.src, back, n<<shift), Tokens: r.noise(r.more, back, n/4*2),
			Offsets: u32(r.last, n/8, 40), MoreLiterals: u32(r.fifth, n/60, 100), MoreMatch: make([]byte, 4),
		}
		for i := range len(s.Tokens) / 2 {
			s.Tokens[2*i+1] &= 3
		}
		for _, size := range []int{n, 8*n + 48, 64} {
			FieldLZ(r.dst.At(back, size), shift, s)
		}
	}
	offsets, lits := u32(r.last, n/8, 40), u32(r.fifth, n/8, 8)
	LZ(r.dst.At(back, 8*n), r.noise(r.src, back, n), offsets, lits, lits, 4, 4, 4)
}
