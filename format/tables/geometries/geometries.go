// Package geometries finds the rows of a table whose geometry matches a box on the ground: well-known binary or text,
// or a struct of longitude and latitude.
package geometries

import (
	"context"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/format/tables/wkb"
)

func init() { spacetime.InBox = inBox }

// inBox implements spacetime.InBox.
func inBox(ctx context.Context, f *spacetime.Filter, rows []int, t *tables.Table, i int) ([]int, error) {
	column := t.Columns()[i]
	switch column.Type.Kind {
	case tables.Null:
		return nil, nil
	case tables.Binary, tables.String, tables.Struct:
	default:
		return nil, fault.New(fault.Unsupported, "column "+column.Name,
			"geometries of type %v, want binary or strings", column.Type)
	}
	place, err := wkb.NewPlace(*f.Box)
	if err != nil {
		return nil, fault.New(fault.Unsupported, "bbox", "%v", err)
	}
	// Rows that are kept overwrite rows that were read, so they need no memory of their own.
	keep := rows[:0]
	match := func(row int, geometry []byte, system position) error {
		ok, err := place.Match(geometry, f.Rule, system)
		if err != nil {
			return fault.WithPart(err, fmt.Sprintf("row %d", row), fault.NoOffset)
		}
		if ok {
			keep = append(keep, row)
		}
		return nil
	}
	var binary []byte
	if column.Type.Kind == tables.Struct { // points of lon and lat
		values, err := t.At(ctx, i)
		for k := 0; k < len(rows) && err == nil; k++ {
			row := rows[k]
			var lon, lat float64
			if lon, lat, err = Centroid(values, row); err == nil && !math.IsNaN(lon) && !math.IsNaN(lat) {
				binary = wkb.AppendPoint(binary[:0], lon, lat)
				err = match(row, binary, nil)
			}
		}
		return keep, err
	}
	systems, err := systemsOf(ctx, t, column.Name)
	if err != nil {
		return nil, err
	}
	err = t.Scan(ctx, i, rows, f.Keep, func(row int, geometry []byte) error {
		system, err := systems.of(row)
		if err != nil {
			return err
		}
		if column.Type.Kind == tables.String {
			if binary, err = wkb.AppendText(binary[:0], string(geometry)); err != nil {
				return fault.WithPart(err, fmt.Sprintf("row %d", row), fault.NoOffset)
			}
			geometry = binary
		}
		return match(row, geometry, system)
	})
	return keep, err
}

// Centroid returns the point in a row of a column: well-known binary, or as in TACO 3 a struct of lon and lat. Null
// gives NaN.
func Centroid(v *tables.Vector, row int) (lon, lat float64, err error) {
	typ := v.Type()
	switch {
	case v.Null(row):
		return math.NaN(), math.NaN(), nil
	case typ.Kind == tables.Binary:
		return wkb.Point(v.Bytes(row))
	case typ.Kind == tables.Struct && len(typ.Fields) == 2 && typ.Fields[0].Name == "lon" &&
		typ.Fields[1].Name == "lat" && typ.Fields[0].Type.Kind == tables.Float64 &&
		typ.Fields[1].Type.Kind == tables.Float64:
		values, vector := v.Field(0), v.Field(1)
		if values.Null(row) || vector.Null(row) {
			return math.NaN(), math.NaN(), nil
		}
		return values.Float(row), vector.Float(row), nil
	}
	return 0, 0, fault.New(fault.Unsupported, "",
		"holds values of type %v, not well-known binary or structs of lon and lat", typ)
}
