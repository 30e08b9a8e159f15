package build

import (
	"bytes"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/arrow"
	"github.com/chaski-eo/chaski/tables/encode"
	"github.com/chaski-eo/chaski/tables/wkb"
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
	out := &columns{}
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
	for i, column := range arrow.Fitted(ctx, t) {
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
	return out.table(t.Len()), nil
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
	if name == newSplit {
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

// oldName is newName the other way round, for a container of an older form.
func oldName(name string) string {
	switch space, field, _ := strings.Cut(name, ":"); {
	case name == "split:split":
		return newSplit
	case name == "tog:header":
		return "taco:header"
	case space+":" == plainSpace:
		return field
	case space+":" == oldSpace:
		return "stac:" + field
	}
	return name
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

// grouped are the columns of a group of places and times.
type grouped struct {
	types map[string]tables.Type // of those that the table has
	columns
	used map[string]bool // the columns of TACO 2 that these come from
}

// groupsOf returns the columns of places and times of a table: those of a group of TACO 3, or what the columns of
// TACO 2 say, if that suffices for a group.
func groupsOf(ctx context.Context, t *tables.Table) (*grouped, error) {
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
			return &grouped{types: types}, nil
		}
	}
	g := &grouped{used: map[string]bool{}}
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

// places are what the columns of TACO 2 say of places and times.
type places struct {
	group string
	used  []string // the columns
	rows  []placed
}

// placed is a row of places.
type placed struct {
	code             string // "" if the grid is not known
	shape            [2]int64
	transform        [6]float64 // in the order of TACO 3
	lon, lat         float64    // NaN if not known
	start, end       int64      // microseconds
	started, stopped bool
}

// names of the columns of TACO 2.
const oldCRS, oldTransform, oldMiddle = "stac:crs", "stac:geotransform", "stac:time_middle"

// oldPlaces reads the columns of TACO 2, or returns nil if they do not make a group: every row must have what the group
// must have, or nothing.
func oldPlaces(ctx context.Context, t *tables.Table) (*places, error) {
	o := &places{rows: make([]placed, t.Len())}
	for i := range o.rows {
		o.rows[i].lon, o.rows[i].lat = math.NaN(), math.NaN()
	}
	grid := 0
	for _, c := range []struct {
		name string
		kind tables.Kind
		set  func(p *placed, v *tables.Vector, i int) bool
	}{
		{oldCRS, tables.String, setCode}, {newShape, tables.List, setShape}, {oldTransform, tables.List, setTransform},
		{centroid, tables.Binary, setCentroid},
		{timeColumns[0], tables.Timestamp, func(p *placed, v *tables.Vector, i int) bool {
			p.start, p.started = v.Int(i), true
			return true
		}},
		{timeColumns[1], tables.Timestamp, func(p *placed, v *tables.Vector, i int) bool {
			p.end, p.stopped = v.Int(i), true
			return true
		}},
	} {
		i := t.Index(c.name)
		if i < 0 || t.Columns()[i].Type.Kind != c.kind {
			continue
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		if o.used = append(o.used, c.name); c.kind == tables.List || c.name == oldCRS {
			grid++
		}
		for row := range o.rows {
			if !values.Null(row) && !c.set(&o.rows[row], values, row) {
				return nil, nil
			}
		}
	}
	if t.Index(oldMiddle) >= 0 { // it follows from the other two
		o.used = append(o.used, oldMiddle)
	}
	return o, o.choose(grid == 3)
}

func setCode(p *placed, v *tables.Vector, i int) bool {
	p.code = v.Str(i)
	return codePattern.MatchString(p.code)
}

func setShape(p *placed, v *tables.Vector, i int) bool {
	child, lo, hi := v.List(i)
	if child.Kind() != tables.Int64 || hi-lo < 2 {
		return false
	}
	p.shape = [2]int64{child.Int(hi - 2), child.Int(hi - 1)}
	return p.shape[0] > 0 && p.shape[1] > 0
}

// setTransform reads a transform in the order of GDAL: x = c + a*column + b*row, y = f + d*column + e*row as c, a, b,
// f, d, e.
func setTransform(p *placed, v *tables.Vector, i int) bool {
	child, lo, hi := v.List(i)
	if child.Kind() != tables.Float64 || hi-lo != 6 {
		return false
	}
	f := child.Floats()[lo:hi]
	p.transform = [6]float64{f[1], f[2], f[0], f[4], f[5], f[3]}
	infinite := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	return !slices.ContainsFunc(p.transform[:], infinite) && f[1]*f[5]-f[2]*f[4] != 0
}

func setCentroid(p *placed, v *tables.Vector, i int) bool {
	x, y, err := wkb.Point(v.Bytes(i))
	p.lon, p.lat = x, y
	return err == nil && math.Abs(x) <= 180 && math.Abs(y) <= 90
}

// choose sets the group that the rows make, and leaves it "" if they make none.
func (o *places) choose(grids bool) error {
	where, when, both, none := 0, 0, 0, 0
	for i := range o.rows {
		p := &o.rows[i]
		placed := grids && p.code != "" && p.shape[0] > 0 && p.transform != [6]float64{}
		if placed && math.IsNaN(p.lon+p.lat) {
			p.centre()
		}
		partly := p.code != "" || p.shape[0] > 0 || p.transform != [6]float64{} || !math.IsNaN(p.lon+p.lat)
		placed = placed && !math.IsNaN(p.lon+p.lat)
		switch {
		case partly && !placed, p.stopped && (!p.started || p.end < p.start):
			return nil
		case placed && p.started:
			both++
		case placed:
			where++
		case p.started:
			when++
		default:
			none++
		}
	}
	switch n := len(o.rows) - none; {
	case n == 0:
	case both == n:
		o.group = "stac"
	case where == n:
		o.group = "spatial"
	case when == n:
		o.group = "temporal"
	}
	return nil
}

// centre sets the place to the centre of the grid, if the CRS is known.
func (p *placed) centre() {
	system, ok := crs.ByName(p.code)
	if !ok {
		return
	}
	col, row, t := float64(p.shape[1])/2, float64(p.shape[0])/2, p.transform
	points := []crs.Point{{t[0]*col + t[1]*row + t[2], t[3]*col + t[4]*row + t[5]}}
	if system.Inverse(points, points); math.Abs(points[0][0]) <= 180 && math.Abs(points[0][1]) <= 90 {
		p.lon, p.lat = points[0][0], points[0][1]
	}
}

// columns returns the columns of the group.
func (o *places) columns(n int) map[string]*tables.Vector {
	lon, lat, codes := make([]float64, n), make([]float64, n), make([]string, n)
	var shapes []int64
	var transforms []float64
	shapeEnds, transformEnds := make([]uint32, 1, n+1), make([]uint32, 1, n+1)
	single, first, last := make([]int64, n), make([]int64, n), make([]int64, n)
	noPlace, noTime, noRange := make([]bool, n), make([]bool, n), make([]bool, n)
	for i, placed := range o.rows {
		if noPlace[i] = placed.code == ""; !noPlace[i] {
			lon[i], lat[i], codes[i] = placed.lon, placed.lat, placed.code
			shapes, transforms = append(shapes, placed.shape[:]...), append(transforms, placed.transform[:]...)
		}
		shapeEnds = append(shapeEnds, uint32(len(shapes)))
		transformEnds = append(transformEnds, uint32(len(transforms)))
		noRange[i], noTime[i] = !placed.stopped, !placed.started || placed.stopped
		single[i], first[i], last[i] = placed.start, placed.start, placed.end
	}
	float32s := tables.Type{Kind: tables.Float64, Bits: 32}
	stamps := tables.Type{Kind: tables.Timestamp, UTC: true}
	return map[string]*tables.Vector{
		"centroid": tables.NewStruct([]string{"lon", "lat"}, []*tables.Vector{
			tables.NewFloats(float32s, lon, noPlace), tables.NewFloats(float32s, lat, noPlace)}, noPlace),
		"proj_code":  tables.NewStrings(codes, noPlace),
		"proj_shape": tables.NewList(tables.NewInts(int64Type, shapes, nil), shapeEnds, noPlace),
		"proj_transform": tables.NewList(tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, transforms, nil),
			transformEnds, noPlace),
		"datetime":       tables.NewInts(stamps, single, noTime),
		"start_datetime": tables.NewInts(stamps, first, noRange),
		"end_datetime":   tables.NewInts(stamps, last, noRange),
	}
}
