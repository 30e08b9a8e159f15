package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// ParseSpec reads the JSON form of a spec, fills in its defaults and validates it. JSON of more
// than 1 MiB, unknown members and text after the JSON value are errors. An error names the member as
// a user wrote it, its value and the rule.
func ParseSpec(b []byte) (Spec, error) { return parseChecked(b, false) }

// ParseMeasured is ParseSpec for work on pixels as they are stored, such as the statistics that normalisation is made
// of: the fields have no normalisation. All other members count as they do in a run, since they say which
// rasters and rows there are.
func ParseMeasured(b []byte) (Spec, error) { return parseChecked(b, true) }

// parseChecked reads the JSON form of a spec, and checks it. With stored it leaves out normalisation.
func parseChecked(b []byte, stored bool) (Spec, error) {
	if len(b) > maxSpecBytes {
		return Spec{}, fmt.Errorf("spec: %d bytes, at most %d", len(b), maxSpecBytes)
	}
	parsed, err := parse(b, stored)
	if err != nil {
		return Spec{}, within("spec", err)
	}
	parsed = parsed.WithDefaults()
	return parsed, parsed.Validate()
}

// parse reads the JSON form of a spec, without defaults. With stored it leaves out normalisation.
func parse(b []byte, stored bool) (Spec, error) {
	s := jsonForm{jsonMembers: map[any]object{}}
	if err := (specPlace{jsonMembers: s.jsonMembers}).readText(b, &s); err != nil {
		return Spec{}, err
	}
	if err := s.inherit(stored); err != nil {
		return Spec{}, err
	}
	r := reports{byField: s.Stats, budget: maxStatsBytes}
	if err := r.look(s.Fields, s.Sources); err != nil {
		return Spec{}, err
	}
	if s.Stats != nil && !r.used {
		return Spec{}, errors.New("stats are given, and no field is normalised by them: give normalize, such as " +
			`"mean_std"`)
	}
	return s.Spec, s.Spec.normalize()
}

// ParseNormalize reads the normalisation of a field as it stands in the JSON form of a spec. WithDefaults completes it.
func ParseNormalize(b []byte) (*Normalize, error) {
	n := &Normalize{}
	return n, specPlace{name: "normalize"}.readText(b, n)
}

// Read reads JSON into a struct, by its JSON tags, as strictly as a spec is read: see specPlace.read.
func Read(b []byte, into any) error { return specPlace{}.readText(b, into) }

// readText reads JSON, also with white space, into what a pointer leads to.
func (p specPlace) readText(b []byte, into any) error {
	var text bytes.Buffer
	if err := json.Compact(&text, b); err != nil {
		if p.name == "" {
			return err
		}
		return within(p.name, err)
	}
	return p.read(text.Bytes(), reflect.ValueOf(into).Elem())
}

// specPlace says where in a spec a value stands.
type specPlace struct {
	of    string // the source and the field around it: `source "a": field "image": `
	name  string // the member, "sizes.p"
	depth int    // how many lists and objects are around it
	// given has the members that JSON gives fields and the spec, by pointers to these. A nil one is not filled.
	jsonMembers map[any]object
}

// maxDepth bounds specPlace.depth. Every level reads the text below it again, so 64 of them read at most 64 MiB. The
// deepest spec has 8 mixtures of 2 levels and 8 groups of conditions of 4.
const maxDepth = 64

// named maps Go types to their words in errors.
var named = map[reflect.Type]string{
	reflect.TypeFor[Source](): "source", reflect.TypeFor[Field](): "field",
	reflect.TypeFor[Share](): "share", reflect.TypeFor[Range](): "range",
}

// member returns the place of a member of an object.
func (p specPlace) member(name string) specPlace {
	if name = brief(name); p.name != "" {
		name = p.name + "." + name
	}
	p.name, p.depth = name, p.depth+1
	return p
}

// element returns the place of an element of a list of a type.
func (p specPlace) element(t reflect.Type, i int, b json.RawMessage) specPlace {
	kind := named[t]
	p.depth++
	if b[0] != '{' || kind == "" && t != reflect.TypeFor[Condition]() {
		p.name = fmt.Sprintf("%s[%d]", p.name, i)
		return p
	}
	p.name = "" // of conditions, too: users give bbox, datetime and the like beside where
	var object struct {
		Name *string `json:"name"`
	}
	switch {
	case kind == "":
	case json.Unmarshal(b, &object) == nil && object.Name != nil:
		p.of += fmt.Sprintf("%s %q: ", kind, brief(*object.Name))
	default:
		p.of += fmt.Sprintf("%s %d: ", kind, i)
	}
	return p
}

// wrong returns the error about a value that does not follow a rule.
func (p specPlace) wrong(b json.RawMessage, rule string) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	_ = d.Decode(&v)             // it is JSON
	name := cmp.Or(p.name, "it") // the spec itself, or a field of it
	return &fault.MemberError{Where: p.of, Member: name, Value: json.RawMessage(brief(string(textOf(v)))),
		Rule: "it must be " + rule}
}

// leaves are the rules for values that are neither lists nor objects.
var leaves = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Float64: "a finite number",
	reflect.Uint64: "a whole number from 0 to 2^64-1", reflect.Int: "a whole number", reflect.Int64: "a whole number",
}

