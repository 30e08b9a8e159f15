package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// memory is a file in memory; it opens itself under any name.
type memory []byte

func (m memory) Open(context.Context, string) (source.Reader, error) { return m, nil }
func (m memory) Size() int64                                         { return int64(len(m)) }
func (m memory) Close() error                                        { return nil }

func (m memory) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(m)) || int64(len(p)) > int64(len(m))-off {
		return fault.At(fault.Corrupt, "byte range", off, "past the end")
	}
	copy(p, m[off:])
	return nil
}

// testFiles returns the files of testdata.
func testFiles(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b := testfile.Read(t, p)
		files[strings.TrimSuffix(filepath.Base(p), ".parquet")] = b
	}
	return files
}

// TestGeoParquet promises CRS, values and boxes of files with and without a covering, with z, in one row group and
// in several.
func TestGeoParquet(t *testing.T) {
	for name, code := range map[string]int{"utm": 32630, "lonlat": 4326, "laea": 3035, "mercator": 3857,
		"antimeridian": 4326} {
		l, err := Open(t.Context(), memory(testFiles(t)[name]), name, Options{Column: "class"})
		if err != nil {
			t.Fatal(err)
		}
		if l.Len() != 200 || l.CRS.Code() != code {
			t.Errorf("%s: %d shapes in %s", name, l.Len(), l.CRS)
		}
		for row := range l.Len() {
			want := []string{"field", "forest", "water"}[row%3]
			switch v := l.Values; {
			case v.Null(row) != (row%7 == 0):
				t.Errorf("%s: shape %d has a value, or none: %v", name, row, v.Null(row))
			case !v.Null(row) && v.Str(row) != want:
				t.Errorf("%s: shape %d is %q, want %q", name, row, v.Str(row), want)
			}
			shape, err := l.Shape(t.Context(), uint32(row))
			if err != nil || (shape == nil) != (row == 3) {
				t.Fatalf("%s: shape %d: %v, %v", name, row, shape, err)
			}
			if shape == nil {
				continue
			}
			found := func(x, y float64) bool {
				_, ok := slices.BinarySearch(l.Search(x, y, x, y, 0), uint32(row))
				return ok
			}
			b := shape.Bound()
			for _, p := range []orb.Point{b.Min, b.Max, b.LeftTop(), b.Center()} {
				if !found(p[0], p[1]) {
					t.Errorf("%s: shape %d is not found at %v of its box", name, row, p)
				}
			}
			if w := b.Max[0] - b.Min[0] + 1e-3*math.Abs(b.Max[0]); found(b.Max[0]+w, b.Max[1]) {
				t.Errorf("%s: shape %d is found far away", name, row)
			}
		}
		all := l.Search(math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1), 0)
		if len(all) != 199 {
			t.Errorf("%s: %d shapes are found, want 199", name, len(all))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// everyKind is a collection of every type of geometry.
const everyKind = `{"type": "FeatureCollection", "features": [
	{"type": "Feature", "properties": {"class": "a", "value": 1}, "geometry": {"type": "Point", "coordinates": [1, 2]}},
	{"type": "Feature", "properties": {"class": "b", "value": 2.5}, "geometry": {"type": "MultiPoint",
		"coordinates": [[1, 2, 9], [3, 4, 9]]}},
	{"type": "Feature", "properties": null, "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}},
	{"type": "Feature", "properties": {"class": null}, "geometry": {"type": "MultiLineString",
		"coordinates": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}},
	{"type": "Feature", "properties": {"class": "a"}, "geometry": {"type": "Polygon",
		"coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 1]]]}},
	{"type": "Feature", "properties": {}, "geometry": {"type": "MultiPolygon",
		"coordinates": [[[[0, 0], [4, 0], [4, 4], [0, 0]]]]}},
	{"type": "Feature", "geometry": {"type": "GeometryCollection",
		"geometries": [{"type": "Point", "coordinates": [8, 9]}]}},
	{"type": "Feature", "geometry": null}]}`

// inLines returns the features of everyKind as GeoJSON lines, each behind a mark.
func inLines(t testing.TB, mark string) (lines string) {
	t.Helper()
	var list struct{ Features []json.RawMessage }
	if err := json.Unmarshal([]byte(everyKind), &list); err != nil {
		t.Fatal(err)
	}
	for _, feature := range list.Features {
		var line bytes.Buffer
		if err := json.Compact(&line, feature); err != nil {
			t.Fatal(err)
		}
		lines += mark + line.String() + "\n"
	}
	return lines
}

// TestGeoJSON promises shapes, values and CRS of GeoJSON, and what is refused.
func TestGeoJSON(t *testing.T) {
	want := []orb.Geometry{orb.Point{1, 2}, orb.Collection{orb.Point{1, 2}, orb.Point{3, 4}},
		orb.LineString{{1, 2}, {3, 4}}, orb.Collection{orb.LineString{{1, 2}, {3, 4}}, orb.LineString{{5, 6}, {7, 8}}},
		orb.Polygon{{{0, 0}, {4, 0}, {4, 4}, {0, 0}}, {{1, 1}, {2, 1}, {2, 2}, {1, 1}}},
		orb.Collection{orb.Polygon{{{0, 0}, {4, 0}, {4, 4}, {0, 0}}}}, orb.Collection{orb.Point{8, 9}}, nil}
	for _, text := range []string{everyKind, "\xef\xbb\xbf" + everyKind, inLines(t, ""), inLines(t, "\x1e"),
		"\xef\xbb\xbf" + inLines(t, " \x1e ")} {
		l, err := Open(t.Context(), memory(text), "f", Options{Column: "class"})
		if err != nil {
			t.Fatal(err)
		}
		for row := range want {
			if got, err := l.Shape(t.Context(), uint32(row)); err != nil || !reflect.DeepEqual(got, want[row]) {
				t.Errorf("shape %d: %v, %v, want %v", row, got, err, want[row])
			}
		}
		_, names := l.Values.Distinct()
		if l.Len() != len(want) || l.CRS.Code() != 4326 || !slices.Equal(names, []string{"a", "b"}) ||
			l.Values.Str(1) != "b" || l.Values.Null(1) || !l.Values.Null(2) || !l.Values.Null(3) || !l.Values.Null(7) {
			t.Errorf("%d shapes in %s, %+v", l.Len(), l.CRS, l.Values)
		}
	}
	l, err := Open(t.Context(), memory(everyKind), "f", Options{Column: "value"})
	if err != nil || l.Values.Float(1) != 2.5 || l.Values.Kind() != tables.Float64 {
		t.Errorf("%v, %v", l, err)
	}
	for _, end := range []string{"]", "{", "3", `{"type": "Point"}`, `{"type": "Feature", "geometry": {"type": "X"}}`} {
		text := inLines(t, "") + end
		if _, err := Open(t.Context(), memory(text), "f", Options{}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s behind features: %v", end, err)
		}
	}
	_, err = Open(t.Context(), memory(inLines(t, "")), "f", Options{MaxShapes: 7})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("8 features of 7: %v", err)
	}
	for _, c := range []struct {
		old, new string
		kind     fault.Kind
	}{
		{"[1, 2]", "[1]", fault.Corrupt},
		{"[1, 2]", `["1", 2]`, fault.Corrupt},
		{`"Point"`, `"Curve"`, fault.Corrupt},
		{"null}]}", "", fault.Corrupt},
		{`"a"`, "1", fault.Unsupported},
		{`"a"`, "[1]", fault.Unsupported},
		{`{"type": "F`, `{"crs": {"properties": {"name": "x"}}, "type": "F`, fault.Unsupported},
		{`FeatureCollection`, "Feature", fault.Unsupported},
		{`"type": "Feature", "geometry": null`, `"type": "Point", "coordinates": [1, 2]`, fault.Corrupt},
		{"[1, 2]", "[null, 2]", fault.Corrupt},
	} {
		text := strings.Replace(everyKind, c.old, c.new, 1)
		if _, err := Open(t.Context(), memory(text), "f", Options{Column: "class"}); fault.KindOf(err) != c.kind {
			t.Errorf("%s in place of %s: %v", c.new, c.old, err)
		}
	}
	_, err = Open(t.Context(), memory(everyKind), "f", Options{Column: "other"})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("a property that is not there: %v", err)
	}
}

