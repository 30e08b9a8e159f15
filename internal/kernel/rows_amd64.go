//go:build !purego && !twins

package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

const (
	// vector is how many pixels the loops convert at a time, of several bands; of one band they convert two such.
	vector = 8
	// line is how many elements of four bytes a line of the caches holds.
	line = 16
	// manyNumbers bounds a call, because nodata is counted in 32 bits.
	manyNumbers = 1 << 30
)

// Loops for each type of samples, in the order of rowForms: to float32, float16 and bfloat16, the same with nodata,
// limits or a mask, and to float32 past the caches, the same, and of lanes only.
const (
	formFull      = 3
	formPast      = 6
	formPastFull  = 7
	formLanes     = 8
	formsOfSource = 9
)

// rowSources is the order of types in rowForms.
var rowSources = [numNums]int{U8: 0, U16: 1, I16: 2, F32: 3}

const numSources = 4

// RowsFast reports whether Convert has a loop in assembly for rows of so many samples that lie step apart.
func RowsFast(from, to Num, step, width int) bool {
	least := vector
	if step == 1 {
		least *= 2
	}
	if !hasAVX2 || to == F16 && !hasHalfs {
		return false
	}
	return RowsFrom(from) && RowsTo(to) && least <= width && width <= manyNumbers
}

// convertSIMD is Convert of what RowsFast is true for.
func (r *Rows) convertSIMD(dst, mask, src []byte, area RowArea) (bad int) {
	if area.Rows > 1 && area.Rows > manyNumbers/area.Width/Lanes {
		first := area
		first.Rows /= 2
		return r.Convert(dst, mask, src, first) + r.Convert(dst, mask, src, area.below(first.Rows))
	}
	// The loops of several bands load Lanes of them, which may reach past the last sample.
	size := r.From.Size()
	last := area.First + (area.Width-1)*area.Step + max(area.Pitch, 0)*(area.Rows-1)
	load := size
	if area.apart() {
		load *= Lanes
	}
	if excess := last*size + load - len(src); excess > 0 {
		return r.convertEnd(dst, mask, src, area, excess)
	}
	full := r.set(mask, area)
	for i := range r.args.lanes {
		r.args.lanes[i] = math.MaxUint32
	}
	if r.Past && r.To == F32 {
		return r.past(full, dst, mask, src, area)
	}
	return r.call(r.form(full), dst, mask, src, area)
}

// convertEnd converts an area in which a load would reach so many bytes past src. The last pixels of the row that is
// last in src are converted one by one.
func (r *Rows) convertEnd(dst, mask, src []byte, area RowArea, past int) (bad int) {
	first := area
	if area.Rows > 1 {
		first.Rows = area.Rows - 1
		if area.Pitch <= 0 {
			first.Rows = 1
		}
		return r.Convert(dst, mask, src, first) + r.Convert(dst, mask, src, area.below(first.Rows))
	}
	step := area.Step * r.From.Size()
	first.Width = max(area.Width-(past+step-1)/step, 0)
	return r.Convert(dst, mask, src, first) + r.convert(dst, mask, src, area.behind(first.Width))
}

// set fills the arguments that all calls have in common. It reports whether there is nodata, a limit or a mask.
func (r *Rows) set(mask []byte, area RowArea) (full bool) {
	args := &r.args
	full = r.Clip || mask != nil
	for k := range area.Bands {
		broadcast(&args.a[k], r.Band[k].A)
		broadcast(&args.c[k], r.Band[k].C)
		full = full || len(r.Band[k].Missing) > 0
	}
	size := r.From.Size()
	args.srcPitch, args.step, args.dstPitch = area.Pitch*size, area.Step*size, area.DstPitch*r.To.Size()
	args.bands, args.apart = area.Bands, area.apart()
	if full {
		r.setFull(mask, area)
	}
	return full
}

// form returns the number of a loop in rowForms.
func (r *Rows) form(full bool) int {
	form := rowSources[r.From]
	if r.args.apart {
		form += numSources
	}
	form *= formsOfSource
	switch r.To {
	case F16:
		form++
	case BF16:
		form += 2
	}
	if full {
		form += formFull
	}
	return form
}

// apart reports whether the samples of a row do not lie side by side.
func (a *RowArea) apart() bool { return a.Step > 1 || a.Bands > 1 }

