package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Stats measures every band of every raster field of the spec's dataset in one parallel pass. It
// reads the rows that the conditions and the split leave. Nodata and masked pixels are left out and
// counted as nodata. The sampler, the bands and the normalisation of the spec have no effect, and
// the result does not depend on Options.Workers. A sample that cannot be read ends the pass; with
// BadSkip it is left out as a whole and counted. progress, if not nil, is called after every
// sample, by one goroutine at a time. A mixture is an error.
func Stats(
	ctx context.Context, spec spec.Spec, o resources.Options, progress func(done, total int64),
) (*stats.Report, error) {
	spec = spec.WithDefaults()
	spec.BatchSize = max(spec.BatchSize, 1) // Validate needs one, although the pass makes no batches
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	defer o.CloseOpener()
	src := spec.Root()
	if len(src.Sources) > 0 {
		return nil, errors.New("spec: the statistics of a mixture are those of its sources, one by one")
	}
	t, err := rows.Open(ctx, src, spec.Fields, o)
	if err != nil {
		return nil, err
	}
	var r *stats.Report
	rows, err := rows.Selected(ctx, t, src, o)
	if err == nil {
		r, err = Measure(ctx, spec, o, t, rows, progress)
	}
	return r, errors.Join(err, t.Close())
}

// pass is one pass over a dataset. Its workers share it.
type pass struct {
	spec     spec.Spec
	options  resources.Options
	table    rows.Table
	rows     []uint32   // the selected rows; nil: all
	columns  []int      // the columns of the raster fields
	names    [][]string // by column: the band descriptions of the first file; nil if it has none
	next     atomic.Int64
	skipped  atomic.Int64
	remote   bool       // the first assets of some columns are not local
	mu       sync.Mutex // guards the members below, and that one goroutine at a time calls progress
	done     int64
	total    []*stats.Field
	progress func(done, total int64)
}

