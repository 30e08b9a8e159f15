package whole

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/huff0"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// head is how many bytes of a frame are before a table of Huffman codes at least: 6 of the frame's header, 3 of the
// block's and 3 of the literals'.
const head = 12

// coded is literals as a block stores them.
type coded struct {
	code []byte // a table, and streams
	size int    // of the literals
	four bool
}

// drawCoded draws literals of one of several distributions, and lets huff0 encode them.
func drawCoded(r *rand.Rand, most int) (coded, []byte) {
	for {
		plain := make([]byte, 4+r.IntN(most))
		spread, offset := math.Exp(r.Float64()*5), r.IntN(256)
		kind := r.IntN(4)
		for i := range plain {
			switch kind {
			case 0: // differences of samples
				plain[i] = byte(offset + int(r.NormFloat64()*spread))
			case 1: // of two bytes
				plain[i] = byte(int(r.NormFloat64()*spread) >> (8 * (i & 1)))
			case 2: // few symbols, most of them one
				plain[i] = byte(offset + min(int(r.ExpFloat64()), 7))
			default: // shares of all sizes
				plain[i] = byte(offset + min(int(r.ExpFloat64()*spread), 255))
			}
		}
		c := coded{size: len(plain), four: r.IntN(3) > 0}
		compress := huff0.Compress1X
		if c.four {
			compress = huff0.Compress4X
		}
		code, _, err := compress(plain, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
		if err == nil {
			c.code = bytes.Clone(code)
			return c, plain
		}
	}
}

// decodeHuff0 decodes literals with the library.
func decodeHuff0(c coded) ([]byte, bool) {
	s, rest, err := huff0.ReadTable(c.code, nil)
	if err != nil {
		return nil, false
	}
	out := make([]byte, 0, c.size)
	if c.four {
		out, err = s.Decoder().Decompress4X(out, rest)
	} else {
		out, err = s.Decoder().Decompress1X(out, rest)
	}
	return out, err == nil && len(out) == c.size
}

// compareCoded decodes literals at the ends of the rooms, in assembly and in Go, and with huff0. What the first two
// accept, the library must accept, with the same content.
func compareCoded(t testing.TB, h *huffman, rooms [2]*guard.Room, c coded) (ours, library bool) {
	t.Helper()
	defer func(h bool) { hasLoop = h }(hasLoop)
	want, library := decodeHuff0(c)
	frame := append(make([]byte, head, head+len(c.code)), c.code...)
	loops := []bool{false}
	if hasLoop {
		loops = append(loops, true)
	}
	for i, loop := range loops {
		hasLoop = loop
		for _, back := range []bool{false, true} {
			src, dst := rooms[0].Put(back, frame), rooms[1].At(back, c.size)
			clear(dst)
			size, ok := h.read(src[head:])
			ok = ok && h.decode(dst, src, head+size, len(src), c.four)
			if i > 0 && ok != ours {
				t.Fatalf("%+v: %v in Go, %v in assembly", c, ours, ok)
			}
			if ours = ok; ok && !(library && bytes.Equal(dst, want)) {
				t.Fatalf("%+v: accepted; by the library: %v, the same bytes: %v", c, library, bytes.Equal(dst, want))
			}
			if !bytes.Equal(src, frame) {
				t.Fatal("src was changed")
			}
		}
	}
	return ours, library
}

// damage changes some of the bytes of literals, or how many there are.
func damage(r *rand.Rand, c coded) coded {
	c.code = bytes.Clone(c.code)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(c.code))
		if r.IntN(3) == 0 { // the table
			i = r.IntN(min(len(c.code), 20))
		}
		switch r.IntN(8) {
		case 0:
			c.code = c.code[:i+1]
		case 1:
			c.code = append(c.code, byte(r.Uint32()))
		case 2:
			c.size = max(1, c.size+r.IntN(7)-3)
		case 3:
			c.code[i] = byte(r.Uint32())
		case 4:
			c.code[len(c.code)-1] = byte(r.IntN(3)) // where the last stream ends
		case 5:
			c.four = !c.four
		default:
			c.code[i] ^= 1 << r.IntN(8)
		}
	}
	return c
}

func huffmanRooms(t testing.TB) [2]*guard.Room {
	return [2]*guard.Room{guard.New(t, 1<<18), guard.New(t, 1<<18)}
}

// TestHuffmanAgrees: literals are decoded as the library does, in assembly and in Go, and damaged ones are refused
// where it refuses them. Nothing outside the frame and the literals is touched.
func TestHuffmanAgrees(t *testing.T) {
	race.SkipCovered(t)
	guard.Faults(t)
	rooms, r, h := huffmanRooms(t), rand.New(rand.NewPCG(21, 22)), new(huffman)
	cases, stricter, accepted, refused := 3000, 0, 0, 0
	if testing.Short() {
		cases = 600
	}
	for i := range cases {
		most := 300
		if i%10 == 0 {
			most = 40 << 10
		}
		c, plain := drawCoded(r, most)
		if ours, _ := compareCoded(t, h, rooms, c); !ours {
			t.Fatalf("%d literals are not decoded: %+v", len(plain), c)
		}
		for range 12 {
			ours, library := compareCoded(t, h, rooms, damage(r, c))
			switch {
			case ours:
				accepted++
			case library:
				stricter++
			default:
				refused++
			}
		}
	}
	if accepted < cases/20 || refused < cases {
		t.Errorf("%d damaged literals are accepted, %d refused: both kinds are needed", accepted, refused)
	}
	if stricter > cases/1000 {
		t.Errorf("%d damaged literals are refused that the library decodes", stricter)
	}
}

