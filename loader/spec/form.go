package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/stats"
)

// form is the JSON form of a spec. ParseSpec puts long forms in place of short ones, so that Spec, the hash and the
// printed spec have long forms only.
type form struct {
	Spec
	// Defaults are settings for raster fields that do not set them; metadata columns and shapes take none. With
	// defaults, a field that sets a layout, sizes, fill, nodata, pad, clip, physical or normalize is a raster, and one
	// with a dtype is a raster or numbers. Bands and validity are for the only field, "image" of a spec without
	// `fields`. Of several fields, labels do not take the fill, which would be a class there: fields of dtype native
	// and int64, and of uint8 if they are not normalised. Clip is for dtype uint8. Normalize is not for dtypes native
	// and int64 and, if it is the name of a method, not for fields that `stats` lacks. A fill or method that no field
	// takes is an error.
	Defaults fieldDefaults `json:"defaults,omitempty"`
	// Stats are the statistics of fields by their names, for fields whose `normalize` is the name of a method: the
	// member `fields` of the JSON of chaski stats. Histograms may be left out.
	Stats map[string]json.RawMessage `json:"stats,omitempty"`
}

// fieldDefaults are those members of a Field that are in defaultMembers.
type fieldDefaults map[string]json.RawMessage

var defaultMembers = []string{
	"band_names", "bands", "by_position", "clip", "dtype", "fill", "layout", "normalize", "pad", "sizes", "validity",
}

// defaults checks members of a field that are in defaultMembers.
func (p place) defaults(b json.RawMessage) (json.RawMessage, error) {
	if b[0] != '{' {
		return nil, p.wrong(b, "an object")
	}
	p.name = "" // users of Python say pad, not defaults.pad
	names, _, err := p.members(b)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.Contains(defaultMembers, name) {
			return nil, fmt.Errorf("defaults has no member %q; there are %s", name, strings.Join(defaultMembers, ", "))
		}
	}
	return p.check(reflect.TypeFor[Field](), b)
}

// long returns the long form of a value of a type. A value that is not a short form stays as it is.
func (p place) long(t reflect.Type, b json.RawMessage) (json.RawMessage, error) {
	switch {
	case t == reflect.TypeFor[Sampler]() && b[0] != '{':
		if views, err := p.viewsOf(b); views != nil || err != nil {
			return views, err
		}
		var sides Pair
		if sides.UnmarshalJSON(b) != nil {
			return nil, p.wrong(b, pairRule)
		}
		if min(sides[0], sides[1]) < 1 {
			// As a size, it would get the name of a member that is not there.
			return nil, p.wrong(b, "at least 1 pixel")
		}
		return object{"kind": json.RawMessage(`"` + RandomWindow + `"`), "size": b}.text(), nil
	case t == reflect.TypeFor[[]Condition]() && b[0] != '[':
		if b[0] != '"' {
			return nil, p.wrong(b, "SQL or a list of conditions")
		}
		return slices.Concat(json.RawMessage("["), b, json.RawMessage("]")), nil
	case t == reflect.TypeFor[Condition]() && b[0] != '{':
		return p.condition(b)
	case (t == reflect.TypeFor[[]Share]() || t == reflect.TypeFor[[]Range]()) && b[0] == '{':
		return p.parts(t, b)
	case t == reflect.TypeFor[[]SideTable]() && b[0] == '{':
		return p.sideTables(b)
	case t == reflect.TypeFor[Strata]() && b[0] == '"':
		return object{"column": b}.text(), nil
	case t == reflect.TypeFor[[]Field]() && b[0] == '{':
		return p.fieldList(b)
	case t == reflect.TypeFor[Field]() && b[0] == '{':
		return p.picked(b)
	case t == reflect.TypeFor[Values]() && b[0] != '[':
		if numberRule(t.Elem(), b) != "" {
			return nil, p.wrong(b, "a number, or a list with one for each band")
		}
		return slices.Concat(json.RawMessage("["), b, json.RawMessage("]")), nil
	case t == reflect.TypeFor[Names]() && b[0] != '[':
		if b[0] != '"' {
			return nil, p.wrong(b, "the name of a column, or a list with one for each band")
		}
		return listText([]json.RawMessage{b}), nil
	case t == reflect.TypeFor[[][]Float]():
		if b[0] != '[' {
			b = listText([]json.RawMessage{b})
		}
		lists, _ := elements(b)
		if len(lists) == 0 || lists[0][0] != '[' {
			lists = []json.RawMessage{b}
		}
		return listText(lists), p.exact(lists)
	case t == reflect.TypeFor[LUT]():
		return p.table(b)
	case t == reflect.TypeFor[Normalize]() && b[0] != '{':
		methods := []string{stats.MeanStd, stats.MinMax, stats.Percentile}
		if !slices.Contains(methods, unquoted(b)) {
			return nil, p.wrong(b, `"`+strings.Join(methods, `", "`)+`" (of stats), false, or an object with mean and `+
				`std, such as those of ImageNet for pixels from 0 to 255: {"mean": [123.675, 116.28, 103.53], `+
				`"std": [58.395, 57.12, 57.375]}`)
		}
		return object{"method": b}.text(), nil
	}
	return b, nil
}

