package rumis_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestWithoutRumi promises that a program that does not import package rumi is told so, for files of all generations,
// and reads other TIFFs.
func TestWithoutRumi(t *testing.T) {
	counts := map[string]int{}
	err := filepath.WalkDir("../../testdata/raster", func(path string, entry fs.DirEntry, err error) error {
		name, ext := filepath.ToSlash(path), filepath.Ext(path)
		if err != nil || ext != ".tif" && ext != ".rumi" || strings.Contains(name, "/bad/") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		isRumi := strings.Contains(name, "/rumi-")
		file, err := rumis.Open(t.Context(), &corpus.Mem{B: data}, ifd.Limits{})
		if err == nil {
			if rumis.Is(t.Context(), file) != isRumi {
				t.Errorf("%s: taken for a rumi file: %v", name, !isRumi)
			}
			if isRumi {
				_, _, err = rumis.Index(t.Context(), file, 1<<20)
			}
		}
		if isRumi != (err != nil && strings.Contains(err.Error(), "import github.com/chaski-eo/chaski/rumi,")) {
			t.Errorf("%s: %v", name, err)
		}
		counts[strings.Split(name, "/")[4]]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"rumi-v1", "rumi-cut", "rumi-new", "rumi-3", "tog"} {
		if counts[folder] == 0 {
			t.Errorf("no file of %s", folder)
		}
	}
}