// TestHuffmanStreams: streams that end early or late, and sizes that do not fit, are refused.
func TestHuffmanStreams(t *testing.T) {
	race.SkipCovered(t)
	guard.Faults(t)
	rooms, r, h := huffmanRooms(t), rand.New(rand.NewPCG(23, 24)), new(huffman)
	for range 40 {
		var c coded
		for c, _ = drawCoded(r, 2000); !c.four; {
			c, _ = drawCoded(r, 2000)
		}
		size, _ := h.read(c.code)
		sizes := c.code[size : size+6]
		changed := func(name string, change func(c *coded, sizes []byte)) {
			d := coded{bytes.Clone(c.code), c.size, true}
			change(&d, d.code[size:size+6])
			if ours, library := compareCoded(t, h, rooms, d); ours || library {
				t.Errorf("%s: accepted; by the library: %v", name, library)
			}
		}
		for i := range 3 {
			n := binary.LittleEndian.Uint16(sizes[2*i:])
			for _, v := range []uint16{0, n - 1, n + 1, uint16(len(c.code)), math.MaxUint16} {
				changed(fmt.Sprintf("stream %d of %d bytes instead of %d", i, v, n), func(d *coded, sizes []byte) {
					binary.LittleEndian.PutUint16(sizes[2*i:], v)
				})
			}
		}
		for n := range 6 + 4 {
			changed("cut", func(d *coded, _ []byte) { d.code = d.code[:size+n] })
		}
		changed("an empty byte behind", func(d *coded, _ []byte) { d.code = append(d.code, 0) })
		changed("8 bytes too many", func(d *coded, _ []byte) { d.code = append(d.code, 0, 0, 0, 0, 0, 0, 0, 1) })
		changed("4 literals too many", func(d *coded, _ []byte) { d.size += 4 })
		changed("4 literals too few", func(d *coded, _ []byte) { d.size -= 4 })
	}
}

// TestHuffmanTables: weights whose shares do not add up are refused, and so are tables without two codes of the most
// bits.
func TestHuffmanTables(t *testing.T) {
	race.SkipCovered(t)
	rooms, r, h := huffmanRooms(t), rand.New(rand.NewPCG(25, 26)), new(huffman)
	accepted := 0
	for i := range 20000 {
		n := 1 + r.IntN(8)
		if i%4 == 0 {
			n = 1 + r.IntN(128)
		}
		table, most := []byte{byte(127 + n)}, 1+r.IntN(13)
		for range (n + 1) / 2 {
			table = append(table, byte(r.IntN(most)<<4|r.IntN(most)))
		}
		// A stream of zeros, or no symbol at all.
		c := coded{append(table, 0, 0, 0, 1), 1 + r.IntN(24), false}
		if ours, library := compareCoded(t, h, rooms, c); ours {
			accepted++
		} else if library {
			t.Fatalf("%+v: refused, but not by the library", c)
		}
	}
	if accepted < 20 {
		t.Errorf("%d tables are accepted", accepted)
	}
}

// FuzzHuffman: literals that are accepted are the library's, in assembly and in Go.
func FuzzHuffman(f *testing.F) {
	r := rand.New(rand.NewPCG(27, 28))
	for range 30 {
		c, _ := drawCoded(r, 800)
		f.Add(c.code, uint16(c.size), c.four)
	}
	rooms, h := huffmanRooms(f), new(huffman)
	f.Fuzz(func(t *testing.T, code []byte, size uint16, four bool) {
		if len(code) > 0 && len(code) < 1<<17 && size > 0 {
			compareCoded(t, h, rooms, coded{code, int(size), four})
		}
	})
}

// BenchmarkHuffman decodes literals like those of tiles, and reads their table, with this package and with huff0.
func BenchmarkHuffman(b *testing.B) {
	r := rand.New(rand.NewPCG(29, 30))
	for _, size := range []int{2 << 10, 20 << 10, 100 << 10} {
		plain := make([]byte, size)
		for i := range plain {
			plain[i] = byte(int(r.NormFloat64()*60) >> (8 * (i & 1)))
		}
		code, _, err := huff0.Compress4X(plain, &huff0.Scratch{Reuse: huff0.ReusePolicyNone})
		if err != nil {
			b.Fatal(err)
		}
		src, h, s := append(make([]byte, head), code...), new(huffman), new(huff0.Scratch)
		b.Run(fmt.Sprintf("own/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				n, _ := h.read(src[head:])
				if !h.decode(plain, src, head+n, len(src), true) {
					b.Fatal("not decoded")
				}
			}
		})
		b.Run(fmt.Sprintf("own table/%d", size), func(b *testing.B) {
			for b.Loop() {
				h.read(src[head:])
			}
		})
		b.Run(fmt.Sprintf("huff0/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				table, rest, _ := huff0.ReadTable(src[head:], s)
				s = table
				if _, err := s.Decoder().Decompress4X(plain[:0:size], rest); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("huff0 table/%d", size), func(b *testing.B) {
			for b.Loop() {
				s, _, _ = huff0.ReadTable(src[head:], s)
			}
		})
	}
}
