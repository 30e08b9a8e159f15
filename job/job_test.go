package job

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader/resources"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestMain lets files be synced without the disk, on which thousands of small ones wait for seconds.
func TestMain(m *testing.M) {
	durable.Inject(func(*os.File) error { return nil }, os.Rename)
	goleak.VerifyTestMain(m)
}

// echo is a kind whose items are words, and whose output is the words in order, a line each. A word that begins with
// "!" cannot be read.
type echo struct {
	Words []string `json:"words"`
	Alike bool     `json:"alike"` // the shards have numbers only
}

var kinds = Kinds{"echo": func() Kind { return new(echo) }}

func (*echo) Name() string { return "echo" }

func (e *echo) Items(context.Context, resources.Options) (Items, error) {
	items := Items{Count: int64(len(e.Words)), Lists: !e.Alike}
	for _, w := range e.Words {
		items.Bytes += int64(len(w))
	}
	items.Each = func(_ context.Context, add func(Item) error) error {
		for _, w := range e.Words {
			b, _ := json.Marshal(w)
			if err := add(Item{Body: b, Bytes: int64(len(w))}); err != nil {
				return err
			}
		}
		return nil
	}
	return items, nil
}

func (e *echo) Run(ctx context.Context, t *Task, body io.Writer) (any, error) {
	for i := range t.Count {
		w := e.Words[t.First+i]
		if !e.Alike {
			if err := json.Unmarshal(t.Bodies[i], &w); err != nil {
				return nil, err
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case w == "!network":
			return nil, errors.New("the network is away")
		case strings.HasPrefix(w, "!"):
			return nil, fault.WithFile(fault.New(fault.Corrupt, "word", fault.NoOffset, "it is bad"), w)
		}
		if _, err := fmt.Fprintln(body, w); err != nil {
			return nil, err
		}
		t.Progress(i+1, t.Count)
	}
	return t.Count, nil
}

func (*echo) Check(tally json.RawMessage, s Shard) (int64, error) {
	var n int64
	if json.Unmarshal(tally, &n) != nil || n != s.Count {
		return 0, corrupt("%s words of %d", tally, s.Count)
	}
	return 0, nil
}

func (*echo) Merge(_ context.Context, m *Merging, out io.Writer) (Outcome, error) {
	for p, err := range m.Parts {
		if err != nil {
			return Outcome{}, err
		}
		if _, err := io.Copy(out, p.Body); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{}, nil
}

func words(n int) (out []string) {
	for i := range n {
		out = append(out, strings.Repeat("w", i*i%17)+fmt.Sprint(i))
	}
	return out
}

func planEcho(t testing.TB, e *echo, o PlanOptions) (*Job, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "job")
	if _, err := Plan(t.Context(), folder, e, o, resources.Options{}); err != nil {
		t.Fatal(err)
	}
	j, err := Open(t.Context(), folder, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return j, folder
}

func run(t testing.TB, j *Job, shard int, again bool) {
	t.Helper()
	if err := j.Run(t.Context(), shard, RunOptions{Again: again}); err != nil {
		t.Fatal(err)
	}
}

func merge(ctx context.Context, j *Job) (string, error) {
	r, err := j.Results(ctx)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	_, err = r.Merge(ctx, &b, MergeOptions{})
	return b.String(), err
}

// TestAnyDivision: however items are divided, each is in one shard, in order, and the limits hold.
func TestAnyDivision(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := &echo{Words: words(rapid.IntRange(1, 60).Draw(r, "items")), Alike: rapid.Bool().Draw(r, "alike")}
		var o PlanOptions
		if rapid.Bool().Draw(r, "number") {
			o.Shards = rapid.IntRange(1, 70).Draw(r, "shards")
		} else {
			o.ShardItems, o.ShardBytes = rapid.IntRange(0, 9).Draw(r, "most"), rapid.Int64Range(0, 40).Draw(r, "bytes")
		}
		j, _ := planEcho(t, e, o)
		if o.Shards > 0 && len(j.Shards) != min(o.Shards, len(e.Words)) {
			r.Fatalf("%d shards of %d items, want %d", len(j.Shards), len(e.Words), o.Shards)
		}
		var got []string
		for i, s := range j.Shards {
			if o.ShardItems > 0 && s.Count > int64(o.ShardItems) ||
				o.ShardBytes > 0 && s.Bytes > o.ShardBytes && s.Count > 1 {
				r.Fatalf("shard %d has %+v", i, s)
			}
			bodies, err := j.bodies(t.Context(), s)
			if err != nil {
				r.Fatal(err)
			}
			for k := range s.Count {
				w := e.Words[s.First+k]
				if !e.Alike {
					if err := json.Unmarshal(bodies[k], &w); err != nil {
						r.Fatal(err)
					}
				}
				got = append(got, w)
			}
		}
		if strings.Join(got, " ") != strings.Join(e.Words, " ") {
			r.Fatalf("items %q, want %q", got, e.Words)
		}
	})
}

