package catalog_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestBesideRules: which files beside a raster count, and what they add; GDAL's rules.
func TestBesideRules(t *testing.T) {
	write := func(bands int, o tog.Options) string {
		var b bytes.Buffer
		o.Shape, o.Tile, o.DType = [3]int{bands, 16, 16}, 16, cmp.Or(o.DType, chunk.Uint8)
		if err := tog.Write(&b, make([]byte, 256*bands*o.DType.Size()), o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	raster := func(bands int, metadata string) string { return write(bands, tog.Options{GDALMetadata: metadata}) }
	rgba := write(4, tog.Options{Photometric: 2, ExtraSamples: []uint16{2}})
	type said func(a *catalog.Asset, m *catalog.Meta) bool
	one, two := raster(1, ""), raster(2, "")
	mask := raster(1, `<GDALMetadata><Item name="INTERNAL_MASK_FLAGS_1">2</Item></GDALMetadata>`)
	masked := string(testfile.Read(t, filepath.Join(corpus.Testdata(t), "masks", "bytes.tif")))
	pam := func(bands ...string) string {
		text := "<PAMDataset>"
		for i, band := range bands {
			text += fmt.Sprintf(`<PAMRasterBand band="%d">%s</PAMRasterBand>`, i+1, band)
		}
		return text + "</PAMDataset>"
	}
	number := func(v any) string { return fmt.Sprintf("<NoDataValue>%v</NoDataValue>", v) }
	zero := number(0)
	alpha := func(last float64) said { // and its nodata, -1 for the value of all bands
		return func(a *catalog.Asset, _ *catalog.Meta) bool {
			own := a.Index.NoDataOf(a.Index.Bands - 1)
			return a.Index.Alpha && (a.Index.BandNoData == nil) == (last < 0) && a.Index.OneNoData() &&
				(last < 0 || last != last && len(own) == 0 || slices.Equal(own, []float64{last}))
		}
	}
	each := func(bands ...[]float64) said { // bands with nodata values of their own
		return func(a *catalog.Asset, _ *catalog.Meta) bool {
			return reflect.DeepEqual(a.Index.BandNoData, bands) && !a.Index.OneNoData()
		}
	}
	scaled := func(scale, offset bool) said {
		return func(_ *catalog.Asset, m *catalog.Meta) bool {
			return (m.Bands[0].Scale != nil) == scale && (m.Bands[0].Offset != nil) == offset
		}
	}
	colours := `<ColorTable><Entry c1="1" c2="2" c3="3" c4="255"/></ColorTable>`
	classes := func(want bool) said {
		return func(a *catalog.Asset, _ *catalog.Meta) bool { return a.Index.Classes == want }
	}
	withMask := func(file, index bool) said {
		return func(a *catalog.Asset, _ *catalog.Meta) bool {
			return (a.MaskFile != nil) == file && (a.Index.Mask != nil) == index
		}
	}
	for name, c := range map[string]struct {
		raster, ext, beside string
		counts              bool
		holds               said // nil: it is refused
	}{
		"a mask":                 {one, ".tif.msk", mask, true, withMask(true, true)},
		"no mask":                {one, ".tif.msk", one, false, withMask(false, false)},
		"a text":                 {one, ".tif.msk", "hello", false, withMask(false, false)},
		"a mask too many":        {masked, ".tif.msk", mask, false, withMask(false, true)},
		"a mask of another size": {string(folder.TIFF(4, 4, 0)), ".tif.msk", mask, true, nil},
		"scales": {two, ".tif.aux.xml", pam("", "<Scale>2</Scale><Offset>3</Offset>"), true,
			func(_ *catalog.Asset, m *catalog.Meta) bool {
				return len(m.Bands) == 2 && m.Bands[0].Scale == nil && *m.Bands[1].Scale == 2 && *m.Bands[1].Offset == 3
			}},
		"nodata": {two, ".tif.aux.xml", pam(number(7), number(7)), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return *a.Index.NoData == 7 }},
		"nodata of one band": {write(2, tog.Options{NoData: "7"}), ".tif.aux.xml", pam("", number(7)), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return *a.Index.NoData == 7 }},
		"other nodata of one band": {write(2, tog.Options{NoData: "7"}), ".tif.aux.xml", pam("", number(8)), true,
			each([]float64{7}, []float64{8})},
		"no nodata in one band": {two, ".tif.aux.xml", pam(zero, ""), true, each([]float64{0}, nil)},
		"nodata of bits": {write(2, tog.Options{DType: chunk.Int64}), ".tif.aux.xml",
			pam(number(1<<53+1), number(1<<53+1)), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return *a.Index.NoDataBits == 1<<53+1 }},
		"bits of one band": {write(2, tog.Options{DType: chunk.Int64}), ".tif.aux.xml", pam(number(1<<53+1), ""), true,
			nil},
		"a zero of one band": {write(2, tog.Options{DType: chunk.Int64}), ".tif.aux.xml", pam(zero, ""), true,
			each([]float64{0}, nil)},
		"two of bits": {write(2, tog.Options{DType: chunk.Int64}), ".tif.aux.xml", pam(number(1<<53), number(1<<53+1)),
			true, nil},
		"colours and alpha": {rgba, ".tif.aux.xml", pam("<ColorInterp>Red</ColorInterp>", "", "",
			"<Description>a</Description>"), true, alpha(-1)},
		"nodata before alpha": {rgba, ".tif.aux.xml", pam(zero, zero, zero), true, alpha(math.NaN())},
		"nodata of alpha":     {rgba, ".tif.aux.xml", pam(zero, zero, zero, number(9)), true, alpha(9)},
		"a fraction":          {rgba, ".tif.aux.xml", pam(zero, zero, zero, number(7.5)), true, alpha(7)},
		"nodata of all":       {rgba, ".tif.aux.xml", pam(zero, zero, zero, zero), true, alpha(-1)},
		"nodata of the last": {two, ".tif.aux.xml", pam(zero, zero), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return a.Index.BandNoData == nil }},
		"a scale":   {one, ".tif.aux.xml", pam("<Scale>2</Scale>"), true, scaled(true, false)},
		"an offset": {one, ".tif.aux.xml", pam("<Offset>2</Offset>"), true, scaled(false, true)},
		"a name": {write(2, tog.Options{BandNames: []string{"a", "b"}}), ".tif.aux.xml",
			pam("", "<Description>c</Description>"), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return slices.Equal(a.Names, []string{"a", "c"}) }},
		"metadata of rumi": {rumiOf(t, chunk.Uint8), ".tif.aux.xml", pam(zero), false,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return a.Index.NoData == nil }},
		"two of nodata": {two, ".tif.aux.xml", pam(number(7), number(8)), true, each([]float64{7}, []float64{8})},
		"alpha": {two, ".tif.aux.xml", pam("", "<ColorInterp>Alpha</ColorInterp>"), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return a.Index.Alpha }},
		"alpha that is not last": {two, ".tif.aux.xml", pam("<ColorInterp>Alpha</ColorInterp>", ""), true,
			func(a *catalog.Asset, _ *catalog.Meta) bool { return !a.Index.Alpha }},
		"colours":          {one, ".tif.aux.xml", pam(colours), true, classes(true)},
		"colours of bands": {two, ".tif.aux.xml", pam(colours), true, classes(false)},
		"broken":           {one, ".tif.aux.xml", "<PAMDataset>", false, classes(false)},
		"a world": {one, ".tfw", "10\n0\n0\n-10\n505\n995\n", true,
			func(_ *catalog.Asset, m *catalog.Meta) bool {
				return *m.Transform == [6]float64{500, 10, 0, 1000, 0, -10}
			}},
		"a large world": {one, ".tfw", strings.Repeat("10\n", 1<<20), true,
			func(_ *catalog.Asset, m *catalog.Meta) bool { return m.Transform == nil }},
	} {
		for _, off := range []string{"", "no"} {
			t.Setenv(catalog.BesideVariable, off)
			dir := folder.Of(t, "a.tif="+c.raster, "a"+c.ext+"="+c.beside)
			path := filepath.Join(dir, "a.tif")
			a, m, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0)
			counts, want := off == "" && c.counts, ""
			if counts {
				want = strings.TrimPrefix(c.ext, ".tif")
			}
			switch {
			case off == "" && c.holds == nil:
				if fault.KindOf(err) == 0 {
					t.Errorf("%s: %v is no fault", name, err)
				}
				continue
			case err != nil:
				t.Errorf("%s: %v", name, err)
				continue
			}
			paths := catalog.FilesBeside(t.Context(), &openers.Files{}, path)
			if a.Beside != want || off == "" && !c.holds(&a, &m) || (len(paths) > 0) != (off == "") ||
				len(paths) > 0 && paths[0] != filepath.Join(dir, "a"+c.ext) {
				t.Errorf("%s (%s): beside %q, want %q, files %q: %+v", name, off, a.Beside, want, paths, m)
			}
		}
	}
}

