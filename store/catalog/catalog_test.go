package catalog_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestDirectory lists the raster files of a directory in the order of the bytes of their paths, without hidden ones.
func TestDirectory(t *testing.T) {
	dir := folder.Of(t, "b/x.tif", "b-1.tif", "a.TIFF", ".hidden.tif", ".git/y.tif", "b/c/z.rumi", "notes.txt=hi",
		"B.tif")
	tab := folder.Open(t, dir, catalog.Options{})
	want := []string{"B.tif", "a.TIFF", "b-1.tif", "b/c/z.rumi", "b/x.tif"}
	if got := folder.IDs(t, tab); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	a, err := tab.Asset(t.Context(), 0, 2) // the second file: 2 rows of 3
	if err != nil {
		t.Fatal(err)
	}
	if a.URI != filepath.Join(dir, "b-1.tif") || a.Index.Height != 2 || a.Index.Width != 3 ||
		a.Index.DType != chunk.Uint8 {
		t.Errorf("%s %+v", a.URI, a.Index)
	}
	if tab.Kind(0) != catalog.Raster {
		t.Errorf("kind %s", tab.Kind(0))
	}
	if one := folder.Open(t, filepath.Join(dir, "a.TIFF"), catalog.Options{}); one.Len() != 1 || folder.IDs(t,
		one)[0] != "a.TIFF" {
		t.Errorf("one file: %q", folder.IDs(t, one))
	}
}

