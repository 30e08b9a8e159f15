package spec

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestKindOfSamplerIsOneEntry: a kind of sampler that is added to the list is parsed, completed, checked and planned,
// and is named in errors and in the schema.
func TestKindOfSamplerIsOneEntry(t *testing.T) {
	before := samplers
	defer func() { samplers = before }()
	samplers = append(slices.Clone(before), samplerKind{
		name: "even_window", limited: true, view: true, SamplerTraits: SamplerTraits{Corners: true},
		defaults: func(s *Sampler) {
			if s.Height == 0 && s.Size == nil {
				s.Height, s.Width = 32, 32
			}
		},
		check: func(s *Sampler) error {
			if s.Height%2 != 0 {
				return errors.New("sides of even_window are even")
			}
			return nil
		},
		plan: fixed(shuffle.RandomWindow{}),
	})
	for _, kind := range samplers {
		if kind.plan == nil || kind.plan(&Sampler{}, 1, 1) == nil {
			t.Errorf("%s has no plan", kind.name)
		}
	}
	const head = `{"source":"d","batch_size":1,"sampler":`
	for members, want := range map[string]string{
		`{"kind":"even_window"}`:                                      "",
		`{"kind":"even_window","size":[8,6]}`:                         "",
		`[{"kind":"even_window"},{"kind":"even_window","size":8}]`:    "",
		`{"kind":"even_window","max_nodata":0.5,"coverage":"c.json"}`: "",
		`{"kind":"even_window","size":7}`:                             "sides of even_window are even",
		`{"kind":"even_window","stride":7}`:                           `stride is a member of kind "grid", not of`,
		`{"kind":"even_window","sizes":[7]}`:                          `the kind of sampler is "even_window": only`,
		`{"kind":"odd_window"}`:                                       "geo_window, even_window",
	} {
		s, err := ParseSpec([]byte(head + members + "}"))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v; want %s", members, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", members, err)
			continue
		}
		plan := s.Sampler.Plan(2, 2)
		if s.Sampler.Height == 0 || plan.H != s.Sampler.Height || plan.Kind != (shuffle.RandomWindow{}) {
			t.Errorf("%s: got %+v, planned as %+v", members, s.Sampler, plan)
		}
		text, _ := json.Marshal(s)
		again, err := ParseSpec(text)
		if twice, _ := json.Marshal(again); err != nil || string(twice) != string(text) {
			t.Errorf("%s: %s is read again as %s, %v", members, text, twice, err)
		}
	}
	if s := (&Sampler{Kind: "even_window"}); !s.Traits().Corners || !NeedsSize(s.Kind) {
		t.Error("the traits of the kind are not those of its entry")
	}
	docs := comments(t)
	docs["Sampler.Kind"] += ` "even_window"`
	if words := wordsInSchema(t, docs, "Sampler"); !slices.Contains(words, "even_window") {
		t.Errorf("the schema has the kinds %q", words)
	}
}

// wordsInSchema returns the words of the member kind of a type.
func wordsInSchema(t *testing.T, docs map[string]string, of string) []string {
	t.Helper()
	text, err := json.Marshal(schemaOf(t, docs)["$defs"])
	if err != nil {
		t.Fatal(err)
	}
	var defs map[string]struct {
		Properties struct {
			Kind struct{ Enum []string }
		}
	}
	if err := json.Unmarshal(text, &defs); err != nil {
		t.Fatal(err)
	}
	return defs[of].Properties.Kind.Enum
}

// TestKindOfFieldIsOneEntry: a kind of field that is added to the list is parsed and checked, and errors and the schema
// name it.
func TestKindOfFieldIsOneEntry(t *testing.T) {
	before := fieldKinds
	defer func() { fieldKinds = before }()
	fieldKinds = slices.Insert(slices.Clone(before), 0, FieldKind{
		name: "flag", Metadata: true, dtypes: []string{"uint8"},
		fits: func(k column.Kind) bool { return k == column.Int },
	})
	const head = `{"source":"d","batch_size":1,"fields":{"f":`
	for member, want := range map[string]string{
		`{"kind":"flag","dtype":"uint8"}`:                   "",
		`{"kind":"flag","dtype":"float32"}`:                 `dtype is "float32": it must be one of uint8`,
		`{"kind":"flag","dtype":"uint8","pad":true}`:        `kind is "flag" and pad is given: that is for rasters`,
		`{"kind":"flag","dtype":"uint8","pattern":"a{id}"}`: `and pattern is "a{id}": files hold rasters`,
		`{"kind":"flags"}`:                                  `kind is "flags": it must be one of flag, raster`,
	} {
		s, err := ParseSpec([]byte(head + member + "}}"))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v; want %s", member, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", member, err)
		}
		if f := &s.Fields[0]; f.CheckKind(column.Int) != nil || f.CheckKind(column.Text) == nil {
			t.Errorf("%s: a column of whole numbers is refused, or one of strings taken", member)
		}
	}
	docs := comments(t)
	docs["Field.Kind"] += ` "flag"`
	if words := wordsInSchema(t, docs, "Field"); !slices.Contains(words, "flag") {
		t.Errorf("the schema has the kinds %q", words)
	}
}