// TestMasksOfOtherNames: a mask whose name is written in another case counts, also for a catalog.
func TestMasksOfOtherNames(t *testing.T) {
	var one, mask bytes.Buffer
	o := tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8, Tile: 16}
	err := tog.Write(&one, make([]byte, 256), o)
	o.GDALMetadata = `<GDALMetadata><Item name="INTERNAL_MASK_FLAGS_1">2</Item></GDALMetadata>`
	if err := errors.Join(err, tog.Write(&mask, make([]byte, 256), o)); err != nil {
		t.Fatal(err)
	}
	for raster, beside := range map[string]string{"a.tif": "a.tif.msk", "B.TIF": "b.tif.msk",
		"c d.tif": "C d.tif.MSK"} {
		dir := folder.Of(t, raster+"="+one.String(), beside+"="+mask.String())
		file := filepath.Join(dir, "catalog.parquet")
		folder.Index(t, file, build.Options{}, filepath.Join(dir, raster))
		for _, src := range []string{filepath.Join(dir, raster), file} {
			a, err := folder.Open(t, src, catalog.Options{}).Asset(t.Context(), 0, 0)
			if err != nil || a.MaskFile == nil || a.MaskFile.URI != filepath.Join(dir, beside) || a.Index.Mask == nil {
				t.Errorf("%s: %+v, %v", src, a.MaskFile, err)
			}
		}
	}
}

