package warp

import "fmt"

// Number is the type of a pixel.
type Number interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64
}

// Plane is a rectangle of one band of the raster, row by row.
type Plane[T any] struct {
	Box   Box
	Pix   []T
	Valid []byte // 1 or 0 for each pixel; nil if all are valid
}

// check reports a plane or a window of another size than the mapping needs.
func check[T any](m *Mapping, k Kernel, p *Plane[T], out, valid int) error {
	height, width := p.Box.Y1-p.Box.Y0, p.Box.X1-p.Box.X0
	need := m.Source(k)
	switch {
	case out != m.height*m.width || valid != out:
		return fmt.Errorf("a window of %d by %d pixels in memory for %d, and %d of validity", m.height, m.width, out,
			valid)
	case need.Empty():
		return nil
	case !p.Box.holds(need) || !m.raster.holds(p.Box):
		return fmt.Errorf("the pixels %v of the raster do not hold %v, which the window needs", p.Box, need)
	case len(p.Pix) != height*width || p.Valid != nil && len(p.Valid) != height*width:
		return fmt.Errorf("%d pixels, and %d of validity, in a box of %d by %d", len(p.Pix), len(p.Valid), height,
			width)
	}
	return nil
}

// Pick fills a window with the nearest pixels, as they are. valid gets 1 for each of them; a pixel off
// the raster is 0, and zero in out. src must hold Source(Nearest).
func Pick[T any](m *Mapping, src Plane[T], out []T, valid []byte) error {
	if err := check(m, Nearest, &src, len(out), len(valid)); err != nil {
		return err
	}
	clear(out)
	clear(valid)
	m.rows(src.Box, nudge, func(r *run) { pickRow(r, &src, out[r.at:][:r.n], valid[r.at:][:r.n]) })
	return nil
}

// Cover sets seen to 1 at the pixels of the window that lie on the raster, and returns how many it has not seen before.
// seen has one byte for each pixel.
func (m *Mapping) Cover(seen []byte) (n int) {
	m.rows(m.raster, nudge, func(r *run) {
		for i := range seen[r.at:][:r.n] {
			n += 1 - int(seen[r.at+i])
			seen[r.at+i] = 1
		}
	})
	return n
}

func pickRow[T any](r *run, src *Plane[T], out []T, valid []byte) {
	stride := int64(src.Box.X1 - src.Box.X0)
	x, y := r.from.x, r.from.y
	pix := src.Pix
	for i := range out {
		pos := (y>>32)*stride + x>>32
		out[i], valid[i] = pix[pos], 1
		x, y = x+r.step.x, y+r.step.y
	}
	if src.Valid == nil {
		return
	}
	x, y = r.from.x, r.from.y
	for i := range valid {
		valid[i] = src.Valid[(y>>32)*stride+x>>32]
		x, y = x+r.step.x, y+r.step.y
	}
}

// Sample fills a window by a kernel. valid gets 1 for each pixel that has a value; one off the raster,
// or missing in it, is 0, and zero in out. src must hold Source(k).
func Sample[T Number](m *Mapping, k Kernel, src Plane[T], out []float32, valid []byte) error {
	if err := check(m, k, &src, len(out), len(valid)); err != nil {
		return err
	}
	clear(out)
	clear(valid)
	if k == Antialias && m.radiusX == 1 && m.radiusY == 1 && src.Valid == nil {
		k = Bilinear // the same, and faster
	}
	switch k {
	case Nearest:
		m.rows(src.Box, nudge, func(r *run) { nearRow(r, &src, out[r.at:][:r.n], valid[r.at:][:r.n]) })
	case Bilinear:
		m.rows(src.Box, 0, func(r *run) { blendRow(r, &src, out[r.at:][:r.n], valid[r.at:][:r.n]) })
	case Antialias:
		tent, err := newTent(m, &src)
		if err != nil {
			return err
		}
		m.rows(src.Box, 0, func(r *run) { tent.row(r, out[r.at:][:r.n], valid[r.at:][:r.n]) })
	default:
		return fmt.Errorf("kernel %d is unknown", k)
	}
	return nil
}

// run is a row of pixels of the window that all lie on the raster. Places count from the corner of the plane.
type run struct {
	at, n      int // of the window
	from, step sourcePlace
}

// nudge moves places to the right and down by less than a hundred-thousandth of a pixel, more than the
// rounding of steps (maxFlat) takes away: a place on the edge of two pixels belongs to the second, as
// in package pixels and in GDAL.
const nudge = 2 * maxFlat

// rows calls do for the rows of all cells, each cut to the pixels on the raster. Places are moved by shift.
func (m *Mapping) rows(part Box, shift int64, do func(*run)) {
	var r run
	for i := range m.cells {
		cell := &m.cells[i]
		for row := range cell.h {
			start, step := cell.row(row)
			first, end := inside(start.x+nudge, step.x, cell.w, 0, int64(m.raster.X1)*one)
			top, bottom := inside(start.y+nudge, step.y, cell.w, 0, int64(m.raster.Y1)*one)
			if first, end = max(first, top), min(end, bottom); first >= end {
				continue
			}
			r = run{at: (cell.y+row)*m.width + cell.x + first, n: end - first, step: step}
			r.from.x = start.x + int64(first)*step.x - int64(part.X0)*one + shift
			r.from.y = start.y + int64(first)*step.y - int64(part.Y0)*one + shift
			do(&r)
		}
	}
}

// inside returns which of n places from, from+step, … are at least lo and less than hi.
func inside(from, step int64, n int, lo, hi int64) (first, end int) {
	if step < 0 { // mirrored, the bounds change sides: at least lo becomes at most -lo
		from, step, lo, hi = -from, -step, 1-hi, 1-lo
	}
	if step == 0 {
		if from >= lo && from < hi {
			return 0, n
		}
		return 0, 0
	}
	up := func(d int64) int { // steps until d is covered
		if d <= 0 {
			return 0
		}
		return int(min((d-1)/step+1, int64(n)))
	}
	return up(lo - from), up(hi - from)
}

func nearRow[T Number](r *run, src *Plane[T], out []float32, valid []byte) {
	stride := int64(src.Box.X1 - src.Box.X0)
	x, y := r.from.x, r.from.y
	for i := range out {
		pos := (y>>32)*stride + x>>32
		if src.Valid == nil || src.Valid[pos] != 0 {
			out[i], valid[i] = float32(src.Pix[pos]), 1
		}
		x, y = x+r.step.x, y+r.step.y
	}
}
