package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/stats"
)

// form is the JSON form of a spec. ParseSpec puts long forms in place of its short ones, so that Spec has none of them,
// and neither has what is hashed and printed.
type form struct {
	Spec
	// Defaults are the settings that raster fields have where they do not say otherwise. Metadata columns, points and
	// shapes take none of them.
	Defaults *fieldDefaults `json:"defaults,omitempty"`
	// Stats are the statistics of fields by their names, for fields whose `normalize` is the name of a method: the
	// member `fields` of the JSON of chaski stats. Histograms may be left out.
	Stats map[string]json.RawMessage `json:"stats,omitempty"`
}

// fieldDefaults are settings of raster fields, as Field has them. A field that has any of Layout, Sizes, Normalize,
// Fill or Pad itself is a raster then, and one with a DType a raster or numbers.
type fieldDefaults struct {
	// Bands picks bands of the field "image" that a spec without `fields` has.
	Bands []int `json:"bands,omitempty"`
	// BandNames picks bands of this field by their descriptions.
	BandNames []string `json:"band_names,omitempty"`
	// DType is the dtype of tensors.
	DType string `json:"dtype,omitempty"`
	// Layout is the layout of tensors.
	Layout string `json:"layout,omitempty"`
	// Sizes gives the lengths of names in layouts that are not axes.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Normalize scales and shifts pixels. It is not for fields of dtype native and int64 and, if it is the name of a
	// method, not for fields that `stats` lacks. A method that no field takes is an error.
	Normalize *Normalize `json:"normalize,omitempty"`
	// Fill is the value of nodata and padding. Of several fields those that are labels do not take it, as it would be
	// a class there: fields of dtype native and int64, and of uint8 if they are not normalised. A fill that no field
	// takes is an error.
	Fill *Float `json:"fill,omitempty"`
	// Pad lets windows reach past the edge of the asset.
	Pad bool `json:"pad,omitempty"`
	// Validity names the tensor of valid pixels of the field "image" that a spec without `fields` has.
	Validity string `json:"validity,omitempty"`
}

// long returns the long form of a value of a type. A value that is no short form stays as it is.
func (p place) long(t reflect.Type, b json.RawMessage) (json.RawMessage, error) {
	switch {
	case t == reflect.TypeFor[form]() && b[0] == '{':
		return p.inherit(b)
	case t == reflect.TypeFor[[]Field]() && b[0] == '{':
		return p.fieldList(b)
	case (t == reflect.TypeFor[Field]() || t == reflect.TypeFor[fieldDefaults]()) && b[0] == '{':
		return p.picked(b)
	case t == reflect.TypeFor[Values]() && b[0] != '[':
		if numberRule(t.Elem(), b) != "" {
			return nil, p.wrong(b, "a number, or a list with one for each band")
		}
		return slices.Concat(json.RawMessage("["), b, json.RawMessage("]")), nil
	case t == reflect.TypeFor[Normalize]() && b[0] != '{':
		methods := []string{stats.MeanStd, stats.MinMax, stats.Percentile}
		if !slices.Contains(methods, unquoted(b)) {
			return nil, p.wrong(b, `"`+strings.Join(methods, `", "`)+`", false, or an object with scale and offset`)
		}
		return json.Marshal(object{"method": b})
	}
	return b, nil
}

// unquoted returns a string of JSON, or "" if b is nil or none.
func unquoted(b json.RawMessage) (s string) {
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// has reports whether a member is given.
func (o object) has(name string) bool { return o[name] != nil && string(o[name]) != "null" }

// fieldList returns the list that fields by name stand for, each an object, or a string for its place.
func (p place) fieldList(b json.RawMessage) (json.RawMessage, error) {
	names, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("fields is empty: it must have at least one field")
	}
	list := make([]object, len(names))
	for i, name := range names {
		at := place{of: fmt.Sprintf("%sfield %q: ", p.of, name), depth: p.depth + 1}
		switch v := values[name]; v[0] {
		case '{':
			if _, list[i], err = at.members(v); err == nil && list[i]["name"] != nil {
				err = at.member("name").wrong(list[i]["name"], "left out, because the field already has one")
			}
			if err != nil {
				return nil, err
			}
		case '"':
			member := "column"
			if strings.Contains(unquoted(v), "{id}") {
				member = "pattern"
			}
			list[i] = object{member: v}
		default:
			return nil, at.wrong(v, "an object, the name of a column, or a pattern with {id}")
		}
		if list[i]["name"], err = json.Marshal(name); err != nil {
			return nil, err
		}
	}
	return json.Marshal(list)
}

// picked returns a field with band_names in place of bands if these are strings, and without normalize if that is
// false.
func (p place) picked(b json.RawMessage) (json.RawMessage, error) {
	_, f, err := p.members(b)
	if err != nil {
		return nil, err
	}
	if string(f["normalize"]) == "false" {
		delete(f, "normalize")
	}
	var names []string
	// An empty list goes the same way, because no bands at all is an error of band_names.
	if f.has("bands") && !f.has("band_names") && json.Unmarshal(f["bands"], &names) == nil {
		f["band_names"] = f["bands"]
		delete(f, "bands")
	}
	return json.Marshal(f)
}

// inherited is what the fields of a spec take from its defaults.
type inherited struct {
	object
	alone  bool // the spec has no fields of its own
	method string
	stats  object
}

