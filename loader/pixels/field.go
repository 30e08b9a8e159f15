package pixels

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Raster is a compiled raster field: everything that is the same for all samples. It is safe for
// concurrent use once the run has begun.
type Raster struct {
	spec.Field
	selection
	PickedBands // of every asset; with bands picked by name, of the first asset
	axes
	naming
	casts
	TableColumn int         // the column of the table that names the assets
	Native      chunk.DType // of the assets
	To          chunk.DType // of the tensor
	Ratio       ratio
	H, W        int  // of the tensor; a window in this field's pixels, unless it is resampled
	Stored      int  // how many bands are decoded for each pixel
	keepsDType  bool // the tensor has the dtype of the rasters, which are all of one
	palette     bool // pixels are classes, and numbers between theirs mean nothing
	Blends      bool // resampling computes values in between; otherwise it takes the nearest
	smooths     bool // Blends, with antialiasing

	// Parts are the rasters of a stack, compiled; one is nil if the field picks none of its bands. Of other fields it
	// is empty.
	Parts []*Raster
	// Partial is done when the log has said of a part of a stack that a raster covers less than the stack.
	Partial *sync.Once

	variants *variants // for rasters of other dtypes; see For

	coded *Raster           // of colours: the raster that the tensor has; nil for other fields
	codes map[uint64]uint16 // the numbers of its samples by colour, 16 bits a band
}

// selection is the bands and the steps of time that a field picks.
type selection struct {
	bandList []int // the bands of each step
	timeList []int // the steps of time; nil for assets without time
	allBands int   // how many bands assets must have in a step; 0 if the field picks some
	allTimes int   // how many steps of time assets must have; 0 if the field picks some
	inStack  []int // of a part of a stack: the tensor's band for each band of bandList
}

// axes are the axes of a tensor, and its layout.
type axes struct {
	LayoutPattern *pattern.Pattern
	byDefault     bool // the spec has no layout for the field: its axes follow from the data
	TimeAxis      bool // the layout has the axis t, even without a sequence
	Steps         int  // of a sequence; 0 without a time axis
	Views         int  // windows of a sample in the tensor; 0 without an axis v
}

// naming is how the bands and classes of a field are called.
type naming struct {
	Shown   []string // the names of the tensor's bands: those that the spec picks, or of the first asset
	Legend  chunk.Legend
	names   []string // of the bands of the asset namesOf, which other assets must have; nil: they may have any
	namesOf string
}

// casts make the samples of a tensor of those of assets. Copies of a field of another size (Sized) share them.
type casts struct {
	Final   *Converters       // from Native to the tensor's dtype
	Wire    *Converters       // from Native to Native, for native payloads
	raw     *Converters       // from Native to the samples that are resampled: Native or, with blended, float32
	blended *einops.Converter // from float32 to the tensor's dtype; nil unless the field Blends or is Physical
}

// SetPhysical decides whether a field whose first raster is given has physical values, where the spec does not say it:
// arrays that have scales and offsets do, as xarray decodes them.
func SetPhysical(f *spec.Field, first *catalog.Asset) {
	scaled := func(a catalog.Asset) bool { return a.Index.Grid != nil && a.Index.Physical != nil }
	if f.MayBePhysical() && (scaled(*first) || slices.ContainsFunc(first.Parts, scaled)) {
		f.Physical = new(true)
	}
}

// newRaster is NewRaster of a field without colours.
func newRaster(f spec.Field, column int, x *chunk.Index) (*Raster, error) {
	field := &Raster{Field: f, TableColumn: column, Native: x.DType, To: x.DType, variants: new(variants),
		axes:  axes{TimeAxis: x.Times > 0 || f.Pages == chunk.StepsPages, byDefault: f.Layout == ""},
		casts: casts{Final: &Converters{}, Wire: &Converters{}, raw: &Converters{}}}
	if field.palette = x.Classes; f.DType == spec.Auto {
		_, labels := LabelNoData(&f, x)
		if f.DType = "float32"; x.Classes && f.Normalize == nil && !f.IsPhysical() || labels && x.DType.Size() == 1 {
			f.DType = "native"
		}
		field.Field.DType = f.DType
	}
	if field.keepsDType = f.DType == "native"; !field.keepsDType {
		dtype, err := chunk.ParseDType(f.DType)
		if err != nil {
			return nil, err
		}
		field.To = dtype
	}
	if err := field.pick(x); err != nil {
		return nil, err
	}
	field.PlaceBands()
	together := max(x.ChunkB, 1) // bands that are decoded whole, with each of them
	groups := map[int]bool{}
	for band := range field.at {
		groups[band/together] = true
	}
	field.Stored = len(groups) * together
	if err := field.setLayout(); err != nil {
		return nil, err
	}
	if err := field.setArithmetic(); err != nil {
		return nil, err
	}
	// A cast that does not exist must fail when the run is opened, before the first batch.
	if _, err := field.Final.Get(x, &field.PickedBands); err != nil {
		return nil, err
	}
	return field, nil
}

