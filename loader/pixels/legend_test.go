package pixels_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	_ "github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	_ "github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestNamesInFiles: bands have the names that GDAL's metadata gives them, or that the original writer gave a rumi file.
// A catalog that has the names needs no file. Pictures have none, and for an array the question is an error.
func TestNamesInFiles(t *testing.T) {
	options := resources.Options{}.WithDefaults()
	defer options.CloseOpener()
	index := &chunk.Index{Bands: 2, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: chunk.Uint8}
	check := func(a catalog.Asset, want []string) {
		t.Helper()
		if got, err := rows.BandNames(t.Context(), options.Opener, a); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", a.URI, got, err, want)
		}
	}
	type rumiFile struct {
		Path  string
		Bands []string
	}
	dir := filepath.Join(corpus.Testdata(t), "raster", "rumi-3")
	for _, f := range corpus.Rows[rumiFile](t, dir) {
		check(catalog.Asset{URI: filepath.Join(dir, f.Path), Index: index}, f.Bands)
	}
	var named, plain bytes.Buffer
	o := tog.Options{Shape: [3]int{2, 1, 1}, DType: chunk.Uint8}
	for w, metadata := range map[*bytes.Buffer]string{&plain: "", &named: `<GDALMetadata>
		<Item name="DESCRIPTION" sample="1" role="description">B08</Item></GDALMetadata>`} {
		o.GDALMetadata = metadata
		if err := tog.Write(w, make([]byte, 2), o); err != nil {
			t.Fatal(err)
		}
	}
	files := folder.Of(t, "named.tif="+named.String(), "plain.tif="+plain.String(), "a.png="+string(paletted(t)),
		`a.vrt=<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1">
		<Description>red</Description><SimpleSource><SourceFilename relativeToVRT="1">plain.tif</SourceFilename>
		<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>`)
	in := func(name string) catalog.Asset {
		return catalog.Asset{URI: filepath.Join(files, name), Index: index}
	}
	check(in("named.tif"), []string{"", "B08"})
	check(in("plain.tif"), nil)
	check(in("a.png"), nil)
	check(in("a.vrt"), []string{"red"})
	virtual, _, err := catalog.OpenAsset(t.Context(), options.Opener, filepath.Join(files, "a.vrt"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	check(virtual, []string{"red"})
	virtual.URI, virtual.Names = "missing.vrt", nil // as a virtual raster without names, which is not opened
	check(virtual, nil)
	check(catalog.Asset{URI: "missing.tif", Index: index, Names: []string{"x"}}, []string{"x"})
	check(catalog.Asset{URI: "missing.tif", Index: index, Axes: chunk.Axes{Pages: "bands"}}, nil)
	array := *index
	array.Blocks = &chunk.Blocks{}
	for kind, a := range map[fault.Kind]catalog.Asset{
		fault.Unsupported: {URI: "array", Index: &array},
		fault.NotFound:    in("missing.tif"),
		fault.Corrupt:     in("cut.tif"),
	} {
		if kind == fault.Corrupt {
			folder.Write(t, a.URI, named.String()[:20])
		}
		names, err := rows.BandNames(t.Context(), options.Opener, a)
		if names != nil || fault.KindOf(err) != kind || !strings.HasPrefix(err.Error(), a.URI+": ") {
			t.Errorf("%s: %q, %v; want kind %v", a.URI, names, err, kind)
		}
	}
}

// paletted returns a PNG of one pixel with a palette: red and a green that is half transparent.
func paletted(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	colours := color.Palette{color.NRGBA{0xff, 0, 0, 0xff}, color.NRGBA{0, 0xff, 0, 0x80}}
	p := image.NewPaletted(image.Rect(0, 0, 1, 1), colours)
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLegendsOfFiles: the classes of a raster have the colours of its palette and the names of GDAL's attribute table.
// What NAME.aux.xml says counts before. A raster of several bands or of floats has no legend, and neither has a file
// that is gone.
func TestLegendsOfFiles(t *testing.T) {
	const table = `<GDALRasterAttributeTable><FieldDefn><Name>Value</Name></FieldDefn>
		<FieldDefn><Name>Class</Name></FieldDefn><Row><F>2</F><F>water</F></Row></GDALRasterAttributeTable>`
	const beside = `<PAMDataset><PAMRasterBand band="2"><CategoryNames><Category>no</Category></CategoryNames>
		</PAMRasterBand><PAMRasterBand band="1">%s</PAMRasterBand></PAMDataset>`
	const colours = `<ColorTable><Entry c1="0" c2="16" c3="255" c4="255"/></ColorTable>`
	const categories = `<CategoryNames><Category>sand</Category></CategoryNames>`
	write := func(o tog.Options) string {
		var b bytes.Buffer
		if err := tog.Write(&b, make([]byte, o.Shape[0]*o.DType.Size()), o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	entries := make([]uint16, 3*256) // all reds, all greens, all blues
	entries[1], entries[256+2], entries[512+2] = 0xffff, 0x8000, 0x10ff
	palette := write(tog.Options{Shape: [3]int{1, 1, 1}, DType: chunk.Uint8, Photometric: 3,
		Tags:         []ifdwrite.Field{ifdwrite.Shorts(ifd.TagColorMap, entries...)},
		GDALMetadata: `<GDALMetadata><Item name="RAT" sample="0" role="rat">` + table + `</Item></GDALMetadata>`})
	plain := write(tog.Options{Shape: [3]int{1, 1, 1}, DType: chunk.Uint8})
	dir := folder.Of(t, "palette.tif="+palette, "gone.tif="+palette, "a.png="+string(paletted(t)), "plain.tif="+plain,
		"named.tif="+palette, "named.tif.aux.xml="+fmt.Sprintf(beside, categories),
		"painted.tif="+palette, "painted.tif.aux.xml="+fmt.Sprintf(beside, colours),
		"beside.tif="+plain, "beside.tif.aux.xml="+fmt.Sprintf(beside, colours+categories),
		"two.tif="+write(tog.Options{Shape: [3]int{2, 1, 1}, DType: chunk.Uint8}),
		"two.tif.aux.xml="+fmt.Sprintf(beside, colours+categories),
		"float.tif="+write(tog.Options{Shape: [3]int{1, 1, 1}, DType: chunk.Float32}),
		"float.tif.aux.xml="+fmt.Sprintf(beside, colours+categories),
		`a.vrt=<VRTDataset rasterXSize="1" rasterYSize="1"><VRTRasterBand dataType="Byte" band="1">`+colours+categories+
			`<SimpleSource><SourceFilename relativeToVRT="1">plain.tif</SourceFilename><SourceBand>1</SourceBand>
			</SimpleSource></VRTRasterBand></VRTDataset>`)
	o := resources.Options{}.WithDefaults()
	defer o.CloseOpener()
	for name, want := range map[string]chunk.Legend{
		"palette.tif": {Palette: []string{"#000000", "#ff0000", "#008010"}, Names: []string{"", "", "water"}},
		"named.tif":   {Palette: []string{"#000000", "#ff0000", "#008010"}, Names: []string{"sand"}},
		"painted.tif": {Palette: []string{"#0010ff"}, Names: []string{"", "", "water"}},
		"a.png":       {Palette: []string{"#ff0000", "#00ff0080"}},
		"beside.tif":  {Palette: []string{"#0010ff"}, Names: []string{"sand"}},
		"a.vrt":       {Palette: []string{"#0010ff"}, Names: []string{"sand"}},
		"plain.tif":   {},
		"two.tif":     {},
		"float.tif":   {},
		"gone.tif":    {},
	} {
		a, _, err := catalog.OpenAsset(t.Context(), o.Opener, filepath.Join(dir, name), o.MaxChunkBytes)
		if err != nil {
			t.Fatal(err)
		}
		if name == "gone.tif" {
			if err := os.Remove(a.URI); err != nil {
				t.Fatal(err)
			}
		}
		if got := pixels.Legend(t.Context(), o.Opener, a); !slices.Equal(got.Palette, want.Palette) ||
			!slices.Equal(got.Names, want.Names) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		for hasLegend, field := range map[bool]spec.Field{true: {}, false: {Physical: new(true)}} {
			r := pixels.Raster{Field: field}
			if r.ReadLegend(t.Context(), o.Opener, a); len(r.Legend.Palette) > 0 != (hasLegend && want.Palette != nil) {
				t.Errorf("%s, a field with physical values %t: %q", name, !hasLegend, r.Legend)
			}
		}
		a.Parts = []catalog.Asset{a}
		if got := pixels.Legend(t.Context(), o.Opener, a); got.Palette != nil || got.Names != nil {
			t.Errorf("%s as a stack: %q", name, got)
		}
	}
}