// inherit returns a spec whose fields have its defaults.
func (p place) inherit(b json.RawMessage) (json.RawMessage, error) {
	_, spec, err := p.members(b)
	if err != nil || !spec.has("defaults") {
		return b, err
	}
	given, err := p.check(reflect.TypeFor[fieldDefaults](), spec["defaults"])
	if err != nil {
		return nil, err
	}
	var d inherited
	if spec.has("stats") {
		if spec["stats"][0] != '{' {
			return nil, p.member("stats").wrong(spec["stats"], "an object of statistics by field")
		}
		if _, d.stats, err = p.members(spec["stats"]); err != nil {
			return nil, err
		}
	}
	if _, d.object, err = p.members(given); err != nil {
		return nil, err
	}
	fields, err := p.fields(spec["fields"])
	if err != nil {
		return nil, err
	}
	if d.alone = len(fields) == 0; d.alone {
		fields = []object{{"name": json.RawMessage(`"image"`)}}
		if !spec.has("stats") && !spec.has("sources") && !spec.has("all_fields") {
			spec["all_fields"] = json.RawMessage("true") // a catalog of pairs has fields of its own
		}
	}
	// Every field may take all of the text.
	if len(fields)*len(given) > maxSpecBytes {
		return nil, fmt.Errorf("defaults of %d bytes, for %d fields: together at most %d are allowed", len(given),
			len(fields), maxSpecBytes)
	}
	if err := d.into(fields, spec); err != nil {
		return nil, err
	}
	delete(spec, "defaults")
	if spec["fields"], err = json.Marshal(fields); err != nil {
		return nil, err
	}
	return json.Marshal(spec)
}

// fields returns the members of the fields of a spec, of which b may be nil.
func (p place) fields(b json.RawMessage) (fields []object, err error) {
	if b == nil || string(b) == "null" {
		return nil, nil
	}
	t, at := reflect.TypeFor[[]Field](), p.member("fields")
	if _, err := at.check(t, b); err != nil { // the result lacks normalize=false, which inherit needs
		return nil, err
	}
	if b, err = at.long(t, b); err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(b, &fields)
}

// into gives fields the defaults. A default that has no effect is an error.
func (d *inherited) into(fields []object, spec object) error {
	var n Normalize
	if d.has("normalize") {
		if err := json.Unmarshal(d.object["normalize"], &n); err != nil {
			return err
		}
	}
	if n.Stats == nil {
		d.method = n.Method
	}
	switch {
	case d.method != "" && !spec.has("stats"):
		return fmt.Errorf("normalize is %q: it needs stats", d.method)
	case !d.alone && (d.has("bands") || d.has("band_names") || d.has("validity")):
		return errors.New("with fields, bands and validity must be in the field they belong to")
	}
	var pixels []string // the fields that a method is for
	filled, normalized := false, false
	for _, f := range fields {
		if err := d.give(f); err != nil {
			return fmt.Errorf("field %q: %w", unquoted(f["name"]), err)
		}
		filled, normalized = filled || f.has("fill"), normalized || f.has("normalize")
		if !f.has("points") && !f.has("vector") && !slices.Contains(storedDTypes, unquoted(f["dtype"])) {
			pixels = append(pixels, unquoted(f["name"]))
		}
	}
	switch {
	case d.has("fill") && !filled:
		return fmt.Errorf(`fill is %s, but no field takes it: fields of dtype "native" and of integers are labels, `+
			"which keep their nodata unless they have a fill of their own", d.object["fill"])
	case d.method == "" || normalized || spec.has("sources"):
		return nil
	case len(pixels) == 0:
		return fmt.Errorf("normalize is %q, but no field takes it: fields of dtype \"native\" and \"int64\" are as "+
			"stored", d.method)
	}
	return fmt.Errorf("normalize is %q, but stats has %q, and none of %q", d.method,
		slices.Sorted(maps.Keys(d.stats)), pixels)
}

// storedDTypes are the dtypes without arithmetic, floatDTypes those of floats.
var (
	storedDTypes = []string{"native", "int64"}
	floatDTypes  = []string{"float32", "float16", "bfloat16"}
)

// give gives a field what it does not have of its own.
func (d *inherited) give(f object) error {
	kind := Field{Kind: unquoted(f["kind"])}
	if f.has("points") || f.has("vector") || kind.metadata() {
		return nil
	}
	own := func(name string) bool { return f.has(name) && string(f[name]) != "false" }
	if !f.has("kind") {
		switch {
		case own("layout") || own("sizes") || own("normalize") || own("fill") || own("pad"):
			f["kind"] = json.RawMessage(`"` + RasterField + `"`)
		case own("dtype"):
			f["kind"] = json.RawMessage(`"` + ArrayField + `"`)
		}
	}
	dtype := cmp.Or(unquoted(f["dtype"]), unquoted(d.object["dtype"]), "native")
	stored := slices.Contains(storedDTypes, dtype)
	normalized := own("normalize") || !f.has("normalize") && d.has("normalize")
	label := stored || !slices.Contains(floatDTypes, dtype) && !normalized
	_, known := d.stats[unquoted(f["name"])]
	for _, name := range slices.Sorted(maps.Keys(d.object)) { // fill comes before pad
		switch {
		case f.has(name):
		case name == "fill" && label && !d.alone:
			if own("pad") || !f.has("pad") && string(d.object["pad"]) == "true" {
				return fmt.Errorf("dtype is %q and pad is true: the fill of all fields is not for labels, and what is "+
					"past the edge would be class 0; give the field a fill of its own", dtype)
			}
		case name == "normalize" && (stored || d.method != "" && !known):
		default:
			f[name] = d.object[name]
		}
	}
	return nil
}
