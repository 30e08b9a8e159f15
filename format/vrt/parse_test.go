package vrt_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vrt"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// seeds returns the files that GDAL wrote.
func seeds(t testing.TB) (out [][]byte) {
	t.Helper()
	names, err := filepath.Glob("../../testdata/vrt/*.vrt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		data := testfile.Read(t, name)
		out = append(out, data)
	}
	return out
}

// one returns a virtual raster of one band with some content.
func one(content string) string {
	return `<VRTDataset rasterXSize="9" rasterYSize="7"><VRTRasterBand dataType="Byte" band="1">` + content +
		`</VRTRasterBand></VRTDataset>`
}

func source(kind, content string) string {
	return one("<" + kind + "><SourceFilename>a.tif</SourceFilename>" + content + "</" + kind + ">")
}

// TestRefusals: what is not read is named, with the way to a file that is.
func TestRefusals(t *testing.T) {
	const rect = `xOff="0" yOff="0" xSize="4" ySize="4"/>`
	for _, c := range [][2]string{
		{`<VRTDataset subClass="VRTPansharpenedDataset"/>`, "VRTPansharpenedDataset is not read"},
		{`<VRTDataset subClass="VRTProcessedDataset"/>`, "VRTProcessedDataset is not read"},
		{`<VRTDataset subClass="VRTWarpedDataset"/>`, "VRTWarpedDataset is not read"},
		{`<VRTDataset><Group name="/"/></VRTDataset>`, "multidimensional"},
		{`<VRTDataset><VRTRasterBand dataType="Int128"/></VRTDataset>`, `dataType "Int128"`},
		{`<VRTDataset><VRTRasterBand subClass="VRTRawRasterBand"/></VRTDataset>`, "VRTRawRasterBand is not read"},
		{one(`<PixelFunctionType>sum</PixelFunctionType>`), `the pixel function "sum"`},
		{one(`<MaskBand><VRTRasterBand/></MaskBand>`), "a mask of one band"},
		{source("KernelFilteredSource", ""), "KernelFilteredSource: such a source"},
		{source("AveragedSource", ""), "AveragedSource: such a source"},
		{source("ComplexSource", "<Exponent>2</Exponent>"), "exponents"},
		{source("ComplexSource", "<ColorTableComponent>1</ColorTableComponent>"), "colours of a palette"},
		{source("SimpleSource", `<OpenOptions><OOI key="X">1</OOI></OpenOptions>`), "options of sources"},
		{one(`<SimpleSource><SourceFilename>vrt://a?bands=1</SourceFilename></SimpleSource>`), "a raster of its own"},
		{one(`<SimpleSource resampling="cubic"><SourceFilename>a</SourceFilename><SrcRect ` + rect +
			`<DstRect xOff="0" yOff="0" xSize="8" ySize="8"/></SimpleSource>`), `resampling "cubic"`},
	} {
		text, want := c[0], c[1]
		_, err := vrt.Parse(t.Context(), []byte(text))
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "gdal_translate x.vrt x.tif") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", "<VRTDataset>", "<html/>", "<VRTDataset/>",
		source("SimpleSource", "<SrcRect "+rect), source("SimpleSource", "<SourceBand>0</SourceBand>"),
		source("SimpleSource", "<SourceBand>x</SourceBand>"),
		source("ComplexSource", "<NODATA>x</NODATA>"), source("ComplexSource", "<LUT>1:2,0:1</LUT>"),
		source("SimpleSource", `<SrcRect xOff="0" yOff="0" xSize="-4" ySize="4"/><DstRect `+rect),
		source("SimpleSource", `<SrcRect xOff="1e99" yOff="0" xSize="4" ySize="4"/><DstRect `+rect),
		one("<SimpleSource/>")} {
		if set, err := vrt.Parse(t.Context(), []byte(text)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%q: %+v, %v", text, set, err)
		}
	}
}