// setFull fills the arguments of nodata, limits and the mask.
func (r *Rows) setFull(mask []byte, area RowArea) {
	args := &r.args
	for k := range r.Band {
		var missing []Match
		if k < area.Bands {
			missing = r.Band[k].Missing
		}
		pair, count, nan, _ := twoOf(missing)
		for i, target := range [...]*[8]uint32{&args.first[k], &args.second[k]} {
			bits := uint32(pair[i])
			switch {
			case count == 0 && r.From == F32:
				bits = math.Float32bits(float32(math.NaN())) // any NaN is nodata, or nothing is
			case count == 0:
				bits = noSample
			case r.From == I16:
				bits = uint32(int32(int16(bits)))
			}
			broadcast(target, bits)
		}
		broadcast(&args.nan[k], ones32(nan))
		broadcast(&args.match[k], ones32(nan || count > 0))
	}
	broadcast(&args.fill, r.Fill)
	broadcast(&args.fills, ones32(r.FillNoData))
	lo, hi := float32(math.Inf(-1)), float32(math.Inf(1))
	args.limits = 0
	if r.Clip {
		lo, hi, args.limits = r.Lo, r.Hi, 1
	}
	broadcast(&args.lo, lo)
	broadcast(&args.hi, hi)
	args.maskPitch, args.maskStep = 0, 0
	if mask != nil {
		args.maskPitch, args.maskStep = area.DstPitch, vector
	}
}

func ones32(set bool) uint32 {
	if set {
		return math.MaxUint32
	}
	return 0
}

func broadcast[T uint32 | float32](to *[8]T, v T) {
	for i := range to {
		to[i] = v
	}
}

// past converts to float32 past the caches where all rows of all bands begin lines of 64 bytes at one column: the
// columns before and behind these lines are written by loops that write some lanes of a vector.
func (r *Rows) past(full bool, dst, mask, src []byte, area RowArea) (bad int) {
	numbers, aligned := cast.Of[float32](dst)
	for k := range area.Bands {
		aligned = aligned && (area.Dst[k]-area.Dst[0])%line == 0
	}
	if !aligned || area.Width < 2*line {
		return r.call(r.form(full), dst, mask, src, area)
	}
	if area.Rows > 1 && area.DstPitch%line != 0 {
		for row := range area.Rows {
			rowArea := area.below(row)
			rowArea.Rows = 1
			bad += r.past(full, dst, mask, src, rowArea)
		}
		return bad
	}
	head := cast.ToLine(numbers[area.Dst[0]:])
	tail := (area.Width - head) % line
	middle := area.behind(head)
	middle.Width -= tail
	form := r.form(false)
	if full {
		bad = r.call(form+formPastFull, dst, mask, src, middle)
	} else {
		bad = r.call(form+formPast, dst, mask, src, middle)
		if head+tail > 0 {
			r.setFull(mask, area)
		}
	}
	some := func(column, from, to int) { // lanes of a vector
		for i := range r.args.lanes {
			r.args.lanes[i] = ones32(from <= i && i < to)
		}
		strip := area.behind(column)
		strip.Width = vector
		bad += r.call(form+formLanes, dst, mask, src, strip)
	}
	if head > 0 {
		some(0, 0, head)
	}
	if head > vector {
		some(vector, 0, head-vector)
	}
	if tail > 0 {
		some(area.Width-vector, vector-tail, vector)
	}
	if tail > vector {
		some(area.Width-2*vector, 2*vector-tail, vector)
	}
	for i := range r.args.lanes {
		r.args.lanes[i] = math.MaxUint32
	}
	return bad
}

// call calls a loop. It checks bounds, because the assembly does not.
func (r *Rows) call(form int, dst, mask, src []byte, area RowArea) (bad int) {
	args := &r.args
	args.form, args.rows, args.width = form, area.Rows, area.Width
	up, down := min(area.Pitch, 0)*(area.Rows-1), max(area.Pitch, 0)*(area.Rows-1)
	size := r.From.Size()
	_ = src[(area.First+up)*size]
	_ = src[(area.First+down+(area.Width-1)*area.Step+area.Bands)*size-1]
	args.src = &src[area.First*size]
	size = r.To.Size()
	up, down = min(area.DstPitch, 0)*(area.Rows-1), max(area.DstPitch, 0)*(area.Rows-1)
	for k := range area.Bands {
		first := area.Dst[k]
		_, _ = dst[(first+up)*size], dst[(first+down+area.Width)*size-1]
		args.dst[k] = &dst[first*size]
		if mask != nil {
			_, _ = mask[first+up], mask[first+down+area.Width-1]
			args.mask[k] = &mask[first]
		}
	}
	convertRowsAVX2(args)
	return args.bad
}

// convertRowsAVX2 calls the loop args.form.
//
//go:noescape
func convertRowsAVX2(args *rowArgs)
