package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// imageRow is a row of a table as the library datasets writes it, with its feature Image.
type imageRow struct {
	Image *imageCell `parquet:"image,optional"`
	Chip  []byte     `parquet:"chip,optional"`
	Label int64      `parquet:"label"`
}

type imageCell struct {
	Bytes []byte  `parquet:"bytes,optional"`
	Path  *string `parquet:"path,optional"`
}

// imageTable writes rows, size in each row group.
func imageTable[T any](t testing.TB, size int, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.MaxRowsPerRowGroup(int64(size)), parquet.DataPageStatistics(false))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictures returns the same grey image of side pixels as TIFF, PNG, JPEG and NumPy file.
func pictures(t testing.TB, side int) [][]byte {
	t.Helper()
	grey := image.NewGray(image.Rect(0, 0, side, side))
	grey.SetGray(0, 0, color.Gray{200})
	var p, j bytes.Buffer
	if err := png.Encode(&p, grey); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&j, grey, nil); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }", side, side)
	head += strings.Repeat(" ", 117-len(head)) + "\n" // with the 10 bytes before it 128
	npy := append([]byte("\x93NUMPY\x01\x00\x76\x00"), head...)
	return [][]byte{folder.TIFF(side, side, 0), p.Bytes(), j.Bytes(), append(npy, grey.Pix...)}
}

// imageRows returns rows whose images and chips are files, each with its number as label.
func imageRows(files ...[]byte) (rows []imageRow) {
	for i, file := range files {
		rows = append(rows, imageRow{&imageCell{Bytes: file}, file, int64(i)})
	}
	return rows
}

// TestCells: rasters of all formats in the cells of a column, and in those of an Image, have the index and the bytes
// that they have as files.
func TestCells(t *testing.T) {
	files := pictures(t, 7)
	rows := imageRows(files...)
	name := "given.png"
	rows[1].Image.Path = &name
	dir := folder.Of(t, "t.parquet="+string(imageTable(t, 2, rows...)))
	src := filepath.Join(dir, "t.parquet")
	tab := folder.Open(t, src, catalog.Options{}, catalog.Source{Field: "image"}, catalog.Source{Field: "m",
		Column: "chip"},
		catalog.Source{Field: "same", Column: "image.bytes"}, catalog.Source{Field: "label"})
	if got := folder.IDs(t, tab); !slices.Equal(got, []string{"0/image", "given.png", "2/image", "3/image"}) {
		t.Errorf("ids %q", got)
	}
	for row, file := range files {
		folder.Write(t, filepath.Join(dir, "file"), string(file))
		want, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, filepath.Join(dir, "file"), 0)
		if err != nil {
			t.Fatal(err)
		}
		for field := range 3 {
			got, err := tab.Asset(t.Context(), field, int64(row))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes, file) ||
				!bytes.Equal(blob.Append(nil, got.Index), blob.Append(nil, want.Index)) {
				t.Errorf("row %d, field %d: other bytes or another index", row, field)
			}
			column := []string{"image", "chip", "image"}[field]
			if want := fmt.Sprintf("%s::%d/%s", src, row, column); got.Name() != want {
				t.Errorf("name %q, want %q", got.Name(), want)
			}
			byName, err := catalog.OpenCell(t.Context(), &openers.Files{}, src, got.Member, 0)
			if err != nil || !bytes.Equal(byName.Bytes, file) {
				t.Errorf("by name: %v", err)
			}
		}
	}
	for _, name := range []string{"4/image", "-1/image", "x", "0/none", "0/label"} {
		if _, err := catalog.OpenCell(t.Context(), &openers.Files{}, src, name, 0); fault.KindOf(err) == 0 {
			t.Errorf("%s: %v has no kind", name, err)
		}
	}
}

// TestCellsBehindNulls: the first cell with bytes says whether a column holds rasters. An empty path names no raster.
func TestCellsBehindNulls(t *testing.T) {
	png, path, empty := pictures(t, 4)[1], "a.png", ""
	for nulls := range 3 {
		rows := slices.Repeat([]imageRow{{&imageCell{Path: &path}, png, 0}}, nulls)
		rows = append(rows, imageRow{&imageCell{Bytes: png, Path: &empty}, png, 0})
		dir := folder.Of(t, "t.parquet="+string(imageTable(t, 9, rows...)), "a.png="+string(png))
		table := folder.Open(t, filepath.Join(dir, "t.parquet"), catalog.Options{}, catalog.Source{Field: "image"})
		want := append(slices.Repeat([]string{"a.png"}, nulls), fmt.Sprintf("%d/image", nulls))
		if got := folder.IDs(t, table); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for row := range table.Len() {
			if a, err := table.Asset(t.Context(), 0, row); err != nil || a.Index.Height != 4 {
				t.Errorf("row %d behind %d nulls: %+v, %v", row, nulls, a.Index, err)
			}
		}
	}
}

