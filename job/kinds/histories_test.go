package kinds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/ops/verify"
)

// history is a kind with what its one-pass twin gives.
type history struct {
	kind  func() job.Kind
	other job.Kind // of the same kind, for other files
	want  []byte
	forms []form // of a container, with what one run makes
	// check, if not nil, says what is wrong with what shards write elsewhere, and damage damages it.
	check  func() error
	damage func(r *rand.Rand)
}

// form is a form of a container, and its files.
type form struct {
	name   string
	output recipe.Output
	want   map[string]string
}

// formsOf makes a recipe in each form.
func formsOf(t *testing.T, text []byte, base string) (all []form) {
	t.Helper()
	parsed, err := recipe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []form{{name: "out.tacozip"}, {name: "folder"},
		{name: "parts", output: recipe.Output{PartBytes: 4000}}} {
		out := filepath.Join(t.TempDir(), f.name)
		if _, err := recipe.Make(t.Context(), parsed, out, recipe.Options{Base: base, Loader: options(),
			Output: f.output}); err != nil {
			t.Fatal(err)
		}
		f.want = tree(t, out)
		all = append(all, f)
	}
	if n := len(all[2].want); n < 5 { // two of them are the index
		t.Fatalf("%d files in parts of 4 KB", n)
	}
	return all
}

// histories returns one for each kind.
func histories(t *testing.T) map[string]*history {
	t.Helper()
	sp, few := dataset(t, 9), dataset(t, 4)
	dir := chips(t, 7)
	src, base := filepath.Join(dir, "chips"), filepath.Join(dir, "chips", "a")
	write(t, filepath.Join(src, "b", "bad.tif"), []byte("no TIFF"))
	catalog, _ := catalogOf(t, []string{src}, dir, false, true)
	one, err := verify.Paths(t.Context(), []string{src}, verify.Options{MaxFaults: 9})
	if err != nil {
		t.Fatal(err)
	}
	grid := sp
	grid.Fields = sp.Fields[:1]
	fewGrid := few
	fewGrid.Fields = grid.Fields
	var weights bytes.Buffer
	wo := survey.WeightOptions{Field: "image", Cell: 16}
	if err := survey.Weights(t.Context(), &weights, grid, options(), wo, nil); err != nil {
		t.Fatal(err)
	}
	text, chipsDir := chipsRecipe(t, 4)
	fewText, fewDir := chipsRecipe(t, 2)
	pairsOf := pairsDir(t, 6)
	table := filepath.Join(pairsOf, "table.csv")
	pairsTable, _, _ := pairsCatalog(t, table, pairsOf, imagesAndMasks(true))
	all := map[string]*history{
		statsName: {kind: func() job.Kind { return &Stats{Dataset{Spec: sp}} }, other: &Stats{Dataset{Spec: few}},
			want: []byte(onePass(t, sp))},
		weightsName: {
			kind:  func() job.Kind { return &Weights{Dataset: Dataset{Spec: grid}, Field: "image", Cell: 16} },
			other: &Weights{Dataset: Dataset{Spec: fewGrid}, Field: "image", Cell: 16}, want: weights.Bytes()},
		verifyName: {kind: func() job.Kind { return &Verify{Paths: []string{src}, MaxFaults: 9} },
			other: &Verify{Paths: []string{base}, MaxFaults: 9}, want: []byte(asJSON(t, one) + "\n")},
		indexName: {kind: func() job.Kind { return &Index{Paths: []string{src}, Base: dir, SkipBad: true} },
			other: &Index{Paths: []string{base}, Base: dir}, want: catalog},
		"index of pairs": {kind: func() job.Kind {
			return &Index{Paths: []string{table}, Base: pairsOf, SkipBad: true,
				Pairs: &IndexPairs{Fields: imagesAndMasks(true), Drop: true}}
		}, other: &Index{Paths: []string{pairsOf}, Base: pairsOf, SkipBad: true,
			Pairs: &IndexPairs{Fields: imagesAndMasks(false), Drop: true}}, want: pairsTable},
		makeName: {kind: func() job.Kind { return newMake(t, text, chipsDir) }, other: newMake(t, fewText, fewDir),
			forms: formsOf(t, text, chipsDir)},
		convertName: convertHistory(t, src, base),
	}
	for name := range All {
		if all[name] == nil {
			t.Errorf("no history of kind %s", name)
		}
	}
	return all
}

