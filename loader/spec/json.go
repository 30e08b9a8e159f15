package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ParseSpec reads the JSON form of a spec, fills in its defaults and validates it. JSON of more
// than 1 MiB, unknown members and text after the JSON value are errors. An error names the member as
// a user wrote it, its value and the rule.
func ParseSpec(b []byte) (Spec, error) {
	var s Spec
	if len(b) > maxSpecBytes {
		return s, fmt.Errorf("spec: %d bytes, at most %d", len(b), maxSpecBytes)
	}
	if err := checkJSON(b); err != nil {
		return s, fmt.Errorf("spec: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	// checkJSON sees the last of two members with one name; this refuses what is wrong in the first.
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("spec: %w", err)
	}
	if err := normalizeByStats(s.Fields, s.Sources); err != nil {
		return s, fmt.Errorf("spec: %w", err)
	}
	s = s.WithDefaults()
	return s, s.Validate()
}

// normalizeByStats puts numbers in place of the methods of fields, also of those of sources.
func normalizeByStats(fields []Field, sources []Source) error {
	for i := range fields {
		f := &fields[i]
		if f.Normalize == nil || f.Normalize.Method == "" && f.Normalize.Stats == nil {
			continue
		}
		n, err := f.Normalize.byStats(f.Bands, f.BandNames)
		if err != nil {
			return fmt.Errorf("field %q: normalize: %w", f.Name, err)
		}
		f.Normalize = n
	}
	for _, s := range sources {
		if err := normalizeByStats(s.Fields, s.Sources); err != nil {
			return fmt.Errorf("source %q: %w", s.Name, err)
		}
	}
	return nil
}

// checkJSON checks the JSON form of a spec against the types: that every member exists, and that
// every value has the type of its member. The error names the member, its value and the rule.
//
// Package encoding/json alone would name neither the value nor the field of the spec, would take
// null in a list for 0, and would cut a list that is too long for its array.
func checkJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // float64 would round integers beyond 2^53
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	// Decode stops after one value, so what follows it would be ignored.
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the JSON value")
	}
	return place{}.check(reflect.TypeFor[Spec](), v)
}

// place says where in a spec a value stands.
type place struct {
	of   string // the source and the field around it: `source "a": field "image": `
	name string // the member, "sizes.p"
}

// named maps the types that have a name of their own to what a user calls them.
var named = map[reflect.Type]string{
	reflect.TypeFor[Source](): "source", reflect.TypeFor[Field](): "field",
	reflect.TypeFor[Share](): "share", reflect.TypeFor[Range](): "range",
}

// member returns the place of a member of an object.
func (p place) member(name string) place {
	if p.name != "" {
		name = p.name + "." + name
	}
	return place{p.of, name}
}

// element returns the place of an element of a list of a type.
func (p place) element(t reflect.Type, i int, v any) place {
	kind := named[t]
	if object, ok := v.(map[string]any); ok && kind != "" {
		if name, ok := object["name"].(string); ok {
			return place{of: fmt.Sprintf("%s%s %q: ", p.of, kind, name)}
		}
		return place{of: fmt.Sprintf("%s%s %d: ", p.of, kind, i)}
	}
	if t == reflect.TypeFor[Condition]() {
		return place{of: p.of} // users give bbox, datetime and the like beside where
	}
	return place{p.of, fmt.Sprintf("%s[%d]", p.name, i)}
}

// wrong returns the error about a value that does not follow a rule.
func (p place) wrong(v any, rule string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was JSON
	text := strings.TrimSpace(b.String())
	// Enough to recognise a value, and short enough for a line.
	if r := []rune(text); len(r) > 80 {
		text = string(r[:80]) + "…"
	}
	name := p.name
	if name == "" {
		name = "it" // the spec itself, or a field of it
	}
	return fmt.Errorf("%s%s is %s: it must be %s", p.of, name, text, rule)
}

// check checks a value of JSON against a type.
func (p place) check(t reflect.Type, v any) error {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return nil // its own reader checks it
	case reflect.TypeFor[Float]():
		if slices.Contains([]any{"nan", "inf", "-inf"}, v) || numberRule(t, v) == "" {
			return nil
		}
		return p.wrong(v, `a number, "nan", "inf" or "-inf"`)
	case reflect.TypeFor[Grid]():
		if v == firstGrid || numberRule(t, v) == "" {
			return nil
		}
		return p.wrong(v, `"first" or a number of metres`)
	case reflect.TypeFor[Sampler]():
		p.name = "" // users say per_asset, not sampler.per_asset
	}
	rule := ""
	switch t.Kind() {
	case reflect.Pointer:
		return p.check(t.Elem(), v)
	case reflect.Struct:
		if object, ok := v.(map[string]any); ok {
			return p.object(t, object)
		}
		rule = "an object"
	case reflect.Map:
		if object, ok := v.(map[string]any); ok {
			return p.values(t.Elem(), object)
		}
		rule = "an object of values by name"
	case reflect.Slice:
		if list, ok := v.([]any); ok {
			return p.list(t.Elem(), list)
		}
		rule = "a list"
	case reflect.Array:
		if list, ok := v.([]any); ok && len(list) == t.Len() {
			return p.list(t.Elem(), list)
		}
		rule = fmt.Sprintf("a list of %d", t.Len())
	case reflect.String:
		if _, ok := v.(string); ok {
			return nil
		}
		rule = "a string"
	case reflect.Bool:
		if _, ok := v.(bool); ok {
			return nil
		}
		rule = "true or false"
	default:
		if rule = numberRule(t, v); rule == "" {
			return nil
		}
	}
	return p.wrong(v, rule)
}

// numberRule returns the rule that a value breaks as a number of a type, or "".
func numberRule(t reflect.Type, v any) string {
	n, _ := v.(json.Number)
	var err error
	switch t.Kind() {
	case reflect.Float64:
		if _, err = strconv.ParseFloat(string(n), 64); err != nil {
			return "a finite number"
		}
	case reflect.Uint64:
		if _, err = strconv.ParseUint(string(n), 10, 64); err != nil {
			return "a whole number from 0 to 2^64-1"
		}
	default:
		if _, err = strconv.ParseInt(string(n), 10, t.Bits()); err != nil {
			if errors.Is(err, strconv.ErrRange) {
				return fmt.Sprintf("a whole number of %d bits", t.Bits())
			}
			return "a whole number"
		}
	}
	return ""
}

func (p place) list(t reflect.Type, list []any) error {
	for i, v := range list {
		if err := p.element(t, i, v).check(t, v); err != nil {
			return err
		}
	}
	return nil
}

func (p place) values(t reflect.Type, object map[string]any) error {
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if err := p.member(k).check(t, object[k]); err != nil {
			return err
		}
	}
	return nil
}

// object checks the members of a struct in the order of its fields.
func (p place) object(t reflect.Type, object map[string]any) error {
	fields := reflect.VisibleFields(t)
	var names []string
	for _, f := range fields {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // an embedded struct, whose fields are visible
		}
		names = append(names, name)
		// encoding/json takes null of a member for one that is not given.
		if v := object[name]; v != nil {
			if err := p.member(name).check(f.Type, v); err != nil {
				return err
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(names, k) {
			slices.Sort(names)
			return fmt.Errorf("%sno member %q; there are %s", p.of, p.member(k).name, strings.Join(names, ", "))
		}
	}
	return nil
}
