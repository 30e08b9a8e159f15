package filter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// written are the filters that have both directions.
var written = []ID{None, Gzip, Zstd, LZ4, RLE, DoubleDelta, BitWidth, BitShuffle, ByteShuffle, PositiveDelta, AES256GCM}

var testKey = bytes.Repeat([]byte("k"), 32)

// elems are the kinds of values that datatypes give, in cells of one value.
func elems() []Elem {
	var list []Elem
	for _, size := range []int{1, 2, 4, 8} {
		list = append(list, Elem{Kind: Signed, Size: size, Cell: size}, Elem{Kind: Unsigned, Size: size, Cell: size})
	}
	list = append(list, Elem{Kind: Float, Size: 4, Cell: 4}, Elem{Kind: Float, Size: 8, Cell: 8},
		Elem{Kind: Time, Size: 8, Cell: 8})
	for _, size := range []int{1, 2, 4} {
		list = append(list, Elem{Kind: Char, Size: size, Cell: size})
	}
	return list
}

// drawData draws n values with a pattern that some filter likes.
func drawData(t *rapid.T, e Elem, n int) []byte {
	kind := rapid.SampledFrom([]string{"noise", "ramp", "runs", "small", "extremes"}).Draw(t, "data")
	seed := rapid.Uint64().Draw(t, "seed")
	out := make([]byte, 0, n*e.Size)
	v := seed
	for range n {
		seed = seed*6364136223846793005 + 1442695040888963407
		r := seed >> 20
		switch kind {
		case "noise":
			v = seed
		case "ramp":
			v += r % 3
		case "runs":
			if r%17 == 0 {
				v = r
			}
		case "small":
			v = r % 50
		default:
			v = [...]uint64{0, 1, 1<<63 - 1, 1 << 63, ^uint64(0), 1<<31 - 1, 1 << 31, 127, 128, 0xffff}[r%10]
		}
		out = appendLE(out, e.Size, v)
	}
	return out
}

func drawPipeline(t *rapid.T) Pipeline {
	p := Pipeline{MaxChunk: rapid.SampledFrom([]uint32{0, 1, 7, 64, 100, 1000, 1 << 16}).Draw(t, "chunk")}
	for range rapid.IntRange(0, 4).Draw(t, "filters") {
		p.Filters = append(p.Filters, Filter{ID: rapid.SampledFrom(written).Draw(t, "filter"),
			Level:  rapid.Int32Range(-1, 9).Draw(t, "level"),
			Window: rapid.SampledFrom([]uint32{0, 1, 8, 24, 63, 256, 1 << 20}).Draw(t, "window")})
	}
	return p
}

func key(t testing.TB) *Decoder {
	t.Helper()
	k, err := NewKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	return NewDecoder(k)
}

// TestRoundTrip: what the encoder writes, by any pipeline, of any type, in chunks of any size, the decoder
// reads; and a part of a tile is that part of the whole.
func TestRoundTrip(t *testing.T) {
	k, err := NewKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	enc, dec := NewEncoder(k), NewDecoder(k)
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(elems()).Draw(t, "elem")
		src := drawData(t, e, rapid.IntRange(0, 700).Draw(t, "values"))
		p := drawPipeline(t)
		stored, err := enc.Tile(nil, src, p, e)
		if fault.KindOf(err) == fault.Unsupported {
			t.Skip(err.Error()) // falling values, floats in double delta
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(src), len(src)+Spare)
		if err := dec.Tile(got, stored, p, e, 0, len(got)); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		if !bytes.Equal(got, src) {
			t.Fatalf("%v: other bytes", p)
		}
		lo := rapid.IntRange(0, len(src)).Draw(t, "lo")
		hi := rapid.IntRange(lo, len(src)).Draw(t, "hi")
		part := make([]byte, len(src))
		if err := dec.Tile(part, stored, p, e, lo, hi); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(part[lo:hi], src[lo:hi]) {
			t.Fatalf("%v: other bytes in [%d, %d)", p, lo, hi)
		}
	})
}

// TestFourFilters: every four filters in a row are undone, whatever passes metadata on to whatever takes it.
func TestFourFilters(t *testing.T) {
	k, err := NewKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	enc, dec := NewEncoder(k), NewDecoder(k)
	var src []byte
	for i := range 100 {
		src = appendLE(src, 8, uint64(i*i))
	}
	e, n, done := Elem{Kind: Unsigned, Size: 8, Cell: 8}, len(written), 0
	for i := range n * n * n * n {
		p := Pipeline{MaxChunk: 400}
		for k := i; len(p.Filters) < 4; k /= n {
			p.Filters = append(p.Filters, Filter{ID: written[k%n], Level: 1, Window: 64})
		}
		stored, err := enc.Tile(nil, src, p, e)
		if fault.KindOf(err) == fault.Unsupported {
			continue
		}
		got := make([]byte, len(src), len(src)+Spare)
		if err == nil {
			err = dec.Tile(got, stored, p, e, 0, len(got))
		}
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%v: %v", p, err)
		}
		done++
	}
	if done < n*n*n*n/2 {
		t.Errorf("only %d pipelines", done)
	}
}

