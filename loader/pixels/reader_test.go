package pixels

import (
	"context"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/store/catalog"
)

// placed is a file of a store.
type placed struct{ source.Reader }

func (placed) Place() (object any, off int64) { return diskcache.NameObject("a", "", "tag", 4), 0 }

// TestRunsAreCheckedBeforeTheCacheIsAsked: a header that lies about a length costs no time.
func TestRunsAreCheckedBeforeTheCacheIsAsked(t *testing.T) {
	disk := new(diskcache.Ref)
	disk.Set(t.TempDir(), 1<<30)
	defer disk.Close()
	o := resources.Options{Disk: disk}.WithDefaults()
	o.Readers(1, true)
	r := NewReader(o)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	file := placed{(&catalog.Asset{Bytes: make([]byte, 4)}).Reader()}
	over := make(chan error, 1)
	go func() {
		far := []runs.Run{{Len: 1 << 62, Chunks: []int{0}}}
		w := walk{Reader: r, file: file, x: &chunk.Index{}, box: chunk.Box{Y1: 1, X1: 1}, sink: Nowhere{}}
		_, err := w.read(ctx, far, nil)
		over <- err
	}()
	select {
	case err := <-over:
		if fault.KindOf(err) != fault.Corrupt {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("it looks for a range of 2^62 bytes")
	}
}

// TestRangesOfAFile: a range that begins before a file or ends behind it is corrupt, however large its numbers are.
func TestRangesOfAFile(t *testing.T) {
	file := (&catalog.Asset{Bytes: make([]byte, 4)}).Reader()
	for _, off := range []int64{math.MinInt64, -1, 0, 1, 3, 4, 5, math.MaxInt64} {
		for _, n := range []int64{math.MinInt64, -1, 0, 1, 3, 4, 5, math.MaxInt64} {
			end := new(big.Int).Add(big.NewInt(off), big.NewInt(n))
			inside := off >= 0 && n >= 0 && end.Cmp(big.NewInt(4)) <= 0
			err := present(file, runs.Run{Off: off, Len: n, Chunks: []int{0}})
			if inside != (err == nil) || err != nil && fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%d bytes at %d: %v", n, off, err)
			}
		}
	}
}
