package tiff

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// oneTile returns a file with one tile of 16 by 16 bytes. Fields of replace stand in for those with
// the same tag; one without a type only takes it away.
func oneTile(replace ...ifdwrite.Field) []byte {
	fields := []ifdwrite.Field{
		ifdwrite.Shorts(ifd.TagImageWidth, 16), ifdwrite.Shorts(ifd.TagImageLength, 16),
		ifdwrite.Shorts(ifd.TagBitsPerSample, 8),
		ifdwrite.Shorts(ifd.TagCompression, compZstd), ifdwrite.Shorts(ifd.TagPhotometric, PhotometricBlackIsZero),
		ifdwrite.Shorts(ifd.TagSamplesPerPixel, 1), ifdwrite.Shorts(ifd.TagPlanarConfig, 2),
		ifdwrite.Shorts(ifd.TagPredictor, 1),
		ifdwrite.Shorts(ifd.TagTileWidth, 16), ifdwrite.Shorts(ifd.TagTileLength, 16),
		ifdwrite.Shorts(ifd.TagSampleFormat, 1),
		ifdwrite.Long8s(ifd.TagTileOffsets, 0), ifdwrite.Long8s(ifd.TagTileByteCounts, 256),
	}
	offsets := len(fields) - 2
	all := func() []ifdwrite.Field {
		list := slices.DeleteFunc(slices.Clone(fields), func(f ifdwrite.Field) bool {
			return slices.ContainsFunc(replace, func(g ifdwrite.Field) bool { return f.Tag == g.Tag })
		})
		for i, f := range replace { // the last one of a tag counts
			if !slices.ContainsFunc(replace[i+1:], func(g ifdwrite.Field) bool { return f.Tag == g.Tag }) {
				list = append(list, f)
			}
		}
		return slices.DeleteFunc(list, func(f ifdwrite.Field) bool { return f.Type == 0 })
	}
	fields[offsets] = ifdwrite.Long8s(ifd.TagTileOffsets, uint64(16+ifdwrite.End(16, all())))
	return append(ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, 16), 16, all()), make([]byte, 400)...)
}

