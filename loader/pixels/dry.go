package pixels

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Reads are what a dry reader would have read and decoded.
type Reads struct {
	// Runs are the byte ranges, in the order of the reads, and Chunks those that are decoded.
	Runs   []ReadRange
	Chunks []ReadChunk
	// Loose is true if a reader may read less: if that depends on what an array holds, or if chunks are decoded in
	// pieces, whose reads stop after the last row of a window.
	Loose bool
}

// ReadRange is a range of bytes in a file.
type ReadRange struct {
	File string `json:"file,omitempty"` // empty unless it belongs to an array
	Off  int64  `json:"off"`
	Len  int64  `json:"len"`
	// Requests is how many reads it takes: a chunk that is decoded in pieces is read in parts of MaxRun.
	Requests int64 `json:"-"`
	// InMemory is how many of its bytes need no request, because they came with the file's header.
	InMemory int64 `json:"-"`
	// Held is true if the bytes of the range are in memory at one time.
	Held bool `json:"-"`
}

// ReadChunk is a chunk that is decoded.
type ReadChunk struct {
	Chunk   int    `json:"chunk"`
	Source  uint64 `json:"-"`              // of an array, whose stored chunk it is: see TileKey
	Mask    bool   `json:"mask,omitempty"` // of the asset's mask
	Off     int64  `json:"off"`
	Len     int64  `json:"len"`     // 0 for a sparse chunk, and one of an array
	Decoded int    `json:"decoded"` // bytes
	Rows    int    `json:"-"`       // the first ones that a window needs, which are decoded at once; 0 otherwise
	Held    int64  `json:"-"`       // bytes that a worker holds to decode it, besides the stored ones
}

// DryReader notes what a Reader would read and decode, and opens nothing. Both follow one plan. The reads of one depend
// on its earlier ones, so it takes all that the Reader takes.
type DryReader struct {
	// Gap is what source.Gap says of the file that is read next.
	Gap int64
	// Measured is true if that will follow the link: Loose is set where another gap would make other runs.
	Measured bool
	// Wholly is true if other windows may share chunks, which a reader reads whole then.
	Wholly bool
	// Finds is true if chunks of arrays are looked for where that takes requests.
	Finds bool
	// Headers are the ranges of that file that are in memory: see source.Held.
	Headers []source.Range
	// Held is the most memory, in bytes, that the readers of arrays held at a time.
	Held int64
	// Share is as in Reader. Its tiles have no memory: see NewTileCounter.
	Share Shared
	Reads

	maxChunk int
	plan     plan
	arrays   lastArrays[chunk.BlockPlan] // nil for an array that has no plan: its reads are not known
	views    *TileCache
}

// NewDryReader returns a dry reader of an engine with these options.
func NewDryReader(o resources.Options) *DryReader { return &DryReader{maxChunk: o.MaxChunkBytes} }

// ForViews is Reader.ForViews.
func (d *DryReader) ForViews() *TileCache {
	if d.views == nil {
		d.views = NewViewTiles(true)
	}
	return d.views
}

// Read notes what Reader.Read would read. masked is nil if the mask is not read.
func (d *DryReader) Read(ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, masked Sink) error {
	list, n := passes(&a, box, bands, Nowhere{}, masked)
	for i := range list[:n] {
		p := &list[i]
		if err := p.fault(d.pass(ctx, p)); err != nil {
			return a.Fault(err)
		}
	}
	return nil
}

// pass notes a part of the reads of an asset, as Reader.pass makes them.
func (d *DryReader) pass(ctx context.Context, of *pass) error {
	if err := d.plan.set(of, d.maxChunk); err != nil {
		return err
	}
	d.plan.wholly, d.Share.Key.Mask = d.Wholly, of.mask
	return d.plan.run(ctx, &d.Share, 0, d)
}

// await implements executor: a tile needs no read.
func (d *DryReader) await(context.Context, []neededChunk) error { return nil }

// decode implements executor.
func (d *DryReader) decode(ctx context.Context, wants []neededChunk) (err error) {
	switch {
	case d.plan.x.Blocks != nil:
		err = d.blocks(ctx, wants)
	case d.plan.x.Grid != nil:
		err = d.noteStored(ctx, wants)
	default:
		err = d.runs(wants)
	}
	for i := range wants {
		if c := &wants[i]; c.open && err == nil {
			d.Share.Tiles.Finish(c.t, false)
			c.open = false
		}
	}
	return err
}

// runs notes the reads of chunks of a file.
func (d *DryReader) runs(wants []neededChunk) error {
	p, count := &d.plan, 0
	runs := p.join(wants, math.MaxInt64, d.Gap)
	for _, run := range runs {
		if err := tooLong(run, d.maxChunk); err != nil {
			return err
		}
		d.fetched(run)
		for range run.Chunks {
			d.decoded(&wants[count])
			count++
		}
	}
	if d.Measured && !d.Loose {
		most := len(p.joined(wants, source.MinGap))
		d.Loose = len(p.joined(wants, source.MaxGap)) != most
	}
	return nil
}

// sparse implements executor.
func (d *DryReader) sparse(_ context.Context, list []int) error {
	for _, i := range list {
		d.decoded(&neededChunk{i: i, place: d.plan.x.Place(i)})
	}
	return nil
}

