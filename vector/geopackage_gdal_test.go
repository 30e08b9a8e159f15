//go:build geopackage

package vector

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// gdalLayer is what GDAL reads of a layer. Shapes are WKB in hex.
type gdalLayer struct {
	File, Column string
	EPSG         int
	Shapes       []*string
	Values       []any
}

// TestGeoPackageOfGDAL: random layers that GDAL writes, with and without its index, in versions 1.2 to 1.4, have the
// CRS, the shapes and the values that GDAL reads of them, and every shape is found by its box.
func TestGeoPackageOfGDAL(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with pyogrio")
	}
	seed := os.Getenv("CHASKI_ORACLE_SEED")
	if seed == "" {
		seed = strconv.Itoa(rand.IntN(1 << 30))
	}
	t.Logf("CHASKI_ORACLE_SEED=%s", seed)
	dir := t.TempDir()
	out, err := exec.Command(python, "-W", "ignore", "testdata/oracle_geopackage.py", dir, seed).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); n++ {
		var want gdalLayer
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		compareLayer(t, filepath.Join(dir, want.File), &want)
	}
	if n < 15 {
		t.Errorf("%d layers", n)
	}
}

func compareLayer(t *testing.T, path string, want *gdalLayer) {
	t.Helper()
	l, err := Open(t.Context(), &source.Files{}, path, Options{Column: want.Column})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Len() != len(want.Shapes) || l.CRS.Code() != want.EPSG {
		t.Fatalf("%s: %d shapes in %d, GDAL reads %d in %d", want.File, l.Len(), l.CRS.Code(), len(want.Shapes),
			want.EPSG)
	}
	for row, text := range want.Shapes {
		got, err := l.Shape(t.Context(), uint32(row))
		if err != nil {
			t.Fatal(err)
		}
		if v := want.Values[row]; v != valueOf(l.Values, row) {
			t.Fatalf("%s: %s of shape %d is %v, GDAL reads %v", want.File, want.Column, row, valueOf(l.Values, row), v)
		}
		if text == nil {
			if got != nil {
				t.Fatalf("%s: shape %d is %v, GDAL reads none", want.File, row, got)
			}
			continue
		}
		b, err := hex.DecodeString(*text)
		if err != nil {
			t.Fatal(err)
		}
		g, err := wkb.Geometry(b)
		if err != nil || !reflect.DeepEqual(got, g) {
			t.Fatalf("%s: shape %d is %v, GDAL reads %v, %v", want.File, row, got, g, err)
		}
		at := g.Bound()
		if found := l.Search(at.Min[0], at.Max[1], at.Min[0], at.Max[1], 0); !slices.Contains(found, uint32(row)) {
			t.Fatalf("%s: shape %d is not found at a corner of its box", want.File, row)
		}
	}
}

// valueOf returns the value of a shape as JSON has it.
func valueOf(v *Values, row int) any {
	switch {
	case v.Null(row):
		return nil
	case v.Codes != nil:
		return v.Names[v.Codes[row]]
	case v.Floats != nil:
		return v.Floats[row]
	}
	return float64(v.Ints[row])
}
