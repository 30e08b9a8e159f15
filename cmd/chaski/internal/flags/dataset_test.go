package flags

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestNormalization: the numbers of a normalisation are given as JSON, or in every form of the file of statistics.
func TestNormalization(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	const bands = `{"image": {"bands": [{"mean": 4, "std": 2}, {"mean": 6, "std": 4}]}}`
	want := &spec.Normalize{Scale: spec.Values{0.5, 0.25}, Offset: spec.Values{-2, -1.5}}
	for _, c := range []struct{ normalize, stats, err string }{
		{normalize: `{"mean": [4, 6], "std": [2, 4]}`},
		{normalize: `{"scale": [0.5, 0.25], "offset": [-2, -1.5]}`},
		{normalize: "mean_std", stats: `{"fields": ` + bands + `}`},
		{normalize: "mean_std", stats: bands},
		{normalize: "mean_std", stats: `{"mean": [4, 6], "std": [2, 4]}`},
		{normalize: "mean_std", stats: `{"mask": {"bands": []}}`, err: `no field "image"`},
		{normalize: "mean_std", stats: `{"image": {}}`, err: "it has no bands"},
		{normalize: "mean_std", stats: `{"image": 3}`, err: "cannot unmarshal"},
		{normalize: `{"mean": [4]}`, err: "mean has 1 values and std has 0"},
		{normalize: `{"meen": [4]}`, err: `no member "normalize.meen"`},
		{normalize: `{"mean": 4`, err: "unexpected end"},
		{normalize: `{"mean": 4, "std": 1}`, stats: bands, err: "without --stats"},
	} {
		var f Dataset
		fl := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(fl, 1, false)
		f.AddArithmetic(fl)
		args := []string{"--normalize", c.normalize}
		if c.stats != "" {
			testfile.Write(t, file, []byte(c.stats))
			args = append(args, "--stats", file)
		}
		if err := fl.Parse(args); err != nil {
			t.Fatal(err)
		}
		s, err := f.Spec("chips")
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", args, err, c.err)
			}
		case err != nil:
			t.Errorf("%q: %v", args, err)
		case !reflect.DeepEqual(s.Fields[0].Normalize, want):
			t.Errorf("%q: %+v", args, s.Fields[0].Normalize)
		}
	}
}
