package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Declared is the type and the meaning that a description declares for a column. Either may be "".
type Declared struct {
	Type        string `json:"type"` // a key of declaredTypes
	Description string `json:"description"`
}

// UnmarshalJSON reads {"type": …, "description": …}, or a description alone.
func (d *Declared) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &d.Description)
	}
	type plain Declared
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode((*plain)(d))
}

// declaredTypes are the types that a column may be declared to have, in Arrow's words.
var declaredTypes = map[string]tables.Type{
	"string": {Kind: tables.String}, "bool": {Kind: tables.Bool},
	"int8": {Kind: tables.Int64, Bits: 8}, "int16": {Kind: tables.Int64, Bits: 16},
	"int32": {Kind: tables.Int64, Bits: 32}, "int64": {Kind: tables.Int64, Bits: 64},
	"float32": {Kind: tables.Float64, Bits: 32}, "float64": {Kind: tables.Float64, Bits: 64},
	"timestamp": {Kind: tables.Timestamp},
}

// columnsMember is the member of a YAML document that declares columns. Containers have no such member: the
// declarations go to taco:field_schema and the tables.
const columnsMember = "columns"

// declare reads columnsMember, and removes it.
func declare(members map[string]json.RawMessage, into map[string]Declared) (map[string]Declared, error) {
	raw, ok := members[columnsMember]
	if !ok {
		return into, nil
	}
	delete(members, columnsMember)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, badMember("columns is %.100s: it must be an object with a member for each column", raw)
	}
	into = maps.Clone(into)
	if into == nil {
		into = map[string]Declared{}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var d Declared
		if err := json.Unmarshal(fields[name], &d); err != nil {
			return nil, badMember("columns.%s is %.100s: it must be a description, or an object with type and "+
				"description", name, fields[name])
		}
		if _, known := declaredTypes[d.Type]; !known && d.Type != "" {
			return nil, badMember("columns.%s.type is %q: it must be one of %s", name, d.Type,
				strings.Join(slices.Sorted(maps.Keys(declaredTypes)), ", "))
		}
		into[name] = d
	}
	return into, nil
}

// keyOf returns the name of a column in Collection.Columns: "name", and "l1:name", "l2:name", … at lower levels.
func keyOf(k int, name string) string {
	if k == 0 {
		return name
	}
	return "l" + strconv.Itoa(k) + ":" + name
}

// typed converts columns of all levels to their declared types. A declared column that no level has is an error.
func typed(ctx context.Context, declared map[string]Declared, levels []*tables.Table) error {
	left := maps.Clone(declared)
	for depth, table := range levels {
		for i, column := range table.Columns() {
			d, ok := declared[keyOf(depth, column.Name)]
			delete(left, keyOf(depth, column.Name))
			want := declaredTypes[d.Type]
			if !ok || d.Type == "" || column.Type.Equal(want) {
				continue
			}
			values, err := table.At(ctx, i)
			if err == nil {
				values, err = Cast(values, want)
			}
			if err != nil {
				return fault.WithPart(err, "column "+keyOf(depth, column.Name), fault.NoOffset)
			}
			levels[depth] = replaced(levels[depth], tables.FromVectors([]string{column.Name}, []*tables.Vector{values}))
		}
	}
	if len(left) == 0 {
		return nil
	}
	var have []string
	for depth, t := range levels {
		for _, c := range t.Columns() {
			have = append(have, keyOf(depth, c.Name))
		}
	}
	return fault.New(fault.NotFound, model.CollectionName, "columns has %q, and the samples have %s",
		slices.Sorted(maps.Keys(left))[0], strings.Join(have, ", "))
}

// Cast returns values as another type. A value that the type cannot have is an error that names its row.
func Cast(v *tables.Vector, to tables.Type) (*tables.Vector, error) {
	n := v.Len()
	if v.Kind() == tables.Null {
		return tables.NewNulls(to, n), nil
	}
	none, ints, floats, texts := make([]bool, n), make([]int64, n), make([]float64, n), make([]string, n)
	for i := range n {
		if none[i] = v.Null(i); none[i] {
			continue
		}
		ok := v.Kind() != tables.List && v.Kind() != tables.Struct && v.Kind() != tables.Binary
		if v.Kind() == tables.String {
			texts[i] = v.Str(i)
		} else if ok {
			texts[i] = string(v.AppendCast(nil, i))
		}
		switch text := strings.TrimSpace(texts[i]); {
		case !ok || to.Kind == tables.String:
		case to.Kind == tables.Float64:
			f, err := strconv.ParseFloat(text, 64)
			becomesInf := to.Bits == 32 && !math.IsInf(f, 0) && math.IsInf(float64(float32(f)), 0)
			floats[i], ok = f, err == nil && !becomesInf
		case to.Kind == tables.Timestamp && v.Kind() == tables.Int64:
			ints[i] = v.Int(i)
		default:
			ints[i], ok = parsed(text, to)
		}
		if !ok {
			return nil, unsupported("table", "row %d is %.100s, which is no %v", i, v.AppendJSON(nil, i), to)
		}
	}
	switch to.Kind {
	case tables.String:
		return tables.NewStrings(texts, none), nil
	case tables.Float64:
		return tables.NewFloats(to, floats, none), nil
	}
	return tables.NewInts(to, ints, none), nil
}