// TestEmptyGeoJSON promises that geometries without coordinates are shapes that cover nothing.
func TestEmptyGeoJSON(t *testing.T) {
	for _, geometry := range []string{
		`{"type": "Point", "coordinates": []}`, `{"type": "MultiPoint", "coordinates": []}`,
		`{"type": "LineString", "coordinates": []}`, `{"type": "MultiLineString", "coordinates": []}`,
		`{"type": "Polygon", "coordinates": []}`, `{"type": "Polygon", "coordinates": [[]]}`,
		`{"type": "MultiPolygon", "coordinates": []}`, `{"type": "GeometryCollection", "geometries": []}`,
		`{"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": []}]}`,
	} {
		text := strings.Replace(everyKind, `"geometry": null`, `"geometry": `+geometry, 1)
		l, err := Open(t.Context(), memory(text), "f", Options{})
		if err != nil {
			t.Errorf("%s: %v", geometry, err)
			continue
		}
		if _, err := l.Shape(t.Context(), 7); err != nil {
			t.Errorf("%s: %v", geometry, err)
		}
		inf := math.Inf(1)
		if found := l.Search(-inf, -inf, inf, inf, 0); l.Len() != 8 || len(found) != 7 {
			t.Errorf("%s: %d shapes, of which %d are found, want 8 and 7", geometry, l.Len(), len(found))
		}
	}
}

