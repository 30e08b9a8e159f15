package loader

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// WeightOptions say what Weights counts.
type WeightOptions struct {
	// Field is the raster field to look at. Default: the last one.
	Field string
	// Classes are the values to count in the field's first band. Default: all valid values.
	Classes []float64
	// Cell is the side of a cell in pixels of the first raster field, at most 65536. It is rounded
	// up to a multiple that the grids of all fields share. Default 64.
	Cell int
}

// Weights counts the valid pixels, or those of some classes, in the cells of every asset. It writes
// the file that the sampler WeightedWindow reads to w. A sample that cannot be read ends it with an
// error; with any bad-sample policy but "error" it has no weight instead.
func Weights(ctx context.Context, w io.Writer, spec Spec, o Options, c WeightOptions,
	progress func(done, total int64)) error {
	// Weights makes no batches, but Validate needs a size.
	spec.BatchSize = max(spec.BatchSize, 1)
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return err
	}
	if len(spec.Sources) > 0 {
		return errors.New("spec: the weights of a mixture are those of its sources, one by one")
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return err
	}
	defer o.CloseOpener()
	src := spec.Root()
	t, err := rows.Open(ctx, src, spec.Fields, o)
	if err != nil {
		return err
	}
	p := &weighing{options: o, spec: spec, table: t, progress: progress}
	err = p.run(ctx, c)
	if err == nil {
		err = p.write(w)
	}
	return errors.Join(err, t.Close())
}

// weighing is one pass of Weights, shared by its workers.
type weighing struct {
	options  Options
	spec     Spec
	table    rows.Table
	data     *dataset
	field    *pixels.Raster
	lead     int // column of the first raster field
	head     rows.WeightsHeader
	next     atomic.Int64
	mu       sync.Mutex // guards rows and done, and keeps calls of progress in order
	rows     []weighed
	done     int64
	progress func(done, total int64)
}

// weighed holds the counts of one asset: one for each cell, row by row.
type weighed struct {
	height, width uint32
	cells         []uint32
}

// run compiles the fields and counts all assets with the workers.
func (p *weighing) run(ctx context.Context, c WeightOptions) error {
	d := &dataset{fields: spec.RowFields(p.spec.Fields), table: p.table, source: p.spec.Root(),
		sampler: Sampler{Kind: spec.WholeChip}}
	if p.table.Len() == 0 {
		return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), p.spec.Source)
	}
	for i := range d.fields { // the casts of the fields do not matter here
		f := &d.fields[i]
		*f = Field{Name: f.Name, Column: f.Column, Blob: f.Blob, Pattern: f.Pattern, DType: "native", Layout: "n b y x"}
	}
	if err := d.compileFields(ctx, p.spec.BadSamples, nil); err != nil {
		return err
	}
	for _, r := range d.rasters {
		if c.Field == "" || r.Name == c.Field {
			p.field = r
		}
	}
	if p.field == nil {
		return fmt.Errorf("spec: no raster field is called %q", c.Field)
	}
	cell := cmp.Or(c.Cell, 64)
	if cell < 1 || cell > spec.MaxWindow {
		return fmt.Errorf("spec: cells of %d pixels, not in 1..%d", cell, spec.MaxWindow)
	}
	p.data, p.lead = d, d.rasters[0].TableColumn
	p.head = rows.WeightsHeader{Version: 1, Rows: p.table.Len(), CellHeight: rows.RoundUp(cell, d.alignY),
		CellWidth: rows.RoundUp(cell, d.alignX), Field: p.field.Name, Classes: c.Classes}
	var err error
	if p.head.Samples, err = rows.SamplesOf(ctx, p.table); err != nil {
		return err
	}
	p.rows = make([]weighed, p.head.Rows)
	g, ctx := errgroup.WithContext(ctx)
	for range p.options.Workers {
		g.Go(func() error { return p.work(ctx) })
	}
	return g.Wait()
}