// openWith makes a small file with these fields in its directory, and opens it.
func openWith(t *testing.T, fields ...ifdwrite.Field) *Image {
	t.Helper()
	img, err := Open(context.Background(), &corpus.Mem{
		B: oneTile(append(fields, ifdwrite.Shorts(ifd.TagCompression, compNone))...),
	}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// mercatorText is what GDAL 3.12 writes for EPSG:3857 with GEOTIFF_KEYS_FLAVOR=ESRI_PE.
const mercatorText = `ESRI PE String = PROJCS["WGS_1984_Web_Mercator_Auxiliary_Sphere",` +
	`GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],` +
	`PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Mercator_Auxiliary_Sphere"],` +
	`PARAMETER["False_Easting",0.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",0.0],` +
	`PARAMETER["Standard_Parallel_1",0.0],PARAMETER["Auxiliary_Sphere_Type",0.0],UNIT["Meter",1.0]]|`

func TestGeoreferencing(t *testing.T) {
	scale, tie := ifdwrite.Doubles(ifd.TagPixelScale, 10, 20, 0), ifdwrite.Doubles(ifd.TagTiepoint, 2, 3, 0, 1000,
		5000, 0)
	keys := func(k ...uint16) ifdwrite.Field {
		return ifdwrite.Shorts(ifd.TagGeoKeys, append([]uint16{1, 1, 0, uint16(len(k) / 4)}, k...)...)
	}
	header := func(version, count uint16) ifdwrite.Field {
		return ifdwrite.Shorts(ifd.TagGeoKeys, version, 1, 0, count, 1025, 0, 1, 2, 3072, 0, 1, 32633)
	}
	matrix := ifdwrite.Doubles(ifd.TagTransformation, 1, 2, 0, 30, 4, 5, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1)
	for name, c := range map[string]struct {
		fields    []ifdwrite.Field
		epsg      int
		transform [6]float64
		has       bool
	}{
		"nothing":             {},
		"scale and tie point": {[]ifdwrite.Field{scale, tie}, 0, [6]float64{980, 10, 0, 5060, 0, -20}, true},
		"scale alone":         {[]ifdwrite.Field{scale}, 0, [6]float64{}, false},
		"pixel is point": {
			[]ifdwrite.Field{scale, tie, keys(1025, 0, 1, 2, 3072, 0, 1, 32633)},
			32633, [6]float64{975, 10, 0, 5070, 0, -20}, true,
		},
		// As GDAL 3.10 reads numbers of keys that the directory does not have.
		"no keys": {[]ifdwrite.Field{scale, tie, header(1, 0)}, 0, [6]float64{980, 10, 0, 5060, 0, -20}, true},
		"one key": {[]ifdwrite.Field{scale, tie, header(1, 1)}, 0, [6]float64{975, 10, 0, 5070, 0, -20}, true},
		"all keys": {[]ifdwrite.Field{scale, tie, header(1, 2)}, 32633, [6]float64{975, 10, 0, 5070, 0, -20},
			true},
		"too many keys": {[]ifdwrite.Field{scale, tie, header(1, 3)}, 0, [6]float64{980, 10, 0, 5060, 0, -20}, true},
		"another form":  {[]ifdwrite.Field{scale, tie, header(2, 2)}, 0, [6]float64{980, 10, 0, 5060, 0, -20}, true},
		"matrix":        {[]ifdwrite.Field{matrix}, 0, [6]float64{30, 1, 2, 60, 4, 5}, true},
		"geographic":    {[]ifdwrite.Field{keys(1024, 0, 1, 2, 2048, 0, 1, 4326)}, 4326, [6]float64{}, false},
		"both":          {[]ifdwrite.Field{keys(2048, 0, 1, 4326, 3072, 0, 1, 3857)}, 3857, [6]float64{}, false},
		"user-defined":  {[]ifdwrite.Field{keys(2048, 0, 1, 4326, 3072, 0, 1, 32767)}, 0, [6]float64{}, false},
		// As in GDAL, the base of a projection is not the CRS of the raster.
		"projected, base alone": {[]ifdwrite.Field{keys(1024, 0, 1, 1, 2048, 0, 1, 4326)}, 0, [6]float64{}, false},
		"no model, base alone":  {[]ifdwrite.Field{keys(1025, 0, 1, 1, 2048, 0, 1, 4326)}, 0, [6]float64{}, false},
		"geographic by its datum": {
			[]ifdwrite.Field{keys(1024, 0, 1, 2, 2048, 0, 1, 32767, 2050, 0, 1, 6326)}, 4326, [6]float64{}, false,
		},
		"UTM by its zone": {
			[]ifdwrite.Field{keys(1024, 0, 1, 1, 2048, 0, 1, 4269, 3074, 0, 1, 16017)},
			26917, [6]float64{}, false,
		},
		"another unit": {
			[]ifdwrite.Field{keys(1024, 0, 1, 1, 3072, 0, 1, 2263, 3076, 0, 1, 9002)}, 0, [6]float64{}, false,
		},
		"private": {[]ifdwrite.Field{keys(1024, 0, 1, 1, 3072, 0, 1, 40000)}, 0, [6]float64{}, false},
		"ESRI's text": {
			[]ifdwrite.Field{
				keys(1024, 0, 1, 32767, 2048, 0, 1, 4326, 3073, ifd.TagGeoASCII, uint16(len(mercatorText)), 0),
				ifdwrite.Text(ifd.TagGeoASCII, mercatorText),
			},
			3857, [6]float64{}, false,
		},
		"a scale of y below 0": {
			[]ifdwrite.Field{ifdwrite.Doubles(ifd.TagPixelScale, 10, -20, 0), tie}, 0, [6]float64{980, 10, 0, 5060,
				0, -20}, true,
		},
		"several tie points": {
			[]ifdwrite.Field{scale, ifdwrite.Doubles(ifd.TagTiepoint, 2, 3, 0, 1000, 5000, 0, 4, 4, 0, 1, 1, 0)}, 0,
			[6]float64{980, 10, 0, 5060, 0, -20},
			true,
		},
		"cut keys": {[]ifdwrite.Field{ifdwrite.Shorts(ifd.TagGeoKeys, 1, 1, 0, 9, 3072, 0)}, 0,
			[6]float64{}, false},
		"an infinite scale": {fields: []ifdwrite.Field{ifdwrite.Doubles(ifd.TagPixelScale, math.Inf(-1), 1, 0), tie}},
		"a tie point of NaN": {fields: []ifdwrite.Field{scale, ifdwrite.Doubles(ifd.TagTiepoint, 0, 0, 0, 1,
			math.NaN(), 0)}},
		"the shift overflows": {fields: []ifdwrite.Field{ifdwrite.Doubles(ifd.TagPixelScale, 1e308, 1, 0), tie}},
		"no numbers": {
			[]ifdwrite.Field{ifdwrite.Text(ifd.TagPixelScale, "10 10"), ifdwrite.Text(ifd.TagGeoKeys, "EPSG:4326")},
			0, [6]float64{}, false,
		},
	} {
		m := openWith(t, c.fields...).Meta
		if m.EPSG != c.epsg || m.Transform != c.transform || m.HasTransform != c.has {
			t.Errorf("%s: EPSG %d transform %v %v", name, m.EPSG, m.Transform, m.HasTransform)
		}
	}
}

func TestGDALMetadata(t *testing.T) {
	const tile = `<GDALMetadata><Item name="INTERLEAVE" domain="IMAGE_STRUCTURE">TILE</Item>`
	const named = tile + `<Item name="DESCRIPTION" sample="0" role="description">B1</Item>`
	for name, c := range map[string]struct {
		xml, interleave string
		names           []string
	}{
		"none":    {"", "BAND", nil},
		"tile":    {tile + "</GDALMetadata>", "TILE", nil},
		"name":    {named + "</GDALMetadata>", "TILE", []string{"B1"}},
		"broken":  {named + "<", "TILE", []string{"B1"}},
		"not XML": {"TILE <<< INTERLEAVE", "BAND", nil},
		"no such band": {
			`<GDALMetadata><Item name="DESCRIPTION" sample="1" role="description">x</Item></GDALMetadata>`,
			"BAND", nil,
		},
		"another INTERLEAVE": {`<GDALMetadata><Item name="INTERLEAVE">TILE</Item></GDALMetadata>`, "BAND", nil},
	} {
		m := openWith(t, ifdwrite.Text(ifd.TagGDALMetadata, c.xml)).Meta
		if m.Interleave != c.interleave || !slices.Equal(m.BandNames, c.names) {
			t.Errorf("%s: %s %q", name, m.Interleave, m.BandNames)
		}
	}
}

// TestRawTile: an uncompressed tile is read.
func TestRawTile(t *testing.T) {
	race.SkipCovered(t)
	img := openWith(t)
	if img.Index.Codec != chunk.Raw || len(img.Index.Ranges) != 1 || img.Index.Ranges[0].Len != 256 {
		t.Errorf("%+v", img.Index)
	}
}

// TestBandMetadata: names, scales, offsets, units and one more item of each band are read from the
// metadata that GDAL 3.12.2 writes.
func TestBandMetadata(t *testing.T) {
	const text = `<GDALMetadata>
  <Item name="A">x</Item>
  <Item name="wavelength" sample="0">0.6</Item>
  <Item name="OFFSET" sample="0" role="offset">5</Item>
  <Item name="SCALE" sample="0" role="scale">0.10000000000000001</Item>
  <Item name="UNITTYPE" sample="0" role="unittype">K</Item>
  <Item name="DESCRIPTION" sample="0" role="description">temp</Item>
  <Item name="UNITTYPE" sample="1" role="unittype">m &amp;amp; &amp;lt;s&amp;gt;</Item>
  <Item name="DESCRIPTION" sample="1" role="description">b2 &amp;lt;&amp;amp;&amp;gt;</Item>
  <Item name="SCALE" sample="1" role="scale">much</Item>
  <Item name="OFFSET" sample="1" role="offset">nan</Item>
  <Item name="SCALE" sample="2" role="scale">7</Item>
  <Item name="domained" sample="1" domain="x">7</Item>
</GDALMetadata>`
	_, _, got := parseGDALMetadata(strings.NewReader(text), 2)
	scale, offset := 0.1, 5.0
	want := []Band{
		{Description: "temp", Scale: &scale, Offset: &offset, Unit: "K", Tags: map[string]string{"wavelength": "0.6"}},
		{Description: "b2 <&>", Unit: "m & <s>"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	plain := strings.NewReader(`<GDALMetadata><Item name="A">x</Item></GDALMetadata>`)
	if _, _, got := parseGDALMetadata(plain, 2); got != nil {
		t.Errorf("%+v where nothing is said", got)
	}
}

func TestCitation(t *testing.T) {
	for _, c := range []struct {
		keys []uint16
		want string
	}{
		{[]uint16{1, 1, 0, 2, keyCitation, ifd.TagGeoASCII, 4, 0, keyGeographicCitation, ifd.TagGeoASCII, 7, 4}, "UTM"},
		{[]uint16{1, 1, 0, 1, keyGeographicCitation, ifd.TagGeoASCII, 7, 4}, "WGS 84"},
		{[]uint16{1, 1, 0, 1, keyCitation, ifd.TagGeoASCII, 9, 4}, ""}, // past the end
		{[]uint16{1, 1, 0, 1, keyCitation, 0, 1, 4}, ""},
		{nil, ""},
	} {
		g := Geo{GeoKeys: c.keys, GeoASCII: "UTM|WGS 84|"}
		if got := g.Citation(); got != c.want {
			t.Errorf("%v: %q, want %q", c.keys, got, c.want)
		}
	}
}

// TestTwoKeysForOneParameter: of several central meridians (of the natural origin, the false origin
// and the centre) the first counts, as in GDAL 3.10.3, which reads these keys as +lon_0=15.
func TestTwoKeysForOneParameter(t *testing.T) {
	for range 50 { // it must not depend on the order of a map
		g := Geo{
			GeoKeys: []uint16{
				1, 1, 0, 9, 1024, 0, 1, 1, 2048, 0, 1, 4326, 3072, 0, 1, 32767, 3075, 0,
				1, 1, 3080, ifd.TagGeoDoubles, 1, 0, 3082, ifd.TagGeoDoubles, 1, 3, 3084,
				ifd.TagGeoDoubles, 1, 4, 3088, ifd.TagGeoDoubles, 1, 1, 3092, ifd.TagGeoDoubles, 1, 2,
			},
			GeoDoubles: []float64{15, 21, 0.9996, 500_000, 9},
		}
		if n := g.epsg(); n != 32633 {
			t.Fatalf("EPSG:%d, want 32633", n)
		}
	}
}
