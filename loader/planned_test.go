package loader

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
)

// TestSharedChunksChangeNothing: batches of random windows and of grids are the same with and without chunks that they
// share, for every codec, predictor, layout and mask, and whatever is bad, with one worker and with several. Fewer
// chunks are decoded.
func TestSharedChunksChangeNothing(t *testing.T) {
	var files []string
	for _, dir := range []string{"codecs", "tiffs", "masks", "extras", "overviews", "raster/tog", "demo"} {
		found, err := filepath.Glob(filepath.Join(corpus.Testdata(t), dir, "*.tif"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	alone, shared, read := int64(0), int64(0), 0
	for i, file := range files {
		if testing.Short() && i%24 != 0 {
			continue
		}
		random := Sampler{Kind: spec.RandomWindow, Height: 9, Width: 7, PerAsset: 20}
		grid := Sampler{Kind: spec.GridWindow, Height: 7, Width: 9,
			GridWindows: spec.GridWindows{StrideY: 5, StrideX: 8}}
		for turn, sampler := range []Sampler{random, grid} {
			if (i+turn)%2 > 0 && !testing.Short() && !soak.All() {
				continue // the next file has this sampler
			}
			sp := Spec{Source: file, BatchSize: 6, Shuffle: true, Take: 100, Sampler: sampler, BadSamples: spec.BadFill,
				Fields: []Field{{Name: "image", DType: "native", Pad: true}}}
			run := func(workers int, memory int64) (out [][]byte, chunks, batch int64) {
				o := Options{Workers: workers, MemoryBytes: memory, Stages: &resources.Stages{}}
				e, err := Open(t.Context(), sp, o)
				if err != nil {
					return nil, 0, 0
				}
				defer e.Close()
				if (e.tiles == nil) != (memory > 0) {
					t.Errorf("%s: %d bytes of memory, and tiles: %t", file, memory, e.tiles != nil)
				}
				l, err := NewLoader(e, LoaderOptions{Epochs: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				for b, err := range l.All(t.Context()) {
					if err != nil { // such as a file whose tiles no worker can hold
						out = append(out, []byte(err.Error()))
						break
					}
					text := flat(b)
					for _, bad := range b.Bad {
						text = fmt.Appendf(text, "%d %d %v", bad.Row, bad.Position, bad.Err)
					}
					out = append(out, text)
				}
				chunks, _ = e.options.Stages.Decoded()
				return out, chunks, e.BatchBytes()
			}
			byOne, ofOne, batch := run(1, 0)
			if batch == 0 {
				continue
			}
			read++
			want, chunks, _ := run(1, busyBatches*batch)
			byThree, ofThree, _ := run(3, 0)
			alone, shared = alone+2*chunks, shared+ofOne+ofThree
			sameRun(t, fmt.Sprintf("%s, %s, 1 worker", file, sampler.Kind), byOne, want)
			sameRun(t, fmt.Sprintf("%s, %s, 3 workers", file, sampler.Kind), byThree, want)
		}
	}
	if read < len(files)/24 || shared >= alone {
		t.Errorf("of %d runs: %d chunks decoded with sharing, %d without", read, shared, alone)
	}
}

// TestNamedWindowsShareChunks: windows whose corners a ticket names share chunks as drawn ones do, though a run has one
// of each asset, and have the same pixels.
func TestNamedWindowsShareChunks(t *testing.T) {
	sp := Spec{Source: filepath.Join(corpus.Testdata(t), "demo", "coast.tif"), BatchSize: 150,
		Sampler: Sampler{Kind: spec.RandomWindow, Height: 40, Width: 50},
		Fields:  []Field{{Name: "image", DType: "native"}}}
	ticket := steps.Ticket{Positions: make([]int64, 150)}
	for i := range ticket.Positions {
		ticket.Corners = append(ticket.Corners, uint32(i), uint32(150-i))
	}
	run := func(workers int, memory int64) ([]byte, int64) {
		e, err := Open(t.Context(), sp, Options{Workers: workers, MemoryBytes: memory, Stages: &resources.Stages{}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var out []byte
		var tickets [2]*Pending // the chunks of the second are announced while workers read the first
		for i := range tickets {
			tickets[i] = e.Start(t.Context(), ticket, false)
		}
		for _, p := range tickets {
			b, err := p.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, flat(b)...)
			b.Release()
		}
		chunks, _ := e.options.Stages.Decoded()
		return out, chunks
	}
	want, alone := run(1, 5<<20) // which batches take
	for _, workers := range []int{1, 3} {
		if got, shared := run(workers, 0); !bytes.Equal(got, want) || shared >= alone {
			t.Errorf("%d workers: %d chunks decoded, %d by windows on their own; the same pixels: %t", workers, shared,
				alone, bytes.Equal(got, want))
		}
	}
}

// TestPlannedTiles: a chunk is shared if another window needs it, with the rows that all of them need; a tile makes
// room for one that is needed earlier, and for others of the budget.
func TestPlannedTiles(t *testing.T) {
	charges := budget.New(2000, nil)
	c := pixels.NewPlannedTiles(250, charges)
	key := func(i int) pixels.TileKey { return pixels.TileKey{Chunk: i} }
	plan := func(order int64, chunks ...int) {
		for _, i := range chunks {
			c.Plan(order, []pixels.Need{{Key: key(i), Rows: int(order)}})
		}
	}
	decode := func(i int, order int64, shared bool) {
		t.Helper()
		tile, mine := c.Get(key(i), 0, 100, order, int(order))
		if (tile != nil) != shared {
			t.Fatalf("chunk %d for window %d: shared is %t", i, order, tile != nil)
		}
		if tile == nil {
			return
		}
		if mine {
			c.Finish(tile, false)
		}
		c.Put(tile)
	}
	has := func(chunks ...int) {
		t.Helper()
		if len(c.By) != len(chunks) || c.Held != 100*int64(len(chunks)) || c.Held > charges.Used() {
			t.Fatalf("%d tiles of %d bytes, %d charged", len(c.By), c.Held, charges.Used())
		}
		for _, i := range chunks {
			if c.By[key(i)] == nil {
				t.Fatalf("chunk %d is not there", i)
			}
		}
	}
	plan(1, 0, 1, 2, 3)
	plan(2, 1)
	plan(3, 2)
	plan(4, 3)
	decode(0, 1, false) // no other window needs it
	has()
	decode(3, 1, true)
	decode(1, 1, true)
	has(3, 1)
	decode(2, 1, true) // in the place of 3, which is needed last
	has(1, 2)
	decode(3, 4, false)
	plan(5, 1)
	decode(1, 2, true) // the rows of window 1 and 2 are there
	plan(6, 1)
	decode(1, 5, true) // it is decoded again, with more rows
	has(1, 2)
	c.Forget(6, []pixels.Need{{Key: key(1)}})
	c.Forget(3, []pixels.Need{{Key: key(2)}})
	if len(c.Planned) != 0 {
		t.Errorf("%d chunks are still planned", len(c.Planned))
	}
	// Of 2000 bytes, 250 are kept for tables that grow: 1600 do not fit beside two tiles, and leave room for one.
	if err := charges.Acquire(t.Context(), 1600); err != nil || c.Held != 0 {
		t.Errorf("%d bytes are held although others wait: %v", c.Held, err)
	}
	plan(7, 0)
	plan(8, 0)
	decode(0, 7, true) // 100 bytes are free
	plan(9, 1)
	plan(10, 1)
	decode(1, 9, false) // chunk 0 is needed earlier
	c.Close()
	if charges.Used() != 1600 {
		t.Errorf("%d bytes are charged", charges.Used())
	}
}