// TestBesideObjects: files lie beside a remote raster if a listing says so. What a listing has of a directory counts
// before the directory.
func TestBesideObjects(t *testing.T) {
	names := sidecar.Names{}
	for _, name := range []string{"a.tif.msk", "a.tif.aux.xml", "a.tfw"} {
		names.Add(name)
	}
	b := bucket{folder.Of(t, "d/b.tif", "d/b.tfw=", "e/a.tif", "e/a.tif.msk=")}
	local := filepath.Join(b.dir, "d")
	listed := map[string]sidecar.Names{"s3://bucket/d": names, "s3://bucket": {}, local: names}
	const all = ".msk .aux.xml .tfw"
	for _, c := range []struct{ uri, listed, alone string }{
		{"s3://bucket/d/a.tif", all, ""}, {"s3://bucket/d/b.tif", "", ""}, {"s3://bucket/a.tif", "", ""},
		{"s3://bucket/e/a.tif", "", ""}, {filepath.Join(local, "a.tif"), all, ""},
		{filepath.Join(local, "b.tif"), "", ".tfw"}, {filepath.Join(b.dir, "e", "a.tif"), ".msk", ".msk"},
		{filepath.Join(b.dir, "none", "a.tif"), "", ""},
		{"file://" + filepath.Join(local, "b.tif"), "", ".tfw"},
		{"/vsizip/s3://bucket/d/a.tif", "", ""},
	} {
		for ctx, want := range map[context.Context]string{t.Context(): c.alone,
			catalog.WithBeside(t.Context(), listed): c.listed} {
			var paths []string
			for ext := range strings.FieldsSeq(want) {
				file := strings.TrimPrefix(c.uri, "file://")
				if ext == ".tfw" {
					file = strings.TrimSuffix(file, ".tif")
				}
				paths = append(paths, file+ext)
			}
			got, found := catalog.BesideOf(ctx, b, c.uri), catalog.FilesBeside(ctx, b, c.uri)
			if got != want || !slices.Equal(found, paths) {
				t.Errorf("%s: %q, want %q; files %q, want %q", c.uri, got, want, found, paths)
			}
		}
	}
}

// TestNamesAreKept: a table looks at a directory once. The names of a large directory count for a moment even if it
// changes, so that a program that writes to it does not make each raster list it.
func TestNamesAreKept(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "t.csv=path\na.tif\nb.tif\n")
	field := catalog.Source{Field: "image", Column: "path"}
	table := folder.Open(t, filepath.Join(dir, "t.csv"), catalog.Options{}, field)
	release := catalog.HoldListing(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := table.Asset(ctx, 0, 0); err == nil && a.Beside != "" {
		t.Errorf("a canceled opening found %q", a.Beside)
	}
	release()
	folder.Write(t, filepath.Join(dir, "a.tfw"), "1\n0\n0\n-1\n0\n0\n")
	for row, want := range []string{".tfw", ""} {
		if a, err := table.Asset(t.Context(), 0, int64(row)); err != nil || a.Beside != want {
			t.Errorf("row %d: beside %q, want %q, %v", row, a.Beside, want, err)
		}
		folder.Write(t, filepath.Join(dir, "b.tfw"), "1\n0\n0\n-1\n0\n0\n") // after the first row
	}
	if a, err := folder.Open(t, table.Base()+"/t.csv", catalog.Options{}, field).Asset(t.Context(), 0, 1); err != nil ||
		a.Beside != ".tfw" {
		t.Errorf("another table: beside %q, %v", a.Beside, err)
	}
	large, stale := t.TempDir(), false
	for i := range 1000 {
		folder.Write(t, filepath.Join(large, fmt.Sprintf("c%d.txt", i)), "")
	}
	for i := 0; i < 100 && !stale; i++ {
		path := filepath.Join(large, fmt.Sprintf("c%d", i))
		catalog.BesideOf(t.Context(), &openers.Files{}, path+".tif")
		if err := os.Rename(path+".txt", path+".tfw"); err != nil {
			t.Fatal(err)
		}
		stale = catalog.BesideOf(t.Context(), &openers.Files{}, path+".tif") == ""
	}
	if !stale {
		t.Error("a large directory is listed again after each change")
	}
}