// TestDivisionByCost: shards of a given number have about the same cost: none is dearer than its share by more than
// the dearest item.
func TestDivisionByCost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(0, 1<<30), 1, 200).Draw(r, "sizes")
		n := rapid.IntRange(1, 20).Draw(r, "shards")
		items := Items{Count: int64(len(sizes)), Each: func(_ context.Context, add func(Item) error) error {
			for _, s := range sizes {
				if err := add(Item{Bytes: s}); err != nil {
					return err
				}
			}
			return nil
		}}
		dearest := int64(0)
		for _, s := range sizes {
			items.Bytes += s
			dearest = max(dearest, s+itemBytes)
		}
		shards, err := divide(t.Context(), items, PlanOptions{Shards: n}, nil)
		if err != nil {
			r.Fatal(err)
		}
		share := (items.Bytes + itemBytes*items.Count) / int64(len(shards))
		for i, s := range shards {
			if cost := s.Bytes + itemBytes*s.Count; len(sizes) >= 2*n && cost > share+dearest+1 {
				r.Fatalf("shard %d costs %d, a share is %d and the dearest item %d", i, cost, share, dearest)
			}
		}
	})
}

// TestAnyHistory: whatever happens to results - killed, doubled, late, torn, of another job, of another shard - Merge
// gives the output of one pass or refuses, and once every shard was run, it gives the output.
func TestAnyHistory(t *testing.T) {
	events := 12
	if testing.Short() {
		events = 2
	}
	rapid.Check(t, func(r *rapid.T) {
		e := &echo{Words: words(rapid.IntRange(1, 20).Draw(r, "items")), Alike: rapid.Bool().Draw(r, "alike")}
		want := strings.Join(e.Words, "\n") + "\n"
		shards := rapid.IntRange(1, 6).Draw(r, "shards")
		var j *Job
		var in results
		if rapid.Bool().Draw(r, "store") {
			j, in = inStore(t, e, PlanOptions{Shards: shards})
		} else {
			var folder string
			j, folder = planEcho(t, e, PlanOptions{Shards: shards})
			in = directory{t, filepath.Join(folder, resultsName)}
		}
		other, otherFolder := planEcho(t, &echo{Words: words(25)}, PlanOptions{Shards: shards})
		run(t, other, 0, false)
		for range rapid.IntRange(0, events).Draw(r, "events") {
			happen(t, r, j, in, directory{t, filepath.Join(otherFolder, resultsName)})
			if got, err := merge(t.Context(), j); err == nil && got != want {
				r.Fatalf("%q, want %q", got, want)
			} else if err != nil && fault.KindOf(err) != fault.NotFound {
				r.Fatalf("%v, want not found", err)
			}
		}
		if err := j.Local(t.Context(), LocalOptions{Shards: 3}); err != nil {
			r.Fatal(err)
		}
		if got, err := merge(t.Context(), j); err != nil || got != want {
			r.Fatalf("%q, %v, want %q", got, err, want)
		}
	})
}

// results are the results of a job as a test sees them.
type results interface {
	names() []string
	read(name string) []byte
	write(name string, b []byte)
	remove(name string)
}

// directory is the results in a directory.
type directory struct {
	t    testing.TB
	path string
}

func (d directory) names() []string             { return namesIn(d.t, d.path) }
func (d directory) read(name string) []byte     { return read(d.t, filepath.Join(d.path, name)) }
func (d directory) write(name string, b []byte) { write(d.t, filepath.Join(d.path, name), b) }
func (d directory) remove(name string) {
	if err := os.Remove(filepath.Join(d.path, name)); err != nil {
		d.t.Fatal(err)
	}
}

