package containers

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
)

// TestStatisticsAreTacoreaders compares numbers of geotiff:stats with those of tacoreader (testdata/narrow/make.py),
// which counts in float32.
func TestStatisticsAreTacoreaders(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "narrow")
	b, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers struct{ Stats [][3]any }
	if err := json.Unmarshal(b, &answers); err != nil || len(answers.Stats) == 0 {
		t.Fatal(err)
	}
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{filepath.Join(dir, "dates.tacozip")}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ask := func(level int, id *string, number string, where ...spec.Condition) ([][]float64, error) {
		return Statistics(t.Context(), d, level, id, number, where, resources.Options{})
	}
	for _, a := range answers.Stats {
		number, id := a[0].(string), a[1].(string)
		got, err := ask(2, &id, strings.ReplaceAll(number, "median", "p50"))
		if err != nil {
			t.Fatal(err)
		}
		for i, band := range []int{0, 2} {
			if want := a[2].([]any)[i].(float64); math.Abs(got[band][0]-want) > 1e-5*want {
				t.Errorf("%s of %s, band %d: %v, want %v", number, id, band, got[band], want)
			}
		}
	}
	// Of the samples that a condition leaves, only one has a file with t2 above it.
	id := "t2"
	one, err := ask(2, &id, "min", spec.Condition{SQL: "rank = 0"})
	if err != nil || len(one) != 3 {
		t.Fatal(one, err)
	}
	if all, err := ask(2, &id, "min"); err != nil || !(all[0][0] <= one[0][0]) {
		t.Errorf("%v of all, %v of one: %v", all, one, err)
	}
	if _, err := ask(2, nil, "min"); err == nil || !strings.Contains(err.Error(), "level is 2: id must name") {
		t.Error(err)
	}
	for _, level := range []int{0, 3} {
		if _, err := ask(level, &id, "min"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("level %d: %v", level, err)
		}
	}
	if _, err := ask(2, &id, "px"); err == nil || !strings.Contains(err.Error(), `number is "px"`) {
		t.Error(err)
	}
}
