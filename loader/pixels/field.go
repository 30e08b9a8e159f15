package pixels

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// Raster is a field of pixels, compiled: everything that does not change from sample to sample.
type Raster struct {
	spec.Field
	TableColumn   int // of the table
	Native        chunk.DType
	To            chunk.DType
	PickedBands        // of the first asset, and where bands are picked by number of all
	all           bool // bands are 0, 1, 2, ... of all bands
	Ratio         ratio
	H, W          int // of the tensor; a window in this field's pixels, unless it is resampled
	Steps         int // of a sequence; 0 without time
	Stored        int // bands that are decoded for a pixel
	LayoutPattern *einops.Pattern

	Scale, Offset []float32
	FillValue     float64

	Final, Wire Converters

	Blends  bool              // resampled bilinearly, else to the nearest
	smooths bool              // and with antialiasing
	raw     Converters        // to what is resampled: native, or float32
	blended *einops.Converter // from resampled float32
}

// Converters picks the cast for an asset's nodata value and keeps the few that a dataset has.
type Converters struct {
	Base   einops.Convert
	Nodata bool // the asset's nodata value matters
	mu     sync.RWMutex
	made   map[nodataKey]*einops.Converter
}

type nodataKey struct {
	Has, exact bool
	bits       uint64
}

// maxConverters bounds the converters kept: a dataset has one nodata value, or a few.
const maxConverters = 64

func (c *Converters) Key(x *chunk.Index) nodataKey {
	switch {
	case !c.Nodata:
		return nodataKey{}
	case x.NoDataBits != nil:
		return nodataKey{true, true, *x.NoDataBits}
	case x.NoData != nil:
		return nodataKey{true, false, math.Float64bits(*x.NoData)}
	}
	return nodataKey{}
}

func (c *Converters) Get(x *chunk.Index) (*einops.Converter, error) {
	key := c.Key(x)
	c.mu.RLock()
	cv := c.made[key]
	c.mu.RUnlock()
	if cv != nil {
		return cv, nil
	}
	conv := c.Base
	if c.Nodata {
		conv.NoData, conv.NoDataBits = x.NoData, x.NoDataBits
	}
	cv, err := einops.NewConverter(conv)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[nodataKey]*einops.Converter{}
	}
	if len(c.made) < maxConverters {
		c.made[key] = cv
	}
	return cv, nil
}

// NewRaster compiles a field from its first asset.
func NewRaster(f spec.Field, column int, x *chunk.Index) (*Raster, error) {
	r := &Raster{Field: f, TableColumn: column, Native: x.DType, To: x.DType, PickedBands: PickedBands{Picked: f.Bands}}
	if f.DType != "native" {
		to, err := chunk.ParseDType(f.DType)
		if err != nil {
			return nil, err
		}
		r.To = to
	}
	if len(r.Picked) == 0 {
		r.Picked = make([]int, x.Bands)
		for i := range r.Picked {
			r.Picked[i] = i
		}
		r.all = true
	}
	for _, b := range r.Picked {
		if b >= x.Bands {
			return nil, fault.New(fault.NotFound, "band", fault.NoOffset, "band %d of %d", b, x.Bands)
		}
	}
	r.PlaceBands()
	r.Stored = len(r.at)
	if x.ChunkB > 1 {
		r.Stored = x.Bands
	}
	var err error
	if r.LayoutPattern, err = einops.Parse(f.Layout); err != nil {
		return nil, err
	}
	if err := r.setArithmetic(); err != nil {
		return nil, err
	}
	// The first asset shows whether the cast exists at all.
	if _, err := r.Final.Get(x); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Raster) setArithmetic() error {
	conv := einops.Convert{From: r.Native, To: r.To}
	if n := r.Normalize; n != nil {
		if k := len(n.Scale); k != 1 && k != len(r.Picked) {
			return fmt.Errorf("normalize has %d values for %d bands", k, len(r.Picked))
		}
		r.Scale, r.Offset = float32s(n.Scale), float32s(n.Offset)
		conv.Scale, conv.Offset = r.Scale, r.Offset
		if n.Clip != nil {
			conv.Clip, conv.Lo, conv.Hi = true, float32(n.Clip[0])+0, float32(n.Clip[1])+0 // no -0: see Fill
		}
	}
	if r.Fill != nil {
		r.FillValue = float64(*r.Fill) + 0 // -0 becomes 0, which FlatBuffers cannot tell apart
	}
	conv.FillNoData = r.Fill != nil || r.Normalize != nil || r.FillsFloats()
	conv.Fill = r.FillValue
	r.Final.Base = conv
	r.Final.Nodata = conv.FillNoData || r.Validity != ""
	// What is sent in the native dtype keeps its samples; the mask tells the receiver where to fill.
	r.Wire.Base = einops.Convert{From: r.Native, To: r.Native}
	r.Wire.Nodata = conv.FillNoData
	return r.setResample()
}

