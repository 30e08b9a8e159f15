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

// TestNormalizeByStats: ParseSpec puts the numbers in place of a method, for the picked bands, of
// fields and of sources.
func TestNormalizeByStats(t *testing.T) {
	for _, c := range []struct {
		method, bands string
		want          Normalize
	}{
		{"mean_std", "", Normalize{Scale: []float64{0.5, 1}, Offset: []float64{-2, -6}}},
		{"min_max", `, "bands": [1, 0, 1]`,
			Normalize{Scale: []float64{0.25, 0.125, 0.25}, Offset: []float64{-0.5, 0, -0.5}}},
		{"percentile", `, "band_names": ["N"]`,
			Normalize{Scale: []float64{0.5}, Offset: []float64{-1}, Clip: &[2]Float{0, 1}}},
	} {
		field := fmt.Sprintf(`{"name": "image", "normalize": {"method": %q, "stats": %s}%s}`,
			c.method, bandStats, c.bands)
		one := fmt.Sprintf(`{"source": "d", "batch_size": 1, "fields": [%s]}`,
			strings.Replace(field, "{", `{"dtype": "float32", `, 1))
		mixed := fmt.Sprintf(`{"batch_size": 1, "fields": [{"name": "image", "dtype": "float32"}],
			"sources": [{"name": "a", "weight": 1, "source": "d", "fields": [%s]}]}`, field)
		for _, text := range []string{one, mixed} {
			s, err := ParseSpec([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			fields := s.Fields
			if len(s.Sources) > 0 {
				fields = s.Sources[0].Fields
			}
			if got := *fields[0].Normalize; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s%s: %+v, want %+v", c.method, c.bands, got, c.want)
			}
			// -0 would be another spec hash.
			if b, _ := json.Marshal(s); strings.Contains(string(b), "method") || strings.Contains(string(b), "-0,") {
				t.Errorf("with numbers, the spec is %s", b)
			}
		}
	}
}

// TestWrongStats: an error names the field and what is wrong with its statistics.
func TestWrongStats(t *testing.T) {
	for _, c := range [][2]string{
		{`{"method": "mean_std"}`, `field "a": normalize: "mean_std" needs stats`},
		{`{"method": "mean_std", "stats": {"bands": []}}`, "stats has no bands"},
		{`{"method": "zscore", "stats": ` + bandStats + `}`, `normalisation is "zscore"`},
		{`{"stats": ` + bandStats + `}`, `normalisation is ""`},
		{`{"method": "min_max", "stats": 3}`, "is a number, and not what chaski stats writes"},
		{`{"method": "min_max", "stats": {"bands": [{"mean": 1, "std": 2}]}}`,
			"stats: band 0: its statistics have not what min_max needs"},
		{`{"method": "mean_std", "stats": {"bands": [{"mean": "nan", "std": 2}]}}`, "stats: bands.mean is a string"},
		{`{"method": "min_max", "stats": {"bands": [{"min": 5, "max": 1}]}}`, "is -4: it must not be negative"},
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