// LabelNoData returns the nodata value of a field that may be labels, if the spec does not say what becomes of it: the
// file has one band of integers, the dtype is auto, and the value is not 0, which it would become in floats.
func LabelNoData(f *spec.Field, x *chunk.Index) (nodata float64, ok bool) {
	if f.DType != spec.Auto || f.Stacked() || f.Fill != nil || f.LUT != nil || f.Normalize != nil || f.IsPhysical() ||
		x.DataBands() != 1 || !x.DType.Integer() || x.Mask != nil && f.NoData == nil {
		return 0, false
	}
	values := x.NoDataOf(0)
	if f.NoData != nil {
		values = num.As[float64](slices.Concat(f.NoData...))
	}
	for _, value := range values {
		if _, held := kernel.IntBits(x.DType.Num(), value); held && value != 0 {
			return value, true
		}
	}
	return 0, false
}

// pick resolves the bands and the steps of time that the field has.
func (r *Raster) pick(x *chunk.Index) error {
	if r.bandList = r.Field.Bands; len(r.bandList) == 0 {
		r.bandList, r.allBands = num.Range[int](0, x.DataBands()), x.DataBands()
	}
	for _, b := range r.bandList {
		if b >= x.StepBands() {
			return fault.New(fault.NotFound, "band", "no band %d: bands are 0 to %d", b, x.StepBands()-1)
		}
	}
	if n := r.LUT.Bands(); n > 0 && len(r.bandList) != 1 {
		return fault.New(fault.Unsupported, "look-up table",
			"it makes %d bands of one, and the field has %d bands: pick one", n, len(r.bandList))
	}
	r.bandList = r.lutBands(r.bandList)
	switch r.timeList = r.Field.Times; {
	case len(r.timeList) == 0:
		r.timeList, r.allTimes = nil, x.Steps()
		if x.Times > 0 {
			r.timeList = num.Range[int](0, x.Times)
		}
	default:
		r.TimeAxis = true
	}
	r.PickedBands = PickPlanes(r.bandList, r.timeList, x.Steps(), x.StepBands())
	return nil
}

// lutBands returns a band as often as the field's look-up table makes bands of it, or bands as they are.
func (r *Raster) lutBands(bands []int) []int {
	if n := r.LUT.Bands(); n > 0 && len(bands) == 1 {
		return slices.Repeat(bands, n)
	}
	return bands
}

// PlanesOf returns the planes of an asset with the bands (of each step) that the field picks there. It returns
// the field's own if they are the same.
func (r *Raster) PlanesOf(bands []int, x *chunk.Index) *PickedBands {
	if bands = r.lutBands(bands); bands == nil {
		bands = r.bandList
	}
	same := slices.Equal(bands, r.bandList) && (r.timeList == nil || r.StepBands == x.StepBands())
	if same && r.Lacking == nil && (r.timeList == nil || slices.Max(r.timeList) < x.Steps()) {
		return &r.PickedBands
	}
	p := r.planesIn(bands, x)
	p.PlaceBands()
	return &p
}

// planesIn returns the planes of an asset, or of a part of a stack, with the bands of each step that the field picks.
func (r *Raster) planesIn(bands []int, x *chunk.Index) PickedBands {
	p := PickPlanes(bands, r.timeList, x.Steps(), x.StepBands())
	if r.inStack != nil {
		p.all, p.into = r.all, []int{}
		for t := range max(p.TimeSteps, 1) {
			for _, band := range r.inStack {
				p.into = append(p.into, t*p.all+band)
			}
		}
	}
	return p
}