// FillsFloats reports whether nodata becomes 0 only because the tensor is of floats: the spec has neither Fill nor
// Normalize. Earlier versions kept nodata there,
// so the spec hash notes it: see setHash.
func (r *Raster) FillsFloats() bool {
	return r.Fill == nil && r.Normalize == nil && r.DType != "native" && isFloat(r.To)
}

// isFloat reports whether samples of d are asked for as numbers to calculate with, not as labels.
func isFloat(d chunk.DType) bool {
	return d == chunk.Float32 || d == chunk.Float16 || d == chunk.BFloat16
}

func float32s(s []float64) []float32 {
	out := make([]float32, len(s))
	for i, v := range s {
		out[i] = float32(v)
	}
	return out
}

// Axes returns the input axes of a batch of rows.
func (r *Raster) Axes(rows int) []einops.Axis {
	axes := []einops.Axis{{Name: "n", Len: rows}, {Name: "t", Len: r.Steps}, {Name: "b", Len: len(r.Picked)}, {Name: "y", Len: r.H}, {Name: "x", Len: r.W}}
	if r.Steps == 0 {
		axes = slices.Delete(axes, 1, 2)
	}
	return axes
}

// WireNative reports whether the tensor is worth sending in its native dtype: the receiver can
// convert it, and it has fewer bytes so.
func (r *Raster) WireNative(p *einops.Plan) bool {
	return r.Native.Components() == 1 && r.Native.Size() < r.To.Size() && r.Validity == "" &&
		(p.BandAxis() >= 0 || len(r.Scale) <= 1)
}

// SameArithmetic reports whether one Convert stands for both fields.
func (r *Raster) SameArithmetic(o *Raster) bool {
	a, b := r.Final.Base, o.Final.Base
	return r.Native == o.Native && slices.Equal(r.Scale, o.Scale) && slices.Equal(r.Offset, o.Offset) &&
		a.Clip == b.Clip && a.Lo == b.Lo && a.Hi == b.Hi && math.Float64bits(r.FillValue) == math.Float64bits(o.FillValue)
}

// Fits reports in which way an asset differs from what the run was opened for.
func (r *Raster) Fits(x *chunk.Index) error {
	switch {
	case x.DType != r.Native:
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "dtype %s; the field %q is %s", x.DType, r.Name, r.Native)
	case r.all && x.Bands != len(r.Picked):
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d bands; the field %q has %d", x.Bands, r.Name, len(r.Picked))
	case !r.all && r.BandNames == nil && slices.Max(r.Picked) >= x.Bands: // those with names are looked up
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d bands; the field %q picks band %d", x.Bands, r.Name, slices.Max(r.Picked))
	}
	return nil
}

