package loader

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// pointsField is a compiled field of points.
type pointsField struct {
	name      string
	maxPoints int         // bound of the points of a row; further ones are counted and left out
	dtype     chunk.DType // of the values
	world     bool        // coordinates lie on the ground, not in pixels
	fixed     *affine     // the transform that the spec gives for all samples; nil for each asset's own
	array     *tiledb.Array
	attr      int
	n, y, x   int // indices of the dimensions; n may be -1
	leftOut   atomic.Int64
}

// openPoints opens the array of a field.
func openPoints(ctx context.Context, f Field, t rows.Table, o Options) (*pointsField, error) {
	points := f.Points
	array, err := rows.OpenArrayAt(ctx, points.Array, points.Timestamp, o)
	if err != nil {
		return nil, err
	}
	field := &pointsField{name: f.Name, maxPoints: points.Most, world: points.In == spec.WorldPoints, array: array,
		n: -1, y: -1, x: -1}
	if err := field.resolve(points, t); err != nil {
		return nil, fault.WithFile(err, points.Array)
	}
	return field, nil
}

// resolve finds the dimensions and the attribute of the field in the array's schema. It returns
// faults of kind unsupported or not found if they do not fit.
func (p *pointsField) resolve(q *spec.Points, t rows.Table) error {
	schema := p.array.Schema
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "array schema", fault.NoOffset, format, args...)
	}
	if schema.Dense {
		return bad(fault.Unsupported, "the array is dense: points come from sparse ones")
	}
	names := strings.Fields(q.Dims)
	if len(names) == 0 {
		for i := range schema.Dims {
			names = append(names, schema.Dims[i].Name)
		}
	}
	if len(names) != len(schema.Dims) {
		return bad(fault.Unsupported, "%q names %d dimensions, the array has %d", q.Dims, len(names), len(schema.Dims))
	}
	for place, name := range names {
		if schema.Type(place) == tiledb.StringASCII {
			return bad(fault.Unsupported, "dimension %q has strings: points have numbers", schema.Dims[place].Name)
		}
		axis, ok := map[string]*int{"n": &p.n, "y": &p.y, "x": &p.x}[name]
		if !ok || *axis >= 0 {
			return bad(fault.Unsupported, "%q: dimensions of points are called n, y and x, each once",
				strings.Join(names, " "))
		}
		*axis = place
	}
	if p.y < 0 || p.x < 0 {
		return bad(fault.Unsupported, "%q: y and x are needed", strings.Join(names, " "))
	}
	p.attr = schema.Attr(q.Values)
	if q.Values == "" && len(schema.Attrs) == 1 {
		p.attr = 0
	}
	if p.attr < 0 {
		list := make([]string, len(schema.Attrs))
		for i := range schema.Attrs {
			list[i] = schema.Attrs[i].Name
		}
		return bad(fault.NotFound, "no attribute %q for values; there are %q", q.Values, list)
	}
	attribute := &schema.Attrs[p.attr]
	if p.dtype = attribute.Type.Sample(); attribute.Values != 1 || p.dtype == chunk.Invalid {
		return bad(fault.Unsupported, "attribute %s has cells of %s of type %v, not one number", attribute.Name,
			attribute.Cells(), attribute.Type)
	}
	if q.Transform != nil {
		var err error
		if p.fixed, err = newAffine(*q.Transform); err != nil {
			return err
		}
	}
	if t.Extras().Coordinate != nil && p.world && p.fixed == nil {
		return bad(fault.Unsupported, "arrays have no transform: name one for points in %q", spec.WorldPoints)
	}
	return nil
}

// affine is a transform from pixels to the ground, and its inverse.
type affine struct{ t, back [6]float64 }

// newAffine returns a transform with its inverse. It is unsupported if it has none.
func newAffine(t [6]float64) (*affine, error) {
	// The conversions to float64 prevent fused multiply-adds, which would round differently on
	// other processors and give other points.
	det := float64(t[1]*t[5]) - float64(t[2]*t[4])
	// all != all is true for NaN. The sum catches a NaN or infinity in any of its terms.
	if sum := det + t[0] + t[3]; det == 0 || sum != sum || math.IsInf(sum, 0) {
		return nil, fault.New(fault.Unsupported, "transform", fault.NoOffset, "%v cannot be inverted", t)
	}
	return &affine{t, [6]float64{t[0], t[5] / det, -t[2] / det, t[3], -t[4] / det, t[1] / det}}, nil
}

