package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The judges here are slow versions that follow the definition of each codec number by number.

func drawWidth(t *rapid.T) int { return rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width") }

func drawBytes(t *rapid.T, n int, name string) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, name)
}

// shifted returns a copy of b that starts at an odd address or at an even one, so that the
// byte-wise loops are tried too.
func shifted(t *rapid.T, b []byte) []byte {
	k := rapid.IntRange(0, 1).Draw(t, "shift")
	return append(make([]byte, k, len(b)+1), b...)[k:]
}

func TestDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		deltas := shifted(t, drawBytes(t, w*rapid.IntRange(0, 40).Draw(t, "n"), "deltas"))
		first := drawBytes(t, w, "first")
		want := make([]byte, len(deltas)+w)
		v := LE(first, 0, w)
		PutLE(want, 0, w, v)
		for i := range len(deltas) / w {
			v += LE(deltas, i, w)
			PutLE(want, i+1, w, v)
		}
		got := shifted(t, make([]byte, len(want)))
		Delta(got, first, deltas, w)
		if !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
		back := make([]byte, len(deltas))
		Differences(back, got, w)
		if !bytes.Equal(back, deltas) {
			t.Fatalf("differences % x, want % x", back, deltas)
		}
	})
}

func TestZigzag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		src := drawBytes(t, w*rapid.IntRange(0, 40).Draw(t, "n"), "src")
		want := make([]byte, len(src))
		for i := range len(src) / w {
			z := LE(src, i, w)
			v := int64(z / 2)
			if z%2 == 1 {
				v = -v - 1
			}
			PutLE(want, i, w, uint64(v))
		}
		Zigzag(src, src, w)
		if !bytes.Equal(src, want) {
			t.Fatalf("got % x, want % x", src, want)
		}
	})
}

func TestBitunpack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		nbits := rapid.IntRange(1, 8*w).Draw(t, "bits")
		n := rapid.IntRange(0, 100).Draw(t, "n")
		src := drawBytes(t, (n*nbits+7)/8, "src")
		want := make([]byte, n*w)
		for i := range n {
			var v uint64
			for k := range nbits {
				p := i*nbits + k
				v |= uint64(src[p/8]>>(p%8)&1) << k
			}
			PutLE(want, i, w, v)
		}
		got := shifted(t, make([]byte, len(want)))
		Bitunpack(got, src, w, nbits)
		if !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
	})
}

func TestWiden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := drawWidth(t)
		from := rapid.SampledFrom([]int{1, 2, 4, 8}).Filter(func(f int) bool { return f <= to }).Draw(t, "from")
		low := rapid.Uint64().Draw(t, "low")
		src := shifted(t, drawBytes(t, from*rapid.IntRange(0, 30).Draw(t, "n"), "src"))
		want := make([]byte, len(src)/from*to)
		for i := range len(src) / from {
			PutLE(want, i, to, LE(src, i, from)+low)
		}
		got := shifted(t, make([]byte, len(want)))
		Widen(got, src, to, from, low)
		if !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
	})
}

// fill returns n elements of from, chosen by a seed: long inputs drawn one by one are slow and rare.
func fill(t *rapid.T, from []byte, least, most int) []byte {
	n := rapid.IntRange(least, most).Draw(t, "length")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	skew := rapid.IntRange(1, 4).Draw(t, "skew")
	b := make([]byte, n)
	for i := range b {
		k := r.Float64()
		for range skew - 1 {
			k *= r.Float64()
		}
		b[i] = from[int(k*float64(len(from)))]
	}
	return b
}

// eachLoop runs a test with the loops in assembly, where there are any, and with those in Go.
func eachLoop(t *testing.T, f func(t *testing.T)) {
	t.Run("go", func(t *testing.T) {
		defer func(h bool) { hasLoops = h }(hasLoops)
		hasLoops = false
		f(t)
	})
	if hasLoops {
		t.Run("assembly", f)
	}
}

// bitList writes the bits of codes so that a backBits reads them in the order they were added.
type bitList []bool

func (l *bitList) add(v uint64, n int) {
	for i := n - 1; i >= 0; i-- {
		*l = append(*l, v>>i&1 != 0)
	}
}

// bytes returns the stream: first bit highest, an end mark above it.
func (l bitList) bytes() []byte {
	out := make([]byte, len(l)/8+1)
	for i, bit := range l {
		if bit {
			p := len(l) - 1 - i
			out[p/8] |= 1 << (p % 8)
		}
	}
	out[len(l)/8] |= 1 << (len(l) % 8)
	return out
}

