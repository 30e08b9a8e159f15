package tiledb

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestDrawnArrays: 40 random arrays that libtiledb 1.6.3 wrote, of all kinds of schemas and with fragments over each
// other, hold what was written, and are without fault.
func TestDrawnArrays(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, corpus.Packed(t, "drawn.zip")); err != nil {
		t.Fatal(err)
	}
	text := testfile.Read(t, filepath.Join(dir, "reads.jsonl"))
	n := 0
	for line := range bytes.Lines(text) {
		var w writtenArray
		if err := json.Unmarshal(line, &w); err != nil {
			t.Fatal(err)
		}
		n++
		for i := range w.Reads {
			r := &w.Reads[i]
			r.Read.Path = filepath.Join(dir, r.Read.Path)
			if got := r.read(); !got.equal(&r.oracleResult) {
				t.Errorf("%d in %s: %+v, want %+v; %s", w.Seed, r.Text, got, r.oracleResult, w.What)
			}
		}
	}
	if n != 40 {
		t.Errorf("%d arrays", n)
	}
}

// TestNamesOfAttributes reads attributes whose names look like those of other files: the first cell of each has its
// number, the second 9.
func TestNamesOfAttributes(t *testing.T) {
	for name, attrs := range map[string][]string{"names-0": {"a", "a_var"}, "names-1": {"a", "a_var"},
		"names-2": {"..", "_a"}} {
		a := openLocal(t, corpus.Known(t, name), Options{})
		for i, attr := range attrs {
			got := everything(t, a)[i]
			if a.Schema.Attr(attr) != i || string(got.Data) != string([]byte{byte(i + 1), 9}) ||
				a.Schema.Attrs[i].Var() && !slices.Equal(got.Offsets, []uint64{0, 1}) {
				t.Errorf("%s: %q is %v", name, attr, got)
			}
		}
	}
}
