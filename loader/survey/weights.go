package survey

import (
	"bytes"
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
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// WeightOptions say what Weights counts.
type WeightOptions struct {
	// Field is the raster field to look at, or one of shapes, whose boxes and polygons count as a mask has them.
	// Default: the only raster field.
	Field string
	// Classes are the stored values to count in the first band that the field picks: of colours their numbers, of
	// shapes their values, with 0 where none is. A value that no pixel has is an error. Default: pixels that are valid
	// in one of the picked bands, or not 0 of shapes.
	Classes []float64
	// Cell is the side of a cell in pixels of the first raster field, at most 65536. It is rounded
	// up to a multiple that the grids of all fields share. Default 64.
	Cell int
}

// Weights counts the valid pixels, or the pixels of some classes, in the cells of the assets in a share of the rows. It
// writes the file that the sampler WeightedWindow reads to w; MergeWeights joins the files of shares. A sample
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
		return WriteWeights(w, head, counts)
	})
}

// weighing is one pass of Weights, shared by its workers.
type weighing struct {
	options resources.Options
	table   *rows.Table
	head    rows.WeightsHeader
	lead    int            // column of the first raster field
	field   *pixels.Raster // the field whose pixels are counted, or whose grid shapes are drawn on
	spec    spec.Field     // what it is made of
	shapes  *shapes.Field  // the field whose shapes are counted, else nil
	dtype   chunk.DType    // of the samples of the first asset that are counted
	source  string
	// classes has the numbers of the classes by their samples, for each dtype of assets; nil: all valid pixels count.
	classes   map[chunk.DType]map[uint64]int
	classSeen []atomic.Bool // of each class, whether a pixel has it
}

// CountWeights counts the cells of a share of the rows of an open table, for WriteWeights.
func CountWeights(
	ctx context.Context, sp spec.Spec, o resources.Options, t *rows.Table, c WeightOptions, share *Share,
	progress func(done, total int64),
) (rows.WeightsHeader, []CellCounts, error) {
	first, count, err := share.of(Extent{t.N, t.Fingerprint}, sp.Source)
	if err != nil {
		return rows.WeightsHeader{}, nil, err
	}
	made := &weighing{options: o, table: t}
	remote, err := made.compile(ctx, sp, c)
	defer func() { _ = made.close() }() // files of shapes are only read
	if err != nil {
		return made.head, nil, err
	}
	out, err := made.count(ctx, sp, remote, first, count, progress)
	if err == nil && share == nil {
		err = fault.WithFile(classesFound(&made.head, made.classesSeen()), made.source)
	} else { // other shares may have what this one lacks
		made.head.Found = made.classesSeen()
	}
	made.head.Rows = count
	return made.head, out, err
}

// count counts the cells of n rows from first on.
func (p *weighing) count(
	ctx context.Context, sp spec.Spec, remote bool, first, n int64, progress func(done, total int64),
) ([]CellCounts, error) {
	out := make([]CellCounts, n)
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
			out[i] = CellCounts{}
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
		return false, errors.New("spec: fields have scenes of several datasets: weights are of the rows of one: " +
			"give that dataset alone")
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
	columns = rows.LeadFirst(sp.Fields, columns)
	assets, err := rows.FirstOf(ctx, p.table, sp.Fields, columns, sp.BadSamples, nil)
	if err != nil {
		return false, err
	}
	alignY, alignX := 1, 1
	for place, i := range columns {
		asset, name := assets[place].Asset, sp.Fields[i].Name
		remote = remote || asset.Remote()
		if _, err := rows.CheckTimes(ctx, p.table, i, &sp.Fields[i], &asset); err != nil {
			return false, err
		}
		field, err := p.counted(ctx, sp.Fields[i], i, &asset, len(c.Classes) > 0)
		if err == nil {
			lead := p.table.Lead(ctx, columns[0], &assets[0], &assets[place])
			field.Ratio, err = pixels.NewRatio(lead.Index, asset.Index)
		}
		if err != nil {
			return false, asset.Fault(rows.InField(name, err))
		}
		// A cell has whole pixels in every field, as windows have.
		alignY, alignX = pixels.Lcm(alignY, field.Ratio.DenY), pixels.Lcm(alignX, field.Ratio.DenX)
		if c.Field == "" || name == c.Field || place == 0 {
			p.field, p.spec = field, sp.Fields[i]
		}
	}
	name := cmp.Or(c.Field, p.field.Name)
	if p.dtype = p.field.Native; p.field.Coloured() {
		p.dtype = p.field.Tensor().To
	}
	if name != p.field.Name {
		if err := p.openShapes(ctx, sp, name, columns[0]); err != nil {
			return false, err
		}
		p.dtype = p.shapes.To
	}
	cell := cmp.Or(c.Cell, 64)
	if cell < 1 || cell > spec.MaxWindow {
		return false, fmt.Errorf("cell is %d: it must be in 1..%d pixels", cell, spec.MaxWindow)
	}
	if err := p.setClasses(name, &c); err != nil {
		return false, err
	}
	p.lead, p.source = columns[0], sp.Source
	p.head = rows.WeightsHeader{
		Version: 1, Rows: p.table.N, CellHeight: rows.RoundUp(cell, alignY), CellWidth: rows.RoundUp(cell, alignX),
		Field: name, Classes: c.Classes,
	}
	p.head.Samples, err = rows.SamplesOf(ctx, p.table)
	return remote, err
}