// TestGlob matches "*" within one directory, and "**" across directories.
func TestGlob(t *testing.T) {
	dir := folder.Of(t, "2020/a/x.tif", "2020/y.tif", "2021/a/x.tif", "2021/b/c/x.tif", "other/x.tif")
	for pattern, want := range map[string]string{
		"20*/*.tif":         "2020/y.tif",
		"**/x.tif":          "2020/a/x.tif 2021/a/x.tif 2021/b/c/x.tif other/x.tif",
		"20*/**/x.tif":      "2020/a/x.tif 2021/a/x.tif 2021/b/c/x.tif",
		"2021/**":           "a/x.tif b/c/x.tif",
		"20[2][01]/a/?.tif": "2020/a/x.tif 2021/a/x.tif",
		"2021/a/[" + strings.Repeat("x", 300) + "].tif": "x.tif", // no file can have this name
	} {
		if got := strings.Join(folder.IDs(t, folder.Open(t, filepath.Join(dir, pattern), catalog.Options{})),
			" "); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	for _, p := range []string{"*.png", "nowhere/*.tif", "missing", "missing.tif", "missing.parquet", "missing.csv",
		strings.Repeat("n", 300), "2020/y.tif/below", "a\x00b"} {
		if _, err := catalog.Open(t.Context(), filepath.Join(dir, p), nil,
			catalog.Options{}); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// TestCatalogIsItsFolder promises that a directory and the catalog made from it are the same dataset, also after both
// moved, and if the catalog is elsewhere or has absolute paths.
func TestCatalogIsItsFolder(t *testing.T) {
	dir := folder.Of(t, "train/b/x.tif", "train/b-1.tif", "train/a.tif")
	fromDir := folder.Open(t, dir, catalog.Options{})
	file := filepath.Join(dir, "catalog.parquet")
	if n := folder.Index(t, file, build.Options{}, dir); n != 3 {
		t.Fatalf("%d rows", n)
	}
	same := func(what string, tab *catalog.Table) {
		t.Helper()
		if tab.Fingerprint() != fromDir.Fingerprint() || len(tab.Fingerprint()) != 32 {
			t.Errorf("%s: fingerprint %s, want %s", what, tab.Fingerprint(), fromDir.Fingerprint())
		}
		for row := range tab.Len() {
			got, err := tab.Asset(t.Context(), 0, row)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			want, err := fromDir.Asset(t.Context(), 0, row)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(got.Index)
			b, _ := json.Marshal(want.Index)
			if !bytes.Equal(a, b) {
				t.Errorf("%s row %d: %s, want %s", what, row, a, b)
			}
			if st, err := os.Stat(got.URI); err != nil || st.Size() != got.Size {
				t.Errorf("%s row %d: %v, size %d", what, row, err, got.Size)
			}
		}
	}
	same("catalog", folder.Open(t, file, catalog.Options{}))
	elsewhere := filepath.Join(folder.Of(t), "c.parquet")
	folder.Index(t, elsewhere, build.Options{}, dir)
	same("catalog elsewhere", folder.Open(t, elsewhere, catalog.Options{}))
	folder.Index(t, elsewhere, build.Options{Absolute: true}, dir)
	same("absolute", folder.Open(t, elsewhere, catalog.Options{}))
	same("glob", folder.Open(t, dir+"/train/**/*.tif", catalog.Options{}))

	moved := filepath.Join(folder.Of(t), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	old := fromDir
	fromDir = folder.Open(t, moved, catalog.Options{})
	if old.Fingerprint() != fromDir.Fingerprint() {
		t.Error("the folder's fingerprint moved with it")
	}
	same("moved", folder.Open(t, filepath.Join(moved, "catalog.parquet"), catalog.Options{}))

	// Another size or name is another dataset.
	for _, names := range [][]string{
		{"train/b/x.tif", "train/b-1.tif", "train/c.tif"}, {"train/b/x.tif", "train/a.tif", "train/b-1.tif"},
		{"train/b/x.tif", "train/b-1.tif"}, {"train/b/x.tif", "train/b-1.tif", "a.tif"},
	} {
		if other := folder.Open(t, folder.Of(t, names...),
			catalog.Options{}); other.Fingerprint() == fromDir.Fingerprint() {
			t.Errorf("%q has the same fingerprint", names)
		}
	}
}

// TestCatalogOfCorpus compares every row of a catalog of the corpus with the corpus' manifest.
func TestCatalogOfCorpus(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "raster")
	manifest, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	type entry struct {
		Path  string `json:"path"`
		Kind  string `json:"kind"`
		Shape []int  `json:"shape"`
		DType string `json:"dtype"`
		Blob  string `json:"blob"`
		Geo   struct {
			Transform []float64 `json:"transform"`
			CRS       any       `json:"crs"`
		} `json:"geo"`
	}
	entries := map[string]entry{}
	s := bufio.NewScanner(manifest)
	s.Buffer(nil, 1<<26)
	var files []string
	for s.Scan() {
		var e entry
		if json.Unmarshal(s.Bytes(), &e) != nil || !strings.HasSuffix(e.Path, ".tif") || len(e.Shape) != 3 {
			continue
		}
		file := filepath.Join(dir, e.Path)
		if _, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, file, 0); err != nil {
			if fault.KindOf(err) == 0 {
				t.Errorf("%s: %v has no kind", e.Path, err)
			}
			continue
		}
		entries[file] = e
		files = append(files, file)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files", len(files))
	}
	file := filepath.Join(t.TempDir(), "c.parquet")
	if n := folder.Index(t, file, build.Options{Absolute: true, Workers: 3}, files...); n != len(files) {
		t.Fatalf("%d rows for %d files", n, len(files))
	}
	rows, err := parquet.ReadFile[rowio.Row](file)
	if err != nil {
		t.Fatal(err)
	}
	tab := folder.Open(t, file, catalog.Options{})
	if !slices.IsSorted(folder.IDs(t, tab)) {
		t.Error("rows are not in the order of their paths")
	}
	for i, r := range rows {
		abs, _ := filepath.Abs(r.URI)
		var e entry
		for f, x := range entries {
			if a, _ := filepath.Abs(f); a == abs {
				e = x
			}
		}
		if got := []int{int(r.Bands), int(r.Height), int(r.Width)}; !slices.Equal(got, e.Shape) || r.DType != e.DType {
			t.Errorf("%s: %v %s, want %v %s", e.Path, got, r.DType, e.Shape, e.DType)
		}
		if e.Blob != "" && hex.EncodeToString(r.Header) != e.Blob {
			t.Errorf("%s: rumi:header %x, want %s", e.Path, r.Header, e.Blob)
		}
		if crs, ok := e.Geo.CRS.(float64); ok && (r.EPSG == nil || float64(*r.EPSG) != crs) {
			t.Errorf("%s: EPSG %v, want %v", e.Path, r.EPSG, crs)
		}
		if tr := e.Geo.Transform; len(tr) == 6 && r.Transform != nil {
			// The manifest has rasterio's order (a, b, c, d, e, f).
			if want := []float64{tr[2], tr[0], tr[1], tr[5], tr[3], tr[4]}; !slices.Equal(r.Transform, want) {
				t.Errorf("%s: transform %v, want %v", e.Path, r.Transform, want)
			}
		}
		st, err := os.Stat(abs)
		if err != nil || st.Size() != r.Size {
			t.Errorf("%s: size %d (%v)", e.Path, r.Size, err)
		}
		a, err := tab.Asset(t.Context(), 0, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, abs, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(a.Index)
		want, _ := json.Marshal(b.Index)
		// a blob keeps no offsets of sparse chunks
		if !bytes.Equal(got, want) && !strings.Contains(string(want), `"Len":0`) {
			t.Errorf("%s:\n%s\n%s", e.Path, got, want)
		}
	}
}

// TestWriteParquet promises the same bytes of a catalog for any number of workers, and that a bad file ends it and is
// named.
func TestWriteParquet(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("%02d.tif", i))
	}
	dir := folder.Of(t, names...)
	var first []byte
	for _, workers := range []int{1, 2, 7} {
		var buf bytes.Buffer
		calls := 0
		n, err := build.Write(t.Context(), &buf, []string{dir, filepath.Join(dir, "03.tif"), dir + "/*.tif"},
			build.Options{
				Base: dir, Workers: workers, Progress: func(done, total int) {
					if calls++; done != calls || total != 40 {
						t.Errorf("progress %d of %d at call %d", done, total, calls)
					}
				},
			})
		if err != nil || n != 40 || calls != 40 {
			t.Fatalf("%d rows, %d calls, %v", n, calls, err)
		}
		if first == nil {
			first = buf.Bytes()
		}
		if !bytes.Equal(first, buf.Bytes()) {
			t.Errorf("%d workers write another file", workers)
		}
	}
	folder.Write(t, filepath.Join(dir, "20.tif"), "no tiff")
	_, err := build.Write(t.Context(), &bytes.Buffer{}, []string{dir}, build.Options{})
	if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), "20.tif") {
		t.Errorf("bad file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build.Write(ctx, &bytes.Buffer{}, []string{dir}, build.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

type sample struct {
	Image  string   `parquet:"image"`
	Header []byte   `parquet:"header,optional"`
	Label  int32    `parquet:"label"`
	Score  *float32 `parquet:"score,optional"`
	Place  string   `parquet:"place,dict"`
	ID     uint64   `parquet:"id"`
	UUID   [16]byte `parquet:"uuid"`
}

// TestUserParquet opens a user's own Parquet file by naming its path column and blob column, with metadata columns.
func TestUserParquet(t *testing.T) {
	dir := folder.Of(t, "d/0.tif", "d/1.tif", "d/2.tif", "d/3.tif")
	var rows []sample
	for i := range 4 {
		_, m, err := catalog.OpenAsset(t.Context(), &openers.Files{}, fmt.Sprintf("%s/d/%d.tif", dir, i), 0)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{Image: fmt.Sprintf("gone/%d.tif", i), Header: m.Blob, Label: int32(7 - i),
			Place: []string{"Cusco", "Puno"}[i%2], ID: uint64(i)}
		if i == 3 {
			s.Header, s.Image = nil, "d/3.tif" // no blob: the file is opened
		} else {
			v := float32(i) / 2
			s.Score = &v
		}
		rows = append(rows, s)
	}
	rows[1].ID = 1 << 63
	file := filepath.Join(dir, "samples.parquet")
	if err := parquet.WriteFile(file, rows); err != nil {
		t.Fatal(err)
	}
	tab := folder.Open(t, file, catalog.Options{}, catalog.Source{Field: "x", Column: "image", Blob: "header"},
		catalog.Source{Field: "label"},
		catalog.Source{Field: "s", Column: "score"}, catalog.Source{Field: "place"})
	if k := []catalog.Kind{tab.Kind(0), tab.Kind(1), tab.Kind(2), tab.Kind(3)}; !slices.Equal(k,
		[]catalog.Kind{catalog.Raster, catalog.Int, catalog.Float, catalog.Text}) {
		t.Errorf("kinds %v", k)
	}
	for i := range int64(4) {
		a, err := tab.Asset(t.Context(), 0, i)
		if err != nil {
			t.Fatal(err)
		}
		if a.Index.Height != int(i)+1 || a.URI != filepath.Join(dir, rows[i].Image) {
			t.Errorf("row %d: %s, %d rows", i, a.URI, a.Index.Height)
		}
		label, err1 := tab.Value(t.Context(), 1, i)
		score, err2 := tab.Value(t.Context(), 2, i)
		place, err3 := tab.Value(t.Context(), 3, i)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		want := catalog.Value{Float: float64(i) / 2}
		if i == 3 {
			want = catalog.Value{Null: true}
		}
		if !reflect.DeepEqual(label, catalog.Value{Int: 7 - i}) || !reflect.DeepEqual(score, want) ||
			string(place.Text) != rows[i].Place {
			t.Errorf("row %d: %+v %+v %+v", i, label, score, place)
		}
	}
	if _, err := tab.Asset(t.Context(), 1, 0); err == nil {
		t.Error("a label has an asset")
	}
	for _, bad := range []struct {
		s    catalog.Source
		kind fault.Kind
	}{
		{catalog.Source{Field: "x", Column: "nowhere"}, fault.NotFound},
		{catalog.Source{Field: "image", Blob: "nowhere"}, fault.NotFound},
		{catalog.Source{Field: "image", Blob: "label"}, fault.Unsupported},
		{catalog.Source{Field: "label", Blob: "header"}, fault.Unsupported},
		{catalog.Source{Field: "uuid"}, fault.Unsupported},
		{catalog.Source{Field: "image", Pattern: "{id}.tif"}, fault.Unsupported},
		{catalog.Source{Field: "id"}, fault.Unsupported}, // 2^63 does not fit
	} {
		if _, err := catalog.Open(t.Context(), file, []catalog.Source{bad.s},
			catalog.Options{}); fault.KindOf(err) != bad.kind || !strings.Contains(err.Error(), file) {
			t.Errorf("%+v: %v", bad.s, err)
		}
	}
}

// TestCSV promises that a CSV column gets the narrowest kind that all its values have.
func TestCSV(t *testing.T) {
	dir := folder.Of(t, "d/0.tif", "d/1.tif")
	table := "\ufeffimage, n ,f,s,\"q\",empty\r\nd/0.tif,1,1.5,a,\"x,\"\"y\"\"\",\nfile://" + dir +
		"/d/1.tif,,-2e3,,7,\n" + dir + "/d/0.tif,-9223372036854775808,nan,1,,\n"
	folder.Write(t, filepath.Join(dir, "t.csv"), table)
	tab := folder.Open(t, filepath.Join(dir, "t.csv"), catalog.Options{}, catalog.Source{Field: "image"},
		catalog.Source{Field: "n"}, catalog.Source{Field: "f"},
		catalog.Source{Field: "s"}, catalog.Source{Field: "q"}, catalog.Source{Field: "empty"})
	var kinds []string
	for i := range 6 {
		kinds = append(kinds, tab.Kind(i).String())
	}
	if got := strings.Join(kinds, " "); got != "raster int float text text text" {
		t.Errorf("kinds %s", got)
	}
	want := [][]catalog.Value{
		{{Text: []byte("d/0.tif")}, {Int: 1}, {Float: 1.5}, {Text: []byte("a")}, {Text: []byte(`x,"y"`)}, {Null: true}},
		{{Text: []byte("file://" + dir + "/d/1.tif")}, {Null: true}, {Float: -2000}, {Null: true}, {Text: []byte("7")},
			{Null: true}},
		{{Text: []byte(dir + "/d/0.tif")}, {Int: -9223372036854775808}, {Float: 0}, {Text: []byte("1")}, {Null: true},
			{Null: true}},
	}
	for r, vs := range want {
		for f, w := range vs {
			got, err := tab.Value(t.Context(), f, int64(r))
			if f == 2 && r == 2 && got.Float != got.Float {
				got.Float = 0
			}
			if err != nil || !reflect.DeepEqual(got, w) {
				t.Errorf("row %d field %d: %+v %v, want %+v", r, f, got, err, w)
			}
		}
		a, err := tab.Asset(t.Context(), 0, int64(r))
		if err != nil || a.Index.Height != []int{1, 2, 1}[r] {
			t.Errorf("row %d: %+v %v", r, a, err)
		}
	}
	folder.Write(t, filepath.Join(dir, "t.tsv"), "image\tn\nd/0.tif\t5\n")
	if v, err := folder.Open(t, filepath.Join(dir, "t.tsv"), catalog.Options{},
		catalog.Source{Field: "n"}).Value(t.Context(), 0, 0); err != nil || v.Int != 5 {
		t.Errorf("tsv: %+v %v", v, err)
	}
	folder.Write(t, filepath.Join(dir, "sizes.csv"), "image,height,width\nd/0.tif,9,9\n")
	plain := folder.Open(t, filepath.Join(dir, "sizes.csv"), catalog.Options{AllColumns: true},
		catalog.Source{Field: "image"})
	if sizes, err := plain.Sizes(t.Context(), 0); sizes != nil || err != nil {
		t.Errorf("sizes of a table: %v, %v", sizes, err)
	}
	folder.Write(t, filepath.Join(dir, "latin1.csv"), "s\nCusco\nPer\xfa\n")
	latin1 := []catalog.Source{{Field: "s"}}
	if _, err := catalog.Open(t.Context(), filepath.Join(dir, "latin1.csv"), latin1, catalog.Options{}); err == nil ||
		!strings.Contains(err.Error(), "column s row 1: \"Per\\xfa\" is not UTF-8: save") {
		t.Errorf("not UTF-8: %v", err)
	}
	for name, text := range map[string]string{"empty": "", "twice": "a,a\n", "ragged": "a,b\n1\n",
		"quote": "a\n\"x\n"} {
		folder.Write(t, filepath.Join(dir, "bad.csv"), text)
		if _, err := catalog.Open(t.Context(), filepath.Join(dir, "bad.csv"), []catalog.Source{{Field: "a"}},
			catalog.Options{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCSVErrors checks that the error about a CSV file says what is wrong with it.
func TestCSVErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.csv")
	for text, want := range map[string]string{
		"a,b\n1,2\n3\n": "line 3: it has 1 values for 2 columns: corrupt",
		"a,b\n1,2\n\n3,4,5": "line 4: it has 3 values for 2 columns: if \"b\" has texts with ',' in them and no " +
			"quotes, name it \"b+\", the rest of each line: corrupt",
		"a|b\n1|2\n": "no column \"a\"; there are a|b: columns must be separated by commas, semicolons or tabs, in a " +
			".tsv file by tabs: not found",
	} {
		folder.Write(t, path, text)
		_, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "a"}}, catalog.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestPatterns pairs the files of a directory, and of its catalog, by id, and leaves nothing out silently.
func TestPatterns(t *testing.T) {
	dir := folder.Of(t, "images/b.tif", "images/a/x.tif", "images/a-1.tif", "masks/a/x_mask.tif", "masks/b_mask.tif",
		"masks/a-1_mask.tif", "other/q.tif")
	fields := []catalog.Source{{Field: "image", Pattern: "images/{id}.tif"},
		{Field: "mask", Pattern: "masks/{id}_mask.tif"}}
	file := filepath.Join(dir, "c.parquet")
	folder.Index(t, file, build.Options{}, dir)
	absolute := filepath.Join(folder.Of(t), "a.parquet")
	folder.Index(t, absolute, build.Options{Absolute: true}, dir)
	fromDir, fromCatalog := folder.Open(t, dir, catalog.Options{}, fields...), folder.Open(t, file, catalog.Options{},
		fields...)
	if fromDir.Fingerprint() != fromCatalog.Fingerprint() {
		t.Error("the folder and its catalog differ")
	}
	for what, tab := range map[string]*catalog.Table{"folder": fromDir, "catalog": fromCatalog,
		"absolute": folder.Open(t, absolute, catalog.Options{}, fields...)} {
		for i, want := range []string{"images/a-1.tif", "images/a/x.tif", "images/b.tif"} {
			if got := folder.IDs(t, tab)[i]; strings.TrimPrefix(got, dir+"/") != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		for row, heights := range [][2]int{{3, 6}, {2, 4}, {1, 5}} { // numbers in the list above
			for f, h := range heights {
				if a, err := tab.Asset(t.Context(), f, int64(row)); err != nil || a.Index.Height != h {
					t.Errorf("%s row %d field %d: %+v %v, want height %d", what, row, f, a, err, h)
				}
			}
		}
	}
	// A catalog's own columns stay with the first field's file.
	tab := folder.Open(t, file, catalog.Options{}, append(fields, catalog.Source{Field: "h", Column: "height"})...)
	if v, err := tab.Value(t.Context(), 2, 2); err != nil || v.Int != 1 {
		t.Errorf("height %+v %v", v, err)
	}
	folder.Write(t, filepath.Join(dir, "images/c.tif"), "x")
	folder.Write(t, filepath.Join(dir, "images/d.tif"), "x")
	_, err := catalog.Open(t.Context(), dir, fields, catalog.Options{})
	if !errors.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(),
			`field "mask": no file masks/c_mask.tif for the id "c"; 2 files are missing in all`) {
		t.Errorf("missing mask: %v", err)
	}
	dropped, err := catalog.Open(t.Context(), dir, fields, catalog.Options{DropIncomplete: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dropped.Close()
	if n, example := dropped.Remarks.Dropped, dropped.Remarks.Lacking; n != 2 || example != "masks/c_mask.tif" ||
		dropped.Fingerprint() != fromDir.Fingerprint() {
		t.Errorf("%d ids dropped, such as %q, %d left", n, example, dropped.Len())
	}
	// A field for which nothing else is complete.
	if _, err := catalog.Open(t.Context(), dir,
		[]catalog.Source{fields[0], {Field: "other", Pattern: "masks/{id}.tif"}},
		catalog.Options{DropIncomplete: true}); !errors.Is(err, fault.NotFound) ||
		!strings.Contains(err.Error(), "no id has a file or array for every field: 8 lack one, such as ") {
		t.Errorf("nothing complete: %v", err)
	}
	for _, bad := range [][]catalog.Source{
		{fields[1], fields[0]}, // the other way round
		{{Field: "image", Pattern: "nothing/{id}.tif"}},
		{{Field: "image", Pattern: "images/*.tif"}},
		{fields[0], {Field: "mask"}},
		{{Field: "image", Column: "uri"}},
	} {
		if _, err := catalog.Open(t.Context(), dir, bad, catalog.Options{}); !errors.Is(err, fault.NotFound) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestRoots promises that no file outside the roots is opened, however it is named.
func TestRoots(t *testing.T) {
	outside := folder.Of(t, "secret.tif")
	dir := folder.Of(t, "ok/a.tif", "ok/b.tif")
	in := catalog.Options{Roots: []string{filepath.Join(dir, "ok")}}
	escapes := []string{"../../" + filepath.Base(outside) + "/secret.tif", outside + "/secret.tif",
		"file://" + outside + "/secret.tif",
		"link.tif", "folder/secret.tif", "https://example.org/x.tif", "../ok2/x.tif"}
	for link, to := range map[string]string{"ok/link.tif": outside + "/secret.tif", "ok/folder": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	table := "image\na.tif\n" + filepath.Join(dir, "ok/b.tif") + "\n./../ok/a.tif\n" +
		strings.Join(escapes, "\n") + "\n"
	folder.Write(t, filepath.Join(dir, "ok/t.csv"), table)
	folder.Write(t, filepath.Join(dir, "ok2/t.csv"), table)
	tab := folder.Open(t, filepath.Join(dir, "ok/t.csv"), in)
	for row := range tab.Len() {
		a, err := tab.Asset(t.Context(), 0, row)
		if row < 3 {
			if err != nil {
				t.Errorf("row %d: %v", row, err)
			}
			continue
		}
		if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "outside of the served directories") {
			t.Errorf("%s: %+v %v", escapes[row-3], a, err)
		}
	}
	for _, src := range []string{dir, outside, filepath.Join(dir, "ok2/t.csv"),
		filepath.Join(dir, "ok/../ok2/t.csv"), filepath.Join(dir, "ok/folder"),
		filepath.Join(dir, "ok/link.tif"), filepath.Join(dir, "ok")} { // the last: it holds a link that leads out
		if _, err := catalog.Open(t.Context(), src, nil, in); !errors.Is(err, fault.NotFound) ||
			!strings.Contains(err.Error(), "outside of the served directories") {
			t.Errorf("%s: %v", src, err)
		}
	}
	none := catalog.Options{Roots: []string{}}
	if _, err := catalog.Open(t.Context(), filepath.Join(dir, "ok/t.csv"), nil, none); !errors.Is(err, fault.NotFound) {
		t.Errorf("no roots: %v", err)
	}
	all := folder.Open(t, filepath.Join(dir, "ok/t.csv"), catalog.Options{Roots: []string{"/"}})
	if _, err := all.Asset(t.Context(), 0, 4); err != nil {
		t.Errorf("root /: %v", err)
	}
}

// TestRootsOfServers promises that a URI stays below a root of a server, however it is escaped.
func TestRootsOfServers(t *testing.T) {
	roots := []string{"https://host/data", "s3://bucket/data"}
	for uri, below := range map[string]bool{
		"https://host/data/DATA/a%20b/s%C3%AD.tif": true, "https://host/data/a.tif?sig=%2Fx%2B": true,
		"https://host/data/a%23b": true,
		"s3://bucket/data/a b":    true, "https://host/data": true, "https://host/data/a..b": true,
		"https://host/data/%2e%2e/secret": false, "https://host/data/.%2E/secret": false,
		"https://host/data/a%2f..%2f..%2fsecret": false,
		"https://host/data/a%2Fb":                false, "https://host/data/a%5c..": false,
		"https://host/data/%252e%252e/secret": false, "https://host/data/%2e%2e;/x": false,
		"https://host/data/%2e/x": false, "https://host/data/a%00": false, "https://host/data/a%zz": false,
		"https://host/data/../x": false,
		"https://host/data%2fx":  false, "https://host/data%20/x": false, "https://host/dat%61/x": false,
		"https://host%2fdata/x": false, "http://host/data/x": false,
		"https://host/data\\..\\x": false, "s3://bucket/data/a%20b": false, "s3://bucket/data/%2e%2e/x": false,
		"https://host/data/x?a=/../": false,
	} {
		got, err := openers.NewRoots(roots).Allow(uri)
		if below && (err != nil || got != uri) || !below && !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
	}
}

// TestConcurrentReads promises that many goroutines that read assets in any order, through caches that hold almost
// nothing, get the assets of a plain read.
func TestConcurrentReads(t *testing.T) {
	data, rows := synthetic(t, 3000)
	reads := 500
	if testing.Short() {
		reads = 30
	}
	for _, cacheBytes := range []int64{1, 100_000, 64 << 20} {
		tab := folder.Open(t, "c.parquet", catalog.Options{Opener: folder.Memory{Name: "c.parquet", Data: data},
			CacheBytes: cacheBytes})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w), 1))
				for range reads {
					i := rng.Int64N(tab.Len())
					a, err := tab.Asset(context.Background(), 0, i)
					if err != nil {
						t.Error(err)
						return
					}
					if a.URI != rows[i].URI || !bytes.Equal(blob.Append(nil, a.Index), rows[i].Index) {
						t.Errorf("row %d: %s", i, a.URI)
					}
				}
			})
		}
		wg.Wait()
		if used := tab.CacheUsed(); used > cacheBytes {
			t.Errorf("the caches hold %d bytes of %d", used, cacheBytes)
		}
	}
}

// synthetic makes a catalog of n rows with indexes of 16 chunks, in memory.
func synthetic(t testing.TB, n int) ([]byte, []rowio.Row) {
	t.Helper()
	var buf bytes.Buffer
	rows := make([]rowio.Row, n)
	for i := range rows {
		rows[i] = syntheticRow(i)
	}
	_, err := rowio.Write(context.Background(), &buf, n, rowio.RowOptions{Workers: 2},
		rowio.Source{Make: func(_ context.Context, i int) (rowio.Row, error) {
			return rows[i], nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), rows
}

func syntheticRow(i int) rowio.Row {
	x := chunk.Index{Bands: 4, Height: 512, Width: 512, ChunkB: 1, ChunkH: 256, ChunkW: 256, DType: chunk.Uint16,
		Codec: chunk.Zstd, Predictor: chunk.Horizontal}
	off, rng := int64(1000), rand.New(rand.NewPCG(uint64(i), 3))
	for range 16 {
		n := int64(40000 + rng.IntN(30000))
		x.Ranges = append(x.Ranges, chunk.Range{Off: off, Len: n})
		off += n + 8
	}
	epsg := int32(32600 + i%60)
	mtime := "2026-05-04T03:02:01Z"
	a, b := float64(i), float64(i)/3
	return rowio.Row{URI: fmt.Sprintf("tiles/%03d/S2_%08d_chip.tif", i/10000, i), Index: blob.Append(nil, &x),
		Bands: 4, Height: 512, Width: 512,
		DType: "uint16", EPSG: &epsg, Transform: []float64{a, 10, 0, b, 0, -10}, MinX: &a, MinY: &b, MaxX: &a,
		MaxY: &b, Size: off, MTime: &mtime}
}

// TestFolderBehindALink promises that a symbolic link to a directory is the same dataset as the directory.
func TestFolderBehindALink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.MkdirAll(real, 0o700); err != nil {
		t.Fatal(err)
	}
	b := testfile.Read(t, filepath.Join("..", "..", "testdata", "raster", "tog", "tog-odd-16.tif"))
	testfile.Write(t, filepath.Join(real, "chip.tif"), b)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	var prints []string
	for _, src := range []string{real, link} {
		tab, err := catalog.Open(context.Background(), src, []catalog.Source{{Field: "image"}}, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if tab.Len() != 1 {
			t.Errorf("%s has %d samples", src, tab.Len())
		}
		prints = append(prints, tab.Fingerprint())
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
	if prints[0] != prints[1] {
		t.Errorf("fingerprints %v", prints)
	}
}
