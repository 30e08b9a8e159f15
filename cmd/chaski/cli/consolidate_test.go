package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/array"
)

// copyArray copies an array of the corpus, which other programs wrote.
func copyArray(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(testdata(t, "tiledb", "arrays", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fragmentsOf returns the fragments of an array, and the bytes of the files in each.
func fragmentsOf(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "__*_*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, folder := range folders {
		if st, err := os.Stat(folder); err != nil || !st.IsDir() {
			continue
		}
		n := int64(0)
		for _, b := range contents(t, folder) {
			n += int64(len(b))
		}
		out[filepath.Base(folder)] = n
	}
	return out
}

// TestConsolidate: a consolidated array has the same cells in one fragment. The flags decide which
// fragments stay, and the report lists them with the bytes of their files.
func TestConsolidate(t *testing.T) {
	for _, name := range []string{
		"dense_2d_order_rc", "dense_1d_gaps", "dense_var_gaps", "dense_with_sparse_fragment",
	} {
		for _, remove := range []bool{false, true} {
			dir := copyArray(t, name)
			before, want := fragmentsOf(t, dir), chaski(t.Context(), "array", dir)
			first := slices.Min(keysOf(before))
			args := []string{"consolidate", dir}
			if remove {
				args = []string{"consolidate", "--remove", dir}
			}
			r := chaski(t.Context(), args...)
			var got array.Consolidated
			err := json.Unmarshal([]byte(r.out), &got)
			if err != nil || r.code != 0 || r.err != "" || got.Fragment == nil {
				t.Fatalf("%s: %+v", name, r)
			}
			after := fragmentsOf(t, dir)
			size := int64(0)
			for _, f := range got.Merged {
				size += before[f]
			}
			n, there := after[*got.Fragment]
			if !there || n != got.Bytes || size != got.Before || len(got.Merged) != len(before) {
				t.Errorf("%s: %+v; before %v, after %v", name, got, before, after)
			}
			left := len(after) - 1
			if remove && (left != 0 || got.Freed != size) ||
				!remove && (left != len(before) || got.Freed != 0 || len(got.Removed) > 0) {
				t.Errorf("%s, remove %v: %+v; after %v", name, remove, got, after)
			}
			if r := chaski(t.Context(), "array", dir); r.code != 0 || r.out != want.out {
				t.Errorf("%s: it holds %s, want %s", name, r.out, want.out)
			}
			if r := chaski(t.Context(), "verify", dir); r.code != 0 {
				t.Errorf("%s: %+v", name, r)
			}
			if !remove { // as it was
				at := first[2:15]
				now := chaski(t.Context(), "array", "--timestamp", at, dir)
				then := chaski(t.Context(), "array", "--timestamp", at, testdata(t, "tiledb", "arrays", name))
				if now.code != 0 || now.out != then.out {
					t.Errorf("%s at %s: %+v, want %+v", name, at, now, then)
				}
				// A second run finds nothing to merge, and removes the old fragments with --remove.
				r := chaski(t.Context(), "consolidate", "--remove", dir)
				var got array.Consolidated
				err := json.Unmarshal([]byte(r.out), &got)
				if err != nil || r.code != 0 || got.Fragment != nil || len(got.Merged) != 0 ||
					len(got.Removed) != len(before) || got.Freed != size || len(fragmentsOf(t, dir)) != 1 {
					t.Errorf("%s: %+v", name, r)
				}
			}
		}
	}
}

func keysOf(m map[string]int64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// TestConsolidateRefuses: paths that are not local, dense arrays are refused, and a damaged array is not
// changed.
func TestConsolidateRefuses(t *testing.T) {
	for _, args := range [][]string{{t.TempDir()}, {"s3://bucket/cube"}, {copyArray(t, "sparse_var")}} {
		r := chaski(t.Context(), append([]string{"consolidate", "--remove"}, args...)...)
		if r.code != 1 || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"--max-result", "0", "a"}} {
		if r := chaski(t.Context(), append([]string{"consolidate"}, args...)...); r.code != 2 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	dir := copyArray(t, "dense_2d_order_rc")
	files, err := filepath.Glob(filepath.Join(dir, "__*", "*.tdb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Base(f) == "__fragment_metadata.tdb" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] ^= 0xFF
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, dir)
	if r := chaski(t.Context(), "consolidate", "--remove", dir); r.code != 1 || r.out != "" {
		t.Errorf("damaged: %+v", r)
	}
	if after := contents(t, dir); len(after) != len(before) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
}
