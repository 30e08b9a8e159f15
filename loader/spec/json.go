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
	"sync"

	"github.com/chaski-eo/chaski/fault"
)

// ParseSpec reads the JSON form of a spec, fills in its defaults and validates it. JSON of more
// than 1 MiB, unknown members and text after the JSON value are errors. An error names the member as
// a user wrote it, its value and the rule.
func ParseSpec(b []byte) (Spec, error) { return parseChecked(b, false) }

// ParseMeasured is ParseSpec for what goes over pixels as they are stored, such as statistics, of which normalisation
// is made: the fields have no normalisation. All other members count as they do in a run, since they say which
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
	var text bytes.Buffer
	if err := json.Compact(&text, b); err != nil { // place expects JSON without white space
		return Spec{}, err
	}
	long, err := place{}.check(reflect.TypeFor[form](), text.Bytes())
	if err != nil {
		return Spec{}, err
	}
	if stored {
		if long, err = withoutNormalize(long); err != nil {
			return Spec{}, err
		}
	}
	if long, err = inherit(long); err != nil {
		return Spec{}, err
	}
	var s form
	if err := json.Unmarshal(long, &s); err != nil {
		return Spec{}, err
	}
	r := reports{s.Stats, maxStatsBytes}
	if err := r.look(s.Fields, s.Sources); err != nil {
		return Spec{}, err
	}
	return s.Spec, s.Spec.normalize()
}

// withoutNormalize returns a checked spec whose fields are not normalised. A field that is stays a raster.
func withoutNormalize(b json.RawMessage) (json.RawMessage, error) {
	var spec object
	var given struct {
		Defaults object
		Fields   []object
	}
	if err := errors.Join(json.Unmarshal(b, &spec), json.Unmarshal(b, &given)); err != nil {
		return nil, err
	}
	delete(spec, "stats")
	if given.Defaults != nil {
		delete(given.Defaults, "normalize")
		spec["defaults"] = given.Defaults.text()
	}
	fields := make([]json.RawMessage, len(given.Fields))
	for i, field := range given.Fields {
		if field.on("normalize") && field["kind"] == nil {
			field["kind"] = json.RawMessage(`"` + RasterField + `"`)
		}
		delete(field, "normalize")
		fields[i] = field.text()
	}
	if given.Fields != nil {
		spec["fields"] = listText(fields)
	}
	return spec.text(), nil
}

// ParseNormalize reads the normalisation of a field as it stands in the JSON form of a spec. WithDefaults completes it.
func ParseNormalize(b []byte) (*Normalize, error) {
	n := &Normalize{}
	return n, place{name: "normalize"}.read(b, n)
}

// Read reads JSON into a struct, by its JSON tags, as strictly as a spec is read: see place.check.
func Read(b []byte, into any) error { return place{}.read(b, into) }

// read reads JSON that stands at a place.
func (p place) read(b []byte, into any) error {
	var text bytes.Buffer
	if err := json.Compact(&text, b); err != nil {
		return within(cmp.Or(p.name, "it"), err)
	}
	long, err := p.check(reflect.TypeOf(into).Elem(), text.Bytes())
	if err != nil {
		return err
	}
	return json.Unmarshal(long, into)
}

// place says where in a spec a value stands.
type place struct {
	of    string // the source and the field around it: `source "a": field "image": `
	name  string // the member, "sizes.p"
	depth int    // how many lists and objects are around it
}

// maxDepth bounds place.depth. Every level reads the text below it again, so that 64 of them read at most 64 MiB. The
// deepest spec has 8 mixtures of 2 levels and 8 groups of conditions of 4.
const maxDepth = 64

// named maps Go types to their words in errors.
var named = map[reflect.Type]string{
	reflect.TypeFor[Source](): "source", reflect.TypeFor[Field](): "field",
	reflect.TypeFor[Share](): "share", reflect.TypeFor[Range](): "range",
}

// member returns the place of a member of an object.
func (p place) member(name string) place {
	name = brief(name)
	if p.name != "" {
		name = p.name + "." + name
	}
	return place{p.of, name, p.depth + 1}
}

