package dryrun

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// Row describes the assets, windows and reads of a row of a batch.
type Row struct {
	Row      int   `json:"row"`
	Position int64 `json:"position"` // -1 for padding; then nothing else is set
	// Draw is the sample. In a mixture it has the number of its dataset in the plan.
	Draw shuffle.Draw `json:"draw"`
	// Source is the name of the sample's source; empty if the spec has one source. Dataset is the
	// path of its table.
	Source  string `json:"source,omitempty"`
	Dataset string `json:"dataset"`
	// ID names the sample: see catalog.Table.ID.
	ID     string  `json:"id"`
	Assets []Asset `json:"assets"`
	// Points has one plan for each field of points.
	Points []Points `json:"points,omitempty"`
	// Err is why the sample is bad, if headers and tables show it; otherwise nil.
	Err error `json:"-"`
	// Error is Err on one line.
	Error string `json:"error,omitempty"`
}

// Asset describes the reads of an asset.
type Asset struct {
	Field string `json:"field"`
	Step  int    `json:"step"` // of a sequence
	// Part is the column or pattern of a part of a stack, and Stack its number in it; empty and 0 for other assets.
	Part  string `json:"part,omitempty"`
	Stack int    `json:"-"`
	// Resampled is true for a part that lies on another grid than its stack, and for a scene that lies on another grid
	// than a window on the ground. Window is then the box of the part or scene that it needs.
	Resampled bool `json:"resampled,omitempty"`
	// Overview is the number of the overview that is read in place of the raster, from 0 for the largest; nil for the
	// raster itself. Size, Window and Chunks then describe the overview.
	Overview *int `json:"overview,omitempty"`
	// Row is the row of the table. It is -1 for a step that does not exist; then nothing else is
	// set.
	Row    int64       `json:"row"`
	URI    string      `json:"uri"`
	Size   shuffle.Box `json:"size"`   // of the asset, at 0, 0
	Window shuffle.Box `json:"window"` // in the asset's own pixels, before the row's transform
	// Runs are the byte ranges that are read, Chunks the chunks in them, in the order in which they
	// are decoded. The ranges of the asset's mask follow. Of a chunk that is decoded in pieces, reading stops
	// after the last row of the window. A chunk of an array has no byte range here:
	// its runs lie in the array's files, as a worker reads them that has not read the array
	// before.
	Runs   []Range `json:"runs"`
	Chunks []Chunk `json:"chunks"`

	gap    int64         // ranges of the file closer than this are read as one, in bytes
	blocks *chunk.Blocks // nil unless the asset is an image of an array
}

// InArray reports whether the asset is an image of an array.
func (p *Asset) InArray() bool { return p.blocks != nil }

// Points describes the reads of a field of points.
type Points struct {
	Field string `json:"field"`
	Array string `json:"array"`
	// Runs are the stretches of the array's files that are read, by a worker that has not read of it before. Which
	// values are read depends on the coordinates where Exact is false: then they are those that may be.
	Runs  []Range `json:"runs"`
	Exact bool    `json:"exact"`

	array *tiledb.Array
	attr  int        // the attribute that holds the values
	box   tiledb.Box // nil if no point can lie in the window
}

// NewPoints plans the reads of the points of an array in a box, by a worker that has not read the array before. A nil
// box holds no point. attr is the attribute with the values.
func NewPoints(ctx context.Context, field string, a *tiledb.Array, attr int, box tiledb.Box) (Points, error) {
	points := Points{Field: field, Array: a.URI(), Exact: true, array: a, attr: attr, box: box}
	err := new(Arrays).Points(ctx, &points, func(file string, off, n int64) {
		points.Runs = append(points.Runs, Range{File: file, Off: off, Len: n})
	})
	return points, err
}

// Range is a range of bytes in a file.
type Range struct {
	File string `json:"file,omitempty"` // empty unless it belongs to an array
	Off  int64  `json:"off"`
	Len  int64  `json:"len"`

	pieces bool // it is a chunk that is decoded in pieces, and read in parts of pixels.MaxRun
}

// InPieces reports whether the range holds a chunk that is decoded in pieces.
func (r *Range) InPieces() bool { return r.pieces }

// Count adds the reads of the range to w. exact is false if there may be fewer.
func (r *Range) Count(w *Work) (exact bool) {
	n := int64(1)
	if r.pieces {
		n = (r.Len-1)/pixels.MaxRun + 1
	}
	w.Requests += n
	w.Bytes += r.Len
	return n == 1
}

