package pixels

import (
	"context"
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

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
		w := walk{Reader: r, plan: &plan{x: &chunk.Index{}, box: chunk.Box{Y1: 1, X1: 1}}, file: file, sink: Nowhere{}}
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
			for part, chunks := range map[string][]int{"chunk 7": {7}, "chunks 7 and following": {7, 8}} {
				err := present(file, runs.Run{Off: off, Len: n, Chunks: chunks})
				var cause *fault.Error
				if inside != (err == nil) || err != nil && (!errors.As(err, &cause) || cause.Kind != fault.Corrupt ||
					cause.Part != part || cause.Off != off) {
					t.Errorf("%d bytes at %d of %s: %v", n, off, part, err)
				}
			}
		}
	}
}

// TestMaskFilesThatCannotBeOpened: the error names the file of the mask, and a read without the mask does not need it.
func TestMaskFilesThatCannotBeOpened(t *testing.T) {
	x := &chunk.Index{Bands: 1, Height: 2, Width: 2, ChunkB: 1, ChunkH: 2, ChunkW: 2, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 4}}}
	mask := *x
	x.Mask = &mask
	a := catalog.Asset{URI: "image", Index: x, MaskFile: &catalog.Asset{URI: "mask", Index: &mask}}
	for _, missing := range []string{"mask", "image", ""} {
		r := NewReader(resources.Options{Opener: without{missing}}.WithDefaults())
		for _, masked := range []Sink{nil, Nowhere{}} {
			err := r.Read(t.Context(), a, chunk.Box{B1: 1, Y1: 2, X1: 2}, nil, Nowhere{}, masked)
			fails := missing == "image" || missing == "mask" && masked != nil
			var cause *fault.Error
			if fails != (err != nil) || fails && (!errors.As(err, &cause) || cause.Kind != fault.NotFound ||
				cause.File != missing) {
				t.Errorf("without %q, with a sink for the mask %v: %v", missing, masked != nil, err)
			}
		}
	}
}

// without opens files of 4 bytes, but for one that is missing.
type without struct{ missing string }

func (w without) Open(_ context.Context, uri string) (source.Reader, error) {
	if uri == w.missing {
		return nil, fault.New(fault.NotFound, "file", "it is not there")
	}
	return source.Memory(make([]byte, 4)), nil
}

// countedArray counts its readers.
type countedArray struct{ opened int }

func (a *countedArray) Open() chunk.BlockReader {
	a.opened++
	return a
}

func (*countedArray) ReadBox(context.Context, []byte, int64, chunk.Box) error { return nil }

// TestArraysStayOpen: a reader opens an array again only if it has read maxArrays others since.
func TestArraysStayOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrays := make([]countedArray, 6)
		r := NewReader(resources.Options{}.WithDefaults())
		var order []int // of all reads
		opened := make([]int, len(arrays))
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(arrays)-1), 1, 30).Draw(t, "reads") {
			since := map[int]bool{}
			place := len(order) - 1
			for ; place >= 0 && order[place] != i; place-- {
				since[order[place]] = true
			}
			if place < 0 || len(since) >= maxArrays {
				opened[i]++
			}
			order = append(order, i)
			if r.arrays.get(&arrays[i], r.openArray) != chunk.BlockReader(&arrays[i]) || arrays[i].opened != opened[i] {
				t.Fatalf("reads of %v: array %d is opened %d times, want %d", order, i, arrays[i].opened, opened[i])
			}
		}
	})
}

// TestPixelsThatABoxNeeds: a chunk is decoded to the last pixel that lies in the box. Padding goes with the last pixel
// of its row.
func TestPixelsThatABoxNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 9)
		x := &chunk.Index{Bands: 1, Height: side.Draw(t, "height"), Width: side.Draw(t, "width"), ChunkB: 1,
			ChunkH: side.Draw(t, "rows"), ChunkW: side.Draw(t, "columns"), CutRight: rapid.Bool().Draw(t, "cut"),
			DType: chunk.Uint8}
		box := chunk.Box{B1: 1, Y0: rapid.IntRange(0, x.Height-1).Draw(t, "y"),
			X0: rapid.IntRange(0, x.Width-1).Draw(t, "x")}
		box.Y1 = rapid.IntRange(box.Y0+1, x.Height).Draw(t, "down")
		box.X1 = rapid.IntRange(box.X0+1, x.Width).Draw(t, "right")
		for i := range x.Across() * x.Down() {
			part, want := x.Box(i), 0
			_, _, width := x.DecodedShape(i)
			for row := range part.Y1 - part.Y0 {
				for column := range width {
					y, c := part.Y0+row, min(part.X0+column, part.X1-1)
					if box.Y0 <= y && y < box.Y1 && box.X0 <= c && c < box.X1 {
						want = row*width + column + 1
					}
				}
			}
			if want > 0 && needed(x, i, box) != want {
				t.Fatalf("chunk %d of %+v for %+v: %d pixels, want %d", i, x, box, needed(x, i, box), want)
			}
		}
	})
}