// viewsOf returns the long form of a list of windows: the first is the sampler, the others are its views. It returns
// nil for other JSON, such as a pair of sides.
func (p place) viewsOf(b json.RawMessage) (json.RawMessage, error) {
	list, _ := elements(b)
	if len(list) == 0 || list[0][0] != '{' && list[0][0] != '[' {
		return nil, nil
	}
	first, err := p.long(reflect.TypeFor[Sampler](), list[0])
	if err != nil || first[0] != '{' {
		return nil, p.wrong(list[0], "a window")
	}
	var sampler object
	if err := json.Unmarshal(first, &sampler); err != nil {
		return nil, err
	}
	if sampler["views"] != nil {
		return nil, errors.New("a window of a list has views: they are windows of the list, too")
	}
	if len(list) > 1 {
		sampler["views"] = listText(list[1:])
	}
	return sampler.text(), nil
}

// exact checks that the integers of lists are numbers of float64, as which nodata is compared.
func (p place) exact(lists []json.RawMessage) error {
	for _, list := range lists {
		values, _ := elements(list)
		for _, value := range values {
			n, whole := new(big.Int).SetString(string(value), 10)
			if whole && new(big.Float).SetInt(n).MinPrec() > 53 {
				return p.wrong(value, "a number that float64 has exactly")
			}
		}
	}
	return nil
}

// table returns the long form of a list of values, or of an object of values by number or colour, "255,0,0".
func (p place) table(b json.RawMessage) (json.RawMessage, error) {
	if b[0] == '[' {
		return object{"to": b}.text(), nil
	}
	if b[0] != '{' {
		return nil, p.wrong(b, "a list of values, or an object of values by number or colour")
	}
	names, values, err := p.members(b)
	if err != nil || values["to"] != nil {
		return b, err
	}
	numbers, listed, member := make([]json.RawMessage, len(names)), make([]json.RawMessage, len(names)), "from"
	for i, name := range names {
		var bands []json.RawMessage
		for number := range strings.SplitSeq(name, ",") {
			if _, err := strconv.Atoi(number); err != nil {
				return nil, p.wrong(textOf(name), "a whole number, or a colour such as 255,0,0, because it is a key "+
					"of a look-up table")
			}
			bands = append(bands, json.RawMessage(number))
		}
		if numbers[i], listed[i] = listText(bands), values[name]; len(bands) > 1 {
			member = "colours"
		}
	}
	if member == "from" {
		for i, name := range names {
			numbers[i] = json.RawMessage(name)
		}
	}
	return object{member: listText(numbers), "to": listText(listed)}.text(), nil
}

// condition returns the condition that SQL, or a list of column, operator and value, stands for.
func (p place) condition(b json.RawMessage) (json.RawMessage, error) {
	triple, _ := elements(b)
	switch {
	case slices.Contains(operators, unquoted(b)):
		return nil, p.wrong(b, `SQL: a condition with an operator goes into a list, [["cloud", "<", 10]]`)
	case b[0] == '"':
		return object{"sql": b}.text(), nil
	case len(triple) != 3:
		return nil, p.wrong(b, "SQL, or [column, operator, value]")
	}
	return object{"column": triple[0], "op": triple[1], "value": triple[2]}.text(), nil
}

// parts returns the list that shares or ranges by name stand for.
func (p place) parts(t reflect.Type, b json.RawMessage) (json.RawMessage, error) {
	names, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(names))
	for i, name := range names {
		raw := values[name]
		part := object{"weight": raw}
		if t == reflect.TypeFor[[]Range]() {
			bounds, _ := elements(raw)
			if len(bounds) != 2 {
				return nil, p.member(name).wrong(raw, "[from, to]")
			}
			part = object{"from": bounds[0], "to": bounds[1]}
			maps.DeleteFunc(part, func(_ string, bound json.RawMessage) bool { return string(bound) == "null" })
		}
		part["name"] = textOf(name)
		list[i] = part.text()
	}
	return listText(list), nil
}

