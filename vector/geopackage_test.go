//go:build geopackage

package vector

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestGeoPackage promises that files that GDAL wrote have the shapes, the values, the boxes and the CRS of the same
// shapes in GeoParquet.
func TestGeoPackage(t *testing.T) {
	for name, columns := range map[string][]string{"utm": {"", "value", "height", "class"}, "lonlat": {"", "class"},
		"types": {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float", "double", "bool", "string",
			"last"}} {
		for _, column := range columns {
			got, want := openFile(t, name+".gpkg", column), openFile(t, name+".parquet", column)
			if got.Len() != want.Len() || got.CRS != want.CRS && got.CRS.Code() != want.CRS.Code() {
				t.Fatalf("%s: %d shapes in %s, want %d in %s", name, got.Len(), got.CRS, want.Len(), want.CRS)
			}
			if a, b := everywhere(got), everywhere(want); !slices.Equal(a, b) {
				t.Errorf("%s: %d boxes, want %d", name, len(a), len(b))
			}
			sameShapes(t, name, got, want)
			if v, w := got.Values, want.Values; w != nil && w.Codes != nil {
				for row := range want.Len() {
					if v.Null(row) != w.Null(row) || !v.Null(row) && v.Names[v.Codes[row]] != w.Names[w.Codes[row]] {
						t.Errorf("%s: %s of shape %d is another one", name, column, row)
					}
				}
			} else if w != nil {
				for row := range want.Len() {
					if !sameNumber(v, w, row) {
						t.Errorf("%s: %s of shape %d is another one", name, column, row)
					}
				}
			}
			for _, l := range []*Layer{got, want} {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// sameShapes compares all shapes of two layers, and looks for each in the first.
func sameShapes(t *testing.T, name string, got, want *Layer) {
	t.Helper()
	for row := range want.Len() {
		a, err := got.Shape(t.Context(), uint32(row))
		b, werr := want.Shape(t.Context(), uint32(row))
		if err != nil || werr != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: shape %d is %v, %v, want %v, %v", name, row, a, err, b, werr)
		}
		if b == nil {
			continue
		}
		at := b.Bound()
		x, y := at.Max[0], at.Max[1]
		if found := got.Search(x, y, x, y, 0); !slices.Contains(found, uint32(row)) {
			t.Fatalf("%s: shape %d is not found at the corner of its box, but %v", name, row, found)
		}
	}
}

// TestGeoPackageLayers: a layer is named behind its file, and must be where there are several.
func TestGeoPackageLayers(t *testing.T) {
	file := testFile(t, "layers.gpkg")
	for layer, epsg := range map[string]int{"utm": 32630, "lonlat": 4326} {
		l, err := Open(t.Context(), file, "layers.gpkg::"+layer, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if l.Len() != 20 || l.CRS.Code() != epsg {
			t.Errorf("%s: %d shapes in %s", layer, l.Len(), l.CRS)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, says := range map[string]string{"": "FILE.gpkg::", "::none": "none: the file has none; it has"} {
		if _, err := Open(t.Context(), file, "layers.gpkg"+name, Options{}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err := Open(t.Context(), file, "layers.gpkg::utm", Options{Column: "none"})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("column: %v", err)
	}
}

// hostile makes GeoPackage files whose schema runs something, or does not end.
func hostile(t testing.TB) map[string][]byte {
	t.Helper()
	const begin = `CREATE TABLE gpkg_spatial_ref_sys (srs_id INTEGER PRIMARY KEY, organization TEXT,
		organization_coordsys_id INTEGER, definition TEXT);
		INSERT INTO gpkg_spatial_ref_sys VALUES (4326, 'EPSG', 4326, '');
		CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT, srs_id INTEGER);
		INSERT INTO gpkg_geometry_columns VALUES ('a', 'g', 4326);`
	const endless = `WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r)
		SELECT i AS rowid, zeroblob(1000) AS g FROM r`
	out := map[string][]byte{}
	for name, text := range map[string]string{
		"endless view":    begin + `CREATE VIEW a AS ` + endless,
		"computed column": begin + `CREATE TABLE a (i INTEGER PRIMARY KEY, g BLOB AS (zeroblob(1000000)))`,
		"endless layers": `CREATE TABLE gpkg_spatial_ref_sys (a);
			CREATE VIEW gpkg_geometry_columns AS SELECT 1 AS table_name, 2 AS column_name, 3 AS srs_id, * FROM (` +
			endless + `)`,
		"virtual table": begin + `CREATE VIRTUAL TABLE a USING rtree(id, x0, x1, y0, y1)`,
		"no geometry":   begin + `CREATE TABLE a (i INTEGER PRIMARY KEY, g BLOB); INSERT INTO a VALUES (1, 'GP')`,
		"large": begin + `CREATE TABLE a (i INTEGER PRIMARY KEY, g BLOB);
			INSERT INTO a VALUES (1, zeroblob(70000000))`,
		"no rowid":  begin + `CREATE TABLE a (i INTEGER PRIMARY KEY, g BLOB) WITHOUT ROWID`,
		"no tables": `CREATE TABLE a (b)`,
	} {
		path := filepath.Join(t.TempDir(), "a.gpkg")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(text); err != nil {
			t.Fatal(name, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if out[name], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestHostileGeoPackage: nothing of a schema is run, and each file is refused with a kind.
func TestHostileGeoPackage(t *testing.T) {
	for name, b := range hostile(t) {
		l, err := Open(t.Context(), memory(b), name, Options{})
		if k := fault.KindOf(err); k == 0 || k == fault.Limit && name != "large" {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}

// TestSharedPages: shapes that have the same pages of a file take no more memory than the file has bytes.
func TestSharedPages(t *testing.T) {
	const rows, small, large = 100, 17_000, 17_000 + 240*(4096-4) // as many bytes of both lie in the leaf of a row
	path := filepath.Join(t.TempDir(), "a.gpkg")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	// A header with an empty envelope, and zeros.
	if _, err := db.Exec(fmt.Sprintf(`PRAGMA page_size = 4096;
		CREATE TABLE gpkg_spatial_ref_sys (srs_id INTEGER PRIMARY KEY, organization TEXT,
		organization_coordsys_id INTEGER, definition TEXT);
		CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT, srs_id INTEGER);
		INSERT INTO gpkg_geometry_columns VALUES ('a', 'g', 0);
		CREATE TABLE a (i INTEGER PRIMARY KEY, g BLOB);
		WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i < %d)
		INSERT INTO a SELECT i, CAST(x'4750000300000000' || zeroblob(iif(i = 1, %d, %d) - 8) AS BLOB) FROM r`,
		rows, large, small)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// See https://www.sqlite.org/fileformat.html: the bytes of a row, its number, the header of 5 bytes with the types
	// NULL and blob, what lies in the leaf, and the first page of the rest.
	cell := func(row, size int) []byte {
		return append(append(varint(5+size), byte(row), 5, 0), varint(12+2*size)...)
	}
	const least = (4096-12)*32/255 - 23
	rest := 3 + 1 + least + (5+small-least)%(4096-4)
	if rest > 4096-35 {
		rest = 3 + 1 + least
	}
	// Pages may have older copies of rows, of which some bytes are others by now.
	each := func(part []byte, do func(at []byte)) {
		for from := 0; ; {
			at := bytes.Index(b[from:], part)
			if at < 0 || from+at+rest+4 > len(b) {
				return
			}
			do(b[from+at:])
			from += at + 1
		}
	}
	var first []byte
	each(cell(1, large), func(at []byte) {
		if n := binary.BigEndian.Uint32(at[rest:]); n > 1 && int(n) <= len(b)/4096 {
			first = bytes.Clone(at[rest:][:4])
		}
	})
	for row := 2; row <= rows; row++ {
		each(cell(row, small), func(at []byte) {
			copy(at, cell(row, large))
			copy(at[rest:], first)
		})
	}
	l, err := Open(t.Context(), memory(b), "a.gpkg", Options{})
	if err == nil {
		_, err = l.Shape(t.Context(), 1)
	}
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "more bytes than the file") {
		t.Error(err)
	}
}

// varint returns three bytes as SQLite stores a number.
func varint(n int) []byte { return []byte{byte(n>>14) | 0x80, byte(n>>7) | 0x80, byte(n & 0x7f)} }

// TestDamagedGeoPackage: files with other bytes anywhere are refused with a kind, or each shape is read or refused with
// one. It stands in for a fuzz target: the counters of the fuzzer in SQLite take a second for each input.
func TestDamagedGeoPackage(t *testing.T) {
	seeds := hostile(t)
	delete(seeds, "large")
	for _, name := range []string{"types.gpkg", "layers.gpkg"} {
		seeds[name] = testFile(t, name)
	}
	names := slices.Sorted(maps.Keys(seeds))
	rnd := rand.New(rand.NewPCG(1, 2))
	n := 2000
	if c, err := strconv.Atoi(os.Getenv("CHASKI_SOAK_COUNT")); err == nil {
		n = c
	}
	for i := range n {
		b := bytes.Clone(seeds[names[i%len(names)]])
		for range 1 + rnd.IntN(8) {
			b[16+rnd.IntN(len(b)-16)] = byte(rnd.Uint32())
		}
		for _, uri := range []string{"f.gpkg", "f.gpkg::utm"} {
			l, err := Open(t.Context(), memory(b), uri, Options{Column: "string", MaxShapes: 1 << 10})
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
				continue
			}
			for row := range l.Len() {
				if _, err := l.Shape(t.Context(), uint32(row)); err != nil && fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
