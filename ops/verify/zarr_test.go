package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// array3 is a Zarr array of 4 chunks of 4 bytes.
const array3 = `{"zarr_format":3,"node_type":"array","shape":[4,4],"data_type":"uint8","chunk_grid":{"name":` +
	`"regular","configuration":{"chunk_shape":[2,2]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,` +
	`"codecs":["bytes"]}`

// TestZarrStore: every array of a store is checked, a bad one does not hide the others, and one of a type that is not
// read is in the notes.
func TestZarrStore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s.zarr/zarr.json":      `{"zarr_format":3,"node_type":"group"}`,
		"s.zarr/a/zarr.json":    array3,
		"s.zarr/a/c/0/0":        "abcd",
		"s.zarr/a/c/1/1":        "abcd",
		"s.zarr/b/zarr.json":    array3,
		"s.zarr/b/c/0/0":        "abc",
		"s.zarr/b/c/0/1":        "abcde",
		"s.zarr/g/c/zarr.json":  strings.Replace(array3, `[2,2]`, `[2,0]`, 1),
		"s.zarr/g/zarr.json":    `{"zarr_format":3,"node_type":"group"}`,
		"s.zarr/text/zarr.json": strings.Replace(array3, `"uint8"`, `"string"`, 1),
	} {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, []byte(text))
	}
	for _, path := range []string{dir, filepath.Join(dir, "s.zarr")} { // found below a directory, or named
		r, err := Paths(t.Context(), []string{path}, Options{Workers: 2, MaxFaults: 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Files != 3 || r.Arrays != 3 || r.Chunks != 2 || r.Bytes != 8 || r.AbsentChunks != 4 || r.Faulty != 2 {
			t.Errorf("%s: %+v", path, r)
		}
		s := filepath.Join(dir, "s.zarr")
		if len(r.Faults) != 2 || !strings.HasPrefix(r.Faults[0], s+"/b/c/0/0: chunk c/0/0") ||
			!strings.HasSuffix(r.Faults[0], ": corrupt") || !strings.HasPrefix(r.Faults[1], s+"/g/c") {
			t.Errorf("%s: faults %q", path, r.Faults)
		}
		if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "2 chunks or shards cannot be read") ||
			!strings.Contains(r.Notes[1], `text`) || !strings.Contains(r.Notes[1], `codec "bytes"`) {
			t.Errorf("%s: notes %q", path, r.Notes)
		}
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "zarr.json"), []byte(`{"zarr_format":3,"node_type":"group"}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	if r, err := Paths(t.Context(), []string{empty}, Options{}); err != nil || r.Err() == nil {
		t.Errorf("a group without arrays: %+v, %v", r, err)
	}
}