// happen does something to a job, more often bad than good.
func happen(t *testing.T, r *rapid.T, j *Job, in, other results) {
	t.Helper()
	shard := rapid.IntRange(0, len(j.Shards)-1).Draw(r, "shard")
	some := func() string {
		if names := in.names(); len(names) > 0 {
			return rapid.SampledFrom(names).Draw(r, "result")
		}
		return ""
	}
	switch event := rapid.IntRange(0, 6).Draw(r, "event"); event {
	case 0, 1:
		run(t, j, shard, event == 1)
	case 2: // killed after some items
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := j.Run(ctx, shard, RunOptions{Again: true, Progress: func(int64, int64) { cancel() }})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	case 3: // torn, as a copy or a full disk leaves it
		if name := some(); name != "" {
			b := in.read(name)
			in.write(name, b[:rapid.IntRange(0, len(b)).Draw(r, "length")])
		}
	case 4: // lost
		if name := some(); name != "" {
			in.remove(name)
		}
	case 5: // a result of another job
		for _, name := range other.names() {
			in.write(name, other.read(name))
		}
	case 6: // the result of one shard under the name of another
		if name := some(); name != "" {
			_, hash, _ := strings.Cut(name, ".")
			in.write(resultName(shard, hash), in.read(name))
		}
	}
}

func namesIn(t testing.TB, folder string) (names []string) {
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

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestResultsThatDiffer: two results of one shard that are whole and differ are refused.
func TestResultsThatDiffer(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 2})
	run(t, j, 0, false)
	run(t, j, 1, false)
	folder = filepath.Join(folder, resultsName)
	b := append(read(t, filepath.Join(folder, namesIn(t, folder)[0])), "more\n"...)
	s := newScratch()
	if _, err := s.Write(b); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, resultName(0, s.hash())), b)
	if _, err := merge(t.Context(), j); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}

// TestOnePlanWins: of plans into one folder at once, one writes the job and the others are refused.
func TestOnePlanWins(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "job")
	onePlanWins(t, func(e *echo) (*Job, error) {
		return Plan(t.Context(), folder, e, PlanOptions{}, resources.Options{})
	}, func() (*Job, error) { return Open(t.Context(), folder, kinds) })
}

// onePlanWins makes eight plans of different lists at once, of which one is to win.
func onePlanWins(t *testing.T, plan func(*echo) (*Job, error), open func() (*Job, error)) {
	var mu sync.Mutex
	var won []string
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			j, err := plan(&echo{Words: words(i + 1)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, j.ID)
			case !strings.Contains(err.Error(), "there is a job already"):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	j, err := open()
	if err != nil || len(won) != 1 || won[0] != j.ID {
		t.Fatalf("%d plans won, %v", len(won), err)
	}
	for i := range j.Shards {
		run(t, j, i, false) // the list is that of the winner
	}
	if _, err := merge(t.Context(), j); err != nil {
		t.Error(err)
	}
}

// TestUnwritable: a shard of a folder that cannot be written fails before it does anything.
func TestUnwritable(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 2})
	results := filepath.Join(folder, resultsName) // a mode would not hold root back; a file in its place does
	if err := os.Remove(results); err != nil {
		t.Fatal(err)
	}
	write(t, results, nil)
	did := false
	err := j.Run(t.Context(), 0, RunOptions{Again: true, Progress: func(int64, int64) { did = true }})
	if err == nil || did {
		t.Errorf("%v, it began: %v", err, did)
	}
}

