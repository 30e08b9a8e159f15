package survey

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/stats/moments"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Stats measures the bands of every raster field of the spec's dataset in one parallel pass: those that the field
// picks, in its order, or all. It reads the rows that the conditions and the split leave. Nodata and masked pixels are
// left out and counted as nodata. The sampler and the normalisation of the spec have no effect, and
// Options.Workers leaves the result alone. A sample that cannot be read ends the pass; with any other policy than
// BadError it is left out as a whole and counted, since substitutes and fill values are no measurements. progress, if
// not nil, is called after every sample, by one goroutine at a time. A mixture is an error.
func Stats(
	ctx context.Context, sp spec.Spec, o resources.Options, progress func(done, total int64),
) (*stats.Report, error) {
	part, err := StatsPart(ctx, sp, o, nil, progress)
	if err != nil {
		return nil, err
	}
	return part.Report(sp.WithDefaults().Fields), nil
}

// measured returns the spec with a policy of bad samples for measuring: substitutes and fill values are no
// measurements.
func measured(sp spec.Spec) spec.Spec {
	if sp.BadSamples == spec.BadReplace || sp.BadSamples == spec.BadFill {
		sp.BadSamples = spec.BadSkip
	}
	return sp
}

// pass is one pass over a dataset. Its workers share it.
type pass struct {
	spec    spec.Spec
	options resources.Options
	table   *rows.Table
	columns []int      // the columns of the raster fields
	rasters []rasterOf // rasters to measure: of each field its raster, or the rasters of its stack
	remote  bool       // the first assets of some columns are not local

	mu      sync.Mutex // of what follows
	skipped int64
	bad     map[int64]error
}

// rasterOf is the raster of a field, or one of a stack, which is measured by its own pixels.
type rasterOf struct {
	field int      // of the spec
	part  int      // of the stack, or 0
	names []string // of the bands, by the first file or the columns of a stack; nil if they have none
	// described matches the bands of other files by their descriptions.
	described described
	measured  chunk.DType // the dtype of the first file or, with physical values, theirs
	missing   [][]float64 // nodata values of each band that the field says; nil: it says none
}

// rastersOf returns the rasters that an asset consists of.
func rastersOf(a catalog.Asset) []catalog.Asset {
	if a.Parts != nil {
		return a.Parts
	}
	return []catalog.Asset{a}
}

