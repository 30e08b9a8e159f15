package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

var updateSchema = flag.Bool("update-schema", false, "write spec.schema.json")

// enums lists the allowed words of members, by type and member.
var enums = map[string][]string{
	"Spec.bad_samples":     BadPolicies,
	"Spec.last":            Lasts,
	"Spec.augment":         Augments,
	"Field.resample":       {"nearest", "bilinear", "antialias"},
	"GeoWindows.mosaic":    mosaics,
	"RowWindows.fit":       fits,
	"GeoWindows.overviews": {AutoOverviews, AllOverviews, NoOverviews},
	"Mixture.until":        {UntilShortest, UntilLongest, UntilLength},
	"Strata.until":         {UntilShortest, UntilLongest, UntilLength},
	"Mixture.batches":      {OneSource},
	"Subset.missing":       {MissingError, MissingDrop},
	"Split.by":             {"hash", "column", "date", "cell", "given", ByPlace},
	"Normalize.method":     {stats.MeanStd, stats.MinMax, stats.Percentile},
	"Vector.kind":          vectorKinds,
	"Vector.missing":       {MissingError, MissingEmpty},
	"Vector.dtype":         vectorDTypes,
	"Condition.op":         {"==", "!=", "<", "<=", ">", ">=", "in"},
}

// wordsOf returns the allowed words of a member.
func wordsOf(key string) []string {
	switch key {
	case "Sampler.kind":
		return SamplerKinds()
	case "Field.kind":
		return fieldKindNames()
	}
	return enums[key]
}

// texts lists what members of type Text may be beside strings.
var texts = map[string]string{
	"GeoWindows.crs": "integer", "GeoWindows.overviews": "boolean",
	"Mixture.until": "integer", "Strata.until": "integer",
}

// filledIn lists members that an engine writes and no user sets.
var filledIn = map[string]bool{"Source.count": true, "Share.parts": true}

// notRequired lists members that every written spec has, but that a user may leave out: a mixture
// has sources in place of a source, without fields there is one, fields by name have no other name, and scale and
// offset have defaults or come of a method.
var notRequired = map[string]bool{
	"Spec.source": true, "Spec.fields": true, "Field.name": true, "Normalize.scale": true, "Normalize.offset": true,
}

