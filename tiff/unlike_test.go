package tiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// TestPagesThatDiffer: the error names what the second page has otherwise, whatever the first page leaves to it.
func TestPagesThatDiffer(t *testing.T) {
	for _, c := range [][2]string{
		{"; bands=2 planar=1 sizes=512", "number of bands is 2, and 1"},
		{"; height=15", "height is 15, and 16"},
		{"; width=15", "width is 15, and 16"},
		{"; bits=16 sizes=512", "dtype is uint16, and uint8"},
		{"bits=3; bits=4", "number of bits is 4, and 3"},
		{"; compression=8", "compression is deflate, and none"},
		{"compression=8; compression=8 predictor=2", "predictor is 2, and 1"},
		{"; tilew=32 sizes=512", "chunk is [1 16 32], and [1 16 16]"},
		{"-tilew -tileh -offsets -sizes at=300 rows=16; tilew=16",
			"cut of chunks at the edges is [false false], and [true false]"},
		{"; fill=2", "reversal of bits is true, and false"},
		{"photometric=6 bands=3 planar=1 sub=1,1 sizes=768; photometric=6 bands=3 planar=1 sub=2,1 sizes=768",
			"parameters of the compression is "},
		{"; photometric=3", "palette is true, and false"},
		{"nodata='1; nodata='2", "nodata is 2, and 1"},
		{"; nodata='2", "nodata is 2, and "},
		{"nodata='2; ", ""},
		{"keys=1,1,0,1,3072,0,1,32633; keys=1,1,0,1,3072,0,1,32634", "EPSG code is 32634, and 32633"},
		{"keys=1,1,0,1,3072,0,1,32633; ", ""},
		{"; keys=1,1,0,1,3072,0,1,32633", "EPSG code is 32633, and 0"},
		{"scale=1.,1.,0. tie=0.,0.,0.,5.,6.,0.; scale=1.,1.,0. tie=0.,0.,0.,5.,7.,0.",
			"place is [5 1 0 7 0 -1], and [5 1 0 6 0 -1]"},
		{"scale=1.,1.,0. tie=0.,0.,0.,5.,6.,0.; ", ""},
		{"gdal='<a><Item/**/sample='0'/**/role='scale'>2</Item></a>; " +
			"gdal='<a><Item/**/sample='0'/**/role='scale'>3</Item></a>",
			"scales and offsets is [{3 0}], and [{2 0}]"},
		{"gdal='<a><Item/**/sample='0'/**/role='scale'>2</Item></a>; ", ""},
		{"; gdal='<a><Item/**/sample='0'/**/role='offset'>4</Item></a>", "scales and offsets is [{1 4}], and []"},
	} {
		b := append(pagesOf(c[0]), make([]byte, 2048)...)
		_, err := openPages(b, chunk.StepsPages, Limits{})
		want := "page 1: its " + c[1]
		if ok := err == nil; c[1] == "" && !ok || c[1] != "" && (ok || fault.KindOf(err) != fault.Unsupported ||
			!strings.HasPrefix(offsetOf.ReplaceAllString(err.Error(), ""), want) || !strings.HasSuffix(err.Error(),
			` in the first page: pages of one image must be alike, as pages="steps" says: unsupported`)) {
			t.Errorf("%s: %v, want %s", c[0], err, want)
		}
	}
}

