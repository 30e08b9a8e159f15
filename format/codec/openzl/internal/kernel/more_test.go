package kernel

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFieldLZ(t *testing.T) { eachLoop(t, testFieldLZ) }

func testFieldLZ(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 4).Draw(t, "shift")
		width := 1 << shift
		least := []int{4, 2, 1, 1, 1}[shift]
		var s FieldSequences
		var want []byte
		literals := func(n int) {
			b := drawBytes(t, n*width, "literals")
			s.Literals = append(s.Literals, b...)
			want = append(want, b...)
		}
		u32 := func(b []byte, v int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }
		last := []int{1, 2, 4}
		for range rapid.IntRange(0, 12).Draw(t, "sequences") {
			nlit := rapid.OneOf(rapid.IntRange(0, 16), rapid.IntRange(0, 70)).Draw(t, "literals")
			literals(nlit)
			have := len(want) / width
			var usable []int // offset codes
			for k, o := range last {
				if o <= have {
					usable = append(usable, k)
				}
			}
			if have > 0 {
				usable = append(usable, 3)
			}
			if len(usable) == 0 {
				literals(1)
				nlit++
				usable = []int{3}
				have = 1
			}
			code := rapid.SampledFrom(usable).Draw(t, "code")
			var offset int
			if code == 3 {
				offset = rapid.IntRange(1, have).Draw(t, "offset")
				s.Offsets = u32(s.Offsets, offset)
				last = []int{offset, last[0], last[1]}
			} else {
				offset = last[code]
				last = slices.Insert(slices.Delete(slices.Clone(last), code, code+1), 0, offset)
			}
			nmatch := rapid.OneOf(rapid.IntRange(least, least+20), rapid.IntRange(least, 200)).Draw(t, "match")
			token := code | min(nlit, 15)<<2 | min(nmatch-least, 15)<<6
			s.Tokens = append(s.Tokens, byte(token), byte(token>>8))
			if nlit >= 15 {
				s.MoreLiterals = u32(s.MoreLiterals, nlit-15)
			}
			if nmatch-least >= 15 {
				s.MoreMatch = u32(s.MoreMatch, nmatch-least-15)
			}
			for range nmatch * width {
				want = append(want, want[len(want)-offset*width])
			}
		}
		literals(rapid.IntRange(0, 20).Draw(t, "last literals"))
		dst := make([]byte, len(want)+rapid.IntRange(0, 3).Draw(t, "room")*width)
		n, ok := FieldLZ(dst, uint(shift), s)
		if !ok || !bytes.Equal(dst[:n], want) {
			t.Fatalf("got %d bytes, %v, want %d", n, ok, len(want))
		}
		if len(want) > 0 {
			if _, ok := FieldLZ(dst[:len(want)-1], uint(shift), s); ok {
				t.Fatal("a byte too many for its memory accepted")
			}
		}
		extra := s
		extra.Offsets = u32(slices.Clone(s.Offsets), 1)
		if _, ok := FieldLZ(dst, uint(shift), extra); ok {
			t.Fatal("an offset too many accepted")
		}
	})
}

func TestLZ(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var literals, want []byte
		widths := [3]int{drawWidth(t), drawWidth(t), drawWidth(t)}
		var streams [3][]byte
		put := func(k, v int) {
			b := make([]byte, widths[k])
			PutLE(b, 0, widths[k], uint64(v))
			streams[k] = append(streams[k], b...)
		}
		add := func(least int) int {
			b := drawBytes(t, rapid.IntRange(least, 20).Draw(t, "literals"), "bytes")
			literals, want = append(literals, b...), append(want, b...)
			return len(b)
		}
		for i := range rapid.IntRange(0, 10).Draw(t, "sequences") {
			least := 0
			if i == 0 {
				least = 1
			}
			put(1, add(least))
			offset := rapid.IntRange(1, min(len(want), 255)).Draw(t, "offset")
			n := rapid.IntRange(0, 100).Draw(t, "match")
			put(0, offset)
			put(2, n)
			for range n {
				want = append(want, want[len(want)-offset])
			}
		}
		add(0)
		got := make([]byte, len(want))
		if !LZ(got, literals, streams[0], streams[1], streams[2], widths[0], widths[1], widths[2]) ||
			!bytes.Equal(got, want) {
			t.Fatal("wrong")
		}
		if LZ(append(got, 0), literals, streams[0], streams[1], streams[2], widths[0], widths[1], widths[2]) {
			t.Fatal("a byte less than wanted accepted")
		}
	})
}

