package cli

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestIndexResumes: a resumed run gives the catalog of a new one, also after files changed, and an
// interrupted or failed run leaves its work for the next.
func TestIndexResumes(t *testing.T) {
	workplace(t)
	index := func(ctx context.Context, more ...string) result {
		return chaski(ctx, append([]string{
			"index", "--format", "parquet", "-o", "r.parquet", "--resume", "chips",
		}, more...)...)
	}
	rows := func(name string, want int64) {
		t.Helper()
		if got := catalogRows(t, name); got != want {
			t.Errorf("%s: %d rows, want %d", name, got, want)
		}
	}
	if r := index(t.Context()); r.code != 0 || r.err != "" {
		t.Fatalf("%+v", r)
	}
	rows("r.parquet", 3)
	// Rows are not made again: a file that became unreadable but looks the same keeps its row.
	st, err := os.Stat("chips/a.tif")
	if err != nil {
		t.Fatal(err)
	}
	good := testfile.Read(t, "chips/a.tif")
	put := func(name string, b []byte, at time.Time) {
		t.Helper()
		testfile.Write(t, name, b)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put("chips/a.tif", make([]byte, len(good)), st.ModTime())
	if r := index(t.Context()); r.code != 0 {
		t.Errorf("%+v", r)
	}
	// Once the file looks changed, it is read and the run fails; the old catalog stays.
	put("chips/a.tif", make([]byte, len(good)), st.ModTime().Add(time.Second))
	if r := index(t.Context()); r.code != 1 || !errorLine.MatchString(r.err) {
		t.Errorf("%+v", r)
	}
	rows("r.parquet", 3)
	r := index(t.Context(), "--skip-bad")
	lines := strings.Split(r.err, "\n")
	if r.code != 0 || len(lines) != 3 || !strings.HasPrefix(lines[0], "chaski: skipped: ") ||
		!strings.Contains(lines[0], filepath.Join("chips", "a.tif")) || lines[1] != "chaski: files skipped: 1" {
		t.Errorf("%+v", r)
	}
	rows("r.parquet", 2)

	// More than a block of files, followed by a bad one.
	for i := range 1030 {
		name := "chips/z" + string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)}) + ".tif"
		if err := os.Link("chips/b.tif", name); err != nil {
			t.Skip(err)
		}
	}
	put("chips/zzzz.tif", []byte("no tiff"), st.ModTime())
	put("chips/a.tif", good, st.ModTime())
	if r := index(t.Context()); r.code != 1 {
		t.Errorf("%+v", r)
	}
	rows("r.parquet", 2)
	rows("r.parquet.partial", 1024)
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(console.Interrupt{Signal: os.Interrupt})
	if r := index(gone); r.code != console.ExitIntr {
		t.Errorf("%+v", r)
	}
	rows("r.parquet.partial", 1024)
	if err := os.Remove("chips/zzzz.tif"); err != nil {
		t.Fatal(err)
	}
	if r := index(t.Context()); r.code != 0 {
		t.Errorf("%+v", r)
	}
	rows("r.parquet", 1033)
	if left, _ := filepath.Glob("r.parquet?*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestIndexJoins: columns of a table are joined to the catalog, and messages count the rows and
// files without a partner.
func TestIndexJoins(t *testing.T) {
	workplace(t)
	testfile.Write(t, "few.csv", []byte("id,label\na,1\nother/c,2\n"))
	index := func(args ...string) result {
		return chaski(t.Context(), append([]string{
			"index", "--format", "parquet", "-o", "j.parquet", "chips",
		}, args...)...)
	}
	if r := index("--join", "labels.csv", "--on", "id"); r.code != 0 || r.err != "" {
		t.Errorf("%+v", r)
	}
	if r := chaski(t.Context(), "info", "--json", "j.parquet"); r.code != 0 || !strings.Contains(r.out, `"label"`) {
		t.Errorf("%+v", r)
	}
	r := index("--join", "few.csv", "--on", "id")
	if r.code != 1 || !errorLine.MatchString(r.err) || !strings.Contains(r.err, "few.csv") {
		t.Errorf("%+v", r)
	}
	r = index("--join", "few.csv", "--on", "id", "--join-left")
	if r.code != 0 ||
		r.err != "chaski: files without a row in few.csv: 2\nchaski: rows of few.csv without a file: 1\n" {
		t.Errorf("%+v", r)
	}
}

// TestIndexPlacesFormatsAlike: bands, size, location and nodata of a chip are the same in the
// catalog rows of a TIFF and of the rumi files made from it, as far as these formats can hold them.
func TestIndexPlacesFormatsAlike(t *testing.T) {
	dir := t.TempDir()
	src := testdata(t, "raster", "tog", "tog-series-0.tif")
	for name, to := range map[string]string{"a.tif": "tog", "b.tif": "rumi", "c.rumi": "rumi2"} {
		if r := chaski(t.Context(), "convert", "--to", to, src, "-o", filepath.Join(dir, name)); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	file := filepath.Join(dir, "all.parquet")
	if r := chaski(t.Context(), "index", "--format", "parquet", "-o", file, dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	type row struct {
		URI       string    `parquet:"uri"`
		Bands     int32     `parquet:"bands"`
		Height    int32     `parquet:"height"`
		Width     int32     `parquet:"width"`
		DType     string    `parquet:"dtype"`
		EPSG      *int32    `parquet:"epsg,optional"`
		Transform []float64 `parquet:"transform,list"`
		MinX      *float64  `parquet:"minx,optional"`
		MinY      *float64  `parquet:"miny,optional"`
		MaxX      *float64  `parquet:"maxx,optional"`
		MaxY      *float64  `parquet:"maxy,optional"`
	}
	rows, err := parquet.ReadFile[row](file)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	want := rows[0]
	if want.EPSG == nil || want.MinX == nil || len(want.Transform) != 6 {
		t.Fatalf("the TIFF says no place: %+v", want)
	}
	for _, r := range rows[1:] {
		want.URI = r.URI
		if !reflect.DeepEqual(r, want) {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
}

func TestIndexUsage(t *testing.T) {
	workplace(t)
	for _, args := range [][]string{
		{"--resume"},
		{"--skip-bad"},
		{"--format", "parquet", "--resume"},
		{"--format", "parquet", "--join", "labels.csv"},
		{"--format", "parquet", "--on", "id"},
		{"--format", "parquet", "--join-left"},
		{"--format", "parquet", "--workers", "-1"},
	} {
		r := chaski(t.Context(), append(append([]string{"index"}, args...), "chips/a.tif")...)
		if r.code != console.ExitUsage {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestIndexOfTables: a table without --field is told to need it, and is no damaged TIFF elsewhere.
func TestIndexOfTables(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"t.csv": "path,label\na.tif,1\n", "t.json": `{"type": "FeatureCollection", "features": []}`,
	} {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(text))
		for _, args := range [][]string{{"index", path}, {"index", path, "-o", filepath.Join(dir, "out.parquet")}} {
			r := chaski(t.Context(), args...)
			if r.code != console.ExitUsage || !strings.Contains(r.err, "is a table: --field NAME=COLUMN") {
				t.Errorf("%q: %+v", args, r)
			}
		}
		for _, args := range [][]string{{"cat", path}, {"convert", path, "-o", filepath.Join(dir, "out.tif")}} {
			r := chaski(t.Context(), args...)
			if r.code != 1 || !strings.Contains(r.err, " is not read as a raster: ") ||
				!strings.HasSuffix(r.err, ": unsupported\n") {
				t.Errorf("%q: %+v", args, r)
			}
		}
	}
}

// catalogRows returns the number of rows of a catalog, or 0 if there is none.
func catalogRows(t *testing.T, name string) int64 {
	t.Helper()
	r, err := (&openers.Files{}).Open(t.Context(), name)
	if err != nil {
		return 0
	}
	defer r.Close()
	sum, err := tableinfo.Parquet(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return sum.Rows
}
