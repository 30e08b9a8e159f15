package tiff

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// metaIn returns the metadata of a file.
func metaIn(t *testing.T, b []byte) Meta {
	t.Helper()
	file, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ReadMeta(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// TestMeta: numbers of tags, or their defaults by TIFF; numbers that no SHORT has are the largest SHORT.
func TestMeta(t *testing.T) {
	for fields, want := range map[string]string{
		"": "50000 1 2 1 BAND []",
		"-compression -predictor -planar -photometric -bands": "1 1 1 0 BAND []",
		"bands=2 planar=1 predictor=2":                        "50000 2 1 1 PIXEL []",
		"bands=2 planar=2":                                    "50000 1 2 1 BAND []",
		"bands=2 planar=3":                                    "50000 1 3 1 BAND []",
		"bands=1 planar=1":                                    "50000 1 1 1 BAND []",
		"compression=65536 photometric=65536":                 "65535 1 2 65535 BAND []",
		"bands=3 extra=1,2":                                   "50000 1 2 1 BAND [1 2]",
		"bands=3 extra=1,2,0":                                 "50000 1 2 1 BAND []",
		"bands=3 extra='1":                                    "50000 1 2 1 BAND []",
	} {
		m := metaIn(t, oneTile(fieldsOf(fields)...))
		got := fmt.Sprint(m.Compression, m.Predictor, m.Planar, m.Photometric, " ", m.Interleave, " ", m.ExtraSamples)
		if got = strings.Join(strings.Fields(got), " "); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// TestOtherDirectories: the other directories of a file are overviews, masks or pages by their kind.
func TestOtherDirectories(t *testing.T) {
	for pages, want := range map[string]string{
		"": "1 0 [] false", "; ;kind=2": "3 0 [] false", "; kind=4": "1 0 [] true", "; kind=5": "1 0 [] false",
		"; kind=1 width=4 height=8; kind=1 width=9 height=8; kind=3 width=8 height=4": "1 3 [[8 9] [8 4] [4 8]] false",
		"; kind=1 width=4294967295 " +
			"height=4294967296": "1 1 [[2147483648 2147483648]] false",
		"; kind=1 -width height='8": "1 1 [[0 0]] false",
	} {
		m := metaIn(t, pagesOf(pages))
		if got := fmt.Sprint(m.Pages, m.Overviews, " ", m.OverviewSizes, " ", m.HasMask); got != want {
			t.Errorf("%s: %q, want %q", pages, got, want)
		}
	}
}

// TestLongGDALMetadata: a text is parsed up to a size.
func TestLongGDALMetadata(t *testing.T) {
	const item = `<a><Item name="INTERLEAVE" domain="IMAGE_STRUCTURE">TILE</Item></a>`
	for size, want := range map[int]string{MaxGDALMetadata: "TILE", MaxGDALMetadata + 1: "BAND"} {
		text := item + strings.Repeat(" ", size-len(item))
		if m := metaIn(t, oneTile(ifdwrite.Text(ifd.TagGDALMetadata, text))); m.Interleave != want ||
			len(m.GDALMetadata) != size {
			t.Errorf("%d bytes: %s", size, m.Interleave)
		}
	}
}

// TestItems: which items of GDAL_METADATA are about the image, and which about a band.
func TestItems(t *testing.T) {
	for text, want := range map[string]string{
		`<Item name="NODATA_VALUES"> 1 2 </Item>`:          "- 1 2 []",
		`<Item name="NODATA_VALUES" domain="x">1 2</Item>`: "- - []",
		`<Item name="NODATA_VALUES" ` +
			`sample="0">1 2</Item>`: "- - [{ map[NODATA_VALUES:1 2]} { map[]}]",
		`<Item name="INTERLEAVE" domain="IMAGE_STRUCTURE"> PIXEL </Item>`:           "PIXEL - []",
		`<Item name="INTERLEAVE" domain="IMAGE_STRUCTURE" sample="0">TILE</Item>`:   "- - []",
		`<Item name="OTHER" domain="IMAGE_STRUCTURE">TILE</Item>`:                   "- - []",
		`<Other name="NODATA_VALUES">1 2</Other>`:                                   "- - []",
		`<Item name="a" sample="-1">1</Item>`:                                       "- - []",
		`<Item name="a" sample="2">1</Item>`:                                        "- - []",
		`<Item name="a" sample="1">1</Item>`:                                        "- - [{ map[]} { map[a:1]}]",
		`<Item name="a" sample="0">1</Item></Item>2</Item>`:                         "- - [{ map[a:1]} { map[]}]",
		`<Item name="c" sample="0" role="colorinterp"> Alpha </Item>`:               "- - [{Alpha map[]} { map[]}]",
		`<Item name="c" sample="0" role="other">Alpha</Item>`:                       "- - [{ map[]} { map[]}]",
		`<Item name="s" sample="0" role="scale">inf</Item>`:                         "- - [{ map[]} { map[]}]",
		`<Item sample="0" name="a">1</Item><Item sample="0" name="b">2</Item>`:      "- - [{ map[a:1 b:2]} { map[]}]",
		`<?xml version="1.0" encoding="latin1"?><Item sample="0" name="a">1</Item>`: "- - [{ map[a:1]} { map[]}]",
	} {
		interleave, joint, bands := parseGDALMetadata(strings.NewReader("<GDALMetadata>"+text), 2)
		about := []string{}
		for _, b := range bands {
			if b.Scale != nil || b.Offset != nil {
				t.Errorf("%s: %v %v", text, b.Scale, b.Offset)
			}
			about = append(about, fmt.Sprintf("{%s %v}", b.Colour, b.Tags))
		}
		or := func(s string) string {
			if s == "" {
				return "-"
			}
			return s
		}
		if got := or(interleave) + " " + or(joint) + " " + fmt.Sprint(about); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestGhost: lines of KEY=VALUE behind the header, up to the first other line, and 1 KiB.
func TestGhost(t *testing.T) {
	const first = StructureKey + "000140 bytes\n"
	long := "K=" + strings.Repeat("v", 2000)
	for _, c := range []struct {
		text string
		want map[string]string
	}{
		{"", nil}, {"LAYOUT=x\n", nil}, {" " + first, nil},
		{first + "A_1=x=y\nB=\nlower=1\nC=3\n", map[string]string{"A_1": "x=y", "B": ""}},
		{first + "A=1\nnothing\nC=3\n", map[string]string{"A": "1"}},
		{first + "A=1\nB=2", map[string]string{"A": "1", "B": "2"}},
		{first + long, map[string]string{"K": long[2 : 1024-len(first)]}},
	} {
		if c.want != nil {
			c.want[strings.TrimSuffix(StructureKey, "=")] = "000140 bytes"
		}
		for _, big := range []bool{false, true} {
			header := 8
			if big {
				header = 16
			}
			file := &ifd.File{Big: big, Head: append(make([]byte, header), c.text...)}
			if got := ghost(file); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q: %v, want %v", c.text, got, c.want)
			}
			if file.Head = file.Head[:4]; ghost(file) != nil {
				t.Error("a ghost in 4 bytes")
			}
		}
	}
}

// TestAlpha: the last of two or four bands of 8 or 16 bits without a sign is a mask if GDAL_METADATA says so, or
// ExtraSamples where it says nothing.
func TestAlpha(t *testing.T) {
	band := func(n int, colour string) string {
		return fmt.Sprintf(" gdal='<a><Item/**/sample='%d'/**/role='colorinterp'>%s</Item></a>", n, colour)
	}
	for fields, want := range map[string]bool{
		"bands=2 extra=2": true, "bands=2 extra=1": true, "bands=2 extra=0": false, "bands=2 extra=3": false,
		"bands=2":         false,
		"bands=1 extra=2": false, "bands=3 extra=2": false, "bands=4 extra=2": true, "bands=4 extra=0,1": true,
		"bands=4 extra=2,0": false, "bands=5 extra=2": false,
		"bands=2 extra=2 bits=16": true, "bands=2 extra=2 bits=32": false, "bands=2 extra=2 bits=16 format=2": false,
		"bands=2 extra=0" + band(1, "Alpha"): true, "bands=2 extra=2" + band(1, "Gray"): false,
		"bands=2 extra=2" + band(0, "Gray"): true, "bands=2 extra=0" + band(0, "Alpha"): false,
		"bands=3 extra=0" + band(2, "Alpha"): false,
	} {
		image, err := Open(t.Context(), &corpus.Mem{B: oneTile(fieldsOf("planar=1 " + fields)...)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if image.Index.Alpha != want {
			t.Errorf("%s: alpha %v", fields, image.Index.Alpha)
		}
	}
}

// TestJointNodata: NODATA_VALUES count if there is one for each band. Palettes are classes of integers in one band.
func TestJointNodata(t *testing.T) {
	const joint = " gdal='<a><Item/**/name='NODATA_VALUES'>1/**/2</Item></a>"
	for fields, want := range map[string]string{
		"bands=2" + joint: "1 2 false", "bands=1" + joint: " false", "bands=3" + joint: " false",
		"photometric=3": " true", "photometric=3 bands=2": " false", "photometric=3 bits=32 format=3": " false",
	} {
		image, err := Open(t.Context(), &corpus.Mem{B: oneTile(fieldsOf("planar=1 " + fields)...)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(image.Index.Joint, " ", image.Index.Classes); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// TestComplete: an index has the nodata, scales and offsets of metadata, or is the same if there are none.
func TestComplete(t *testing.T) {
	two, three := 2.0, 3.0
	x := &chunk.Index{Bands: 2, DType: chunk.Int64}
	for _, c := range []struct {
		meta Meta
		want string
	}{
		{Meta{}, "[] false"},
		{Meta{NoData: "7"}, "[] true"},
		{Meta{Bands: []Band{{Scale: &two}, {Offset: &three}}}, "[{2 0} {1 3}] false"},
		{Meta{Bands: []Band{{Scale: &two}}}, "[] false"},
	} {
		y := c.meta.Complete(x)
		has := y.NoData != nil && *y.NoData == 7 && y.NoDataBits != nil && *y.NoDataBits == 7
		if got := fmt.Sprint(y.Physical, has); got != c.want || (y == x) != (c.want == "[] false") {
			t.Errorf("%+v: %s, want %s", c.meta, got, c.want)
		}
	}
}

// TestPlaces: what a transform is made of, what is left to ground control points, and how many numbers of a tag count.
func TestPlaces(t *testing.T) {
	tie := "tie=2.,3.,0.,1000.,5000.,0. "
	for fields, want := range map[string]string{
		tie + "scale=10.,20.":                                   "[980 10 0 5060 0 -20] true 0",
		tie + "scale=10.":                                       "[0 0 0 0 0 0] false 1",
		tie + "scale=0.,20.":                                    "[0 0 0 0 0 0] false 1",
		tie + "scale=1.,20.":                                    "[998 1 0 5060 0 -20] true 0",
		tie + "scale=10.,0.":                                    "[0 0 0 0 0 0] false 1",
		tie + "scale=10.,1.":                                    "[980 10 0 5003 0 -1] true 0",
		"tie=2.,3.,0.,1000.,5000. scale=10.,20.":                "[0 0 0 0 0 0] false 0",
		"tie=1.,1.,0.,1.,1.,0.,2.,2.,0.,2.,2.,0.,3.":            "[0 0 0 0 0 0] false 2",
		"matrix=1.,2.,0.,30.,4.,5.,0.,60.,0.,0.,0.,0.,0.,0.,0.": "[0 0 0 0 0 0] false 0",
		"matrix=1.,2.,0.,30.,4.,5.,0.,60.,0.,0.,0.,0.,0.,0.,0.,1. " +
			"keys=1,1,0,1,1025,0,1,2": "[28.5 1 2 55.5 4 5] true 0",
	} {
		m := openWith(t, fieldsOf(fields)...).Meta
		if got := fmt.Sprint(m.Transform, m.HasTransform, m.GCPs); got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
	for n, want := range map[int]int{maxGeo: maxGeo, maxGeo + 1: 0} {
		m := openWith(t, ifdwrite.Doubles(ifd.TagGeoDoubles, make([]float64, n)...),
			ifdwrite.Shorts(ifd.TagGeoKeys, make([]uint16, n)...)).Meta
		if len(m.GeoDoubles) != want || len(m.GeoKeys) != want {
			t.Errorf("%d numbers: %d, %d", n, len(m.GeoDoubles), len(m.GeoKeys))
		}
	}
}

// TestKinds: vertical CRSs have a key, and geographic ones that epsg does not know a range of codes or no projection.
func TestKinds(t *testing.T) {
	keys := func(k ...uint16) []uint16 { return append([]uint16{1, 1, 0, uint16(len(k) / 4)}, k...) }
	for _, c := range []struct {
		g                    Geo
		geographic, vertical bool
	}{
		{Geo{EPSG: 3999}, false, false}, {Geo{EPSG: 4000}, true, false}, {Geo{EPSG: 4999}, true, false},
		{Geo{EPSG: 5000}, false, false}, {Geo{EPSG: 4326}, true, false}, {Geo{EPSG: 32633}, false, false},
		{Geo{EPSG: 4000, GeoKeys: keys(3072, 0, 1, 4000)}, false, false},
		{Geo{EPSG: 4000, GeoKeys: keys(3072, 0, 1, 32767)}, true, false},
		{Geo{EPSG: 9999, GeoKeys: keys(2048, 0, 1, 9999)}, true, false},
		{Geo{EPSG: 4326, GeoKeys: keys(4096, 0, 1, 5703)}, true, true},
		{Geo{EPSG: 4326, GeoKeys: keys(4096, 0, 1, 0)}, true, false},
		{Geo{EPSG: 4326, GeoKeys: keys(4096, ifd.TagGeoASCII, 1, 1)}, true, false},
		{Geo{GeoKeys: []uint16{1, 1, 0, 0}}, false, false},
	} {
		if g := c.g.IsGeographic(); g != c.geographic || c.g.IsVertical() != c.vertical {
			t.Errorf("%+v: geographic %v, vertical %v", c.g, g, c.g.IsVertical())
		}
	}
}