// sideTables returns the list that columns by the paths of tables stand for.
func (p place) sideTables(b json.RawMessage) (json.RawMessage, error) {
	paths, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(paths))
	for i, path := range paths {
		raw, inner := values[path], p.member(path)
		table := object{"path": textOf(path), "on": raw}
		if raw[0] == '{' {
			names, columns, err := inner.members(raw)
			if err != nil || len(names) != 1 {
				return nil, inner.wrong(raw, "the table's column with the keys and the dataset's, as one pair")
			}
			table["column"], table["on"] = textOf(names[0]), columns[names[0]]
		}
		if table["on"][0] != '"' {
			return nil, inner.wrong(raw, "a column of the dataset, or {column of the table: column of the dataset}")
		}
		list[i] = table.text()
	}
	return listText(list), nil
}

// unquoted returns a string of JSON, or "" if b is nil or none.
func unquoted(b json.RawMessage) (s string) {
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// fieldList returns the list that fields by name stand for, each an object, or a string for its place.
func (p place) fieldList(b json.RawMessage) (json.RawMessage, error) {
	names, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("fields is empty: it must have at least one field")
	}
	list := make([]json.RawMessage, len(names))
	for i, name := range names {
		var f object
		inner := place{of: fmt.Sprintf("%sfield %q: ", p.of, brief(name)), depth: p.depth + 1}
		switch raw := values[name]; raw[0] {
		case '{':
			if _, f, err = inner.members(raw); err == nil && f["name"] != nil {
				err = inner.member("name").wrong(f["name"], "left out, because the field already has one")
			}
			if err != nil {
				return nil, err
			}
		case '"':
			member := "column"
			if len(column.Names(unquoted(raw))) > 0 {
				member = "pattern"
			}
			f = object{member: raw}
		default:
			return nil, inner.wrong(raw, "an object, the name of a column, or a pattern with a name such as {id}")
		}
		f["name"] = textOf(name)
		list[i] = f.text()
	}
	return listText(list), nil
}

// picked returns a field with band_names in place of bands if these are strings, by_position for "position", and
// strings in place of integers in classes. Whole floats count as integers: pandas has them in columns with gaps.
func (p place) picked(b json.RawMessage) (json.RawMessage, error) {
	_, object, err := p.members(b)
	if value := object["physical"]; string(value) == "false" && (object.on("scale") || object.on("offset")) {
		return nil, p.member("physical").wrong(value, "left out beside scale or offset, which make physical values")
	}
	if object["classes"] != nil {
		classes, _ := elements(object["classes"])
		for i, class := range classes {
			number, err := strconv.ParseFloat(string(class), 64)
			switch {
			case numberRule(reflect.TypeFor[int64](), class) == "":
				classes[i] = textOf(string(class))
			case err == nil && number == math.Trunc(number):
				classes[i] = textOf(strconv.FormatFloat(number+0, 'f', -1, 64))
			}
		}
		if classes != nil {
			object["classes"] = listText(classes)
			b = object.text()
		}
	}
	var names []string
	if err == nil && string(object["bands"]) == `"position"` {
		object["by_position"] = json.RawMessage("true")
		delete(object, "bands")
		return object.text(), nil
	}
	// An empty list goes the same way, because no bands at all is an error of band_names.
	if err != nil || object["bands"] == nil || object["band_names"] != nil || json.Unmarshal(object["bands"],
		&names) != nil {
		return b, err
	}
	object["band_names"] = object["bands"]
	delete(object, "bands")
	return object.text(), nil
}

// inherited has the defaults of a spec for its fields. Omitted members are nil; normalize is null where it was false.
type inherited struct {
	Defaults, Stats object
	Fields          []object
	Sources         []json.RawMessage

	alone  bool   // the spec has no fields, and Fields is the default
	method string // of normalisation, by Stats
}

// on reports whether a member is given, and neither false nor none.
func (o object) on(name string) bool {
	return o[name] != nil && string(o[name]) != "false" && string(o[name]) != "null"
}

