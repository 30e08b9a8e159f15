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
	const text = "source: .\nfields: [{codec: {level: 3}}]\nquality: {duplicates: 4}\n"
	report := everyWay(t, dir, text, ways{[]int{1, 2, 7}, []int64{1, 3, 8}}, func(what, _ string,
		res *recipe.Result) {
		if res.Samples != 4 || res.Duplicates != 4 || !strings.Contains(res.LeftOut(), "4 of 8 windows") ||
			!strings.Contains(res.LeftOut(), "4 are duplicates") {
			t.Errorf("%s: %+v", what, res)
		}
	})
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
