package spec

import (
	"encoding/json"
	"strings"
	"testing"
)

// formStats has statistics of the field "image" only.
const formStats = `"stats": {"image": ` + bandStats + `}`

// TestShortForms: a spec in short forms is the same spec as in long ones, which JSON after parsing shows.
func TestShortForms(t *testing.T) {
	const pairs = `"fields": [{"name": "image", "dtype": "float32"}], "all_fields": true`
	for _, c := range [][2]string{
		{`"defaults": {}`, `"all_fields": true`},
		{`"defaults": {"dtype": "float32"}`, pairs},
		{`"defaults": {"dtype": "float32", "normalize": false}, "fields": null`, pairs},
		{`"defaults": {"dtype": "native", "fill": 0, "bands": ["B", "R"], "validity": "ok", "pad": true}`,
			`"all_fields": true, "fields": [{"name": "image", "dtype": "native", "fill": 0, "band_names": ["B", "R"],
				"validity": "ok", "pad": true}]`},
		{`"fields": {"b": "img/{id}.tif", "a": "col", "c": {"column": "x", "bands": [1]}}`,
			`"fields": [{"name": "b", "pattern": "img/{id}.tif"}, {"name": "a", "column": "col"},
				{"name": "c", "column": "x", "bands": [1]}]`},
		{`"fields": {"a": {"dtype": "float32", "normalize": {"offset": [1, 2, -0.0]}}}`,
			`"fields": [{"name": "a", "dtype": "float32", "normalize": {"scale": [1, 1, 1], "offset": [1, 2, 0]}}]`},
		{`"fields": {"a": {"dtype": "float32", "normalize": {"scale": 2, "clip": [0, "inf"]}}}`,
			`"fields": [{"name": "a", "dtype": "float32",
				"normalize": {"scale": [2], "offset": [0], "clip": [0, "inf"]}}]`},
		// A field says by what it has itself that it is a raster, or a raster or numbers.
		{`"defaults": {"dtype": "float32", "layout": "n y x b", "sizes": {"p": 2}, "pad": true}, "fields": {
			"a": {}, "b": {"layout": "n b y x", "sizes": {"q": 3}}, "c": {"dtype": "uint8", "pad": false},
			"d": {"kind": "number", "dtype": "float64"}, "e": {"kind": "text"}, "f": {"pad": true, "dtype": null}}`,
			`"fields": [
			{"name": "a", "dtype": "float32", "layout": "n y x b", "sizes": {"p": 2}, "pad": true},
			{"name": "b", "kind": "raster", "dtype": "float32", "layout": "n b y x", "sizes": {"q": 3}, "pad": true},
			{"name": "c", "kind": "array", "dtype": "uint8", "layout": "n y x b", "sizes": {"p": 2}},
			{"name": "d", "kind": "number", "dtype": "float64"}, {"name": "e", "kind": "text"},
			{"name": "f", "kind": "raster", "dtype": "float32", "layout": "n y x b", "sizes": {"p": 2}, "pad": true}]`},
		// Labels keep their nodata.
		{`"defaults": {"dtype": "float32", "fill": 0}, "fields": {
			"image": "a", "mask": {"dtype": "native"}, "classes": {"dtype": "int64"}, "byte": {"dtype": "uint8"},
			"scaled": {"dtype": "uint8", "normalize": {"scale": 2}}, "own": {"dtype": "native", "fill": 255}}`,
			`"fields": [{"name": "image", "column": "a", "dtype": "float32", "fill": 0},
			{"name": "mask", "kind": "array", "dtype": "native"}, {"name": "classes", "kind": "array", "dtype": "int64"},
			{"name": "byte", "kind": "array", "dtype": "uint8"}, {"name": "scaled", "kind": "raster", "dtype": "uint8",
			"fill": 0, "normalize": {"scale": [2], "offset": [0]}},
			{"name": "own", "kind": "raster", "dtype": "native", "fill": 255}]`},
		// A method is for the fields that have statistics; numbers are for all but those that are as stored.
		{`"defaults": {"dtype": "float32", "normalize": "mean_std"}, ` + formStats + `, "fields": {
			"image": {"bands": ["N"]}, "mask": "m", "off": {"normalize": false}}`,
			`"fields": [{"name": "image", "band_names": ["N"], "dtype": "float32", "physical": false,
			"normalize": {"scale": [1], "offset": [-6]}}, {"name": "mask", "column": "m", "dtype": "float32"},
			{"name": "off", "dtype": "float32"}]`},
		{`"defaults": {"dtype": "float32", "normalize": {"scale": 2}}, "fields": {
			"a": {}, "b": {"dtype": "int64"}, "c": {"kind": "class"}, "v": {"vector": {"path": "a"}}}`,
			`"fields": [{"name": "a", "dtype": "float32", "normalize": {"scale": [2], "offset": [0]}},
			{"name": "b", "kind": "array", "dtype": "int64"}, {"name": "c", "kind": "class"},
			{"name": "v", "vector": {"path": "a"}}]`},
		{formStats + `, "fields": {"image": {"dtype": "float32", "normalize": "percentile", "bands": [1]}}`,
			`"fields": [{"name": "image", "dtype": "float32", "bands": [1], "physical": false,
			"normalize": {"scale": [0.5], "offset": [-1], "clip": [0, 1]}}]`},
	} {
		if short, long := parsed(t, `"source": "d", `+c[0]), parsed(t, `"source": "d", `+c[1]); short != long {
			t.Errorf("%s\nis  %s\nnot %s", c[0], short, long)
		}
	}
}

