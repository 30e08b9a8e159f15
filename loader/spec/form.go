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
)

// jsonForm is the JSON form of a spec. ParseSpec puts long forms in place of short ones, so Spec, the hash and the
// printed spec have long forms only.
type jsonForm struct {
	Spec
	// Defaults are settings for raster fields that do not set them; metadata columns and shapes take none. With
	// defaults, a field that sets a layout, sizes, fill, nodata, pad, clip, physical or normalize is a raster, and one
	// with a dtype is a raster or numbers. Bands and validity are for the only field, "image" of a spec without
	// `fields`. Of several fields, labels do not take the fill, which would be a class there: fields of dtype native
	// and int64, and of uint8 if they are not normalised. Clip is for dtype uint8. Normalize is for other dtypes than
	// native and int64 and, if it is the name of a method, for fields that `stats` has. A fill or method that no field
	// takes is an error.
	Defaults object `json:"defaults,omitempty"`
	// Stats are the statistics of fields by their names, for fields whose `normalize` is the name of a method: the
	// member `fields` of the JSON of chaski stats. Histograms may be left out.
	Stats map[string]json.RawMessage `json:"stats,omitempty"`

	jsonMembers map[any]object // the members that JSON gives fields and the spec, by pointers to these
	alone       bool           // the spec has no fields, and Fields is the default
	method      string         // the normalisation of Defaults, by Stats
}

// withoutNormalize removes normalisation. A field that has one stays a raster.
func (s *jsonForm) withoutNormalize() {
	s.Stats = nil
	delete(s.Defaults, "normalize")
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.Normalize != nil {
			f.Kind = cmp.Or(f.Kind, RasterField)
		}
		f.Normalize = nil
		delete(s.jsonMembers[f], "normalize")
	}
}

// defaults reads the defaults of fields.
func (s *jsonForm) defaults() (all Field, err error) {
	known := slices.Sorted(slices.Values(withRole("default")))
	for _, name := range slices.Sorted(maps.Keys(s.Defaults)) {
		if !slices.Contains(known, name) {
			return all, fmt.Errorf("defaults has no member %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	// Users of Python say pad, not defaults.pad: the place is empty.
	return all, specPlace{}.fill(s.Defaults, reflect.ValueOf(&all).Elem())
}

// inherit gives the fields the defaults of the spec. With stored no field is normalised.
func (s *jsonForm) inherit(stored bool) error {
	defaults, err := s.defaults()
	if stored {
		s.withoutNormalize()
		defaults.Normalize = nil
	}
	if err != nil || s.Defaults == nil {
		return err
	}
	if s.alone = len(s.Fields) == 0; s.alone {
		s.Fields = []Field{{Name: "image"}}
		s.jsonMembers[&s.Fields[0]] = object{}
		if s.Stats == nil && s.Sources == nil && s.jsonMembers[s]["all_fields"] == nil {
			s.AllFields = true // a catalog of pairs defines its fields
		}
	}
	size := len(textOf(s.Defaults))
	switch n := cmp.Or(defaults.Normalize, &Normalize{}); {
	case size*len(s.Fields) > maxSpecBytes: // each may take all of the text
		return fmt.Errorf("defaults of %d bytes, for %d fields: together at most %d are allowed", size,
			len(s.Fields), maxSpecBytes)
	case len(s.Fields) > 1 && slices.ContainsFunc([]string{"bands", "band_names", "validity"}, s.Defaults.on):
		return errors.New("with several fields, bands and validity must be in the field they belong to")
	case n.Method != "" && n.Stats == nil && s.Stats == nil:
		return wrong("normalize", n.Method, "it needs stats, the result of chaski stats")
	case n.Stats == nil:
		s.method = n.Method
	}
	for i := range s.Fields {
		if err := s.give(&s.Fields[i]); err != nil {
			return within(fmt.Sprintf("field %q", s.Fields[i].Name), err)
		}
	}
	return s.used()
}

// storedDTypes are the dtypes without arithmetic.
var storedDTypes = []string{"native", "int64"}

// give adds the defaults that a field does not set.
func (s *jsonForm) give(f *Field) error {
	members := s.jsonMembers[f]
	switch {
	case f.Vector != nil || f.Traits().Metadata || f.Classes != nil || f.Layout == RowLayout:
		return nil
	case members["kind"] != nil || f.Kind != "":
	case slices.ContainsFunc(withRole("makes"), members.on):
		f.Kind = RasterField
	case members["dtype"] != nil:
		f.Kind = ArrayField
	}
	dtype := cmp.Or(f.DType, unquoted(s.Defaults["dtype"]), "native")
	stored := slices.Contains(storedDTypes, dtype)
	normalized := members.on("normalize") || members["normalize"] == nil && s.Defaults.on("normalize")
	label := stored || !slices.Contains(floatDTypes, dtype) && !normalized
	taken := object{}
	for name, raw := range s.Defaults {
		switch {
		case members[name] != nil:
		case name == "fill" && label && !s.alone:
			if members.on("pad") || members["pad"] == nil && s.Defaults.on("pad") {
				return fmt.Errorf("dtype is %q and pad is true: the fill of all fields is not for labels, and what is "+
					"past the edge would be class 0; give the field a fill of its own", dtype)
			}
		case name == "by_position" && (members["bands"] != nil || members["band_names"] != nil):
		case name == "clip" && dtype != "uint8":
		case name == "normalize" && (stored || s.method != "" && s.Stats[f.Name] == nil):
		default:
			taken[name] = raw
		}
	}
	maps.Copy(members, taken)
	return specPlace{}.fill(taken, reflect.ValueOf(f).Elem())
}

// used returns an error about a fill, a clip or a method that no field takes.
func (s *jsonForm) used() error {
	var pixels []string // the fields that a method is for
	filled, normalized := s.Defaults["fill"] == nil, s.method == "" || s.Sources != nil
	clipped := !s.Defaults.on("clip")
	for i := range s.Fields {
		f := &s.Fields[i]
		members := s.jsonMembers[f]
		filled, normalized = filled || members["fill"] != nil, normalized || members["normalize"] != nil
		clipped = clipped || members["clip"] != nil
		if f.Vector == nil && !slices.Contains(storedDTypes, f.DType) {
			pixels = append(pixels, f.Name)
		}
	}
	switch {
	case !filled:
		return fmt.Errorf(`fill is %s, but no field takes it: fields of dtype "native" and of integers are labels, `+
			"which keep their nodata unless they have a fill of their own", s.Defaults["fill"])
	case !clipped:
		return errors.New(`clip is true, but no field takes it: it is for fields of dtype "uint8"`)
	case normalized:
		return nil
	case len(pixels) == 0:
		return fmt.Errorf("normalize is %q, but no field takes it: fields of dtype \"native\" and \"int64\" are as "+
			"stored", s.method)
	}
	return fmt.Errorf("normalize is %q, but stats has %q, and none of %q", s.method,
		slices.Sorted(maps.Keys(s.Stats)), pixels)
}