// ground returns the place on the ground of a pixel's corner.
func (a *affine) ground(col, row float64) (x, y float64) {
	p := crs.At(&a.t, col, row)
	return p[0], p[1]
}

// pixel is the inverse of ground.
func (a *affine) pixel(x, y float64) (col, row float64) {
	x, y = x-a.back[0], y-a.back[3]
	return float64(x*a.back[1]) + float64(y*a.back[2]), float64(x*a.back[4]) + float64(y*a.back[5])
}

// affine returns the transform of an asset: from the spec or, if it has none, of its place.
func (p *pointsField) affine(a *catalog.Asset) (*affine, error) {
	bad := func(what string) error {
		return fault.New(fault.Unsupported, "transform", fault.NoOffset, "%s, which points in %q need", what,
			spec.WorldPoints)
	}
	switch {
	case p.fixed != nil:
		return p.fixed, nil
	case a.Place == nil:
		return nil, bad("the file says not where it lies")
	case a.Place.Boxed:
		return nil, bad("the catalog has bounds and no transform ('chaski index' makes one that has)")
	}
	return newAffine(a.Place.Transform(a.Index.Height, a.Index.Width))
}

// box returns the box of cells that may lie in a window. It returns false if none does.
func (p *pointsField) box(w shuffle.Box, t *affine, n int64) (tiledb.Box, bool) {
	box := p.array.Schema.Domain()
	top, bottom, left, right := float64(w.Y), float64(w.Y+w.H), float64(w.X), float64(w.X+w.W)
	if p.world {
		var xs, ys [4]float64
		for i, c := range [4][2]float64{{left, top}, {right, top}, {left, bottom}, {right, bottom}} {
			xs[i], ys[i] = t.ground(c[0], c[1])
		}
		// A little wider, because pixel, the inverse, is rounded too. read drops the points outside
		// of the window.
		left, right = wider(slices.Min(xs[:]), slices.Max(xs[:]))
		top, bottom = wider(slices.Min(ys[:]), slices.Max(ys[:]))
	}
	ok := p.cut(box, p.y, top, bottom) && p.cut(box, p.x, left, right)
	if p.n >= 0 {
		ok = ok && p.cutRow(box, n)
	}
	return box, ok
}

// wider widens an interval by a relative 1e-12, which is 9,000 times the rounding of a float64
// (2^-53).
func wider(lo, hi float64) (float64, float64) {
	e := float64((math.Abs(lo) + math.Abs(hi)) * 1e-12)
	return lo - e, hi + e
}

// cut narrows dimension d of b to [lo, hi], and reports whether anything is left.
func (p *pointsField) cut(b tiledb.Box, d int, lo, hi float64) bool {
	typ, interval := p.array.Schema.Type(d), &b[d]
	start, end := typ.Float(interval.Lo), typ.Float(interval.Hi)
	if !(lo <= end && hi >= start) {
		return false
	}
	// at returns v, a bound inside of the domain, as a coordinate. A number that the dimension's
	// type does not hold is rounded outwards, so that no point is lost; read drops those outside.
	coord := func(v, out float64) tiledb.Coord {
		if typ.Real() {
			coordinate := typ.CoordOfFloat(v)
			if f := typ.Float(coordinate); f != v && (f > v) == (out > 0) {
				return coordinate
			}
			if typ == tiledb.Float32 {
				return typ.CoordOfFloat(float64(math.Nextafter32(float32(v), float32(out))))
			}
			return coordinate
		}
		// The box may be wider than the window, since read tests every point.
		switch {
		case math.Abs(v) >= 1<<62:
			if out > 0 {
				return interval.Hi
			}
			return interval.Lo
		case out > 0:
			return typ.CoordOf(int64(math.Ceil(v)))
		}
		return typ.CoordOf(int64(math.Floor(v)))
	}
	if lo > start {
		interval.Lo = max(interval.Lo, coord(lo, math.Inf(-1)))
	}
	if hi < end {
		interval.Hi = min(interval.Hi, coord(hi, math.Inf(1)))
	}
	return interval.Lo <= interval.Hi
}

