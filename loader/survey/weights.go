package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// WeightOptions say what Weights counts.
type WeightOptions struct {
	// Field is the raster field to look at. Default: the only one.
	Field string
	// Classes are the stored values to count in the first band that the field picks. A value that no pixel has is an
	// error. Default: pixels that are valid in one of the picked bands.
	Classes []float64
	// Cell is the side of a cell in pixels of the first raster field, at most 65536. It is rounded
	// up to a multiple that the grids of all fields share. Default 64.
	Cell int
}

// Weights counts the valid pixels, or the pixels of some classes, in the cells of the assets in a share of the rows. It
// writes the file that the sampler WeightedWindow reads to w; rows.MergeWeights joins the files of shares. A sample
// that cannot be read ends it with an error; with any bad-sample policy but "error" it has no weight instead. A
// mixture is an error.
func Weights(
	ctx context.Context, w io.Writer, sp spec.Spec, o resources.Options, c WeightOptions, share *Share,
	progress func(done, total int64),
) error {
	return withTable(ctx, sp, o, func(sp spec.Spec, o resources.Options, t *rows.Table) error {
		head, counts, err := CountWeights(ctx, sp, o, t, c, share, progress)
		if err != nil {
			return err
		}
		return rows.WriteWeights(w, head, counts)
	})
}

// WeightsExtent returns the extent of Weights of a spec: all rows of a table, and of a container the rows that the
// conditions leave. It refuses options that Weights refuses.
func WeightsExtent(ctx context.Context, sp spec.Spec, o resources.Options, c WeightOptions) (e Extent, err error) {
	err = withTable(ctx, sp, o, func(sp spec.Spec, o resources.Options, t *rows.Table) error {
		e = Extent{t.N, t.Fingerprint}
		_, err := (&weighing{options: o, table: t}).compile(ctx, sp, c)
		return err
	})
	return e, err
}

// weighing is one pass of Weights, shared by its workers.
type weighing struct {
	options resources.Options
	table   *rows.Table
	head    rows.WeightsHeader
	lead    int            // column of the first raster field
	field   *pixels.Raster // the field whose pixels are counted
	source  string
	// classes has the numbers of the classes by their samples, for each dtype of assets; nil: all valid pixels count.
	classes map[chunk.DType]map[uint64]int
	seen    []atomic.Bool // of each class, whether a pixel has it
}

// CountWeights counts the cells of a share of the rows of an open table, for rows.WriteWeights.
func CountWeights(
	ctx context.Context, sp spec.Spec, o resources.Options, t *rows.Table, c WeightOptions, share *Share,
	progress func(done, total int64),
) (rows.WeightsHeader, []rows.CellCounts, error) {
	first, count, err := share.of(Extent{t.N, t.Fingerprint}, sp.Source)
	if err != nil {
		return rows.WeightsHeader{}, nil, err
	}
	made := &weighing{options: o, table: t}
	remote, err := made.compile(ctx, sp, c)
	if err != nil {
		return made.head, nil, err
	}
	out, err := made.count(ctx, sp, remote, first, count, progress)
	if err == nil && share == nil {
		err = fault.WithFile(rows.ClassesFound(&made.head, made.found()), made.source)
	} else { // other shares may have what this one lacks
		made.head.Found = made.found()
	}
	made.head.Rows = count
	return made.head, out, err
}

// count counts the cells of n rows from first on.
func (p *weighing) count(
	ctx context.Context, sp spec.Spec, remote bool, first, n int64, progress func(done, total int64),
) ([]rows.CellCounts, error) {
	out := make([]rows.CellCounts, n)
	visits := func(r *pixels.Reader) func(context.Context, int64) error {
		return func(ctx context.Context, i int64) (err error) {
			row := first + i
			if out[i], err = p.weigh(ctx, r, row); err == nil {
				return nil
			}
			if sp.BadSamples == spec.BadError || fault.KindOf(err) == 0 {
				return fmt.Errorf("sample %d: %w", row, err)
			}
			p.options.Logger.Warn("no weights", "sample", row, "error", fault.Line(err))
			out[i] = rows.CellCounts{}
			return nil
		}
	}
	return out, pixels.Sweep(ctx, p.options, remote, n, progress, visits)
}