// counted returns a field as its pixels are counted: as stored, without casts. Colours are counted as their numbers.
// The parts of a stack are resampled for classes by the nearest pixel. Otherwise only counts which pixels are valid:
// where the nearest pixel is, or as antialiasing says if the field asks for it.
func (p *weighing) counted(ctx context.Context, f spec.Field, column int, first *catalog.Asset, classes bool) (
	*pixels.Raster, error) {
	out := spec.Field{Name: f.Name, DType: "float32", Ground: f.Ground, NoData: f.NoData,
		Bands: f.Bands, BandNames: f.BandNames, Times: f.Times, ByPosition: f.ByPosition}
	index := *first.Index
	if index.DType.Components() > 1 {
		out.DType = "native"
	}
	var err error
	if f.BandNames != nil {
		if out.Bands, err = p.named(ctx, f.BandNames, *first); err != nil {
			return nil, err
		}
	}
	switch {
	case f.LUT.OfColours():
		out.DType, out.LUT, out.Fill, out.Clip, out.Validity = f.DType, f.LUT, f.Fill, f.Clip, "valid"
	case first.Parts != nil:
		out.Validity, out.Resample = "valid", f.Resample
		if classes {
			out.Bands, out.Resample = slices.Clone(out.Bands)[:min(1, len(out.Bands))], spec.Nearest
			if out.Bands == nil {
				out.Bands = []int{0}
			}
			band := out.Bands[0]
			for _, part := range first.Parts { // the last one that begins with the band, or before it
				if band >= 0 {
					index.DType = part.Index.DType
				}
				band -= part.Index.DataBands()
			}
			out.DType = index.DType.String()
		}
	}
	field, err := pixels.NewRaster(out, column, &index)
	if err == nil {
		err = field.CompileParts(first)
	}
	return field, err
}

// openShapes opens the field of shapes of a name, which are drawn on the rasters of column lead.
func (p *weighing) openShapes(ctx context.Context, sp spec.Spec, name string, lead int) (err error) {
	column := len(spec.RowFields(sp.Fields)) // of the table, where files of patterns follow
	for _, f := range sp.Fields[column:] {
		if f.Name != name {
			if f.Vector.Pattern != "" {
				column++
			}
			continue
		}
		if p.shapes, err = shapes.Open(ctx, f, p.table, column, p.options); err != nil {
			return rows.InField(name, err)
		}
		if found := p.shapes.Names(); found != nil {
			err = p.shapes.Number(found)
		}
		if err == nil {
			err = p.shapes.Own(ctx, p.table, lead, nil)
		}
		if err != nil {
			err = rows.InField(name, err)
		}
		return err
	}
	return fmt.Errorf("count is %q: no field of rasters or shapes has this name", name)
}

// close closes the file of shapes.
func (p *weighing) close() error {
	if p.shapes == nil {
		return nil
	}
	return p.shapes.Close()
}

// named returns the numbers of bands in an asset by their names.
func (p *weighing) named(ctx context.Context, want []string, a catalog.Asset) ([]int, error) {
	names, err := p.table.NamesIn(ctx, p.options.Opener, a)
	if err != nil {
		return nil, err
	}
	return pixels.PickBandsIn(a.Index, names, want)
}

