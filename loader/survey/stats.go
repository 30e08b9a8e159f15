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

// Stats measures every band of every raster field over all assets of the spec's dataset, of the rows that
// its conditions and its split leave, in one parallel pass; nodata is left out, and so are pixels that an asset's mask takes out: both are counted
// as nodata. The sampler, bands and arithmetic of the spec do not matter,
// and the result does not depend on Options.Workers. Samples that cannot be read end the pass, or,
// with BadSkip, are left out as a whole and counted. progress, if not nil, is called after every
// sample, by one goroutine at a time.
func Stats(ctx context.Context, spec spec.Spec, o resources.Options, progress func(done, total int64)) (*stats.Report, error) {
	spec = spec.WithDefaults()
	spec.BatchSize = max(spec.BatchSize, 1) // which does not matter here
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

// pass is one run over a dataset, shared by its workers.
type pass struct {
	spec     spec.Spec
	options  resources.Options
	table    rows.Table
	rows     []uint32   // that count; nil for all
	columns  []int      // of the raster fields
	names    [][]string // by column: what the bands of the first file are called, if it says so
	next     atomic.Int64
	skipped  atomic.Int64
	remote   bool       // some files are not local
	mu       sync.Mutex // guards what follows
	done     int64
	total    []*stats.Field
	progress func(done, total int64)
}

// Measure is Stats over the rows of an open table that count; nil rows are all.
func Measure(ctx context.Context, sp spec.Spec, o resources.Options, t rows.Table, rows []uint32, progress func(done, total int64)) (*stats.Report, error) {
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
	r := &stats.Report{Version: stats.ReportVersion, Samples: p.len() - p.skipped.Load(), Skipped: p.skipped.Load(), Fields: map[string]stats.FieldReport{}}
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

// len returns the number of rows that count.
func (p *pass) len() int64 {
	if p.rows != nil {
		return int64(len(p.rows))
	}
	return p.table.Len()
}

// fields returns empty accumulators, for assets like those of the first sample that can be read.
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
			names = nil // they are an extra, and what is wrong with the file shows when it is read
		}
		p.names = append(p.names, names)
	}
	return out, nil
}

// work measures samples until there are none left, and adds what it has to the total.
func (p *pass) work(ctx context.Context) error {
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

// sample adds one sample. Where bad samples are skipped it is decoded once before, so that one which
// breaks off half way adds nothing.
func (p *pass) sample(ctx context.Context, r *pixels.Reader, fields []*stats.Field, row int64) error {
	if p.spec.BadSamples == spec.BadSkip {
		if err := p.read(ctx, r, row, fields, func(int) tallier { return pixels.Nowhere{} }); err != nil {
			return err
		}
	}
	return p.read(ctx, r, row, fields, func(k int) tallier { return &tally{field: fields[k]} })
}

func (p *pass) read(ctx context.Context, r *pixels.Reader, row int64, fields []*stats.Field, to func(k int) tallier) error {
	for k, i := range p.columns {
		a, err := p.table.Asset(ctx, i, row)
		if err != nil {
			return err
		}
		x := a.Index
		if f := fields[k]; x.DType != f.DType() || x.Bands != f.Bands() {
			return a.Fault(fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d bands of %s; the field %q has %d of %s",
				x.Bands, x.DType, p.spec.Fields[i].Name, f.Bands(), f.DType()))
		}
		fields[k].NoData(x.NoData, x.NoDataBits)
		if err := p.whole(ctx, r, a, to(k)); err != nil {
			return err
		}
	}
	return nil
}

// whole reads an asset from its first row to its last. One with a mask is read some rows at a time, the
// mask in front of its pixels: as many rows as whole chunks of both need, so that nothing is decoded more
// than twice.
func (p *pass) whole(ctx context.Context, r *pixels.Reader, a catalog.Asset, to tallier) error {
	x := a.Index
	all := chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}
	if x.Mask == nil {
		return r.Read(ctx, a, all, nil, to, nil)
	}
	rows := min(int64(x.Height), int64(x.ChunkH)*int64((x.Mask.ChunkH-1)/x.ChunkH+1))
	if pixels.BoundedBytes(int64(p.options.MaxChunkBytes), int(rows), x.Width, x.Mask.Bands) < 0 {
		return a.Fault(fault.New(fault.Limit, "mask", fault.NoOffset, "%d rows of %d pixels at once, at most %d bytes", rows, x.Width, p.options.MaxChunkBytes))
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

// tallier is a sink that takes the samples of some rows after their mask, or all of them without.
type tallier interface {
	pixels.Sink
	// begin returns the sink for the mask of the rows that come next.
	Begin(box chunk.Box) pixels.Sink
}

// tally adds the samples of chunks that lie in the image to a field.
type tally struct {
	field *stats.Field
	line  []byte // one row of one band, gathered
	mask  *plane // of the rows at hand; nil without a mask
}

// plane is a mask's samples in a box of the image, which has its first band: (b, y, x).
type plane struct {
	box chunk.Box
	pix []byte
}

// Begin implements tallier.
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

// row returns columns x0 to x1 of a row of a band of the image. A mask of one band is that of all.
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

// masked adds the samples of one row of one band, step bytes apart, whose pixels the mask leaves in.
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