func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 9).Draw(t, "width")
		indexWidth := drawWidth(t)
		n := rapid.IntRange(1, 20).Draw(t, "alphabet")
		alphabet := shifted(t, drawBytes(t, n*width, "alphabet"))
		picks := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 40).Draw(t, "indices")
		indices := make([]byte, len(picks)*indexWidth)
		var want []byte
		for i, k := range picks {
			PutLE(indices, i, indexWidth, uint64(k))
			want = append(want, alphabet[k*width:(k+1)*width]...)
		}
		got := make([]byte, len(want))
		if !Gather(got, alphabet, indices, width, indexWidth) || !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
		if len(picks) > 0 {
			PutLE(indices, len(picks)-1, indexWidth, uint64(n))
			if Gather(got, alphabet, indices, width, indexWidth) {
				t.Fatal("index past the alphabet accepted")
			}
		}
	})
}

func TestBitpack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		nbits := rapid.IntRange(1, 8*w).Draw(t, "bits")
		src := drawBytes(t, w*rapid.IntRange(1, 50).Draw(t, "n"), "src")
		for i := range len(src) / w {
			PutLE(src, i, w, LE(src, i, w)&(^uint64(0)>>(64-nbits)))
		}
		packed := make([]byte, (len(src)/w*nbits+7)/8)
		got := make([]byte, len(src))
		if !Bitpack(packed, src, w, nbits) {
			t.Fatal("refused")
		}
		if Bitunpack(got, packed, w, nbits); !bytes.Equal(got, src) {
			t.Fatalf("got % x, want % x", got, src)
		}
		if nbits < 8*w {
			PutLE(src, 0, w, 1<<nbits)
			if Bitpack(packed, src, w, nbits) {
				t.Fatal("a number of too many bits accepted")
			}
		}
	})
}

func TestMuxLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		split := rapid.IntRange(0, 8).Draw(t, "split")
		bias := rapid.IntRange(0, 15).Draw(t, "bias")
		muxed := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "muxed")
		var long, lits, matches []byte
		put := func(b []byte, v uint64) []byte {
			n := len(b)
			b = append(b, make([]byte, w)...)
			PutLE(b[n:], 0, w, v)
			return b
		}
		for _, m := range muxed {
			lit, match := int(m)%(1<<split), int(m)>>split
			l, x := uint64(lit), uint64(match+bias)
			if lit == 1<<split-1 {
				v := rapid.Uint64Range(0, 100).Draw(t, "long")
				long, l = put(long, v), l+v
			}
			if match == 1<<(8-split)-1 {
				v := rapid.Uint64Range(0, 100).Draw(t, "long")
				long, x = put(long, v), x+v
			}
			lits, matches = put(lits, l), put(matches, x)
		}
		a, b := make([]byte, len(lits)), make([]byte, len(matches))
		if !MuxLengths(a, b, muxed, long, w, uint(split), uint64(bias)) || !bytes.Equal(a, lits) ||
			!bytes.Equal(b, matches) {
			t.Fatal("wrong")
		}
		if MuxLengths(a, b, muxed, put(long, 0), w, uint(split), uint64(bias)) {
			t.Fatal("a long length too many accepted")
		}
	})
}

func TestSentinelAndSparse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := drawWidth(t)
		from := rapid.SampledFrom([]int{1, 2, 4, 8}).Filter(func(f int) bool { return f <= to }).Draw(t, "from")
		n := rapid.IntRange(0, 30).Draw(t, "n")
		values := make([]byte, n*from)
		want := make([]byte, n*to)
		var exceptions []byte
		for i := range n {
			v := rapid.Uint64Range(0, 4).Draw(t, "value")
			PutLE(values, i, from, v)
			if v == 3 {
				e := drawBytes(t, to, "exception")
				exceptions = append(exceptions, e...)
				v = LE(e, 0, to)
			}
			PutLE(want, i, to, v)
		}
		got := make([]byte, len(want))
		if !Sentinel(got, values, exceptions, from, to, 3) || !bytes.Equal(got, want) {
			t.Fatalf("Sentinel gives % x, want % x", got, want)
		}
		if Sentinel(got, values, append(exceptions, make([]byte, to)...), from, to, 3) {
			t.Fatal("an exception too many accepted")
		}

		dominant := drawBytes(t, to, "dominant")
		distances := rapid.SliceOfN(rapid.ByteRange(0, 9), n, n+1).Draw(t, "distances")
		sparse := drawBytes(t, n*to, "values")
		want = want[:0]
		for i, d := range distances {
			want = append(want, bytes.Repeat(dominant, int(d))...)
			if i < n {
				want = append(want, sparse[i*to:(i+1)*to]...)
			}
		}
		got = make([]byte, len(want))
		if Sparse(got, distances, sparse, dominant, 1); !bytes.Equal(got, want) {
			t.Fatalf("Sparse gives % x, want % x", got, want)
		}
	})
}

func TestPartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Partitions
		w := drawWidth(t)
		base := rapid.Uint64Range(0, 1000).Draw(t, "start")
		var sizes, bases []uint64
		for range rapid.IntRange(1, 10).Draw(t, "count") {
			n := rapid.Uint64Range(1, 1<<rapid.IntRange(0, 57).Draw(t, "log")).Draw(t, "size")
			sizes, bases = append(sizes, n), append(bases, base)
			base = p.Add(base, n)
		}
		var stream []bool
		var buckets []byte
		var want []byte
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			k := rapid.IntRange(0, len(sizes)-1).Draw(t, "bucket")
			place := rapid.Uint64Range(0, sizes[k]-1).Draw(t, "place")
			for i := 0; uint64(1)<<i < sizes[k]; i++ {
				stream = append(stream, place>>i&1 != 0)
			}
			buckets = append(buckets, byte(k))
			want = append(want, make([]byte, w)...)
			PutLE(want[len(want)-w:], 0, w, bases[k]+place)
		}
		extra := make([]byte, (len(stream)+7)/8)
		for i, b := range stream {
			if b {
				extra[i/8] |= 1 << (i % 8)
			}
		}
		got := make([]byte, len(want))
		if !p.Decode(got, buckets, extra, w) || !bytes.Equal(got, want) {
			t.Fatalf("got % x, want % x", got, want)
		}
		if len(extra) > 0 && p.Decode(got, buckets, extra[:len(extra)-1], w) {
			t.Fatal("a byte of extra bits less accepted")
		}
	})
}

func TestJoinFloat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range []struct {
			width, exponent, fraction int
			join                      func(dst, exponents, rest []byte)
		}{{4, 8, 23, JoinFloat32}, {2, 8, 7, JoinBFloat16}, {2, 5, 10, JoinFloat16}} {
			n := rapid.IntRange(0, 20).Draw(t, "n")
			want := drawBytes(t, n*c.width, "numbers")
			rest := (c.fraction + 8) / 8
			var exponents, rests []byte
			for i := range n {
				v := LE(want, i, c.width)
				exponents = append(exponents, byte(v>>c.fraction&(1<<c.exponent-1)))
				r := v<<1&(2<<c.fraction-1) | v>>(c.fraction+c.exponent)
				for k := range rest {
					rests = append(rests, byte(r>>(8*k)))
				}
			}
			got := make([]byte, len(want))
			if c.join(got, exponents, rests); !bytes.Equal(got, want) {
				t.Fatalf("%d bits of fraction: got % x, want % x", c.fraction, got, want)
			}
		}
	})
}

func TestMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWidth(t)
		highest := ^uint64(0) >> (64 - 8*w)
		by := rapid.Uint64Range(1, highest).Draw(t, "by")
		src := shifted(t, drawBytes(t, w*rapid.IntRange(0, 20).Draw(t, "n"), "src"))
		fits := true
		want := make([]byte, len(src))
		for i := range len(src) / w {
			hi, lo := bits.Mul64(LE(src, i, w), by)
			fits = fits && hi == 0 && lo <= highest
			PutLE(want, i, w, lo)
		}
		got := make([]byte, len(src))
		if ok := Multiply(got, src, w, by, highest/by); ok != fits || !bytes.Equal(got, want) {
			t.Fatalf("%v, want %v", ok, fits)
		}
	})
}

