package vrt

import (
	"cmp"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
)

// Axis says which pixels of a source make the columns or rows First to Last-1 of a virtual raster.
type Axis struct {
	First, Last int
	start, step float64 // the source's coordinate of the left side of pixel First, and the size of a pixel
	side        int     // of the source
}

// Pixel returns the number of the source's pixel for pixel i of the virtual raster.
func (a *Axis) Pixel(i int) int {
	pos := (float64(i-a.First)+0.5)*a.step + a.start + 1e-10 // as GDAL, against rounding
	return int(min(max(pos, 0), float64(a.side-1)))
}

// Shifted reports whether the pixels of the virtual raster are pixels of the source, and not resampled.
func (a *Axis) Shifted() bool { return a.step == 1 && a.start == math.Floor(a.start) }

// Place returns where the pixels of a source of width by height pixels go. It reports false if it has none in the
// virtual raster. The arithmetic is GDAL's for a read of the whole raster.
func (s *Source) Place(d *Dataset, width, height int) (x, y Axis, ok bool) {
	src, dst := s.Src, s.Dst
	if !s.Placed {
		src = Rect{W: float64(width), H: float64(height)}
		dst = src
	}
	x, across := place(src.X, src.W, dst.X, dst.W, width, d.Width)
	y, down := place(src.Y, src.H, dst.Y, dst.H, height, d.Height)
	return x, y, across && down
}

// near is how far from an integer GDAL takes a coordinate for that integer.
const near = 1e-3

// nearestInteger returns the integer that v is near, or v.
func nearestInteger(v float64) float64 {
	if r := math.Round(v); math.Abs(r-v) < near {
		return r
	}
	return v
}

// place is Place on one axis.
func place(srcOff, srcSize, dstOff, dstSize float64, side, total int) (a Axis, ok bool) {
	left, right := max(dstOff, 0), min(dstOff+dstSize, float64(total))
	scale := srcSize / dstSize
	if !(srcSize > 0 && dstSize > 0 && left < right) || math.IsInf(scale, 0) {
		return a, false
	}
	clipped := left > 0 || right < float64(total)
	start, end := (left-dstOff)*scale+srcOff, (right-dstOff)*scale+srcOff
	if start < 0 || end > float64(side) {
		start, end, clipped = max(start, 0), min(end, float64(side)), true
	}
	if up := math.Ceil(start); up-start < near {
		start = up
	}
	if !(start < end) || start >= float64(side) {
		return a, false
	}
	a.Last, a.side = total, side
	if clipped {
		first, last := (start-srcOff)/scale+dstOff, (end-srcOff)/scale+dstOff
		a.First = max(int(first+near), 0)
		a.Last = min(int(math.Ceil(last-near)), total)
		start -= (first - float64(a.First)) * scale
		end += (float64(a.Last) - last) * scale
	}
	start, size := nearestInteger(start), nearestInteger(end-start)
	a.start, a.step = start, size/float64(a.Last-a.First)
	return a, a.First < a.Last
}

// Piece is a box of pixels of a source, and how they become pixels of a band.
type Piece struct {
	Source      *Source
	X, Y        *Axis
	DType       chunk.DType // of the samples of the source
	Samples     []byte      // rows of columns, little-endian
	Valid       []byte      // of each sample; nil: all are
	Y0, X0      int         // the first row and column
	Width       int         // of a row
	ToDType     chunk.DType // of the band
	To          []byte      // rows of the band
	ToY0, ToX0  int
	ToWidth     int
	First, Last int // rows of the virtual raster
	Left, Right int // and columns
}