// huffmanCode draws weights of a complete code and returns them with each symbol's code.
func huffmanCode(t *rapid.T, symbols, longest int) (weights []byte, codes []uint64, lengths []int) {
	// Split leaves of a tree until there are enough of them.
	depth := []int{1, 1}
	n := rapid.IntRange(2, symbols).Draw(t, "used")
	for len(depth) < n {
		i := rapid.IntRange(0, len(depth)-1).Draw(t, "split")
		if depth[i] >= longest {
			break
		}
		depth[i]++
		depth = append(depth, depth[i])
	}
	log := 0
	for _, d := range depth {
		log = max(log, d)
	}
	weights = make([]byte, symbols)
	for _, d := range depth {
		s := rapid.IntRange(0, symbols-1).Draw(t, "symbol")
		for weights[s] != 0 {
			s = (s + 1) % symbols
		}
		weights[s] = byte(log + 1 - d)
	}
	// Codes are assigned by increasing weight, then by symbol.
	codes, lengths = make([]uint64, symbols), make([]int, symbols)
	var next uint64
	for w := byte(1); int(w) <= log; w++ {
		for s := range weights {
			if weights[s] == w {
				lengths[s] = log + 1 - int(w)
				codes[s] = next >> (w - 1)
				next += 1 << (w - 1)
			}
		}
	}
	return weights, codes, lengths
}

func TestHuffman(t *testing.T) {
	eachLoop(t, testHuffman)
	t.Run("quads", func(t *testing.T) {
		defer func(n int) { quadLeast = n }(quadLeast)
		quadLeast = 0
		eachLoop(t, testHuffman)
	})
}

func testHuffman(t *testing.T) {
	var h HuffmanTable
	rapid.Check(t, func(t *rapid.T) {
		weights, codes, lengths := huffmanCode(t, rapid.SampledFrom([]int{2, 5, 30, 256}).Draw(t, "symbols"),
			MaxHuffmanBits)
		if !h.Build(weights) {
			t.Fatalf("weights %v refused", weights)
		}
		var used []byte
		for s, w := range weights {
			if w > 0 {
				used = append(used, byte(s))
			}
		}
		want := fill(t, used, 0, 1500)
		stream := func(data []byte) []byte {
			var l bitList
			for _, s := range data {
				l.add(codes[s], lengths[s])
			}
			return l.bytes()
		}
		src := stream(want)
		got := make([]byte, len(want))
		if !h.Decode1(got, src) || !bytes.Equal(got, want) {
			t.Fatal("one stream: wrong")
		}
		if len(want) > 0 && h.Decode1(got[1:], src) {
			t.Fatal("one symbol too few accepted")
		}
		if h.Decode1(append(got, 0), src) {
			t.Fatal("one symbol too many accepted")
		}
		q := (len(want) + 3) / 4
		if 3*q > len(want) {
			return
		}
		var four []byte
		var bodies [][]byte
		for i := range 4 {
			part := want[3*q:]
			if i < 3 {
				part = want[i*q : (i+1)*q]
			}
			bodies = append(bodies, stream(part))
			if i < 3 {
				four = append(four, byte(len(bodies[i])), byte(len(bodies[i])>>8))
			}
		}
		four = append(four, bytes.Join(bodies, nil)...)
		clear(got)
		if !h.Decode4(got, four) || !bytes.Equal(got, want) {
			t.Fatal("four streams: wrong")
		}
	})
}

func TestHuffman16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights, codes, lengths := huffmanCode(t, rapid.SampledFrom([]int{2, 300, 1000}).Draw(t, "symbols"),
			MaxHuffman16Bits)
		log, ok := HuffmanLog(weights, MaxHuffman16Bits)
		if !ok {
			t.Fatal("weights refused")
		}
		table := make([]uint32, 1<<log)
		BuildHuffman16(table, weights, log)
		var used []int
		for s, w := range weights {
			if w > 0 {
				used = append(used, s)
			}
		}
		var l bitList
		var want []byte
		wanted := rapid.SliceOfN(rapid.SampledFrom(used), 0, 100).Draw(t, "data")
		for _, s := range wanted {
			l.add(codes[s], lengths[s])
			want = append(want, byte(s), byte(s>>8))
		}
		got := make([]byte, len(want))
		if !DecodeHuffman16(got, l.bytes(), table, log) || !bytes.Equal(got, want) {
			t.Fatal("wrong")
		}
		// Four streams of different lengths: the first one has no symbols.
		var to, from [4][]byte
		for i := range to {
			var part bitList
			n := len(wanted) * i / 3 * 2
			for _, s := range wanted[:n/2] {
				part.add(codes[s], lengths[s])
			}
			to[i], from[i] = make([]byte, n), part.bytes()
		}
		ok = DecodeHuffman16x4(&to, &from, table, log)
		for i := range to {
			if !ok || !bytes.Equal(to[i], want[:len(to[i])]) {
				t.Fatalf("stream %d is wrong", i)
			}
		}
	})
}

