package loader

import (
	"bytes"
	"fmt"
	"maps"
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
	charges := budget.New(2000)
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

// TestWindowsPlannedAhead: a run of any rank plans the windows that it asks for next, as many as it has asked for, in
// their order and over the end of an epoch. Its tickets change no plan that was made before. One that jumps, or is left
// behind by others, plans nothing more.
func TestWindowsPlannedAhead(t *testing.T) {
	const size = 6
	e, err := Open(t.Context(), Spec{Source: filepath.Join(corpus.Testdata(t), "demo", "coast.tif"), BatchSize: size,
		Shuffle: true, Sampler: Sampler{Kind: spec.RandomWindow, Height: 40, Width: 50, PerAsset: 50},
		Fields: []Field{{Name: "image", DType: "native"}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	type use struct {
		key   pixels.TileKey
		order int64
	}
	planned := func() map[use]bool {
		all := map[use]bool{}
		for key, uses := range e.tiles.Planned {
			for _, u := range uses {
				all[use{key, u.Order}] = true
			}
		}
		return all
	}
	p := e.newTilePlanner()
	order := int64(1)
	asks := func(ticket steps.Ticket, stream int) plannedTicket {
		ctx := resources.WithCaller(t.Context(), resources.Caller{Stream: stream})
		plan := plannedTicket{ctx, ticket, &tilePlan{order: order}}
		order += int64(ticket.Rows())
		if tile, _ := e.tiles.Get(pixels.TileKey{Row: -1}, 0, 1<<40, 1, 1); tile != nil { // a chunk is missed
			t.Fatal("a tile of a terabyte")
		}
		p.ticket(plan)
		for run := p.hungry(); run != nil; run = p.hungry() {
			p.foresee(t.Context(), run)
		}
		return plan
	}
	for _, rank := range []int{0, 1} {
		begin := order
		var rows []steps.Ticket // of each row of the run, its ticket
		var numbers []int
		for epoch := range uint64(3) {
			for step := range e.Steps() {
				ticket := e.spec.Cut().Ticket(epoch, step, e.samples, rank, 2)
				for k := range ticket.Rows() {
					rows, numbers = append(rows, ticket), append(numbers, k)
				}
			}
		}
		last := plannedTicket{plan: &tilePlan{}}
		for asked := 0; asked < len(rows)/2-size; asked += last.ticket.Rows() {
			last.plan.end(e.tiles)
			last = asks(rows[asked], rank)
			want := map[use]bool{}
			for i := asked; i < 2*(asked+last.ticket.Rows()); i++ {
				if rows[i].Position(numbers[i], e.samples) < 0 {
					continue
				}
				draw := e.plan.Draw(rows[i], numbers[i])
				needs, err := e.needs(t.Context(), &draw)
				if err != nil || len(needs) == 0 {
					t.Fatal(err, needs)
				}
				for _, need := range needs {
					want[use{need.Key, begin + int64(i)}] = true
				}
			}
			if got := planned(); !maps.Equal(got, want) {
				t.Fatalf("rank %d, %d rows asked for: %d uses of chunks are planned, want %d", rank, asked, len(got),
					len(want))
			}
		}
		last.plan.end(e.tiles)
		jump := asks(steps.StepTicket(0, 1, size, rank, 2).WithoutPadding(e.samples), rank)
		if jump.plan.end(e.tiles); len(p.runs) != 1 || len(p.runs[0].windows) != jump.ticket.Rows() {
			t.Fatalf("after a jump: %d runs", len(p.runs))
		}
		for range 4 * staleAfter { // of others, each of a run of its own
			other := asks(steps.StepTicket(7, 0, size, 0, 1), 9)
			other.plan.end(e.tiles)
		}
		asks(steps.Ticket{Positions: []int64{3}}, 9).plan.end(e.tiles)
		if len(p.runs) != 1 || len(planned()) == 0 {
			t.Fatalf("%d runs stay", len(p.runs))
		}
		p.runs[0].forget(e.tiles, len(p.runs[0].windows))
		if p.runs = nil; len(e.tiles.Planned) != 0 {
			t.Fatalf("%d chunks are still planned", len(e.tiles.Planned))
		}
	}
}
