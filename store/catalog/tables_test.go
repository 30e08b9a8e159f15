package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// writeTable writes rows as a Parquet file with a footer.
func writeTable[T any](t *testing.T, path string, rows []T, footer map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var o []parquet.WriterOption
	for key, value := range footer {
		o = append(o, parquet.KeyValueMetadata(key, value))
	}
	w := parquet.NewGenericWriter[T](f, o...)
	_, err = w.Write(rows)
	for _, err := range []error{err, w.Close(), f.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFooters: what the footer of a catalog says is checked.
func TestFooters(t *testing.T) {
	type row struct {
		URI   string `parquet:"uri"`
		Index []byte `parquet:"chaski:index"`
	}
	names := func(n int) string {
		text, _ := json.Marshal(slices.Repeat([]string{"image"}, n))
		return string(text)
	}
	dir := folder.Of(t, "a.tif")
	for name, c := range map[string]struct {
		key, value string
		kind       fault.Kind
	}{
		"a version": {layout.VersionKey, "1", 0}, "no version": {layout.VersionKey, "", 0},
		"another version": {layout.VersionKey, "2", fault.Unsupported},
		"no names":        {layout.FieldsKey, "[]", fault.Corrupt}, "no list": {layout.FieldsKey, "{", fault.Corrupt},
		"a name": {layout.FieldsKey, names(1), 0}, "another name": {layout.FieldsKey, `["x"]`, fault.NotFound},
		"no text":    {layout.FieldsKey, "", 0},
		"names":      {layout.FieldsKey, names(layout.MaxFields), 0},
		"many names": {layout.FieldsKey, names(layout.MaxFields + 1), fault.Corrupt},
		"a listing":  {layout.ListedKey, `{"root": "x/"}`, 0}, "no listing": {layout.ListedKey, "{", fault.Corrupt},
		"an empty listing": {layout.ListedKey, "{}", 0},
		"a pattern":        {layout.ListedKey, `{"patterns": ["./{id}.tif"]}`, 0},
		"no pattern":       {layout.ListedKey, `{"patterns": ["{id"]}`, fault.NotFound},
		"another pattern":  {layout.ListedKey, `{"patterns": ["x/{id}.tif"]}`, 0}, // of no file that is there
	} {
		path := filepath.Join(dir, "c.parquet")
		writeTable(t, path, []row{{"a.tif", nil}}, map[string]string{c.key: c.value})
		table, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "image"}}, catalog.Options{})
		if err == nil {
			_, err = table.Asset(t.Context(), 0, 0)
			if key := map[bool]string{false: "a.tif", true: "row 0"}[name == "another pattern"]; name != "a pattern" &&
				fmt.Sprint(keysOf(t, table)) != "["+key+"]" {
				t.Errorf("%s: keys %q", name, keysOf(t, table))
			}
			_ = table.Close()
		}
		if (err != nil) != (c.kind != 0) || c.kind == fault.Corrupt && fault.KindOf(err) != c.kind {
			t.Errorf("%s, %s: %v, want %v", name, c.value, err, c.kind)
		}
	}
}

// TestCatalogsWithoutPaths: a catalog has a column of paths, also where no field asks for it.
func TestCatalogsWithoutPaths(t *testing.T) {
	type row struct {
		N int64 `parquet:"n"`
	}
	path := filepath.Join(t.TempDir(), "c.parquet")
	writeTable(t, path, []row{{1}}, map[string]string{layout.VersionKey: layout.Version})
	_, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "n", Column: "n"}}, catalog.Options{})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), `no column "uri"`) {
		t.Error(err)
	}
}