// Row scatters the window of one sample into row n of a tensor: a sink for decoded chunks.
type Row struct {
	Field *Raster
	Bands *PickedBands // of the asset; nil for the field's
	Plan  *einops.Plan
	Dst   einops.Target
	Cv    *einops.Converter
	N, T  int // row and step of the tensor
	Win   shuffle.Box
	Turn  shuffle.Element
}

// picked are the bands of the asset that the row has.
func (r *Row) picked() *PickedBands {
	if r.Bands != nil {
		return r.Bands
	}
	return &r.Field.PickedBands
}

// Put implements sink.
func (r *Row) Put(x *chunk.Index, i int, samples []byte) {
	box := x.Box(i)
	y0, y1 := max(box.Y0, r.Win.Y), min(box.Y1, r.Win.Y+r.Win.H)
	x0, x1 := max(box.X0, r.Win.X), min(box.X1, r.Win.X+r.Win.W)
	blk := BlockOf(x, i)
	size, picked := x.DType.Size(), r.picked()
	blk.First = (y0-box.Y0)*blk.StrideY + (x0-box.X0)*blk.StrideX
	to := r.turned(&blk, einops.Box{N: r.N, T: r.T, Y0: y0 - r.Win.Y, Y1: y1 - r.Win.Y, X0: x0 - r.Win.X, X1: x1 - r.Win.X})
	if box.B1-box.B0 == 1 {
		blk.Data = samples
		for _, j := range picked.at[box.B0] {
			to.B0, to.B1 = j, j+1
			r.Plan.Scatter(r.Dst, r.Cv, to, blk)
		}
		return
	}
	for _, s := range picked.spans {
		from, end := max(s.from, box.B0), min(s.from+s.n, box.B1)
		if from >= end {
			continue
		}
		blk.Data = samples[(from-box.B0)*blk.StrideB*size:]
		to.B0, to.B1 = s.to+from-s.from, s.to+end-s.from
		r.Plan.Scatter(r.Dst, r.Cv, to, blk)
	}
}

// turned returns where the row's transform puts a box of the window, and turns the block with it (nil: there is
// none).
func (r *Row) turned(blk *einops.Block, b einops.Box) einops.Box {
	if r.Turn == shuffle.Identity {
		return b
	}
	if blk == nil {
		blk = &einops.Block{}
	}
	if r.Turn&shuffle.FlipX != 0 {
		blk.First += (b.X1 - b.X0 - 1) * blk.StrideX
		blk.StrideX = -blk.StrideX
		b.X0, b.X1 = r.Win.W-b.X1, r.Win.W-b.X0
	}
	if r.Turn&shuffle.FlipY != 0 {
		blk.First += (b.Y1 - b.Y0 - 1) * blk.StrideY
		blk.StrideY = -blk.StrideY
		b.Y0, b.Y1 = r.Win.H-b.Y1, r.Win.H-b.Y0
	}
	if r.Turn&shuffle.Transpose != 0 {
		blk.StrideY, blk.StrideX = blk.StrideX, blk.StrideY
		b.Y0, b.Y1, b.X0, b.X1 = b.X0, b.X1, b.Y0, b.Y1
	}
	return b
}

// Masked returns what takes the pixels of box out of the row that the asset's mask takes out, or nil
// where the field does not tell them from others. box lies in the row's window.
func (r *Row) Masked(c *Converters, box chunk.Box) Sink {
	if !c.Nodata {
		return nil
	}
	return &maskOf{row: r, box: box}
}

// maskOf is a sink for the chunks of a mask.
type maskOf struct {
	row  *Row
	box  chunk.Box
	line []byte // of a mask whose samples are not next to each other
}

// Put implements sink: what the mask has 0 for becomes what nodata is. The image's samples are there.
func (m *maskOf) Put(x *chunk.Index, i int, samples []byte) {
	r, box, blk := m.row, x.Box(i), BlockOf(x, i)
	if x.Bands == 1 { // one mask for all bands
		m.clear(box, blk, samples, 0, len(r.Field.Picked))
		return
	}
	at := r.picked().at
	for b := box.B0; b < box.B1; b++ {
		for _, j := range at[b] {
			m.clear(box, blk, samples[(b-box.B0)*blk.StrideB:], j, j+1)
		}
	}
}

