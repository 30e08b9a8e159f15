package tiledb

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Info describes a TileDB array: its schema, and what its fragments hold.
type Info struct {
	Path          string     `json:"path"`
	Kind          string     `json:"kind"` // "tiledb"
	FormatVersion int        `json:"format_version"`
	Dense         bool       `json:"dense"`
	Encrypted     bool       `json:"encrypted"`
	DimType       Datatype   `json:"dim_type"`
	Dims          []DimInfo  `json:"dims"`
	TileOrder     Order      `json:"tile_order"`
	CellOrder     Order      `json:"cell_order"`
	Capacity      uint64     `json:"capacity"`
	Coords        []string   `json:"coords_filters"`
	Offsets       []string   `json:"offsets_filters"`
	Attrs         []AttrInfo `json:"attrs"`
	Fragments     int        `json:"fragments"`
	Hidden        int        `json:"hidden_fragments,omitempty"`
	// Times holds when the first and the last fragment was written, hidden ones too, in
	// milliseconds since 1970.
	Times    []uint64 `json:"times,omitempty"`
	Sparse   int      `json:"sparse_fragments,omitempty"` // of Fragments, in a dense array
	Dups     bool     `json:"allows_duplicates,omitempty"`
	Labels   []string `json:"labels,omitempty"` // names of the labels of dimensions
	Tiles    int64    `json:"tiles"`            // of one attribute, in all Fragments
	NonEmpty []Ends   `json:"non_empty"`        // null if nothing was written
}

// DimInfo describes a dimension of an array.
type DimInfo struct {
	Name   string   `json:"name"`
	Type   Datatype `json:"type"`
	Domain Ends     `json:"domain"`
	// Current is the part of the domain that is in use, if the array says so.
	Current *Ends  `json:"current,omitempty"`
	Extent  Number `json:"extent"` // 0: none
}

// AttrInfo describes an attribute of an array.
type AttrInfo struct {
	Name     string   `json:"name"`
	Type     Datatype `json:"type"`
	Values   int64    `json:"values"` // in a cell; -1: any number
	Filters  []string `json:"filters"`
	Nullable bool     `json:"nullable,omitempty"`
	Enum     string   `json:"enumeration,omitempty"` // name of the values that the integers number
}

// Number is a coordinate or an extent in decimal form. It is a string, because a float64 would
// round integers beyond 2^53.
type Number string

// MarshalJSON writes a JSON number, or a string for values such as NaN that JSON has no number for.
func (n Number) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(n)) {
		return []byte(n), nil
	}
	return json.Marshal(string(n))
}

// Ends are the two ends of an interval, both included.
type Ends [2]Number

// infoOf describes an open array from its schema and the footers of its fragments, without reading tiles.
func infoOf(path string, a *Array) *Info {
	schema := a.Schema
	i := &Info{
		Path: path, Kind: "tiledb", FormatVersion: a.Format(), Dense: schema.Dense, Encrypted: schema.Encrypted,
		DimType: schema.DimType, TileOrder: schema.TileOrder, CellOrder: schema.CellOrder, Capacity: schema.Capacity,
		Coords: filterNames(schema.Coords), Offsets: filterNames(schema.Offsets),
		Fragments: len(a.Fragments), Hidden: len(a.Hidden), Dups: schema.AllowsDups, Labels: schema.Labels,
	}
	interval := func(k int, v Interval) Ends {
		t := schema.Type(k)
		return Ends{Number(t.FormatCoord(v.Lo)), Number(t.FormatCoord(v.Hi))}
	}
	for place, axis := range schema.Dims {
		typ, extent := schema.Type(place), strconv.FormatUint(axis.Extent, 10)
		if typ.Real() { // the extent then holds the bits of a float64
			extent = typ.FormatCoord(typ.CoordOfFloat(math.Float64frombits(axis.Extent)))
		}
		dim := DimInfo{Name: axis.Name, Type: typ, Domain: interval(place, axis.Domain), Extent: Number(extent)}
		if schema.Current != nil {
			current := interval(place, schema.Current[place])
			dim.Current = &current
		}
		i.Dims = append(i.Dims, dim)
	}
	for k := range schema.Attrs {
		attr := &schema.Attrs[k]
		n := int64(attr.Values)
		if attr.Var() {
			n = -1
		}
		i.Attrs = append(i.Attrs, AttrInfo{attr.Name, attr.Type, n, filterNames(attr.Pipeline), attr.Nullable,
			attr.Enum})
	}
	for _, f := range a.Fragments {
		i.Tiles += f.Tiles
		if schema.Dense && !f.Dense {
			i.Sparse++
		}
	}
	for _, fragment := range slices.Concat(a.Fragments, a.Hidden) {
		if i.Times == nil {
			i.Times = []uint64{fragment.From, fragment.To}
		}
		i.Times = []uint64{min(i.Times[0], fragment.From), max(i.Times[1], fragment.To)}
	}
	for k, v := range a.NonEmpty() {
		i.NonEmpty = append(i.NonEmpty, interval(k, v))
	}
	return i
}

// filterNames returns the names of the filters of a pipeline.
func filterNames(p filter.Pipeline) []string {
	names := []string{}
	for _, f := range p.Filters {
		names = append(names, f.ID.String())
	}
	return names
}