// TestColumnsOfCatalogs: a catalog of a directory has the columns that paths make there. Those that it stores count
// before them.
func TestColumnsOfCatalogs(t *testing.T) {
	dir := folder.Of(t, "d/i/1.tif", "d/i/2.tif", "d/m/1.tif", "d/m/2.tif",
		"t.csv=uri,path,folder,id\nd/i/1.tif,p,f,7\nd/i/2.tif,q,g,8\n")
	pairs := []catalog.Source{{Field: "image", Pattern: "d/i/{id}.tif"}, {Field: "mask", Pattern: "d/m/{id}.tif"}}
	join := &build.Join{Table: filepath.Join(dir, "t.csv"), On: "uri"}
	for name, o := range map[string]build.Options{"plain": {}, "joined": {Join: join}, "pairs": {Fields: pairs},
		"joined pairs": {Fields: pairs, Join: join}} {
		path, src := filepath.Join(dir, "c.parquet"), filepath.Join(dir, "d", "i")
		if o.Fields != nil {
			src = dir
		}
		folder.Index(t, path, o, src)
		want := map[string]string{"path": "[1.tif 2.tif]", "folder": "[ ]", "id": "", "name": "[1 2]"}
		keys := "[1.tif 2.tif]"
		if o.Fields != nil {
			want["path"], want["folder"], want["id"], keys = "[d/i/1.tif d/i/2.tif]", "[i i]", "[1 2]", "[1 2]"
		}
		if o.Join != nil {
			want["path"], want["folder"], want["id"] = "[p q]", "[f g]", "[7 8]"
		}
		for _, fields := range [][]catalog.Source{nil, {{Field: "image"}}} {
			table := folder.Open(t, path, catalog.Options{}, fields...)
			data, err := table.Data(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if data.Index("height") < 0 { // which it stores
				t.Errorf("%s: data of %+v", name, data.Columns())
			}
			for column, want := range want {
				if got := table.HasColumn(column); got != (want != "") || got != (data.Index(column) >= 0) || got &&
					fmt.Sprint(values(t, table, column)) != want {
					t.Errorf("%s: %s is there: %v, want %s", name, column, got, want)
				}
			}
			if got := fmt.Sprint(keysOf(t, table)); got != keys {
				t.Errorf("%s: keys %s, want %s", name, got, keys)
			}
		}
	}
}

// TestMetadataOfRasters: the table in a folder of rasters counts where something asks for its columns.
func TestMetadataOfRasters(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "metadata.csv=file_name,n\nb.tif,7\n")
	image, n := catalog.Source{Field: "image"}, catalog.Options{Columns: []string{"n"}}
	for name, c := range map[string]struct {
		o      catalog.Options
		fields []catalog.Source
		rows   int64
	}{
		"rasters": {catalog.Options{}, []catalog.Source{image}, 2}, "a condition": {n, []catalog.Source{image}, 1},
		"all columns": {catalog.Options{AllColumns: true}, []catalog.Source{image}, 1},
		"a field":     {catalog.Options{}, []catalog.Source{image, {Field: "m", Column: "n"}}, 1},
		"a folder": {catalog.Options{}, []catalog.Source{image, {Field: "f", Column: "folder",
			Kind: catalog.Text}}, 2},
		"a pattern": {n, []catalog.Source{{Field: "image", Pattern: "{id}.tif"}, {Field: "id"}}, 2},
	} {
		table, err := catalog.Open(t.Context(), dir, c.fields, c.o)
		if err != nil || table.Len() != c.rows || table.Listed() != (c.rows == 2) {
			t.Errorf("%s: want %d rows, %v", name, c.rows, err)
			continue
		}
		for field, s := range c.fields {
			if want := map[string]string{"m": "[7]", "f": "[ ]", "id": "[a b]"}[s.Field]; want != "" &&
				fmt.Sprint(valuesOf(t, table, field)) != want {
				t.Errorf("%s: %q, want %s", name, valuesOf(t, table, field), want)
			}
		}
		_ = table.Close()
	}
}

