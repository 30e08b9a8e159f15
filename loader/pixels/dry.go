package pixels

import (
	"context"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
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
	Chunk   int   `json:"chunk"`
	Mask    bool  `json:"mask,omitempty"` // of the asset's mask
	Off     int64 `json:"off"`
	Len     int64 `json:"len"`     // 0 for a sparse chunk, and one of an array
	Decoded int   `json:"decoded"` // bytes
	Rows    int   `json:"-"`       // the first ones that a window needs, which are decoded at once; 0 otherwise
	Held    int64 `json:"-"`       // bytes that a worker holds to decode it, besides the stored ones
}

// DryReader is a Reader that opens, reads and decodes nothing. It takes the way that a Reader takes through the chunks
// of an asset, because the reads of one depend on its earlier ones, and sinks get no samples.
type DryReader struct {
	Reader
	// Gap is what source.Gap says of the file that is read next.
	Gap int64
	// Measured is true if that will follow the link: Loose is set where another gap would make other runs.
	Measured bool
	// Wholly is true if other windows may share chunks, which a reader reads whole then.
	Wholly bool
	// Headers are the ranges of that file that are in memory: see source.Held.
	Headers []source.Range
	// Held is the most memory, in bytes, that the readers of arrays held at a time.
	Held int64
	Reads
}

// NewDryReader returns a dry reader of an engine with these options. It takes no turns.
func NewDryReader(o resources.Options) *DryReader {
	d := &DryReader{Reader: Reader{maxChunk: o.MaxChunkBytes}}
	d.dry = d
	return d
}

// compare sets Loose if the link may decide which chunks are read as one.
func (d *DryReader) compare(chunks []int, place func(k int) chunk.Range) {
	if d.Measured && !d.Loose {
		most := len(d.plan.Join(chunks, place, source.MinGap, MaxRun))
		d.Loose = len(d.plan.Join(chunks, place, source.MaxGap, MaxRun)) != most
	}
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

// decoded notes that the first pixels of a chunk whose bytes lie at a place are decoded.
func (d *DryReader) decoded(x *chunk.Index, i int, place chunk.Range, pixels int) {
	n := x.DecodedBytes(i)
	_, _, width := x.DecodedShape(i)
	d.note(i, place, ReadChunk{Decoded: n, Rows: (pixels + width - 1) / width, Held: int64(n) + chunk.Spare})
}

// decodedRows notes that the first rows of a chunk are decoded, in pieces.
func (d *DryReader) decodedRows(x, pieces *chunk.Index, i, rows int) {
	place := x.Place(i)
	if place.Len > 0 {
		requests := (place.Len-1)/MaxRun + 1
		d.Runs = append(d.Runs, ReadRange{Off: place.Off, Len: place.Len, Requests: requests})
		d.Loose = d.Loose || requests > 1
	}
	bands, _, width := x.DecodedShape(i)
	d.note(i, place, ReadChunk{Decoded: rows * bands * width * x.DType.Size(), Held: pieceBytes(x, pieces)})
}

// note adds a chunk whose bytes lie at a place.
func (d *DryReader) note(i int, place chunk.Range, c ReadChunk) {
	c.Chunk, c.Mask, c.Off, c.Len = i, d.Share.Key.Mask, place.Off, place.Len
	d.Chunks = append(d.Chunks, c)
}

// dryArray is the dry run of a reader of an array.
type dryArray struct {
	dry  *DryReader
	plan chunk.BlockPlan // nil for an array that has none: its reads are not known
}

// openDry returns the dry run of a new reader of an array.
func (d *DryReader) openDry(a chunk.BlockArray) chunk.BlockReader {
	reader := dryArray{dry: d}
	if planner, ok := a.(chunk.BlockPlanner); ok {
		reader.plan = planner.Plan()
	}
	return reader
}

// Ahead implements chunk.Prefetcher.
func (a dryArray) Ahead(ctx context.Context, image int64, boxes []chunk.Box) error {
	if prefetcher, ok := a.plan.(chunk.Prefetcher); ok {
		return prefetcher.Ahead(ctx, image, boxes)
	}
	return nil
}

// ReadBox implements chunk.BlockReader: it fills nothing, and notes the reads and the memory of all readers of arrays.
func (a dryArray) ReadBox(ctx context.Context, _ []byte, image int64, b chunk.Box) (err error) {
	exact, held := false, int64(0)
	if a.plan != nil {
		exact, err = a.plan.PlanBox(ctx, image, b, a.dry.read)
	}
	for _, r := range a.dry.arrays {
		if plan := r.reader.(dryArray).plan; plan != nil {
			held += plan.Held()
		}
	}
	a.dry.Held, a.dry.Loose = max(a.dry.Held, held), a.dry.Loose || !exact
	return err
}