// element returns the place of an element of a list of a type.
func (p place) element(t reflect.Type, i int, b json.RawMessage) place {
	kind, depth := named[t], p.depth+1
	if kind != "" && b[0] == '{' {
		var object struct {
			Name *string `json:"name"`
		}
		if json.Unmarshal(b, &object) == nil && object.Name != nil {
			return place{fmt.Sprintf("%s%s %q: ", p.of, kind, brief(*object.Name)), "", depth}
		}
		return place{fmt.Sprintf("%s%s %d: ", p.of, kind, i), "", depth}
	}
	if t == reflect.TypeFor[Condition]() && b[0] == '{' {
		return place{p.of, "", depth} // users give bbox, datetime and the like beside where
	}
	return place{p.of, fmt.Sprintf("%s[%d]", p.name, i), depth}
}

// wrong returns the error about a value that does not follow a rule.
func (p place) wrong(b json.RawMessage, rule string) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	_ = d.Decode(&v) // it is JSON
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	text := brief(strings.TrimSpace(out.String()))
	name := p.name
	name = cmp.Or(name, "it") // the spec itself, or a field of it
	return &fault.MemberError{Where: p.of, Member: name, Value: json.RawMessage(text), Rule: "it must be " + rule}
}

// check checks JSON without white space against a type: that every member exists, and that every value has the type of
// its member. It returns the JSON with long forms in place of short ones. The error names the member, its value and the
// rule.
//
// Package encoding/json alone would name neither the value nor the field of the spec, would take null in a list for 0,
// and would cut a list that is too long for its array. Values stay as they were written, because the spec hash has the
// operands of conditions so.
func (p place) check(t reflect.Type, text json.RawMessage) (json.RawMessage, error) {
	if p.depth > maxDepth {
		return nil, fmt.Errorf("%s%s is %d lists and objects deep: at most %d are allowed", p.of, p.name, p.depth,
			maxDepth)
	}
	text, err := p.long(t, text)
	if err != nil {
		return nil, err
	}
	rule := ""
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return text, nil // its own reader checks it
	case reflect.TypeFor[Float]():
		rule = numberRule(t, text)
		if rule == "" || slices.Contains([]string{`"nan"`, `"inf"`, `"-inf"`}, string(text)) {
			return text, nil
		}
		return nil, p.wrong(text, `a number, "nan", "inf" or "-inf"`)
	case reflect.TypeFor[Grid]():
		rule = numberRule(t, text)
		if rule == "" || string(text) == `"`+firstGrid+`"` {
			return text, nil
		}
		return nil, p.wrong(text, `"first" or a number of metres`)
	case reflect.TypeFor[fieldDefaults]():
		return p.defaults(text)
	case reflect.TypeFor[Sampler]():
		p.name = "" // users say per_asset, not sampler.per_asset
	}
	if v, ok := reflect.New(t).Interface().(json.Unmarshaler); ok && (t.Kind() != reflect.Struct || text[0] != '{') {
		if err := v.UnmarshalJSON(text); err != nil {
			return nil, p.wrong(text, err.Error())
		}
		return text, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.check(t.Elem(), text)
	case reflect.Struct:
		if text[0] == '{' {
			return p.object(t, text)
		}
		rule = "an object"
	case reflect.Map:
		if text[0] == '{' {
			return p.values(t.Elem(), text)
		}
		rule = "an object of values by name"
	case reflect.Slice, reflect.Array:
		if list, ok := elements(text); ok && (t.Kind() == reflect.Slice || len(list) == t.Len()) {
			return p.list(t.Elem(), list)
		}
		rule = "a list"
		if t.Kind() == reflect.Array {
			rule = fmt.Sprintf("a list of %d", t.Len())
			if k := t.Elem().Kind(); k == reflect.Float64 || k == reflect.Int {
				rule += " numbers"
			}
		}
	case reflect.String:
		if text[0] != '"' {
			rule = "a string"
		}
	case reflect.Bool:
		if text[0] != 't' && text[0] != 'f' {
			rule = "true or false"
		}
	default:
		rule = numberRule(t, text)
	}
	if rule != "" {
		return nil, p.wrong(text, rule)
	}
	return text, nil
}

// numberRule returns the rule that a value breaks as a number of a type, or "".
func numberRule(t reflect.Type, b json.RawMessage) string {
	number := string(b) // no JSON value but a number parses as a number
	var err error
	switch t.Kind() {
	case reflect.Float64:
		if _, err = strconv.ParseFloat(number, 64); err != nil {
			return "a finite number"
		}
	case reflect.Uint64:
		if _, err = strconv.ParseUint(number, 10, 64); err != nil {
			return "a whole number from 0 to 2^64-1"
		}
	default:
		if _, err = strconv.ParseInt(number, 10, t.Bits()); err != nil {
			if errors.Is(err, strconv.ErrRange) {
				return fmt.Sprintf("a whole number of %d bits", t.Bits())
			}
			return "a whole number"
		}
	}
	return ""
}