// append appends the pipeline to b, in the form that ParseVersion reads.
func (p Pipeline) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.MaxChunk)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Filters)))
	for _, filter := range p.Filters {
		b = append(b, byte(filter.ID))
		kind := &kinds[filter.ID]
		b = binary.LittleEndian.AppendUint32(b, uint32(kind.config))
		switch {
		case kind.compressor > 0:
			b = append(b, kind.compressor)
			b = binary.LittleEndian.AppendUint32(b, uint32(filter.Level))
		case kind.config > 0:
			b = binary.LittleEndian.AppendUint32(b, filter.Window)
		}
	}
	return b
}

// TestPipelineRoundTrip: Parse reads what append writes, and nothing more.
func TestPipelineRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPipeline(t)
		for i := range p.Filters { // what is not of the filter is not kept
			f := &p.Filters[i]
			if kinds[f.ID].compressor == 0 {
				f.Level = 0
			}
			if f.ID != BitWidth && f.ID != PositiveDelta {
				f.Window = 0
			}
		}
		b := p.append(nil)
		q, n, err := parse(append(b, 1, 2, 3))
		if err != nil || n != len(b) || fmt.Sprint(p) != fmt.Sprint(q) {
			t.Fatalf("%v, %d of %d bytes, %v, want %v", q, n, len(b), err, p)
		}
		if cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut"); cut < len(b) {
			if _, _, err := parse(b[:cut]); fault.KindOf(err) == 0 {
				t.Fatalf("%d of %d bytes are accepted", cut, len(b))
			}
		}
	})
}

// slowBitshuffle is the definition: bit j of byte k of value i of a block goes to row 8k+j, bit i of it.
func slowBitshuffle(src []byte, size int) []byte {
	dst := bytes.Clone(src)
	n := len(src) / size / 8 * 8
	for first := 0; first < n; {
		count := min(bitBlock(size), n-first)
		block := dst[first*size : (first+count)*size]
		clear(block)
		for i := range count {
			for k := range size {
				for j := range 8 {
					bit := src[(first+i)*size+k] >> j & 1
					block[(8*k+j)*(count/8)+i/8] |= bit << (i % 8)
				}
			}
		}
		first += count
	}
	return dst
}

// TestShuffleKernels holds both shuffles to their definitions, in both directions.
func TestShuffleKernels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "size")
		src := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "src")
		if rapid.Bool().Draw(t, "large") { // several blocks of bits
			src = bytes.Repeat(append(src, 1, 2, 3), 12)
		}
		n := len(src) / size
		want := bytes.Clone(src)
		for i := range n {
			for k := range size {
				want[k*n+i] = src[i*size+k]
			}
		}
		both(t, "byteshuffle", src, want, func(d, s []byte) {
			planes.Split(d, s, size)
		}, func(d, s []byte) { planes.Join(d, s, size) })
		src = src[:n*size]
		both(t, "bitshuffle", src, slowBitshuffle(src, size), func(d, s []byte) {
			bitshuffle(d, s, size)
		}, func(d, s []byte) { unbitshuffle(d, s, size) })
	})
}

func both(t *rapid.T, name string, src, want []byte, forward, back func(dst, src []byte)) {
	got := make([]byte, len(src))
	if forward(got, src); !bytes.Equal(got, want) {
		t.Fatalf("%s of %d bytes: not its definition", name, len(src))
	}
	if back(got, want); !bytes.Equal(got, src) {
		t.Fatalf("%s of %d bytes: not undone", name, len(src))
	}
}

// bitReader reads bits of little-endian words, the highest first.
type bitReader struct {
	words []byte
	at    int
}

func (r *bitReader) bit() uint64 {
	w := binary.LittleEndian.Uint64(r.words[r.at/64*8:])
	b := w >> (63 - r.at%64) & 1
	r.at++
	return b
}