// short returns the schemas of the short forms of a type, which specPlace.long and the readers of types take.
func (g generator) short(t reflect.Type) []any {
	switch t {
	case reflect.TypeFor[[]Field]():
		field := map[string]any{"anyOf": []any{g.of(t.Elem()), map[string]any{"type": "string"}}}
		return []any{map[string]any{"type": "object", "additionalProperties": field, "minProperties": 1}}
	case reflect.TypeFor[[][]Float]():
		value := g.of(t.Elem().Elem())
		return []any{map[string]any{"type": "array", "items": value}, value}
	case reflect.TypeFor[Values]():
		return []any{map[string]any{"type": "number"}}
	case reflect.TypeFor[Names]():
		return []any{map[string]any{"type": "string"}}
	case reflect.TypeFor[*Normalize]():
		return []any{map[string]any{"enum": []any{stats.MeanStd, stats.MinMax, stats.Percentile, false}}}
	case reflect.TypeFor[[]int](): // of bands
		return []any{g.of(reflect.TypeFor[[]string]()), map[string]any{"const": "position"}}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	integer, text := map[string]any{"type": "integer"}, map[string]any{"type": "string"}
	byName := func(of map[string]any) []any {
		return []any{map[string]any{"type": "object", "additionalProperties": of}}
	}
	switch t {
	case reflect.TypeFor[Sampler]():
		return []any{integer, map[string]any{"type": "array", "items": integer, "minItems": 2, "maxItems": 2}}
	case reflect.TypeFor[Pair]():
		return []any{integer}
	case reflect.TypeFor[GeoJSON]():
		return []any{map[string]any{"type": "object"}}
	case reflect.TypeFor[EPSG](), reflect.TypeFor[[]Condition](), reflect.TypeFor[Split](), reflect.TypeFor[Strata]():
		return []any{text}
	case reflect.TypeFor[[]Share]():
		return byName(map[string]any{"type": "number"})
	case reflect.TypeFor[[]Range]():
		return byName(list(map[string]any{}, 2))
	case reflect.TypeFor[Timestamp]():
		return []any{list(text, 2), integer, text}
	}
	return nil
}

// list returns the schema of a list of n.
func list(items map[string]any, n int) map[string]any {
	return map[string]any{"type": "array", "items": items, "minItems": n, "maxItems": n}
}

// generator makes the schema of the types below Spec.
type generator struct {
	t        *testing.T
	docs     map[string]string // by type, and type.Field
	defaults map[string]any    // by type and member
	defs     map[string]any
}

// schemaOf returns the schema of a spec, with the comments of types.
func schemaOf(t *testing.T, docs map[string]string) map[string]any {
	g := generator{t: t, docs: docs, defaults: defaults(t), defs: map[string]any{}}
	root := g.object(reflect.TypeFor[jsonForm]())
	root["description"] = g.docs["Spec"]
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "chaski spec"
	root["$defs"] = g.defs
	return root
}

func TestSchema(t *testing.T) {
	docs := comments(t)
	root := schemaOf(t, docs)
	for name := range enums {
		if _, ok := docs[strings.SplitN(name, ".", 2)[0]]; !ok {
			t.Errorf("enum %s: no such type", name)
		}
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *updateSchema {
		testfile.Write(t, "spec.schema.json", want.Bytes())
		return
	}
	if !bytes.Equal(Schema(), want.Bytes()) {
		t.Error("spec.schema.json is not that of the types: go test ./loader/spec -run TestSchema -update-schema")
	}
}

// TestSchemaWords: the words of the schema, and no others, are accepted.
func TestSchemaWords(t *testing.T) {
	for name, spec := range map[string]string{
		"Spec.bad_samples": `{"source": "d", "batch_size": 1, "bad_samples": "WORD"}`,
		"Spec.augment":     `{"source": "d", "batch_size": 1, "augment": "WORD"}`,
		"Field.kind": `{"source": "d", "batch_size": 1,
			"fields": [{"name": "image"}, {"name": "a", "kind": "WORD"}]}`,
		"Field.resample": `{"source": "d", "batch_size": 1,
			"fields": [{"name": "a", "dtype": "float32", "resample": "WORD"}]}`,
		"Sampler.kind": `{"source": "d", "batch_size": 1, "sampler": {"kind": "WORD", "height": 8, "width": 8,
			"weights": "w"}}`,
		"RowWindows.fit": `{"source": "d", "batch_size": 1, "sampler": {"kind": "row_window", "size": 8,
			"fit": "WORD"}}`,
		"GeoWindows.mosaic": `{"source": "d", "batch_size": 1, "sampler": {"kind": "geo_window", "size_m": 80,
			"resolution": 10, "mosaic": "WORD"}}`,
		"GeoWindows.overviews": `{"source": "d", "batch_size": 1, "sampler": {"kind": "geo_window", "size_m": 80,
			"resolution": 10, "overviews": "WORD"}}`,
		"Mixture.batches": `{"sources": [{"source": "d"}], "batch_size": 1, "batches": "WORD"}`,
		"Subset.missing":  `{"source": "d", "batch_size": 1, "missing": "WORD"}`,
	} {
		for _, word := range append([]string{"nonsense"}, wordsOf(name)...) {
			given := strings.ReplaceAll(spec, "WORD", word)
			if word != WeightedWindow {
				given = strings.ReplaceAll(given, `,
			"weights": "w"`, "")
			}
			if word == GeoWindow {
				given = strings.Replace(given, `"height": 8, "width": 8`, `"size_m": 80, "resolution": 10`, 1)
			}
			if _, err := ParseSpec([]byte(given)); (err == nil) != (word != "nonsense") {
				t.Errorf("%s %q: %v", name, word, err)
			}
		}
	}
}

// object returns the schema of a struct.
func (g generator) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	g.members(t, properties, &required)
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if doc := g.docs[t.Name()]; doc != "" {
		out["description"] = doc
	}
	return out
}

// kindOf returns the kind of sampler whose members are a type, or "".
func kindOf(t reflect.Type) string {
	for _, kind := range samplers {
		if kind.members != nil && reflect.TypeOf(kind.members(&Sampler{})).Elem() == t {
			return kind.name
		}
	}
	return ""
}

// members adds the properties of a struct, and of those that it embeds.
func (g generator) members(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range fieldsOf(t) {
		if f.Anonymous {
			g.members(f.Type, properties, required)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		key := t.Name() + "." + name
		if filledIn[key] || name == "-" || !f.IsExported() {
			continue
		}
		p := g.of(f.Type)
		if short := g.short(f.Type); short != nil && key != "Field.times" {
			p = map[string]any{"anyOf": append([]any{p}, short...)}
		}
		if doc := g.docs[t.Name()+"."+f.Name]; doc != "" {
			p["description"] = doc
		}
		if v, ok := g.defaults[key]; ok {
			p["default"] = v
		}
		words := wordsOf(key)
		for _, word := range words {
			if doc := g.docs[t.Name()+"."+f.Name]; !strings.Contains(doc, fmt.Sprintf("%q", word)) {
				g.t.Errorf("the comment of %s does not name %q", key, word)
			}
		}
		if other := texts[key]; other != "" {
			word := map[string]any{"type": "string"}
			if words != nil {
				word = map[string]any{"enum": words}
			}
			delete(p, "type")
			p["anyOf"] = []any{word, map[string]any{"type": other}}
		} else if words != nil {
			p["enum"] = words
		}
		if kind := kindOf(t); kind != "" {
			p["x-kind"] = kind // the kind of sampler that it is a member of; validators ignore it
		}
		if (t == reflect.TypeFor[Sampler]() || kindOf(t) != "") && f.Tag.Get("hash") == "place" {
			p["x-path"] = true // Python makes its path absolute; validators ignore it
		}
		properties[name] = p
		if _, ok := p["default"]; !ok && option == "" && f.Type.Kind() != reflect.Struct && !notRequired[key] {
			*required = append(*required, name)
		}
	}
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// of returns the schema of a type.
func (g generator) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[[]Condition]():
		one := []any{g.of(t.Elem()), map[string]any{"type": "string"}, list(map[string]any{}, 3)}
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": one}}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case reflect.TypeFor[Float]():
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "number"}, map[string]any{"enum": []string{"nan", "inf", "-inf"}},
		}}
	case reflect.TypeFor[object]():
		members := map[string]any{}
		for _, name := range withRole("default") {
			members[name] = map[string]any{"$ref": "#/$defs/Field/properties/" + name}
		}
		return map[string]any{"type": "object", "properties": members, "additionalProperties": false}
	case reflect.TypeFor[Grid]():
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "number"}, map[string]any{"enum": []string{firstGrid}},
		}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Slice:
		items := g.of(t.Elem())
		if t.Elem() == reflect.TypeFor[Field]() {
			items["required"] = []string{"name"}
		}
		return map[string]any{"type": "array", "items": items}
	case reflect.Array:
		return list(g.of(t.Elem()), t.Len())
	case reflect.Struct:
		if _, ok := g.defs[t.Name()]; !ok {
			g.defs[t.Name()] = nil // so that a type that holds itself ends here
			g.defs[t.Name()] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	panic("no schema of " + t.String())
}

