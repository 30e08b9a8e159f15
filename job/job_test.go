package job

import (
	"context"
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
	data, err := filepath.Abs("../testdata")
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
	return asJSON(t, r)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func plan(t *testing.T, sp spec.Spec, shards int) *Job {
	t.Helper()
	j, err := Plan(t.Context(), filepath.Join(t.TempDir(), "job"), Stats, sp, PlanOptions{Shards: shards}, options())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func run(t *testing.T, j *Job, shard int, again bool) {
	t.Helper()
	if err := j.Run(t.Context(), shard, again, options(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestAnySplitIsOnePass: any number of shards, in any order, some of them twice, gives the bytes of one pass.
func TestAnySplitIsOnePass(t *testing.T) {
	sp := dataset(t, 23)
	want := onePass(t, sp)
	r := rand.New(rand.NewPCG(1, 2))
	for _, shards := range []int{1, 2, 5, 23, 99} {
		j := plan(t, sp, shards)
		if len(j.Shards) != min(shards, 23) {
			t.Fatalf("%d shards, want %d", len(j.Shards), min(shards, 23))
		}
		for _, i := range r.Perm(len(j.Shards)) {
			run(t, j, i, false)
			if r.IntN(3) == 0 {
				run(t, j, i, true)
			}
		}
		report, err := j.Merge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, report); got != want {
			t.Errorf("%d shards: %.200s\nwant %.200s", shards, got, want)
		}
		s, err := j.Status()
		if err != nil || s.Done != len(j.Shards) || s.Skipped != 3 || s.Sampled != 23 || len(s.Missing) > 0 {
			t.Errorf("status %+v, %v", s, err)
		}
	}
}

// TestRandomFailures: whatever happens to results - killed, torn, of another job, of another shard, late - Merge gives
// the report of one pass or refuses, and once every shard was run, it gives the report.
func TestRandomFailures(t *testing.T) {
	sp := dataset(t, 11)
	want := onePass(t, sp)
	other := plan(t, sp, 4) // of the same dataset, with other shards
	run(t, other, 0, false)
	histories := uint64(20)
	if testing.Short() {
		histories = 4
	}
	for seed := range histories {
		r := rand.New(rand.NewPCG(seed, 3))
		j := plan(t, sp, 3)
		for range 6 {
			fail(t, r, j, other)
			if report, err := j.Merge(t.Context()); err == nil && asJSON(t, report) != want {
				t.Fatalf("seed %d: a wrong report", seed)
			} else if err != nil && fault.KindOf(err) != fault.NotFound {
				t.Fatalf("seed %d: %v, want not found", seed, err)
			}
		}
		for i := range j.Shards {
			run(t, j, i, false)
		}
		report, err := j.Merge(t.Context())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if asJSON(t, report) != want {
			t.Errorf("seed %d: a wrong report at the end", seed)
		}
	}
}

// fail does something to a job, more often bad than good.
func fail(t *testing.T, r *rand.Rand, j, other *Job) {
	t.Helper()
	folder := filepath.Join(j.folder, resultsName)
	shard := r.IntN(len(j.Shards))
	switch r.IntN(5) {
	case 0:
		run(t, j, shard, r.IntN(2) == 0)
	case 1: // killed after some samples
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := j.Run(ctx, shard, true, options(), func(int64, int64) { cancel() }); err != nil &&
			!errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	case 2: // torn, as an object store or a full disk leaves it
		if names := namesIn(t, folder); len(names) > 0 {
			name := filepath.Join(folder, names[r.IntN(len(names))])
			b := read(t, name)
			write(t, name, b[:r.IntN(len(b)+1)])
		}
	case 3: // a result of another job
		for _, name := range namesIn(t, filepath.Join(other.folder, resultsName)) {
			write(t, filepath.Join(folder, name), read(t, filepath.Join(other.folder, resultsName, name)))
		}
	case 4: // the result of one shard under the name of another
		if names := namesIn(t, folder); len(names) > 0 {
			name := names[r.IntN(len(names))]
			b := read(t, filepath.Join(folder, name))
			write(t, filepath.Join(folder, resultName(shard, b)), b)
		}
	}
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestResultsThatDiffer: two results of one shard that are whole and differ are refused.
func TestResultsThatDiffer(t *testing.T) {
	sp := dataset(t, 6)
	j := plan(t, sp, 2)
	run(t, j, 0, false)
	run(t, j, 1, false)
	var changed result
	name := namesIn(t, filepath.Join(j.folder, resultsName))[0]
	if err := json.Unmarshal(read(t, filepath.Join(j.folder, resultsName, name)), &changed); err != nil {
		t.Fatal(err)
	}
	changed.Samples, changed.Skipped = changed.Samples-1, changed.Skipped+1
	b, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(j.folder, resultsName, resultName(changed.Shard, b)), b)
	if _, err := j.Merge(t.Context()); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}

// TestChangedDataset: shards of a dataset that changed since the plan are refused.
func TestChangedDataset(t *testing.T) {
	sp := dataset(t, 6)
	j := plan(t, sp, 2)
	b := read(t, sp.Source)
	write(t, sp.Source, b[:strings.LastIndex(strings.TrimSpace(string(b)), "\n")+1])
	if err := j.Run(t.Context(), 0, false, options(), nil); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}

// TestRefusals: what is no job, no shard and no kind is refused.
func TestRefusals(t *testing.T) {
	sp := dataset(t, 6)
	j := plan(t, sp, 2)
	for _, shard := range []int{-1, 2} {
		if err := j.Run(t.Context(), shard, false, options(), nil); !errors.Is(err, fault.NotFound) {
			t.Errorf("shard %d: %v, want not found", shard, err)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fault.NotFound) {
		t.Errorf("no job: %v, want not found", err)
	}
	if _, err := Plan(t.Context(), j.folder, Stats, sp, PlanOptions{}, options()); err == nil {
		t.Error("a job is written over another")
	}
	if _, err := Plan(t.Context(), t.TempDir(), "nothing", sp, PlanOptions{}, options()); err == nil {
		t.Error("a job of no kind")
	}
}

// TestNoSamples: a dataset without samples is no job, however it is to be divided.
func TestNoSamples(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.csv")
	write(t, table, []byte("image\n"))
	sp := spec.Spec{Source: table, Fields: []spec.Field{{Name: "image", Column: "image"}}}
	for _, o := range []PlanOptions{{}, {Shards: 2}, {ShardRows: 1}} {
		folder := filepath.Join(t.TempDir(), "job")
		if _, err := Plan(t.Context(), folder, Stats, sp, o, options()); !errors.Is(err, fault.NotFound) {
			t.Errorf("%+v: %v, want not found", o, err)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%+v: there is a folder", o)
		}
	}
}

// TestHostileManifest: a manifest without shards, or with a spec that a loader refuses, is refused at once.
func TestHostileManifest(t *testing.T) {
	manifest := func(source, rows, shards string) string {
		return fmt.Sprintf(`{"version":1,"kind":"stats","spec":{"source":%q,"batch_size":1},`+
			`"extent":{"rows":%s,"fingerprint":"f"},"shards":[%s]}`, source, rows, shards)
	}
	one := `{"first":0,"count":1}`
	many := `"fields":[{}` + strings.Repeat(",{}", 99) + `],`
	if err := new(Job).parse([]byte(manifest("x", "1", one))); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]string{
		"no shards":     manifest("x", "0", ""),
		"an empty one":  manifest("x", "0", `{"first":0,"count":0}`),
		"less samples":  manifest("x", "-1", ""),
		"too far":       manifest("x", "9223372036854775807", `{"first":0,"count":9223372036854775807},`+one),
		"no spec":       `{"version":1,"kind":"stats","extent":{"rows":1},"shards":[` + one + `]}`,
		"a large spec":  manifest(strings.Repeat("x", 1<<20), "1", one),
		"many fields":   strings.Replace(manifest("x", "1", one), `"batch`, many+`"batch`, 1),
		"a wrong field": strings.Replace(manifest("x", "1", one), `"batch`, `"pixels":1,"batch`, 1),
	} {
		if err := new(Job).parse([]byte(m)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
	}
}

// TestHostileResult: a small result cannot claim more memory than one state may: 16 fields of 2,000 bands, which take
// 512 KiB each, are 16 GB.
func TestHostileResult(t *testing.T) {
	j := plan(t, dataset(t, 6), 2)
	b := append([]byte("CHKS\x01"), byte(chunk.Uint16))
	b = binary.AppendUvarint(b, 2000)
	b = append(b, make([]byte, 2*2000)...)
	r := result{Version: Version, Job: j.ID, Samples: 3}
	for range 16 {
		r.Fields = append(r.Fields, field{Name: "image", State: b})
	}
	content := []byte(asJSON(t, r))
	write(t, filepath.Join(j.folder, resultsName, resultName(0, content)), content)
	if _, err := j.Merge(t.Context()); !errors.Is(err, fault.Limit) {
		t.Errorf("%v, want limit", err)
	}
}

// TestHostileMetrics: metrics that no shard can have do not count.
func TestHostileMetrics(t *testing.T) {
	j := plan(t, dataset(t, 6), 2)
	for shard, m := range []string{
		`{"seconds":1e308,"skipped":0}`, `{"seconds":1,"skipped":9223372036854775807}`,
	} {
		run(t, j, shard, false)
		write(t, filepath.Join(j.folder, metricsName, fmt.Sprint(shard)+".json"), []byte(m))
	}
	s, err := j.Status()
	if err != nil || s.Done != 2 || s.Seconds != 0 || s.Skipped != 0 || s.Slowest != -1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// FuzzJob: any manifest and result are refused with a kind, or are a job whose shards have each sample once, and the
// result of one of them.
func FuzzJob(f *testing.F) {
	manifest := `{"version":1,"kind":"stats","spec":{"source":"x","batch_size":1},` +
		`"extent":{"rows":5,"fingerprint":"f"},"shards":[{"first":0,"count":3},{"first":3,"count":2}]}`
	f.Add([]byte(manifest), []byte(`{"version":1,"job":"","shard":0,"samples":3,"skipped":0,"fields":[]}`))
	f.Add([]byte(manifest), []byte(`{"version":1,"job":"","shard":0,"samples":2,"skipped":1,`+
		`"fields":[{"name":"image","bands":null,"state":"Q0hLUwEBAQ=="}]}`))
	f.Add([]byte(`{"version":2}`), []byte(`{`))
	f.Fuzz(func(t *testing.T, m, b []byte) {
		j := &Job{}
		if err := j.parse(m); err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		n := int64(0)
		for _, s := range j.Shards {
			n += s.Count
		}
		if n != j.Extent.Rows {
			t.Fatalf("%d samples in shards, of %d", n, j.Extent.Rows)
		}
		if len(j.Shards) == 0 {
			return
		}
		p, err := j.parseResult(0, b)
		switch {
		case err != nil && fault.KindOf(err) == 0:
			t.Fatalf("no kind: %v", err)
		case err == nil && p.Samples+p.Skipped != j.Shards[0].Count:
			t.Fatalf("%d and %d samples, of %d", p.Samples, p.Skipped, j.Shards[0].Count)
		}
	})
}
