package pixels

import (
	"bytes"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/shuffle"
)

// Row is a Sink that writes the window of one sample into one row of a tensor.
type Row struct {
	Field     *Raster
	Bands     *PickedBands // of this asset; nil: the field's
	Layout    *Raster      // the field of the tensor, for Reader.Probe; nil: rows are not checked so
	Plan      *einops.Plan
	Dst       einops.Target // the tensor, and its mask
	Cv        *einops.Converter
	N, T      int             // row of the tensor, and step of the sequence: those of a view follow the last one's
	Win       shuffle.Box     // in the field's pixels
	Transform shuffle.Element // the transform of the sample: flips and rotations
	probe     *probe          // see Reader.Probe; nil for most rows
}

// picked returns which bands of the asset the row has.
func (r *Row) picked() *PickedBands {
	if r.Bands != nil {
		return r.Bands
	}
	return &r.Field.PickedBands
}

// step returns the index along t of step t of the row's file.
func (r *Row) step(t int) int { return r.T*max(r.Field.TimeSteps, 1) + t }

// Put implements Sink: it writes the part of chunk i that lies in the window.
func (r *Row) Put(x *chunk.Index, i int, samples []byte) {
	box := x.Box(i)
	top, bottom := max(box.Y0, r.Win.Y), min(box.Y1, r.Win.Y+r.Win.H)
	left, right := max(box.X0, r.Win.X), min(box.X1, r.Win.X+r.Win.W)
	str := x.Strides(i)
	blk := einops.Block{DType: x.DType, StrideB: str.B, StrideY: str.Y, StrideX: str.X}
	size, picked := x.DType.Size(), r.picked()
	blk.First = (top-box.Y0)*blk.StrideY + (left-box.X0)*blk.StrideX
	target := r.turnBox(&blk, einops.Box{
		N: r.N, T: r.T, Y0: top - r.Win.Y, Y1: bottom - r.Win.Y, X0: left - r.Win.X, X1: right - r.Win.X,
	})
	if box.B1-box.B0 == 1 { // the map finds a single band without a search through all spans
		blk.Data = samples
		for _, j := range picked.at[box.B0] {
			target.T, target.B0 = r.step(j/picked.bands()), j%picked.bands()
			target.B1 = target.B0 + 1
			r.scatter(r.Cv, target, blk)
		}
		return
	}
	for _, span := range picked.spans {
		start, end := max(span.from, box.B0), min(span.from+span.n, box.B1)
		if start >= end {
			continue
		}
		blk.Data = samples[str.Plane(start-box.B0)*size:]
		target.T, target.B0, target.B1 = r.step(span.t), span.to+start-span.from,
			span.to+end-span.from
		r.scatter(r.Cv, target, blk)
	}
}