// TestMetadataOfPictures: the table in a folder of pictures has its samples, and those in folders below it where
// several fields are asked for. A folder without pictures, or with a raster, has its own.
func TestMetadataOfPictures(t *testing.T) {
	png := string(pictures(t, 4)[1])
	for name, c := range map[string]struct {
		files    []string
		one, two int64 // samples of one field, and of two; -1: none are found
	}{
		"own":      {[]string{"a.png=" + png, "b.png=" + png, "metadata.csv=file_name,n\na.png,1\n"}, 1, 1},
		"below":    {[]string{"x/a.png=" + png, "x/b.png=" + png, "x/metadata.csv=file_name,n\na.png,1\n"}, 2, 1},
		"no files": {[]string{"metadata.csv=file_name,n\na.png,1\n"}, 1, 1},
		"a raster": {[]string{"a.tif", "metadata.csv=file_name,n\na.tif,1\na.tif,2\n"}, 1, -1},
	} {
		fields := []catalog.Source{{Field: "image"}, {Field: "n"}}
		for i, want := range []int64{c.one, c.two} {
			got := int64(-1)
			table, err := catalog.Open(t.Context(), folder.Of(t, c.files...), fields[:i+1], catalog.Options{})
			if err == nil && (i == 0 || table.Kind(1) == catalog.Int) {
				got = table.Len()
			}
			if err == nil {
				_ = table.Close()
			}
			if got != want {
				t.Errorf("%s, %d fields: %d samples, want %d, %v", name, i+1, got, want, err)
			}
		}
	}
}

// TestNamesOfFilesInTables: file_name has the files of a field without a column of its own, where no column has the
// field's name.
func TestNamesOfFilesInTables(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif")
	path := filepath.Join(dir, "t.csv")
	for _, c := range []struct {
		header string
		field  catalog.Source
		want   string // "" is not found
	}{
		{"file_name", catalog.Source{Field: "image"}, "a.tif"},
		{"mask_file_name", catalog.Source{Field: "mask"}, "a.tif"},
		{"image,file_name", catalog.Source{Field: "image"}, "b.tif"},
		{"file_name", catalog.Source{Field: "image", Column: "x"}, ""},
		{"file_name", catalog.Source{Field: "mask"}, ""},
	} {
		line := map[bool]string{true: "b.tif,a.tif", false: "a.tif"}[strings.Contains(c.header, ",")]
		folder.Write(t, path, c.header+"\n"+line+"\n")
		table, err := catalog.Open(t.Context(), path, []catalog.Source{c.field}, catalog.Options{})
		if err != nil || c.want == "" {
			if fault.KindOf(err) != fault.NotFound || c.want != "" {
				t.Errorf("%s, %+v: %v, want %q", c.header, c.field, err, c.want)
			}
			continue
		}
		if got := folder.IDs(t, table)[0]; got != c.want {
			t.Errorf("%s, %+v: %s, want %s", c.header, c.field, got, c.want)
		}
		_ = table.Close()
	}
}

