package vector

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paulmach/orb/encoding/wkt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestGeometryTypes promises that files of GeoParquet 2.0, which only have the type GEOMETRY, give the shapes that were
// put in and the CRS of each form of the type, and that edges on the globe are refused as those of metadata are.
func TestGeometryTypes(t *testing.T) {
	folder := filepath.Join("testdata", "types")
	text := testfile.Read(t, filepath.Join(folder, "expected.json"))
	var expected map[string][]*string
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shapes string
		code   int
	}{"lonlat": {"degrees", 4326}, "projjson": {"metres", 32718}, "srid": {"metres", 32718}, "code": {"metres", 32718},
		"globe": {}} {
		b := testfile.Read(t, filepath.Join(folder, name+".parquet"))
		l, err := Open(t.Context(), memory(b), name+".parquet", Options{Column: "class"})
		if c.code == 0 {
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "spherical edges") {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		if l.CRS.Code() != c.code || l.Len() != len(expected[c.shapes]) {
			t.Errorf("%s: got %d shapes in %s, want %d in %d", name, l.Len(), l.CRS, len(expected[c.shapes]), c.code)
		}
		for row, want := range expected[c.shapes] {
			got, err := l.Shape(t.Context(), uint32(row))
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				if got != nil {
					t.Errorf("%s: shape %d: got %v, want none", name, row, got)
				}
				continue
			}
			shape, err := wkt.Unmarshal(*want)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := wkt.MarshalString(got), wkt.MarshalString(shape); g != w {
				t.Errorf("%s: shape %d: got %s, want %s", name, row, g, w)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
