package tiff

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

//go:embed testdata/write_matrix.py
var matrixScript string

// TestMatrix: files of every layout (sample type, compression, predictor, byte order, classic and
// BigTIFF, tiles and strips, interleaving, sparse chunks with any nodata value, overviews,
// rewriting in place) have the samples that GDAL reads from them. Compressions and sample types
// that are not supported are refused by name. CHASKI_ORACLE_PYTHON names a Python with rasterio and
// tifffile.
func TestMatrix(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio and tifffile")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-c", matrixScript, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type row struct {
		corpus.File
		Refuse string
	}
	files := 0
	for _, f := range corpus.Rows[row](t, dir) {
		f.Dir = dir
		files++
		t.Run(strings.TrimPrefix(f.Note, "relative: "), func(t *testing.T) {
			if f.Refuse == "" {
				checkFile(t, &f.File)
				return
			}
			_, _, err := decode(f.Bytes(t))
			if !errors.Is(err, fault.Unsupported) ||
				!strings.Contains(err.Error(), f.Refuse+" ") && !strings.Contains(err.Error(), f.Refuse+":") {
				t.Errorf("%v, want %q: unsupported", err, f.Refuse)
			}
		})
	}
	if files < 1000 {
		t.Errorf("%d files", files)
	}
}
