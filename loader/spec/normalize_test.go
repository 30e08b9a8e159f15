package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// bandStats are the statistics of a field with two bands, of which the second is constant.
const bandStats = `{"dtype": "uint8", "bands": [
	{"name": "R", "mean": 4, "std": 2, "min": 0, "max": 8, "percentiles": {"2.5": 1, "98.5": 5}},
	{"name": "N", "mean": 6, "std": 0, "min": 2, "max": 6, "percentiles": {"2.5": 2, "98.5": 4}}]}`

// TestNormalized: ParseSpec and WithDefaults put the numbers in place of other forms, for the picked bands, of fields
// and of sources.
func TestNormalized(t *testing.T) {
	for _, c := range []struct {
		normalize, bands string
		want             Normalize
	}{
		{`"method": "mean_std", "stats": ` + bandStats, "", Normalize{Scale: Values{0.5, 1}, Offset: Values{-2, -6}}},
		{`"method": "min_max", "stats": ` + bandStats, `, "bands": [1, 0, 1]`,
			Normalize{Scale: Values{0.25, 0.125, 0.25}, Offset: Values{-0.5, 0, -0.5}}},
		{`"method": "percentile", "stats": ` + bandStats, `, "band_names": ["N"]`,
			Normalize{Scale: Values{0.5}, Offset: Values{-1}, Clip: &[2]Float{0, 1}}},
		{`"mean": [4, 6, 0], "std": [2, 1, 4], "clip": [-1, 1]`, `, "bands": [1, 0, 1]`,
			Normalize{Scale: Values{0.5, 1, 0.25}, Offset: Values{-2, -6, 0}, Clip: &[2]Float{-1, 1}}},
		{`"mean": [4, 6], "std": [2]`, "", Normalize{Scale: Values{0.5, 0.5}, Offset: Values{-2, -3}}},
		{`"scale": [2]`, "", Normalize{Scale: Values{2}, Offset: Values{0}}},
		{`"offset": [1, 2]`, "", Normalize{Scale: Values{1, 1}, Offset: Values{1, 2}}},
	} {
		field := fmt.Sprintf(`{"name": "image", "normalize": {%s}%s}`, c.normalize, c.bands)
		one := fmt.Sprintf(`{"source": "d", "batch_size": 1, "fields": [%s]}`,
			strings.Replace(field, "{", `{"dtype": "float32", `, 1))
		mixed := fmt.Sprintf(`{"batch_size": 1, "fields": [{"name": "image", "dtype": "float32"}],
			"sources": [{"name": "a", "weight": 1, "source": "d", "fields": [%s]}]}`, field)
		for _, text := range []string{one, mixed} {
			parsed, err := ParseSpec([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var literal Spec // as a program in Go writes it
			if err := json.Unmarshal([]byte(text), &literal); err != nil {
				t.Fatal(err)
			}
			before, _ := json.Marshal(literal)
			full := literal.WithDefaults()
			if err := full.Validate(); err != nil {
				t.Error(err)
			}
			if after, _ := json.Marshal(literal); string(after) != string(before) {
				t.Errorf("WithDefaults changed %s to %s", before, after)
			}
			for _, s := range []Spec{parsed, full} {
				fields := s.Fields
				if len(s.Sources) > 0 {
					fields = s.Sources[0].Fields
				}
				if got := *fields[0].Normalize; !reflect.DeepEqual(got, c.want) {
					t.Errorf("%s%s: %+v, want %+v", c.normalize, c.bands, got, c.want)
				}
				// -0 would be another spec hash.
				b, _ := json.Marshal(s)
				if strings.Contains(string(b), "method") || strings.Contains(string(b), "-0,") {
					t.Errorf("with numbers, the spec is %s", b)
				}
			}
		}
	}
}

// TestNormalizedSources: statistics have their numbers for the bands that a source reads, whoever picks them.
func TestNormalizedSources(t *testing.T) {
	const method = `, "normalize": {"method": "mean_std", "stats": ` + bandStats + `}`
	picked := Normalize{Scale: Values{1, 0.5}, Offset: Values{-6, -2}}
	for _, c := range []struct{ field, source string }{
		{`, "bands": [1, 0]`, method},
		{method, `, "bands": [1, 0]`},
		{method + `, "bands": [0]`, `, "band_names": ["N", "R"]`},
		{`, "bands": [0, 1], "normalize": {"scale": 3}`, `, "bands": [1, 0]` + method},
	} {
		s, err := ParseSpec(fmt.Appendf(nil, `{"batch_size": 1, "fields": [{"name": "image", "dtype": "float32"%s}],
			"sources": [{"name": "a", "weight": 1, "source": "d", "fields": [{"name": "image"%s}]}]}`, c.field, c.source))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.FieldsOf(&s.Sources[0])[0].Normalize; !reflect.DeepEqual(*got, picked) {
			t.Errorf("%s, source %s: %+v", c.field, c.source, got)
		}
	}
}

// TestWrongStats: an error names the field and what is wrong with its statistics.
func TestWrongStats(t *testing.T) {
	for _, c := range [][2]string{
		{`{"method": "mean_std"}`, `field "a": normalize: "mean_std" needs stats`},
		{`{"method": "mean_std", "stats": {"bands": []}}`, "stats: it has no bands"},
		{`{"method": "zscore", "stats": ` + bandStats + `}`, `normalisation is "zscore"`},
		{`{"stats": ` + bandStats + `}`, `normalisation is ""`},
		{`{"method": "min_max", "stats": 3}`, "is a number, and not what chaski stats writes"},
		{`{"method": "min_max", "stats": {"bands": [{"mean": 1, "std": 2}]}}`,
			"stats: band 0: its statistics have not what min_max needs"},
		{`{"method": "mean_std", "stats": {"bands": [{"mean": "nan", "std": 2}]}}`, "stats: bands.mean is a string"},
		{`{"method": "min_max", "stats": {"bands": [{"min": 5, "max": 1}]}}`, "is -4: it must not be negative"},
		{`{"mean": [1]}`, `field "a": normalize: mean has 1 values and std has 0: both need as many`},
		{`{"std": 2}`, "mean has 0 values and std has 1"},
		{`{"mean": [1, 2], "std": [1, 2, 3]}`, "mean has 2 values and std has 3"},
		{`{"mean": 0, "std": [2, -1]}`, "std has -1: it must be above 0"},
		{`{"mean": [0, 1], "std": [0, 1]}`, "std has 0: it must be above 0"},
		{`{"mean": 0, "std": 1, "scale": 2}`, "mean and std stand for scale and offset"},
		{`{"mean": 0, "std": 1, "method": "mean_std"}`, "give either"},
		{`{"mean": "x", "std": 1}`, `normalize.mean is "x": it must be a number, or a list with one for each band`},
		{`{"method": "min_max", "scale": [1], "stats": ` + bandStats + `}`, "give either"},
		{`{"method": "min_max", "stats": ` + bandStats + `}, "bands": [2]`, "no band 2 of 2 bands"},
		{`{"method": "min_max", "stats": ` + bandStats + `}, "band_names": ["B"]`, `one band called "B"`},
		{`{"method": "min_max", "stats": ` + strings.Replace(bandStats, "N", "R", 1) + `}, "band_names": ["R"]`,
			`one band called "R"`},
	} {
		text := fmt.Sprintf(`{"source": "d", "batch_size": 1, "fields": [{"name": "a", "normalize": %s}]}`, c[0])
		if _, err := ParseSpec([]byte(text)); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
}