// cutRow narrows dimension n of b to one coordinate, and reports whether it is in the domain. It
// must be exact, unlike y and x: read does not test n again, and a float64 cannot tell apart times
// in nanoseconds.
func (p *pointsField) cutRow(b tiledb.Box, n int64) bool {
	typ, interval := p.array.Schema.Type(p.n), &b[p.n]
	coord := typ.CoordOf(n)
	if typ.Real() {
		coord = typ.CoordOfFloat(float64(n))
		if f := typ.Float(coord); f >= 1<<63 || int64(f) != n {
			return false
		}
	}
	if coord < interval.Lo || coord > interval.Hi {
		return false
	}
	*interval = tiledb.Interval{Lo: coord, Hi: coord}
	return true
}

// pointRows holds the points of a batch.
type pointRows struct {
	coords []byte // (n k 2) float32
	values []byte // (n k)
	counts []byte // (n) int64
}

// rowBytes returns the bytes of a row in the field's tensors: for each point y and x as float32 and
// its value, and an int64 count.
func (p *pointsField) rowBytes() int { return p.maxPoints*(8+p.dtype.Size()) + 8 }

// make returns tensors for a number of rows, filled with padding.
func (p *pointsField) make(rows int) pointRows {
	made := pointRows{make([]byte, rows*p.maxPoints*8), make([]byte, rows*p.maxPoints*p.dtype.Size()),
		make([]byte, rows*8)}
	for k := range rows {
		p.clear(&made, k)
	}
	return made
}

// clear makes row k padding: coordinates -1, values 0, count 0.
func (p *pointsField) clear(r *pointRows, k int) {
	coords, z := r.coords[k*p.maxPoints*8:(k+1)*p.maxPoints*8], p.maxPoints*p.dtype.Size()
	for i := 0; i < len(coords); i += 4 {
		binary.LittleEndian.PutUint32(coords[i:], math.Float32bits(-1))
	}
	clear(r.values[k*z : (k+1)*z])
	clear(r.counts[k*8 : (k+1)*8])
}

// read writes the points of a window to row k, and returns how many had no room. height and width
// are the size of the window in the tensor, n is the coordinate along dimension n.
func (p *pointsField) read(ctx context.Context, r *tiledb.Reader, to *pointRows, k int, win shuffle.Box, t *affine,
	n int64, height, width int, turn shuffle.Element) (left int64, err error) {
	p.clear(to, k)
	box, ok := p.box(win, t, n)
	if !ok {
		return 0, nil
	}
	cells, err := r.Sparse(ctx, []int{p.attr}, box)
	if err != nil {
		return 0, err
	}
	schema := p.array.Schema
	size := p.dtype.Size()
	cell, offsets := 0, make([]int, len(schema.Dims)) // bytes of a cell's coordinates, and where each begins
	for d := range schema.Dims {
		offsets[d], cell = cell, cell+schema.Type(d).Size()
	}
	typeY, typeX := schema.Type(p.y), schema.Type(p.x)
	count := 0
	for i := range cells.N {
		place := cells.Coords[i*cell:]
		y, x := typeY.Float(typeY.Coord(place[offsets[p.y]:])), typeX.Float(typeX.Coord(place[offsets[p.x]:]))
		if p.world {
			x, y = t.pixel(x, y)
		} else { // An integer coordinate names a pixel, whose centre is half a pixel further.
			if !typeY.Real() {
				y += 0.5
			}
			if !typeX.Real() {
				x += 0.5
			}
		}
		y, x = y-float64(win.Y), x-float64(win.X)
		if !(y >= 0 && y < float64(win.H) && x >= 0 && x < float64(win.W)) {
			continue
		}
		// Points go through the same scaling and transform as the pixels, in the same order,
		// otherwise they would lie beside the objects that they mark.
		if count < p.maxPoints {
			y, x = y*float64(height)/float64(win.H), x*float64(width)/float64(win.W)
			y, x = turnPoint(turn, y, x, float64(height), float64(width))
			o := (k*p.maxPoints + count) * 8
			binary.LittleEndian.PutUint32(to.coords[o:], math.Float32bits(float32(y)))
			binary.LittleEndian.PutUint32(to.coords[o+4:], math.Float32bits(float32(x)))
			value := cells.Values[0].Data[i*size:]
			if valid := cells.Values[0].Valid; valid != nil && valid[i] == 0 {
				value = schema.Attrs[p.attr].FillValue()
			}
			copy(to.values[(k*p.maxPoints+count)*size:][:size], value)
		}
		count++
	}
	binary.LittleEndian.PutUint64(to.counts[8*k:], uint64(count))
	return int64(max(count-p.maxPoints, 0)), nil
}

