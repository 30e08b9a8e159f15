package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// keysOf returns the keys of samples.
func keysOf(t *testing.T, table *catalog.Table) (keys []string) {
	t.Helper()
	if err := table.ScanKeys(t.Context(), func(_ int64, key string) error {
		keys = append(keys, key)
		return nil
	}); err != nil {
		t.Error(err)
	}
	return keys
}

// valuesOf returns the values of a field as Go prints them.
func valuesOf(t *testing.T, table *catalog.Table, field int) (values []string) {
	t.Helper()
	for row := range table.Len() {
		v, err := table.Value(t.Context(), field, row)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(v.Text))
		if table.Kind(field) == catalog.Int {
			values[row] = fmt.Sprint(v.Int)
		} else if table.Kind(field) == catalog.Float {
			values[row] = fmt.Sprint(v.Float)
		}
		if v.Null {
			values[row] = "null"
		}
	}
	return values
}

// TestSplitsOfAFolder: tables in folders of a directory of images are one table with the column split, where something
// asks for it; a single table has its samples alone; two in one folder are refused.
func TestSplitsOfAFolder(t *testing.T) {
	files := []string{"train/a.png=" + string(pictures(t, 4)[1]), "train/metadata.csv=file_name,n\na.png,1\n",
		"test/b.png=" + string(pictures(t, 5)[1]), "test/metadata.csv=file_name,n\nb.png,2\n"}
	dir := folder.Of(t, files...)
	image, n := catalog.Source{Field: "image"}, catalog.Source{Field: "n"}
	for _, o := range []catalog.Options{{AllColumns: true}, {Columns: []string{"split"}}} {
		table := folder.Open(t, dir, o, image, n, catalog.Source{Field: "part", Column: "split"})
		if got := fmt.Sprint(valuesOf(t, table, 1), valuesOf(t, table, 2), keysOf(t, table)); got !=
			"[2 1] [test train] [test/b.png train/a.png]" {
			t.Errorf("%s", got)
		}
		if a, err := table.Asset(t.Context(), 0, 1); err != nil || a.Index.Height != 4 {
			t.Errorf("%+v, %v", a, err)
		}
	}
	_, err := catalog.Open(t.Context(), dir, []catalog.Source{image, n}, catalog.Options{Columns: []string{"n"}})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "test/metadata.csv and "+
		`train/metadata.csv are of several splits: pick one by split (Rows(split="test"))`) {
		t.Errorf("splits that nobody asked for: %v", err)
	}
	one := folder.Open(t, folder.Of(t, files[:2]...), catalog.Options{Columns: []string{"n"}}, image, n)
	if got := fmt.Sprint(valuesOf(t, one, 1)); got != "[1]" {
		t.Errorf("one split: %s", got)
	}
	twice := folder.Of(t, append(files[:2:2], "train/metadata.jsonl={}")...)
	_, err = catalog.Open(t.Context(), twice, []catalog.Source{image, n}, catalog.Options{Columns: []string{"n"}})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "leave one") {
		t.Errorf("two tables of a folder: %v", err)
	}
}