// convertHistory is that of conversions, whose files lie elsewhere.
func convertHistory(t *testing.T, src, other string) *history {
	into := filepath.Join(t.TempDir(), "new")
	files := convertedDirectly(t, src)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return &history{
		kind: func() job.Kind {
			return &Convert{Paths: []string{src}, Into: into, Overwrite: true, SkipBad: true, Options: togs()}
		},
		other: &Convert{Paths: []string{other}, Into: filepath.Join(t.TempDir(), "other"), Options: togs()},
		check: func() error {
			if have := tree(t, into); fmt.Sprint(have) != fmt.Sprint(files) {
				return fmt.Errorf("the files are %v, want %v", have, files)
			}
			return nil
		},
		damage: func(r *rand.Rand) {
			name := filepath.Join(into, names[r.IntN(len(names))])
			var err error
			if r.IntN(2) == 0 {
				err = os.Remove(name)
			} else {
				err = os.Truncate(name, 10)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		},
	}
}

// TestAnyHistoryOfAnyKind: whatever happens to the shards of a job, its merge gives the output of one pass or refuses
// with a kind, and once all shards were run it gives that output. In a history, shards are run, run again, by two at
// once, killed, and written late by a worker that everybody took for dead; results are torn, have a bit flipped, are
// lost, doubled under other names, or are those of another job. CHASKI_SOAK_HISTORIES has the number of histories of
// each kind for 'make soak-jobs'.
func TestAnyHistoryOfAnyKind(t *testing.T) {
	// Thousands of small files wait for the disk for seconds, and nothing here cuts the power.
	t.Cleanup(durable.Inject(func(*os.File) error { return nil }, os.Rename))
	n, events := 1, 8
	if text := os.Getenv("CHASKI_SOAK_HISTORIES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		events = 16
	}
	for name, h := range histories(t) {
		t.Run(name, func(t *testing.T) {
			other, refused, right := resultsOf(t, h.other), 0, 0
			for seed := range n {
				p := &past{history: h, t: t, r: rand.New(rand.NewPCG(uint64(seed), 19)), foreign: other}
				p.plan(seed%2 == 1)
				if p.r.IntN(2) == 0 { // most of what happens to a job happens to one that is nearly done
					p.finish()
				}
				for range 1 + p.r.IntN(events) {
					p.happen()
					err := p.merged()
					if errors.Is(err, errOther) || err != nil && fault.KindOf(err) == 0 {
						t.Fatalf("history %d: %v after %q", seed, err, p.told)
					}
					if err == nil {
						right++
					} else {
						refused++
					}
				}
				p.finish()
				if err := p.merged(); err != nil {
					t.Fatalf("history %d: at the end: %v after %q", seed, err, p.told)
				}
			}
			t.Logf("%d histories: %d merges are right, %d refused", n, right, refused)
			if n > 3 && (refused == 0 || right == 0) {
				t.Error("histories that show nothing")
			}
		})
	}
}

// resultsOf does a job in three shards, and returns its results by their names.
func resultsOf(t *testing.T, k job.Kind) map[string][]byte {
	t.Helper()
	j := plan(t, k, 3)
	if err := j.Local(t.Context(), job.LocalOptions{RunOptions: job.RunOptions{Resource: options()}}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(j.folder, "results", "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// past is a job to which something happened.
type past struct {
	*history
	t       *testing.T
	r       *rand.Rand
	j       *job.Job
	bucket  *blob.Bucket // the folder that the job lies in, whatever it is
	foreign map[string][]byte
	told    []string
}

// results is where results are in the bucket.
const results = "job/results/"

// plan plans the job, in a directory or in a store.
func (p *past) plan(store bool) {
	p.t.Helper()
	var folder job.Folder
	if store {
		p.bucket = memblob.OpenBucket(nil)
		folder = job.Objects(p.bucket, "job", "mem://b/job")
	} else {
		dir := p.t.TempDir()
		b, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
		if err != nil {
			p.t.Fatal(err)
		}
		p.bucket, folder = b, job.Dir(filepath.Join(dir, "job"))
	}
	p.t.Cleanup(func() { _ = p.bucket.Close() })
	var err error
	o := job.PlanOptions{Shards: 1 + p.r.IntN(5)}
	if p.j, err = job.PlanIn(p.t.Context(), folder, p.kind(), o, options()); err != nil {
		p.t.Fatal(err)
	}
}

// names returns the names of the results.
func (p *past) names() (names []string) {
	it := p.bucket.List(&blob.ListOptions{Prefix: results})
	for {
		o, err := it.Next(p.t.Context())
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			p.t.Fatal(err)
		}
		names = append(names, path.Base(o.Key))
	}
}

func (p *past) read(name string) []byte {
	b, err := p.bucket.ReadAll(p.t.Context(), results+name)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p *past) write(name string, b []byte) {
	if err := p.bucket.WriteAll(p.t.Context(), results+name, b, nil); err != nil {
		p.t.Fatal(err)
	}
}

// run does a shard again. progress may end the run with its context.
func (p *past) run(ctx context.Context, shard int, again bool, progress func(done, total int64)) error {
	return p.j.Run(ctx, shard, job.RunOptions{Again: again, Resource: options(), Progress: progress})
}

func (p *past) must(err error) {
	if err != nil {
		p.t.Fatalf("%v after %q", err, p.told)
	}
}

// happen does something to the job, more often bad than good.
func (p *past) happen() {
	ctx, shard := p.t.Context(), p.r.IntN(len(p.j.Shards))
	tell := func(what string) { p.told = append(p.told, fmt.Sprintf("%s %d", what, shard)) }
	event := p.r.IntN(12)
	name := ""
	if names := p.names(); len(names) > 0 {
		name = names[p.r.IntN(len(names))]
	} else if event > 5 {
		event = 0 // there is nothing to damage
	}
	switch event {
	case 0, 1:
		tell("run")
		p.must(p.run(ctx, shard, event == 1, nil))
	case 2:
		tell("killed")
		p.killed(shard)
	case 3:
		tell("by two at once")
		var errs [2]error
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = p.run(ctx, shard, true, nil) })
		}
		wg.Wait()
		p.must(errors.Join(errs[:]...))
	case 4:
		tell("late")
		p.late(shard)
	case 5:
		tell("another job's results")
		for name, b := range p.foreign {
			p.write(name, b)
		}
	case 6:
		tell("torn")
		b := p.read(name)
		p.write(name, b[:p.r.IntN(len(b))])
	case 7:
		tell("a bit flipped")
		b := p.read(name)
		if len(b) > 0 {
			b[p.r.IntN(len(b))] ^= byte(1 << p.r.IntN(8))
		}
		p.write(name, b)
	case 8:
		tell("lost")
		if err := p.bucket.Delete(ctx, results+name); err != nil {
			p.t.Fatal(err)
		}
	case 9:
		tell("under the name of another shard")
		_, hash, _ := strings.Cut(name, ".")
		p.write(strconv.Itoa(shard)+"."+hash, p.read(name))
	case 10:
		tell("under a name of other content")
		p.write(strconv.Itoa(shard)+"."+strings.Repeat("0a", 16), p.read(name))
	case 11:
		if p.damage != nil {
			tell("a file of the output is damaged")
			p.damage(p.r)
		}
	}
}

