package einops

import (
	"sync"

	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Block is decoded samples, in band planes or pixel-interleaved, as the strides say. A mirrored block has
// negative strides; a transposed one has the strides of rows and columns exchanged.
type Block struct {
	Data  []byte // little-endian samples
	DType dtype.Type
	// Distances of neighbours in samples.
	StrideB, StrideY, StrideX int
	First                     int // index in Data of the first band, row and column of the box
}

// Target is one tensor being filled.
type Target struct {
	Data []byte // little-endian elements, Plan.Len() of them
	Mask []byte // nil, or Plan.Len() bytes: 1 or OutOfRange for a valid sample, else 0
}

// Box is a part of the input: row N of the batch, time T, bands B0 up to B1, rows Y0 up to Y1, columns
// X0 up to X1. These are indices into the input axes of the pattern, not into a file as in chunk.Box.
// An axis that the input lacks has 0, or 0 up to 1.
type Box struct{ N, T, B0, B1, Y0, Y1, X0, X1 int }

const (
	// piece is how many samples are converted at a time if they cannot be converted in place. Their
	// float32, mask and samples side by side take 9 KiB, so they stay in a first-level cache of 32 KiB with
	// their source.
	piece = 1024
	// inPlace is the shortest run that is converted directly into the tensor. Shorter runs are converted
	// many at a time and then copied, because a call per run would cost more than the copy.
	inPlace = 64
	// streamed is the size in bytes from which a tensor is written past the caches. It is larger than
	// most second-level caches: the tensor would leave them before it is complete, and would evict
	// everything else.
	streamed = 8 << 20
)

// blockPlace says where the samples of a box lie in the block, and their elements in the tensor: loops over b and y,
// with rows along x.
type blockPlace struct {
	cv      *Converter
	dst     Target
	floats  []float32 // dst.Data as float32; nil if elements have another type or are not aligned
	stream  bool      // floats are written past the caches
	gathers bool      // samples are brought side by side first, because vectors do both sooner than a loop
	src     []byte
	strideX int // of src, in samples
	x0, w   int
	runs    runs

	elements []uint64       // of the band, with a table
	missing  []kernel.Match // of the band
}

// job converts a box run by run. Its memory is not part of place, because to clear it takes as long as to convert 1,000
// samples.
type job struct {
	blockPlace
	f     [piece]float32
	valid [piece]byte
	near  [4 * piece]byte // samples side by side
}

// loop is one axis of a box.
type loop struct {
	axis     *axisPlan
	first, n int
	stride   int // of the block, in samples
}

var noAxis axisPlan // an axis of length 1

var ones = []byte{1}

// Scatter writes the samples of blk, which cover box, to their places in dst. It returns the number of
// nodata samples, which is 0 if the converter has no nodata value. It allocates nothing. Calls for boxes
// that do not overlap may run concurrently.
//
// It panics if the box lies outside the input, if the block or the target is too short, or if the
// converter has no scale for a band.
func (p *Plan) Scatter(dst Target, cv *Converter, box Box, blk Block) (nodata int) {
	if p.check(dst, cv, box) {
		return 0
	}
	checkBlock(cv, box, blk)
	bands := loop{&p.axes[axisB], box.B0, box.B1 - box.B0, blk.StrideB}
	rows := loop{&p.axes[axisY], box.Y0, box.Y1 - box.Y0, blk.StrideY}
	work := blockPlace{cv: cv, dst: dst, src: blk.Data, strideX: blk.StrideX, x0: box.X0, w: box.X1 - box.X0,
		runs: p.runs}
	if cv.toNum == kernel.F32 {
		work.floats, _ = cast.Of[float32](dst.Data)
		work.stream = !cv.clip && len(dst.Data) >= streamed
	}
	if work.stream {
		// Streamed stores are not ordered, so another process could otherwise see the batch
		// before its samples.
		defer kernel.StreamEnd()
	}
	base := p.axes[axisN].offset(box.N) + p.axes[axisT].offset(box.T)
	base += work.mergeBands(&bands)
	base += work.mergeRows(&rows)
	work.gathers = kernel.Gathers(cv.fromSize, work.strideX)
	turned := work.strideX < 0 || rows.n > 1 && work.strideX > abs(rows.stride)
	stride, same := rows.axis.stride()
	if same && !turned && work.copiesRows() && (bands.n == 1 || bands.outside(&rows)) {
		for band := range bands.n {
			offset := base + bands.axis.offset(bands.first+band) + rows.first*stride
			work.copyRows(offset, stride, blk.First+band*bands.stride, rows.stride, rows.n)
		}
		return 0
	}
	if stride, ok := work.asRows(&bands, &rows); ok && !turned {
		return work.convertRows(bands, rows, stride, base, blk.First)
	}
	return work.convertRuns(bands, rows, base, blk.First, turned)
}

// convertRuns converts a box run by run. first is the index of the block's first sample, base the offset of the
// tensor's first element.
func (p *blockPlace) convertRuns(bands, rows loop, base, first int, turned bool) (nodata int) {
	work := job{blockPlace: *p}
	if turned {
		return work.turnBox(bands, rows, base, first)
	}
	work.stream = p.stream && p.cv.affine && (p.strideX == 1 || p.gathers)
	if bands.outside(&rows) {
		for band := range bands.n {
			scale, shift := work.setBand(bands.first + band)
			offset, sample := base+bands.axis.offset(bands.first+band), first+band*bands.stride
			for row := range rows.n {
				nodata += work.row(offset+rows.axis.offset(rows.first+row), sample+row*rows.stride, scale, shift)
			}
		}
		return nodata
	}
	for row := range rows.n {
		offset, sample := base+rows.axis.offset(rows.first+row), first+row*rows.stride
		for band := range bands.n {
			scale, shift := work.setBand(bands.first + band)
			nodata += work.row(offset+bands.axis.offset(bands.first+band), sample+band*bands.stride, scale, shift)
		}
	}
	return nodata
}

// check panics on mistakes and reports whether the box is empty.
func (p *Plan) check(dst Target, cv *Converter, box Box) (empty bool) {
	in := func(axis, lo, hi int) bool { return lo >= 0 && lo <= hi && hi <= p.axes[axis].n }
	switch {
	case !in(axisN, box.N, box.N+1) || !in(axisT, box.T, box.T+1) || !in(axisB, box.B0, box.B1) ||
		!in(axisY, box.Y0, box.Y1) || !in(axisX, box.X0, box.X1):
		panic("einops: box outside the input")
	case len(dst.Data) < p.elems*cv.toSize || dst.Mask != nil && len(dst.Mask) < p.elems:
		panic("einops: target too short")
	case box.B1 > cv.maxBand:
		panic("einops: no scale or offset for some bands")
	}
	return box.B0 == box.B1 || box.Y0 == box.Y1 || box.X0 == box.X1
}

func checkBlock(cv *Converter, box Box, blk Block) {
	if blk.DType != cv.from {
		panic("einops: the block and the converter have different types")
	}
	samples := len(blk.Data) / cv.fromSize
	// Strides are compared first, so the products below cannot overflow. -samples is compared, and not the
	// negative stride, because -math.MinInt is negative.
	least, last := blk.First, blk.First
	for _, side := range [...][2]int{{box.B1 - box.B0, blk.StrideB}, {box.Y1 - box.Y0, blk.StrideY},
		{box.X1 - box.X0, blk.StrideX}} {
		if (side[1] > samples || side[1] < -samples) && side[0] > 1 {
			panic("einops: block too short")
		}
		least += (side[0] - 1) * min(side[1], 0)
		last += (side[0] - 1) * max(side[1], 0)
	}
	if least < 0 || last >= samples {
		panic("einops: block too short")
	}
}

// mergeBands turns the rows of all bands into one row of whole pixels, if block and tensor are both
// pixel-interleaved with the same bands. It returns what to add to all offsets.
func (p *blockPlace) mergeBands(b *loop) int {
	stride, constant := b.axis.stride()
	ofPixels := b.stride == 1 && p.strideX == b.n
	toPixels := constant && stride == 1 && p.runs.constant() && p.runs.stride == b.n
	if b.n == 1 || !ofPixels || !toPixels || !p.cv.samePerBand {
		return 0
	}
	off := p.x0 * p.runs.stride
	p.x0, p.w, p.strideX, p.runs.stride = 0, p.w*b.n, 1, 1
	*b = loop{axis: &noAxis, n: 1}
	return off
}

// mergeRows turns all rows into one, if they lie end to end in both block and tensor. It returns what to
// add to all offsets.
func (p *blockPlace) mergeRows(y *loop) int {
	stride, constant := y.axis.stride()
	gapless := constant && p.runs.constant() && stride == p.w*p.runs.stride && y.stride == p.w*p.strideX
	if y.n == 1 || !gapless {
		return 0
	}
	off := y.first*stride + p.x0*p.runs.stride
	p.x0, p.w = 0, p.w*y.n
	*y = loop{axis: &noAxis, n: 1}
	return off
}

// outside reports whether the loop over b goes around the loop over y. It must not if rows of several
// bands lie close together in the block or in the tensor: every cache line would be loaded once per
// band.
func (b *loop) outside(y *loop) bool {
	bandStep, _ := b.axis.stride()
	rowStep, _ := y.axis.stride()
	return abs(b.stride) > abs(y.stride) && bandStep > rowStep
}

// row converts one row. at is the offset of x = 0 in the tensor, first the index of the row's first sample.
func (j *job) row(at, first int, scale, shift float32) (nodata int) {
	cv := j.cv
	for done := 0; done < j.w; {
		pos, count := j.runs.at(j.x0 + done)
		count = min(count, j.w-done)
		stored := j.src[(first+done*j.strideX)*cv.fromSize:]
		switch {
		case cv.table != nil:
			count = min(count, piece)
			nodata += j.look(at+pos, stored, count)
		case cv.copies || cv.widens:
			count = j.limit(count)
			nodata += j.copyRun(at+pos, stored, count)
		case count >= inPlace && j.floats != nil && j.runs.stride == 1:
			count = j.limit(count)
			bad := j.convert(j.floats[at+pos:at+pos+count], stored, scale, shift, j.stream)
			j.mask(at+pos, 0, count, bad > 0)
			nodata += bad
		default:
			count = min(piece, j.w-done)
			bad := j.convert(j.f[:count], stored, scale, shift, false)
			j.store(at, j.x0+done, count, j.markUnfit(count, bad))
			nodata += bad
		}
		done += count
	}
	return nodata
}

// limit cuts a run to the length of valid, if valid is used.
func (j *job) limit(n int) int {
	if j.cv.noData {
		return min(n, piece)
	}
	return n
}

// convert fills f from s, with the fill value for nodata, and returns how many samples are nodata. If
// there are any, valid says which.
func (j *job) convert(f []float32, s []byte, scale, shift float32, stream bool) (bad int) {
	cv := j.cv
	if cv.noData {
		bad = j.markMissing(s, len(f))
	}
	if !j.gathers {
		cv.load(f, s, j.strideX, scale, shift, stream)
	}
	for done := 0; j.gathers && done < len(f); done += piece {
		count := min(len(f)-done, piece)
		kernel.Copy(j.near[:], 1, s[done*j.strideX*cv.fromSize:], j.strideX, count, cv.fromSize)
		cv.load(f[done:done+count], j.near[:count*cv.fromSize], 1, scale, shift, stream)
	}
	if bad > 0 && cv.fillNoData {
		kernel.Patch(f, j.valid[:len(f)], cv.fillFloat)
	}
	return bad
}

// markMissing sets j.valid[i] to 0 where sample i of src is nodata of the band, else to 1, for n samples. It returns
// how many are nodata.
func (j *job) markMissing(src []byte, n int) (bad int) {
	valid := j.valid[:n]
	for k := range j.missing {
		if k == 0 {
			bad = j.cv.valid(valid, src, j.strideX, &j.missing[0])
			continue
		}
		var more [piece]byte
		if j.cv.valid(more[:n], src, j.strideX, &j.missing[k]) == 0 {
			continue
		}
		for i, ok := range more[:n] {
			bad += int(valid[i] &^ ok)
			valid[i] &= ok
		}
	}
	if len(j.missing) == 0 {
		kernel.Repeat(valid, 1, ones, n)
	}
	return bad
}

// markUnfit reports whether j.valid says anything of j.f[:n], where bad samples are nodata. With Checked it marks
// samples that the element type cannot hold.
func (j *job) markUnfit(n, bad int) (marked bool) {
	if !j.cv.checked || j.dst.Mask == nil || kernel.FitUint8(j.f[:n]) {
		return bad > 0
	}
	valid := j.valid[:n]
	if bad == 0 {
		kernel.Repeat(valid, 1, ones, n)
	}
	for i := range valid {
		if valid[i] == 1 && !kernel.FitUint8(j.f[i:i+1]) {
			valid[i] = OutOfRange
		}
	}
	return true
}

// store writes j.f[:n] and the mask, run by run, from column x on. off is the offset of x = 0. See mask for marked.
func (j *job) store(off, x, n int, marked bool) {
	size := j.cv.toSize
	for i := 0; i < n; {
		pos, run := j.runs.at(x + i)
		run = min(run, n-i)
		if j.floats != nil {
			kernel.StoreFloat32(j.floats[off+pos:], j.f[i:i+run], j.runs.stride)
		} else {
			kernel.Store(j.dst.Data[(off+pos)*size:], j.f[i:i+run], j.cv.toNum, j.runs.stride)
		}
		j.mask(off+pos, i, run, marked)
		i += run
	}
}

// mask writes n mask bytes to element at: j.valid from i on, or ones without marked.
func (j *job) mask(at, i, n int, marked bool) {
	switch {
	case j.dst.Mask == nil:
	case !marked:
		kernel.Repeat(j.dst.Mask[at:], j.runs.stride, ones, n)
	default:
		kernel.Copy(j.dst.Mask[at:], j.runs.stride, j.valid[i:], 1, n, 1)
	}
}

// copyRun copies or widens n samples to element at of a run, with the fill value for nodata.
func (j *job) copyRun(at int, s []byte, n int) (bad int) {
	cv := j.cv
	if cv.noData {
		bad = j.markMissing(s, n)
	}
	if target := j.dst.Data[at*cv.toSize:]; cv.widens {
		kernel.Widen(target, j.runs.stride, s, cv.fromNum, j.strideX, n)
	} else {
		kernel.Copy(target, j.runs.stride, s, j.strideX, n, cv.toSize)
	}
	if bad > 0 && cv.fillNoData {
		for i, ok := range j.valid[:n] {
			if ok == 0 {
				copy(j.dst.Data[(at+i*j.runs.stride)*cv.toSize:], cv.fill[:cv.toSize])
			}
		}
	}
	j.mask(at, 0, n, bad > 0)
	return bad
}

// copiesRows reports whether rows are copied as they are. The cases of row are 2 to 3 % of the time of reading tiles of
// 128 pixels, whose rows have 256 bytes.
func (p *blockPlace) copiesRows() bool {
	together := p.strideX == 1 && p.runs.constant() && p.runs.stride == 1
	return together && p.cv.copies && !p.cv.noData && p.dst.Mask == nil
}

// copyRows copies rows from index src of the block to offset off of the tensor. The strides are in samples.
func (p *blockPlace) copyRows(off, stride, src, step, rows int) {
	size := p.cv.toSize
	n, end, start := p.w*size, (off+p.x0)*size, src*size
	for range rows {
		copy(p.dst.Data[end:end+n], p.src[start:start+n])
		end += stride * size
		start += step * size
	}
}

// turned is memory for rows in order.
type turned struct {
	_ [0]uint64 // aligned
	b [kernel.TurnedBytes]byte
}

// turnedRows holds the memory of turnBox, whose 32 KiB need not be cleared each time.
var turnedRows = sync.Pool{New: func() any { return new(turned) }}

// turnBox converts all rows of a block whose rows are mirrored or transposed. It puts some rows at a time in order,
// in memory that fits in a cache, and converts them from there like the rows of any block.
func (j *job) turnBox(b, y loop, base, first int) (nodata int) {
	tmp := turnedRows.Get().(*turned)
	defer turnedRows.Put(tmp)
	size := j.cv.fromSize
	rows, pitch := kernel.TurnedRows, min(kernel.TurnedCols, len(tmp.b)/kernel.TurnedRows/size)
	src, step, x0, width := j.src, j.strideX, j.x0, j.w
	inner := *j
	inner.src, inner.strideX, inner.gathers = tmp.b[:], 1, false
	stride, same := y.axis.stride()
	copies := same && inner.copiesRows()
	for band := range b.n {
		scale, shift := inner.setBand(b.first + band)
		off := base + b.axis.offset(b.first+band)
		for pos := 0; pos < y.n; pos += rows {
			count := min(rows, y.n-pos)
			for x := 0; x < width; x += pitch {
				inner.x0, inner.w = x0+x, min(pitch, width-x)
				pixel := first + band*b.stride + pos*y.stride + x*step
				kernel.Turn(tmp.b[:], src, pixel, y.stride, step, count, inner.w, pitch, size)
				oneBand := loop{axis: b.axis, first: b.first + band, n: 1}
				some := loop{axis: y.axis, first: y.first + pos, n: count, stride: pitch}
				if copies {
					inner.copyRows(off+some.first*stride, stride, 0, pitch, count)
					continue
				}
				if stride, ok := inner.asRows(&oneBand, &some); ok {
					nodata += inner.convertRows(oneBand, some, stride, base, 0)
					continue
				}
				for row := range count {
					nodata += inner.row(off+y.axis.offset(y.first+pos+row), row*pitch, scale, shift)
				}
			}
		}
	}
	return nodata
}

func abs(n int) int { return max(n, -n) }

// FillBox writes the converter's Fill and mask 0 to a whole box. It serves padding. It allocates nothing
// and panics as Scatter does.
func (p *Plan) FillBox(dst Target, cv *Converter, box Box) { p.clear(dst, cv, box, true) }

// MaskBox treats a whole box as nodata: it writes mask 0 and, if the converter has FillNoData, Fill. It
// allocates nothing and panics as Scatter does.
func (p *Plan) MaskBox(dst Target, cv *Converter, box Box) { p.clear(dst, cv, box, cv.fillNoData) }

func (p *Plan) clear(dst Target, cv *Converter, box Box, data bool) {
	if p.check(dst, cv, box) {
		return
	}
	p.eachRun(box, func(_, _, _, first, n int) (goOn bool) {
		if data {
			kernel.Repeat(dst.Data[first*cv.toSize:], p.runs.stride, cv.fill[:cv.toSize], n)
		}
		if dst.Mask != nil {
			kernel.Repeat(dst.Mask[first:], p.runs.stride, zero, n)
		}
		return true
	})
}

// CopyRow copies the elements of a box, of size bytes each, and their mask, from row number from of the batch. It
// allocates nothing and panics if the box or that row lies outside the input.
func (p *Plan) CopyRow(dst Target, size int, box Box, from int) {
	if n := p.axes[axisN].n; from < 0 || from >= n || box.N < 0 || box.N >= n {
		panic("einops: box outside the input")
	}
	back := p.axes[axisN].offset(from) - p.axes[axisN].offset(box.N)
	stride := p.runs.stride
	p.eachRun(box, func(_, _, _, first, n int) (goOn bool) {
		kernel.Copy(dst.Data[first*size:], stride, dst.Data[(first+back)*size:], stride, n, size)
		if dst.Mask != nil {
			kernel.Copy(dst.Mask[first:], stride, dst.Mask[first+back:], stride, n, 1)
		}
		return true
	})
}

// eachRun calls visit for the runs of a box: n samples from column x of row y of band b on, whose elements begin at
// number first. It ends when visit returns false.
func (p *Plan) eachRun(box Box, visit func(b, y, x, first, n int) (goOn bool)) {
	base := p.axes[axisN].offset(box.N) + p.axes[axisT].offset(box.T)
	for b := box.B0; b < box.B1; b++ {
		for y := box.Y0; y < box.Y1; y++ {
			row := base + p.axes[axisB].offset(b) + p.axes[axisY].offset(y)
			for x := box.X0; x < box.X1; {
				column, n := p.runs.at(x)
				n = min(n, box.X1-x)
				if !visit(b, y, x, row+column, n) {
					return
				}
				x += n
			}
		}
	}
}

var zero = []byte{0}

// OutOfRange returns the place of an element in a box whose mask is OutOfRange, or false without one. It allocates
// nothing and panics as Scatter does.
func (p *Plan) OutOfRange(dst Target, cv *Converter, box Box) (b, y, x int, found bool) {
	if p.check(dst, cv, box) {
		return 0, 0, 0, false
	}
	p.eachRun(box, func(band, row, column, first, n int) (goOn bool) {
		for i := range n {
			if dst.Mask[first+i*p.runs.stride] == OutOfRange {
				b, y, x, found = band, row, column+i, true
				return false
			}
		}
		return true
	})
	return b, y, x, found
}