// TestFilesOfATable: the text tables of a directory are one table, in the order of their names.
func TestFilesOfATable(t *testing.T) {
	dir := folder.Of(t, "p/0.tif", "p/1.tif", "b.csv=uri,n\np/1.tif,2\n", "a.csv=uri,n\np/0.tif,1\n")
	table := folder.Open(t, filepath.Join(dir, "*.csv"), catalog.Options{},
		catalog.Source{Field: "image", Column: "uri"}, catalog.Source{Field: "n"})
	if got := fmt.Sprint(valuesOf(t, table, 1), keysOf(t, table)); got != "[1 2] [p/0.tif p/1.tif]" {
		t.Errorf("%s", got)
	}
	if a, err := table.Asset(t.Context(), 0, 1); err != nil || a.Index.Height != 2 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestCodes: a column of digits has numbers, or the strings as written where an option or a field says so. A column of
// a text that nobody asks for is not read.
func TestCodes(t *testing.T) {
	dir := folder.Of(t, "0.tif", "t.csv=uri,code,plain,score\n0.tif,0012,12,1.50\n0.tif,7,7,2\n")
	field := func(name string, kind catalog.Kind, written bool) catalog.Source {
		return catalog.Source{Field: name, Kind: kind, Strings: written}
	}
	options := func(name string, columns, texts, codes bool) (o catalog.Options) {
		for list, wanted := range map[*[]string]bool{&o.Columns: columns, &o.Texts: texts, &o.Codes: codes} {
			if wanted {
				*list = []string{name}
			}
		}
		return o
	}
	for name, c := range map[string]struct {
		options catalog.Options
		field   catalog.Source // without a kind, the column is scanned
		want    string
	}{
		"numbers":           {catalog.Options{}, field("code", catalog.Int, false), "[12 7]"},
		"a code":            {options("code", false, false, true), field("code", catalog.Text, false), "[0012 7]"},
		"no code":           {options("plain", false, false, true), field("plain", catalog.Text, false), "[12 7]"},
		"texts":             {options("code", false, true, false), field("code", catalog.Text, false), "[0012 7]"},
		"numbers of texts":  {options("code", false, true, false), field("code", catalog.Int, false), "[12 7]"},
		"numbers of codes":  {options("code", false, false, true), field("code", catalog.Int, false), "[12 7]"},
		"strings":           {catalog.Options{}, field("code", catalog.Text, true), "[0012 7]"},
		"words":             {catalog.Options{}, field("score", catalog.Text, false), "[1.5 2]"},
		"written":           {catalog.Options{}, field("score", catalog.Text, true), "[1.50 2]"},
		"written words":     {options("score", false, true, false), field("score", catalog.Text, false), "[1.50 2]"},
		"written codes":     {options("score", false, false, true), field("score", catalog.Text, true), "[1.50 2]"},
		"a scanned code":    {options("code", true, false, true), field("code", 0, false), "[0012 7]"},
		"scanned numbers":   {options("code", true, false, false), field("code", 0, false), "[12 7]"},
		"scanned texts":     {options("plain", true, true, false), field("plain", 0, false), "[12 7]"},
		"texts of a score":  {options("score", true, true, false), field("score", 0, false), "[1.50 2]"},
		"codes of a score":  {options("score", true, false, true), field("score", 0, false), "[1.5 2]"},
		"all":               {catalog.Options{AllColumns: true}, field("code", 0, false), "[0012 7]"},
		"a field among all": {catalog.Options{AllColumns: true}, field("code", catalog.Int, false), "[12 7]"},
		"nobody":            {catalog.Options{}, field("code", 0, false), "none"},
	} {
		fields := []catalog.Source{{Field: "image", Column: "uri"}, c.field}
		scans := c.field.Kind == 0
		if scans {
			fields = fields[:1]
		} else if c.field.Kind == catalog.Int {
			fields[1].Kind = 0
		}
		table := folder.Open(t, filepath.Join(dir, "t.csv"), c.options, fields...)
		got := "none"
		ignore := func(int64, catalog.Value) error { return nil }
		if !scans {
			got = fmt.Sprint(valuesOf(t, table, 1))
		} else if _, err := scanned(t.Context(), table, c.field.Field, ignore); err == nil {
			got = fmt.Sprint(columnOf(t, table, c.field.Field))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestMaybe: a field of a column that a table may lack is null there; the path of a file that may lack is null where it
// does; lists are values; a cell of bytes of a raster is no string.
func TestMaybe(t *testing.T) {
	type line struct {
		URI  string   `parquet:"uri"`
		Tags []string `parquet:"tags,list"`
		Raw  []byte   `parquet:"raw"`
	}
	dir := folder.Of(t, "0.tif", "1.tif", "s/0.geojson={}")
	src := filepath.Join(dir, "t.parquet")
	if err := parquet.WriteFile(src, []line{{"0.tif", []string{"a", "b"}, nil}, {"1.tif", nil, nil}}); err != nil {
		t.Fatal(err)
	}
	table := folder.Open(t, src, catalog.Options{}, catalog.Source{Field: "image", Column: "uri"},
		catalog.Source{Field: "none", Column: "none", Maybe: true}, catalog.Source{Field: "tags"})
	if got := fmt.Sprint(valuesOf(t, table, 1)); got != "[null null]" {
		t.Errorf("a column that lacks: %s", got)
	}
	v, err := table.Value(t.Context(), 2, 0)
	want := []catalog.Value{{Text: []byte("a")}, {Text: []byte("b")}}
	if err != nil || !reflect.DeepEqual(v.List, want) {
		t.Errorf("a list: %+v, %v", v, err)
	}
	beside := folder.Open(t, dir, catalog.Options{}, catalog.Source{Field: "image", Pattern: "{id}.tif"},
		catalog.Source{Field: "shapes", Pattern: "s/{id}.geojson", Beside: true, Optional: true})
	if got := valuesOf(t, beside, 1); got[0] != filepath.Join(dir, "s", "0.geojson") || got[1] != "null" {
		t.Errorf("files of shapes: %q", got)
	}
}

// TestStepsOfACatalog: a catalog says how many steps of time its rasters have; without indexes it says nothing.
func TestStepsOfACatalog(t *testing.T) {
	data := corpus.Testdata(t)
	file := filepath.Join(t.TempDir(), "c.parquet")
	folder.Index(t, file, build.Options{}, filepath.Join(data, "raster", "rumi-3", "unit-t-b-y-x-0.rumi"),
		filepath.Join(data, "extras", "scaled.tif"), filepath.Join(data, "raster", "rumi-3", "unit-t-b-y-x-3.rumi"))
	table := folder.Open(t, file, catalog.Options{})
	for enough, want := range map[int]catalog.StepCount{1: {Most: 3, Of: 3}, 2: {Most: 3, Lacking: 1, Of: 3},
		3: {Most: 3, Lacking: 1, Of: 3}, 4: {Most: 3, Lacking: 3, Of: 3}} {
		if got, err := table.CountSteps(t.Context(), 0, enough); err != nil || got != want {
			t.Errorf("%d steps: %+v, %v; want %+v", enough, got, err, want)
		}
	}
	for _, c := range []struct {
		src   string
		field catalog.Source
	}{{filepath.Join(data, "extras"), catalog.Source{Field: "image"}},
		{file, catalog.Source{Field: "image", Axes: chunk.Axes{Pages: chunk.BandsPages}}}} {
		table := folder.Open(t, c.src, catalog.Options{}, c.field)
		if got, err := table.CountSteps(t.Context(), 0, 2); err != nil || got != (catalog.StepCount{}) {
			t.Errorf("%s: %+v, %v", c.src, got, err)
		}
	}
}

// countedFiles counts the bytes that are read of files, and the files that are open.
type countedFiles struct {
	openers.Files
	reads, bytes, open atomic.Int64
}

type countedFile struct {
	source.Reader
	files *countedFiles
}

func (f *countedFiles) Open(ctx context.Context, name string) (source.Reader, error) {
	r, err := f.Files.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	f.open.Add(1)
	return countedFile{r, f}, nil
}

func (r countedFile) Close() error {
	r.files.open.Add(-1)
	return r.Reader.Close()
}

func (r countedFile) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.files.reads.Add(1)
	r.files.bytes.Add(int64(len(p)))
	return r.Reader.ReadAt(ctx, p, off)
}

// TestPageCounter: a counter counts the bytes of pages that reading the rasters of cells takes, each page once while it
// stays in memory; a table whose pages all fit has no counter.
func TestPageCounter(t *testing.T) {
	type plain struct { // whose pages hold nothing but the cells
		Chip  []byte `parquet:"chip,plain"`
		Label int64  `parquet:"label"`
	}
	rows := slices.Repeat([]plain{{pictures(t, 60)[0], 0}}, 12)
	src := filepath.Join(folder.Of(t, "t.parquet="+string(imageTable(t, 3, rows...))), "t.parquet")
	field := catalog.Source{Field: "chip"}
	small := catalog.Options{CacheBytes: 30 << 10}
	counted := folder.Open(t, src, small, field, catalog.Source{Field: "label"})
	counter, err := counted.NewPageCounter(t.Context())
	if err != nil || counter == nil || !counter.Counts(0) || counter.Counts(1) {
		t.Fatalf("%+v, %v", counter, err)
	}
	files := &countedFiles{}
	small.Opener = &openers.Mux{Files: files}
	table := folder.Open(t, src, small, field, catalog.Source{Field: "label"})
	before := files.bytes.Load()
	var requests, total int64
	for _, row := range []int64{3, 4, 5, 11, 7, 0, 1, 0, 3, 7, 3, 11, 7, 11, 3} {
		n, size, err := counter.Read(t.Context(), 0, row)
		if err != nil {
			t.Fatal(err)
		}
		requests, total = requests+n, total+size
		if _, err := table.Asset(t.Context(), 0, row); err != nil {
			t.Fatal(err)
		}
	}
	for again := range 2 { // a raster that is kept is not read again
		n, size, err := counter.Read(t.Context(), 0, 8)
		if err != nil || (n == 0) != (again == 1) || (size == 0) != (again == 1) {
			t.Errorf("read %d: %d requests, %d bytes, %v", again, n, size, err)
		}
	}
	// A header of a page, of at most 64 bytes, may be read by itself.
	if got := files.bytes.Load() - before; got < total || got > total+64*requests || requests != 7 {
		t.Errorf("%d bytes are counted in %d requests, and %d are read", total, requests, got)
	}
	for i, row := range []int64{5, 9, 0} { // the first raster stands for all
		stands, err := counted.Asset(counter.With(t.Context()), 0, row)
		again, other := counted.Asset(t.Context(), 0, row)
		if err != nil || other != nil || stands.Member != fmt.Sprint(row, "/chip") || stands.URI != src ||
			(stands.Index == again.Index) != (i == 2) {
			t.Errorf("row %d: %s, %v, %v", row, stands.Name(), err, other)
		}
	}
	file, most := table.Remarks.PageFile, table.Remarks.PageBytes
	if file != src || most < 3*3600 || !table.Announces() {
		t.Errorf("pages of %d bytes of %s, announced %v", most, file, table.Announces())
	}
	table.Announce(0, 5)()
	table.Announce(1, 5)()
	counter.Announce(0, 5)()
	counter.Announce(1, 5)()
	all := folder.Open(t, src, catalog.Options{}, field)
	if file, most := all.Remarks.PageFile, all.Remarks.PageBytes; file != "" || most != 0 || all.Announces() {
		t.Errorf("pages that fit: %d bytes of %s, announced %v", most, file, all.Announces())
	}
	all.Announce(0, 5)()
	if none, err := all.NewPageCounter(t.Context()); none != nil || err != nil {
		t.Errorf("pages that fit: %+v, %v", none, err)
	}
}

// TestPagesThatFit: pages count where the cache is smaller than what the file stores of the column. A counter has the
// first raster in a cell that can be read, if there is one.
func TestPagesThatFit(t *testing.T) {
	large, path := pictures(t, 60)[0], "a.tif"
	broken := append([]byte("II*\x00"), make([]byte, 4000)...)
	dir := folder.Of(t, "a.tif")
	src := filepath.Join(dir, "t.parquet")
	field := catalog.Source{Field: "image"}
	for name, c := range map[string]struct {
		rows  []imageRow
		first int // the row that stands for all; -1: none
	}{"rasters": {imageRows(large, large), 0}, "broken ones": {imageRows(broken, broken), -1},
		"a file": {[]imageRow{{&imageCell{Path: &path}, nil, 0}, {&imageCell{Bytes: large}, nil, 1}}, 1}} {
		testfile.Write(t, src, imageTable(t, 2, c.rows...))
		stored := storedBytes(t, src, "image", "bytes")
		for less := range int64(2) {
			table := folder.Open(t, src, catalog.Options{CacheBytes: 2*stored - 2*less}, field)
			counter, err := table.NewPageCounter(t.Context())
			if err != nil || (counter != nil) != (less == 1 && c.first >= 0) {
				t.Errorf("%s, %d bytes less: %+v, %v", name, less, counter, err)
			}
			if n := table.Remarks.PageBytes; (n > 0) != (less == 1) {
				t.Errorf("%s, %d bytes less: pages of %d bytes", name, less, n)
			}
			if counter != nil {
				a, err := table.Asset(counter.With(t.Context()), 0, 0)
				if err != nil || a.Index.Height != 60 { // of the first in a cell
					t.Errorf("%s: %+v, %v", name, a.Index, err)
				}
			} else if less == 1 {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := table.NewPageCounter(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, canceled: %v", name, err)
				}
			}
		}
	}
	b := bucket{dir}
	testfile.Write(t, src, imageTable(t, 1, imageRows(large, large, large, large)...))
	var bytes []int64 // servers are asked for 64 KiB, or for what the file has
	for _, src := range []string{src, "s3://bucket/t.parquet"} {
		o := catalog.Options{CacheBytes: 2 << 10, Opener: &openers.Mux{Files: &openers.Files{},
			Schemes: map[string]source.Opener{"s3": b}}}
		counter, err := folder.Open(t, src, o, catalog.Source{Field: "chip"}).NewPageCounter(t.Context())
		if err != nil || counter == nil {
			t.Fatal(err)
		}
		_, n, err := counter.Read(t.Context(), 0, 1)
		if bytes = append(bytes, n); err != nil {
			t.Error(err)
		}
	}
	if bytes[0] < 3600 || bytes[0] > 4000 || bytes[1] <= bytes[0] {
		t.Errorf("%d bytes are read of a file, %d of an object", bytes[0], bytes[1])
	}
}

// storedBytes returns the bytes that a Parquet file stores of a column, by its footer.
func storedBytes(t *testing.T, path string, column ...string) (total int64) {
	t.Helper()
	data := testfile.Read(t, path)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			if slices.Equal(c.MetaData.PathInSchema, column) {
				total += c.MetaData.TotalCompressedSize
			}
		}
	}
	return total
}

// TestLegends: classes have the colours and names of the file, and before them those of the metadata beside it. A
// legend that cannot be read is empty.
func TestLegends(t *testing.T) {
	palette := color.Palette{color.RGBA{0, 0, 0, 255}, color.RGBA{255, 128, 1, 255}, color.RGBA{2, 3, 4, 255}}
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, 4, 4), palette)); err != nil {
		t.Fatal(err)
	}
	pam := `<PAMDataset><PAMRasterBand band="1"><CategoryNames><Category>water</Category><Category>wood</Category>` +
		`</CategoryNames></PAMRasterBand></PAMDataset>`
	var byGDAL []string // what rasterio reads in palette.tif
	for i := range 256 {
		byGDAL = append(byGDAL, fmt.Sprintf("#%02x%02x%02x", byte(i), byte(3*i), byte(7*i)))
	}
	table := `<PAMDataset><PAMRasterBand band="1"><ColorTable><Entry c1="1" c2="2" c3="3" c4="255"/></ColorTable>` +
		`</PAMRasterBand></PAMDataset>`
	ofFile := string(testfile.Read(t, filepath.Join(corpus.Testdata(t), "extras", "palette.tif")))
	dir := folder.Of(t, "a.png="+b.String(), "b.png="+b.String(), "b.png.aux.xml="+pam, "c.tif", "c.tif.aux.xml="+pam,
		"d.tif", "e.png="+b.String(), "e.png.aux.xml="+table, "f.tif="+ofFile)
	for name, want := range map[string]chunk.Legend{
		"a.png": {Palette: []string{"#000000", "#ff8001", "#020304"}},
		"b.png": {Palette: []string{"#000000", "#ff8001", "#020304"}, Names: []string{"water", "wood"}},
		"c.tif": {Names: []string{"water", "wood"}}, "d.tif": {}, "e.png": {Palette: []string{"#010203"}},
		"f.tif": {Palette: byGDAL},
	} {
		a, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, filepath.Join(dir, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		file, err := (&openers.Files{}).Open(t.Context(), a.URI)
		if err != nil {
			t.Fatal(err)
		}
		got := a.Legend(t.Context(), &openers.Files{}, file)
		if !slices.Equal(got.Palette, want.Palette) || !slices.Equal(got.Names, want.Names) ||
			a.HasLegend() != (name != "d.tif") {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if levels, err := catalog.Overviews(t.Context(), file, a.Index, 0); levels != nil || err != nil {
			t.Errorf("%s: overviews %v, %v", name, levels, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFieldsOfACatalog: a catalog of pairs names its fields; other datasets name none.
func TestFieldsOfACatalog(t *testing.T) {
	dir := folder.Of(t, "i/a.tif", "m/a.tif")
	pairs, plain := filepath.Join(dir, "pairs.parquet"), filepath.Join(dir, "plain.parquet")
	folder.Index(t, pairs, build.Options{Fields: []catalog.Source{{Field: "x", Pattern: "i/{id}.tif"},
		{Field: "y", Pattern: "m/{id}.tif"}}}, dir)
	folder.Index(t, plain, build.Options{}, filepath.Join(dir, "i"))
	for src, want := range map[string][]string{pairs: {"x", "y"}, plain: nil, dir: nil} {
		if got, err := catalog.Fields(t.Context(), src, catalog.Options{}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", src, got, err)
		}
		if table := folder.Open(t, src, catalog.Options{}, catalog.Source{Field: "x"}); src == pairs &&
			table.Fields() != 1 {
			t.Errorf("one field of pairs: %d", table.Fields())
		}
		_, err := catalog.Open(t.Context(), src, []catalog.Source{{Field: "x", Column: "nowhere"}}, catalog.Options{})
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s has another column: %v", src, err)
		}
		if table := folder.Open(t, src, catalog.Options{}); table.OfImages() != (src != pairs) {
			t.Errorf("%s: of images is %v", src, table.OfImages())
		}
	}
	if names, err := catalog.Fields(t.Context(), filepath.Join(dir, "none.parquet"), catalog.Options{}); err == nil {
		t.Errorf("no file: %q", names)
	}
}