// Measure computes Stats over the given rows of an open table; nil rows are all rows. A table
// without samples is a fault of kind not found.
func Measure(
	ctx context.Context, sp spec.Spec, o resources.Options, t rows.Table, rows []uint32,
	progress func(done, total int64),
) (*stats.Report, error) {
	p := &pass{spec: sp, options: o, table: t, rows: rows, progress: progress}
	if t.Len() == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), sp.Source)
	}
	for i := range spec.RowFields(sp.Fields) {
		if t.Kind(i) == catalog.Raster {
			p.columns = append(p.columns, i)
		}
	}
	var err error
	if p.total, err = p.fields(ctx); err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for range p.options.Readers(o.Workers, p.remote) {
		g.Go(func() error { return p.work(ctx) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r := &stats.Report{
		Version: stats.ReportVersion, Samples: p.len() - p.skipped.Load(), Skipped: p.skipped.Load(),
		Fields: map[string]stats.FieldReport{},
	}
	for k, i := range p.columns {
		f := p.total[k].Report()
		if len(p.names[k]) == len(f.Bands) {
			for b := range f.Bands {
				f.Bands[b].Name = p.names[k][b]
			}
		}
		r.Fields[sp.Fields[i].Name] = f
	}
	return r, nil
}

// len returns the number of selected rows.
func (p *pass) len() int64 {
	if p.rows != nil {
		return int64(len(p.rows))
	}
	return p.table.Len()
}

// fields returns an empty accumulator for each raster field, with the dtype and the number of bands
// of the first sample that can be read. It also sets remote and names.
func (p *pass) fields(ctx context.Context) ([]*stats.Field, error) {
	out := make([]*stats.Field, len(p.columns))
	first, err := rows.FirstAssets(ctx, p.table, p.columns, p.spec.BadSamples, p.rows)
	if err != nil {
		return nil, err
	}
	for k, i := range p.columns {
		a := first[k]
		p.remote = p.remote || source.IsRemote(a.URI)
		if out[k], err = stats.NewField(a.Index.DType, a.Index.Bands); err != nil {
			return nil, a.Fault(rows.InField(p.spec.Fields[i].Name, err))
		}
		names, err := pixels.BandNames(ctx, p.options.Opener, a)
		if err != nil {
			names = nil // names are optional, and a fault of the file must show when its pixels are read
		}
		p.names = append(p.names, names)
	}
	return out, nil
}

// work measures samples until none are left, and then merges its own accumulators into the total.
func (p *pass) work(ctx context.Context) error {
	// Each worker has its own accumulators, so that samples need no lock.
	fields := make([]*stats.Field, len(p.total))
	for k, f := range p.total {
		var err error
		if fields[k], err = stats.NewField(f.DType(), f.Bands()); err != nil {
			return err
		}
	}
	r := pixels.NewReader(p.options)
	for {
		row := p.next.Add(1) - 1
		if row >= p.len() {
			break
		}
		if p.rows != nil {
			row = int64(p.rows[row])
		}
		if err := p.sample(ctx, r, fields, row); err != nil {
			if p.spec.BadSamples != spec.BadSkip || fault.KindOf(err) == 0 {
				return fmt.Errorf("sample %d: %w", row, err)
			}
			p.skipped.Add(1)
			p.options.Logger.Warn("skipped", "sample", row, "error", fault.Line(err))
		}
		p.tick()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, f := range fields {
		if err := p.total[k].Merge(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.progress != nil {
		p.progress(p.done, p.len())
	}
}

// sample adds one sample to the accumulators.
func (p *pass) sample(ctx context.Context, r *pixels.Reader, fields []*stats.Field, row int64) error {
	// Decoding it once before ensures that a sample that fails half way adds nothing.
	if p.spec.BadSamples == spec.BadSkip {
		if err := p.read(ctx, r, row, fields, func(int) tallier { return pixels.Nowhere{} }); err != nil {
			return err
		}
	}
	return p.read(ctx, r, row, fields, func(k int) tallier { return &tally{field: fields[k]} })
}

func (p *pass) read(
	ctx context.Context, r *pixels.Reader, row int64, fields []*stats.Field, to func(k int) tallier,
) error {
	for k, i := range p.columns {
		a, err := p.table.Asset(ctx, i, row)
		if err != nil {
			return err
		}
		x := a.Index
		if f := fields[k]; x.DType != f.DType() || x.Bands != f.Bands() {
			return a.Fault(fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d bands of %s; the field %q has %d of %s", x.Bands, x.DType,
				p.spec.Fields[i].Name, f.Bands(), f.DType()))
		}
		fields[k].NoData(x.NoData, x.NoDataBits)
		if err := p.whole(ctx, r, a, to(k)); err != nil {
			return err
		}
	}
	return nil
}

// whole reads all rows of an asset. It reads an asset with a mask in parts of some rows, the mask
// of each part before its pixels.
func (p *pass) whole(ctx context.Context, r *pixels.Reader, a catalog.Asset, to tallier) error {
	x := a.Index
	all := chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}
	if x.Mask == nil {
		return r.Read(ctx, a, all, nil, to, nil)
	}
	// A part is at least as tall as the chunks of the mask, and whole chunks of the image tall, so
	// that a chunk reaches into at most two parts and is decoded at most twice.
	rows := min(int64(x.Height), int64(x.ChunkH)*int64((x.Mask.ChunkH-1)/x.ChunkH+1))
	if pixels.BoundedBytes(int64(p.options.MaxChunkBytes), int(rows), x.Width, x.Mask.Bands) < 0 {
		return a.Fault(fault.New(fault.Limit, "mask", fault.NoOffset,
			"%d rows of %d pixels at once, at most %d bytes", rows, x.Width, p.options.MaxChunkBytes))
	}
	mask := a
	mask.Index = x.Mask
	for all.Y0 = 0; all.Y0 < x.Height; all.Y0 = all.Y1 {
		all.Y1 = min(all.Y0+int(rows), x.Height)
		part := all
		part.B1 = x.Mask.Bands
		if err := pixels.InMask(r.Read(ctx, mask, part, nil, to.Begin(part), nil)); err != nil {
			return err
		}
		if err := r.Read(ctx, a, all, nil, to, nil); err != nil {
			return err
		}
	}
	return nil
}

// tallier is a sink for the pixels of an asset. For an asset with a mask it gets the mask of some
// rows, and then their pixels; for one without, all pixels.
type tallier interface {
	pixels.Sink
	// Begin returns the sink for the mask of the rows in box, whose pixels come next.
	Begin(box chunk.Box) pixels.Sink
}

// tally adds the pixels of chunks to a field, without the padding of chunks at the edge.
type tally struct {
	field *stats.Field
	line  []byte // scratch: one row of one band, gathered
	mask  *plane // the mask of the current rows; nil if the asset has none
}

// plane holds the mask in a box of the image, as (b, y, x). The box begins at band 0.
type plane struct {
	box chunk.Box
	pix []byte
}

// Begin implements tallier. It keeps the memory of the part before.
func (t *tally) Begin(box chunk.Box) pixels.Sink {
	if t.mask == nil {
		t.mask = &plane{}
	}
	n := (box.B1 - box.B0) * (box.Y1 - box.Y0) * (box.X1 - box.X0)
	t.mask.box, t.mask.pix = box, slices.Grow(t.mask.pix[:0], n)[:n]
	return t.mask
}

// Put implements sink.
func (p *plane) Put(x *chunk.Index, i int, samples []byte) {
	box, blk := x.Box(i), pixels.BlockOf(x, i)
	for b := box.B0; b < box.B1; b++ {
		for y := max(box.Y0, p.box.Y0); y < min(box.Y1, p.box.Y1); y++ {
			from, to := samples[(b-box.B0)*blk.StrideB+(y-box.Y0)*blk.StrideY:], p.row(b, y, box.X0, box.X1)
			if blk.StrideX == 1 {
				copy(to, from)
				continue
			}
			for c := range to {
				to[c] = from[c*blk.StrideX]
			}
		}
	}
}

// row returns columns x0 to x1 of row y of the mask of band b of the image. A mask of one band
// serves all bands.
func (p *plane) row(b, y, x0, x1 int) []byte {
	h, w := p.box.Y1-p.box.Y0, p.box.X1-p.box.X0
	if p.box.B1 == 1 {
		b = 0
	}
	return p.pix[(b*h+y-p.box.Y0)*w+x0-p.box.X0:][:x1-x0]
}

// Put implements sink.
func (t *tally) Put(x *chunk.Index, i int, samples []byte) {
	box, blk, size := x.Box(i), pixels.BlockOf(x, i), x.DType.Size()
	n := box.X1 - box.X0
	for b := range box.B1 - box.B0 {
		if t.mask == nil && blk.StrideX == 1 && blk.StrideY == n { // no column of padding: all rows at once
			t.field.AddRows(box.B0+b, samples[b*blk.StrideB*size:][:(box.Y1-box.Y0)*n*size])
			continue
		}
		for y := range box.Y1 - box.Y0 {
			row := samples[(b*blk.StrideB+y*blk.StrideY)*size:]
			if t.mask != nil {
				t.masked(box.Y0+y, box, box.B0+b, row, blk.StrideX*size, size)
				continue
			}
			if blk.StrideX == 1 {
				t.field.AddRows(box.B0+b, row[:n*size])
				continue
			}
			t.line = t.line[:0]
			for c := range n {
				at := c * blk.StrideX * size
				t.line = append(t.line, row[at:at+size]...)
			}
			t.field.AddRows(box.B0+b, t.line)
		}
	}
}

// masked adds the valid pixels of row y of a band, which lie step bytes apart in row, and counts
// the others as nodata.
func (t *tally) masked(y int, box chunk.Box, band int, row []byte, step, size int) {
	t.line = t.line[:0]
	valid := t.mask.row(band, y, box.X0, box.X1)
	for c, v := range valid {
		if v != 0 {
			t.line = append(t.line, row[c*step:][:size]...)
		}
	}
	t.field.AddRows(band, t.line)
	t.field.AddNoData(band, uint64(len(valid)-len(t.line)/size))
}
