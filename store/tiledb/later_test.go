package tiledb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestUncommittedDoesNotCount: from format 5 on a fragment counts if a file says that it is complete, and then its
// metadata must be there.
func TestUncommittedDoesNotCount(t *testing.T) {
	const id = "__1795177423294_1795177423294_190a5c584e2c33c3c708c4eef2fe0416"
	for _, c := range []struct {
		files  []string
		counts bool
	}{
		{[]string{"__fragments/" + id + "_22/" + metadataName}, false},
		{[]string{"__fragments/" + id + "_22/" + metadataName, "__commits/" + id + "_22.wrt"}, true},
		{[]string{"__commits/" + id + "_22.wrt"}, true},
		{[]string{"__commits/" + id + "_99.wrt"}, true},
		{[]string{id + "_10/" + metadataName}, false}, // TileDB 2.0 to 2.6
		{[]string{id + "_10/" + metadataName, id + "_10.ok"}, true},
		{[]string{"__meta/" + id, "__labels/l0/__schema/" + id, "__fragment_meta/" + id + "_22.meta"}, false},
		{[]string{"__schema/" + id}, true},
		{[]string{"__schema/note.txt", "__commits/note.txt"}, false},
		{[]string{"__commits/" + id + "_22.del"}, true},
		{[]string{"__commits/" + id + "_22.upd"}, true},
		{[]string{"__commits/" + id + "_22.con"}, true},
	} {
		dir := filepath.Join(t.TempDir(), "array")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before_1970"))); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.files {
			file := filepath.Join(dir, filepath.FromSlash(name))
			testfile.Write(t, file, make([]byte, 400))
		}
		var files Files
		_, err := Open(context.Background(), &files, dir, Options{})
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		if !c.counts && err != nil || c.counts && (fault.KindOf(err) == 0 || !strings.Contains(err.Error(), id)) {
			t.Errorf("%v: %v", c.files, err)
		}
	}
}

// TestSchemasWithoutOne: a directory of schemas makes an array, but one must be in it.
func TestSchemasWithoutOne(t *testing.T) {
	dir := t.TempDir()
	is := func() bool { return isArray(parsed(t, dir), nil) }
	if is() {
		t.Error("an empty folder is an array")
	}
	if err := os.Mkdir(filepath.Join(dir, "__schema"), 0o755); err != nil {
		t.Fatal(err)
	}
	var files Files
	defer files.Close()
	if _, err := Open(context.Background(), &files, dir, Options{}); !is() ||
		fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an array: %t, %v", is(), err)
	}
}