// TestPagesRefused: pages that cannot be one image, and limits of all their tags together.
func TestPagesRefused(t *testing.T) {
	const more = "pages: its description says that more images follow in the same page: tifffile.imread reads them, " +
		"and tifffile.imwrite(..., metadata=None) writes them as pages: unsupported"
	for _, c := range []struct{ fields, as, want string }{
		{"", chunk.BandsPages, "1 bands, 0 steps"},
		{";", chunk.BandsPages, "2 bands, 0 steps"},
		{"; kind=1; kind=2; ", chunk.StepsPages, "3 bands, 3 steps"},
		{"; kind=4; ", chunk.BandsPages, "pages: pages with masks are not read as one image: write each page to a " +
			"file of its own (gdal_translate GTIFF_DIR:1:in.tif): unsupported"},
		{"; kind=4", chunk.BandsPages, "1 bands, 0 steps"},
		{"; kind=4; ", chunk.FirstPage, "1 bands, 0 steps"},
		{"photometric=3; photometric=3", chunk.BandsPages,
			"pages: pages with palettes are no bands of one image: take them as steps: unsupported"},
		{"photometric=3; photometric=3", chunk.StepsPages, "2 bands, 2 steps"},
		{"description='ImageJ=1\x01images=4", chunk.BandsPages, more},
		{"description='ImageJ=1\x01images=4;", chunk.BandsPages, "2 bands, 0 steps"},
		{"description='ImageJ=1\x01images=1", chunk.BandsPages, "1 bands, 0 steps"},
		{"description='Image\x01images=4", chunk.BandsPages, "1 bands, 0 steps"},
		{"description='ImageJ=1", chunk.BandsPages, "1 bands, 0 steps"},
		{`description='{"truncated":/**/true}`, chunk.BandsPages, more},
		{`description='"truncated":/**/true`, chunk.BandsPages, "1 bands, 0 steps"},
		{`description='{}`, chunk.BandsPages, "1 bands, 0 steps"},
		{"; bits=128", chunk.BandsPages, "page 1 ifd 1 tag 258: samples of 128 bits with SampleFormat 1: unsupported"},
	} {
		image, err := openPages(pagesOf(c.fields), c.as, Limits{})
		got := ""
		if err != nil {
			got = offsetOf.ReplaceAllString(err.Error(), "")
		} else {
			got = fmt.Sprintf("%d bands, %d steps", image.Index.Bands, image.Index.Times)
		}
		if got != c.want {
			t.Errorf("%q as %q: %q, want %q", c.fields, c.as, got, c.want)
		}
	}
	// Of each page: 4 LONG, 2 LONG8 and 4 SHORT.
	for size, kind := range map[int64]fault.Kind{2*(4*4+2*8+4*2) - 1: fault.Limit, 2 * (4*4 + 2*8 + 4*2): 0} {
		_, err := openPages(chain(nil, nil, nil), chunk.BandsPages, Limits{MaxTagBytes: size})
		if fault.KindOf(err) != kind || kind != 0 && !strings.HasSuffix(err.Error(),
			fmt.Sprintf(": tags of more than %d bytes in all pages: limit", size)) {
			t.Errorf("a limit of %d bytes: %v", size, err)
		}
	}
	broken := chain(nil, nil)
	copy(broken[16+8+20*10:], "\xff\xff\xff\xff") // the offset of the second directory
	for as, kind := range map[string]fault.Kind{chunk.FirstPage: 0, chunk.BandsPages: fault.Corrupt} {
		if _, err := openPages(broken, as, Limits{}); fault.KindOf(err) != kind {
			t.Errorf("a broken chain as %q: %v", as, err)
		}
	}
}

// TestJoin: bands of pages have the names and scales of their pages, or of the first one, and no alpha.
func TestJoin(t *testing.T) {
	const named = `<a><Item sample="0" role="description">red</Item><Item sample="1" role="scale">2</Item></a>`
	const other = `<a><Item sample="1" role="description">last</Item><Item sample="1" role="scale">2</Item></a>`
	page := func(text string) []ifdwrite.Field {
		fields := fieldsOf("bands=2 planar=1 sizes=512 extra=2")
		if text != "" {
			fields = append(fields, ifdwrite.Text(ifd.TagGDALMetadata, text))
		}
		return fields
	}
	b := append(chain(page(named), page(""), page(other)), make([]byte, 512)...)
	image, err := openPages(b, chunk.BandsPages, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := image.Meta.BandNames; !slices.Equal(got, []string{"red", "", "", "", "", "last"}) {
		t.Errorf("names %q", got)
	}
	got := fmt.Sprint(image.Index.Physical, image.Index.Alpha)
	if got != "[{1 0} {2 0} {1 0} {2 0} {1 0} {2 0}] false" {
		t.Error(got)
	}
	if image, err := openPages(chain(nil, nil), chunk.BandsPages, Limits{}); err != nil || image.Meta.BandNames != nil {
		t.Errorf("names of pages without: %+v, %v", image, err)
	}
	if image, err = openPages(b, chunk.StepsPages, Limits{}); err != nil || len(image.Index.Physical) != 2 ||
		!slices.Equal(image.Meta.BandNames, []string{"red", ""}) {
		t.Errorf("as steps: %+v, %v", image, err)
	}
}