// TestMemoryOfGeoJSON promises that the memory of reading one large feature is asked for before it is taken.
func TestMemoryOfGeoJSON(t *testing.T) {
	const n = 1 << 16
	for name, geometry := range map[string]string{
		"rings":      `{"type": "Polygon", "coordinates": [` + strings.Repeat("[],", n) + `[]]}`,
		"positions":  `{"type": "LineString", "coordinates": [` + strings.Repeat("[1,2],", n) + `[1,2]]}`,
		"geometries": `{"type": "GeometryCollection", "geometries": [` + strings.Repeat("{},", n) + `{}]}`,
	} {
		text := `{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": ` + geometry + `}]}`
		asked := int64(0)
		refuse := fault.New(fault.Limit, "budget", "no")
		_, err := Open(t.Context(), memory(text), "f", Options{Grow: func(_ context.Context, n int64) error {
			if asked += n; asked > int64(5*len(text)) {
				return refuse
			}
			return nil
		}})
		// Shapes of 5 times the text, the text of the feature 3 times, and a structure for each geometry.
		least := int64(8 * len(geometry))
		if name == "geometries" {
			least = 2 * 64 * n
		}
		if fault.KindOf(err) != fault.Limit || asked < least {
			t.Errorf("%s: %d bytes are asked for, want %d at least; %v", name, asked, least, err)
		}
	}
}

// TestCRSOfGeoParquet promises which CRS a description means.
func TestCRSOfGeoParquet(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:            "EPSG:4326",
		`{"crs": null}`: "none",
		`{"crs": {"id": {"authority": "EPSG", "code": 32633}}}`:    "EPSG:32633",
		`{"crs": {"id": {"authority": "OGC", "code": "CRS84"}}}`:   "EPSG:4326",
		`{"crs": {"id": {"authority": "EPSG", "code": "3035"}}}`:   "EPSG:3035",
		`{"crs": {"id": {"authority": "EPSG", "code": 99999999}}}`: "unsupported",
		`{"crs": {"name": "mine"}}`:                                "unsupported",
		`{"crs": "EPSG:4326"}`:                                     "corrupt",
	} {
		var c geoColumn
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		found, err := c.crs()
		got := "none"
		switch {
		case err != nil:
			got = map[fault.Kind]string{fault.Corrupt: "corrupt", fault.Unsupported: "unsupported"}[fault.KindOf(err)]
		case found != nil:
			got = found.String()
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", text, got, err, want)
		}
	}
}