// setClasses finds the classes as samples of the field have them. A class that its dtype lacks is an error.
func (p *weighing) setClasses(name string, c *WeightOptions) error {
	if len(c.Classes) == 0 {
		return nil
	}
	p.classes, p.classSeen = map[chunk.DType]map[uint64]int{}, make([]atomic.Bool, len(c.Classes))
	for dtype := chunk.DType(1); dtype.Valid(); dtype++ {
		p.classes[dtype] = samplesOf(dtype, c.Classes)
	}
	for _, class := range c.Classes {
		if len(samplesOf(p.dtype, []float64{class})) == 0 {
			return fmt.Errorf("classes: %s, which field %q has, has no %v", p.dtype, name, class)
		}
	}
	return nil
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

// classesSeen returns which classes a pixel has.
func (p *weighing) classesSeen() []bool {
	var out []bool
	for _, class := range p.head.Classes[:len(p.classSeen)] {
		k := slices.Index(p.head.Classes, class) // a class that is listed twice is counted at its first place
		out = append(out, p.classSeen[k].Load())
	}
	return out
}

// pixelStrip is some rows of what is counted: planes of samples, and a byte for each that is 0 where it is missing.
type pixelStrip struct {
	dtype       chunk.DType
	data, valid []byte
}

// weigh counts one asset, some rows of it at a time.
func (p *weighing) weigh(ctx context.Context, r *pixels.Reader, at int64) (w CellCounts, err error) {
	field := p.field
	lead, err := p.table.Fields[p.lead].Asset(ctx, at)
	if err != nil {
		return w, err
	}
	height, width := lead.Index.Height, lead.Index.Width
	across := rows.RoundUp(width, p.head.CellWidth) / p.head.CellWidth
	w = CellCounts{
		Height: uint32(height), Width: uint32(width),
		Cells: make([]uint32, across*(rows.RoundUp(height, p.head.CellHeight)/p.head.CellHeight)),
	}
	if p.table.Lacks(field.TableColumn, at) {
		return w, nil // nothing counts
	}
	asset, err := p.table.Fields[field.TableColumn].Asset(ctx, at)
	if errors.Is(err, rows.ErrLacks) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	index := asset.Index
	if err := field.Accepts(&asset); err != nil {
		return w, asset.Fault(err)
	}
	if !field.Ratio.Holds(lead.Index, index) {
		return w, asset.Fault(fault.New(fault.Unsupported, "asset",
			"%d by %d pixels do not share a grid with the first field's", index.Height, index.Width))
	}
	if err := field.SameGround(&lead, &asset); err != nil {
		return w, asset.Fault(err)
	}
	cell := field.Ratio.Scale(shuffle.Box{H: p.head.CellHeight, W: p.head.CellWidth})
	read, each, err := p.reads(ctx, r, at, &asset)
	if err != nil {
		return w, asset.Fault(err)
	}
	tall := max(1, stripHeight(index, each, p.options.MaxChunkBytes))
	for line := 0; line < index.Height; line += tall {
		win := shuffle.Box{Y: line, H: min(tall, index.Height-line), W: index.Width}
		found, err := read(win)
		if err != nil {
			return w, asset.Fault(err)
		}
		p.tally(found, win.H*win.W, func(i int) {
			w.Cells[(line+i/index.Width)/cell.H*across+i%index.Width/cell.W]++
		})
	}
	return w, nil
}

// reads returns a function that reads a strip of an asset, and how many bytes it takes for each pixel.
func (p *weighing) reads(ctx context.Context, r *pixels.Reader, row int64, asset *catalog.Asset) (
	read func(win shuffle.Box) (pixelStrip, error), each int, err error) {
	field, index := p.field, asset.Index
	if p.shapes != nil {
		draw := func(win shuffle.Box) (pixelStrip, error) { return p.drawStrip(ctx, row, asset, win) }
		return draw, p.dtype.Size() + 1, nil
	}
	var named []int
	if field.BandNames != nil {
		if named, err = p.named(ctx, field.BandNames, *asset); err != nil {
			return nil, 0, err
		}
	}
	bands := field.PlanesOf(named, index)
	if field.Parts != nil || field.Coloured() {
		if field.Coloured() {
			field, err = field.For(index)
		} else if p.classes != nil { // files may differ in dtype
			field, err = p.counted(ctx, p.spec, field.TableColumn, asset, true)
		}
		if err != nil {
			return nil, 0, err
		}
		tensor := field.Tensor()
		planes, size := len(tensor.Picked), tensor.To.Size()
		return func(win shuffle.Box) (pixelStrip, error) {
			n := planes * win.H * win.W
			found := pixelStrip{tensor.To, make([]byte, n*size), make([]byte, n)}
			err := readLaid(ctx, r, field.Sized(win.H, win.W), *asset, bands, win,
				einops.Target{Data: found.data, Mask: found.valid}, p.options.MaxChunkBytes)
			return found, err
		}, planes * (size + 1), nil
	}
	planes := bands.Picked
	convs := &pixels.Converters{Base: einops.Convert{From: index.DType, To: index.DType}, Nodata: true,
		Said: field.Final.Said, NaN: field.NoData == nil} // as for a tensor of validity
	if p.classes != nil {
		planes = planes[:1]
	}
	size := index.DType.Size()
	return func(win shuffle.Box) (pixelStrip, error) {
		err := r.Planes(ctx, *asset, planes, win, convs, size)
		return pixelStrip{index.DType, r.Resample.In, r.Resample.InValid}, err
	}, len(planes) * (size + 1), nil
}

// drawStrip draws the shapes of a strip of an asset as a mask has them: 0 is where none is. For classes all pixels are
// valid, otherwise those that are not 0.
func (p *weighing) drawStrip(ctx context.Context, row int64, a *catalog.Asset, win shuffle.Box) (pixelStrip, error) {
	n, size := win.H*win.W, p.dtype.Size()
	out := pixelStrip{p.dtype, make([]byte, n*size), bytes.Repeat([]byte{1}, n)}
	picture, err := p.shapes.Picture(ctx, row, a, win, win.H, win.W, shuffle.Identity)
	if err == nil {
		err = picture.Draw(ctx, out.data)
	}
	if err != nil {
		return out, rows.InField(p.head.Field, err)
	}
	for i := range n {
		if p.classes == nil && cast.Uint(out.data[i*size:], size) == 0 {
			out.valid[i] = 0
		}
	}
	return out, nil
}

// tally calls add with the pixels of a strip of n that count: pixels of a class in the first band or, without
// classes, pixels that are valid in one of the bands, as in GDAL's mask of a dataset.
func (p *weighing) tally(s pixelStrip, n int, add func(i int)) {
	size, classes := s.dtype.Size(), p.classes[s.dtype]
	negative := uint64(0) // zero, which equals zero
	if s.dtype.Num().IsFloat() {
		negative = 1 << (8*size - 1)
	}
	for i := range n {
		if p.classes == nil {
			for pos := i; pos < len(s.valid); pos += n {
				if s.valid[pos] != 0 {
					add(i)
					break
				}
			}
			continue
		}
		bits := cast.Uint(s.data[i*size:], size)
		if bits == negative {
			bits = 0
		}
		if k, ok := classes[bits]; ok && s.valid[i] != 0 {
			add(i)
			if !p.classSeen[k].Load() {
				p.classSeen[k].Store(true)
			}
		}
	}
}

// readLaid reads a window of a stack or a raster of colours into dst as a batch has it: planes of samples of the
// tensor's dtype, and their validity if the field names one. The field must have the size of the window. For a raster,
// bands are the bands of the asset. limit is as for Reader.Warped.
func readLaid(ctx context.Context, r *pixels.Reader, f *pixels.Raster, a catalog.Asset, bands *pixels.PickedBands,
	win shuffle.Box, dst einops.Target, limit int) error {
	tensor := f.Tensor()
	plan, err := pixels.PlanPlanes(&tensor.PickedBands, win.H, win.W)
	if err != nil {
		return err
	}
	convert, err := tensor.Final.Get(&chunk.Index{}, nil)
	if err != nil {
		return a.Fault(err)
	}
	target := &pixels.Row{Field: tensor, Plan: plan, Dst: dst, Cv: convert, Win: win}
	if f.Parts == nil {
		in := pixels.Inside(win, a.Index.Height, a.Index.Width)
		read := func(to *pixels.Row, c *pixels.Converters) error {
			to.Bands = bands
			return r.Read(ctx, a, in, bands.Picked, to, to.Masked(c, in))
		}
		return a.Fault(r.Coloured(f, a.Index, target, tensor.Final, read))
	}
	part := func(row *pixels.Row, k int, part *pixels.Raster, l *pixels.Lay) error {
		asset := a.Parts[k]
		bands := part.PlanesOf(nil, asset.Index)
		convert, err := part.Final.Get(asset.Index, bands)
		if err != nil {
			return asset.Fault(err)
		}
		target := new(*row)
		target.Field, target.Bands, target.Cv = part, bands, convert
		defer target.PadSteps()
		if l.Same {
			return r.Aligned(ctx, asset, l, win, target, target.Masked(part.Final, l.Inside(win)))
		}
		mapping, err := l.Warp(win, win.H, win.W)
		if err != nil {
			return asset.Fault(err)
		}
		target.Win = shuffle.Box{H: win.H, W: win.W}
		return r.Warped(ctx, asset, l, mapping, win, target, limit)
	}
	return r.Coloured(f, a.Index, target, nil, func(row *pixels.Row, _ *pixels.Converters) error {
		return f.EachPart(&a, func(k int, of *pixels.Raster, l *pixels.Lay) error { return part(row, k, of, l) })
	})
}
