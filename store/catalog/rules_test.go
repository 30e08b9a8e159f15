package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestBesideRules: which files beside a raster count, and what they add; GDAL's rules.
func TestBesideRules(t *testing.T) {
	raster := func(bands int, metadata string) string {
		var b bytes.Buffer
		err := tog.Write(&b, make([]byte, 256*bands), tog.Options{Shape: [3]int{bands, 16, 16}, DType: chunk.Uint8,
			Tile: 16, GDALMetadata: metadata})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
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
	number := func(v float64) string { return fmt.Sprintf("<NoDataValue>%g</NoDataValue>", v) }
	colours := `<ColorTable><Entry c1="1" c2="2" c3="3" c4="255"/></ColorTable>`
	type said func(a *catalog.Asset, m *catalog.Meta) bool
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
		"two of nodata": {two, ".tif.aux.xml", pam(number(7), number(8)), true, nil},
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