// TestFieldsOfListings: a field of a listing has rasters, or values of the columns that paths make.
func TestFieldsOfListings(t *testing.T) {
	dir := folder.Of(t, "i/a.tif", "i/b.tif", "m/a.tif", "m/b.tif")
	pattern := catalog.Source{Field: "id", Pattern: "i/{id}.tif"}
	mask := catalog.Source{Field: "mask", Pattern: "m/{id}.tif"}
	for name, c := range map[string]struct {
		fields []catalog.Source
		kinds  []catalog.Kind
		says   string
	}{
		"the name of its pattern": {[]catalog.Source{pattern}, []catalog.Kind{catalog.Raster}, ""},
		"a name": {[]catalog.Source{mask, {Field: "id"}},
			[]catalog.Kind{catalog.Raster, catalog.Text}, ""},
		"rasters of a name": {[]catalog.Source{mask, {Field: "id", Kind: catalog.Raster}}, nil,
			"needs a pattern, because another field"},
		"paths": {[]catalog.Source{{Field: "x", Column: "path"}}, []catalog.Kind{catalog.Raster}, ""},
		"texts": {[]catalog.Source{{Field: "x", Column: "path", Kind: catalog.Text}},
			[]catalog.Kind{catalog.Text}, ""},
		"a column": {[]catalog.Source{{Field: "x", Column: "m/a.tif"}}, nil, `such as "m/{id}.tif"`},
		"another":  {[]catalog.Source{{Field: "x", Blob: "n"}}, nil, "the names of patterns"},
		"a lead that lacks names": {[]catalog.Source{{Field: "x", Pattern: "{f}/a.tif"},
			{Field: "y", Pattern: "m/{id}.tif"}}, nil, "has all of the names {f}, {id}"},
		"no name": {[]catalog.Source{{Field: "x", Pattern: "i/a.tif"}}, nil, "has no name such as {id}"},
	} {
		table, err := catalog.Open(t.Context(), dir, c.fields, catalog.Options{})
		if (err != nil) != (c.says != "") || err != nil && (fault.KindOf(err) == 0 ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if strings.HasSuffix(fmt.Sprint(err), "of patterns: not found") != (name == "another") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		for i, kind := range c.kinds {
			if table.Kind(i) != kind {
				t.Errorf("%s: field %d has %vs, want %vs", name, i, table.Kind(i), kind)
			}
		}
		if unitOf(table, "id") != 0 || table.Remarks.PairBy != nil {
			t.Errorf("%s: unit %v, halves %q", name, unitOf(table, "id"), table.Remarks.PairBy)
		}
		_ = table.Close()
	}
}

// TestDoubled: a file of one name that is also a sample of two is told.
func TestDoubled(t *testing.T) {
	for _, files := range [][]string{{"a/1.tif", "a/label.tif", "b/1.tif", "b/label.tif"},
		{"a/1.tif", "b/1.tif", "l/a.tif", "l/b.tif"}} {
		dir := folder.Of(t, files...)
		label, first := "{scene}/label.tif", "a/label.tif"
		if files[1] == "b/1.tif" {
			label, first = "l/{scene}.tif", ""
		}
		table, err := catalog.Open(t.Context(), dir, []catalog.Source{{Field: "image", Pattern: "{scene}/{id}.tif"},
			{Field: "label", Pattern: label}}, catalog.Options{DropIncomplete: true})
		if err != nil {
			t.Fatal(err)
		}
		field, path := table.Remarks.TwiceField, table.Remarks.Twice
		if path != first || (field == "label") != (first != "") {
			t.Errorf("%q: field %q, %q", files, field, path)
		}
		_ = table.Close()
	}
}

// TestTextsOfTables: strings are UTF-8; bytes of a picture are told from other bytes.
func TestTextsOfTables(t *testing.T) {
	type row struct {
		S    string   `parquet:"s"`
		L    []string `parquet:"l,list"`
		N    []int64  `parquet:"n,list"`
		Fine string   `parquet:"fine"`
	}
	picture := string(pictures(t, 4)[1])
	path := filepath.Join(t.TempDir(), "t.parquet")
	writeTable(t, path, []row{{"a", []string{"é", ""}, []int64{255}, "x"}, {"\xff", []string{"a", "\xff"}, nil, ""},
		{picture, []string{picture}, []int64{1 << 40}, "ü"}}, nil)
	table := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "s"}, catalog.Source{Field: "l"},
		catalog.Source{Field: "n"}, catalog.Source{Field: "fine"})
	for field := range 4 {
		for row, kind := range []fault.Kind{0, fault.Corrupt, fault.Unsupported} {
			if field > 1 {
				kind = 0
			} else if field == 1 && row == 2 {
				kind = fault.Corrupt
			}
			if v, err := table.Value(t.Context(), field, int64(row)); fault.KindOf(err) != kind {
				t.Errorf("field %d row %d: %+v, %v, want %v", field, row, v, err, kind)
			}
		}
	}
}