// measure measures count of the given rows from first on. Names, dtypes and numbers of bands come from the first of
// all rows, whatever is measured, so parts fit together.
func measure(
	ctx context.Context, sp spec.Spec, o resources.Options, t *rows.Table, rows shuffle.Rows, first, count int64,
	progress func(done, total int64),
) (*Part, error) {
	made := &pass{spec: sp, options: o, table: t, bad: map[int64]error{}}
	var err error
	if made.columns, err = rasterColumns(t, sp); err != nil {
		return nil, err
	}
	total, err := made.fields(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := &Part{}
	for k, raster := range made.rasters {
		out.Fields = append(out.Fields, PartField{Name: sp.Fields[raster.field].Name, Bands: raster.names,
			Physical: raster.described.field.IsPhysical(), Stats: []*moments.Field{total[k]}})
	}
	// Each worker has accumulators of its own, so samples need no lock.
	var parts [][]dtypeStats
	visits := func(r *pixels.Reader) func(context.Context, int64) error {
		mine := make([]dtypeStats, len(total))
		for k, f := range total {
			mine[k] = dtypeStats{}
			_, _ = mine[k].of(f.DType(), f.Bands()) // total was made of the same
		}
		parts = append(parts, mine)
		return func(ctx context.Context, i int64) error {
			return made.visit(ctx, r, mine, rows.At(first+i))
		}
	}
	if err := pixels.Sweep(ctx, o, made.remote, count, progress, visits); err != nil {
		return nil, err
	}
	for k := range out.Fields {
		for _, mine := range parts {
			for _, f := range mine[k] {
				if err := out.Fields[k].merge(f); err != nil {
					return nil, err
				}
			}
		}
	}
	out.Samples, out.Skipped, out.Bad = count-made.skipped, made.skipped, made.bad
	return out, nil
}

// dtypeStats are the accumulators of a raster, by the dtypes of its files.
type dtypeStats map[chunk.DType]*moments.Field

// of returns the accumulator of a dtype.
func (d dtypeStats) of(dtype chunk.DType, bands int) (*moments.Field, error) {
	if f := d[dtype]; f != nil {
		return f, nil
	}
	made, err := moments.NewField(dtype, bands)
	if err == nil {
		d[dtype] = made
	}
	return made, err
}

// fields returns an empty accumulator for each raster of each field, with the dtype and the number of
// bands of the first sample that can be read. It also sets remote and rasters.
func (p *pass) fields(ctx context.Context, selected []uint32) ([]*moments.Field, error) {
	var out []*moments.Field
	first, err := rows.FirstOf(ctx, p.table, p.spec.Fields, p.columns, p.spec.BadSamples, selected)
	if err != nil {
		return nil, err
	}
	for k, i := range p.columns {
		given, before := &p.spec.Fields[i], 0
		pixels.SetPhysical(given, &first[k].Asset)
		if _, err := rows.CheckTimes(ctx, p.table, i, given, &first[k].Asset); err != nil {
			return nil, err
		}
		for part, asset := range rastersOf(first[k].Asset) {
			p.remote = p.remote || asset.Remote()
			dtype := asset.Index.DType
			if given.IsPhysical() {
				dtype = chunk.Float32
			}
			field, err := moments.NewField(dtype, measuredBands(given, asset.Index))
			if err != nil {
				return nil, asset.Fault(rows.InField(given.Name, err))
			}
			out = append(out, field)
			names, err := p.namesOf(ctx, asset, given, field.Bands())
			if err != nil {
				return nil, asset.Fault(rows.InField(given.Name, err))
			}
			match := described{field: given, names: names, first: asset.Name()}
			if names == nil && part < len(given.Columns) && field.Bands() == 1 {
				names = []string{given.Columns[part]}
			}
			missing, err := saidOf(given, before, field.Bands(), match.names)
			if err != nil {
				return nil, asset.Fault(rows.InField(given.Name, err))
			}
			before += field.Bands()
			p.rasters = append(p.rasters, rasterOf{i, part, names, match, dtype, missing})
		}
		for _, b := range given.Bands {
			if b >= before {
				return nil, first[k].Asset.Fault(rows.InField(given.Name, fault.New(fault.Unsupported, "asset",
					"it has %d bands, and the field picks band %d", before, b)))
			}
		}
	}
	return out, nil
}

// maxBad is how many samples a Part names that cannot be read: enough to find out what is wrong with a dataset.
const maxBad = 8

// visit adds one sample to the accumulators. With BadSkip it leaves out a sample that cannot be read,
// and counts it.
func (p *pass) visit(ctx context.Context, r *pixels.Reader, fields []dtypeStats, row int64) error {
	err := p.sample(ctx, r, fields, row)
	if err == nil {
		return nil
	}
	if p.spec.BadSamples != spec.BadSkip || fault.KindOf(err) == 0 {
		return fmt.Errorf("sample %d: %w", row, err)
	}
	p.options.Logger.Warn("skipped", "sample", row, "error", fault.Line(err))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skipped++; len(p.bad) < maxBad {
		p.bad[row] = err
	}
	return nil
}

// sample adds one sample to the accumulators.
func (p *pass) sample(ctx context.Context, r *pixels.Reader, fields []dtypeStats, row int64) error {
	// Decoding it once before ensures that a sample that fails half way adds nothing.
	if p.spec.BadSamples == spec.BadSkip {
		if err := p.read(ctx, r, row, fields, false); err != nil {
			return err
		}
	}
	return p.read(ctx, r, row, fields, true)
}

// read reads the rasters of a sample, and adds them to fields if adds is true.
func (p *pass) read(ctx context.Context, r *pixels.Reader, row int64, fields []dtypeStats, adds bool) error {
	var steps []catalog.Asset // of the field; one, but for steps of time that are files
	for place, raster := range p.rasters {
		if p.table.Lacks(raster.field, row) {
			continue
		}
		if raster.part == 0 {
			var err error
			if steps, err = assetsOf(ctx, p.table, raster.field, row); err != nil {
				return err
			}
		}
		for _, a := range steps {
			if err := p.raster(ctx, r, &p.rasters[place], rastersOf(a)[raster.part], fields[place], adds); err != nil {
				return err
			}
		}
	}
	return nil
}

// raster reads a raster of a sample, checks that it is like the others, and adds it to the statistics of its dtype
// if adds is true.
func (p *pass) raster(ctx context.Context, r *pixels.Reader, from *rasterOf, a catalog.Asset, all dtypeStats,
	adds bool) error {
	index, first := a.Index, all[from.measured]
	bands := measuredBands(from.described.field, index)
	if bands != first.Bands() && from.described.field.BandNames == nil {
		return a.Fault(fault.New(fault.Unsupported, "asset", "it has %d bands: other rasters of the field %q have %d",
			bands, p.spec.Fields[from.field].Name, first.Bands()))
	}
	physical := from.described.field.IsPhysical()
	dtype := index.DType
	if physical {
		dtype = from.measured
	}
	f, err := all.of(dtype, first.Bands())
	if err != nil {
		return a.Fault(err)
	}
	places, err := p.places(ctx, &from.described, a)
	if err != nil {
		return err
	}
	// Of physical values nodata is not found again.
	masked := from.missing != nil || physical || !index.OneNoData()
	if f.NoData(nil, nil); !masked {
		f.NoData(index.Missing())
	}
	whole := chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}
	if !index.Timed() {
		whole.B1 = bands
	}
	tallied := &tally{field: f, places: places}
	if p.table.Fields[from.field].Steps == nil { // of steps that are files there are only those that the field picks
		tallied.times = from.described.field.Times
	}
	switch {
	case !adds:
		return r.Read(ctx, a, whole, nil, pixels.Nowhere{}, pixels.Nowhere{})
	case index.Masking() == nil && !masked:
		return r.Read(ctx, a, whole, nil, tallied, nil)
	}
	return p.masked(ctx, r, a, whole, from, tallied)
}

