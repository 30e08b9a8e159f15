package build

import (
	"bytes"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// Columns of TACO 2 have these names in TACO 3, where a column belongs to a namespace:
//
//	TACO 2                                            TACO 3
//	split                                             split:split
//	taco:header                                       tog:header
//	stac:crs, stac:tensor_shape, stac:geotransform,   the columns of stac, spatial or temporal, or
//	stac:centroid, stac:time_start, stac:time_end     taco2:crs … if a row lacks what these must have
//	NAME                                              data:NAME

// plainSpace is the namespace of columns that have none, and oldSpace of those that TACO 3 has in another form.
const (
	plainSpace = "data:"
	oldSpace   = "taco2:"
)

// encodedNamed returns a table of a level as Parquet.
func encodedNamed(ctx context.Context, level string, t *tables.Table) ([]byte, error) {
	enc, err := encode.NewWriter(t.Columns(), map[string]string{"taco:level": level})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = enc.Write(ctx, &b, t)
	return b.Bytes(), err
}

// modern returns the columns of a table with the names and types of TACO 3. said returns a column's type with what is
// known of the column by its old name: its description, and whether it may be null.
func modern(ctx context.Context, t *tables.Table, said func(name string, t tables.Type) tables.Type) (*tables.Table,
	error) {
	out := &Columns{}
	grouped, err := groupsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	add := func(name string, typ tables.Type, values *tables.Vector) {
		some := slices.Contains(values.Nulls(), true)
		out.addAs(name, typ.With(func(f *tables.Form) {
			f.Required = !some && (f.Required || name == "rumi:header")
		}), values)
	}
	for i, column := range encode.Fitted(ctx, t) {
		if grouped.used[column.Name] {
			continue
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		if typ, ok := grouped.types[column.Name]; ok {
			add(column.Name, said(column.Name, typ), asGroup(typ, values))
		} else {
			add(newName(column.Name), said(column.Name, portable(column.Type)), values)
		}
	}
	for i, column := range grouped.cols {
		add(column.Name, column.Type, grouped.vectors[i])
	}
	seen := map[string]string{}
	for _, column := range out.cols {
		if was := seen[strings.ToLower(column.Name)]; was != "" {
			return nil, unsupported("column "+column.Name,
				"would be called like %s: names in TACO 3 differ in more than case", was)
		}
		seen[strings.ToLower(column.Name)] = column.Name
	}
	return out.Table(t.Len()), nil
}

// portable returns a type that taco:metadata can name. Dictionaries, views and extensions are forms of the same values.
func portable(t tables.Type) tables.Type {
	return t.Each(func(t tables.Type) tables.Type {
		return t.With(func(f *tables.Form) {
			switch f.Store {
			case tables.Coded, tables.TextView, tables.ListView, tables.LargeListView:
				*f = tables.Form{}
			case tables.Seconds, tables.Millis:
				f.Store = tables.Default
			case tables.Decimals:
				if t.Kind == tables.Decimal {
					*f = tables.Form{}
				}
			}
			f.Extension, f.Metadata = "", ""
		})
	})
}

var (
	spacePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	codePattern  = regexp.MustCompile(`^[A-Za-z]+:[A-Za-z0-9_.-]+$`)
)

// newName returns the name of a column in TACO 3.
func newName(name string) string {
	if name == "split" {
		return "split:split"
	}
	space, field, ok := strings.Cut(name, ":")
	if !ok {
		return plainSpace + fieldName(name)
	}
	space = strings.ToLower(space)
	switch grouped := slices.ContainsFunc(taco3.Groups, func(g taco3.Group) bool { return g.Name == space }); {
	case name == "taco:header":
		return "tog:header"
	case !spacePattern.MatchString(space):
		return plainSpace + fieldName(name)
	case grouped, space == "rumi" && !taco3.RumiColumn(name), !taco3.ColumnName(space + ":x"):
		return oldSpace + fieldName(field)
	}
	return space + ":" + fieldName(field)
}

// fieldName returns the part of a column's name behind its namespace, with letters that TACO 3 allows.
func fieldName(text string) string {
	text = strings.NewReplacer(":", "_", "/", "_", "\x00", "_").Replace(text)
	for strings.Contains(text, "__") {
		text = strings.ReplaceAll(text, "__", "_")
	}
	if text == "" {
		return "_"
	}
	return text
}

// groupColumns are the columns of a group of places and times.
type groupColumns struct {
	types map[string]tables.Type // of those that the table has
	Columns
	used map[string]bool // the columns of TACO 2 that these come from
}

// groupsOf returns the columns of places and times of a table: a group of TACO 3, or what the columns of
// TACO 2 say, if that suffices for a group.
func groupsOf(ctx context.Context, t *tables.Table) (*groupColumns, error) {
	for _, group := range taco3.Groups {
		types := map[string]tables.Type{}
		for _, column := range group.Columns {
			name := group.Name + ":" + column.Name
			i := t.Index(name)
			if i < 0 || t.Columns()[i].Type.Kind != tables.Null && t.Columns()[i].Type.Kind != column.Type.Kind {
				break
			}
			types[name] = column.Type
		}
		if len(types) == len(group.Columns) {
			return &groupColumns{types: types}, nil
		}
	}
	g := &groupColumns{used: map[string]bool{}}
	places, err := oldPlaces(ctx, t)
	if err != nil || places == nil {
		return g, err
	}
	for _, group := range taco3.Groups {
		if places.group == group.Name {
			vectors := places.columns(t.Len())
			for _, c := range group.Columns {
				values := vectors[c.Name]
				if values == nil {
					values = tables.NewNulls(c.Type.Plain(), t.Len())
				}
				g.addAs(group.Name+":"+c.Name, c.Type, values)
			}
			for _, name := range places.used {
				g.used[name] = true
			}
		}
	}
	return g, nil
}

// asGroup returns the values of a column of a group in its type: a container of TACO 2 may have nulls, and times
// without a zone.
func asGroup(typ tables.Type, v *tables.Vector) *tables.Vector {
	switch {
	case v.Kind() == tables.Null:
		return tables.NewNulls(typ.Plain(), v.Len())
	case typ.Kind == tables.Timestamp:
		return tables.NewInts(typ.Plain(), v.Ints(), v.Nulls())
	}
	return v
}

// placeColumns are the columns of TACO 2 about places and times.
type placeColumns struct {
	group  string   // of TACO 3 that they make, "" for none
	used   []string // the columns
	values map[string]*tables.Vector
	points [][2]float64 // longitude and latitude of each row, NaN if they are not known
}

// names of the columns of TACO 2.
const (
	oldCRS       = "stac:crs"
	shapeColumn  = "stac:tensor_shape"
	oldTransform = "stac:geotransform"
	centroid     = "stac:centroid"
	oldMiddle    = "stac:time_middle"
)

// timeColumns are the columns of TACO 2 with times.
var timeColumns = []string{"stac:time_start", "stac:time_end"}

// oldColumns are the columns of TACO 2 that a group is made of, and which of their values a group may have.
var oldColumns = []struct {
	name string
	kind tables.Kind
	may  func(v *tables.Vector, row int) bool
}{
	{oldCRS, tables.String, func(v *tables.Vector, row int) bool { return codePattern.MatchString(v.Str(row)) }},
	{shapeColumn, tables.List, func(v *tables.Vector, row int) bool { return slices.Min(shapeOf(v, row)) > 0 }},
	{oldTransform, tables.List, func(v *tables.Vector, row int) bool {
		t := transformOf(v, row)
		infinite := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
		return t != nil && !slices.ContainsFunc(t, infinite) && t[0]*t[4]-t[1]*t[3] != 0
	}},
	{centroid, tables.Binary, func(v *tables.Vector, row int) bool {
		x, y, err := wkb.Point(v.Bytes(row))
		return err == nil && math.Abs(x) <= 180 && math.Abs(y) <= 90
	}},
	{timeColumns[0], tables.Timestamp, nil},
	{timeColumns[1], tables.Timestamp, nil},
}

// shapeOf returns the rows and columns of a shape, 0 if it has none.
func shapeOf(v *tables.Vector, row int) []int64 {
	child, lo, hi := v.List(row)
	if child.Kind() != tables.Int64 || hi-lo < 2 {
		return []int64{0, 0}
	}
	return child.Ints()[hi-2 : hi]
}

// transformOf returns a transform in the order of TACO 3, nil for another list. GDAL's order has
// x = c + a*column + b*row, y = f + d*column + e*row as c, a, b, f, d, e.
func transformOf(v *tables.Vector, row int) []float64 {
	child, lo, hi := v.List(row)
	if child.Kind() != tables.Float64 || hi-lo != 6 {
		return nil
	}
	f := child.Floats()[lo:hi]
	return []float64{f[1], f[2], f[0], f[4], f[5], f[3]}
}

// oldPlaces reads the columns of TACO 2, or returns nil if they do not make a group: every row must have what the group
// must have, or nothing.
func oldPlaces(ctx context.Context, t *tables.Table) (*placeColumns, error) {
	o := &placeColumns{values: map[string]*tables.Vector{}, points: make([][2]float64, t.Len())}
	for _, c := range oldColumns {
		i := t.Index(c.name)
		if i < 0 || t.Columns()[i].Type.Kind != c.kind {
			continue
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		for row := range values.Len() {
			if c.may != nil && !values.Null(row) && !c.may(values, row) {
				return nil, nil
			}
		}
		o.used, o.values[c.name] = append(o.used, c.name), values
	}
	// It follows from the other two, so no group has it.
	if t.Index(oldMiddle) >= 0 {
		o.used = append(o.used, oldMiddle)
	}
	o.choose()
	return o, nil
}

// has reports whether a row has a value.
func (o *placeColumns) has(name string, row int) bool {
	v := o.values[name]
	return v != nil && !v.Null(row)
}

// choose sets the points, and the group that the rows make.
func (o *placeColumns) choose() {
	groups := map[[2]bool]string{{true, true}: "stac", {true, false}: "spatial", {false, true}: "temporal"}
	made := map[string]bool{}
	for row := range o.points {
		parts := 0
		for _, name := range []string{oldCRS, shapeColumn, oldTransform} {
			if o.has(name, row) {
				parts++
			}
		}
		o.points[row] = o.point(row, parts == 3)
		known := !math.IsNaN(o.points[row][0])
		placed := parts == 3 && known
		started, stopped := o.has(timeColumns[0], row), o.has(timeColumns[1], row)
		backwards := stopped && (!started || o.values[timeColumns[1]].Int(row) < o.values[timeColumns[0]].Int(row))
		if backwards || !placed && (parts > 0 || known) {
			return
		}
		if placed || started {
			made[groups[[2]bool{placed, started}]] = true
		}
	}
	if len(made) == 1 {
		o.group = slices.Collect(maps.Keys(made))[0]
	}
}

// point returns the centroid of a row or, if it has none, the centre of its grid where the CRS is known.
func (o *placeColumns) point(row int, grid bool) [2]float64 {
	if o.has(centroid, row) {
		x, y, err := wkb.Point(o.values[centroid].Bytes(row))
		if err == nil {
			return [2]float64{x, y}
		}
	}
	if grid {
		if system, ok := crs.ByName(o.values[oldCRS].Str(row)); ok {
			shape, t := shapeOf(o.values[shapeColumn], row), transformOf(o.values[oldTransform], row)
			y, x := float64(shape[0])/2, float64(shape[1])/2
			points := []crs.Point{{t[0]*x + t[1]*y + t[2], t[3]*x + t[4]*y + t[5]}}
			system.Inverse(points, points)
			if math.Abs(points[0][0]) <= 180 && math.Abs(points[0][1]) <= 90 {
				return points[0]
			}
		}
	}
	return [2]float64{math.NaN(), math.NaN()}
}

// columns returns the columns of the group, of n rows.
func (o *placeColumns) columns(n int) map[string]*tables.Vector {
	noPlace := make([]bool, n)
	lon, lat := make([]float64, n), make([]float64, n)
	codes, shapes, transforms := make([]string, n), make([][]int64, n), make([][]float64, n)
	for row := range n {
		if noPlace[row] = !o.has(oldCRS, row); noPlace[row] {
			continue
		}
		lon[row], lat[row] = o.points[row][0], o.points[row][1]
		codes[row] = o.values[oldCRS].Str(row)
		shapes[row], transforms[row] = shapeOf(o.values[shapeColumn], row), transformOf(o.values[oldTransform], row)
	}
	ranged := func(row int) bool { return o.has(timeColumns[1], row) }
	times := func(name string, may func(row int) bool) *tables.Vector {
		values, nulls := make([]int64, n), make([]bool, n)
		for row := range n {
			if nulls[row] = !o.has(name, row) || !may(row); !nulls[row] {
				values[row] = o.values[name].Int(row)
			}
		}
		return tables.NewInts(tables.Type{Kind: tables.Timestamp, UTC: true}, values, nulls)
	}
	float32s := tables.Type{Kind: tables.Float64, Bits: 32}
	return map[string]*tables.Vector{
		"centroid": tables.NewStruct([]string{"lon", "lat"}, []*tables.Vector{
			tables.NewFloats(float32s, lon, noPlace), tables.NewFloats(float32s, lat, noPlace)}, noPlace),
		"proj_code":      tables.NewStrings(codes, noPlace),
		"proj_shape":     Integers(n, func(row int) []int64 { return shapes[row] }),
		"proj_transform": Floats(tables.Floats, n, func(row int) []float64 { return transforms[row] }),
		"datetime":       times(timeColumns[0], func(row int) bool { return !ranged(row) }),
		"start_datetime": times(timeColumns[0], ranged),
		"end_datetime":   times(timeColumns[1], ranged),
	}
}
