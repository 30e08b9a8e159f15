//go:build datadog

package zstd_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	ddzstd "github.com/DataDog/zstd"
	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/internal/zstd"
)

// twins holds the two libraries, set up as in the package's two decoders.
type twins struct {
	klauspost *kzstd.Decoder
	datadog   ddzstd.Ctx
	one       *zstd.Decoder // the package's own, to hold it to the library it wraps
}

func newTwins(t testing.TB) *twins {
	t.Helper()
	k, err := kzstd.NewReader(nil, kzstd.WithDecoderConcurrency(1), kzstd.WithDecodeAllCapLimit(true),
		kzstd.WithDecoderMaxWindow(1<<31+7<<28))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return &twins{k, ddzstd.NewCtx(), zstd.New()}
}

var errSize = errors.New("another size")

func exactly(n, want int, err error) error {
	if err == nil && n != want {
		return errSize
	}
	return err
}

// compare decodes src into n bytes with both libraries, and returns the answer of each. If both
// accept, the bytes must be equal.
func (w *twins) compare(t testing.TB, src []byte, n int) (k, dd error) {
	t.Helper()
	if len(src) == 0 {
		return nil, nil // the binding to libzstd has no answer; the package's own is tested elsewhere
	}
	of := func(spare int) []byte { return make([]byte, 0, n+spare) }
	exact, err := w.klauspost.DecodeAll(src, of(0))
	k = exactly(len(exact), n, err)
	inexact, err := w.klauspost.DecodeAll(src, of(zstd.Spare))
	if k2 := exactly(len(inexact), n, err); (k == nil) != (k2 == nil) || k == nil && !bytes.Equal(exact, inexact) {
		t.Errorf("with room behind dst klauspost says %v, without %v", k2, k)
	}
	c := make([]byte, max(n, 1))
	m, err := w.datadog.DecompressInto(c, src)
	dd = exactly(m, n, err)
	if k == nil && dd == nil && !bytes.Equal(exact, c[:n]) {
		t.Errorf("both accept, with other bytes: klauspost %.40x libzstd %.40x", exact, c[:n])
	}
	own, err := decompress(t, w.one, src, n, 0)
	if (err == nil) != (dd == nil) || err == nil && !bytes.Equal(own, c[:n]) {
		t.Errorf("the package says %v, its library %v", err, dd)
	}
	return k, dd
}

// agree requires in addition that both accept or both refuse.
func (w *twins) agree(t testing.TB, src []byte, n int) {
	t.Helper()
	if k, dd := w.compare(t, src, n); (k == nil) != (dd == nil) {
		t.Errorf("klauspost: %v, libzstd: %v", k, dd)
	}
}

func TestTwinsOnFramesMadeByHand(t *testing.T) {
	w := newTwins(t)
	for _, c := range handmades() {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 7, 8, 9, 16, len(c.want), len(c.want) + 1} {
				w.agree(t, c.src, n)
			}
		})
	}
}

// TestTwinsOnRealChunks: both libraries decode every zstd chunk of the real files to the same
// bytes, or both refuse it.
func TestTwinsOnRealChunks(t *testing.T) {
	w, accepted := newTwins(t), 0
	for path, chunks := range chunksOf(t, 1<<30) {
		for i, c := range chunks {
			k, dd := w.compare(t, c.src, c.n)
			if (k == nil) != (dd == nil) {
				t.Errorf("%s chunk %d of those stored: klauspost: %v, libzstd: %v", path, i, k, dd)
			}
			if k == nil {
				accepted++
			}
		}
	}
	if accepted == 0 {
		t.Error("no chunk was decoded")
	}
}

// TestTwinsOnBrokenChunks: both libraries refuse chunks that are cut off. They may differ on chunks
// with changed bits, because they tolerate different damage, but never yield different bytes.
func TestTwinsOnBrokenChunks(t *testing.T) {
	w := newTwins(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	all := chunksOf(t, 2)
	for _, path := range slices.Sorted(maps.Keys(all)) { // in the same order every time, for the same damage
		for _, c := range all[path] {
			// A chunk of a file that is bad itself may have bytes after its frame, and be whole without them.
			whole, _ := w.compare(t, c.src, c.n)
			for range 8 {
				k, dd := w.compare(t, c.src[:1+rnd.IntN(len(c.src)-1)], c.n)
				if whole == nil && (k == nil || dd == nil) {
					t.Errorf("%s: cut, but klauspost: %v, libzstd: %v", path, k, dd)
				}
				broken := bytes.Clone(c.src)
				for range 1 + rnd.IntN(3) {
					broken[rnd.IntN(len(broken))] ^= 1 << rnd.IntN(8)
				}
				w.compare(t, broken, c.n)
			}
		}
	}
}

// FuzzTwins: no input decodes to different content in the two libraries.
func FuzzTwins(f *testing.F) {
	for _, c := range handmades() {
		if len(c.src) < 4<<10 {
			f.Add(c.src, uint32(len(c.want)))
		}
	}
	for _, chunks := range chunksOf(f, 1) {
		for _, c := range chunks {
			if len(c.src) < 4<<10 {
				f.Add(c.src, uint32(c.n))
			}
		}
	}
	for _, n := range []int{1, 200, 3000} {
		f.Add(compress(f, samples(n)), uint32(n))
		f.Add(compress(f, samples(n), kzstd.WithEncoderCRC(false),
			kzstd.WithEncoderLevel(kzstd.SpeedBestCompression)), uint32(n))
	}
	w := newTwins(f)
	f.Fuzz(func(t *testing.T, src []byte, n uint32) {
		w.compare(t, src, int(n%(1<<18)))
	})
}

// BenchmarkLibzstd measures the library that BenchmarkAppend is compared with.
func BenchmarkLibzstd(b *testing.B) {
	for _, level := range []int{1, 3, 6, 13, 20} {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			c := ddzstd.NewCtx()
			benchmarkEncoder(b, func(dst, src []byte) []byte {
				dst, err := c.CompressLevel(dst[:cap(dst)], src, level)
				if err != nil {
					b.Fatal(err)
				}
				return dst
			})
		})
	}
}