// compile finds the fields in the first sample and makes the header. It reports whether files are
// remote.
func (p *weighing) compile(ctx context.Context, sp spec.Spec, c WeightOptions) (remote bool, _ error) {
	columns, err := rasterColumns(p.table, sp)
	if err != nil {
		return false, err
	}
	if p.table.Joined != nil {
		return false, errors.New("spec: fields have scenes of several datasets: weights are of the rows of one")
	}
	if err := p.table.Single(sp.Fields, "weights"); err != nil {
		return false, err
	}
	if c.Field == "" && len(columns) > 1 {
		names := make([]string, len(columns))
		for k, i := range columns {
			names[k] = sp.Fields[i].Name
		}
		return false, fmt.Errorf("count: %q are the raster fields: say whose pixels count", names)
	}
	assets, err := rows.FirstAssets(ctx, p.table, columns, sp.BadSamples, nil)
	if err != nil {
		return false, err
	}
	alignY, alignX := 1, 1
	for place, i := range columns {
		asset, name := assets[place], sp.Fields[i].Name
		if asset.Parts != nil && (c.Field == "" && place == len(columns)-1 || name == c.Field) {
			return false, asset.Fault(rows.InField(name, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"the pixels of a stack are not counted: count those of a field with one raster")))
		}
		remote = remote || asset.Remote()
		f, err := p.counted(ctx, &sp.Fields[i], asset)
		var field *pixels.Raster
		if err == nil {
			field, err = pixels.NewRaster(f, i, asset.Index)
		}
		if err == nil {
			field.Ratio, err = pixels.NewRatio(assets[0].Index, asset.Index)
		}
		if err != nil {
			return false, asset.Fault(rows.InField(name, err))
		}
		// A cell has whole pixels in every field, as windows have.
		alignY, alignX = pixels.Lcm(alignY, field.Ratio.DenY), pixels.Lcm(alignX, field.Ratio.DenX)
		if c.Field == "" || name == c.Field {
			p.field = field
		}
	}
	if p.field == nil {
		return false, fmt.Errorf("spec: no raster field is called %q", c.Field)
	}
	cell := cmp.Or(c.Cell, 64)
	if cell < 1 || cell > spec.MaxWindow {
		return false, fmt.Errorf("cell is %d: it must be in 1..%d pixels", cell, spec.MaxWindow)
	}
	if err := p.setClasses(&c); err != nil {
		return false, err
	}
	p.lead, p.source = columns[0], sp.Source
	p.head = rows.WeightsHeader{
		Version: 1, Rows: p.table.N, CellHeight: rows.RoundUp(cell, alignY), CellWidth: rows.RoundUp(cell, alignX),
		Field: p.field.Name, Classes: c.Classes,
	}
	p.head.Samples, err = rows.SamplesOf(ctx, p.table)
	return remote, err
}

// counted returns a field as its pixels are counted: as stored, without casts.
func (p *weighing) counted(ctx context.Context, f *spec.Field, first catalog.Asset) (out spec.Field, err error) {
	out = spec.Field{Name: f.Name, DType: "float32", Layout: spec.DefaultLayout, Ground: f.Ground, NoData: f.NoData,
		Bands: f.Bands, BandNames: f.BandNames, Times: f.Times, ByPosition: f.ByPosition}
	if first.Index.DType.Components() > 1 {
		out.DType = "native"
	}
	if first.Index.Times > 0 || len(f.Times) > 0 {
		out.Layout = spec.TimeLayout
	}
	if f.BandNames != nil {
		out.Bands, err = p.named(ctx, f.BandNames, first)
	}
	return out, err
}

// named returns the numbers of bands in an asset by their names.
func (p *weighing) named(ctx context.Context, want []string, a catalog.Asset) ([]int, error) {
	names, err := rows.BandNames(ctx, p.options.Opener, a)
	if names == nil && err == nil && p.table.BandNames != nil {
		names = p.table.BandNames()
	}
	if err != nil {
		return nil, err
	}
	bands, err := pixels.PickBands(names, want)
	if err == nil && slices.Max(bands) >= a.Index.StepBands() {
		err = fault.New(fault.Corrupt, "bands", fault.NoOffset, "%d names of %d bands", len(names), a.Index.StepBands())
	}
	return bands, err
}

// setClasses finds the classes as samples of the field have them. A class that its dtype lacks is an error.
func (p *weighing) setClasses(c *WeightOptions) error {
	if len(c.Classes) == 0 {
		return nil
	}
	p.classes, p.seen = map[chunk.DType]map[uint64]int{}, make([]atomic.Bool, len(c.Classes))
	for dtype := chunk.DType(1); dtype.Valid(); dtype++ {
		p.classes[dtype] = samplesOf(dtype, c.Classes)
	}
	if len(p.classes[p.field.Native]) == len(c.Classes) {
		return nil
	}
	for _, class := range c.Classes {
		if len(samplesOf(p.field.Native, []float64{class})) == 0 {
			return fmt.Errorf("classes: %s, which field %q has, has no %v", p.field.Native, p.field.Name, class)
		}
	}
	return nil // a class is given twice
}

