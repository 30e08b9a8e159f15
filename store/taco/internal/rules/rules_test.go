package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRules promises that each violation is one sentence that names the place of the value.
func TestRules(t *testing.T) {
	bands := List("name", Must("name", Text), May("index", Whole), May("unit", OneOf("m", "nm")))
	for text, want := range map[string]string{
		`[{"name": "a", "index": 0, "unit": "m"}, {"name": "b", "index": null}]`: "",
		`{}`:                             "v is {}: it must be a list",
		`[1]`:                            "v[0] is 1: it must be an object",
		`[{"index": 1}]`:                 "v[0].name is missing or empty",
		`[{"name": ""}]`:                 "v[0].name is missing or empty",
		`[{"name": "a"}, {"name": "a"}]`: `v[1].name is "a", as of v[0]: they must differ`,
		`[{"name": 3, "index": -1}]`: "v[0].name is 3: it must be text|" +
			"v[0].index is -1: it must be a whole number, at least 0",
		`[{"name": "a", "unit": "km"}]`: `v[0].unit is "km": it must be one of m, nm`,
	} {
		if got := check(bands, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{"spatial": [170, -10, -170, 10], "temporal": ["a", "b"]}`: true, `{"spatial": null}`: true, `{}`: true,
		`{"spatial": [0, 10, 1, -10]}`: false, `{"spatial": [0, 0, 1e999, 1]}`: false, `{"spatial": [0, 0, 1]}`: false,
		`{"temporal": ["a"]}`: false, `3`: false,
	} {
		if got := check(Extent, text); (got == "") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func check(is Rule, text string) string {
	var all []string
	is(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }, "v",
		Decoded(json.RawMessage(text)))
	return strings.Join(all, "|")
}
