package recipe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/tiff"
)

// pictures writes images of noise into a folder. Those of one letter have the same noise; a digit behind it adds to all
// pixels, and changes as many of them.
func pictures(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		const n = 32
		r := rand.New(rand.NewPCG(uint64(name[0]), 0))
		more := int(name[1] - '0')
		pixels := make([]byte, 2*n*n)
		for k := range n * n {
			v := r.IntN(30000) + 1 + 100*more
			pixels[2*k], pixels[2*k+1] = byte(v), byte(v>>8)
		}
		for k := range more {
			pixels[200*k+1] ^= 3
		}
		var w bytes.Buffer
		if err := tiff.WriteTOG(&w, pixels, tiff.TOGOptions{Shape: [3]int{1, n, n}, DType: chunk.Uint16, Tile: 16,
			Level: 1, NoData: "0"}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d%s.tif", i, name)), w.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDuplicates: chips with the picture of an earlier one are left out and counted, with the same bytes and statistics
// for any number of workers, after an interruption and in parts: those of the chips that stay.
func TestDuplicates(t *testing.T) {
	unsynced(t)
	dir := pictures(t, "a0", "a1", "b0", "a2", "b3", "c0", "a0", "d0")
	const text = "source: .\nquality: {duplicates: 4}\n"
	r := parsed(t, text)
	var first []byte
	var report string
	look := func(what, out string, res *recipe.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		if res.Samples != 4 || res.Duplicates != 4 || !strings.Contains(res.LeftOut(), "4 of 8 windows") ||
			!strings.Contains(res.LeftOut(), "4 are duplicates") {
			t.Errorf("%s: %+v", what, res)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		said, err := json.Marshal(res.Report)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first, report = b, string(said)
		}
		if !bytes.Equal(b, first) || string(said) != report {
			t.Errorf("%s: other bytes or statistics", what)
		}
	}
	for _, workers := range []int{1, 2, 7} {
		out, res, err := create(t, dir, text, workers)
		look(fmt.Sprint(workers), out, res, err)
	}
	for _, done := range []int64{1, 4, 7} {
		out := filepath.Join(t.TempDir(), "out.tacozip")
		o := recipe.Options{Base: dir, Shard: 1, Resume: true}
		interrupt(t, r, out, o, done)
		res, err := recipe.Make(t.Context(), r, out, o)
		look("resumed", out, res, err)
	}
	for _, n := range []int64{1, 3, 8} {
		e, all, counts := parts(t, r, dir, n)
		out := filepath.Join(t.TempDir(), "out.tacozip")
		res, err := joined(t.Context(), r, out, e, all, recipe.Options{Base: dir})
		look("parts", out, res, err)
		if counts.Chips != 8 {
			t.Errorf("%+v", counts)
		}
	}
	// What stays, alone.
	out, res, err := create(t, dir, "source: \"*[abcd]0.tif\"\nquality: {duplicates: 0}\n", 2)
	if err != nil || res.Duplicates != 1 {
		t.Fatalf("%s %+v %v", out, res, err)
	}
	said, err := json.Marshal(res.Report)
	if err != nil || string(said) != report {
		t.Errorf("statistics %s, want those of what stays, %s (%v)", report, said, err)
	}
}