// Chunk is a chunk that is decoded.
type Chunk struct {
	Chunk   int   `json:"chunk"`
	Mask    bool  `json:"mask,omitempty"` // of the asset's mask
	Off     int64 `json:"off"`
	Len     int64 `json:"len"`     // 0 for a sparse chunk
	Decoded int   `json:"decoded"` // bytes

	sparse bool
	held   int64     // bytes that a worker holds to decode the chunk in pieces; 0 if it is decoded whole
	box    chunk.Box // of an array: the cells that are read
}

// place returns where the chunk lies in its file.
func (c *Chunk) place() chunk.Range { return chunk.Range{Off: c.Off, Len: c.Len} }

// Held returns the bytes that a worker holds to decode the chunk, besides the stored bytes of its run.
func (c *Chunk) Held() int64 {
	if c.held > 0 {
		return c.held
	}
	return int64(c.Decoded) + chunk.Spare
}

// Note keeps an error that a bad-sample policy covers. Of several it keeps the one whose text sorts first, as a run
// does. It reports whether to stop, and returns the error if no policy covers it.
func (r *Row) Note(err error) (stop bool, _ error) {
	if fault.KindOf(err) == 0 {
		return true, err
	}
	if r.Err == nil || r.Err.Error() > err.Error() {
		r.Err, r.Error = err, fault.Line(err)
	}
	return r.Draw.Attempt > 0, nil
}

// Reading says how an engine reads files.
type Reading struct {
	Gap      int64 // ranges of the file that are closer than this are read as one, in bytes
	MaxChunk int   // larger chunks are decoded in pieces, in bytes
}

// Add adds the chunks of an index that a box needs. plan is scratch memory.
func (p *Asset) Add(x *chunk.Index, box chunk.Box, bands []int, plan *chunk.RunPlan, how Reading, mask bool) {
	if pieces := x.InPieces(how.MaxChunk); pieces != nil {
		p.addPieces(x, pieces, box, bands, plan, mask)
		return
	}
	gap := how.Gap
	p.gap = gap
	plan.Reset(x, box, bands, gap, pixels.MaxRun)
	for _, run := range plan.Runs {
		p.Runs = append(p.Runs, Range{Off: run.Off, Len: run.Len})
		for _, i := range run.Chunks {
			place := x.Place(i)
			p.Chunks = append(p.Chunks, Chunk{Chunk: i, Mask: mask, Off: place.Off, Len: place.Len,
				Decoded: x.StoredBytes(i)})
		}
	}
	for _, i := range plan.Sparse {
		p.Chunks = append(p.Chunks, Chunk{Chunk: i, Mask: mask, Decoded: x.StoredBytes(i), sparse: true})
	}
	for _, i := range plan.Blocks {
		p.Chunks = append(p.Chunks, Chunk{Chunk: i, Mask: mask, Decoded: x.StoredBytes(i)})
	}
}

// addPieces is Add for chunks that are decoded in pieces. Each has a run of its own, of all its bytes, although
// reading stops after the last row of the box.
func (p *Asset) addPieces(x, pieces *chunk.Index, box chunk.Box, bands []int, plan *chunk.RunPlan, mask bool) {
	held := pixels.PieceBytes(x, pieces)
	note := func(i int, place chunk.Range, sparse bool) {
		part := x.Box(i)
		b, _, w := x.Stored(i)
		p.Chunks = append(p.Chunks, Chunk{Chunk: i, Mask: mask, Off: place.Off, Len: place.Len, sparse: sparse,
			Decoded: (min(box.Y1, part.Y1) - part.Y0) * b * w * x.DType.Size(), held: held})
	}
	plan.Reset(x, box, bands, 0, 0)
	for _, run := range plan.Runs {
		place := chunk.Range{Off: run.Off, Len: run.Len}
		p.Runs = append(p.Runs, Range{Off: place.Off, Len: place.Len, pieces: true})
		note(run.Chunks[0], place, false)
	}
	for _, i := range plan.Sparse {
		note(i, chunk.Range{}, true)
	}
}

// AddBlocks adds the reads of the chunks of an array that a box needs. With whole, each chunk is read completely.
func (p *Asset) AddBlocks(ctx context.Context, x *chunk.Index, box chunk.Box, whole bool) error {
	p.blocks = x.Blocks
	for k := range p.Chunks {
		c := &p.Chunks[k]
		c.box = x.Box(c.Chunk)
		if !whole {
			c.box = pixels.RowsIn(c.box, box)
		}
	}
	_, err := new(Arrays).Blocks(ctx, p, p.Chunks,
		func(file string, off, n int64) { p.Runs = append(p.Runs, Range{File: file, Off: off, Len: n}) })
	return err
}
