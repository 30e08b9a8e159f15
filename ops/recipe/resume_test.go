package recipe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// killed is a run in a process of its own, which kills itself at an operation: a sync, a rename, or a finished window.
type killed struct {
	Recipe, Base, Out string
	Output            recipe.Output
	Resume            bool
	At                int // 0 kills never
}

const killedVariable = "CHASKI_TEST_KILLED_MAKE"

// TestKilledRun is such a process: a part of TestKilledRunsGoOn.
func TestKilledRun(t *testing.T) {
	text := os.Getenv(killedVariable)
	if text == "" {
		t.Skip("it is run by TestKilledRunsGoOn")
	}
	var k killed
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	n := 0
	step := func() {
		if n++; n == k.At {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Kill()
			}
			select {}
		}
	}
	durable.Inject(func(f *os.File) error { step(); return nil },
		func(from, to string) error { step(); return os.Rename(from, to) })
	r, err := recipe.Parse([]byte(k.Recipe))
	if err != nil {
		t.Fatal(err)
	}
	_, err = recipe.Make(t.Context(), r, k.Out, recipe.Options{Base: k.Base, Output: k.Output,
		Resume: k.Resume, Shard: 4, Loader: loader.Options{Workers: 2}, Progress: func(int64, int64) { step() }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv(killedVariable+"_COUNT"), []byte(strconv.Itoa(n)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// run runs it, and returns how many operations it had, 0 if it was killed.
func (k killed) run(t *testing.T) int {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	count := filepath.Join(t.TempDir(), "count")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledRun$")
	cmd.Env = append(os.Environ(), killedVariable+"="+string(text), killedVariable+"_COUNT="+count)
	out, err := cmd.CombinedOutput()
	if k.At > 0 && cmd.ProcessState.ExitCode() == -1 { // by a signal
		return 0
	}
	if err != nil {
		t.Fatalf("%+v: %v: %s", k, err, out)
	}
	b, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tree returns the files below a path, or the file at it.
func tree(t *testing.T, path string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		files[strings.TrimPrefix(name, path)] = b
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func sameTree(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

// TestKilledRunsGoOn: a run that is killed at any operation leaves the target as it was or complete, and one with
// --resume after it, which may be killed too, has the bytes of an undisturbed run and leaves nothing beside it. The
// variable CHASKI_SOAK_MAKE has the number of kills for 'make soak-make'.
func TestKilledRunsGoOn(t *testing.T) {
	kills := 6
	if testing.Short() {
		kills = 2
	}
	if text := os.Getenv("CHASKI_SOAK_MAKE"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := scenes(t, 2)
	// A scene that cannot be read, so that there is a reason to note.
	if err := os.WriteFile(filepath.Join(dir, "img", "s0a.tif"), []byte("II*\x00"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "msk", "s0a.tif"), []byte("II*\x00"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 18))
	forms := map[string]recipe.Output{"out.tacozip": {}, "folder": {}, "parts": {PartBytes: 4000}}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		whole := killed{Recipe: head + pairs + "bad_samples: skip\n", Base: dir, Output: forms[name]}
		whole.Out = filepath.Join(t.TempDir(), name)
		operations := whole.run(t)
		want := tree(t, whole.Out)
		if operations < 30 || len(want) == 0 {
			t.Fatalf("%d operations, %d files", operations, len(want))
		}
		for range max(1, kills/len(forms)) {
			k := whole
			k.Out = filepath.Join(t.TempDir(), name)
			k.At = 1 + r.IntN(operations)
			first := k.At
			k.run(t)
			if have := tree(t, k.Out); len(have) > 0 && !sameTree(have, want) {
				t.Fatalf("%s: killed at %d: a part is there", name, k.At)
			}
			os.RemoveAll(k.Out) // a folder that is complete is not written again
			k.Resume, k.At = true, 1+r.IntN(operations)
			if k.run(t) == 0 { // it was killed
				if have := tree(t, k.Out); len(have) > 0 && !sameTree(have, want) {
					t.Fatalf("%s: killed at %d and %d: a part is there", name, first, k.At)
				}
				os.RemoveAll(k.Out)
				k.At = 0
				k.run(t)
			}
			if !sameTree(tree(t, k.Out), want) {
				t.Errorf("%s: killed at %d and %d: other bytes", name, first, k.At)
			}
			if left, err := os.ReadDir(filepath.Dir(k.Out)); err != nil || len(left) != 1 {
				t.Errorf("%s: killed at %d and %d: it leaves %v (%v)", name, first, k.At, left, err)
			}
		}
	}
}

// interrupted makes the first windows of a recipe, in shards of 5, and ends with an error.
func interrupted(t *testing.T, dir, text, out string, windows int64, output ...recipe.Output) {
	t.Helper()
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	injected := errors.New("injected")
	restore := durable.Inject(func(f *os.File) error {
		if strings.HasSuffix(f.Name(), "journal") {
			if st, err := f.Stat(); err != nil || st.Size() > 200 && windows == 0 {
				return injected
			}
			windows -= 5
			windows = max(windows, 0)
		}
		return f.Sync()
	}, os.Rename)
	defer restore()
	o := recipe.Options{Base: dir, Shard: 5}
	for _, o.Output = range output {
	}
	_, err = recipe.Make(t.Context(), r, out, o)
	if !errors.Is(err, injected) {
		t.Fatalf("error %v", err)
	}
}

// TestResumeDoesNotRepeat: what is noted is not read again: the scene of the first chips may be gone. Statistics are
// those of all chips.
func TestResumeDoesNotRepeat(t *testing.T) {
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\nstatistics: true\n"
	want, res, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.tacozip")
	interrupted(t, dir, text, out, 40)
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	// The windows of s0 are the first 25. Its pixels are no longer those, which a run that reads them would notice.
	path := filepath.Join(dir, "img", "s0.tif")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)/2:])
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	made := 0
	again, err := recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Resume: true, Shard: 5,
		Progress: func(int64, int64) { made++ }})
	if err != nil {
		t.Fatal(err)
	}
	if made == 0 || made > 25 || again.Windows != 50 || again.Samples != 50 {
		t.Errorf("%d windows were made again: %+v", made, again)
	}
	if !sameTree(tree(t, out), tree(t, want)) {
		t.Error("other bytes")
	}
	one, err := json.Marshal(res.Report)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(again.Report)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Errorf("statistics %s, want %s", other, one)
	}
}

