package loader

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
)

// rasterField is a field of pixels, compiled: everything that does not change from sample to sample.
type rasterField struct {
	Field
	column      int // of the table
	native      chunk.DType
	to          chunk.DType
	pickedBands      // of the first asset, and where bands are picked by number of all
	all         bool // bands are 0, 1, 2, ... of all bands
	ratio       ratio
	h, w        int // of the tensor; a window in this field's pixels, unless it is resampled
	steps       int // of a sequence; 0 without time
	stored      int // bands that are decoded for a pixel
	pattern     *einops.Pattern

	scale, offset []float32
	fill          float64

	final, wire converters

	blends  bool              // resampled bilinearly, else to the nearest
	smooths bool              // and with antialiasing
	raw     converters        // to what is resampled: native, or float32
	blended *einops.Converter // from resampled float32
}

// converters picks the cast for an asset's nodata value and keeps the few that a dataset has.
type converters struct {
	base   einops.Convert
	nodata bool // the asset's nodata value matters
	mu     sync.RWMutex
	made   map[nodataKey]*einops.Converter
}

type nodataKey struct {
	has, exact bool
	bits       uint64
}

// maxConverters bounds the converters kept: a dataset has one nodata value, or a few.
const maxConverters = 64

func (c *converters) key(x *chunk.Index) nodataKey {
	switch {
	case !c.nodata:
		return nodataKey{}
	case x.NoDataBits != nil:
		return nodataKey{true, true, *x.NoDataBits}
	case x.NoData != nil:
		return nodataKey{true, false, math.Float64bits(*x.NoData)}
	}
	return nodataKey{}
}

