package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestChangedInputs: a part is of the files as they were. Each change of a file, of the files of a store or of the
// command has the shard done again, and a merge refuses its part and names it; without one both are kept.
func TestChangedInputs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for i := range 6 {
		testfile.Write(t, file(fmt.Sprint(i)), []byte("pixels"))
	}
	if err := os.MkdirAll(file("store.zarr/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, file("store.zarr/c/0"), []byte("chunk"))
	names := func(_ context.Context, i int64) ([]File, error) {
		return []File{{Name: file(fmt.Sprint(i))}, {Name: file("store.zarr") + "::array"}}, nil
	}
	w := Work{Output: file("out"), Settings: "a", Inputs: "b", Items: 6, Files: names,
		Env: console.Env{Version: "1", Files: &openers.Files{}}}
	shard(t, w, 0, 2)
	shard(t, w, 1, 2)
	if shard(t, w, 0, 2) {
		t.Error("a part was made twice")
	}
	later := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name   string
		change func() error
		shards []bool // which of them are done again
	}{
		{"4", func() error { return os.WriteFile(file("4"), []byte("PIXELS!"), 0o600) }, []bool{false, true}},
		{"1", func() error { return os.Chtimes(file("1"), later, later) }, []bool{true, false}},
		{"2", func() error { return os.Remove(file("2")) }, []bool{true, false}},
		{"2", func() error { return os.WriteFile(file("2"), []byte("pixels"), 0o600) }, []bool{true, false}},
		{"0", func() error { return os.WriteFile(file("store.zarr/c/1"), nil, 0o600) }, []bool{true, true}},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		_, err := mergeOf(t, w, 2)
		if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), file(c.name)) {
			t.Errorf("%s: %v", c.name, err)
		}
		for k, again := range c.shards {
			if shard(t, w, k, 2) != again {
				t.Errorf("%s: shard %d was done again: %v, want %v", c.name, k, !again, again)
			}
		}
	}
	other := w
	other.Env.Version = "2"
	_, err := mergeOf(t, other, 2)
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "by chaski") {
		t.Error(err)
	}
	if _, err := mergeOf(t, w, 2); err != nil {
		t.Error(err)
	}
}

// TestMergeAgain: a merge that has succeeded succeeds again as long as its output and inputs are the same.
func TestMergeAgain(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	testfile.Write(t, in, []byte("pixels"))
	w := Work{Output: out, Settings: "a", Inputs: "b", Items: 1, Env: console.Env{Files: &openers.Files{}},
		Files: func(context.Context, int64) ([]File, error) { return []File{{Name: in}}, nil }}
	outcome := "a fault"
	w.Outcome = &outcome
	again := func() error {
		outcome = ""
		all, err := mergeOf(t, w, 1)
		if err == nil && all != "" {
			t.Errorf("it joined %q", all)
		}
		return err
	}
	write := func() {
		t.Helper()
		outcome = "a fault"
		testfile.Write(t, out, []byte("report"))
		shard(t, w, 0, 1)
		if _, err := mergeOf(t, w, 1); err != nil {
			t.Fatal(err)
		}
		if err := again(); err != nil || outcome != "a fault" {
			t.Errorf("again: %q, %v", outcome, err)
		}
	}
	for _, change := range []func(){
		func() { testfile.Write(t, out, []byte("another")) },
		func() { testfile.Write(t, in, []byte("other pixels")) },
		func() { testfile.Write(t, out+".merged", []byte("{")) },
		func() { _ = os.Remove(out) },
		func() { w.Settings = "other" },
	} {
		write()
		if change(); !errors.Is(again(), fault.NotFound) {
			t.Errorf("%v, want that its part is missing", again())
		}
	}
}