// clear masks bands b0 to b1 of the row by one band of a chunk of the mask, whose samples begin with that band's first.
func (m *maskOf) clear(box chunk.Box, blk einops.Block, samples []byte, b0, b1 int) {
	r := m.row
	y0, y1 := max(box.Y0, m.box.Y0), min(box.Y1, m.box.Y1)
	x0, x1 := max(box.X0, m.box.X0), min(box.X1, m.box.X1)
	line := func(y int) []byte {
		from := samples[(y-box.Y0)*blk.StrideY+(x0-box.X0)*blk.StrideX:]
		if blk.StrideX == 1 {
			return from[:x1-x0]
		}
		m.line = m.line[:0]
		for x := range x1 - x0 {
			m.line = append(m.line, from[x*blk.StrideX])
		}
		return m.line
	}
	to := einops.Box{N: r.N, T: r.T, B0: b0, B1: b1}
	for y := y0; y < y1; {
		here := line(y)
		to.Y0, to.Y1 = y-r.Win.Y, y-r.Win.Y+1
		for at := 0; ; {
			from, end := zeros(here, at)
			if from == len(here) {
				break
			}
			for from == 0 && end == len(here) && y+1 < y1 { // rows that are masked as a whole at once; line may overwrite here, which is done
				if f, e := zeros(line(y+1), 0); f != 0 || e != len(here) {
					break
				}
				y++
				to.Y1++
			}
			to.X0, to.X1 = x0+from-r.Win.X, x0+end-r.Win.X
			r.Plan.MaskBox(r.Dst, r.Cv, r.turned(nil, to))
			at = end
		}
		y++
	}
}

// zeros returns the first run of zeros from at on, or the end of s twice.
func zeros(s []byte, at int) (from, end int) {
	from = len(s)
	if k := bytes.IndexByte(s[at:], 0); k >= 0 {
		from = at + k
	}
	for end = from; end < len(s) && s[end] == 0; end++ {
	}
	return from, end
}

// BlockOf returns the strides of decoded chunk i, without its data.
func BlockOf(x *chunk.Index, i int) einops.Block {
	b, h, w := x.Stored(i)
	if x.Inner == chunk.YXB {
		return einops.Block{DType: x.DType, StrideB: 1, StrideY: w * b, StrideX: b}
	}
	return einops.Block{DType: x.DType, StrideB: h * w, StrideY: w, StrideX: 1}
}

// Pad fills what the window has outside of an image of height by width pixels.
func (r *Row) Pad(height, width int) {
	in := Inside(r.Win, height, width)
	y0, y1, x0, x1 := in.Y0-r.Win.Y, in.Y1-r.Win.Y, in.X0-r.Win.X, in.X1-r.Win.X
	if y0 >= y1 || x0 >= x1 {
		r.Clear()
		return
	}
	for _, b := range [...][4]int{{0, y0, 0, r.Win.W}, {y1, r.Win.H, 0, r.Win.W}, {y0, y1, 0, x0}, {y0, y1, x1, r.Win.W}} {
		if b[0] < b[1] && b[2] < b[3] {
			r.Plan.FillBox(r.Dst, r.Cv, r.turned(nil, einops.Box{N: r.N, T: r.T, B1: len(r.Field.Picked), Y0: b[0], Y1: b[1], X0: b[2], X1: b[3]}))
		}
	}
}

// Clear fills the whole row: padding, or a sample that was skipped.
func (r *Row) Clear() {
	r.Plan.FillBox(r.Dst, r.Cv, einops.Box{N: r.N, T: r.T, B1: len(r.Field.Picked), Y1: r.Field.H, X1: r.Field.W})
}