// measuredBands returns how many of the first bands of a raster are measured: those up to the last one that the field
// picks, or all but alpha. Names may be the names of any band.
func measuredBands(f *spec.Field, x *chunk.Index) int {
	switch {
	case f.BandNames != nil:
		return x.StepBands()
	case f.Bands != nil && !f.Stacked():
		return min(slices.Max(f.Bands)+1, x.StepBands())
	}
	return x.DataBands()
}

// masked adds box whole of an asset with a mask, whose nodata values the field says, or whose physical values count:
// some bands at a time, in strips that are as tall as the chunks of both if they fit into the memory, so each
// chunk is decoded once.
func (p *pass) masked(ctx context.Context, r *pixels.Reader, a catalog.Asset, whole chunk.Box, from *rasterOf,
	to *tally) error {
	index, limit := a.Index, p.options.MaxChunkBytes
	dtype := to.field.DType()
	size := dtype.Size()
	convs := &pixels.Converters{Base: einops.Convert{From: index.DType, To: dtype}, Nodata: true,
		Physical: from.described.field.IsPhysical()}
	if from.missing != nil {
		convs.Said = make([][]float64, index.Bands)
		for b := range convs.Said {
			if place := to.place(index, b); place != unmeasured {
				convs.Said[b] = from.missing[place]
			}
		}
	}
	maxBands := limit / (size * index.Width) // bands of a row
	if maxBands == 0 {
		return a.Fault(fault.New(fault.Limit, "mask",
			"a row of %d pixels with their mask at once, at most %d bytes", index.Width, limit))
	}
	for first := 0; first < whole.B1; {
		var bands []int
		for b := first; b < min(first+min(index.ChunkB, maxBands), whole.B1); b++ {
			bands = append(bands, b)
		}
		height := stripHeight(index, size*len(bands), limit)
		for y := 0; y < index.Height; y += height {
			win := shuffle.Box{Y: y, H: min(height, index.Height-y), W: index.Width}
			if err := r.Planes(ctx, a, bands, win, convs.Of(first, len(bands)), size); err != nil {
				return err
			}
			for k, b := range bands {
				plane := k * win.H * win.W
				to.valid(index, b, r.Resample.In[plane*size:], r.Resample.InValid[plane:][:win.H*win.W])
			}
		}
		first += len(bands)
	}
	return nil
}

// stripHeight returns how many rows of an image are read at a time: the height of its chunks, or a multiple for taller
// chunks of its mask, so each is decoded once, but at most as many as fit into limit bytes, where a pixel has each
// bytes; 0 if a single row does not fit.
func stripHeight(x *chunk.Index, each, limit int) int {
	tall := x.ChunkH
	if mask := x.Masking(); mask != nil {
		tall = rows.RoundUp(max(tall, mask.ChunkH), tall)
	}
	return min(tall, limit/(each*x.Width))
}

// tally is a sink that adds the pixels of chunks to a field, without the padding of chunks at the edge.
type tally struct {
	field  *moments.Field
	places []int  // the band of the field that each band of the file is; nil: the same
	times  []int  // the steps of time that the field picks; nil: all
	line   []byte // scratch: pixels of one band, gathered
}

// place returns the band of the field that a plane of the file is, or unmeasured, such as alpha.
func (t *tally) place(x *chunk.Index, plane int) int {
	band, step := plane%x.StepBands(), plane/x.StepBands()
	if t.times != nil && !slices.Contains(t.times, step) {
		return unmeasured
	}
	if t.places == nil {
		if band >= t.field.Bands() {
			return unmeasured
		}
		return band
	}
	return t.places[band]
}

