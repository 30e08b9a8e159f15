package geometries

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/crs"
)

// position converts a position of a geometry to longitude and latitude.
type position func(x, y float64) (lon, lat float64)

// columnCRS has the CRSs of the geometries of a column.
type columnCRS struct {
	names  *tables.Vector // the CRS of each row; nil: all have the same
	byName map[string]position
	all    position
}

// systemsOf returns the CRSs of the geometries of a column: longitude and latitude unless the table says otherwise.
func systemsOf(ctx context.Context, t *tables.Table, column string) (s columnCRS, err error) {
	if column == "istac:geometry" && t.Index("istac:crs") >= 0 {
		s.names, err = t.Column(ctx, "istac:crs")
		if err == nil && s.names.Kind() != tables.String {
			s.names = nil
		}
		s.byName = map[string]position{}
		return s, err
	}
	text, ok := t.Meta("geo")
	if !ok {
		return s, nil
	}
	// https://geoparquet.org/releases/v1.1.0/: without a member crs, geometries are in longitude
	// and latitude; null means unknown.
	var geo struct {
		Columns map[string]struct{ CRS json.RawMessage }
	}
	if json.Unmarshal([]byte(text), &geo) != nil || geo.Columns[column].CRS == nil {
		return s, nil
	}
	var id struct {
		Name string
		ID   struct {
			Authority string
			Code      any // a number or a string
		}
	}
	if err := json.Unmarshal(geo.Columns[column].CRS, &id); err != nil {
		return s, nil
	}
	name := fmt.Sprintf("%s:%v", id.ID.Authority, id.ID.Code)
	if s.all, ok = positions(name); !ok {
		return s, fault.New(fault.Unsupported, "column "+column,
			"its geometries are in a CRS that cannot be compared with bbox (GeoParquet calls it %q, with the id %q): "+
				"where compares columns as they are, and to_crs(4326) of geopandas converts geometries", id.Name, name)
	}
	return s, nil
}

// positions returns the conversion from a named CRS to longitude and latitude, nil if none is
// needed, and whether the CRS is known.
func positions(name string) (position, bool) {
	system, ok := crs.ByName(name)
	switch {
	case !ok:
		return nil, false
	case system.Geographic() && system.Near():
		return nil, true
	}
	return func(x, y float64) (lon, lat float64) {
		p := []crs.Point{{x, y}}
		system.Inverse(p, p)
		return p[0][0], p[0][1]
	}, true
}

// of returns the conversion from the CRS of a row's geometry.
func (s *columnCRS) of(row int) (position, error) {
	if s.names == nil {
		return s.all, nil
	}
	if s.names.Null(row) {
		return nil, nil
	}
	name := s.names.Str(row)
	system, ok := s.byName[name]
	if !ok {
		if system, ok = positions(name); !ok {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("row %d", row),
				"istac:crs is %.80q, which cannot be compared with bbox; leave such rows out by where", name)
		}
		s.byName[name] = system
	}
	return system, nil
}