// TestResumeOfAnother: a run of another recipe, or of other data, does not go on; without --resume it begins again.
func TestResumeOfAnother(t *testing.T) {
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\n"
	out := filepath.Join(t.TempDir(), "out.tacozip")
	interrupted(t, dir, text, out, 20)
	run := func(text string, resume bool) error {
		r, err := recipe.Parse([]byte(head + text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Resume: resume})
		return err
	}
	other := strings.Replace(text, "20", "25", 1)
	if err := run(other, true); !errors.Is(err, fault.Unsupported) {
		t.Errorf("another recipe: %v", err)
	}
	scene(t, filepath.Join(dir, "img", "s2.tif"), 2, 3, side, 10)
	if err := run(text, true); !errors.Is(err, fault.Unsupported) {
		t.Errorf("another scene: %v", err)
	}
	if err := run(other, false); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestDamagedWork: what an interrupted run left is not trusted: bytes that are missing are an error, and a note that is
// cut is left out.
func TestDamagedWork(t *testing.T) {
	race.SkipCovered(t)
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\n"
	want, _, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string]error{"container": fault.Corrupt, "journal": nil} {
		out := filepath.Join(t.TempDir(), "out.tacozip")
		interrupted(t, dir, text, out, 30)
		path := filepath.Join(filepath.Dir(out), ".out.tacozip.chaski-work", name)
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		cut := st.Size() - 1
		if name == "container" {
			cut = 1000
		}
		if err := os.Truncate(path, cut); err != nil {
			t.Fatal(err)
		}
		_, err = recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Resume: true})
		if !errors.Is(err, wants) {
			t.Errorf("%s: %v", name, err)
		}
		if wants == nil && !sameTree(tree(t, out), tree(t, want)) {
			t.Errorf("%s: other bytes", name)
		}
	}
}