// setArithmetic sets the casts of the field: dtype, scale, offset, clip, fill and nodata.
func (r *Raster) setArithmetic() error {
	conv := einops.Convert{From: r.Native, To: r.To}
	if normalize := r.Normalize; normalize != nil {
		if k := len(normalize.Scale); k != 1 && k != r.bands() {
			return fmt.Errorf("normalize: mean and std (or scale and offset) have %d values for %d bands: "+
				"give one for each band, or one for all", k, r.bands())
		}
		conv.Scale, conv.Offset = num.As[float32](normalize.Scale), num.As[float32](normalize.Offset)
		if normalize.Clip != nil {
			// -0 becomes 0, as in Fill.
			conv.Clip, conv.Lo, conv.Hi = true, float32(normalize.Clip[0])+0, float32(normalize.Clip[1])+0
		}
	}
	if r.Fill != nil {
		// Adding 0 turns -0 into 0, because FlatBuffers cannot tell them apart: a client that converts
		// native payloads would otherwise fill with other bits than the engine.
		conv.Fill = float64(*r.Fill) + 0
	}
	conv.FillNoData = r.Fill != nil || r.Normalize != nil || r.FillsFloats()
	conv.Checked = r.To == chunk.Uint8 && r.Native != r.To && r.Normalize == nil && !r.Clip ||
		r.To == chunk.Int64 && (r.Native.Num().IsFloat() || r.Native == chunk.Uint64) && r.LUT == nil
	conv.MissNaN = r.To == chunk.Uint8 && !conv.Checked // which cannot hold it
	if r.LUT != nil {
		numbers, values := r.LUT.Numbers(r.Native), make([][]float64, len(r.LUT.To))
		for i, value := range r.LUT.To {
			values[i] = value
		}
		var err error
		conv.Checked = conv.Checked || r.To == chunk.Uint8 && r.Normalize == nil && !r.Clip
		if conv.Table, err = einops.NewTable(conv, numbers, values); err != nil {
			return err
		}
		if !conv.Table.Whole() && r.Fill == nil && !r.LUT.OfColours() {
			return fmt.Errorf("lut has values for %d numbers of %s: others need a fill", len(numbers), r.Native)
		}
		conv.Checked = false // the table has only values that the tensor can hold
	}
	nodata, err := r.nodataValues()
	if err != nil {
		return err
	}
	r.Final.Base, r.Final.Said, r.Final.NaN = conv, nodata, r.MissNaN()
	r.Final.Nodata, r.Final.Physical = conv.FillNoData || r.Validity != "", r.IsPhysical()
	// A native payload keeps its samples as stored: the mask sent with it says where the receiver must
	// fill. So nodata is looked for here, but not filled.
	r.Wire.Base = einops.Convert{From: r.Native, To: r.Native}
	r.Wire.Nodata, r.Wire.Said, r.Wire.NaN = conv.FillNoData, nodata, r.Final.NaN
	return r.setResample()
}

// nodataValues returns the nodata values that the field gives, for the bands of the tensor; nil: it gives none.
func (r *Raster) nodataValues() (out [][]float64, err error) {
	if n := len(r.NoData); n > 1 && n != r.bands() {
		return nil, fmt.Errorf("nodata has %d lists for %d bands", n, r.bands())
	}
	for _, values := range r.NoData {
		out = append(out, num.As[float64](values))
	}
	return out, nil
}

// FillsFloats reports whether nodata becomes 0 only because the tensor is of floats: the spec asks for a
// float dtype and has neither Fill nor Normalize. Earlier versions kept nodata there, so the spec hash
// includes it: see setHash.
func (r *Raster) FillsFloats() bool {
	return r.Fill == nil && r.Normalize == nil && r.DType != "native" && isFloat(r.To)
}

// Checked reports whether pixels may have values that the tensor cannot hold, which the spec does not allow.
func (r *Raster) Checked() bool {
	return r.Final.Base.Checked ||
		slices.ContainsFunc(r.Parts, func(p *Raster) bool { return p != nil && p.Final.Base.Checked })
}

// isFloat reports whether a tensor of dtype d holds numbers to calculate with. Other dtypes may hold labels, which
// must not be filled or blended by default. float64 is left out, because a tensor has it only as "native", which
// keeps stored values.
func isFloat(d chunk.DType) bool {
	return d == chunk.Float32 || d == chunk.Float16 || d == chunk.BFloat16
}

// Axes returns the axes of a batch of rows before the layout rearranges them: n t b y x, without t if
// the field has no time axis. In a sequence of files with steps of time these follow each other along t, and so do
// views, each with all of its steps.
func (r *Raster) Axes(rows int) []einops.Axis {
	axes := []einops.Axis{
		{Name: "n", Len: rows}, {Name: "t", Len: max(r.Views, 1) * max(r.Steps, 1) * max(r.TimeSteps, 1)},
		{Name: "b", Len: r.bands()}, {Name: "y", Len: r.H}, {Name: "x", Len: r.W},
	}
	if !r.timed() && r.Views == 0 {
		axes = slices.Delete(axes, 1, 2)
	}
	return axes
}