// TestShortFormsOfSources: fields of sources have the same short forms, and take no defaults.
func TestShortFormsOfSources(t *testing.T) {
	short := parsed(t, `"defaults": {"dtype": "float32", "normalize": "mean_std", "fill": 1}, `+formStats+`,
		"fields": {"image": {}}, "sources": [{"source": "a", "fields": {"image": "x/{id}.tif"}}, {"sources": [
		{"source": "b", "fields": {"image": {"bands": ["N"], "normalize": "min_max", "pad": true}}}]}]`)
	long := parsed(t, `"fields": [{"name": "image", "dtype": "float32", "fill": 1,
		"physical": false, "normalize": {"scale": [0.5, 1], "offset": [-2, -6]}}],
		"sources": [{"source": "a", "fields": [{"name": "image", "pattern": "x/{id}.tif"}]}, {"sources": [{"source": "b",
		"fields": [{"name": "image", "band_names": ["N"], "normalize": {"scale": [0.25], "offset": [-0.5]},
		"pad": true}]}]}]`)
	if short != long {
		t.Errorf("%s\nnot %s", short, long)
	}
}

// parsed returns the JSON of a spec with these members.
func parsed(t *testing.T, members string) string {
	t.Helper()
	s, err := ParseSpec([]byte(`{"batch_size": 1, ` + members + "}"))
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStatsOfManyFields: the fields of many sources cannot make the engine read the same statistics without end.
func TestStatsOfManyFields(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes of text, which one goroutine reads")
	}
	band := `{"mean":1,"std":2},`
	report := `"stats": {"image": {"bands": [` + strings.TrimSuffix(strings.Repeat(band, 40000), ",") + `]}}`
	source := `{"source": "d", "fields": {"image": {"normalize": "mean_std"}}},`
	text := `{"batch_size": 1, "fields": {"image": {"dtype": "float32"}}, ` + report + `, "sources": [` +
		strings.TrimSuffix(strings.Repeat(source, 25), ",") + "]}"
	if _, err := ParseSpec([]byte(text)); err == nil || !strings.Contains(err.Error(), "bytes of stats") {
		t.Errorf("%v", err)
	}
}

// TestWrongShortForms: an error names the argument as it was written.
func TestWrongShortForms(t *testing.T) {
	deep := strings.Repeat(`[{"sources":`, 40)
	for _, c := range [][2]string{
		{`"fields": {}`, "fields is empty"},
		{`"fields": {"a": 3}`, `field "a": it is 3: it must be an object, the name of a column, or a pattern`},
		{`"fields": {"a": {"name": "b"}}`, `field "a": name is "b": it must be left out`},
		{`"fields": {"a": {}, "a": {}}`, "fields.a is given twice"},
		{`"fields": {"a": {"pad": true, "pad": false}}`, `field "a": pad is given twice`},
		{`"fields": ["a"]`, `fields[0] is "a": it must be an object`},
		{`"fields": [{"name": "a", "bands": ["B", 1]}]`, `field "a": bands[0] is "B": it must be a whole number`},
		{`"fields": {"a": {"bands": []}}`, `field "a": bands is empty`},
		{`"fields": {"a": {"normalize": "mean"}}`, `field "a": normalize is "mean": it must be "mean_std", "min_max"`},
		{`"fields": {"a": {"normalize": {"scale": "2"}}}`, `field "a": normalize.scale is "2": it must be a number`},
		{`"fields": {"a": {"normalize": "mean_std"}}`, `field "a": normalize: "mean_std" needs stats`},
		{`"fields": {"a": {"normalize": "mean_std"}}, ` + formStats,
			`normalize: "mean_std" needs statistics of the field, and stats has ["image"]`},
		{`"stats": {"image": 3}, "fields": {"image": {"normalize": "mean_std"}}`, "it is a number, and not what"},
		{`"stats": 3, "defaults": {"normalize": "mean_std"}`, "stats is 3: it must be an object of values by name"},
		{`"defaults": 3`, "defaults is 3: it must be an object"},
		{`"defaults": {"pad": "True"}`, `spec: pad is "True": it must be true or false`},
		{`"defaults": {"column": "c"}`, `defaults has no member "column"; there are band_names, bands`},
		{`"defaults": {"bands": [1]}, "fields": {"a": {}, "b": {}}`,
			"with several fields, bands and validity must be in the field"},
		{`"defaults": {"normalize": "mean_std"}`, `normalize is "mean_std": it needs stats`},
		{`"defaults": {"normalize": "mean_std", "dtype": "int64"}, ` + formStats, "are as stored"},
		{`"defaults": {"normalize": "mean_std", "dtype": "float32"}, "fields": {"a": {}, "b": {}}, ` + formStats,
			`stats has ["image"], and none of ["a" "b"]`},
		{`"defaults": {"fill": 0}, "fields": {"a": {}}`, "fill is 0, but no field takes it"},
		{`"defaults": {"fill": 0}, "fields": {"a": {"dtype": "float32"}, "b": {"pad": true}}`,
			`field "b": dtype is "native" and pad is true`},
		{`"defaults": {"layout": "` + strings.Repeat("x", 1<<17) + `"}, "fields": {"a": {}, "b": {}, "c": {}, "d": {},
			"e": {}, "f": {}, "g": {}, "h": {}}`, "together at most"},
		{`"sources": ` + deep, "unexpected end"},
		{`"sources": ` + deep + `1` + strings.Repeat("}]", 40), "at most 64 are allowed"},
		{`"bad_limit": {"count": 3}`, `bad_limit.count is 3: the run ends`},
	} {
		text := `{"source": "d", "batch_size": 1, ` + c[0]
		if !strings.HasSuffix(c[0], ":") {
			text += "}"
		}
		if _, err := ParseSpec([]byte(text)); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%.200s: %v, not %s", c[0], err, c[1])
		}
	}
}
