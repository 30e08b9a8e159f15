package build_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// newest is the description of a dataset with what TACO 3 wants, and no more.
func newest() build.Collection {
	return build.Collection{ID: "chips", Description: "Noise", Licenses: []string{"MIT"},
		Providers: []map[string]any{{"name": "Ana"}}}
}

// uneven returns samples with the files "image.tif" and "before/B02.tif", and as many files "seq/t0.tif", … as counts
// says of each.
func uneven(counts []int) *build.Tortilla {
	top := &build.Tortilla{}
	for i, n := range counts {
		file := func(id string) build.Sample {
			return build.Sample{ID: id, Bytes: []byte(fmt.Sprintf("%d %s", i, id))}
		}
		seq := &build.Tortilla{}
		for k := range n {
			seq.Samples = append(seq.Samples, file(fmt.Sprintf("t%d.tif", k)))
		}
		top.Samples = append(top.Samples, build.Sample{ID: fmt.Sprintf("sitio %d", i), Children: &build.Tortilla{
			Samples: []build.Sample{file("image.tif"), {ID: "before", Children: &build.Tortilla{
				Samples: []build.Sample{file("B02.tif")}}}, {ID: "seq", Children: seq}}}})
	}
	return top
}

// TestCozip promises that containers of TACO 3 of random samples have their files, in each form, where the tables say
// and where a ZIP reader finds them, and that they verify.
func TestCozip(t *testing.T) {
	race.SkipCovered(t)
	rapid.Check(t, func(rt *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 6).Draw(rt, "counts")
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		for _, name := range []string{"a.taco3.zip", "a.taco3"} {
			path := filepath.Join(dir, name)
			r, err := build.Create(t.Context(), &build.Taco{Samples: uneven(counts), Collection: newest()}, path,
				build.Options{})
			if err != nil {
				rt.Fatal(err)
			}
			files := 0
			for _, n := range counts {
				files += n + 2
			}
			if r.Samples != len(counts) || r.Files != files {
				rt.Fatalf("%s: got %d samples and %d files, want %d and %d", name, r.Samples, r.Files, len(counts),
					files)
			}
			compareUneven(rt, t.Context(), path, counts)
		}
	})
}

// compareUneven compares a container with what uneven says.
func compareUneven(t rapid.TB, ctx context.Context, path string, counts []int) {
	d := openWith(t, ctx, path)
	defer d.Close()
	if _, err := d.Verify(ctx); err != nil {
		t.Fatal(err)
	}
	for i, n := range counts {
		names := []string{"image.tif", "before/B02.tif"}
		for k := range n {
			names = append(names, fmt.Sprintf("seq/t%d.tif", k))
		}
		for _, name := range names {
			want := fmt.Sprintf("%d %s", i, name[strings.LastIndexByte(name, '/')+1:])
			if got := contentOf(t, ctx, d, fmt.Sprintf("sitio %d/%s", i, name)); got != want {
				t.Fatalf("%s: sample %d %s: got %q, want %q", path, i, name, got, want)
			}
		}
		// One file more than there are.
		_, err := d.Locate(ctx, []string{fmt.Sprintf("sitio %d", i), "seq", fmt.Sprintf("t%d.tif", n)})
		if fault.KindOf(err) != fault.NotFound {
			t.Fatalf("%s: sample %d has %d files of the sequence, and one more: %v", path, i, n, err)
		}
	}
}