// Put implements sink. The steps of time of a band count together.
func (t *tally) Put(x *chunk.Index, i int, samples []byte) {
	box, str, size := x.Box(i), x.Strides(i), x.DType.Size()
	width := box.X1 - box.X0
	for p := range box.B1 - box.B0 {
		place, start := t.place(x, box.B0+p), str.Plane(p)
		if place == unmeasured {
			continue
		}
		if str.Y == width { // neither padding nor samples of other bands between: all rows at once
			t.field.AddRows(place, samples[start*size:][:(box.Y1-box.Y0)*width*size])
			continue
		}
		for y := range box.Y1 - box.Y0 {
			row := samples[(start+y*str.Y)*size:]
			if str.X == 1 {
				t.field.AddRows(place, row[:width*size])
				continue
			}
			t.line = t.line[:0]
			for c := range width {
				pos := c * str.X * size
				t.line = append(t.line, row[pos:pos+size]...)
			}
			t.field.AddRows(place, t.line)
		}
	}
}

// valid adds the valid samples of a plane of the file, and counts the others as nodata.
func (t *tally) valid(x *chunk.Index, plane int, samples, valid []byte) {
	place, size := t.place(x, plane), t.field.DType().Size()
	if place == unmeasured {
		return
	}
	t.line = t.line[:0]
	for i, v := range valid {
		if v != 0 {
			t.line = append(t.line, samples[i*size:][:size]...)
		}
	}
	t.field.AddRows(place, t.line)
	t.field.AddNoData(place, uint64(len(valid)-len(t.line)/size))
}

// unmeasured stands in a list of places for a band that no accumulator is for.
const unmeasured = -1

// described tells which band of the first file each band of another file is, by their descriptions.
type described struct {
	field *spec.Field
	names []string // of the bands of the first file; nil if it has none
	first string   // the name of the first file
}

// namesOf returns the names of the first bands of an asset, or those that its container has for all assets. It fails
// if the field asks for names that they lack. For other fields names are optional: an array has none, and a fault of
// the file shows when its pixels are read.
func (p *pass) namesOf(ctx context.Context, a catalog.Asset, f *spec.Field, bands int) ([]string, error) {
	names, err := p.table.NamesIn(ctx, p.options.Opener, a)
	names = names[:min(len(names), bands)]
	if f.BandNames == nil && fault.KindOf(err) != 0 {
		return names, nil
	}
	if err == nil {
		_, err = pixels.PickBands(names, f.BandNames)
	}
	return names, err
}

// places returns the band of the first file that each band of an asset is measured as, or nil if that is the same
// position. A field that asks for names has its bands matched by them. For one that does not, files must agree at each
// position: the mean of "B04" would otherwise be one of B04 and B08. A field that numbers its bands asks for positions.
func (p *pass) places(ctx context.Context, d *described, a catalog.Asset) ([]int, error) {
	if d.names == nil || d.field.Bands != nil || d.field.ByPosition {
		return nil, nil
	}
	names, err := p.namesOf(ctx, a, d.field, measuredBands(d.field, a.Index))
	if err != nil {
		return nil, a.Fault(err)
	}
	if d.field.BandNames == nil {
		return nil, a.Fault(pixels.SameNames(names, d.first, d.names))
	}
	places := slices.Repeat([]int{unmeasured}, a.Index.StepBands())
	for i, name := range names {
		// What the field does not ask for may have one name in several bands.
		if slices.Contains(d.field.BandNames, name) {
			places[i] = slices.Index(d.names, name)
		}
	}
	return places, nil
}

// saidOf returns the nodata values that a field gives for each of n bands of a file; names are the names of the first
// ones. It is nil if it gives none. In a stack the bands come behind others. Bands that the field leaves out have
// no value.
func saidOf(f *spec.Field, behind, n int, names []string) (out [][]float64, err error) {
	if f.NoData == nil {
		return nil, nil
	}
	for b := range n {
		index := behind + b
		switch {
		case len(f.NoData) == 1:
			index = 0
		case f.Bands != nil:
			index = slices.Index(f.Bands, index)
		case f.BandNames != nil && b < len(names):
			index = slices.Index(f.BandNames, names[b])
		case f.BandNames != nil:
			index = -1
		case index >= len(f.NoData):
			return nil, fmt.Errorf("nodata has %d lists for more bands", len(f.NoData))
		}
		out = append(out, nil)
		if index >= 0 && index < len(f.NoData) {
			out[b] = make([]float64, len(f.NoData[index]))
			for i, v := range f.NoData[index] {
				out[b][i] = float64(v)
			}
		}
	}
	return out, nil
}