// TestCellsThatLack: a column of bytes has rasters if its first value is one, behind nulls, too, or if none has a value
// and there are paths. Other columns of pictures do not count where no field is given.
func TestCellsThatLack(t *testing.T) {
	png, path := pictures(t, 4)[1], "a.png"
	type row struct {
		Anim *imageCell `parquet:"anim,optional"`
		Chip []byte     `parquet:"chip,optional"`
	}
	dir := folder.Of(t, "a.png="+string(png), "empty.parquet="+string(imageTable[imageRow](t, 9)), "paths.parquet="+
		string(imageTable(t, 9, imageRow{Image: &imageCell{Path: &path}}, imageRow{Image: &imageCell{Path: &path}})),
		"nulls.parquet="+string(imageTable(t, 9, imageRow{}, imageRow{}, imageRow{Chip: png})))
	writeTable(t, filepath.Join(dir, "gif.parquet"), []row{{&imageCell{Bytes: []byte("GIF89a")}, png}}, nil)
	for name, c := range map[string]struct {
		field string
		want  []int // the heights of rasters, 0 without one
	}{"empty": {"image", nil}, "paths": {"image", []int{4, 4}}, "nulls": {"chip", []int{0, 0, 4}},
		"gif": {"", []int{4}}} {
		var fields []catalog.Source
		if c.field != "" {
			fields = []catalog.Source{{Field: c.field}}
		}
		table := folder.Open(t, filepath.Join(dir, name+".parquet"), catalog.Options{}, fields...)
		if table.Len() != int64(len(c.want)) || table.Kind(0) != catalog.Raster {
			t.Errorf("%s: %d rows of %vs", name, table.Len(), table.Kind(0))
			continue
		}
		for row, height := range c.want {
			a, err := table.Asset(t.Context(), 0, int64(row))
			if height == 0 && fault.KindOf(err) != fault.NotFound || height > 0 && (err != nil || a.Index.Height !=
				height) {
				t.Errorf("%s, row %d: %+v, %v", name, row, a.Index, err)
			}
		}
	}
	src := filepath.Join(dir, "nulls.parquet")
	text := folder.Open(t, src, catalog.Options{}, catalog.Source{Field: "chip", Kind: catalog.Text})
	if text.Kind(0) != catalog.Text {
		t.Errorf("strings are %vs", text.Kind(0))
	}
	blobs := []catalog.Source{{Field: "images", Blob: "chip"}} // of files that no column names
	if _, err := catalog.Open(t.Context(), src, blobs, catalog.Options{}); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestCellsElsewhere: without bytes the path of an Image leads to a file, relative to the table; a row with neither has
// no raster. A table without a column "image" has its first column of rasters in its place.
func TestCellsElsewhere(t *testing.T) {
	path, empty := "sub/a.tif", ""
	rows := append(imageRows(folder.TIFF(5, 3, 0)), imageRow{Image: &imageCell{Path: &path}},
		imageRow{Image: &imageCell{Path: &empty}}, imageRow{})
	dir := folder.Of(t, "sub/a.tif", "data/t.parquet="+string(imageTable(t, 10, rows...)), "data/sub/a.tif")
	tab := folder.Open(t, filepath.Join(dir, "data", "t.parquet"), catalog.Options{}, catalog.Source{Field: "image"})
	for row, height := range []int{5, 3} {
		a, err := tab.Asset(t.Context(), 0, int64(row))
		if err != nil || a.Index.Height != height {
			t.Errorf("row %d: height %v, %v", row, a.Index, err)
		}
	}
	for _, row := range []int64{2, 3} {
		if _, err := tab.Asset(t.Context(), 0, row); fault.KindOf(err) != fault.NotFound {
			t.Errorf("row %d: %v", row, err)
		}
	}
}

// TestShards: the Parquet files below a directory, or those that a glob matches, are one table; a directory with
// rasters stays a listing of them.
func TestShards(t *testing.T) {
	var files []string
	height := 1
	for i := range 3 {
		rows := imageRows(folder.TIFF(height, 2, 0), folder.TIFF(height+1, 2, 0))
		height += 2
		rows[0].Label, rows[1].Label = int64(2*i), int64(2*i+1)
		files = append(files, fmt.Sprintf("data/train-%05d-of-00003.parquet=%s", i, imageTable(t, 1, rows...)))
	}
	dir := folder.Of(t, append(files, "mixed/a.tif", "mixed/t.parquet=no table", "x.parquet/_SUCCESS=")...)
	part := testfile.Read(t, filepath.Join(dir, "data", "train-00001-of-00003.parquet"))
	folder.Write(t, filepath.Join(dir, "x.parquet", "part-0.parquet"), string(part))
	var prints []string
	for src, n := range map[string]int64{"data": 6, "data/train-*.parquet": 6, "data/*-0000[12]-*.parquet": 4,
		"mixed": 1, "x.parquet": 2} {
		fields := []catalog.Source{{Field: "image"}, {Field: "label"}}
		if src == "mixed" {
			fields = fields[:1]
		}
		tab := folder.Open(t, filepath.Join(dir, src), catalog.Options{CacheBytes: 1 << 12}, fields...)
		if tab.Len() != n {
			t.Errorf("%s: %d rows, want %d", src, tab.Len(), n)
		}
		if n < 6 {
			continue
		}
		prints = append(prints, tab.Fingerprint())
		for row := range n {
			a, err := tab.Asset(t.Context(), 0, row)
			if err != nil || a.Index.Height != int(row)+1 {
				t.Fatalf("row %d: %v", row, err)
			}
			if want := fmt.Sprintf("train-%05d-of-00003.parquet::%d/image", row/2, row%2); filepath.Base(a.URI)+
				"::"+a.Member != want {
				t.Errorf("row %d is %s, want %s", row, a.Name(), want)
			}
			v, err := tab.Value(t.Context(), 1, row)
			if err != nil || v.Int != row {
				t.Errorf("row %d: label %v, %v", row, v, err)
			}
		}
		data, err := tab.Data(t.Context())
		if err != nil || data.Len() != int(n) {
			t.Errorf("data: %v", err)
		}
	}
	if prints[0] != prints[1] {
		t.Errorf("fingerprints %q", prints)
	}
}

// TestHostileCells: bytes that are no raster, or are cut, are a fault that names the file, the row and the column.
func TestHostileCells(t *testing.T) {
	files := pictures(t, 9)
	rows := imageRows(files[1], []byte("GIF89a, no raster"), []byte{}, []byte("II*"), files[1][:20], files[3][:40],
		files[0][:30])
	dir := folder.Of(t, "t.parquet="+string(imageTable(t, 100, rows...)))
	tab := folder.Open(t, filepath.Join(dir, "t.parquet"), catalog.Options{}, catalog.Source{Field: "image"})
	for row := int64(1); row < tab.Len(); row++ {
		_, err := tab.Asset(t.Context(), 0, row)
		want := fmt.Sprintf("t.parquet: sample %d/image", row)
		known := fault.KindOf(err) == fault.Corrupt || fault.KindOf(err) == fault.Unsupported
		if !known || !strings.Contains(err.Error(), want) {
			t.Errorf("row %d: %v", row, err)
		}
	}
	dir = folder.Of(t, "t.parquet="+string(imageTable(t, 100, imageRows([]byte("GIF89a, no raster"))...)))
	_, err := catalog.Open(t.Context(), filepath.Join(dir, "t.parquet"), []catalog.Source{{Field: "image"}},
		catalog.Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "GIF") {
		t.Errorf("a table of GIF images: %v", err)
	}
}

// bucket is an opener of a store that lists its objects.
type bucket struct{ dir string }

func (l bucket) Open(ctx context.Context, uri string) (source.Reader, error) {
	return (&openers.Files{}).Open(ctx, filepath.Join(l.dir, strings.TrimPrefix(uri, "s3://bucket/")))
}

func (l bucket) List(_ context.Context, folder string, each func(source.Entry) error) error {
	base := filepath.Join(l.dir, strings.TrimPrefix(folder, "s3://bucket"))
	names, err := filepath.Glob(filepath.Join(base, "*", "*"))
	more, _ := filepath.Glob(filepath.Join(base, "*.*"))
	for _, name := range append(names, more...) {
		rel, _ := filepath.Rel(base, name)
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		if err := each(source.Entry{Path: filepath.ToSlash(rel), Size: st.Size()}); err != nil {
			return err
		}
	}
	return err
}

// named is an opener of a store with one object.
type named struct {
	bucket
	path string
}

func (l named) List(_ context.Context, _ string, each func(source.Entry) error) error {
	return each(source.Entry{Path: l.path, Size: 1})
}

// TestObjectsThatAreNotBelowTheirFolder: a key such as "data//etc/a.tif" must not stand for a local file.
func TestObjectsThatAreNotBelowTheirFolder(t *testing.T) {
	for _, path := range []string{"/etc/a.tif", "http://host/a.tif", "/etc/a.parquet"} {
		_, err := catalog.Open(t.Context(), "s3://bucket/data", []catalog.Source{{Field: "image"}},
			catalog.Options{Opener: named{path: path}})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "no path below") {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := catalog.Open(t.Context(), "s3://bucket/data", []catalog.Source{{Field: "image"}},
		catalog.Options{Opener: named{path: "/etc/readme.md"}}) // which does not count
	if fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestRemoteShards: shards in a store are found by its listing.
func TestRemoteShards(t *testing.T) {
	table := string(imageTable(t, 10, imageRows(pictures(t, 4)...)...))
	store := bucket{folder.Of(t, "data/train-0.parquet="+table, "data/train-1.parquet="+table,
		"data/test.parquet="+table)}
	for src, n := range map[string]int64{"s3://bucket/data": 12, "s3://bucket": 12,
		"s3://bucket/data/train-*.parquet": 8, "s3://bucket/data/test.parquet": 4} {
		tab := folder.Open(t, src, catalog.Options{Opener: store}, catalog.Source{Field: "image"})
		if tab.Len() != n {
			t.Errorf("%s: %d rows, want %d", src, tab.Len(), n)
		}
		if a, err := tab.Asset(t.Context(), 0, n-1); err != nil || a.Index.Height != 4 {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// TestPatternsOutOfARemoteFolder: masks beside the folder of a store, by a relative pattern and by a URI.
func TestPatternsOutOfARemoteFolder(t *testing.T) {
	png := string(pictures(t, 4)[1])
	store := bucket{folder.Of(t, "d/images/1.png="+png, "d/images/2.png="+png, "d/masks/1_m.png="+png,
		"d/masks/2_m.png="+png)}
	for _, pattern := range []string{"../masks/{id}_m.png", "s3://bucket/d/masks/{id}_m.png"} {
		tab := folder.Open(t, "s3://bucket/d/images", catalog.Options{Opener: store},
			catalog.Source{Field: "image", Pattern: "{id}.png"}, catalog.Source{Field: "mask", Pattern: pattern},
			catalog.Source{Field: "again", Pattern: pattern})
		if tab.Len() != 2 {
			t.Fatalf("%s: %d samples", pattern, tab.Len())
		}
		for field := 1; field < 3; field++ {
			a, err := tab.Asset(t.Context(), field, 1)
			if err != nil || a.URI != "s3://bucket/d/masks/2_m.png" {
				t.Errorf("%s: %q, %v", pattern, a.URI, err)
			}
		}
	}
}

// TestRemoteImageFolder: a store's folder of pictures has the samples of its metadata or, without it, of its files.
func TestRemoteImageFolder(t *testing.T) {
	png := string(pictures(t, 4)[1])
	store := bucket{folder.Of(t, "a/x/1.png="+png, "a/y/2.png="+png,
		`a/metadata.jsonl={"file_name": "y/2.png", "n": 7}`, "b/x/1.png="+png, "b/y/2.png="+png)}
	described := folder.Open(t, "s3://bucket/a", catalog.Options{Opener: store}, catalog.Source{Field: "image"},
		catalog.Source{Field: "n"})
	if got := folder.IDs(t, described); !slices.Equal(got, []string{"y/2.png"}) || described.Kind(1) != catalog.Int {
		t.Errorf("samples %q, kind %v", got, described.Kind(1))
	}
	plain := folder.Open(t, "s3://bucket/b", catalog.Options{Opener: store}, catalog.Source{Field: "image"})
	if got := folder.IDs(t, plain); !slices.Equal(got, []string{"x/1.png", "y/2.png"}) {
		t.Errorf("samples %q", got)
	}
	for _, tab := range []*catalog.Table{described, plain} {
		if a, err := tab.Asset(t.Context(), 0, tab.Len()-1); err != nil || a.Index.Height != 4 {
			t.Errorf("asset: %v", err)
		}
	}
}