// elements returns the elements of a list, or false if b is not a list.
func elements(b json.RawMessage) (list []json.RawMessage, ok bool) {
	ok = b[0] == '[' && json.Unmarshal(b, &list) == nil
	return list, ok
}

// maxElements bounds lists of structs before their elements are read, because an element such as {} costs hundreds of
// times its text. The longest lists hold sources and shares.
const maxElements = max(maxSources, maxShares)

// list checks the elements of a list.
func (p place) list(t reflect.Type, list []json.RawMessage) (_ json.RawMessage, err error) {
	if t.Kind() == reflect.Struct && len(list) > maxElements {
		return nil, fmt.Errorf("%s%s has %d elements: it must have at most %d", p.of, p.name, len(list), maxElements)
	}
	for i, v := range list {
		if list[i], err = p.element(t, i, v).check(t, v); err != nil {
			return nil, err
		}
	}
	return listText(list), nil
}

// listText returns the JSON of a list. As object.text, it takes its elements as they are: json.Marshal would check
// them, and escape each < as six bytes, on every level around them.
func listText(list []json.RawMessage) json.RawMessage {
	size := 2 // the brackets, and a comma for each element
	for _, v := range list {
		size += len(v) + 1
	}
	raw := append(make(json.RawMessage, 0, size), '[')
	for i, v := range list {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, v...)
	}
	return append(raw, ']')
}

// object holds the members of an object of JSON.
type object map[string]json.RawMessage

// text returns the JSON of the object.
func (o object) text() json.RawMessage {
	members := make([]json.RawMessage, 0, len(o))
	for _, name := range slices.Sorted(maps.Keys(o)) {
		members = append(members, slices.Concat(textOf(name), json.RawMessage(":"), o[name]))
	}
	b := listText(members)
	b[0], b[len(b)-1] = '{', '}'
	return b
}

// textOf returns the JSON of a string.
func textOf(text string) json.RawMessage {
	b, _ := json.Marshal(text) // a string has no error
	return b
}

// members returns the members of an object, and their names in their order. Two of one name are an error.
func (p place) members(b json.RawMessage) (names []string, values object, err error) {
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

// values checks the values of a map.
func (p place) values(t reflect.Type, b json.RawMessage) (json.RawMessage, error) {
	names, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	for _, k := range names {
		if values[k], err = p.member(k).check(t, values[k]); err != nil {
			return nil, err
		}
	}
	return values.text(), nil
}

// member is a member of an object that stands for a struct.
type member struct {
	name string
	of   reflect.Type
}

// structs holds the members of structs by their types. A spec may have 300,000 empty objects, and reflect would take
// seconds to find the members for each of them.
var structs sync.Map

// membersOf returns the members of a struct in the order of its fields.
func membersOf(t reflect.Type) (all []member) {
	if known, ok := structs.Load(t); ok {
		return known.([]member)
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" { // an embedded struct has no name, and its fields are visible
			all = append(all, member{name, field.Type})
		}
	}
	structs.Store(t, all)
	return all
}

// object checks the members of a struct in the order of its fields.
func (p place) object(t reflect.Type, b json.RawMessage) (json.RawMessage, error) {
	_, values, err := p.members(b)
	if err != nil {
		return nil, err
	}
	known := membersOf(t)
	for _, member := range known {
		switch raw := values[member.name]; {
		case raw == nil:
		case string(raw) == "null" && member.of != reflect.TypeFor[json.RawMessage]():
			delete(values, member.name) // as encoding/json takes it
		case string(raw) == "false" && member.of == reflect.TypeFor[*Normalize]():
			values[member.name] = json.RawMessage("null") // a field with it takes no default
		default:
			if values[member.name], err = p.member(member.name).check(member.of, raw); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(known, func(m member) bool { return m.name == name }) {
			names := make([]string, len(known))
			for i, m := range known {
				names[i] = m.name
			}
			slices.Sort(names)
			return nil, fmt.Errorf("%sno member %q; there are %s", p.of, p.member(name).name, strings.Join(names, ", "))
		}
	}
	return values.text(), nil
}
