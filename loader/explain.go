package loader

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// RowPlan says what a row of a batch is made of.
type RowPlan struct {
	Row      int   `json:"row"`
	Position int64 `json:"position"` // -1 for padding; then nothing else is set
	// Draw is the sample. In a mixture it has the number of its dataset in the plan.
	Draw shuffle.Draw `json:"draw"`
	// Source is the name of the sample's source; empty if the spec has one source. Dataset is the
	// path of its table.
	Source  string `json:"source,omitempty"`
	Dataset string `json:"dataset"`
	// ID names the sample: see catalog.Table.ID.
	ID     string      `json:"id"`
	Assets []AssetPlan `json:"assets"`
	// Points has one plan for each field of points.
	Points []PointsPlan `json:"points,omitempty"`
	// Err is why the sample is bad, as far as headers and tables show it; nil if they do not.
	Err error `json:"-"`
	// Error is Err on one line.
	Error string `json:"error,omitempty"`
}

// AssetPlan says what is read of an asset.
type AssetPlan struct {
	Field string `json:"field"`
	Step  int    `json:"step"` // of a sequence
	// Row is the row of the table. It is -1 for a step that does not exist; then nothing else is
	// set.
	Row    int64       `json:"row"`
	URI    string      `json:"uri"`
	Size   shuffle.Box `json:"size"`   // of the asset, at 0, 0
	Window shuffle.Box `json:"window"` // in the asset's own pixels, before the row's transform
	// Runs are the byte ranges that are read, Chunks the chunks in them, in the order in which they
	// are decoded. Those of the asset's mask follow. A chunk of an array has no byte range here:
	// its runs lie in the array's files, and are those of a worker that has not read the array
	// before.
	Runs   []RangePlan `json:"runs"`
	Chunks []ChunkPlan `json:"chunks"`

	gap    int64         // ranges of the file closer than this are read as one, in bytes
	blocks *chunk.Blocks // nil unless the asset is an image of an array
}

// PointsPlan says what is read of a field of points.
type PointsPlan struct {
	Field string `json:"field"`
	Array string `json:"array"`
	// Runs are the stretches of the array's files that are read, by a worker that has not read of it before. Which
	// values are read depends on the coordinates where Exact is false: then they are those that may be.
	Runs  []RangePlan `json:"runs"`
	Exact bool        `json:"exact"`

	field *pointsField
	box   tiledb.Box // nil if no point can lie in the window
}

// RangePlan is a range of bytes in a file.
type RangePlan struct {
	File string `json:"file,omitempty"` // empty unless it belongs to an array
	Off  int64  `json:"off"`
	Len  int64  `json:"len"`
}

// ChunkPlan is a chunk that is decoded.
type ChunkPlan struct {
	Chunk   int   `json:"chunk"`
	Mask    bool  `json:"mask,omitempty"` // of the asset's mask
	Off     int64 `json:"off"`
	Len     int64 `json:"len"`     // 0 for a sparse chunk
	Decoded int   `json:"decoded"` // bytes

	sparse bool
	box    chunk.Box // of an array: the cells that are read
}

// Explain returns what the rows of a ticket are made of, without reading a pixel. Faults of a
// sample are in its row; ExplainDraw of a shuffle.Plan.Substitute returns what takes its place. An
// error is one that no bad-sample policy covers.
func (e *Engine) Explain(ctx context.Context, t shuffle.Ticket) ([]RowPlan, error) {
	if err := e.check(t); err != nil {
		return nil, err
	}
	rows := make([]RowPlan, t.Rows())
	for k := range rows {
		rows[k] = RowPlan{Row: k, Position: t.Position(k, e.samples)}
		if rows[k].Position < 0 {
			continue
		}
		draw := e.plan.At(t.Epoch, rows[k].Position)
		r, err := e.ExplainDraw(ctx, draw)
		if err != nil {
			return nil, err
		}
		r.Row, r.Position = k, rows[k].Position
		rows[k] = r
	}
	return rows, nil
}

