package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// chipsRecipe is a recipe of two fields over a table of coast, whose samples are n, among them one that cannot be read.
func chipsRecipe(t testing.TB, n int) (text []byte, dir string) {
	t.Helper()
	dir = t.TempDir()
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	table := "image,mask,day\n"
	for i := range n {
		tile := filepath.Join(data, "coast", "coast_dir", "DATA", []string{"tile_00", "tile_01", "tile_02"}[i%3])
		image := filepath.Join(tile, "s2", "img.tif")
		if i == 1 {
			image = filepath.Join(data, "tiffs", "offset-0.tif")
		}
		table += image + "," + filepath.Join(tile, "ref", "label.tif") + "," + string(rune('a'+i)) + "\n"
	}
	write(t, filepath.Join(dir, "table.csv"), []byte(table))
	return []byte(`collection: {id: c, dataset_version: "1", description: d, licenses: [CC0-1.0], providers: [{name: Ana}],
  tasks: [other]}
source: table.csv
windows: {kind: random, size: 8, per_file: 4, seed: 3}
fields: [{name: image, column: image}, {name: mask, column: mask, codec: {format: rumi}}]
columns: [day]
split: {by: place, cell: 0.001, shares: {a: 1, b: 1}}
bad_samples: skip
`), dir
}

// made is the container of one run of a recipe, and its statistics as JSON.
func made(t testing.TB, text []byte, base, name string) (b []byte, r *recipe.Result) {
	t.Helper()
	parsed, err := recipe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	if r, err = recipe.Make(t.Context(), parsed, out, recipe.Options{Base: base, Loader: options()}); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	return b, r
}

func newMake(t testing.TB, text []byte, base string) *Make {
	t.Helper()
	k, err := NewMake(text, base)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// place merges a job into a file, as the command does.
func place(t testing.TB, j *job.Job, out string) (job.Outcome, error) {
	t.Helper()
	r, err := j.Results(t.Context())
	if err != nil {
		return job.Outcome{}, err
	}
	return r.Place(t.Context(), job.MergeOptions{Name: out, Resource: options()})
}

// TestAnySplitIsOneContainer: any number of shards, in any order, some of them twice, gives the container, the
// statistics and the note of one run.
func TestAnySplitIsOneContainer(t *testing.T) {
	race.SkipCovered(t)
	text, dir := chipsRecipe(t, 5)
	want, res := made(t, text, dir, "one.tacozip")
	if res.Bad != 1 && res.Bad != 4 || res.Samples != 16 {
		t.Fatalf("%+v", res)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, shards := range []int{1, 3, 99} {
		j := plan(t, newMake(t, text, dir), shards)
		anyOrder(t, r, j)
		out := filepath.Join(t.TempDir(), "out.tacozip")
		o, err := place(t, j.Job, out)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(out)
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%d shards: %d bytes, want %d, and the same: %v", shards, len(have), len(want), err)
		}
		if a, b := asJSON(t, o.Statistics), asJSON(t, res.Report); a != b {
			t.Errorf("%d shards: statistics %s, want %s", shards, a, b)
		}
		if strings.Join(o.Notes, "\n") != res.LeftOut() || res.LeftOut() == "" {
			t.Errorf("%d shards: %q, want %q", shards, o.Notes, res.LeftOut())
		}
	}
}

// TestMakeRefusals: a merge without a name, statistics that the recipe turns off, a source that changed, a sample that
// cannot be read, and a job with another recipe.
func TestMakeRefusals(t *testing.T) {
	text, dir := chipsRecipe(t, 3)
	without := append(bytes.Clone(text), "statistics: false\n"...)
	j := plan(t, newMake(t, without, dir), 2)
	anyOrder(t, rand.New(rand.NewPCG(1, 2)), j)
	if _, _, err := merge(t, j, ""); !errors.Is(err, fault.Unsupported) {
		t.Errorf("no name: %v", err)
	}
	out := filepath.Join(t.TempDir(), "out.tacozip")
	r, err := j.Results(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Place(t.Context(), job.MergeOptions{Name: out, Statistics: true, Resource: options()})
	if !errors.Is(err, fault.Unsupported) {
		t.Errorf("statistics: %v", err)
	}
	strict := bytes.Replace(text, []byte("bad_samples: skip"), []byte("bad_samples: error"), 1)
	bad := plan(t, newMake(t, strict, dir), 1)
	err = bad.Run(t.Context(), 0, job.RunOptions{Resource: options()})
	if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), "offset-0.tif") {
		t.Errorf("a sample that cannot be read: %v", err)
	}
	table := filepath.Join(dir, "table.csv")
	b, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	write(t, table, b[:bytes.LastIndexByte(bytes.TrimSpace(b), '\n')+1])
	err = j.Run(t.Context(), 0, job.RunOptions{Again: true, Resource: options()})
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("a source that changed: %v", err)
	}
	if _, err := place(t, j.Job, out); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a source that changed: %v", err)
	}
	var k Make
	if err := json.Unmarshal([]byte(`{"recipe":"source: x","base":"/"}`), &k); err == nil {
		t.Error("a recipe without a collection")
	}
}

// FuzzMake: any tally is refused with a kind, or counts each window of the shard.
func FuzzMake(f *testing.F) {
	f.Add([]byte(`{"chips":2,"bad":1,"misplaced":0,"empty":0}`))
	f.Add([]byte(`{"chips":1,"bad":1,"unlabelled":1}`))
	f.Add([]byte(`{"chips":9223372036854775807,"bad":9223372036854775807,"empty":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		left, err := new(Make).Check(b, job.Shard{Count: 3})
		if err != nil && fault.KindOf(err) == 0 || err == nil && (left < 0 || left > 3) {
			t.Fatalf("%d left out, %v", left, err)
		}
	})
}