// TestBrokenMetadata: the first broken file of metadata in a directory is told.
func TestBrokenMetadata(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var told bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&told, nil)))
	const broken = ".tif.aux.xml=<PAMDataset>"
	dir := folder.Of(t, "x/a.tif", "x/a"+broken, "x/b.tif", "x/b"+broken, "y/c.tif", "y/c"+broken)
	for _, name := range []string{"x/a.tif", "x/b.tif", "y/c.tif"} {
		if _, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, filepath.Join(dir, name), 0); err != nil {
			t.Error(err)
		}
	}
	for file, n := range map[string]int{"x/a.tif.aux.xml": 1, "x/b.tif.aux.xml": 0, "y/c.tif.aux.xml": 1} {
		if got := strings.Count(told.String(), "file="+filepath.Join(dir, file)); got != n {
			t.Errorf("%s is told %d times, want %d:\n%s", file, got, n, told.String())
		}
	}
}

// TestMasksThatDoNotCount: a mask beside pages of one image is refused, and a catalog takes no other file for a mask.
func TestMasksThatDoNotCount(t *testing.T) {
	mask := string(testfile.Read(t, filepath.Join(corpus.Testdata(t), "beside", "mask.tif.msk")))
	dir := folder.Of(t, "a.tif="+pagesOf(2), "a.tif.msk="+mask)
	_, err := catalog.OpenSmall(t.Context(), &openers.Files{}, filepath.Join(dir, "a.tif"), source.Known{},
		chunk.Axes{Pages: "t"}, 0)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "a.tif.msk") {
		t.Errorf("pages beside a mask: %v", err)
	}
	masked := string(testfile.Read(t, filepath.Join(corpus.Testdata(t), "masks", "bytes.tif")))
	for _, beside := range []string{"a.tif.aux.xml=<PAMDataset/>", "a.tif.msk=" + mask} {
		dir := folder.Of(t, "a.tif="+masked, beside)
		file := filepath.Join(dir, "catalog.parquet")
		folder.Index(t, file, build.Options{}, filepath.Join(dir, "a.tif"))
		a, err := folder.Open(t, file, catalog.Options{}).Asset(t.Context(), 0, 0)
		if err != nil || a.Index.Mask == nil || a.MaskFile != nil {
			t.Errorf("a mask in the file beside %.9s: %+v, %v", beside, a.MaskFile, err)
		}
	}
}

// TestRefusedPatterns: fields that cannot be paired are refused, with the reason.
func TestRefusedPatterns(t *testing.T) {
	dir := folder.Of(t, "i/a.tif", "i/b.tif", "m/c.tif", "m/D.TIF", "s/a.geojson={}",
		"q/z.geojson={}")
	pattern := func(name, pattern string) catalog.Source { return catalog.Source{Field: name, Pattern: pattern} }
	shapes := catalog.Source{Field: "s", Pattern: "s/{id}.geojson", Beside: true}
	other := catalog.Source{Field: "s", Pattern: "q/{id}.geojson", Beside: true, Optional: true}
	optional := pattern("x", "i/{id}.tif")
	optional.Optional = true
	for says, fields := range map[string][]catalog.Source{
		"is from a raster field's pattern":         {shapes},
		`no file matches the pattern "n`:           {pattern("x", "n/{id}.tif")},
		`samples has a file "q/{id}.geojson"`:      {pattern("x", "i/{id}.tif"), other},
		"fields that have the names {id} may lack": {optional},
		"no file i/c.tif":                          {pattern("x", "i/{id}.tif"), pattern("m", "m/{id}.tif")},
	} {
		_, err := catalog.Open(t.Context(), dir, fields, catalog.Options{})
		if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