// FuzzParse: any XML is refused with a kind, or each of its sources puts pixels of a source of any size inside of the
// image, from inside of the source, and the same ones at once and row by row.
func FuzzParse(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data, uint8(40), uint8(30))
	}
	f.Add([]byte(source("ComplexSource", "<LUT>0:1,9:255</LUT><ScaleRatio>0.5</ScaleRatio>")), uint8(5), uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, width, height uint8) {
		var set *vrt.Dataset
		var err error
		taken.Check(t, len(data), factor, func() { set, err = vrt.Parse(t.Context(), data) })
		if err != nil {
			if set != nil || fault.KindOf(err) == 0 {
				t.Fatalf("%+v, %v", set, err)
			}
			return
		}
		if set.Width < 1 || set.Height < 1 || set.Width > 300 || set.Height > 300 || width == 0 || height == 0 {
			return
		}
		w, h := int(width), int(height)
		samples, valid := make([]byte, w*h*8), make([]byte, w*h)
		for i := range samples {
			samples[i] = byte(i * 7)
		}
		for i := range valid {
			valid[i] = byte(i % 3 * 255)
		}
		for _, band := range set.Bands {
			if band.DType.Components() > 1 {
				continue
			}
			size := band.DType.Size()
			for i := range band.Sources {
				x, y, ok := band.Sources[i].Place(set, w, h)
				if !ok {
					continue
				}
				if x.First < 0 || x.Last > set.Width || y.First < 0 || y.Last > set.Height || x.First >= x.Last ||
					y.First >= y.Last {
					t.Fatalf("%+v by %+v in %d by %d", x, y, set.Width, set.Height)
				}
				whole, rows := make([]byte, set.Width*set.Height*size), make([]byte, set.Width*set.Height*size)
				p := vrt.Piece{Source: &band.Sources[i], X: &x, Y: &y, DType: chunk.Float64, Samples: samples,
					Width: w, ToDType: band.DType, To: whole, ToWidth: set.Width,
					First: y.First, Last: y.Last, Left: x.First, Right: x.Last}
				put := func() {
					p.Valid = append([]byte(nil), valid...)
					p.Put()
				}
				put()
				p.To = rows
				for p.First = y.First; p.First < y.Last; p.First++ {
					p.DType, p.Samples = chunk.Float64, samples
					p.Last = p.First + 1
					put()
				}
				if string(whole) != string(rows) {
					t.Fatal("rows differ from the whole")
				}
			}
		}
	})
}

// TestHostile: the memory of a parse, with what it frees, is a small multiple of the file, whatever the file has.
func TestHostile(t *testing.T) {
	const n = 1 << 17
	for _, c := range []struct {
		name, text string
		kind       fault.Kind
	}{
		{"elements", one(strings.Repeat("<a/>", n)), 0},
		{"depth", `<VRTDataset>` + strings.Repeat("<a>", n), fault.Limit},
		{"bands", `<VRTDataset>` + strings.Repeat("<VRTRasterBand/>", n+1) + `</VRTDataset>`, fault.Limit},
		{"masks", `<VRTDataset><MaskBand>` + strings.Repeat("<VRTRasterBand/>", n), fault.Limit},
		{"sources", one(strings.Repeat("<SimpleSource/>", n)), fault.Corrupt},
		{"steps", source("ComplexSource", "<LUT>"+strings.Repeat("1:1,", n)+"1:1</LUT>"), fault.Limit},
	} {
		var err error
		taken.Check(t, len(c.text), factor, func() { _, err = vrt.Parse(t.Context(), []byte(c.text)) })
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	head := "<VRTDataset rasterXSize='9' rasterYSize='9'>"
	band := head + "<VRTRasterBand dataType='Byte' band='1'>"
	for _, element := range []string{head, band, band + "<SimpleSource>", band + "<ComplexSource><LUT>",
		band + "<ColorTable>", band + "<CategoryNames>"} {
		for _, text := range taken.XML(element) {
			taken.Check(t, len(text), factor, func() { _, _ = vrt.Parse(t.Context(), []byte(text)) })
		}
	}
}

// factor bounds the memory of a virtual raster by its length: "<SimpleSource/>" becomes a source of 500 bytes, in a
// slice that doubles. Its memory is charged before (tagBytes of package catalog).
const factor = 136
