package kernel

import (
	"bytes"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/fse"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// drawSymbols draws bytes of at least two values, with any distribution.
func drawSymbols(t *rapid.T, least int) []byte {
	n := rapid.IntRange(least, 3000).Draw(t, "n")
	kinds := rapid.IntRange(2, 256).Draw(t, "kinds")
	bend := rapid.Float64Range(0.1, 8).Draw(t, "bend")
	src := make([]byte, n)
	x := rapid.Uint64().Draw(t, "seed") | 1
	for i := range src {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		src[i] = byte(float64(kinds) * math.Pow(float64(x>>11)/(1<<53), bend))
	}
	src[0], src[n-1] = 0, 1
	return src
}

// TestHuffmanEncode: the decoder reads the streams back, and codes are as short as Huffman's
// wherever his have none above the limit.
func TestHuffmanEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSymbols(t, 6)
		h := Histogram(src)
		weights, n, total := HuffmanWeights(&h, 11)
		var table HuffmanTable
		if !table.Build(weights[:n]) {
			t.Fatalf("weights %v are no code", weights[:n])
		}
		if best, longest := huffmanBits(h); longest <= 11 && total != best {
			t.Fatalf("%d bits, Huffman's code takes %d", total, best)
		}
		got := make([]byte, len(src))
		one := AppendHuffman1([]byte("front"), src, weights[:n])
		if !table.Decode1(got, one[5:]) || !bytes.Equal(got, src) {
			t.Fatal("one stream is not read back")
		}
		clear(got)
		four, ok := AppendHuffman4([]byte("front"), src, weights[:n])
		if !ok || !table.Decode4(got, four[5:]) || !bytes.Equal(got, src) {
			t.Fatal("four streams are not read back")
		}
	})
}

// huffmanBits is Huffman's algorithm at its plainest. It returns the bits of all symbols and the
// longest code.
func huffmanBits(h [256]uint32) (total uint64, longest int) {
	type tree struct {
		count uint64
		depth int
	}
	var trees []tree
	for _, c := range h {
		if c > 0 {
			trees = append(trees, tree{uint64(c), 0})
		}
	}
	for len(trees) > 1 {
		slices.SortFunc(trees, func(a, b tree) int {
			if a.count != b.count {
				return int(a.count) - int(b.count)
			}
			return a.depth - b.depth
		})
		a, b := trees[0], trees[1]
		total += a.count + b.count
		trees = append(trees[2:], tree{a.count + b.count, 1 + max(a.depth, b.depth)})
	}
	return total, trees[0].depth
}

// TestFSEEncode: the decoder reads counts and streams back.
func TestFSEEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSymbols(t, 4)
		states := rapid.SampledFrom([]int{2, 4}).Draw(t, "states")
		h := Histogram(src)
		last := 0
		for s, c := range h {
			if c > 0 {
				last = s
			}
		}
		log := FSELog(len(src), last)
		norm, n, total := FSENormalize(&h, log)
		sum := 0
		for _, v := range norm {
			sum += int(v)
		}
		if sum != 1<<log || n != last+1 {
			t.Fatalf("counts of %d symbols add up to %d, not %d", n, sum, 1<<log)
		}
		list := AppendFSECounts([]byte("front"), norm[:n])[5:]
		var read [256]int16
		if k, size, ok := fse.Counts(read[:], list); !ok || k != n || size != len(list) || read != norm {
			t.Fatalf("counts %v are read as %v, %d bytes of %d, %v", norm[:n], read[:k], size, len(list), ok)
		}
		var table FSETable
		if !table.Build(norm[:n]) {
			t.Fatal("counts are no table")
		}
		got := make([]byte, len(src))
		coded := AppendFSE([]byte("front"), src, norm[:n], states)[5:]
		if k, ok := table.Decode(got, coded, states); !ok || k != len(src) || !bytes.Equal(got, src) {
			t.Fatalf("%d of %d symbols are read back, %v", k, len(src), ok)
		}
		if bits := float64(8 * len(coded)); bits > 1.02*total+float64(states*log+64) {
			t.Fatalf("%v bits, %v were expected", bits, total)
		}
	})
}