// CheckRange fails with kind unsupported if the step's pixels have a value that the tensor cannot hold. It comes after
// all pixels and masks.
func (r *Row) CheckRange() error {
	field := r.Field
	if !field.Final.Base.Checked {
		return nil
	}
	for t := range max(field.TimeSteps, 1) {
		box := einops.Box{N: r.N, T: r.step(t), B1: field.bands(), Y1: field.H, X1: field.W}
		if field.inStack == nil {
			if err := r.checkBox(box); err != nil {
				return err
			}
		}
		for _, band := range field.inStack { // only the bands of the part
			box.B0, box.B1 = band, band+1
			if err := r.checkBox(box); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBox is CheckRange of a box.
func (r *Row) checkBox(box einops.Box) error {
	field, plan, dst := r.Field, r.Plan, r.Dst
	if r.probe != nil {
		plan, dst, box.N = r.probe.plan, r.probe.dst, 0
	}
	b, y, x, found := plan.OutOfRange(dst, r.Cv, box)
	switch {
	case found && field.To == chunk.Int64:
		return fault.New(fault.Unsupported, "pixels",
			"dtype is %q, and the %s at row %d, column %d of band %d of the window is no whole number of int64: take "+
				"a float dtype or a lut, or say by nodata and fill what it becomes", field.DType, field.Native, y, x, b)
	case found:
		return fault.New(fault.Unsupported, "pixels",
			"dtype is %q, and the %s at row %d, column %d of band %d of the window is not between 0 and 255: "+
				"normalize it, take another dtype, or let clip make it 0 or 255", field.DType, field.Native, y, x, b)
	}
	return nil
}

// turnBox returns where the row's transform puts box b of the window, and changes the strides of blk in
// the same way, so a transform needs no pass of its own. blk is nil if only the box matters.
func (r *Row) turnBox(blk *einops.Block, b einops.Box) einops.Box {
	if r.Transform == shuffle.Identity {
		return b
	}
	if blk == nil {
		blk = &einops.Block{}
	}
	// Flips come before the transposition: their order is part of what an Element means. A flip starts
	// at the last sample of the box and runs backwards.
	if r.Transform&shuffle.FlipX != 0 {
		blk.First += (b.X1 - b.X0 - 1) * blk.StrideX
		blk.StrideX = -blk.StrideX
		b.X0, b.X1 = r.Win.W-b.X1, r.Win.W-b.X0
	}
	if r.Transform&shuffle.FlipY != 0 {
		blk.First += (b.Y1 - b.Y0 - 1) * blk.StrideY
		blk.StrideY = -blk.StrideY
		b.Y0, b.Y1 = r.Win.H-b.Y1, r.Win.H-b.Y0
	}
	if r.Transform&shuffle.Transpose != 0 {
		blk.StrideY, blk.StrideX = blk.StrideX, blk.StrideY
		b.Y0, b.Y1, b.X0, b.X1 = b.X0, b.X1, b.Y0, b.Y1
	}
	return b
}

// Masked returns a Sink for the asset's mask, which treats masked pixels of the row as nodata. box is the
// part of the image that is read; it lies in the row's window. Masked returns nil if the field neither
// fills nor marks nodata (c.Nodata is false), so the mask need not be read.
func (r *Row) Masked(c *Converters, box chunk.Box) Sink {
	if !c.Nodata {
		return nil
	}
	return &maskOf{row: r, box: box}
}

// maskOf is a Sink for the chunks of a mask.
type maskOf struct {
	row  *Row
	box  chunk.Box
	line []byte // one row of a mask whose bands are interleaved, or of alpha, gathered: 0 where it masks
}

// Put implements Sink: pixels where the mask is 0 become nodata. The image's samples must have been
// written before, because they would overwrite the fill value.
func (m *maskOf) Put(x *chunk.Index, i int, samples []byte) {
	row, box, blk := m.row, x.Box(i), BlockOf(x, i)
	if x.Bands == 1 || x.Alpha { // one mask for all bands
		samples = samples[(x.Bands-1-box.B0)*blk.StrideB*x.DType.Size():]
		if row.Field.inStack != nil { // the bands of a part of a stack, which has no steps with masks
			for _, j := range row.Field.inStack {
				m.clear(box, blk, samples, j, j+1)
			}
			return
		}
		m.clear(box, blk, samples, 0, len(row.Field.Picked))
		return
	}
	places := row.picked().at
	for b := box.B0; b < box.B1; b++ {
		for _, j := range places[b] {
			m.clear(box, blk, samples[(b-box.B0)*blk.StrideB:], j, j+1)
		}
	}
}

// clear masks bands b0 to b1-1 of the row's tensor by one band of a chunk of the mask. samples begins
// with the first sample of that band, and blk has its strides. A sample has one byte, or two if it is alpha.
func (m *maskOf) clear(box chunk.Box, blk einops.Block, samples []byte, b0, b1 int) {
	row, size := m.row, blk.DType.Size()
	top, bottom := max(box.Y0, m.box.Y0), min(box.Y1, m.box.Y1)
	left, right := max(box.X0, m.box.X0), min(box.X1, m.box.X1)
	// line returns row y of the mask between x0 and x1. It may reuse the memory of the last line.
	line := func(y int) []byte {
		src := samples[((y-box.Y0)*blk.StrideY+(left-box.X0)*blk.StrideX)*size:]
		if blk.StrideX*size == 1 {
			return src[:right-left]
		}
		m.line = m.line[:0]
		for x := range right - left {
			pos := x * blk.StrideX * size
			m.line = append(m.line, src[pos]|src[pos+size-1])
		}
		return m.line
	}
	target := einops.Box{N: row.N, T: row.T, B0: b0, B1: b1}
	for y := top; y < bottom; {
		dst := line(y)
		target.Y0, target.Y1 = y-row.Win.Y, y-row.Win.Y+1
		for pos := 0; ; {
			start, end := zeros(dst, pos)
			if start == len(dst) {
				break
			}
			// Rows that are masked as a whole are joined into one box, which avoids a call of MaskBox for
			// each of them. line may overwrite here, because only its length is still used.
			for start == 0 && end == len(dst) && y+1 < bottom {
				if f, e := zeros(line(y+1), 0); f != 0 || e != len(dst) {
					break
				}
				y++
				target.Y1++
			}
			target.X0, target.X1 = left+start-row.Win.X, left+end-row.Win.X
			row.maskBox(row.Cv, row.turnBox(nil, target))
			pos = end
		}
		y++
	}
}

// zeros returns begin and end of the first run of zeros in s[at:], or len(s) twice.
func zeros(s []byte, at int) (from, end int) {
	from = len(s)
	if k := bytes.IndexByte(s[at:], 0); k >= 0 {
		from = at + k
	}
	for end = from; end < len(s) && s[end] == 0; end++ {
	}
	return from, end
}

// BlockOf returns the dtype and the strides, in samples, of decoded chunk i of a mask, without its data.
func BlockOf(x *chunk.Index, i int) einops.Block {
	s := x.Strides(i)
	return einops.Block{DType: x.DType, StrideB: s.B, StrideY: s.Y, StrideX: s.X}
}

// Pad fills the part of the window that lies outside a box, which has no bands.
func (r *Row) Pad(in chunk.Box) {
	top, bottom, left, right := in.Y0-r.Win.Y, in.Y1-r.Win.Y, in.X0-r.Win.X, in.X1-r.Win.X
	if top >= bottom || left >= right {
		r.Clear()
		return
	}
	// Above, below, left and right of the image. The four boxes lie apart: each pixel is written
	// once. Some or all of them are empty.
	for _, b := range [...][4]int{
		{0, top, 0, r.Win.W}, {bottom, r.Win.H, 0, r.Win.W}, {top, bottom, 0, left}, {top, bottom, right, r.Win.W},
	} {
		r.fill(r.turnBox(nil, einops.Box{Y0: b[0], Y1: b[1], X0: b[2], X1: b[3]}))
	}
}

// fill fills rows and columns of a box in all bands and steps of time of the row.
func (r *Row) fill(b einops.Box) {
	b.N, b.B0, b.B1 = r.N, 0, r.Field.bands()
	for t := range max(r.Field.TimeSteps, 1) {
		if b.T = r.step(t); r.Field.inStack == nil {
			r.fillBox(b)
		}
		for _, band := range r.Field.inStack { // only the bands of the part
			b.B0, b.B1 = band, band+1
			r.fillBox(b)
		}
	}
}

// PadSteps fills the steps of time that the asset does not have.
func (r *Row) PadSteps() {
	b := r.turnBox(nil, einops.Box{Y1: r.Win.H, X1: r.Win.W})
	for _, t := range r.picked().Lacking {
		b.N, b.T, b.B1 = r.N, r.step(t), r.Field.bands()
		r.fillBox(b)
	}
}

// Clear fills the whole row with the fill value. It serves rows that are padding, skipped samples, and
// windows that miss their image.
func (r *Row) Clear() {
	r.fill(einops.Box{Y1: r.Field.H, X1: r.Field.W})
}

// CopyFrom copies the row's pixels in all bands and steps of time, and their mask, from another row of the tensor,
// whose elements have so many bytes.
func (r *Row) CopyFrom(from, size int) {
	box := einops.Box{N: r.N, B1: r.Field.bands(), Y1: r.Field.H, X1: r.Field.W}
	for t := range max(r.Field.TimeSteps, 1) {
		box.T = r.step(t)
		r.Plan.CopyRow(r.Dst, size, box, from)
	}
}

// planar implements planarSink, if all columns of the chunk lie in the window.
func (r *Row) planar(x *chunk.Index, i int) (planar einops.Planar, rows int) {
	box := x.Box(i)
	_, _, columns := x.DecodedShape(i)
	picked := r.picked()
	whole := box.X1-box.X0 == columns && r.Win.X <= box.X0 && box.X1 <= r.Win.X+r.Win.W && r.probe == nil
	places := picked.at[box.B0]
	if !whole || box.B1-box.B0 != 1 || box.Y0 < r.Win.Y || len(places) != 1 || r.Transform&^shuffle.FlipY != 0 {
		return planar, 0
	}
	bottom := min(box.Y1, r.Win.Y+r.Win.H)
	target := r.turnBox(nil, einops.Box{N: r.N, T: r.step(places[0] / picked.bands()), B0: places[0] % picked.bands(),
		Y0: box.Y0 - r.Win.Y, Y1: bottom - r.Win.Y, X0: box.X0 - r.Win.X, X1: box.X1 - r.Win.X})
	target.B1 = target.B0 + 1
	planar, ok := r.Plan.Planar(r.Dst, r.Cv, target, r.Transform == shuffle.FlipY)
	if !ok {
		return planar, 0
	}
	return planar, bottom - box.Y0
}

// probe is memory of a reader for one row of a tensor and its mask.
type probe struct {
	plan *einops.Plan
	dst  einops.Target
}

// Probe lets CheckRange check a row whose tensor lacks a mask because the first raster of its field does without: what
// goes to the row goes to memory of the reader, too.
func (r *Reader) Probe(to *Row) error {
	if !to.Field.Final.Base.Checked || to.Dst.Mask != nil || to.Layout == nil {
		return nil
	}
	plan, err := to.Layout.Plan(1)
	if err != nil {
		return err
	}
	data := plan.Len() * to.Field.To.Size()
	r.probe = Grown(r.probe, data+plan.Len())
	clear(r.probe[data:])
	to.probe = &probe{plan, einops.Target{Data: r.probe[:data], Mask: r.probe[data:]}}
	return nil
}

// scatter writes samples of a box.
func (r *Row) scatter(convert *einops.Converter, box einops.Box, blk einops.Block) {
	r.Plan.Scatter(r.Dst, convert, box, blk)
	if r.probe != nil {
		box.N = 0
		r.probe.plan.Scatter(r.probe.dst, convert, box, blk)
	}
}

// maskBox makes nodata of a box.
func (r *Row) maskBox(convert *einops.Converter, box einops.Box) {
	r.Plan.MaskBox(r.Dst, convert, box)
	if r.probe != nil {
		box.N = 0
		r.probe.plan.MaskBox(r.probe.dst, convert, box)
	}
}

// fillBox fills a box.
func (r *Row) fillBox(box einops.Box) {
	r.Plan.FillBox(r.Dst, r.Cv, box)
	if r.probe != nil {
		box.N = 0
		r.probe.plan.FillBox(r.probe.dst, r.Cv, box)
	}
}
