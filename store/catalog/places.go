package catalog

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/pace"
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
	if !f.bounded() || r.err != nil {
		return nil
	}
	code, parameters := r.cell(f.columns[layout.EPSG]), r.cell(f.columns[layout.CRS])
	meta := Meta{CRS: string(parameters.Text)}
	if code.Int >= 0 && code.Int <= math.MaxInt32 {
		meta.EPSG = int(code.Int)
	}
	box := r.boxed(f, meta.EPSG)
	if r.err == nil {
		meta.Transform, r.err = columns.Transform(r.ctx, f.transform, r.at)
	}
	if r.err != nil || meta.Transform == nil {
		return box
	}
	// The bounds count where they differ, because other programs write transforms in another order of numbers.
	place := meta.Place(height, width)
	if place != nil && box != nil && !sameBox(*place, *box, place.pixel(height, width)) {
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
	if !firstField.placed() || !otherField.placed() || source.IsRemote(t.src) {
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
		if !suspects[row] || firstField.lacks(int64(row)) || otherField.lacks(int64(row)) {
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

// suspects returns for each row whether any number of two places differs, or either raster is rotated: the bounds of
// rotated ones do not tell how they lie. Most pairs have the same numbers: they need no look at their sizes, and the
// numbers of only one column are held at a time.
func (t *Table) suspects(ctx context.Context, first, other *fieldColumns) ([]bool, error) {
	differ := func(x, y float64) bool { return x != y }
	named := func(x, y float64) bool { return x > 0 && y > 0 } // CRSs without codes, which no number compares
	suspect := map[string]func(x, y float64) bool{layout.EPSG: differ, layout.CRS: named}
	for _, name := range boundNames {
		suspect[name] = differ
	}
	suspects, held := make([]bool, t.n), make([]float64, t.n)
	boundless := make([]bool, t.n) // either raster has no bounds
	// A cell has one of these, or is null.
	number := func(c columns.Cell) float64 { return float64(c.Int) + c.Float + float64(len(c.Text)) }
	for name, differs := range suspect {
		a, b := first.columns[name], other.columns[name]
		if a == nil || b == nil {
			continue // a CRS that is not known may be the same
		}
		isBound := slices.Contains(boundNames[:], name)
		look := func(row int64, c columns.Cell) float64 {
			boundless[row] = boundless[row] || isBound && (c.Null || !finite(c.Float))
			return number(c)
		}
		err := first.ofSamples(a).Scan(ctx, func(row int64, c columns.Cell) error {
			held[row] = look(row, c)
			return nil
		})
		if err == nil {
			err = other.ofSamples(b).Scan(ctx, func(row int64, c columns.Cell) error {
				value := look(row, c)
				suspects[row] = suspects[row] || differs(held[row], value)
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	if first.transform == nil || other.transform == nil {
		return suspects, nil
	}
	return suspects, t.markTurned(ctx, first, other, suspects, boundless)
}

// markTurned marks the rows in which two rasters have their first pixel in other corners of their bounds, or either is
// rotated or, by boundless, has no bounds: then transforms and sizes alone say where they lie.
func (t *Table) markTurned(ctx context.Context, first, other *fieldColumns, suspects, boundless []bool) error {
	for row := range t.n {
		if row%4096 == 0 {
			if err := pace.Tick(ctx); err != nil {
				return err
			}
		}
		if first.lacks(row) || other.lacks(row) {
			continue
		}
		firstPlace, err := columns.Transform(ctx, first.transform, first.tableRow(row))
		if err != nil {
			return err
		}
		otherPlace, err := columns.Transform(ctx, other.transform, other.tableRow(row))
		if err != nil {
			return err
		}
		if firstPlace == nil || otherPlace == nil || suspects[row] {
			continue
		}
		upright := firstPlace[2] == 0 && firstPlace[4] == 0 && otherPlace[2] == 0 && otherPlace[4] == 0
		suspects[row] = boundless[row] || !upright || math.Signbit(firstPlace[1]) != math.Signbit(otherPlace[1]) ||
			math.Signbit(firstPlace[5]) != math.Signbit(otherPlace[5])
	}
	return nil
}

// placed returns the place and the size of an asset, and its path as the table has it.
func (t *Table) placed(ctx context.Context, f *fieldColumns, row int64) (Asset, error) {
	reader := newRowReader(ctx, f, row)
	asset := Asset{URI: string(reader.cell(f.main).Text),
		Index: &chunk.Index{Height: int(side(reader.cell(f.columns[layout.Height]))),
			Width: int(side(reader.cell(f.columns[layout.Width])))}}
	// Without a size it cannot be compared before it is opened, so it gets no place.
	if asset.Index.Height > 0 && asset.Index.Width > 0 {
		asset.Place = reader.place(f, asset.Index.Height, asset.Index.Width)
	}
	return asset, reader.err
}

// lacks reports whether a sample has no file of the field.
func (f *fieldColumns) lacks(sample int64) bool { return f.tableRow(sample) < 0 }

// placed reports whether the table has places and sizes of the field's rasters.
func (f *fieldColumns) placed() bool {
	return f.bounded() && f.columns[layout.Height] != nil && f.columns[layout.Width] != nil
}