// TestLoopsAgree: the loops in assembly accept and refuse the same streams as those in Go, valid or
// not.
func TestLoopsAgree(t *testing.T) {
	if !hasLoops {
		t.Skip("no loops in assembly")
	}
	defer func(n int) { hasLoops, quadLeast = true, n }(quadLeast)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var h HuffmanTable
	var f FSETable
	rapid.Check(t, func(t *rapid.T) {
		var ok1 bool
		var want []byte
		weights, _, _ := huffmanCode(t, 30, 11)
		norm := []int16{-1, 20, 1, 7, 1, -1, 1}
		if !h.Build(weights) || !f.Build(norm) {
			t.Fatal("refused")
		}
		src := fill(t, all, 10, 1200)
		n := rapid.IntRange(0, 3000).Draw(t, "symbols")
		if len(src) > 6 && rapid.Bool().Draw(t, "even") {
			q := (len(src) - 6) / 4
			for i := range 3 {
				binary.LittleEndian.PutUint16(src[2*i:], uint16(q))
			}
		}
		var dst [2][]byte
		var ok [2]bool
		var got [2]int
		for _, least := range []int{1 << 30, 0} {
			quadLeast = least
			for i := range 2 {
				hasLoops = i == 1
				dst[i] = make([]byte, n)
				ok[i] = h.Decode4(dst[i], src)
			}
			if ok[0] != ok[1] || ok[0] && !bytes.Equal(dst[0], dst[1]) {
				t.Fatalf("Huffman: %v in Go, %v in assembly", ok[0], ok[1])
			}
			if least > 0 {
				ok1, want = ok[0], bytes.Clone(dst[0])
			} else if ok[0] != ok1 || ok1 && !bytes.Equal(dst[0], want) {
				t.Fatalf("Huffman: %v one by one, %v up to four at a time", ok1, ok[0])
			}
		}
		for i := range 2 {
			hasLoops = i == 1
			got[i], ok[i] = f.Decode(dst[i], src, 4)
		}
		if ok[0] != ok[1] || got[0] != got[1] || ok[0] && !bytes.Equal(dst[0][:got[0]], dst[1][:got[1]]) {
			t.Fatalf("FSE: %d, %v in Go, %d, %v in assembly", got[0], ok[0], got[1], ok[1])
		}
	})
}

// TestSequenceLoopsAgree: the loops for field_lz and for quantized codes accept the same inputs in
// Go and in assembly, valid or not, and yield the same output.
func TestSequenceLoopsAgree(t *testing.T) {
	if !hasLoops {
		t.Skip("no loops in assembly")
	}
	defer func() { hasLoops = true }()
	rapid.Check(t, func(t *rapid.T) {
		u32 := func(name string, most int) []byte {
			v := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32()), 0, most).Draw(t, name)
			var b []byte
			for _, number := range v {
				b = binary.LittleEndian.AppendUint32(b, number)
			}
			return append(b,
				drawBytes(t, rapid.SampledFrom([]int{0, 0, 0, 3}).Draw(t, "more"), name)...)
		}
		s := FieldSequences{
			Literals: drawBytes(t, rapid.IntRange(0, 400).Draw(t, "n"), "literals"),
			Offsets:  u32("offsets", 12), MoreLiterals: u32("more literals", 3), MoreMatch: u32("more match", 3),
		}
		for _, token := range rapid.SliceOfN(rapid.Uint16Range(0, 1023), 0, 30).Draw(t, "tokens") {
			s.Tokens = append(s.Tokens, byte(token), byte(token>>8))
		}
		shift := uint(rapid.IntRange(0, 4).Draw(t, "shift"))
		size := rapid.IntRange(0, 3000).Draw(t, "size")
		var dst, begun [2][]byte
		var state [2]fieldState
		var ok [2]bool
		var n [2]int
		for i := range 2 {
			hasLoops = i == 1
			dst[i] = make([]byte, size)
			n[i], ok[i] = FieldLZ(dst[i], shift, s)
			// The remaining work after the loop must be the same as well.
			if size <= fieldRun+fieldMatch || len(s.Literals) <= fieldRun {
				continue
			}
			out := make([]byte, size)
			f := newFieldState(out, shift, &s)
			f.sequences(out, &s)
			f.dst, f.lits, f.tokens, f.offsets, f.moreLit, f.moreMatch = nil, nil, nil, nil, nil, nil
			state[i], begun[i] = f, out[:f.at]
		}
		if ok[0] != ok[1] || n[0] != n[1] || state[0] != state[1] ||
			!bytes.Equal(begun[0], begun[1]) || ok[0] && !bytes.Equal(dst[0], dst[1]) {
			t.Fatalf("field_lz: %d, %v, %+v in Go, %d, %v, %+v in assembly",
				n[0], ok[0], state[0], n[1], ok[1], state[1])
		}
		codes := rapid.SliceOfN(rapid.OneOf(rapid.ByteRange(0, 20), rapid.ByteRange(0, 45)), 0, 60).Draw(t, "codes")
		extra := drawBytes(t, rapid.IntRange(0, 80).Draw(t, "n"), "extra")
		for _, q := range []*Quantizer{&OffsetCodes, &LengthCodes} {
			var pos, done [2]int
			for i := range 2 {
				hasLoops = i == 1
				dst[i] = make([]byte, 4*len(codes))
				done[i], pos[i] = q.pairs(dst[i], codes, extra)
			}
			if pos[0] != pos[1] || done[0] != done[1] || !bytes.Equal(dst[0], dst[1]) {
				t.Fatalf("codes: %d, %d in Go, %d, %d in assembly", done[0], pos[0], done[1], pos[1])
			}
		}
	})
}