// TestDoubleDeltaBitByBit holds the decoder to a reading of its bits one by one.
func TestDoubleDeltaBitByBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "size")
		width := rapid.IntRange(0, 8*size-2).Draw(t, "width")
		n := rapid.IntRange(2, 300).Draw(t, "n")
		words := make([]byte, 8*ddWords(n, width))
		seed := rapid.Uint64().Draw(t, "seed")
		for i := 0; i < len(words); i += 8 {
			seed = seed*6364136223846793005 + 1442695040888963407
			binary.LittleEndian.PutUint64(words[i:], bits.RotateLeft64(seed, 17))
		}
		first, second := rapid.Int64().Draw(t, "first"), rapid.Int64().Draw(t, "second")
		got := make([]byte, n*size)
		ddDecode(got, size, width, first, second, words)
		r, v := bitReader{words: words}, []uint64{uint64(first), uint64(second)}
		for i := 2; i < n; i++ {
			neg, mag := r.bit(), uint64(0)
			for range width {
				mag = mag<<1 | r.bit()
			}
			if neg == 1 {
				mag = -mag
			}
			v = append(v, 2*v[i-1]-v[i-2]+mag)
		}
		for i, want := range v {
			if mask := ^uint64(0) >> (64 - 8*size); cast.Uint(got[i*size:], size) != want&mask {
				t.Fatalf("value %d of %d: %x, want %x", i, n, cast.Uint(got[i*size:], size), want&mask)
			}
		}
	})
}

// TestWidenValueByValue holds the kernel of bit width reduction to plain arithmetic.
func TestWidenValueByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "size")
		width := rapid.SampledFrom([]int{8, 16, 32}).Filter(func(w int) bool { return w < 8*size }).Draw(t, "width")
		signed, off := rapid.Bool().Draw(t, "signed"), rapid.Uint64().Draw(t, "off")
		n := rapid.IntRange(0, 100).Draw(t, "n")
		src := rapid.SliceOfN(rapid.Byte(), n*width/8, n*width/8).Draw(t, "src")
		got := make([]byte, n*size)
		widen(got, src, size, width, signed, off)
		for i := range n {
			want := (uint64(extend(src[i*width/8:], width/8, signed)) + off) & (^uint64(0) >> (64 - 8*size))
			if v := cast.Uint(got[i*size:], size); v != want {
				t.Fatalf("value %d: %x, want %x", i, v, want)
			}
		}
	})
}

// TestBitWidthOfFullRange: the writer keeps all values of a window that spans more than half the range of a signed
// type (TileDB 1.6 loses them).
func TestBitWidthOfFullRange(t *testing.T) {
	e := Elem{Kind: Signed, Size: 4, Cell: 4}
	var src []byte
	for _, v := range []int32{-1 << 31, 1<<31 - 1, 0, -1, 1 << 30, -1 << 30} {
		src = appendLE(src, 4, uint64(v))
	}
	p := Pipeline{MaxChunk: 64, Filters: []Filter{{ID: BitWidth, Window: 256}}}
	stored, err := NewEncoder(nil).Tile(nil, src, p, e)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(src))
	if err := NewDecoder(nil).Tile(got, stored, p, e, 0, len(got)); err != nil || !bytes.Equal(got, src) {
		t.Fatalf("%x, %v, want %x", got, err, src)
	}
}

// TestKeys: an encrypted tile needs its key, and says so.
func TestKeys(t *testing.T) {
	k, err := NewKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	p, e := Pipeline{MaxChunk: 64, Filters: []Filter{{ID: AES256GCM}}}, Elem{Kind: Char, Size: 1, Cell: 1}
	stored, err := NewEncoder(k).Tile(nil, []byte("secret"), p, e)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 6)
	if err := NewDecoder(nil).Tile(dst, stored, p, e, 0, 6); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("without a key: %v", err)
	}
	other, err := NewKey(bytes.Repeat([]byte("x"), 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := NewDecoder(other).Tile(dst, stored, p, e, 0, 6); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("with another key: %v", err)
	}
	if _, err := NewKey([]byte("short")); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a short key: %v", err)
	}
}

// TestDecodeTileNoAlloc: once warm, decoding a tile takes no memory.
func TestDecodeTileNoAlloc(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	e := Elem{Kind: Unsigned, Size: 2, Cell: 2}
	src := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6}, 40000)
	p := Pipeline{MaxChunk: 1 << 16, Filters: []Filter{{ID: BitWidth, Window: 256}, {ID: ByteShuffle},
		{ID: Zstd, Level: 3}}}
	stored, err := NewEncoder(nil).Tile(nil, src, p, e)
	if err != nil {
		t.Fatal(err)
	}
	d, dst := NewDecoder(nil), make([]byte, len(src), len(src)+Spare)
	if n := testing.AllocsPerRun(20, func() {
		if err := d.Tile(dst, stored, p, e, 0, len(dst)); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a tile", n)
	}
}

// parse reads a pipeline of format 3 from the front of b and returns its length in bytes. Offsets of
// errors count from the front of b.
func parse(b []byte) (Pipeline, int, error) { return ParseVersion(b, formatVersion, nil) }