// Plan returns the plan of the layout for a batch of rows. Sizes of axes that the batch has are of lists of samples, of
// which windows and bands are parts.
func (r *Raster) Plan(rows int) (*einops.Plan, error) {
	axes, sizes := r.Axes(rows), maps.Clone(r.Sizes)
	for _, axis := range axes {
		delete(sizes, axis.Name)
	}
	return r.LayoutPattern.Plan(axes, sizes)
}

// SetSteps makes the field a sequence of n steps, which is 0 for none.
func (r *Raster) SetSteps(n int) error {
	if r.Steps = n; r.coded != nil {
		r.coded.Steps = n
		if err := r.coded.setLayout(); err != nil {
			return err
		}
	}
	return r.setLayout()
}

// setLayout compiles the layout: the one of the spec, or by default all axes that the tensor has.
func (r *Raster) setLayout() (err error) {
	switch {
	case r.byDefault && r.timed():
		r.Layout = spec.TimeLayout
	case r.byDefault:
		r.Layout = spec.DefaultLayout
	}
	r.LayoutPattern, err = pattern.Parse(r.Layout)
	return err
}

// timed reports whether the tensor of one window has an axis of time.
func (a *axes) timed() bool { return a.Steps > 0 || a.TimeAxis }

// WireNative reports whether the tensor may be sent as a native payload, in the layout of plan p: the
// native dtype has fewer bytes, and the receiver can convert it, which does not know the scales of files. For scales
// of several bands that needs a band axis in the layout, because the receiver must know the band of each value.
func (r *Raster) WireNative(p *einops.Plan) bool {
	return r.Native.Components() == 1 && r.Native.Size() < r.To.Size() && r.Validity == "" && r.LUT == nil &&
		!r.IsPhysical() && !r.Final.Base.Checked && (p.BandAxis() >= 0 || len(r.Final.Base.Scale) <= 1)
}

// SameArithmetic reports whether r and o convert native payloads alike, so one Convert serves both.
func (r *Raster) SameArithmetic(o *Raster) bool {
	a, b := r.Final.Base, o.Final.Base
	return r.Native == o.Native && slices.Equal(a.Scale, b.Scale) && slices.Equal(a.Offset, b.Offset) &&
		a.Clip == b.Clip && a.Lo == b.Lo && a.Hi == b.Hi &&
		math.Float64bits(a.Fill) == math.Float64bits(b.Fill) // by bits, since a fill may be NaN
}

// Expect sets the asset from which the field was compiled. The bands of others must have its names, unless the spec
// says which bands it means.
func (r *Raster) Expect(a *catalog.Asset) {
	if r.Shown = r.BandNames; r.Shown == nil && r.allBands > 0 {
		r.Shown = a.DataNames()
	}
	if r.Shown == nil && len(r.Bands) > 0 && slices.Max(r.Bands) < len(a.Names) {
		for _, b := range r.Bands {
			r.Shown = append(r.Shown, a.Names[b])
		}
	}
	if r.LUT.Bands() > 0 {
		r.Shown = nil // the bands of the tensor are not the bands of a file
	}
	if r.Field.Bands == nil && r.BandNames == nil && !r.ByPosition {
		r.names, r.namesOf = a.DataNames(), a.Name()
	}
}

// ReadLegend sets the legend of a field, unless its numbers differ from the numbers of the file.
func (r *Raster) ReadLegend(ctx context.Context, o source.Opener, a catalog.Asset) {
	if r.LUT == nil && r.Normalize == nil && !r.IsPhysical() {
		r.Legend = Legend(ctx, o, a)
	}
}

// SameOrder fails with kind unsupported if a band has another number in the files of another source. Sources may call
// bands differently, as sensors do.
func (r *Raster) SameOrder(o *Raster) error {
	for i, name := range r.names {
		if k := slices.Index(o.names, name); name != "" && k >= 0 && k != i && !slices.Contains(r.names[i+1:], name) {
			return fault.New(fault.Unsupported, "bands", "%q is band %d of %s, and band %d of %s: %s",
				fault.Short(name), i, r.namesOf, k, o.namesOf, sayBands)
		}
	}
	return nil
}