// TestResiduals: the decoders undo the encoders.
func TestResiduals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		row, rows := rapid.IntRange(1, 9).Draw(t, "row"), rapid.IntRange(1, 5).Draw(t, "rows")
		src := rapid.SliceOfN(rapid.Byte(), row*rows*width, row*rows*width).Draw(t, "src")
		for _, off := range []int{0, 1} {
			s := append(make([]byte, off), src...)[off:]
			res := make([]byte, len(src)+off)[off:]
			PlanarResiduals(res, s, width, row)
			for i := range row * rows {
				v := LE(res, i, width)
				if i%row > 0 {
					v += LE(src, i-1, width)
				}
				if i >= row {
					v += LE(src, i-row, width)
				}
				if i%row > 0 && i >= row {
					v -= LE(src, i-row-1, width)
				}
				if mask := ^uint64(0) >> (64 - 8*width); v&mask != LE(src, i, width) {
					t.Fatalf("sample %d", i)
				}
			}
			ZigzagMap(s, width)
			Zigzag(s, s, width)
			if !bytes.Equal(s, src) {
				t.Fatal("zigzag is not undone")
			}
			greatest := uint64(1)
			for i := range row * rows {
				greatest = max(greatest, LE(src, i, width))
			}
			if n := BitsFor(src, width); n < 64 && greatest>>n != 0 || n > 1 && greatest>>(n-1) == 0 {
				t.Fatalf("%d bits for numbers up to %d", n, greatest)
			}
		}
	})
}

// TestPlanarZigzag: rows of any length have the residuals of PlanarResiduals, mapped by ZigzagMap, and no other byte is
// written.
func TestPlanarZigzag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		row, rows := rapid.IntRange(1, 150).Draw(t, "row"), rapid.IntRange(1, 4).Draw(t, "rows")
		n := row * rows * width
		src := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "src")
		want := make([]byte, n)
		PlanarResiduals(want, src, width, row)
		ZigzagMap(want, width)
		const beside = 64
		for off := range 2 {
			got := bytes.Repeat([]byte{0xa5}, off+n+beside)
			PlanarZigzag(got[off:off+n], append(make([]byte, off), src...)[off:], width, row)
			if !bytes.Equal(got[off:off+n], want) {
				t.Fatalf("rows of %d numbers of %d bytes: other residuals", row, width)
			}
			rest := append(got[:off:off], got[off+n:]...)
			if !bytes.Equal(rest, bytes.Repeat([]byte{0xa5}, off+beside)) {
				t.Fatal("bytes beside dst are written")
			}
		}
	})
}

// TestPforBits: a block has as many bits in its body as make it smallest, also by a search of all of them.
func TestPforBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		block := make([]byte, pforBlock*width)
		most := rapid.IntRange(0, 8*width).Draw(t, "bits")
		few := rapid.IntRange(0, 8*width).Draw(t, "few")
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		often := r.IntN(pforBlock)
		for i := range pforBlock {
			nbits := few
			if r.IntN(pforBlock) < often {
				nbits = most
			}
			PutLE(block, i, width, r.Uint64()>>(64-nbits))
		}
		longest := 0
		above := func(body int) (n int) {
			for i := range pforBlock {
				length := bits.Len64(LE(block, i, width))
				if longest = max(longest, length); length > body {
					n++
				}
			}
			return n
		}
		_ = above(0)
		exceptionCost := rapid.SampledFrom([]int{ExceptionCost, FastExceptionCost}).Draw(t, "cost")
		want, wantCount := longest, 0
		best := longest * pforBlock / 8
		for body := longest - 1; body >= 0; body-- {
			n := above(body)
			size := body*pforBlock/8 + 1 + min(n, pforBitmap) + (n*(longest-body)+7)/8 + exceptionCost*n
			if n < pforBlock && size < best {
				best, want, wantCount = size, body, n
			}
		}
		nbits, extra, count := pforBits(block, width, exceptionCost)
		if nbits != want || count != wantCount || count > 0 && extra != longest-want {
			t.Fatalf("%d bits, %d more for %d numbers; want %d, for %d", nbits, extra, count, want, wantCount)
		}
	})
}

// TestPforLoops: the loops of this processor find the exceptions, and write the bits, that those in Go do.
func TestPforLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		width := 1 << r.IntN(4)
		nbits := 1 + r.IntN(8*width-1)
		block := make([]byte, pforBlock*width)
		for i := range pforBlock {
			PutLE(block, i, width, r.Uint64()>>r.IntN(64))
		}
		lowest := lowestOf(width)
		var positions [pforBlock]byte
		var want []byte
		for i := range pforBlock {
			if LE(block, i, width)>>nbits != 0 {
				want = append(want, byte(i))
			}
		}
		positionsAbove(&positions, block, width, ^lowest[nbits])
		if !bytes.Equal(positions[:len(want)], want) {
			t.Fatalf("width %d, above %d bits: %v, want %v", width, nbits, positions[:len(want)], want)
		}
		var masks, wantMasks aboveMasks
		above(&masks, block, width, ^lowest[nbits])
		aboveGo(&wantMasks, block, width, ^lowest[nbits])
		if masks != wantMasks {
			t.Fatalf("width %d, above %d bits: masks differ", width, nbits)
		}
		got, packed := make([]byte, nbits*pforBlock/8), make([]byte, nbits*pforBlock/8)
		pack(got, block, lowest, nbits, width)
		packGo(packed, block, lowest, nbits, width)
		if !bytes.Equal(got, packed) {
			t.Fatalf("width %d, %d bits: other bytes", width, nbits)
		}
	}
}