// TestErrors: Local ends with the first error, or does the other shards before; errors of files are not tried again.
// The status has what failed.
func TestErrors(t *testing.T) {
	e := &echo{Words: []string{"a", "!bad", "b", "!network", "c"}}
	j, _ := planEcho(t, e, PlanOptions{ShardItems: 1})
	if err := j.Local(t.Context(), LocalOptions{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
	last := int64(0)
	err := j.Local(t.Context(), LocalOptions{IgnoreErrors: true, Shards: 2, Progress: func(done, total int64) {
		if last = done; total != 5 {
			t.Errorf("total %d", total)
		}
	}})
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "(2 shards failed") || last != 3 {
		t.Errorf("%v after %d items", err, last)
	}
	s, err := j.Status(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if s.Done != 3 || fmt.Sprint(s.Failed, s.Missing, s.Running) != "[1 3] [1 3] []" || len(s.Runs) != 5 ||
		s.Runs[1].Error != "!bad: word: it is bad: corrupt" || s.Runs[1].Kind != "corrupt" || s.Runs[3].Kind != "" {
		t.Errorf("%+v", s)
	}
	if _, err := merge(t.Context(), j); !errors.Is(err, fault.NotFound) {
		t.Errorf("%v, want not found", err)
	}
}

// flaky is echo, with a network that fails some times.
type flaky struct {
	echo
	fails *int
}

func (f *flaky) Run(ctx context.Context, t *Task, body io.Writer) (any, error) {
	if *f.fails > 0 {
		*f.fails--
		if _, err := io.WriteString(body, "half of a result"); err != nil {
			return nil, err
		}
		return nil, errors.New("the network is away")
	}
	return f.echo.Run(ctx, t, body)
}

// TestRetry: a shard is tried again as often as asked, and nothing of a failed try is in its result.
func TestRetry(t *testing.T) {
	for fails, want := range []bool{true, true, true, false} {
		k := &flaky{echo{Words: words(3)}, &fails}
		j, err := Plan(t.Context(), filepath.Join(t.TempDir(), "job"), k, PlanOptions{}, resources.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Run(t.Context(), 0, RunOptions{Retry: 2}); (err == nil) != want {
			t.Fatalf("%v, %d left", err, fails)
		}
		if got, err := merge(t.Context(), j); want && (err != nil || got != strings.Join(words(3), "\n")+"\n") {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestRefusals: a folder without a job, and numbers and names that no shard or kind has, are refused.
func TestRefusals(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 2})
	for _, shard := range []int{-1, 2} {
		if err := j.Run(t.Context(), shard, RunOptions{}); !errors.Is(err, fault.NotFound) {
			t.Errorf("shard %d: %v, want not found", shard, err)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), kinds); !errors.Is(err, fault.NotFound) {
		t.Errorf("no job: %v, want not found", err)
	}
	if _, err := Open(t.Context(), folder, Kinds{}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("no kind: %v, want unsupported", err)
	}
	if _, err := Plan(t.Context(), folder, &echo{Words: words(2)}, PlanOptions{}, resources.Options{}); err == nil {
		t.Error("a job is written over another")
	}
	empty := filepath.Join(t.TempDir(), "job")
	_, err := Plan(t.Context(), empty, &echo{}, PlanOptions{}, resources.Options{})
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("no items: %v, want not found", err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no items: %v", err)
	}
}

// manifest returns the text of a job of echo.
func manifest(items, list, shards string) string {
	return fmt.Sprintf(`{"version":1,"kind":"echo","work":{"words":[],"alike":true},"items":%s,"bytes":9,"list":%q,`+
		`"shards":[%s]}`, items, list, shards)
}

// TestHostileManifest: a manifest whose shards do not have each item once is refused at once.
func TestHostileManifest(t *testing.T) {
	one := `{"first":0,"count":1}`
	list := listPrefix + strings.Repeat("0", hashDigits)
	if err := new(Job).parse([]byte(manifest("1", "", one)), kinds); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]string{
		"no shards":     manifest("0", "", ""),
		"an empty one":  manifest("0", "", `{"first":0,"count":0}`),
		"less items":    manifest("-1", "", one),
		"too far":       manifest("9223372036854775807", "", `{"first":0,"count":9223372036854775807},`+one),
		"too few":       manifest("2", "", one),
		"a path":        manifest("1", "../items", `{"first":0,"count":1,"length":1}`),
		"no list":       manifest("1", "", `{"first":0,"count":1,"length":1}`),
		"nothing of it": manifest("1", list, one),
		"a gap":         manifest("1", list, `{"first":0,"count":1,"offset":1,"length":1}`),
		"too long":      manifest("1", list, `{"first":0,"count":1,"length":9223372036854775807}`),
		"bytes":         manifest("1", "", `{"first":0,"count":1,"bytes":10}`),
	} {
		if err := new(Job).parse([]byte(m), kinds); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
	}
}

// TestHostileList: a list that is not that of the plan is refused.
func TestHostileList(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 2})
	name := filepath.Join(folder, j.List)
	b := read(t, name)
	for _, c := range [][]byte{{}, b[:len(b)/2], append([]byte{1}, b[1:]...)} {
		write(t, name, c)
		if err := j.Run(t.Context(), 0, RunOptions{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%v, want corrupt", err)
		}
	}
}

// TestLongList: a list takes as much memory as its lines do, which is more than their bytes.
func TestLongList(t *testing.T) {
	e := &echo{Words: make([]string, 1000)}
	j, folder := planEcho(t, e, PlanOptions{Shards: 1})
	b := read(t, filepath.Join(folder, j.List))
	if len(b) > 100 {
		t.Fatalf("the list has %d bytes", len(b))
	}
	if _, err := parseBodies(b, j.Shards[0], 1000*lineBytes); !errors.Is(err, fault.Limit) {
		t.Errorf("%v, want limit", err)
	}
	if got, err := parseBodies(b, j.Shards[0], 1000*(lineBytes+2)); err != nil || len(got) != 1000 {
		t.Errorf("%d items, %v", len(got), err)
	}
}

// TestNamesThatAreNoText: a name that JSON cannot hold would become that of another file.
func TestNamesThatAreNoText(t *testing.T) {
	for _, c := range []struct {
		word string
		ok   bool
	}{
		{"lat\xe9in", false}, {"\xff", false}, {"lat\ufffdin", true}, {`\ufffd`, true}, {`\\ufffd`, true},
		{"\\\xff", false},
	} {
		for _, alike := range []bool{true, false} {
			e := &echo{Words: []string{"a", c.word}, Alike: alike}
			folder := filepath.Join(t.TempDir(), "job")
			_, err := Plan(t.Context(), folder, e, PlanOptions{}, resources.Options{})
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%q, alike %v: %v", c.word, alike, err)
			}
			if _, err := os.Stat(folder); !c.ok && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", c.word, err)
			}
		}
	}
}