// parsed returns what a text says of a type that Vector.Int has values of.
func parsed(text string, to tables.Type) (int64, bool) {
	switch to.Kind {
	case tables.Timestamp:
		t, err := column.ParseTimes(text)
		return t.First, err == nil && !strings.Contains(text, "/")
	case tables.Bool:
		x, err := strconv.ParseBool(text)
		if x {
			return 1, err == nil
		}
		return 0, err == nil
	}
	if x, err := strconv.ParseInt(text, 10, int(to.Bits)); err == nil {
		return x, true
	}
	f, err := strconv.ParseFloat(text, 64) // such as 3.0, or 1e9
	limit := math.Ldexp(1, int(to.Bits)-1)
	return int64(f), err == nil && f == math.Trunc(f) && f >= -limit && f < limit
}

// saidOf returns the descriptions of columns in a taco:field_schema, so a copy keeps them.
func saidOf(fields json.RawMessage) map[string]string {
	var levels map[string][][]any
	if json.Unmarshal(fields, &levels) != nil {
		return nil
	}
	texts := map[string]string{}
	for k := range taco2.MaxLevels {
		for _, f := range levels[model.LevelName(k)] {
			if len(f) == 3 && f[2] != "" {
				texts[keyOf(k, fmt.Sprint(f[0]))] = fmt.Sprint(f[2])
			}
		}
	}
	return texts
}

// descriptions describe the columns that the specification, its extensions and chaski define.
var descriptions = map[string]string{
	model.ColumnID:       "Name of the sample, unique among its siblings",
	model.ColumnType:     "FILE for a sample with bytes, FOLDER for one with samples below it",
	model.ColumnCurrent:  "Number of the row in its level, from 0",
	model.ColumnParent:   "Number of the row in the level above that this one lies below",
	model.ColumnRelative: "Path below DATA/",

	"stac:crs":          "CRS of the raster, such as EPSG:32620",
	"stac:tensor_shape": "Bands, rows and columns of the raster",
	"stac:geotransform": "Transform of GDAL, from columns and rows to the CRS",
	"stac:centroid":     "Centre, in degrees of longitude and latitude (WKB)",
	"stac:time_start":   "Start, in microseconds since 1970 (UTC)",
	"stac:time_end":     "End, in microseconds since 1970 (UTC)",
	"stac:time_middle":  "Middle of start and end, in microseconds since 1970 (UTC)",
	"istac:crs":         "CRS of the geometry, such as EPSG:32620",
	"istac:geometry":    "Outline, in the CRS (WKB)",
	"istac:centroid":    "Centre, in degrees of longitude and latitude (WKB)",
	"istac:time_start":  "Start, in microseconds since 1970 (UTC)",
	"istac:time_end":    "End, in microseconds since 1970 (UTC)",
	"istac:time_middle": "Middle of start and end, in microseconds since 1970 (UTC)",
	"geotiff:stats": "Of each band: minimum, maximum, mean, standard deviation, percentage of valid pixels, " +
		"percentiles 25, 50, 75, 95; or the share of each class",
	"scaling:scale_factor": "Scale of GDAL: value = pixel * scale + offset",
	"scaling:scale_offset": "Offset of GDAL: value = pixel * scale + offset",
	"scaling:padding":      "Pixels of padding at each edge",
	"taco:header":          "Header of a TACOTIFF",
	"chaski:index":         "Chunk index of the raster",
	"chaski:bands":         "Names of the raster's bands (JSON)",
	"chaski:source":        "Name in the source of the sample that the chip is cut from",
	"chaski:window":        "Window of the chip in its source, in pixels: row, column, height, width",
	"rumi:header":          "Header of the rumi file",
	"rumi:minimum":         "Minimum of all valid values",
	"rumi:maximum":         "Maximum of all valid values",
	"rumi:mean":            "Mean of all valid values",
	"rumi:stddev":          "Standard deviation of all valid values (of the population)",
	"rumi:p2":              "2nd percentile of all valid values",
	"rumi:p98":             "98th percentile of all valid values",
	"majortom:code":        "Cell of the grid of MajorTOM",
	"split":                "Part of the dataset, such as train, validation or test",
}