// killed does a shard and ends it after some items.
func (p *past) killed(shard int) {
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	left := p.r.Int64N(p.j.Shards[shard].Count + 1)
	err := p.run(ctx, shard, true, func(done, _ int64) {
		if done >= left {
			cancel()
		}
	})
	if err != nil && ctx.Err() == nil {
		p.must(err)
	}
}

// late has one worker hang within a shard, a second one do it, and then the first one go on.
func (p *past) late(shard int) {
	hangs, goOn, done := make(chan bool), make(chan bool), make(chan error)
	var once sync.Once
	go func() {
		done <- p.run(p.t.Context(), shard, true, func(int64, int64) {
			once.Do(func() {
				close(hangs)
				<-goOn
			})
		})
	}()
	select {
	case <-hangs:
		p.must(p.run(p.t.Context(), shard, false, nil))
		close(goOn)
		p.must(<-done)
	case err := <-done: // without progress: every kind has some, so that this is an error
		p.t.Fatalf("the shard ended without progress: %v", err)
	}
}

// finish does what is left, as 'chaski job local' does, and where the merge says that files of the output are damaged,
// all shards again.
func (p *past) finish() {
	o := job.RunOptions{Resource: options()}
	p.must(p.j.Local(p.t.Context(), job.LocalOptions{RunOptions: o, Shards: 2}))
	if p.damage == nil || p.merged() == nil {
		return
	}
	for shard := range p.j.Shards {
		p.must(p.run(p.t.Context(), shard, true, nil))
	}
}

// errOther says that a merge did not refuse, and gave another output than one pass.
var errOther = errors.New("another output")

// merged merges the job.
func (p *past) merged() error {
	r, err := p.j.Results(p.t.Context())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if p.j.Places() {
		return p.placed(r)
	}
	if _, err := r.Merge(p.t.Context(), &b, job.MergeOptions{Resource: options()}); err != nil {
		return err
	}
	switch {
	case p.check != nil:
		if err := p.check(); err != nil {
			return fmt.Errorf("%w: %v", errOther, err)
		}
	case !bytes.Equal(b.Bytes(), p.want):
		return fmt.Errorf("%w: %d bytes, want %d", errOther, b.Len(), len(p.want))
	}
	return nil
}

// placed merges the job into each form of a container.
func (p *past) placed(r *job.Results) error {
	for _, f := range p.forms {
		out := filepath.Join(p.t.TempDir(), f.name)
		o := job.MergeOptions{Name: out, Output: f.output, Resource: options()}
		if _, err := r.Place(p.t.Context(), o); err != nil {
			return err
		}
		if have := tree(p.t, out); !maps.Equal(have, f.want) {
			return fmt.Errorf("%w: %s has %v, want %v", errOther, f.name, have, f.want)
		}
		if err := os.RemoveAll(filepath.Dir(out)); err != nil {
			return err
		}
	}
	return nil
}