// ExplainDraw is Explain for one sample, such as a substitute (shuffle.Plan.Substitute). Faults of
// the sample are in the result; an error is one that no bad-sample policy covers.
func (e *Engine) ExplainDraw(ctx context.Context, draw shuffle.Draw) (RowPlan, error) {
	d := e.leaves[draw.Dataset]
	r := RowPlan{Draw: draw, Source: d.name, Dataset: d.source.Source}
	var err error
	if r.ID, err = d.table.ID(ctx, draw.Row); err != nil {
		_, err = r.note(err)
		return r, err
	}
	// The order is that of a run: it reads all fields of a sample even if one is bad, but stops at
	// the first fault of a substitute. Otherwise the forecast would count other requests.
	if stop, err := e.explainRasters(ctx, d, &draw, &r); stop {
		return r, err
	}
	if stop, err := e.explainValues(ctx, d, &draw, &r); stop {
		return r, err
	}
	if len(d.points) > 0 {
		if r.Points, err = e.explainPoints(ctx, d, &draw); err != nil {
			_, err = r.note(err)
		}
	}
	return r, err
}

// note keeps an error that a bad-sample policy covers, of several the one with the least text, as
// outranks does. It reports whether to stop, and returns the error if no policy covers it.
func (r *RowPlan) note(err error) (stop bool, _ error) {
	if fault.KindOf(err) == 0 {
		return true, err
	}
	if r.Err == nil || r.Err.Error() > err.Error() {
		r.Err, r.Error = err, fault.Line(err)
	}
	return r.Draw.Attempt > 0, nil
}

// explainRasters notes what is read of the rasters of a draw.
func (e *Engine) explainRasters(ctx context.Context, d *dataset, draw *shuffle.Draw, r *RowPlan) (stop bool, _ error) {
	var plan chunk.RunPlan
	for step := range max(d.steps, 1) {
		at := e.rowOf(draw, step)
		for i, f := range d.rasters {
			p := AssetPlan{Field: f.Name, Step: step, Row: at}
			if at >= 0 {
				if err := e.explainAsset(ctx, d, draw, i, &p, &plan); err != nil {
					if stop, err := r.note(err); stop {
						return true, err
					}
					continue
				}
			}
			r.Assets = append(r.Assets, p)
		}
	}
	return false, nil
}

// explainValues checks the metadata columns of a draw.
func (e *Engine) explainValues(ctx context.Context, d *dataset, draw *shuffle.Draw, r *RowPlan) (stop bool, _ error) {
	for _, v := range d.values {
		for step := range max(d.steps, 1) {
			at := e.rowOf(draw, step)
			if at < 0 {
				continue
			}
			val, err := d.table.Value(ctx, v.column, at)
			if err == nil {
				err = v.check(val)
			}
			if err == nil {
				continue
			}
			if stop, err := r.note(err); stop {
				return true, err
			}
		}
	}
	return false, nil
}