// fseEncode writes data with the given number of states by searching the decoding table: for every
// symbol, from the last to the first, the one state that leads on to the next symbol's state.
func fseEncode(f *FSETable, data []byte, states int) []byte {
	size := 1 << f.log
	chain := make([][]int, states) // per state machine, its states in order
	bitsOf := map[int][2]uint64{}  // position of a symbol: bits read after it, how many
	for m := range states {
		next := -1
		for i := len(data) - 1; i >= 0; i-- {
			if i%states != m {
				continue
			}
			for x := range size {
				e := f.t[x]
				if e.sym != data[i] {
					continue
				}
				if next < 0 {
					next = x
					chain[m] = append(chain[m], x)
					break
				}
				if lo := int(e.base); next >= lo && next < lo+1<<e.bits {
					bitsOf[i] = [2]uint64{uint64(next - lo), uint64(e.bits)}
					next = x
					chain[m] = append(chain[m], x)
					break
				}
			}
		}
	}
	var l bitList
	for m := range states {
		l.add(uint64(chain[m][len(chain[m])-1]), f.log)
	}
	for i := range data {
		b := bitsOf[i]
		l.add(b[0], int(b[1]))
	}
	return l.bytes()
}

func TestFSE(t *testing.T) { eachLoop(t, testFSE) }

func testFSE(t *testing.T) {
	var f FSETable
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.IntRange(MinFSELog, 9).Draw(t, "log")
		n := rapid.IntRange(2, 1<<log/2).Draw(t, "symbols")
		n = min(n, 256)
		norm := make([]int16, n)
		for i := range norm {
			norm[i] = 1
		}
		for left := 1<<log - n; left > 0; {
			k := rapid.IntRange(1, left).Draw(t, "share")
			norm[rapid.IntRange(0, n-1).Draw(t, "to")] += int16(k)
			left -= k
		}
		for i := range norm {
			if norm[i] == 1 && rapid.Bool().Draw(t, "rare") {
				norm[i] = -1
			}
		}
		if !f.Build(norm) {
			t.Fatalf("counts %v refused", norm)
		}
		states := rapid.SampledFrom([]int{2, 4}).Draw(t, "states")
		symbols := make([]byte, n)
		for i := range symbols {
			symbols[i] = byte(i)
		}
		want := fill(t, symbols, states, 1000)
		src := fseEncode(&f, want, states)
		got := make([]byte, len(want))
		if n, ok := f.Decode(got, src, states); !ok || n != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if n, ok := f.Decode(make([]byte, len(want)+1), src, states); ok && n == len(want)+1 {
			t.Fatal("one symbol too many")
		}
		if _, ok := f.Decode(got[1:], src, states); ok {
			t.Fatal("one symbol too many for its memory accepted")
		}
	})
}

func TestQuantizers(t *testing.T) { eachLoop(t, testQuantizers) }

func testQuantizers(t *testing.T) {
	slow := func(code byte, small int) (base uint64, n int) {
		if int(code) < small {
			return uint64(code), 0
		}
		n = int(code)
		if small > 0 {
			n = int(code) - small + 4
		}
		return 1 << n, n
	}
	rapid.Check(t, func(t *rapid.T) {
		q, small, codes := &OffsetCodes, 0, 32
		if rapid.Bool().Draw(t, "lengths") {
			q, small, codes = &LengthCodes, 16, 44
		}
		src := rapid.SliceOfN(rapid.ByteRange(0, byte(codes-1)), 0, 60).Draw(t, "codes")
		var extra []byte
		pos := 0
		want := make([]byte, 4*len(src))
		for i, c := range src {
			base, n := slow(c, small)
			v := rapid.Uint64Range(0, 1<<n-1).Draw(t, "extra")
			for k := range n {
				if pos%8 == 0 {
					extra = append(extra, 0)
				}
				extra[pos/8] |= byte(v>>k&1) << (pos % 8)
				pos++
			}
			PutLE(want, i, 4, base+v)
		}
		got := make([]byte, len(want))
		if !q.Decode(got, src, extra) || !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
		if len(extra) > 0 && q.Decode(got, src, extra[:len(extra)-1]) {
			t.Fatal("a byte of extra bits less accepted")
		}
		if q.Decode(append(got, 0, 0, 0, 0), append(src, byte(codes)), extra) {
			t.Fatal("code out of range accepted")
		}
	})
}