func openWith(t rapid.TB, ctx context.Context, path string) *taco.Dataset {
	d, err := taco.Open(ctx, &openers.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// contentOf returns the bytes of a file.
func contentOf(t rapid.TB, ctx context.Context, d *taco.Dataset, path string) string {
	e, err := d.Locate(ctx, strings.Split(path, "/"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Open(ctx, &openers.Files{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := make([]byte, r.Size())
	if err := r.ReadAt(ctx, b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestIDsOfTACO3 promises that copies of TACO 3, in each form, keep every sample, whatever its id, and that TACO 2
// refuses ids which it has for placeholders.
func TestIDsOfTACO3(t *testing.T) {
	ids := []string{"a", "__TACOPAD__0", "__TACOPAD__x", "__TACOPAD__", "__b", "..", "a/b", "A", "café", "line\nbreak"}
	top := uneven(slices.Repeat([]int{2}, len(ids)))
	for i, id := range ids {
		top.Samples[i].ID = id
	}
	dir := t.TempDir()
	from := filepath.Join(dir, "0.taco3.zip")
	if _, err := build.Create(t.Context(), &build.Taco{Samples: top, Collection: newest()}, from,
		build.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1.taco3", "2.taco3.zip"} {
		to := filepath.Join(dir, name)
		exported(t, from, to)
		d := openWith(t, t.Context(), to)
		column, err := d.IDs(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, column.Len())
		for i := range got {
			got[i] = column.Str(i)
		}
		if _, err := d.Verify(t.Context()); err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s: got %q, want %q, %v", name, got, ids, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		from = to
	}
}

// TestTheIndexOfACozip promises what readers check of an archive, by a reading of the specification that shares no code
// with the product: the place and the fields of the index, the checksum, the least size, and that the entries it lists
// end the archive.
func TestTheIndexOfACozip(t *testing.T) {
	for _, n := range []int{1, 200} { // with and without padding
		path := filepath.Join(t.TempDir(), "a.taco3.zip")
		counts := slices.Repeat([]int{2, 3}, n)
		if _, err := build.Create(t.Context(), &build.Taco{Samples: uneven(counts), Collection: newest()}, path,
			build.Options{}); err != nil {
			t.Fatal(err)
		}
		b := testfile.Read(t, path)
		padded := checkCozip(t, b)
		if size := len(b); padded != (n == 1) || size < 32819 || padded && size != 32819 {
			t.Errorf("%d samples: got %d bytes, with padding %v", n, size, padded)
		}
	}
}

// checkCozip checks the bytes of an archive, and reports whether it has padding.
func checkCozip(t *testing.T, b []byte) (padded bool) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	u := binary.LittleEndian
	size := int(u.Uint32(b[18:]))
	index := b[51 : 51+size]
	if string(b[30:39]) != "__cozip__" || u.Uint16(b[28:]) != 12 || u.Uint16(b[39:]) != 0xCA0C ||
		u.Uint16(b[41:]) != 8 {
		t.Errorf("the header of the index is %x", b[:51])
	}
	sum := fnv.New64a()
	sum.Write(index)
	sum.Write(b[max(51+size, len(b)-32768):])
	if got, want := u.Uint64(b[43:]), sum.Sum64(); got != want {
		t.Errorf("checksum: got %x, want %x", got, want)
	}
	if string(index[:4]) != "CZIP" || u.Uint16(index[4:]) != 1 || index[6] != 2 {
		t.Errorf("the index begins with %x", index[:7])
	}
	count := int(u.Uint32(index[7:]))
	lengths, names := index[11:], index[11+2*count:]
	var listed []string
	for i := range count {
		k := int(u.Uint16(lengths[2*i:]))
		listed = append(listed, string(names[:k]))
		names = names[k:]
	}
	var all []string
	for i, f := range z.File {
		all = append(all, f.Name)
		padded = padded || f.Name == "__cozip_padding__"
		off, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Open() // compares the CRC-32 when all is read
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || f.Method != zip.Store || f.Flags != 0x800 || crc32.ChecksumIEEE(content) != f.CRC32 {
			t.Errorf("entry %s: method %d, flags %x, error %v", f.Name, f.Method, f.Flags, err)
		}
		if k := slices.Index(listed, f.Name); k >= 0 {
			place, size := int64(u.Uint64(names[8*k:])), u.Uint64(names[8*(count+k):])
			if place != off || size != f.UncompressedSize64 {
				t.Errorf("entry %s: the index says %d bytes at %d, it has %d at %d", f.Name, size, place,
					f.UncompressedSize64, off)
			}
			if want := len(z.File) - count + k; i != want {
				t.Errorf("entry %s is number %d, want %d", f.Name, i, want)
			}
		}
	}
	want := []string{"COLLECTION.json", "METADATA/sample.parquet", "METADATA/children.parquet",
		"METADATA/children__before.parquet", "METADATA/children__seq.parquet"}
	if !slices.Equal(listed, want) || all[0] != "__cozip__" {
		t.Errorf("the index lists %q, want %q; the first entry is %s", listed, want, all[0])
	}
	return padded
}

// TestColumnsOfTACO2InTACO3 promises that places and times in columns of TACO 2 are in the columns that TACO 3 has for
// them.
func TestColumnsOfTACO2InTACO3(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.taco3.zip")
	floats := tables.Type{Kind: tables.Float64, Bits: 64}
	top, table := &build.Tortilla{}, tables.FromVectors(
		[]string{"split", "cloud", "stac:crs", "stac:tensor_shape", "stac:geotransform", "stac:time_start"},
		[]*tables.Vector{tables.NewStrings([]string{"train", "test"}, nil),
			tables.NewFloats(floats, []float64{1.5, 0}, []bool{false, true}),
			tables.NewStrings([]string{"EPSG:32618", "EPSG:32618"}, nil),
			tables.NewList(tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, []int64{3, 8, 9, 3, 8, 9}, nil),
				[]uint32{0, 3, 6}, nil),
			tables.NewList(tables.NewFloats(floats, []float64{500000, 10, 0, 4000000, 0, -10, 500090, 10, 0, 4000000, 0,
				-10}, nil), []uint32{0, 6, 12}, nil),
			tables.NewInts(tables.Type{Kind: tables.Timestamp}, []int64{1, 2}, nil)})
	for _, id := range []string{"a.tif", "b.tif"} {
		top.Samples = append(top.Samples, build.Sample{ID: id, Bytes: []byte("II*\x00" + id)})
	}
	set := &build.Taco{Samples: top, Columns: columns(table), Collection: collection()}
	if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
		t.Fatal(err)
	}
	checkModern(t, path)
}

// exported copies samples of a container, or all, to another, whose form its name says.
func exported(t *testing.T, from, to string, rows ...int) {
	t.Helper()
	d := openWith(t, t.Context(), from)
	defer d.Close()
	c, err := build.CollectionOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build.Export(t.Context(), d, rows, *c, to, build.Options{}); err != nil {
		t.Fatal(err)
	}
}

// contract returns taco:structure and taco:metadata of a container, as they are written.
func contract(t *testing.T, path string) string {
	t.Helper()
	d := openWith(t, t.Context(), path)
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(path, err)
	}
	var doc struct {
		Structure json.RawMessage `json:"taco:structure"`
		Metadata  json.RawMessage `json:"taco:metadata"`
	}
	if err := json.Unmarshal(d.Collection(), &doc); err != nil || doc.Metadata == nil {
		t.Fatal(path, err)
	}
	return string(doc.Structure) + "\n" + string(doc.Metadata)
}

// exchange exchanges the columns my:q and my:r of the table children/seq of a directory.
func exchange(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "COLLECTION.json")
	doc := testfile.Read(t, path)
	place := bytes.LastIndex(doc, []byte(`"children/seq"`))
	exchanged := strings.NewReplacer("my:q", "my:r", "my:r", "my:q").Replace(string(doc[place:]))
	testfile.Write(t, path, append(doc[:place:place], exchanged...))
	path = filepath.Join(dir, "METADATA", "children__seq.parquet")
	r, err := (&openers.Files{}).Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := tables.Read(t.Context(), r, 0, r.Size(), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for i := range table.Columns() {
		order = append(order, i)
	}
	q := table.Index("my:q")
	order[q], order[q+1] = q+1, q
	table = table.Retype(func(i int, _ tables.Column) tables.Type { return table.Required(i) }).Select(order)
	enc, err := encode.NewWriter(table.Columns(), map[string]string{"taco:level": "children/seq"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := enc.Write(t.Context(), &b, table); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// TestCopiesKeepTheContract promises that copies and subsets of a TACO 3 declare their columns as the source does, in
// its order: those of taco-eo, and an optional group that all samples of a subset have. Subsets are one collection.
func TestCopiesKeepTheContract(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	optional := filepath.Join(dir, "optional.taco3")
	point := tables.NewStruct([]string{"lon", "lat"}, []*tables.Vector{
		tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, []float64{1, 0, 2}, nil),
		tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, []float64{1, 0, 2}, nil)},
		[]bool{false, true, false})
	words := tables.NewStrings([]string{"a", "b", "c"}, nil)
	names, vectors := []string{"my:z", "spatial:centroid", "my:b"}, []*tables.Vector{words, point, words}
	for _, name := range []string{"geometry", "bbox", "proj_code", "proj_shape", "proj_transform"} {
		names, vectors = append(names, "spatial:"+name), append(vectors, tables.NewNulls(tables.Type{}, 3))
	}
	top := uneven([]int{1, 2, 3})
	set := &build.Taco{Samples: top, Collection: newest(), Columns: func(_ context.Context,
		levels []build.Level) ([]*tables.Table, error) {
		return []*tables.Table{tables.FromVectors(append(names, "my:a"), append(vectors, words)), nil,
			constant(len(levels[2].Rows), "my:q", "my:r")}, nil // of two tables of one depth
	}}
	if _, err := build.Create(t.Context(), set, optional, build.Options{}); err != nil {
		t.Fatal(err)
	}
	exchanged := filepath.Join(dir, "exchanged.taco3")
	if err := os.CopyFS(exchanged, os.DirFS(optional)); err != nil {
		t.Fatal(err)
	}
	exchange(t, exchanged)
	for i, from := range []string{optional, exchanged, "../../../testdata/taco3/scenes.zip"} {
		want := contract(t, from)
		var zips []string
		for k, rows := range [][]int{{0}, {2}, nil} {
			for _, name := range []string{"a.taco3", "a.zip.taco3.zip"} {
				path := filepath.Join(dir, fmt.Sprint(i, k, name))
				exported(t, from, path, rows...)
				if got := contract(t, path); got != want {
					t.Errorf("samples %v of %s: got %s\nwant %s", rows, from, got, want)
				}
				if rows != nil && strings.HasSuffix(name, "zip") {
					zips = append(zips, path)
				}
			}
		}
		_, err := build.Consolidate(t.Context(), zips, filepath.Join(dir, ".tacocat"), build.Options{})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestOtherVersionsAreRefused promises that a container is copied in its own version of TACO only.
func TestOtherVersionsAreRefused(t *testing.T) {
	const testdata = "../../../testdata/"
	for from, to := range map[string]string{
		"taco3/scenes.zip":                 "a.tacozip",
		"coast/coast.tacozip":              "a.taco3.zip",
		"containers/tortilla/one.tortilla": "a.tacozip",
	} {
		d := openWith(t, t.Context(), testdata+from)
		c, err := build.CollectionOf(d)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), to)
		c.Tasks, c.DatasetVersion = []string{"other"}, "1"
		_, err = build.Export(t.Context(), d, nil, *c, out, build.Options{})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "only one of TACO") {
			t.Errorf("%s: %v", from, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("%s is written as %s", from, to)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkModern checks the columns that TestColumnsOfTACO2InTACO3 gives.
func checkModern(t *testing.T, path string) {
	t.Helper()
	d := openWith(t, t.Context(), path)
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := d.SQL(t.Context(), `SELECT id, "split:split", "data:cloud", "stac:proj_code", "stac:proj_shape",
		"stac:proj_transform", "stac:datetime", abs("stac:centroid".lon + 74.9994998) < 1e-5, abs("stac:centroid".lat - 36.1443575) < 1e-5 FROM sample`)
	if err != nil {
		t.Fatal(err)
	}
	// pyproj has -74.9994999, 36.1443562 for the centre, (500045, 3999960) in EPSG:32618.
	want := `"a.tif" "train" 1.5 "EPSG:32618" [8,9] [10,0,500000,0,-10,4000000] ` +
		`"1970-01-01T00:00:00.000001+00:00" true true `
	if got := rowText(t, rows, 0); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// rowText returns the values of a row as JSON.
func rowText(t *testing.T, rows *tables.Table, row int) string {
	t.Helper()
	var text []byte
	for i := range rows.Columns() {
		v, err := rows.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		text = append(v.AppendJSON(text, row), ' ')
	}
	return string(text)
}

// TestRefusedForTACO3 lists samples and descriptions that TACO 3 does not have, and what their errors say.
func TestRefusedForTACO3(t *testing.T) {
	file := func(id string) build.Sample { return build.Sample{ID: id, Bytes: []byte("x")} }
	folder := func(id string, in ...build.Sample) build.Sample {
		return build.Sample{ID: id, Children: &build.Tortilla{Samples: in}}
	}
	for name, c := range map[string]struct {
		samples []build.Sample
		change  func(c *build.Collection)
		want    string
	}{
		"an empty file": {[]build.Sample{{ID: "a", Bytes: []byte{}}}, nil, `sample "a": file has no bytes`},
		"files and folders": {[]build.Sample{file("a"), folder("b", file("x"))}, nil,
			`"b": is a FOLDER, and "a" is a FILE`},
		"a missing file": {[]build.Sample{folder("a", file("x"), file("y")), folder("b", file("x"))}, nil,
			`1 of 2 samples have "y"`},
		"a gap": {[]build.Sample{folder("a", file("t0"), file("t2")), folder("b", file("t0"))}, nil,
			`1 of 2 samples have "t2"`},
		"a name with *":  {[]build.Sample{folder("a", file("x*y"))}, nil, `"x*y" has a letter`},
		"a name with __": {[]build.Sample{folder("a", file("x__y"))}, nil, `has "__"`},
		"names of one case": {[]build.Sample{folder("a", file("x"), file("X"))}, nil,
			`two children of a folder are called "x"`},
		"no providers": {[]build.Sample{file("a")}, func(c *build.Collection) { c.Providers = nil },
			"providers is null"},
		"a slash in the id": {[]build.Sample{file("a")}, func(c *build.Collection) { c.ID = "a/b" }, "id is"},
		"a blank licence": {[]build.Sample{file("a")}, func(c *build.Collection) { c.Licenses = []string{" "} },
			"licenses is"},
		"columns of a case": {[]build.Sample{file("a")}, nil, "names in TACO 3 differ in more than case"},
		"a folder and files": {[]build.Sample{folder("a", folder("x", file("y"))), folder("b", file("x"))}, nil,
			`"x" is a file in some samples and a folder in others`},
	} {
		t.Run(name, func(t *testing.T) {
			about := newest()
			if c.change != nil {
				c.change(&about)
			}
			path := filepath.Join(t.TempDir(), "a.taco3.zip")
			all := &build.Taco{Samples: &build.Tortilla{Samples: c.samples}, Collection: about}
			if name == "columns of a case" {
				all.Columns = columns(constant(1, "x", "X"))
			}
			_, err := build.Create(t.Context(), all, path, build.Options{})
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("something is written")
			}
		})
	}
}

// constant returns columns of n rows of "v".
func constant(n int, names ...string) *tables.Table {
	vectors := make([]*tables.Vector, len(names))
	for i := range vectors {
		vectors[i] = tables.NewStrings(slices.Repeat([]string{"v"}, n), nil)
	}
	return tables.FromVectors(names, vectors)
}
