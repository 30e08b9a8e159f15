package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFolders(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("docs/architecture.md", "## Where things are\n\n```\nstore/  zarr, and taco\ngone/   it left\n```\n")
	for _, name := range []string{"store/zarr/a.go", "store/hdf5/a.go", "store/taco/deep/a.go", "rest/a.go",
		"store/testdata/x.go", "pages/x.md", ".git/x.go"} {
		write(name, "package a\n")
	}
	got, err := checkFolders(root)
	want := []string{
		"docs/architecture.md names the folder gone/, which is not there",
		"docs/architecture.md does not name rest",
		"docs/architecture.md does not name store/hdf5",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