// TestHostileRecords: records that no shard can have do not count.
func TestHostileRecords(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 2})
	for shard, m := range []string{
		`{"state":"done","seconds":1e308,"skipped":0}`, `{"state":"done","seconds":1,"skipped":9223372036854775807}`,
	} {
		run(t, j, shard, false)
		write(t, filepath.Join(folder, recordName(shard)), []byte(m))
	}
	s, err := j.Status(t.Context(), false)
	if err != nil || s.Done != 2 || s.Seconds != 0 || s.Skipped != 0 || s.Slowest != -1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestLargeScratch: a scratch that no longer fits in memory has the same bytes.
func TestLargeScratch(t *testing.T) {
	s := newScratch()
	s.most = 1 << 20
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<13)
	for range 10 {
		if _, err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if s.file == nil {
		t.Fatal("it is in memory")
	}
	r := bufio.NewReader(io.NewSectionReader(s, 0, s.size))
	got := make([]byte, len(piece))
	for n := int64(0); n < s.size; n += int64(len(piece)) {
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, piece) {
			t.Fatalf("at %d: %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzJob: any manifest, list and result are refused with a kind, or are a job whose shards have each item once, the
// items of the first one, and its result.
func FuzzJob(f *testing.F) {
	list := listPrefix + strings.Repeat("0", hashDigits)
	f.Add([]byte(manifest("5", "", `{"first":0,"count":3},{"first":3,"count":2}`)), []byte(`"a"`),
		[]byte(`{"version":1,"job":"","shard":0,"tally":3}`))
	f.Add([]byte(manifest("1", list, `{"first":0,"count":1,"length":9,"sum":"0"}`)), []byte("\x28\xb5\x2f\xfd"),
		[]byte(`{"version":1,"job":"","shard":0,"tally":1}`))
	f.Add([]byte(`{"version":2}`), []byte{}, []byte(`{`))
	f.Fuzz(func(t *testing.T, m, bodies, b []byte) {
		j := &Job{}
		if err := j.parse(m, kinds); err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		n := int64(0)
		for _, s := range j.Shards {
			n += s.Count
		}
		if n != j.Items {
			t.Fatalf("%d items in shards, of %d", n, j.Items)
		}
		// With the right hash, so that what is behind it is tried as well.
		s := j.Shards[0]
		sum := newScratch()
		_, _ = sum.Write(bodies)
		s.Sum = sum.hash()
		if got, err := parseBodies(bodies, s, maxBodies); err != nil && fault.KindOf(err) == 0 ||
			err == nil && int64(len(got)) != s.Count {
			t.Fatalf("%d items, %v", len(got), err)
		}
		if _, err := j.parseHeader(0, b); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("no kind: %v", err)
		}
	})
}
