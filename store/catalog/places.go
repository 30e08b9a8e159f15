package catalog

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// boundNames are the columns of a raster's bounds.
var boundNames = [...]string{layout.MinX, layout.MinY, layout.MaxX, layout.MaxY}

// bounded reports whether the table has the bounds of the field's rasters.
func (f *fieldColumns) bounded() bool {
	return !slices.ContainsFunc(boundNames[:], func(name string) bool { return f.columns[name] == nil })
}

// place returns where the raster of the row lies, which has height by width pixels, or nil if the catalog does not say
// it. A row with bounds but without a transform has a Boxed place.
func (r *rowReader) place(f *fieldColumns, height, width int) *Place {
	if !f.bounded() {
		return nil
	}
	code := r.cell(f.columns[layout.EPSG]).Int
	meta := Meta{CRS: string(r.cell(f.columns[layout.CRS]).Text),
		Transform: columns.Transform(r.cell(f.columns[layout.Transform]))}
	if uint64(code) <= math.MaxInt32 { // as which a negative one is too large
		meta.EPSG = int(code)
	}
	// The bounds count where they differ, because other programs write transforms in another order of numbers.
	box, place := r.boxed(f, meta.EPSG), meta.Place(height, width)
	if place == nil || box != nil && !sameBox(*place, *box, place.pixel(height, width)) {
		return box
	}
	return place
}

// boxed returns the place of the row by its bounds alone, or nil if it has none.
func (r *rowReader) boxed(f *fieldColumns, code int) *Place {
	var b [4]float64
	for i, name := range boundNames {
		cell := r.cell(f.columns[name])
		if cell.Null || !finite(cell.Float) {
			return nil
		}
		b[i] = cell.Float
	}
	return &Place{EPSG: code, Boxed: true,
		Corners: [4]crs.Point{{b[0], b[3]}, {b[2], b[3]}, {b[0], b[1]}, {b[2], b[1]}}}
}

// Misplaced calls visit for each row of rows (nil: of all) in which the raster of the field other lies elsewhere than
// the raster of the field first, as the table says without opening any file. Rows come in order. It visits none if the
// table has no places, or is remote.
func (t *Table) Misplaced(ctx context.Context, first, other int, rows []uint32,
	visit func(row int64, err error)) error {
	firstField, otherField := &t.fields[first], &t.fields[other]
	// Reading these columns of a remote table would cost more than the rows that a run draws.
	if source.IsRemote(t.src) {
		return nil
	}
	suspects, err := t.suspects(ctx, firstField, otherField)
	if err != nil {
		return fault.WithFile(err, t.src)
	}
	if rows == nil {
		rows = make([]uint32, 0, t.n)
		for row := range t.n {
			rows = append(rows, uint32(row))
		}
	}
	for _, row := range rows {
		if !suspects[row] {
			continue
		}
		firstAsset, err := t.placed(ctx, firstField, int64(row))
		if err != nil {
			return fault.WithFile(err, t.src)
		}
		otherAsset, err := t.placed(ctx, otherField, int64(row))
		if err != nil {
			return fault.WithFile(err, t.src)
		}
		if err := SameGround(&firstAsset, &otherAsset); err != nil {
			visit(int64(row), otherAsset.Fault(err))
		}
	}
	return nil
}

// suspects returns for each row whether two rasters may lie at different places: if their bounds, the codes of their
// CRSs, or the corners of these bounds in which they begin differ, or these numbers do not tell. Most pairs have the
// same numbers: they need no look at their sizes, and the numbers of only one column are held at a time.
func (t *Table) suspects(ctx context.Context, first, other *fieldColumns) ([]bool, error) {
	suspects, held := make([]bool, t.n), make([]crs.Point, t.n)
	boundless := make([]bool, t.n) // either raster has no bounds
	for _, name := range append(boundNames[:], layout.EPSG, layout.CRS, layout.Transform) {
		a, b := first.columns[name], other.columns[name]
		if a == nil || b == nil {
			continue // a CRS that is not known may be the same
		}
		isBound := slices.Contains(boundNames[:], name)
		look := func(row int64, c Value) crs.Point {
			boundless[row] = boundless[row] || isBound && (c.Null || !finite(c.Float))
			return signature(c, boundless[row])
		}
		err := first.ofSamples(a).Scan(ctx, func(row int64, c Value) error {
			held[row] = look(row, c)
			return nil
		})
		if err == nil {
			err = other.ofSamples(b).Scan(ctx, func(row int64, c Value) error {
				suspects[row] = look(row, c) != held[row] || suspects[row]
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return suspects, nil
}

// unlike is the signature that differs from all, also from itself.
var unlike = crs.Point{math.NaN(), math.NaN()}

// signature returns two numbers from a cell of a column that says where a raster is. Two rasters at one place share
// them. It returns unlike for the parameters of a CRS, for the transform of a rotated raster and, with boundless, for
// any transform: then transforms and sizes together say how rasters lie.
func signature(c Value, boundless bool) crs.Point {
	transform := columns.Transform(c)
	switch {
	case len(c.Text) > 0:
		return unlike
	case transform == nil:
		return crs.Point{c.Float, float64(c.Int)}
	case boundless || transform[2] != 0 || transform[4] != 0:
		return unlike
	}
	return crs.Point{transform[0], transform[3]} // the corner in which it begins
}

// placed returns the place and the size of an asset, and its path as the table has it.
func (t *Table) placed(ctx context.Context, f *fieldColumns, row int64) (Asset, error) {
	reader := newRowReader(ctx, f, row)
	asset := Asset{URI: string(reader.cell(f.main).Text),
		Index: &chunk.Index{Height: int(side(reader.cell(f.columns[layout.Height]))),
			Width: int(side(reader.cell(f.columns[layout.Width])))}}
	// A raster of unknown size gets no place, because it cannot be compared before it is opened.
	if asset.Index.Height > 0 && asset.Index.Width > 0 {
		asset.Place = reader.place(f, asset.Index.Height, asset.Index.Width)
	}
	return asset, reader.err
}