// work counts assets until there are none left.
func (p *weighing) work(ctx context.Context) error {
	r := pixels.NewReader(p.options)
	for {
		row := p.next.Add(1) - 1
		if row >= p.head.Rows {
			return nil
		}
		w, err := p.weigh(ctx, r, row)
		if err != nil {
			if p.spec.BadSamples == spec.BadError || fault.KindOf(err) == 0 {
				return fmt.Errorf("sample %d: %w", row, err)
			}
			p.options.Logger.Warn("no weights", "sample", row, "error", fault.Line(err))
			w = weighed{}
		}
		p.mu.Lock()
		p.rows[row] = w
		p.done++
		if p.progress != nil {
			p.progress(p.done, p.head.Rows)
		}
		p.mu.Unlock()
	}
}

// weigh counts one asset, some rows of it at a time.
func (p *weighing) weigh(ctx context.Context, r *pixels.Reader, at int64) (w weighed, err error) {
	f := p.field
	lead, err := p.table.Asset(ctx, p.lead, at)
	if err != nil {
		return w, err
	}
	a, err := p.table.Asset(ctx, f.TableColumn, at)
	if err != nil {
		return w, err
	}
	x := a.Index
	if err := f.Fits(x); err != nil {
		return w, a.Fault(err)
	}
	if !f.Ratio.Holds(lead.Index, x) {
		return w, a.Fault(fault.New(fault.Unsupported, "asset", fault.NoOffset,
			"%d by %d pixels do not share a grid with the first field's", x.Height, x.Width))
	}
	h, wd := lead.Index.Height, lead.Index.Width
	across := rows.RoundUp(wd, p.head.CellWidth) / p.head.CellWidth
	w = weighed{uint32(h), uint32(wd), make([]uint32, across*(rows.RoundUp(h, p.head.CellHeight)/p.head.CellHeight))}
	cell := f.Ratio.Scale(shuffle.Box{H: p.head.CellHeight, W: p.head.CellWidth})
	// A strip is as high as a row of chunks, so that each chunk is decoded once. A pixel of it
	// takes 5 bytes (float32 and validity), and MaxChunkBytes bounds the strip.
	rows := max(1, min(x.Height, x.ChunkH, p.options.MaxChunkBytes/(5*x.Width)))
	sub := &pixels.Raster{PickedBands: pixels.PickedBands{Picked: []int{0}}, H: rows, W: x.Width}
	sub.PlaceBands()
	plan, err := pixels.Planes.Plan(sub.Axes(1), nil)
	if err != nil {
		return w, err
	}
	convs := &pixels.Converters{Base: einops.Convert{From: f.Native, To: chunk.Float32}, Nodata: true}
	cv, err := convs.Get(x)
	if err != nil {
		return w, a.Fault(err)
	}
	s := &r.Resample
	s.In, s.InValid = pixels.Grown(s.In, 4*plan.Len()), pixels.Grown(s.InValid, plan.Len())
	for y := 0; y < x.Height; y += rows {
		to := &pixels.Row{Field: sub, Plan: plan, Dst: einops.Target{Data: s.In, Mask: s.InValid}, Cv: cv,
			Win: shuffle.Box{Y: y, H: rows, W: x.Width}}
		box := pixels.Inside(to.Win, x.Height, x.Width)
		if err := r.Read(ctx, a, box, sub.Picked, to, to.Masked(convs, box)); err != nil {
			return w, err
		}
		for i := range (box.Y1 - y) * x.Width {
			if s.InValid[i] != 0 && p.counts(s.Float(i)) {
				w.cells[(y+i/x.Width)/cell.H*across+i%x.Width/cell.W]++
			}
		}
	}
	return w, nil
}

// counts reports whether a value is counted.
func (p *weighing) counts(v float32) bool {
	return len(p.head.Classes) == 0 || slices.Contains(p.head.Classes, float64(v))
}

// write writes the file: magic, length of the header, header, the size of every asset, and then the
// cells of all assets.
func (p *weighing) write(w io.Writer) error {
	head, err := json.Marshal(p.head)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(rows.WeightsMagic)
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head))))
	b.Write(head)
	for _, r := range p.rows {
		b.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, r.height), r.width))
	}
	for _, r := range p.rows {
		for _, c := range r.cells {
			b.Write(binary.LittleEndian.AppendUint32(nil, c))
		}
		// Writing 64 KiB at a time avoids a second copy of all cells in memory.
		if b.Len() > 1<<16 {
			if _, err := b.WriteTo(w); err != nil {
				return err
			}
		}
	}
	_, err = b.WriteTo(w)
	return err
}