// blocks notes the reads of the array's reader, and the memory of all readers of arrays.
func (d *DryReader) blocks(ctx context.Context, wants []neededChunk) error {
	p := &d.plan
	planner := d.arrays.get(p.x.Blocks.Array, func(a chunk.BlockArray) chunk.BlockPlan {
		if planner, ok := a.(chunk.BlockPlanner); ok {
			return planner.Plan()
		}
		return nil
	})
	boxes := p.boxesOf(wants)
	if prefetcher, ok := planner.(chunk.Prefetcher); ok {
		if err := prefetcher.Ahead(ctx, p.x.Blocks.Image, boxes); err != nil {
			return err
		}
	}
	for k, box := range boxes {
		d.note(wants[k].i, chunk.Range{}, ReadChunk{Decoded: p.x.DecodedBytes(wants[k].i),
			Held: int64(p.x.DecodedBytes(wants[k].i)) + chunk.Spare})
		if planner == nil {
			d.Loose = true
			continue
		}
		exact, err := planner.PlanBox(ctx, p.x.Blocks.Image, box, d.read)
		if err != nil {
			return err
		}
		held := int64(0)
		for _, a := range d.arrays {
			if a.reader != nil {
				held += a.reader.Held()
			}
		}
		d.Held, d.Loose = max(d.Held, held), d.Loose || !exact
	}
	return nil
}

// read notes a read of an array's file.
func (d *DryReader) read(file string, off, n int64) {
	d.Runs = append(d.Runs, ReadRange{File: file, Off: off, Len: n, Requests: 1})
}

// fetched notes the read of a run.
func (d *DryReader) fetched(run runs.Run) {
	read := ReadRange{Off: run.Off, Len: run.Len, Requests: 1, Held: true}
	begin, end := run.Off, run.Off+run.Len
	for _, h := range d.Headers { // as source/remote does: it asks for one range, without what is at its ends
		if h.Off <= begin {
			begin = max(begin, min(h.Off+h.Len, end))
		} else if h.Off+h.Len >= end {
			end = min(end, h.Off)
		}
	}
	if read.InMemory = run.Len - (end - begin); begin == end {
		read.Requests = 0
	}
	d.Runs = append(d.Runs, read)
}

// decoded notes that the first pixels of a chunk are decoded.
func (d *DryReader) decoded(c *neededChunk) {
	x, pixels := d.plan.x, d.plan.pixels(c)
	n := x.DecodedBytes(c.i)
	_, _, width := x.DecodedShape(c.i)
	d.note(c.i, c.place, ReadChunk{Decoded: n, Rows: (pixels + width - 1) / width, Held: int64(n) + chunk.Spare})
}

// rows implements executor.
func (d *DryReader) rows(_ context.Context, i int) error {
	x := d.plan.x
	_, rows := d.plan.rowsOf(i)
	place := x.Place(i)
	if place.Len > 0 {
		requests := (place.Len-1)/MaxRun + 1
		d.Runs = append(d.Runs, ReadRange{Off: place.Off, Len: place.Len, Requests: requests})
		d.Loose = d.Loose || requests > 1
	}
	bands, _, width := x.DecodedShape(i)
	d.note(i, place, ReadChunk{Decoded: rows * bands * width * x.DType.Size(), Held: pieceBytes(x, d.plan.pieces)})
	return nil
}

// note adds a chunk whose bytes lie at a place.
func (d *DryReader) note(i int, place chunk.Range, c ReadChunk) {
	c.Chunk, c.Mask, c.Off, c.Len = i, d.Share.Key.Mask, place.Off, place.Len
	d.Chunks = append(d.Chunks, c)
}

// noteStored notes the reads of chunks of an array.
func (d *DryReader) noteStored(ctx context.Context, wants []neededChunk) error {
	p := &d.plan
	for k := range wants {
		c := &wants[k].stored
		at, exact := p.x.Grid.Array.Known(c.of)
		if c.at = at; c.repeat {
			continue
		}
		if !exact && d.Finds {
			var err error
			if c.at, err = p.x.Grid.Array.Find(ctx, c.of); err != nil {
				return err
			}
			at, exact = c.at, true
		}
		d.Loose = d.Loose || !exact
		n := p.x.Grid.Array.Size(c.of)
		place := at.At
		if !exact || at.Object || at.Inline != nil {
			place.Len = int64(n) // it is not known
		}
		if at.Absent {
			place = chunk.Range{}
		}
		d.Chunks = append(d.Chunks, ReadChunk{Chunk: int(c.of.Number), Source: c.of.Array, Off: place.Off,
			Len: place.Len, Decoded: n, Rows: 1, Held: int64(n) + chunk.Spare})
	}
	for _, run := range p.storedRuns(wants, d.Gap) {
		length := run.at.At.Len
		if run.at.Object {
			length = int64(p.x.Grid.Array.Size(wants[run.chunks[0]].stored.of))
			d.Loose = true
		}
		d.Runs = append(d.Runs, ReadRange{File: run.at.URI, Off: run.at.At.Off, Len: length, Requests: 1, Held: true})
	}
	return nil
}