// explainPoints returns what is read of the points of a draw.
func (e *Engine) explainPoints(ctx context.Context, d *dataset, draw *shuffle.Draw) ([]PointsPlan, error) {
	var out []PointsPlan
	err := e.eachPoints(ctx, d, draw, func(_ int, f *pointsField, at pointWindow) error {
		p := PointsPlan{Field: f.name, Array: f.array.URI(), field: f, Exact: true}
		if box, ok := f.box(at.win, at.t, at.n); ok {
			p.box = box
		}
		err := newArrayDryRun().points(ctx, &p, func(file string, off, n int64) {
			p.Runs = append(p.Runs, RangePlan{file, off, n})
		})
		if err == nil {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// explainAsset notes what is read of one asset of a draw.
func (e *Engine) explainAsset(ctx context.Context, d *dataset, draw *shuffle.Draw, field int, p *AssetPlan,
	plan *chunk.RunPlan) error {
	f := d.rasters[field]
	a, err := d.table.Asset(ctx, f.TableColumn, p.Row)
	if err != nil {
		return err
	}
	win, err := e.windowOf(ctx, d, draw, field, p.Row, a)
	if err != nil {
		return a.Fault(err)
	}
	p.URI, p.Size = a.URI, shuffle.Box{H: a.Index.Height, W: a.Index.Width}
	p.Window = win
	in := pixels.Inside(win, a.Index.Height, a.Index.Width)
	if p.gap, err = e.gap(ctx, a); err != nil {
		return err
	}
	picked, err := d.bandsOf(ctx, f, a)
	if err != nil {
		return err
	}
	if p.add(a.Index, in, picked.Picked, plan, false); a.Index.Blocks != nil {
		return p.addBlocks(ctx, a.Index, in, d.sampler.Kind == spec.TileWindow)
	}
	if m := a.Index.Mask; m != nil && f.Final.Nodata {
		in, of := pixels.MaskBands(m, in, picked.Picked)
		p.add(m, in, of, plan, true)
	}
	return nil
}

// gap returns the gap, in bytes, up to which two ranges of a file are read as one. Remote sources
// choose it. Asking them costs no request if a catalog knows the size of the file.
func (e *Engine) gap(ctx context.Context, a catalog.Asset) (int64, error) {
	if a.Index.Blocks != nil || !source.IsRemote(a.URI) {
		return source.DefaultGap, nil
	}
	f, err := source.OpenKnown(ctx, e.options.Opener, a.URI, a.Known())
	if err != nil {
		return 0, err
	}
	return source.Gap(f), f.Close()
}

// add notes the chunks of an index that a box needs.
func (p *AssetPlan) add(x *chunk.Index, box chunk.Box, bands []int, plan *chunk.RunPlan, mask bool) {
	plan.Reset(x, box, bands, p.gap, pixels.MaxRun)
	for _, run := range plan.Runs {
		p.Runs = append(p.Runs, RangePlan{Off: run.Off, Len: run.Len})
		for _, i := range run.Chunks {
			at := x.Place(i)
			p.Chunks = append(p.Chunks, ChunkPlan{Chunk: i, Mask: mask, Off: at.Off, Len: at.Len,
				Decoded: x.StoredBytes(i)})
		}
	}
	for _, i := range plan.Sparse {
		p.Chunks = append(p.Chunks, ChunkPlan{Chunk: i, Mask: mask, Decoded: x.StoredBytes(i), sparse: true})
	}
	for _, i := range plan.Blocks {
		p.Chunks = append(p.Chunks, ChunkPlan{Chunk: i, Mask: mask, Decoded: x.StoredBytes(i)})
	}
}

// addBlocks notes what is read for the chunks of an array that a box needs. With whole, it is all
// of each chunk.
func (p *AssetPlan) addBlocks(ctx context.Context, x *chunk.Index, box chunk.Box, whole bool) error {
	p.blocks = x.Blocks
	for k := range p.Chunks {
		c := &p.Chunks[k]
		c.box = x.Box(c.Chunk)
		if !whole {
			c.box = pixels.RowsIn(c.box, box)
		}
	}
	_, err := newArrayDryRun().blocks(ctx, p.blocks, p.Chunks,
		func(file string, off, n int64) { p.Runs = append(p.Runs, RangePlan{file, off, n}) })
	return err
}

// SourceInfo is a source of a spec that is no mixture.
type SourceInfo struct {
	// Name is the name of the source, after those of the mixtures around it; empty if there is one
	// source. Source is the path of its table.
	Name   string `json:"name,omitempty"`
	Source string `json:"source"`
	// Rows of its table.
	Rows int64 `json:"rows"`
	// Datasets of the plan that are made of it: one, or one for each stratum.
	Datasets []int `json:"datasets"`
	// Samples of an epoch, of all its datasets together.
	Samples int64 `json:"samples"`
}

// Sources returns the sources, in the order of their numbers in the tensor SourceColumn of a batch.
func (e *Engine) Sources() []SourceInfo {
	out := make([]SourceInfo, len(e.sets))
	for i, d := range e.sets {
		out[i] = SourceInfo{Name: d.name, Source: d.source.Source, Rows: d.table.Len()}
	}
	for i, d := range e.leaves {
		s := &out[d.number]
		s.Datasets = append(s.Datasets, i)
		s.Samples += e.plan.DatasetLen(i)
	}
	return out
}