// inherit returns a checked spec whose fields have its defaults.
func inherit(b json.RawMessage) (json.RawMessage, error) {
	var spec object
	var d inherited
	if err := errors.Join(json.Unmarshal(b, &spec), json.Unmarshal(b, &d)); err != nil || d.Defaults == nil {
		return b, err
	}
	var n Normalize
	if d.Defaults.on("normalize") {
		if err := json.Unmarshal(d.Defaults["normalize"], &n); err != nil {
			return nil, err
		}
	}
	if d.alone = len(d.Fields) == 0; d.alone {
		d.Fields = []object{{"name": json.RawMessage(`"image"`)}}
		if d.Stats == nil && d.Sources == nil && spec["all_fields"] == nil {
			spec["all_fields"] = json.RawMessage("true") // a catalog of pairs defines its fields
		}
	}
	size := len(spec["defaults"])
	switch {
	case size*len(d.Fields) > maxSpecBytes: // each may take all of the text
		return nil, fmt.Errorf("defaults of %d bytes, for %d fields: together at most %d are allowed", size,
			len(d.Fields), maxSpecBytes)
	case len(d.Fields) > 1 && slices.ContainsFunc([]string{"bands", "band_names", "validity"}, d.Defaults.on):
		return nil, errors.New("with several fields, bands and validity must be in the field they belong to")
	case n.Method != "" && n.Stats == nil && d.Stats == nil:
		return nil, wrong("normalize", n.Method, "it needs stats, the result of chaski stats")
	case n.Stats == nil:
		d.method = n.Method
	}
	for _, field := range d.Fields {
		if err := d.give(field); err != nil {
			return nil, within(fmt.Sprintf("field %q", unquoted(field["name"])), err)
		}
	}
	if err := d.used(); err != nil {
		return nil, err
	}
	delete(spec, "defaults")
	fields := make([]json.RawMessage, len(d.Fields))
	for i, field := range d.Fields {
		fields[i] = field.text()
	}
	spec["fields"] = listText(fields)
	return spec.text(), nil
}

// rasterMembers make a raster of a field that sets one of them, where there are defaults.
var rasterMembers = []string{"layout", "sizes", "normalize", "fill", "nodata", "pad", "clip", "physical", "scale",
	"offset"}

// storedDTypes are the dtypes without arithmetic.
var storedDTypes = []string{"native", "int64"}

// beside reports whether a field is one of shapes.
func (o object) beside() bool { return o["vector"] != nil }

// give adds the defaults that a field does not set.
func (d *inherited) give(f object) error {
	kind := Field{Kind: unquoted(f["kind"])}
	switch {
	case f.beside() || kind.Traits().Metadata || f["classes"] != nil || unquoted(f["layout"]) == RowLayout:
		return nil
	case f["kind"] != nil:
	case slices.ContainsFunc(rasterMembers, f.on):
		f["kind"] = json.RawMessage(`"` + RasterField + `"`)
	case f["dtype"] != nil:
		f["kind"] = json.RawMessage(`"` + ArrayField + `"`)
	}
	dtype := cmp.Or(unquoted(f["dtype"]), unquoted(d.Defaults["dtype"]), "native")
	stored := slices.Contains(storedDTypes, dtype)
	normalized := f.on("normalize") || f["normalize"] == nil && d.Defaults.on("normalize")
	label := stored || !slices.Contains(floatDTypes, dtype) && !normalized
	for name, raw := range d.Defaults {
		switch {
		case f[name] != nil:
		case name == "fill" && label && !d.alone:
			if f.on("pad") || f["pad"] == nil && d.Defaults.on("pad") {
				return fmt.Errorf("dtype is %q and pad is true: the fill of all fields is not for labels, and what is "+
					"past the edge would be class 0; give the field a fill of its own", dtype)
			}
		case name == "by_position" && (f["bands"] != nil || f["band_names"] != nil):
		case name == "clip" && dtype != "uint8":
		case name == "normalize" && (stored || d.method != "" && d.Stats[unquoted(f["name"])] == nil):
		default:
			f[name] = raw
		}
	}
	return nil
}

// used returns an error about a fill, a clip or a method that no field takes.
func (d *inherited) used() error {
	var pixels []string // the fields that a method is for
	filled, normalized := d.Defaults["fill"] == nil, d.method == "" || d.Sources != nil
	clipped := !d.Defaults.on("clip")
	for _, object := range d.Fields {
		filled, normalized = filled || object["fill"] != nil, normalized || object["normalize"] != nil
		clipped = clipped || object["clip"] != nil
		if !object.beside() && !slices.Contains(storedDTypes, unquoted(object["dtype"])) {
			pixels = append(pixels, unquoted(object["name"]))
		}
	}
	switch {
	case !filled:
		return fmt.Errorf(`fill is %s, but no field takes it: fields of dtype "native" and of integers are labels, `+
			"which keep their nodata unless they have a fill of their own", d.Defaults["fill"])
	case !clipped:
		return errors.New(`clip is true, but no field takes it: it is for fields of dtype "uint8"`)
	case normalized:
		return nil
	case len(pixels) == 0:
		return fmt.Errorf("normalize is %q, but no field takes it: fields of dtype \"native\" and \"int64\" are as "+
			"stored", d.method)
	}
	return fmt.Errorf("normalize is %q, but stats has %q, and none of %q", d.method,
		slices.Sorted(maps.Keys(d.Stats)), pixels)
}
