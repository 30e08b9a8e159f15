package pixels

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// meeting is a file whose reads take a second. It notes how many are under way at the same time.
type meeting struct {
	source.Reader
	mu   *sync.Mutex
	open *int
	most *int
}

func (meeting) Gap() int64 { return 0 }

func (f meeting) ReadAt(ctx context.Context, p []byte, off int64) error {
	count := func(n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		*f.open += n
		*f.most = max(*f.most, *f.open)
	}
	count(1)
	time.Sleep(time.Second) // in the clock of a bubble: until all others wait
	count(-1)
	return f.Reader.ReadAt(ctx, p, off)
}

func (f meeting) Open(context.Context, string) (source.Reader, error) { return f, nil }

// TestRunsReadTogether: a reader requests up to 32 runs of a remote file at the same time, and runs of a local file one
// after the other. Each chunk gets its own bytes, wherever they lie.
func TestRunsReadTogether(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, n := range []int{1, 2, 31, 32, 33, 70} {
			synctest.Test(t, func(t *testing.T) {
				const width = 3
				x := &chunk.Index{Bands: 1, Height: n, Width: width, ChunkB: 1, ChunkH: 1, ChunkW: width,
					DType: chunk.Uint8, Predictor: chunk.NoPredictor}
				random := rand.New(rand.NewPCG(1, uint64(n)))
				content, want := make([]byte, 1+n*(width+1)), make([]byte, n*width)
				for i, place := range random.Perm(n) {
					samples := want[i*width:][:width]
					for k := range samples {
						samples[k] = byte(random.Uint32())
					}
					x.Ranges = append(x.Ranges, chunk.Range{Off: int64(1 + place*(width+1)), Len: width})
					copy(content[x.Ranges[i].Off:], samples)
				}
				file := meeting{source.Memory(content), new(sync.Mutex), new(int), new(int)}
				r := NewReader(resources.Options{Opener: file}.WithDefaults())
				r.waits = remote
				sink := &samplesSink{x, make([]byte, n*width)}
				box := chunk.Box{B1: 1, Y1: n, X1: width}
				if err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, box, nil, sink, nil); err != nil {
					t.Fatal(err)
				}
				most := 1
				if remote {
					most = min(n, 32)
				}
				if !bytes.Equal(sink.out, want) || *file.most != most {
					t.Errorf("%d chunks, remote %t: %d reads at the same time, want %d, or other samples", n, remote,
						*file.most, most)
				}
			})
		}
	}
}

// TestWaitForATile: a window waits for a chunk that another reader decodes, until the chunk is there or its context
// ends.
func TestWaitForATile(t *testing.T) {
	stored := []byte{5, 6, 7, 8}
	x := &chunk.Index{Bands: 1, Height: 2, Width: 2, ChunkB: 1, ChunkH: 2, ChunkW: 2, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 4}}}
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tiles := NewTileCache(1 << 20)
			other, decode := tiles.Get(TileKey{}, 0, 4, 0, 2)
			if !decode {
				t.Fatal("another reader has the chunk")
			}
			r := NewReader(resources.Options{Opener: meeting{Reader: source.Memory(stored)}}.WithDefaults())
			r.Share = Shared{Tiles: tiles}
			sink := &samplesSink{x, make([]byte, 4)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- r.Read(ctx, catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: 2, X1: 2}, nil, sink, nil)
			}()
			synctest.Wait()
			if len(done) > 0 {
				t.Error("the window is read without the chunk")
			}
			if cancelled {
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("its context has ended: %v", err)
				}
				tiles.Finish(other, true)
			} else {
				copy(other.Samples, stored)
				tiles.Finish(other, false)
				if err := <-done; err != nil || !bytes.Equal(sink.out, stored) {
					t.Errorf("it has %v, %v", sink.out, err)
				}
			}
			tiles.Put(other)
		})
	}
}

// nearRuns is a cache on disk that has the ranges at some offsets.
type nearRuns struct {
	source.DiskCache
	offsets map[int64]bool
}

func (c nearRuns) Has(_ any, r source.Range) bool { return c.offsets[r.Off] }

// sizedFile is a file of a size, without content.
type sizedFile struct {
	source.Reader
	size int64
}

func (f sizedFile) Size() int64 { return f.size }

// TestRunsOfOneRequest: the most runs are requested together that are at most 32, have at most MaxRun bytes together,
// and are not in the cache on disk. One run is requested anyway.
func TestRunsOfOneRequest(t *testing.T) {
	length := rapid.SampledFrom([]int64{1, MaxRun / 4, MaxRun/2 - 1, MaxRun / 2, MaxRun/2 + 1, MaxRun - 1, MaxRun,
		MaxRun + 1})
	few := rapid.Int64Range(1, 5)
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{Reader: &Reader{}}
		w.maxChunk, w.waits = 2*MaxRun, rapid.Bool().Draw(t, "remote")
		cache := nearRuns{offsets: map[int64]bool{}}
		if rapid.Bool().Draw(t, "cache") {
			w.disk = cache
		}
		lengths := rapid.SliceOfN(rapid.OneOf(length, few, few, few), 1, 40).Draw(t, "lengths")
		if n := rapid.IntRange(0, 31).Draw(t, "full"); n > 0 { // this run is the last one that fits, or just does not
			lengths = append(rapid.SliceOfN(few, n, n).Draw(t, "first lengths"), lengths...)
			lengths[n] = MaxRun + rapid.Int64Range(-1, 1).Draw(t, "over")
			for _, length := range lengths[:n] {
				lengths[n] -= length
			}
		}
		var list []runs.Run
		end := int64(0)
		for _, n := range lengths {
			cache.offsets[end] = rapid.IntRange(0, 39).Draw(t, "near") == 0
			list, end = append(list, runs.Run{Off: end, Len: n, Chunks: []int{0}}), end+n
		}
		w.file = sizedFile{size: end}
		want := 1
		for n := 1; n <= len(list) && n <= 32 && w.waits; n++ {
			total, near := int64(0), false
			for _, run := range list[:n] {
				total, near = total+run.Len, near || w.disk != nil && cache.offsets[run.Off]
			}
			if total <= MaxRun && !near {
				want = n
			}
		}
		if got := w.together(list); got != want {
			t.Fatalf("%d runs of %v together, want %d", got, lengths, want)
		}
	})
}
