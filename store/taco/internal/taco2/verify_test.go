package taco2

import (
	"archive/zip"
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func parquetOf[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestColumnsOfFolders: tables of children have one schema a level (PIT-2), but tacotoolbox 0.16 leaves
// out of a folder's table what has no value in that folder.
func TestColumnsOfFolders(t *testing.T) {
	type row struct {
		ID   string `parquet:"id"`
		Type string `parquet:"type"`
	}
	type child struct {
		ID     string  `parquet:"id"`
		Type   string  `parquet:"type"`
		Name   *string `parquet:"name,optional"`
		Parent int64   `parquet:"internal:parent_id"`
	}
	type named struct {
		ID   string  `parquet:"id"`
		Type string  `parquet:"type"`
		Name *string `parquet:"name,optional"`
	}
	type numbered struct {
		ID   string `parquet:"id"`
		Type string `parquet:"type"`
		Name *int64 `parquet:"name,optional"`
	}
	text := func(s string) *string { return &s }
	one := int64(1)
	file := row{"x", "FILE"}
	for name, c := range map[string]struct {
		values [2]*string // of the column name, of the child of folder a and of that of b
		tables [2][]byte
		kind   fault.Kind // 0: valid
		note   string
	}{
		"both have it": {[2]*string{text("u"), nil}, [2][]byte{parquetOf(t, named{"x", "FILE", text("u")}),
			parquetOf(t, named{"x", "FILE", nil})}, 0, ""},
		"the second is without": {[2]*string{text("u"), nil}, [2][]byte{parquetOf(t, named{"x", "FILE", text("u")}),
			parquetOf(t, file)}, 0, "1 folders"},
		"the first is without": {[2]*string{nil, text("u")},
			[2][]byte{parquetOf(t, file), parquetOf(t, named{"x", "FILE", text("u")})}, 0, "1 folders"},
		"texts taken for none": {[2]*string{text(""), text("None")},
			[2][]byte{parquetOf(t, file), parquetOf(t, file)}, 0, "2 folders"},
		"a value is lost": {[2]*string{text("u"), text("v")},
			[2][]byte{parquetOf(t, named{"x", "FILE", text("u")}), parquetOf(t, file)}, fault.Corrupt, ""},
		"another type": {[2]*string{text("u"), text("v")},
			[2][]byte{parquetOf(t, named{"x", "FILE", text("u")}), parquetOf(t, numbered{"x", "FILE", &one})},
			fault.Corrupt, ""},
	} {
		m := memory{
			"d/COLLECTION.json": []byte(
				`{"id":"a","taco:pit_schema":{"root":{"n":2,"type":"FOLDER"},` +
					`"hierarchy":{"1":[{"n":2,"type":["FILE"],"id":["x"]}]}}}`),
			"d/METADATA/level0.parquet": parquetOf(t, row{"a", "FOLDER"}, row{"b", "FOLDER"}),
			"d/METADATA/level1.parquet": parquetOf(t, child{"x", "FILE", c.values[0], 0},
				child{"x", "FILE", c.values[1], 1}),
			"d/DATA/a/__meta__": c.tables[0], "d/DATA/b/__meta__": c.tables[1],
			"d/DATA/a/x": {1}, "d/DATA/b/x": {2},
		}
		d, err := model.Open(t.Context(), model.Source{Opener: m, URI: "d"}, model.TacoFolder, OpenFolder)
		if err != nil {
			t.Fatal(err)
		}
		var r model.Report
		err = d.Verify(t.Context(), &r)
		if fault.KindOf(err) != c.kind || c.kind != 0 && !strings.Contains(err.Error(), "PIT-2") {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
		r.Notes = slices.DeleteFunc(r.Notes, func(n string) bool {
			return strings.HasPrefix(n, "COLLECTION.json: ")
		}) // it is a short one
		if c.kind == 0 && !strings.HasPrefix(strings.Join(r.Notes, "\n"), c.note) || c.note == "" && len(r.Notes) > 0 {
			t.Errorf("%s: notes %q, want %q", name, r.Notes, c.note)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSums: no byte of a ZIP's samples and tables can change unnoticed; a CRC-32 that one of the ZIP's two
// places has wrong, or not at all, does not make right bytes wrong.
func TestSums(t *testing.T) {
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip"))
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(b []byte) error {
		m := memory{"a.tacozip": b}
		r, err := m.Open(t.Context(), "a.tacozip")
		if err != nil {
			t.Fatal(err)
		}
		from := model.Source{Opener: m, URI: "a.tacozip", File: r, Head: b[:zipDataAt]}
		d, err := model.Open(t.Context(), from, model.ZIP, OpenZIP)
		if err != nil {
			return err
		}
		err = d.Verify(t.Context(), &model.Report{})
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		return err
	}
	if err := verify(b); err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		at, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == HeaderName || f.CompressedSize64 == 0 {
			continue
		}
		bad := bytes.Clone(b)
		bad[at+int64(f.CompressedSize64)/2] ^= 1
		if err := verify(bad); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("a bit of %s: %v", f.Name, err)
		}
		if f.Name != "DATA/tile_00/s2/img.tif" {
			continue
		}
		local := bytes.LastIndex(b[:at], []byte(localSignature)) + 14
		listed := bytes.LastIndex(b, []byte(f.Name)) - 30
		for name, c := range map[string]struct {
			local, listed byte // what the CRC-32 are changed by
			kind          fault.Kind
		}{"of the local header": {1, 0, 0}, "of the directory": {0, 1, 0}, "of both": {1, 2, fault.Corrupt}} {
			bad := bytes.Clone(b)
			bad[local] ^= c.local
			bad[listed] ^= c.listed
			if err := verify(bad); fault.KindOf(err) != c.kind {
				t.Errorf("the CRC-32 %s is another: %v, want %v", name, err, c.kind)
			}
		}
		clear(bad[local : local+4])
		clear(bad[listed : listed+4])
		if err := verify(bad); err != nil {
			t.Errorf("no CRC-32: %v", err)
		}
	}
}