// Members of extensions.
const (
	sensorMember = "optical:sensor"
	bandsMember  = "optical:bands"
)

// spread turns the objects of extensions, such as optical: {sensor: sentinel2msi}, into the members that containers
// have: optical:sensor. It returns the names of the extensions, which lose all members of theirs. A member that the
// extension does not define is an error, because it would be ignored.
func spread(members map[string]json.RawMessage) (namespaces []string, err error) {
	for namespace, raw := range maps.Clone(members) {
		known := taco2.ExtensionMembers(namespace)
		if known == nil || !taco2.Has(raw) {
			continue
		}
		names := strings.ReplaceAll(strings.Join(known, ", "), namespace+":", "")
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return nil, badMember("%s is %.100s: it must be an object with %s", namespace, raw, names)
		}
		namespaces = append(namespaces, namespace)
		delete(members, namespace)
		for _, name := range slices.Sorted(maps.Keys(o)) {
			// A member that the extension does not define would be ignored.
			if !slices.Contains(known, namespace+":"+name) {
				return nil, badMember("%s has %q: it has %s", namespace, name, names)
			}
			members[namespace+":"+name] = o[name]
		}
	}
	return namespaces, nil
}

// complete adds the members that follow from other members of extensions: the bands of a known sensor, and the numbers
// of classes and bands.
func complete(members map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	extra := maps.Clone(members)
	if sensor, err := sensorOf(members); err == nil && sensor.Bands != nil {
		if extra[bandsMember], err = plainJSON(bandsOf(sensor)); err != nil {
			return nil, err
		}
		extra[sensorMember] = quoted(sensor.Name)
	}
	for count, counted := range taco2.Counts {
		var list []json.RawMessage
		if !taco2.Has(extra[count]) && taco2.Has(extra[counted]) && json.Unmarshal(extra[counted], &list) == nil {
			extra[count] = fmt.Append(nil, len(list))
		}
	}
	return extra, nil
}

// sensorOf returns the sensor of members that name one without its bands. An unknown sensor has no bands.
func sensorOf(members map[string]json.RawMessage) (s taco.Sensor, err error) {
	var text string
	if json.Unmarshal(members[sensorMember], &text) != nil || text == "" || taco2.Has(members[bandsMember]) {
		return s, nil
	}
	return taco.ParseSensor(text)
}

// bandsOf returns optical:bands. Their indexes count the bands of the rasters from 0. Of a band that has only a name
// nothing else is said.
func bandsOf(s taco.Sensor) (out []object) {
	for i, band := range s.Bands {
		o := object{{"name", band.Name}, {"index", i}}
		if band.CommonName != "" {
			o = append(o, jsonMember{"common_name", band.CommonName})
		}
		if band.Metres > 0 {
			o = append(o, jsonMember{"description", fmt.Sprintf("pixels of %g m", band.Metres)},
				jsonMember{"center_wavelength", band.Centre}, jsonMember{"full_width_half_max", band.Width})
		}
		out = append(out, o)
	}
	return out
}

// checkExtensions returns the first violation of the members of extensions.
func checkExtensions(members map[string]json.RawMessage) error {
	s, err := sensorOf(members)
	if err == nil && s.Name != "" && s.Bands == nil {
		err = fmt.Errorf("it is none of %s, and so it needs %s", strings.Join(taco.Sensors(), ", "), bandsMember)
	}
	if err != nil {
		return badMember("%s is %s: %s", sensorMember, members[sensorMember], withoutKind(err))
	}
	extra, err := complete(members)
	if err != nil {
		return err
	}
	return firstOf(taco2.Violations(extra))
}

// withoutKind returns the text of an error that becomes one of another kind.
func withoutKind(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return strings.TrimSuffix(err.Error(), ": "+f.Kind.Error())
	}
	return err.Error()
}

// firstOf returns an error about the first of the violations.
func firstOf(violations []string) error {
	if len(violations) == 0 {
		return nil
	}
	return badMember("%s", violations[0])
}

// checkTimes checks the start and end of a temporal extent.
func checkTimes(temporal []string) error {
	if len(temporal) == 0 {
		return nil
	}
	for _, text := range temporal {
		if _, err := column.ParseTimes(text); err != nil || strings.Contains(text, "/") {
			return badMember("extent.temporal has %q: it must be a date or a timestamp such as 2024-05-01T10:00:00Z",
				text)
		}
	}
	if _, err := column.ParseTimes(temporal[0] + "/" + temporal[1]); err != nil {
		return badMember("extent.temporal is %q: it ends before it starts", temporal)
	}
	return nil
}