// Accepts checks that an asset has the bands that the field was compiled for, and its dtype if the tensor has the
// dtype of the assets. It fails with kind unsupported.
func (r *Raster) Accepts(a *catalog.Asset) error {
	index := a.Index
	if err := r.sameDType(index); err != nil {
		return err
	}
	switch {
	case r.allBands > 0 && index.DataBands() != r.allBands:
		return fault.New(fault.Unsupported, "asset", "it has %d bands: other rasters of the field %q have %d; "+
			"Field(bands=[0]) picks bands that all have", index.DataBands(), r.Name, r.allBands)
	case r.allBands == 0 && r.BandNames == nil && slices.Max(r.bandList) >= index.StepBands():
		// Bands picked by name are not checked, because they are looked up in each asset.
		return fault.New(fault.Unsupported, "asset",
			"it has %d bands, and the field %q picks band %d", index.StepBands(), r.Name, slices.Max(r.bandList))
	case r.allTimes > 0 && index.Steps() != r.allTimes:
		return fault.New(fault.Unsupported, "asset",
			"it has %d steps of time: other rasters of the field %q have %d; Field(times=range(%d)) takes so "+
				"many, and pads what is shorter", index.Steps(), r.Name, r.allTimes, max(index.Steps(), r.allTimes))
	}
	return SameNames(a.DataNames(), r.namesOf, r.names)
}

// SameGround checks that an asset of the field lies where the asset of the first raster field lies, unless the field
// goes by sizes only. It fails with kind misplaced.
func (r *Raster) SameGround(first, other *catalog.Asset) error {
	if r.Ground == spec.IgnoreGround {
		return nil
	}
	return catalog.SameGround(first, other)
}

// StepList returns the steps of time that the field has of a raster, nil of one without an axis t.
func (r *Raster) StepList() []int { return r.timeList }

// PicksSteps reports whether the field picks steps of time of files. Some of these files may lack the last
// steps.
func (r *Raster) PicksSteps() bool { return len(r.Field.Times) > 0 }

// variants has a field compiled for rasters of other dtypes than its first one, by dtype. Workers read it for every
// such raster, and write it once for a dtype.
type variants struct {
	mu   sync.RWMutex
	made map[chunk.DType]*Raster
}

// For returns the field for a raster with index x, whose dtype may differ from the first raster's: its tensor is
// the same, and its casts are from the dtype of x. It fails with kind unsupported if the tensor has the dtype of the
// rasters, or if there is no such cast. All options of the field must have been set.
func (r *Raster) For(x *chunk.Index) (*Raster, error) {
	if x.DType == r.Native {
		return r, nil
	}
	if err := r.sameDType(x); err != nil {
		return nil, err
	}
	r.variants.mu.RLock()
	variant := r.variants.made[x.DType]
	r.variants.mu.RUnlock()
	if variant != nil {
		return variant, nil
	}
	variant, err := r.variant(x.DType)
	if err != nil {
		return nil, err
	}
	r.variants.mu.Lock()
	defer r.variants.mu.Unlock()
	if r.variants.made == nil {
		r.variants.made = map[chunk.DType]*Raster{}
	}
	r.variants.made[x.DType] = variant // another worker may have made it, too: either will do
	return variant, nil
}

// sameDType fails with kind unsupported if the field needs rasters of one dtype, and x has another one.
func (r *Raster) sameDType(x *chunk.Index) error {
	if x.DType == r.Native || !r.keepsDType {
		return nil
	}
	return fault.New(fault.Unsupported, "asset", "its dtype is %s: other rasters of the field %q have %s, and dtype "+
		"is \"native\": give the field a dtype for both", x.DType, r.Name, r.Native)
}

// variant compiles the field for rasters of a dtype.
func (r *Raster) variant(dtype chunk.DType) (*Raster, error) {
	out := *r
	out.Native, out.variants = dtype, new(variants)
	out.Final, out.Wire, out.raw, out.blended = &Converters{}, &Converters{}, &Converters{}, nil
	if r.coded != nil {
		if err := r.holdsColours(dtype); err != nil {
			return nil, err
		}
		out.To = dtype
	}
	if err := out.setArithmetic(); err != nil {
		return nil, err
	}
	out.Final.Nodata = out.Final.Nodata || r.Final.Nodata // of colours
	out.raw.Nodata = out.raw.Nodata || r.raw.Nodata       // on the ground
	_, err := out.Final.Get(&chunk.Index{DType: dtype}, nil)
	return &out, err
}

// holdsColours fails with kind unsupported if rasters of a dtype have no colours, nor masks if the field has these.
func (r *Raster) holdsColours(dtype chunk.DType) error {
	if dtype == chunk.Uint8 || dtype == chunk.Uint16 || r.codes == nil && dtype.Components() == 1 {
		return nil
	}
	return fault.New(fault.Unsupported, "look-up table", "the raster is %s: colours are of uint8 and uint16", dtype)
}
