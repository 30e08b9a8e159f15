package tiff

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/corpus"
)

//go:embed testdata/write_matrix.py
var matrixScript string

// Files of every layout (sample type, compression, predictor, byte order, classic and BigTIFF, tiles and
// strips, interleaving, sparse chunks with any nodata value, overviews, rewriting in place) hold what GDAL
// reads in them; compressions and samples that are not read are unsupported by their names.
// CHASKI_ORACLE_PYTHON names a Python with rasterio and tifffile.
func TestMatrix(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio and tifffile")
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-c", matrixScript, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	in, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	files, refused := 0, 0
	for s := bufio.NewScanner(in); s.Scan(); {
		f := struct {
			corpus.File
			Refuse string
		}{File: corpus.File{Dir: dir}}
		if err := json.Unmarshal(s.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		files++
		t.Run(strings.TrimPrefix(f.Note, "relative: "), func(t *testing.T) {
			if f.Refuse == "" {
				checkFile(t, &f.File)
				return
			}
			refused++
			if _, _, err := decode(f.Bytes(t)); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), f.Refuse+" ") && !strings.Contains(err.Error(), f.Refuse+":") {
				t.Errorf("%v, want %q: unsupported", err, f.Refuse)
			}
		})
	}
	if files < 1000 || refused < 5 {
		t.Errorf("%d files, %d to be refused", files, refused)
	}
}