// samplesOf returns the numbers of classes by their samples of a dtype, without those that the dtype lacks.
func samplesOf(dtype chunk.DType, classes []float64) map[uint64]int {
	out, num := map[uint64]int{}, dtype.Num()
	for k, class := range classes {
		match, ok := kernel.MatchValue(num, class)
		bits := match.A
		if num.IsFloat() {
			bits, ok = kernel.FloatBits(num, class+0), dtype.Size() == 8 || float64(float32(class)) == class
		}
		if _, twice := out[bits]; ok && num != kernel.None && !twice {
			out[bits] = k
		}
	}
	return out
}

// found returns which classes a pixel has.
func (p *weighing) found() []bool {
	var out []bool
	for _, class := range p.head.Classes[:len(p.seen)] {
		out = append(out, p.seen[slices.Index(p.head.Classes, class)].Load()) // one that is given twice has one number
	}
	return out
}

// weigh counts one asset, some rows of it at a time.
func (p *weighing) weigh(ctx context.Context, r *pixels.Reader, at int64) (w rows.CellCounts, err error) {
	field := p.field
	lead, err := p.table.Fields[p.lead].Asset(ctx, at)
	if err != nil {
		return w, err
	}
	asset, err := p.table.Fields[field.TableColumn].Asset(ctx, at)
	if err != nil {
		return w, err
	}
	index := asset.Index
	if err := field.Accepts(&asset); err != nil {
		return w, asset.Fault(err)
	}
	if !field.Ratio.Holds(lead.Index, index) {
		return w, asset.Fault(fault.New(fault.Unsupported, "asset", fault.NoOffset,
			"%d by %d pixels do not share a grid with the first field's", index.Height, index.Width))
	}
	if err := field.SameGround(&lead, &asset); err != nil {
		return w, asset.Fault(err)
	}
	height, width := lead.Index.Height, lead.Index.Width
	across := rows.RoundUp(width, p.head.CellWidth) / p.head.CellWidth
	w = rows.CellCounts{
		Height: uint32(height), Width: uint32(width),
		Cells: make([]uint32, across*(rows.RoundUp(height, p.head.CellHeight)/p.head.CellHeight)),
	}
	cell := field.Ratio.Scale(shuffle.Box{H: p.head.CellHeight, W: p.head.CellWidth})
	planes := field.Picked
	if field.BandNames != nil {
		bands, err := p.named(ctx, field.BandNames, asset)
		if err != nil {
			return w, asset.Fault(err)
		}
		planes = field.PlanesOf(bands, index).Picked
	}
	convs := &pixels.Converters{Base: einops.Convert{From: index.DType, To: index.DType}, Nodata: true,
		Said: field.Final.Said, NaN: field.NoData == nil} // as for a tensor of validity
	if p.classes != nil {
		planes, convs = planes[:1], convs.Of(0, 1)
	}
	// A strip is as high as a row of chunks, so that each chunk is decoded once. A sample of it takes a byte more, for
	// its validity, and MaxChunkBytes bounds the strip.
	size := index.DType.Size()
	strip := max(1, min(index.Height, index.ChunkH, p.options.MaxChunkBytes/((size+1)*len(planes)*index.Width)))
	for line := 0; line < index.Height; line += strip {
		win := shuffle.Box{Y: line, H: min(strip, index.Height-line), W: index.Width}
		if err := r.Planes(ctx, asset, planes, win, convs, size); err != nil {
			return w, err
		}
		p.tally(&r.Resample, win, index.DType, func(i int) {
			w.Cells[(line+i/index.Width)/cell.H*across+i%index.Width/cell.W]++
		})
	}
	return w, nil
}

// tally calls add with the pixels of a window that count: those of a class in the first band or, without classes, those
// that are valid in one of the bands, as in GDAL's mask of a dataset.
func (p *weighing) tally(s *pixels.Resampler, win shuffle.Box, dtype chunk.DType, add func(i int)) {
	n, size, classes := win.H*win.W, dtype.Size(), p.classes[dtype]
	negative := uint64(0) // zero, which equals zero
	if dtype.Num().IsFloat() {
		negative = 1 << (8*size - 1)
	}
	for i := range n {
		if p.classes == nil {
			for pos := i; pos < len(s.InValid); pos += n {
				if s.InValid[pos] != 0 {
					add(i)
					break
				}
			}
			continue
		}
		bits := cast.Uint(s.In[i*size:], size)
		if bits == negative {
			bits = 0
		}
		if k, ok := classes[bits]; ok && s.InValid[i] != 0 {
			add(i)
			if !p.seen[k].Load() {
				p.seen[k].Store(true)
			}
		}
	}
}
