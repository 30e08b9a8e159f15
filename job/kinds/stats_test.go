package kinds

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

func options() resources.Options {
	return resources.Options{Workers: 2, Logger: slog.New(slog.DiscardHandler)}
}

// dataset returns the spec of a table of n samples: two fields, one of them floats, and every seventh sample is bad.
func dataset(t *testing.T, n int) spec.Spec {
	t.Helper()
	dir := t.TempDir()
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("image,points\n")
	for i := range n {
		image := filepath.Join(data, "coast", "coast_dir", "DATA", fmt.Sprintf("tile_%02d", i%3), "s2", "img.tif")
		if i%7 == 3 {
			image = filepath.Join(data, "tiffs", "offset-0.tif")
		}
		fmt.Fprintf(&b, "%s,%s\n", image, filepath.Join(data, "extras", "points.tif"))
	}
	table := filepath.Join(dir, "table.csv")
	if err := os.WriteFile(table, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return spec.Spec{
		Source: table, BatchSize: 1, BadSamples: spec.BadSkip,
		Fields: []spec.Field{
			{Name: "image", Column: "image", Ground: spec.IgnoreGround},
			{Name: "points", Column: "points", Ground: spec.IgnoreGround},
		},
	}
}

// onePass returns the report of one pass over all samples, as JSON.
func onePass(t *testing.T, sp spec.Spec) string {
	t.Helper()
	r, err := survey.Stats(t.Context(), sp, options(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, r) + "\n"
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// planned is a job and its folder.
type planned struct {
	*job.Job
	folder string
}

func plan(t *testing.T, k job.Kind, shards int) planned {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "job")
	j, err := job.Plan(t.Context(), folder, k, job.PlanOptions{Shards: shards}, options())
	if err != nil {
		t.Fatal(err)
	}
	return planned{j, folder}
}

func planStats(t *testing.T, sp spec.Spec, shards int) planned {
	t.Helper()
	return plan(t, &Stats{Dataset{Spec: sp}}, shards)
}

func run(t *testing.T, j planned, shard int, again bool) {
	t.Helper()
	if err := j.Run(t.Context(), shard, job.RunOptions{Again: again, Resource: options()}); err != nil {
		t.Fatal(err)
	}
}

// merge merges a job, as the command does.
func merge(t *testing.T, j planned, name string) ([]byte, job.Outcome, error) {
	t.Helper()
	r, err := j.Results(t.Context())
	if err != nil {
		return nil, job.Outcome{}, err
	}
	var b bytes.Buffer
	o, err := r.Merge(t.Context(), &b, job.MergeOptions{Name: name, Resource: options()})
	return b.Bytes(), o, err
}

// TestAnySplitIsOnePass: any number of shards, in any order, some of them twice, gives the bytes of one pass.
func TestAnySplitIsOnePass(t *testing.T) {
	sp := dataset(t, 23)
	want := onePass(t, sp)
	r := rand.New(rand.NewPCG(1, 2))
	splits := []int{1, 2, 5, 23, 99}
	if testing.Short() {
		splits = splits[2:3]
	}
	for _, shards := range splits {
		j := planStats(t, sp, shards)
		if len(j.Shards) != min(shards, 23) {
			t.Fatalf("%d shards, want %d", len(j.Shards), min(shards, 23))
		}
		for _, i := range r.Perm(len(j.Shards)) {
			run(t, j, i, false)
			if r.IntN(3) == 0 {
				run(t, j, i, true)
			}
		}
		got, _, err := merge(t, j, "")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%d shards: %.200s\nwant %.200s", shards, got, want)
		}
		s, err := j.Status(t.Context(), false)
		if err != nil || s.Done != len(j.Shards) || s.Skipped != 3 || s.ItemsDone != 23 || len(s.Missing) > 0 {
			t.Errorf("status %+v, %v", s, err)
		}
	}
}

// TestChangedDataset: shards of a dataset that changed since the plan are refused.
func TestChangedDataset(t *testing.T) {
	sp := dataset(t, 6)
	j := planStats(t, sp, 2)
	b, err := os.ReadFile(sp.Source)
	if err != nil {
		t.Fatal(err)
	}
	write(t, sp.Source, b[:strings.LastIndex(strings.TrimSpace(string(b)), "\n")+1])
	if err := j.Run(t.Context(), 0, job.RunOptions{Resource: options()}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNoSamples: a dataset without samples is not a job, however it is to be divided.
func TestNoSamples(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.csv")
	write(t, table, []byte("image\n"))
	sp := spec.Spec{Source: table, Fields: []spec.Field{{Name: "image", Column: "image"}}}
	for _, o := range []job.PlanOptions{{}, {Shards: 2}, {ShardItems: 1}} {
		folder := filepath.Join(t.TempDir(), "job")
		k := &Stats{Dataset{Spec: sp}}
		if _, err := job.Plan(t.Context(), folder, k, o, options()); !errors.Is(err, fault.NotFound) {
			t.Errorf("%+v: %v, want not found", o, err)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%+v: there is a folder", o)
		}
	}
}

// TestHostileSpec: a manifest with a spec that a loader refuses is refused at once.
func TestHostileSpec(t *testing.T) {
	manifest := func(source string) string {
		return fmt.Sprintf(`{"version":1,"kind":"stats","work":{"dataset":{"spec":{"source":%q,"batch_size":1},`+
			`"extent":{"rows":1,"fingerprint":"f"}}},"items":1,"bytes":0,"shards":[{"first":0,"count":1}]}`, source)
	}
	many := `"fields":[{}` + strings.Repeat(",{}", 99) + `],`
	folder := t.TempDir()
	for name, m := range map[string]string{
		"":              manifest("x"),
		"no spec":       strings.Replace(manifest("x"), `"spec":{"source":"x","batch_size":1},`, "", 1),
		"a large spec":  manifest(strings.Repeat("x", 1<<20)),
		"many fields":   strings.Replace(manifest("x"), `"batch`, many+`"batch`, 1),
		"a wrong field": strings.Replace(manifest("x"), `"batch`, `"pixels":1,"batch`, 1),
	} {
		write(t, filepath.Join(folder, "job.json"), []byte(m))
		_, err := Open(t.Context(), folder)
		if name == "" && err != nil {
			t.Fatal(err)
		}
		if name != "" && !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
	}
}

// TestHostileStates: a small result cannot claim more memory than one state may: 16 fields of 2,000 bands, which take
// 512 KiB each, are 16 GB.
func TestHostileStates(t *testing.T) {
	b := append([]byte("CHKS\x01"), byte(chunk.Uint16))
	b = binary.AppendUvarint(b, 2000)
	b = append(b, make([]byte, 2*2000)...)
	var fields []statsField
	for range 16 {
		fields = append(fields, statsField{Name: "image", State: b})
	}
	if _, err := parseStats([]byte(asJSON(t, fields))); !errors.Is(err, fault.Limit) {
		t.Errorf("%v, want limit", err)
	}
}

// FuzzStats: any tally and states are refused with a kind, or count each sample of the shard.
func FuzzStats(f *testing.F) {
	f.Add([]byte(`{"samples":3,"skipped":0}`), []byte(`[]`))
	f.Add([]byte(`{"samples":2,"skipped":1}`), []byte(`[{"name":"image","bands":null,"state":"Q0hLUwEBAQ=="}]`))
	f.Fuzz(func(t *testing.T, tally, states []byte) {
		skipped, err := new(Stats).Check(tally, job.Shard{Count: 3})
		if err != nil && fault.KindOf(err) == 0 || err == nil && (skipped < 0 || skipped > 3) {
			t.Fatalf("%d skipped, %v", skipped, err)
		}
		if _, err := parseStats(states); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("no kind: %v", err)
		}
	})
}
