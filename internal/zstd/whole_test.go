package zstd_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/zstd/whole"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// stored is a zstd chunk of a file, with the number of bytes that it decodes to.
type stored struct {
	src []byte
	n   int
}

// chunksOf returns up to most zstd chunks of the real TIFF files, spread over each file.
func chunksOf(t testing.TB, most int) map[string][]stored {
	t.Helper()
	all := map[string][]stored{}
	for _, f := range corpus.Files(t) {
		if e := filepath.Ext(f.Path); e != ".tif" && e != ".tiff" {
			continue
		}
		b := f.Bytes(t)
		img, err := tiff.Open(context.Background(), &corpus.Mem{B: b}, tiff.Limits{})
		if err != nil || img.Index.Codec != chunk.Zstd {
			continue
		}
		x := img.Index
		for i := 0; i < len(x.Ranges); i += (len(x.Ranges) + most - 1) / most {
			if r := x.Ranges[i]; r.Len > 0 {
				all[f.Path] = append(all[f.Path], stored{b[r.Off:][:r.Len], x.DecodedBytes(i)})
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no zstd file")
	}
	return all
}

// slack is what whole.Decoder wants behind the content to be fast everywhere.
const slack = 32

// wholes decodes src into n bytes with package whole, once with the room that it wants behind them and once without,
// and holds it to klauspost/compress: what it accepts must be sound, and have the same content.
func wholes(t testing.TB, d *whole.Decoder, k *kzstd.Decoder, src []byte, n int) bool {
	t.Helper()
	in := bytes.Clone(src)
	roomy, tight := make([]byte, n+slack), bytes.Repeat([]byte{filler}, n+slack)
	ok := d.Decode(roomy, n, src)
	if d.Decode(tight[:n:n], n, src) != ok {
		t.Errorf("%v with room behind the content, and not without", ok)
	}
	if !bytes.Equal(in, src) {
		t.Fatal("src was changed")
	}
	if bytes.Count(tight[n:], []byte{filler}) != slack {
		t.Fatal("wrote behind dst")
	}
	if !ok {
		return false
	}
	want, err := k.DecodeAll(src, make([]byte, 0, n))
	if err != nil || len(want) != n {
		t.Fatalf("accepted, but klauspost/compress has %d of %d bytes: %v", len(want), n, err)
	}
	if !bytes.Equal(roomy[:n], want) || !bytes.Equal(tight[:n], want) {
		t.Fatal("not the content that klauspost/compress has")
	}
	return true
}

func klauspost(t testing.TB) *kzstd.Decoder {
	k, err := kzstd.NewReader(nil, kzstd.WithDecoderConcurrency(1), kzstd.WithDecodeAllCapLimit(true),
		kzstd.WithDecoderMaxWindow(1<<31+7<<28))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// TestWholeOnRealChunks: package whole decodes all zstd chunks of the real TIFF files that the library decodes, which
// libzstd has written.
func TestWholeOnRealChunks(t *testing.T) {
	var d whole.Decoder
	k, accepted := klauspost(t), 0
	for path, chunks := range chunksOf(t, 100) {
		for i, c := range chunks {
			if wholes(t, &d, k, c.src, c.n) {
				accepted++
			} else if got, err := k.DecodeAll(c.src, make([]byte, 0, c.n)); err == nil && len(got) == c.n {
				t.Errorf("%s: chunk %d of those stored is not decoded", path, i)
			}
		}
	}
	if accepted == 0 {
		t.Error("no chunk was decoded")
	}
}

// contents has what tiles may hold: samples, planes of bytes, long and short repetitions, noise.
func contents(r *rand.Rand, n int) map[string][]byte {
	all := map[string][]byte{"samples": samples(n), "zeros": make([]byte, n)}
	noise, few, steps := make([]byte, n), make([]byte, n), make([]byte, n)
	for i := range noise {
		noise[i] = byte(r.Uint32())
		few[i] = byte(r.Uint32() & r.Uint32() & r.Uint32() & 15)
		steps[i] = byte(i / 300)
	}
	all["noise"], all["few"], all["steps"] = noise, few, steps
	for _, period := range []int{1, 2, 3, 5, 7, 11, 13, 15, 16, 17, 31, 40} {
		repeats := make([]byte, 0, n+100)
		for len(repeats) < n {
			from := r.IntN(len(noise) - min(period, n) + 1)
			for range r.IntN(9) {
				repeats = append(repeats, noise[from:from+min(period, n)]...)
			}
			repeats = append(repeats, byte(len(repeats)))
		}
		all[fmt.Sprintf("period %d", period)] = repeats[:n]
	}
	return all
}

// TestWholeOnFrames: package whole decodes all that the library writes, at all of its levels.
func TestWholeOnFrames(t *testing.T) {
	var d whole.Decoder
	k, r := klauspost(t), rand.New(rand.NewPCG(9, 10))
	sizes := []int{1, 2, 40, 255, 256, 1000, 5000, 70 << 10, 300 << 10}
	if testing.Short() {
		sizes = []int{1, 40, 256, 5000}
	}
	for _, n := range sizes {
		for name, c := range contents(r, n) {
			for level := kzstd.SpeedFastest; level <= kzstd.SpeedBestCompression; level++ {
				frame := compress(t, c, kzstd.WithEncoderLevel(level), kzstd.WithEncoderCRC(r.IntN(2) == 0),
					kzstd.WithSingleSegment(r.IntN(2) == 0), kzstd.WithAllLitEntropyCompression(r.IntN(2) == 0),
					kzstd.WithWindowSize(1<<(10+r.IntN(10))))
				if !wholes(t, &d, k, frame, n) {
					t.Errorf("%s of %d bytes, %v: not decoded", name, n, level)
				}
			}
		}
	}
}

// TestWholeOnFramesMadeByHand: package whole refuses what violates RFC 8878.
func TestWholeOnFramesMadeByHand(t *testing.T) {
	var d whole.Decoder
	k := klauspost(t)
	for _, c := range handmades() {
		if wholes(t, &d, k, c.src, len(c.want)) && c.refuse {
			t.Errorf("%s: accepted", c.name)
		}
	}
}

// TestWholeOnBrokenFrames: package whole accepts no damaged frame that the library refuses, and nothing that it decodes
// otherwise.
func TestWholeOnBrokenFrames(t *testing.T) {
	var d whole.Decoder
	k, r := klauspost(t), rand.New(rand.NewPCG(11, 12))
	accepted := 0
	for _, c := range contents(r, 3000) {
		frame := compress(t, c, kzstd.WithEncoderCRC(false), kzstd.WithAllLitEntropyCompression(true))
		for range 300 {
			broken := bytes.Clone(frame)
			for range 1 + r.IntN(3) {
				broken[r.IntN(len(broken))] ^= 1 << r.IntN(8)
			}
			if wholes(t, &d, k, broken, len(c)) {
				accepted++
			}
			wholes(t, &d, k, broken[:r.IntN(len(broken))], len(c))
		}
	}
	if accepted == 0 {
		t.Error("no damaged frame was decoded")
	}
}

// FuzzWhole: package whole accepts nothing that the library refuses or decodes otherwise.
func FuzzWhole(f *testing.F) {
	for _, c := range handmades() {
		if len(c.src) < 4<<10 {
			f.Add(c.src, uint32(len(c.want)))
		}
	}
	r := rand.New(rand.NewPCG(13, 14))
	for _, c := range contents(r, 3000) {
		f.Add(compress(f, c, kzstd.WithEncoderCRC(false), kzstd.WithAllLitEntropyCompression(true)), uint32(len(c)))
	}
	k := klauspost(f)
	var d whole.Decoder
	f.Fuzz(func(t *testing.T, src []byte, n uint32) { wholes(t, &d, k, src, int(n%(1<<18))) })
}