// TestPartsOfPaths: the columns that a pattern names are strings or whole numbers. A row without one of them has no
// path.
func TestPartsOfPaths(t *testing.T) {
	type row struct {
		ID    *int64    `parquet:"id,optional"`
		Site  *string   `parquet:"site,optional"`
		Score float64   `parquet:"score"`
		When  time.Time `parquet:"when,timestamp"`
	}
	dir := folder.Of(t, "a/12.tif", "b/0.tif")
	path := filepath.Join(dir, "t.parquet")
	twelve, zero, a, b, empty := int64(12), int64(0), "a", "b", ""
	writeTable(t, path, []row{{&twelve, &a, 1, time.Time{}}, {&zero, &b, 1, time.Time{}}, {nil, &a, 1, time.Time{}},
		{&zero, nil, 1, time.Time{}}, {&zero, &empty, 1, time.Time{}}}, nil)
	table := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "x", Pattern: "{site}/{id}.tif"})
	if got := fmt.Sprint(valuesOf(t, table, 0)); got != "[a/12.tif b/0.tif null null null]" || table.Kind(0) !=
		catalog.Raster {
		t.Errorf("paths %s", got)
	}
	many := "" // names
	for i := range 100 {
		many += fmt.Sprintf("{n%d}", i)
	}
	for name, pattern := range map[string]string{"score": "{score}.tif", "when": "{when}.tif", "none": "{none}.tif",
		"100 names": many} {
		_, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "x", Pattern: pattern}}, catalog.Options{})
		if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), name) {
			t.Errorf("a path of %s: %v", name, err)
		}
	}
	_, err := catalog.Open(t.Context(), path, []catalog.Source{{Field: "x", Pattern: "*.tif"}}, catalog.Options{})
	if err == nil || !strings.Contains(err.Error(), "such as {id}") {
		t.Errorf("a pattern without names: %v", err)
	}
}

