package catalog

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// placeColumns are the columns in which a catalog has the place of each file.
type placeColumns struct {
	epsg   columns.Column
	bounds [4]columns.Column // minx, miny, maxx, maxy
}

// placesOf finds the columns of places. It returns nil if the bounds are missing. of returns the column with a name
// and kind, or nil.
func placesOf(of func(name string, k Kind) columns.Column) *placeColumns {
	p := &placeColumns{epsg: of(layout.EPSG, Int)}
	for i, name := range [...]string{layout.MinX, layout.MinY, layout.MaxX, layout.MaxY} {
		if p.bounds[i] = of(name, Float); p.bounds[i] == nil {
			return nil
		}
	}
	return p
}

// pick keeps the rows at, in their order.
func (p *placeColumns) pick(at []int64) *placeColumns {
	if p == nil {
		return nil
	}
	out := &placeColumns{}
	if p.epsg != nil {
		out.epsg = columns.Pick(p.epsg, at)
	}
	for i, c := range p.bounds {
		out.bounds[i] = columns.Pick(c, at)
	}
	return out
}

// of returns the place of a row, or nil if the catalog does not have it.
func (p *placeColumns) of(ctx context.Context, row int64) (*Place, error) {
	if p == nil {
		return nil, nil
	}
	var b [4]float64
	for i, c := range p.bounds {
		v, err := c.Cell(ctx, row)
		if err != nil || v.Null || !finite(v.Float) {
			return nil, err
		}
		b[i] = v.Float
	}
	out := &Place{Boxed: true, Corners: [4]crs.Point{{b[0], b[3]}, {b[2], b[3]}, {b[0], b[1]}, {b[2], b[1]}}}
	if p.epsg == nil {
		return out, nil
	}
	v, err := p.epsg.Cell(ctx, row)
	if v.Int > 0 && v.Int <= math.MaxInt32 {
		out.EPSG = int(v.Int)
	}
	return out, err
}

// Misplaced calls visit for each row of rows (nil: of all) in which the raster of the field other lies elsewhere than
// that of the field first, as the table says without opening any file. Rows come in order. It visits none if the table
// has no places, or is remote: then reading these columns would cost more than the rows that a run draws.
func (t *Table) Misplaced(ctx context.Context, first, other int, rows []uint32,
	visit func(row int64, err error)) error {
	a, b := &t.fields[first], &t.fields[other]
	if a.place == nil || b.place == nil || a.height == nil || a.width == nil || b.height == nil || b.width == nil ||
		source.IsRemote(t.src) {
		return nil
	}
	suspects, err := t.suspects(ctx, a.place, b.place)
	if err != nil {
		return fault.WithFile(err, t.src)
	}
	check := func(row int64) error {
		if !suspects[row] {
			return nil
		}
		x, err := t.placed(ctx, a, row)
		if err != nil {
			return err
		}
		y, err := t.placed(ctx, b, row)
		if err != nil {
			return err
		}
		if err := SameGround(&x, &y); err != nil {
			visit(row, y.Fault(err))
		}
		return nil
	}
	if rows == nil {
		for row := range t.n {
			if err := check(row); err != nil {
				return fault.WithFile(err, t.src)
			}
		}
		return nil
	}
	for _, row := range rows {
		if err := check(int64(row)); err != nil {
			return fault.WithFile(err, t.src)
		}
	}
	return nil
}

// suspects returns for each row whether any number of two places differs. Most pairs have the same numbers: they need
// no look at their sizes, and the numbers of only one column are held at a time.
func (t *Table) suspects(ctx context.Context, a, b *placeColumns) ([]bool, error) {
	suspects, held := make([]bool, t.n), make([]float64, t.n)
	compare := func(x, y columns.Column, of func(columns.Cell) float64) error {
		if x == nil || y == nil {
			return nil // a CRS that is not known may be that of the other
		}
		err := x.Scan(ctx, func(row int64, c columns.Cell) error {
			held[row] = of(c)
			return nil
		})
		if err != nil {
			return err
		}
		return y.Scan(ctx, func(row int64, c columns.Cell) error {
			suspects[row] = suspects[row] || of(c) != held[row]
			return nil
		})
	}
	err := compare(a.epsg, b.epsg, func(c columns.Cell) float64 { return float64(c.Int) })
	for i := range a.bounds {
		if err == nil {
			err = compare(a.bounds[i], b.bounds[i], func(c columns.Cell) float64 { return c.Float })
		}
	}
	return suspects, err
}

// placed returns the place and the size of an asset, and its path as the table has it.
func (t *Table) placed(ctx context.Context, f *field, row int64) (a Asset, err error) {
	if a.Place, err = f.place.of(ctx, row); err != nil {
		return a, err
	}
	var cells [3]columns.Cell
	for i, c := range []columns.Column{f.main, f.height, f.width} {
		if cells[i], err = c.Cell(ctx, row); err != nil {
			return a, err
		}
	}
	a.URI = string(cells[0].Text)
	a.Index = &chunk.Index{Height: int(side(cells[1])), Width: int(side(cells[2]))}
	if a.Index.Height == 0 || a.Index.Width == 0 {
		a.Place = nil // it cannot be compared before it is opened
	}
	return a, nil
}
