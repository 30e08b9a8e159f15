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

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/recipe"
)

// killed is a run in a process of its own, which kills itself at an operation: a sync, a rename, or a finished window.
type killed struct {
	Recipe, Base, Out string
	Output            recipe.Output
	At                int // 0 kills never
}

const killedVariable = "CHASKI_TEST_KILLED_MAKE"

// TestKilledRun is such a process: a part of TestKilledRuns.
func TestKilledRun(t *testing.T) {
	text := os.Getenv(killedVariable)
	if text == "" {
		t.Skip("it is run by TestKilledRuns")
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
		Loader: loader.Options{Workers: 2}, Progress: func(int64, int64) { step() }})
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

// TestKilledRuns: a run that is killed at any operation leaves the target as it was or complete, and the next one has
// the bytes of an undisturbed run and leaves nothing beside it. The variable CHASKI_SOAK_MAKE has the number of kills
// for 'make soak-make'.
func TestKilledRuns(t *testing.T) {
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
		if operations < 20 || len(want) == 0 {
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
			k.At = 0
			k.run(t)
			if !sameTree(tree(t, k.Out), want) {
				t.Errorf("%s: killed at %d: other bytes", name, first)
			}
			if left, err := os.ReadDir(filepath.Dir(k.Out)); err != nil || len(left) != 1 {
				t.Errorf("%s: killed at %d: it leaves %v (%v)", name, first, left, err)
			}
		}
	}
}