// TestFormatsThatAreNotRead promises that other formats are refused by name.
func TestFormatsThatAreNotRead(t *testing.T) {
	for data, says := range map[string]string{
		"": "not GeoParquet", "fgb\x03fgb\x00....": "FlatGeobuf", "SQLite format 3\x00": "GeoPackage",
		"\x00\x00\x27\x0a....": "Shapefile", "PK\x03\x04": "not GeoParquet",
		"  {\"type\": \"Feature\"}": "not a FeatureCollection",
	} {
		_, err := Open(t.Context(), memory(data), "shapes.x", Options{})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "shapes.x") {
			t.Errorf("%q: %v, want %s", data, err, says)
		}
	}
}

// TestOfImage promises that the image is found whose path in the column has the most last parts in common with the
// given one.
func TestOfImage(t *testing.T) {
	text := strings.NewReplacer(`"a"`, `"a/1.tif"`, `"b"`, `"b/1.tif"`).Replace(everyKind)
	l, err := Open(t.Context(), memory(text), "f", Options{Image: "class"})
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string][]uint32{
		"s3://bucket/a/1.tif": {0, 4}, "https://host/a/1.tif?sig=x/y": {0, 4},
		"b/1.tif": {1}, "/c/b/1.tif": {1}, "1.tif": nil, "c/1.tif": nil, "2.tif": nil,
	} {
		image, err := l.OfImage(Sample{URI: uri})
		rows := image.Rows
		kind := fault.Corrupt // several
		if uri == "2.tif" {
			kind = fault.NotFound
		}
		if !slices.Equal(rows, want) || want == nil && fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v: %v", uri, rows, want, err)
		}
	}
	_, err = Open(t.Context(), memory(everyKind), "f", Options{Image: "value"})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("numbers as paths: %v", err)
	}
	text = strings.Replace(text, "b/1.tif", "c/1.tif", 1)
	other, err := Open(t.Context(), memory(text), "f", Options{Image: "class"})
	if err != nil || other.Fingerprint() == l.Fingerprint() {
		t.Errorf("the fingerprint does not cover the paths: %v", err)
	}
}

// TestShapesAreCharged promises that the memory of a layer is asked for before it is taken, and that a file cannot
// claim more shapes than it has bytes.
func TestShapesAreCharged(t *testing.T) {
	file := memory(testFiles(t)["utm"])
	refused := fault.New(fault.Limit, "budget", "no")
	for _, o := range []Options{
		{Grow: func(context.Context, int64) error { return refused }}, {MaxShapes: 199},
	} {
		if _, err := Open(t.Context(), file, "utm", o); fault.KindOf(err) != fault.Limit {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// FuzzOpen: files of any bytes are refused with a kind, or all their shapes are read or refused.
func FuzzOpen(f *testing.F) {
	for _, b := range testFiles(f) {
		f.Add(b)
	}
	f.Add([]byte(everyKind))
	f.Add([]byte(inLines(f, "\x1e")))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []Options{{}, {Column: "class"}, {Column: "value", Image: "class"}} {
			o.MaxShapes = 1 << 12
			l, err := Open(t.Context(), memory(bytes.Clone(b)), "f", o)
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
				continue
			}
			for _, row := range l.Search(-200, -100, 1e7, 1e7, 360) {
				if _, err := l.Shape(t.Context(), row); err != nil && fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
			}
		}
	})
}