// Put puts the pixels of a piece into its band.
func (p *Piece) Put() {
	size, toSize := p.DType.Size(), p.ToDType.Size()
	if p.Source.OfMask {
		p.Samples, p.DType, size = maskOf(p.Valid), chunk.Uint8, 1
	}
	if !p.Source.Masked {
		p.Valid = nil
	}
	plain := p.DType == p.ToDType && !p.Source.computes()
	first := p.X.Pixel(p.Left)
	run := p.X.Pixel(p.Right-1)-first == p.Right-1-p.Left && p.X.step == 1
	value := p.Source.value(p.DType, p.ToDType)
	for row := p.First; row < p.Last; row++ {
		line := (p.Y.Pixel(row) - p.Y0) * p.Width
		out := p.To[((row-p.ToY0)*p.ToWidth+p.Left-p.ToX0)*toSize:]
		if plain && run && p.Valid == nil && p.Source.NoData == nil {
			begin := (line + first - p.X0) * size
			copy(out[:(p.Right-p.Left)*size], p.Samples[begin:])
			continue
		}
		for column := p.Left; column < p.Right; column++ {
			place := line + p.X.Pixel(column) - p.X0
			sample, dst := p.Samples[place*size:][:size], out[(column-p.Left)*toSize:][:toSize]
			switch {
			case p.Valid != nil && p.Valid[place] == 0:
			case plain && p.Source.NoData == nil:
				copy(dst, sample)
			default:
				v, ok := value(p.DType.Number(sample))
				switch {
				case !ok:
				case plain:
					copy(dst, sample)
				default:
					p.ToDType.PutNumber(dst, v)
				}
			}
		}
	}
}

// maskOf makes a mask of GDAL of the validity of pixels: 255 where they are.
func maskOf(valid []byte) []byte {
	for i, v := range valid {
		if v != 0 {
			valid[i] = 255
		}
	}
	return valid
}

// Beside reports whether two sources are the same window of one file, and go to the same place.
func (s *Source) Beside(o *Source) bool {
	return s.File == o.File && s.OfMask == o.OfMask && s.Placed == o.Placed && s.Src == o.Src && s.Dst == o.Dst
}

// Meets reports whether a source may have pixels in a box.
func (s *Source) Meets(top, bottom, left, right int) bool {
	return !s.Placed || s.Dst.X < float64(right) && s.Dst.X+s.Dst.W > float64(left) &&
		s.Dst.Y < float64(bottom) && s.Dst.Y+s.Dst.H > float64(top)
}

// value returns what makes a value of a band of a sample, and false for nodata. GDAL computes float32 where neither the
// band's type nor integers of the source need more.
func (s *Source) value(from, to chunk.DType) func(float64) (float64, bool) {
	round := func(v float64) float64 { return float64(float32(v)) }
	epsilon := 0x1p-23
	isLong := func(t chunk.DType) bool { return t.Integer() && t.Size() >= 4 }
	if to == chunk.Float64 || isLong(to) || isLong(from) {
		round, epsilon = func(v float64) float64 { return v }, 0x1p-52
	}
	missing := func(float64) bool { return false }
	if s.NoData != nil {
		nodata := round(*s.NoData)
		missing = func(v float64) bool {
			return v == nodata || math.Abs(v-nodata) < epsilon*math.Abs(v+nodata)*2
		}
		if nodata != nodata {
			missing = func(v float64) bool { return v != v }
		}
	}
	if !s.computes() && s.NoData == nil {
		return func(v float64) (float64, bool) { return v, true }
	}
	return func(v float64) (float64, bool) {
		v = round(v)
		if missing(v) {
			return 0, false
		}
		if s.Scale != 1 || s.Offset != 0 {
			v = round(v*s.Scale + s.Offset)
		}
		if s.LUT != nil {
			v = round(s.look(v))
		}
		return v, true
	}
}

// look returns the value of the lookup table, between two entries on the line through them.
func (s *Source) look(v float64) float64 {
	lut := s.LUT
	if v != v || v <= lut[0].In {
		return lut[0].Out
	}
	low, found := slices.BinarySearchFunc(lut, v, func(s Step, v float64) int { return cmp.Compare(s.In, v) })
	switch {
	case low == len(lut):
		return lut[low-1].Out
	case found:
		return lut[low].Out
	}
	a, b := lut[low-1], lut[low]
	return a.Out + (v-a.In)*((b.Out-a.Out)/(b.In-a.In))
}