// read sets v to a value of JSON without white space, in a short form or the long one. It refuses unknown members and
// values of another type than v has. The error names the member, its value and the rule.
//
// Package encoding/json alone would name neither the value nor the field of the spec, would take null in a list for 0,
// and would cut a list that is too long for its array.
func (p specPlace) read(b json.RawMessage, v reflect.Value) error {
	if p.depth > maxDepth {
		return fmt.Errorf("%s%s is %d lists and objects deep: at most %d are allowed", p.of, p.name, p.depth, maxDepth)
	}
	pointer := v.Addr().Interface()
	b, err := p.long(b, pointer)
	if err != nil {
		return err
	}
	if _, ok := pointer.(*Sampler); ok {
		p.name = "" // users say per_asset, not sampler.per_asset
	}
	if reader, ok := pointer.(json.Unmarshaler); ok {
		if err := reader.UnmarshalJSON(b); err != nil {
			return p.wrong(b, err.Error())
		}
		return nil
	}
	rule := leaves[v.Kind()]
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return p.read(b, v.Elem())
	case reflect.Struct:
		if b[0] == '{' {
			_, values, err := p.members(b)
			if err != nil {
				return err
			}
			return p.fill(values, v)
		}
		rule = "an object"
	case reflect.Map:
		if b[0] == '{' {
			return p.values(b, v)
		}
		rule = "an object of values by name"
	case reflect.Slice:
		if list, ok := elements(b); ok {
			return p.list(list, v)
		}
		rule = "a list"
	case reflect.Array:
		if list, ok := elements(b); ok && len(list) == v.Len() {
			return p.list(list, v)
		}
		if rule = fmt.Sprintf("a list of %d", v.Len()); leaves[v.Type().Elem().Kind()] != "" {
			rule += " numbers"
		}
	default:
		if b[0] != 'n' && json.Unmarshal(b, pointer) == nil {
			return nil
		}
		if _, err := strconv.ParseInt(string(b), 10, 64); v.CanInt() && errors.Is(err, strconv.ErrRange) {
			rule += " of 64 bits"
		}
	}
	return p.wrong(b, rule)
}

// elements returns the elements of a list, or false if b is not a list.
func elements(b json.RawMessage) (list []json.RawMessage, ok bool) {
	ok = b[0] == '[' && json.Unmarshal(b, &list) == nil
	return list, ok
}

// maxElements bounds lists of structs before their elements are read, because an element such as {} costs hundreds of
// times its text. The longest lists hold sources and shares.
const maxElements = max(maxSources, maxShares)

// list reads the elements of a list.
func (p specPlace) list(list []json.RawMessage, v reflect.Value) error {
	t := v.Type().Elem()
	if t.Kind() == reflect.Struct && len(list) > maxElements {
		return fmt.Errorf("%s%s has %d elements: it must have at most %d", p.of, p.name, len(list), maxElements)
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	}
	for i, b := range list {
		if err := p.element(t, i, b).read(b, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// object holds the members of an object of JSON.
type object map[string]json.RawMessage

// on reports whether a member is given, and neither false nor null.
func (o object) on(name string) bool {
	return o[name] != nil && string(o[name]) != "false" && string(o[name]) != "null"
}

// textOf returns JSON that encoding/json can write, with each < as it is and not as six bytes.
func textOf(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(out.Bytes())
}

// unquoted returns a string of JSON, or "" if b is nil or none.
func unquoted(b json.RawMessage) (s string) {
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// members returns the members of an object, and their names in their order. Two of one name are an error.
func (p specPlace) members(b json.RawMessage) (names []string, values object, err error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	values = object{}
	for _, err = decoder.Token(); err == nil && decoder.More(); {
		token, _ := decoder.Token()
		name, _ := token.(string)
		if _, ok := values[name]; ok {
			return nil, nil, fmt.Errorf("%s%s is given twice", p.of, p.member(name).name)
		}
		var v json.RawMessage
		if err = decoder.Decode(&v); err == nil {
			names, values[name] = append(names, name), v
		}
	}
	return names, values, err
}

// values reads the values of a map.
func (p specPlace) values(b json.RawMessage, v reflect.Value) error {
	names, values, err := p.members(b)
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range names {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := p.member(name).read(values[name], value); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), value)
	}
	return err
}

// fill reads the members of an object into a struct, in the order of its fields.
func (p specPlace) fill(values object, v reflect.Value) error {
	switch target := v.Addr().Interface().(type) {
	case *Field:
		if err := p.picked(values); err != nil {
			return err
		}
		p.keep(target, values)
	case *jsonForm:
		p.keep(target, values)
	}
	known := membersOf(v.Type())
	for _, m := range known {
		switch raw := values[m.name]; {
		case raw == nil, string(raw) == "false" && m.of == reflect.TypeFor[*Normalize]():
		case string(raw) == "null" && m.of != reflect.TypeFor[json.RawMessage]():
			delete(values, m.name) // as encoding/json takes it
		default:
			if err := p.member(m.name).read(raw, v.FieldByIndex(m.index)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(known, func(m structMember) bool { return m.name == name }) {
			names := make([]string, len(known))
			for i, m := range known {
				names[i] = m.name
			}
			slices.Sort(names)
			return fmt.Errorf("%sno member %q; there are %s", p.of, p.member(name).name, strings.Join(names, ", "))
		}
	}
	return nil
}

// keep notes the members of a field or of the spec.
func (p specPlace) keep(of any, values object) {
	if p.jsonMembers != nil {
		p.jsonMembers[of] = values
	}
}
