package verify

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// rastersIn returns the rasters of a container, with their bytes.
func rastersIn(t *testing.T, path string) (entries []store.Entry, contents [][]byte) {
	t.Helper()
	files := &openers.Files{}
	defer files.Close()
	d, err := taco.Open(t.Context(), files, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(path, err)
	}
	defer d.Close()
	for e, err := range d.Leaves(t.Context(), false) {
		if err != nil {
			t.Fatal(path, err)
		}
		r, err := e.Open(t.Context(), files)
		if err != nil {
			t.Fatal(path, err)
		}
		if is, _ := catalog.IsRaster(t.Context(), r); is {
			b := make([]byte, r.Size())
			if err := r.ReadAt(t.Context(), b, 0); err != nil {
				t.Fatal(path, err)
			}
			entries, contents = append(entries, e), append(contents, b)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return entries, contents
}

// verified returns how many faults a file has.
func verified(ctx context.Context, t *testing.T, path string, o Options) int64 {
	t.Helper()
	r, err := Paths(ctx, []string{path}, o)
	if err != nil {
		t.Fatal(path, err)
	}
	return r.Faulty
}

// TestChangedBitsOfSamples promises that a changed bit in a sample is found in every format of containers: where it has
// no checksums, if the sample by itself would be found faulty.
func TestChangedBitsOfSamples(t *testing.T) {
	var paths []string
	err := filepath.WalkDir("../../testdata/containers", func(path string, _ fs.DirEntry, err error) error {
		switch filepath.Ext(path) {
		case ".tortilla", ".taco", ".tacozip":
			if !strings.Contains(path, "/bad/") {
				paths = append(paths, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	formats, found := map[string]int{}, 0
	for _, path := range paths {
		entries, contents := rastersIn(t, path)
		if len(entries) == 0 {
			continue
		}
		if n := verified(t.Context(), t, path, Options{Pixels: true}); n != 0 {
			t.Errorf("%s: %d faults before a bit is changed", path, n)
		}
		whole := testfile.Read(t, path)
		formats[filepath.Ext(path)]++
		first, sample := entries[0], contents[0]
		changed := filepath.Join(t.TempDir(), filepath.Base(path))
		alone := filepath.Join(t.TempDir(), "alone.tif")
		for _, part := range []int{2, 3, 5} {
			bit := len(sample) - len(sample)/part
			b, s := bytes.Clone(whole), bytes.Clone(sample)
			b[first.Offset+int64(bit)] ^= 0x10
			s[bit] ^= 0x10
			testfile.Write(t, changed, b)
			if err := os.WriteFile(alone, s, 0o600); err != nil {
				t.Fatal(err)
			}
			want := verified(t.Context(), t, alone, Options{}) > 0
			if want {
				found++
			}
			checked := filepath.Ext(path) == ".tacozip" // by CRC-32
			if got := verified(t.Context(), t, changed, Options{}) > 0; got != (want || checked) {
				t.Errorf("%s: byte %d of %s: faulty is %v, the sample by itself %v", path, bit, first.Path, got, want)
			}
		}
	}
	if formats[".tortilla"] == 0 || formats[".taco"] == 0 || formats[".tacozip"] == 0 || found == 0 {
		t.Errorf("containers by format: %v; %d changes are found by decoding", formats, found)
	}
}