// defaults returns what a spec has where nothing is given.
func defaults(t *testing.T) map[string]any {
	out := map[string]any{}
	add := func(typ string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		members := map[string]any{}
		if err := json.Unmarshal(b, &members); err != nil {
			t.Fatal(err)
		}
		for name, v := range members {
			if _, ok := v.([]any); !ok && v != nil && v != "" && reflect.TypeOf(v).Kind() != reflect.Map {
				out[typ+"."+name] = v
			}
		}
	}
	spec := Spec{}.WithDefaults()
	add("Spec", spec)
	delete(out, "Spec.batch_size") // 0 is refused
	field := spec.Fields[0]
	add("Field", Field{DType: field.DType, Layout: field.Layout})
	delete(out, "Field.name")
	for _, kind := range samplers {
		if kind.members == nil {
			continue
		}
		s := Sampler{Kind: kind.name}.withDefaults()
		s.ScaleMin, s.ScaleMax = 0, 0 // the scale's default depends on what it is of
		add(reflect.TypeOf(kind.members(&s)).Elem().Name(), kind.members(&s))
	}
	add("Sampler", Sampler{}.withDefaults())
	add("Mixture", Mixture{Sources: []Source{{}}}.withDefaults())
	add("Subset", Subset{Missing: MissingError})
	subset := Subset{Strata: &Strata{}, Time: &Time{}}.WithDefaults()
	add("Strata", Strata{Until: subset.Strata.Until})
	add("Time", Time{Validity: subset.Time.Validity})
	for _, name := range []string{"Time.key", "Time.order", "Time.length", "Strata.column"} {
		delete(out, name)
	}
	return out
}

// comments returns the documentation of the package's types and their members, without what
// concerns Go only.
func comments(t *testing.T) map[string]string {
	out := map[string]string{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				for _, s := range g.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						addComments(out, g, s)
					}
				}
			}
		}
	}
	return out
}

func addComments(out map[string]string, g *ast.GenDecl, s *ast.TypeSpec) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	members := map[string]string{}
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			if f.Tag != nil {
				members[n.Name], _, _ = strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
			}
		}
	}
	out[s.Name.Name] = described(s.Name.Name, g.Doc, members)
	var last *ast.CommentGroup // one comment may be of several members
	for _, f := range st.Fields.List {
		if f.Doc != nil {
			last = f.Doc
		}
		for _, n := range f.Names {
			out[s.Name.Name+"."+n.Name] = described(n.Name, last, members)
		}
	}
}

var goName = regexp.MustCompile(`\b[A-Z]\w+(?:\.[A-Z][a-z]+)?\b`)

// described returns the comment of a type or member as a description for those who do not know the Go types: without
// the name that it begins with, and with the names of JSON for the members of the type, and for others whose name
// cannot be a word of the text. SQL and CRS are such words.
func described(name string, c *ast.CommentGroup, members map[string]string) string {
	text := strings.Join(strings.Fields(c.Text()), " ")
	if text == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(text, name+" "); ok && !strings.HasPrefix(rest, "and ") {
		text = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
	}
	text = goName.ReplaceAllStringFunc(text, func(word string) string {
		first, member, dotted := strings.Cut(word, ".")
		if known := cmp.Or(members[first], camelCase[first]); known != "" && first != strings.ToUpper(first) {
			if dotted { // Ground.Cover
				known += "." + strings.ToLower(member)
			}
			return "`" + known + "`"
		}
		return word
	})
	if text[0] == '`' || text[1] == ',' { // a name, or the k of a formula
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// camelCase are the members of other types that descriptions name.
var camelCase = map[string]string{
	"PerAsset": "per_asset", "PerBatch": "per_batch", "BandNames": "band_names", "DType": "dtype", "BBox": "bbox",
	"BBoxCRS": "bbox_crs",
}