func (c *converters) get(x *chunk.Index) (*einops.Converter, error) {
	key := c.key(x)
	c.mu.RLock()
	cv := c.made[key]
	c.mu.RUnlock()
	if cv != nil {
		return cv, nil
	}
	conv := c.base
	if c.nodata {
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

// newRasterField compiles a field from its first asset.
func newRasterField(f Field, column int, x *chunk.Index) (*rasterField, error) {
	r := &rasterField{Field: f, column: column, native: x.DType, to: x.DType, pickedBands: pickedBands{bands: f.Bands}}
	if f.DType != "native" {
		to, err := chunk.ParseDType(f.DType)
		if err != nil {
			return nil, err
		}
		r.to = to
	}
	if len(r.bands) == 0 {
		r.bands = make([]int, x.Bands)
		for i := range r.bands {
			r.bands[i] = i
		}
		r.all = true
	}
	for _, b := range r.bands {
		if b >= x.Bands {
			return nil, fault.New(fault.NotFound, "band", fault.NoOffset, "band %d of %d", b, x.Bands)
		}
	}
	r.placeBands()
	r.stored = len(r.at)
	if x.ChunkB > 1 {
		r.stored = x.Bands
	}
	var err error
	if r.pattern, err = einops.Parse(f.Layout); err != nil {
		return nil, err
	}
	if err := r.setArithmetic(); err != nil {
		return nil, err
	}
	// The first asset shows whether the cast exists at all.
	if _, err := r.final.get(x); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *rasterField) setArithmetic() error {
	conv := einops.Convert{From: r.native, To: r.to}
	if n := r.Normalize; n != nil {
		if k := len(n.Scale); k != 1 && k != len(r.bands) {
			return fmt.Errorf("normalize has %d values for %d bands", k, len(r.bands))
		}
		r.scale, r.offset = float32s(n.Scale), float32s(n.Offset)
		conv.Scale, conv.Offset = r.scale, r.offset
		if n.Clip != nil {
			conv.Clip, conv.Lo, conv.Hi = true, float32(n.Clip[0])+0, float32(n.Clip[1])+0 // no -0: see Fill
		}
	}
	if r.Fill != nil {
		r.fill = float64(*r.Fill) + 0 // -0 becomes 0, which FlatBuffers cannot tell apart
	}
	conv.FillNoData = r.Fill != nil || r.Normalize != nil || r.fillsFloats()
	conv.Fill = r.fill
	r.final.base = conv
	r.final.nodata = conv.FillNoData || r.Validity != ""
	// What is sent in the native dtype keeps its samples; the mask tells the receiver where to fill.
	r.wire.base = einops.Convert{From: r.native, To: r.native}
	r.wire.nodata = conv.FillNoData
	return r.setResample()
}

// fillsFloats reports whether nodata becomes 0 only because the tensor is of floats: the spec has neither Fill nor
// Normalize. Earlier versions kept nodata there,
// so the spec hash notes it: see setHash.
func (r *rasterField) fillsFloats() bool {
	return r.Fill == nil && r.Normalize == nil && r.DType != "native" && isFloat(r.to)
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

// axes returns the input axes of a batch of rows.
func (r *rasterField) axes(rows int) []einops.Axis {
	axes := []einops.Axis{{Name: "n", Len: rows}, {Name: "t", Len: r.steps}, {Name: "b", Len: len(r.bands)}, {Name: "y", Len: r.h}, {Name: "x", Len: r.w}}
	if r.steps == 0 {
		axes = slices.Delete(axes, 1, 2)
	}
	return axes
}

// wireNative reports whether the tensor is worth sending in its native dtype: the receiver can
// convert it, and it has fewer bytes so.
func (r *rasterField) wireNative(p *einops.Plan) bool {
	return r.native.Components() == 1 && r.native.Size() < r.to.Size() && r.Validity == "" &&
		(p.BandAxis() >= 0 || len(r.scale) <= 1)
}

// sameArithmetic reports whether one Convert stands for both fields.
func (r *rasterField) sameArithmetic(o *rasterField) bool {
	a, b := r.final.base, o.final.base
	return r.native == o.native && slices.Equal(r.scale, o.scale) && slices.Equal(r.offset, o.offset) &&
		a.Clip == b.Clip && a.Lo == b.Lo && a.Hi == b.Hi && math.Float64bits(r.fill) == math.Float64bits(o.fill)
}

// fits reports in which way an asset differs from what the run was opened for.
func (r *rasterField) fits(x *chunk.Index) error {
	switch {
	case x.DType != r.native:
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "dtype %s; the field %q is %s", x.DType, r.Name, r.native)
	case r.all && x.Bands != len(r.bands):
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d bands; the field %q has %d", x.Bands, r.Name, len(r.bands))
	case !r.all && r.BandNames == nil && slices.Max(r.bands) >= x.Bands: // those with names are looked up
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d bands; the field %q picks band %d", x.Bands, r.Name, slices.Max(r.bands))
	}
	return nil
}

// row scatters the window of one sample into row n of a tensor: a sink for decoded chunks.
type row struct {
	field *rasterField
	bands *pickedBands // of the asset; nil for the field's
	plan  *einops.Plan
	dst   einops.Target
	cv    *einops.Converter
	n, t  int // row and step of the tensor
	win   shuffle.Box
	turn  shuffle.Element
}

// picked are the bands of the asset that the row has.
func (r *row) picked() *pickedBands {
	if r.bands != nil {
		return r.bands
	}
	return &r.field.pickedBands
}

// put implements sink.
func (r *row) put(x *chunk.Index, i int, samples []byte) {
	box := x.Box(i)
	y0, y1 := max(box.Y0, r.win.Y), min(box.Y1, r.win.Y+r.win.H)
	x0, x1 := max(box.X0, r.win.X), min(box.X1, r.win.X+r.win.W)
	blk := blockOf(x, i)
	size, picked := x.DType.Size(), r.picked()
	blk.First = (y0-box.Y0)*blk.StrideY + (x0-box.X0)*blk.StrideX
	to := r.turned(&blk, einops.Box{N: r.n, T: r.t, Y0: y0 - r.win.Y, Y1: y1 - r.win.Y, X0: x0 - r.win.X, X1: x1 - r.win.X})
	if box.B1-box.B0 == 1 {
		blk.Data = samples
		for _, j := range picked.at[box.B0] {
			to.B0, to.B1 = j, j+1
			r.plan.Scatter(r.dst, r.cv, to, blk)
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
		r.plan.Scatter(r.dst, r.cv, to, blk)
	}
}

// turned returns where the row's transform puts a box of the window, and turns the block with it (nil: there is
// none).
func (r *row) turned(blk *einops.Block, b einops.Box) einops.Box {
	if r.turn == shuffle.Identity {
		return b
	}
	if blk == nil {
		blk = &einops.Block{}
	}
	if r.turn&shuffle.FlipX != 0 {
		blk.First += (b.X1 - b.X0 - 1) * blk.StrideX
		blk.StrideX = -blk.StrideX
		b.X0, b.X1 = r.win.W-b.X1, r.win.W-b.X0
	}
	if r.turn&shuffle.FlipY != 0 {
		blk.First += (b.Y1 - b.Y0 - 1) * blk.StrideY
		blk.StrideY = -blk.StrideY
		b.Y0, b.Y1 = r.win.H-b.Y1, r.win.H-b.Y0
	}
	if r.turn&shuffle.Transpose != 0 {
		blk.StrideY, blk.StrideX = blk.StrideX, blk.StrideY
		b.Y0, b.Y1, b.X0, b.X1 = b.X0, b.X1, b.Y0, b.Y1
	}
	return b
}

// masked returns what takes the pixels of box out of the row that the asset's mask takes out, or nil
// where the field does not tell them from others. box lies in the row's window.
func (r *row) masked(c *converters, box chunk.Box) sink {
	if !c.nodata {
		return nil
	}
	return &maskOf{row: r, box: box}
}

// maskOf is a sink for the chunks of a mask.
type maskOf struct {
	row  *row
	box  chunk.Box
	line []byte // of a mask whose samples are not next to each other
}

// put implements sink: what the mask has 0 for becomes what nodata is. The image's samples are there.
func (m *maskOf) put(x *chunk.Index, i int, samples []byte) {
	r, box, blk := m.row, x.Box(i), blockOf(x, i)
	if x.Bands == 1 { // one mask for all bands
		m.clear(box, blk, samples, 0, len(r.field.bands))
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
	to := einops.Box{N: r.n, T: r.t, B0: b0, B1: b1}
	for y := y0; y < y1; {
		here := line(y)
		to.Y0, to.Y1 = y-r.win.Y, y-r.win.Y+1
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
			to.X0, to.X1 = x0+from-r.win.X, x0+end-r.win.X
			r.plan.MaskBox(r.dst, r.cv, r.turned(nil, to))
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

// blockOf returns the strides of decoded chunk i, without its data.
func blockOf(x *chunk.Index, i int) einops.Block {
	b, h, w := x.Stored(i)
	if x.Inner == chunk.YXB {
		return einops.Block{DType: x.DType, StrideB: 1, StrideY: w * b, StrideX: b}
	}
	return einops.Block{DType: x.DType, StrideB: h * w, StrideY: w, StrideX: 1}
}

// pad fills what the window has outside of an image of height by width pixels.
func (r *row) pad(height, width int) {
	in := inside(r.win, height, width)
	y0, y1, x0, x1 := in.Y0-r.win.Y, in.Y1-r.win.Y, in.X0-r.win.X, in.X1-r.win.X
	if y0 >= y1 || x0 >= x1 {
		r.clear()
		return
	}
	for _, b := range [...][4]int{{0, y0, 0, r.win.W}, {y1, r.win.H, 0, r.win.W}, {y0, y1, 0, x0}, {y0, y1, x1, r.win.W}} {
		if b[0] < b[1] && b[2] < b[3] {
			r.plan.FillBox(r.dst, r.cv, r.turned(nil, einops.Box{N: r.n, T: r.t, B1: len(r.field.bands), Y0: b[0], Y1: b[1], X0: b[2], X1: b[3]}))
		}
	}
}

// clear fills the whole row: padding, or a sample that was skipped.
func (r *row) clear() {
	r.plan.FillBox(r.dst, r.cv, einops.Box{N: r.n, T: r.t, B1: len(r.field.bands), Y1: r.field.h, X1: r.field.w})
}
