package tiledb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestLaterVersionsAreRefused: TileDB 2 writes to arrays of format 3 and consolidates them; what it adds cannot be
// read, and without it an array is not what it says. A write of its that did not end does not count.
func TestLaterVersionsAreRefused(t *testing.T) {
	const id = "__1795177423294_1795177423294_190a5c584e2c33c3c708c4eef2fe0416"
	for _, c := range []struct {
		file    string
		refused bool
	}{
		{"__fragments/" + id + "_22/" + metadataName, true},
		{"__fragments/" + id + "_22/a0.tdb", false},
		{id + "_10/" + metadataName, true}, // TileDB 2.0 to 2.6
		{id + "_10/a0.tdb", false},
		{"__schema/__1795177423294_1795177423294_190a5c584e2c33c3c708c4eef2fe0416", true},
		{"__meta/" + id, false},
		{"__commits/" + id + "_22.wrt", false},
	} {
		dir := filepath.Join(t.TempDir(), "array")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before_1970"))); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, 400), 0o644); err != nil {
			t.Fatal(err)
		}
		var files Files
		_, err := Open(context.Background(), &files, dir, Options{})
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		if !c.refused && err != nil || c.refused &&
			(fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), filepath.Dir(c.file))) {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}

// TestArrayOfLaterVersion: an array of TileDB 2 is an array, and is refused as what it is.
func TestArrayOfLaterVersion(t *testing.T) {
	dir := t.TempDir()
	if IsArray(dir) {
		t.Error("an empty folder is an array")
	}
	if err := os.Mkdir(filepath.Join(dir, "__schema"), 0o755); err != nil {
		t.Fatal(err)
	}
	var files Files
	defer files.Close()
	if _, err := Open(context.Background(), &files, dir, Options{}); !IsArray(dir) ||
		fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an array: %t, %v", IsArray(dir), err)
	}
}