// turnPoint moves a point as pixels.Row moves the pixels of a window of h by w.
func turnPoint(turn shuffle.Element, y, x, h, w float64) (float64, float64) {
	if turn&shuffle.FlipX != 0 {
		x = w - x
	}
	if turn&shuffle.FlipY != 0 {
		y = h - y
	}
	if turn&shuffle.Transpose != 0 {
		y, x = x, y
	}
	return y, x
}

// pointWindow says where the points of a row lie.
type pointWindow struct {
	win shuffle.Box
	t   *affine // nil unless coordinates lie on the ground
	n   int64   // the coordinate along dimension n
}

// eachPoints calls do for every field of points, with the window of a draw.
func (e *Engine) eachPoints(ctx context.Context, d *dataset, draw *shuffle.Draw,
	do func(i int, f *pointsField, at pointWindow) error) error {
	asset, window, err := e.shown(ctx, d, draw)
	if err != nil {
		return err
	}
	return d.eachPoints(asset, draw.Row, window, do)
}

// eachPoints is Engine.eachPoints for a window of the asset of a row.
func (d *dataset) eachPoints(a catalog.Asset, row int64, win shuffle.Box,
	do func(i int, f *pointsField, at pointWindow) error) error {
	window := pointWindow{win: win, n: row}
	if coordinate := d.extras.Coordinate; coordinate != nil {
		window.n = coordinate(row)
	}
	for i, field := range d.points {
		window.t = nil
		if field.world {
			var err error
			if window.t, err = field.affine(&a); err != nil {
				return a.Fault(err)
			}
		}
		if err := do(i, field, window); err != nil {
			return err
		}
	}
	return nil
}

// pointsColumn returns the points of all fields: coordinates, values and counts.
func (e *Engine) pointsColumn(p *Pending) column {
	fields := p.group.lead().points
	tables := make([]pointRows, len(fields))
	for i, field := range fields {
		tables[i] = field.make(p.batch.Rows)
	}
	return column{
		fill: func(r *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			return e.eachPoints(p.ctx, d, draw, func(i int, field *pointsField, at pointWindow) error {
				left, err := field.read(p.ctx, r.PointReader(field.array), &tables[i], k, at.win, at.t, at.n,
					d.sampler.Height, d.sampler.Width, draw.Transform)
				if err != nil {
					return fault.WithFile(rows.InField(field.name, err), field.array.URI())
				}
				// Only the first loss is logged, because a warning for each row would flood the log.
				if left > 0 && fields[i].leftOut.Add(left) == left {
					e.options.Logger.Warn("a window has more points than there is room for; LeftOut counts them",
						"field", field.name, "most", field.maxPoints, "points", int64(field.maxPoints)+left)
				}
				return nil
			})
		},
		clear: func(k int) {
			for i, field := range fields {
				field.clear(&tables[i], k)
			}
		},
		members: func() (out []member) {
			count := int64(p.batch.Rows)
			for i, field := range fields {
				slots, table := int64(field.maxPoints), tables[i]
				out = append(out,
					member{Tensor{Name: field.name, DType: chunk.Float32, Axes: []string{"n", "k", "yx"},
						Shape: []int64{count, slots, 2}, Data: table.coords}, "points"},
					member{Tensor{Name: field.name + spec.PointValues, DType: field.dtype, Axes: []string{"n", "k"},
						Shape: []int64{count, slots}, Data: table.values}, "points"},
					member{Tensor{Name: field.name + spec.PointCount, DType: chunk.Int64, Axes: []string{"n"},
						Shape: []int64{count}, Data: table.counts}, catalog.Int.String()})
			}
			return out
		},
	}
}

// LeftOut returns how many points of a field had no room in their rows (Points.Most) since the
// engine was opened. It returns 0 for other fields. Rows that are read again count again.
func (e *Engine) LeftOut(field string) int64 {
	left := int64(0)
	for _, g := range e.groups {
		for _, f := range g.lead().points {
			if f.name == field {
				left += f.leftOut.Load()
			}
		}
	}
	return left
}

// pointBytes returns the bytes of all points of a row.
func (d *dataset) pointBytes() (n int) {
	for _, f := range d.points {
		n += f.rowBytes()
	}
	return n
}