// TestImageOfATable: without fields a table has the first column whose cells hold rasters. Null strings decide nothing.
func TestImageOfATable(t *testing.T) {
	type row struct {
		Label int64   `parquet:"label"`
		Note  *string `parquet:"note,optional"`
		Photo []byte  `parquet:"photo"`
		Other []byte  `parquet:"other"`
	}
	grey := pictures(t, 4)
	note := "b.tif"
	path := filepath.Join(t.TempDir(), "t.parquet")
	writeTable(t, path, []row{{1, nil, grey[0], grey[1]}, {2, &note, grey[3], grey[1]}}, nil)
	table := folder.Open(t, path, catalog.Options{})
	if got := folder.IDs(t, table); !slices.Equal(got, []string{"0/photo", "1/photo"}) {
		t.Errorf("ids %q", got)
	}
	prints := map[string]bool{table.Fingerprint(): true}
	for _, i := range []int{3, 2} { // the same bytes are the same table
		other := filepath.Join(t.TempDir(), "t.parquet")
		writeTable(t, other, []row{{1, nil, grey[0], grey[1]}, {2, &note, grey[i], grey[1]}}, nil)
		prints[folder.Open(t, other, catalog.Options{}).Fingerprint()] = true
	}
	if len(prints) != 2 {
		t.Errorf("%d fingerprints of two tables", len(prints))
	}
	notes := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "note"}, catalog.Source{Field: "other"})
	if notes.Kind(0) != catalog.Raster || notes.Kind(1) != catalog.Raster {
		t.Errorf("kinds %v and %v", notes.Kind(0), notes.Kind(1))
	}
	writeTable(t, path, []row{{1, nil, grey[0], nil}, {2, nil, []byte("<VRTDataset/>"), nil}}, nil)
	virtual := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "photo"})
	_, err := virtual.Asset(t.Context(), 0, 1)
	_, _, alone := catalog.OpenAsset(t.Context(), folder.OneFile("<VRTDataset/>"), "a.vrt", 0)
	for _, err := range []error{err, alone} {
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "inside another file") {
			t.Errorf("a virtual raster: %v", err)
		}
	}
	for name, bad := range map[string]string{"no raster": "hello", "a broken one": string(grey[0][:20])} {
		writeTable(t, path, []row{{1, nil, grey[0], nil}, {2, nil, []byte(bad), nil}}, nil)
		table := folder.Open(t, path, catalog.Options{}, catalog.Source{Field: "photo"})
		_, err := table.Asset(t.Context(), 0, 1)
		kind := map[bool]fault.Kind{true: fault.Unsupported, false: fault.Corrupt}[bad == "hello"]
		if fault.KindOf(err) != kind || strings.Contains(err.Error(), `like "hell"`) != (bad == "hello") ||
			bad == "hello" && !strings.Contains(err.Error(), "sample 1/photo header at 0: its bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRowsOfCatalogs: columns that a catalog may lack are used where they are whole.
func TestRowsOfCatalogs(t *testing.T) {
	type row struct {
		URI    string `parquet:"uri"`
		Index  []byte `parquet:"chaski:index"`
		Header []byte `parquet:"rumi:header"`
		MTime  string `parquet:"mtime"`
		Offset *int64 `parquet:"chaski:offset,optional"`
	}
	type whole struct {
		row
		Length *int64 `parquet:"chaski:length,optional"`
	}
	dir := folder.Of(t, "a.tif", "b.tif", "c::x")
	_, m, err := catalog.OpenAsset(t.Context(), &openers.Files{}, filepath.Join(dir, "a.tif"), 0)
	if err != nil {
		t.Fatal(err)
	}
	when, off := "2024-05-06T07:08:09.000000123Z", int64(0)
	rows := []row{{"a.tif", m.Blob, nil, when, nil}, {"a.tif", nil, m.Blob, "noon", nil},
		{"b.tif", []byte{}, []byte{}, "", &off}}
	path := filepath.Join(dir, "c.parquet")
	writeTable(t, path, rows, nil)
	table := folder.Open(t, path, catalog.Options{})
	if sizes, err := table.Sizes(t.Context(), 0); sizes != nil || err != nil {
		t.Errorf("sizes without columns: %v, %v", sizes, err)
	}
	type tall struct {
		row
		Height int64  `parquet:"height"`
		Names  string `parquet:"chaski:bands"`
	}
	named := filepath.Join(dir, "named.parquet")
	writeTable(t, named, []tall{{rows[0], 1, "["}, {rows[0], 1, `["a"]`}, {rows[0], 1, ""}}, nil)
	half := folder.Open(t, named, catalog.Options{})
	if sizes, err := half.Sizes(t.Context(), 0); sizes != nil || err != nil {
		t.Errorf("sizes of heights alone: %v, %v", sizes, err)
	}
	for i, kind := range []fault.Kind{fault.Corrupt, 0, 0} {
		a, err := half.Asset(t.Context(), 0, int64(i))
		if fault.KindOf(err) != kind || (i == 1) != (len(a.Names) == 1) {
			t.Errorf("names of row %d: %q, %v", i, a.Names, err)
		}
	}
	if steps, err := half.CountSteps(t.Context(), 0, 1); err != nil || steps.Of != 3 {
		t.Errorf("steps %+v, %v", steps, err)
	}
	for i := range rows {
		a, err := table.Asset(t.Context(), 0, int64(i))
		if err != nil || a.Index.Height != []int{1, 1, 2}[i] || a.Member != "" {
			t.Errorf("row %d: %+v, %v", i, a, err)
		} else if want, _ := time.Parse(time.RFC3339Nano, when); i < 2 && a.MTime.Equal(want) != (i == 0) ||
			i == 1 && !a.MTime.IsZero() {
			t.Errorf("row %d: its file is of %v", i, a.MTime)
		}
	}
	size := m.Size
	members := []whole{{row{"c::x", m.Blob, nil, "", &off}, &size}, {row{"c::x", nil, nil, "", &off}, &size},
		{row{"c::x", m.Blob, nil, "", &off}, nil}, {row{"a.tif", m.Blob, nil, "", nil}, nil}}
	writeTable(t, path, members, nil)
	for _, dims := range []string{"", "y x"} {
		field := catalog.Source{Field: "image"}
		field.Axes.Dims = dims
		table := folder.Open(t, path, catalog.Options{}, field)
		for i, kind := range []fault.Kind{0, fault.Corrupt, fault.Corrupt, 0} {
			if dims != "" && i == 0 {
				kind = fault.Unsupported // the index of a member is of the file alone
			}
			if a, err := table.Asset(t.Context(), 0, int64(i)); fault.KindOf(err) != kind {
				t.Errorf("member %d, axes %q: %+v, %v, want %v", i, dims, a, err, kind)
			}
		}
	}
}

// TestLinkedTables: each file of a table lies below the roots.
func TestLinkedTables(t *testing.T) {
	line := func(n int) string { return fmt.Sprintf("file_name,n\n%d.png,%d\n", n, n) }
	table := string(imageTable(t, 2, imageRows(pictures(t, 4)...)...))
	other := folder.Of(t, "b.csv="+line(2), "b.parquet="+table)
	dir := folder.Of(t, "t/a.csv="+line(1), "p/a.parquet="+table, "s/x/metadata.csv="+line(1), "s/y/1.png=")
	for link, to := range map[string]string{"t/b.csv": "b.csv", "p/b.parquet": "b.parquet",
		"s/y/metadata.csv": "b.csv"} {
		if err := os.Symlink(filepath.Join(other, to), filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for src, field := range map[string]string{"t/*.csv": "n", "p/*.parquet": "image", "s": "n"} {
		for _, roots := range [][]string{nil, {dir}} {
			table, err := catalog.Open(t.Context(), filepath.Join(dir, src), []catalog.Source{{Field: field}},
				catalog.Options{Roots: roots, Columns: []string{"split"}})
			if (err == nil) != (roots == nil) || err != nil && (fault.KindOf(err) != fault.NotFound ||
				!strings.Contains(err.Error(), "outside of the served directories")) {
				t.Errorf("%s below %q: %v", src, roots, err)
			}
			if err == nil {
				_ = table.Close()
			}
		}
	}
}

// closing counts how often it is closed.
type closing struct {
	openers.Files
	closed int
}

// Close implements io.Closer.
func (c *closing) Close() error {
	c.closed++
	return c.Files.Close()
}

// TestOpenersAreClosed: a table closes what it has opened, and not what it was given.
func TestOpenersAreClosed(t *testing.T) {
	dir := folder.Of(t, "a.tif", "t.csv=image\na.tif\n")
	folder.Index(t, filepath.Join(dir, "c.parquet"), build.Options{}, filepath.Join(dir, "a.tif"))
	opened := func() int {
		files, _ := os.ReadDir("/proc/self/fd")
		return len(files)
	}
	before := opened()
	var tables []*catalog.Table
	for i := range 24 {
		given := &closing{}
		o := []catalog.Options{{Opener: given}, {Opener: given, Roots: []string{dir}}, {}, {Roots: []string{dir}}}[i%4]
		table, err := catalog.Open(t.Context(), filepath.Join(dir, []string{"t.csv", "c.parquet"}[i/4%2]), nil, o)
		if err == nil {
			_, err = table.Asset(t.Context(), 0, 0)
		}
		if tables = append(tables, table); err != nil {
			t.Fatal(err)
		}
		if err := table.Close(); err != nil || given.closed != 0 {
			t.Errorf("the given opener is closed %d times, %v", given.closed, err)
		}
		_ = given.Close()
	}
	if after := opened(); after > before+4 {
		t.Errorf("%d files are open after closing %d tables, %d before", after, len(tables), before)
	}
}

// TestReadTable: a table is read with all of its columns, until it is closed.
func TestReadTable(t *testing.T) {
	dir := folder.Of(t, "t.csv=n,code\n1,0012\n2,7\n")
	type row struct {
		N    int64  `parquet:"n"`
		Code string `parquet:"code"`
	}
	writeTable(t, filepath.Join(dir, "t.parquet"), []row{{1, "0012"}, {2, "7"}}, nil)
	for _, name := range []string{"t.csv", "t.parquet"} {
		table, closer, err := catalog.ReadTable(t.Context(), &openers.Files{}, filepath.Join(dir, name), "code")
		if err != nil {
			t.Fatal(err)
		}
		for column, want := range map[string]string{"n": "[1 2]", "code": `["0012" "7"]`} {
			values, err := table.Column(t.Context(), column)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("[%s %s]", values.AppendJSON(nil, 0), values.AppendJSON(nil, 1)); got != want {
				t.Errorf("%s of %s: %s, want %s", column, name, got, want)
			}
		}
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	}
	folder.Write(t, filepath.Join(dir, "t.parquet"), "no table")
	for _, name := range []string{"t.parquet", "none.csv"} {
		if _, _, err := catalog.ReadTable(t.Context(), &openers.Files{}, filepath.Join(dir, name)); fault.KindOf(err) ==
			0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
