package magic

import (
	"strings"
	"testing"
)

func TestOfBytes(t *testing.T) {
	for head, want := range map[string]string{
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR": "a PNG image",
		"RIFF\x10\x20\x00\x00WEBPVP8 ":        "a WebP image",
		"RIFF\x10\x20\x00\x00WAVE":            "",
		"II*\x00\x08\x00\x00\x00":             "",
		"MM\x00+":                             "",
		"RUMI":                                "",
		"":                                    "",
		"\x89PN":                              "",
		"<!DOCTYPE html><html>":               "an HTML page",
		"\n<!doctype html>":                   "an HTML page",
		"<html lang=en>":                      "an HTML page",
		"<hdr>":                               "",
		"EHFA_HEADER_TAG\x00\x10":             "an Erdas Imagine (HFA) raster",
	} {
		if got := OfBytes([]byte(head)); got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
	for _, s := range starts {
		if len(s.prefix) > Head {
			t.Errorf("%q is longer than what is looked at", s.prefix)
		}
		if got := OfBytes([]byte(s.prefix + strings.Repeat("\x00", 30))); got != s.name {
			t.Errorf("%q: %q, want %q", s.prefix, got, s.name)
		}
	}
}

func TestOfName(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.GeoJSON":        "GeoJSON",
		"s3://bucket/t.xlsx": "an Excel file",
		"chip.tif":           "",
		"chip.tiff":          "",
		"x.rumi":             "",
		"t.parquet":          "",
		"t.csv":              "a CSV file",
		"noend":              "",
	} {
		if got := OfName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestVirtualRasters: what stands before the element of a virtual raster does not hide it, and other XML is none.
func TestVirtualRasters(t *testing.T) {
	for head, want := range map[string]bool{
		"<VRTDataset rasterXSize=":                              true,
		"\ufeff<VRTDataset ":                                    true,
		" \r\n\t <VRTDataset ":                                  true,
		"<?xml version=\"1.0\"?>\n<VRTDataset ":                 true,
		"\ufeff\n<?xml version=\"1.0\"?><VRTDataset ":           true,
		"<!-- made by hand --><!-- twice --><VRTDataset":        true,
		"<!DOCTYPE VRTDataset>\n<VRTDataset>":                   true,
		"<?xml version=\"1.0\"?><kml>":                          false,
		"<!DOCTYPE html><html>":                                 false,
		"<svg><VRTDataset>":                                     false,
		"<!-- " + strings.Repeat(" ", Head) + "--><VRTDataset>": false, // as for GDAL
	} {
		if got := Of([]byte(head)) == VRT; got != want {
			t.Errorf("%q: %v, want %v", head, got, want)
		}
	}
}

// TestFormats: each format is told by its first bytes and by its extensions, and no beginning or extension is of two.
func TestFormats(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range formats {
		for _, start := range f.Starts {
			if Of([]byte(start+"....")) != f || seen[start] || len(start) > Head {
				t.Errorf("%q: not %s alone", start, f.Name)
			}
			seen[start] = true
		}
		for _, end := range f.Ends {
			if Named("dir.tif/x"+end) != f || Named(strings.ToUpper(end)) != f || seen[end] || ends[end] != "" {
				t.Errorf("%q: not %s alone", end, f.Name)
			}
			seen[end] = true
		}
	}
	for version, want := range map[byte]Class{0: 0, 1: Frame, 64 - 1: Frame} {
		if got := Of([]byte{0xC0 + version, 0xA5, 0xB1, 0xD7}); got.Class != want {
			t.Errorf("a frame of version %d: class %d, want %d", version, got.Class, want)
		}
	}
	if f := Of([]byte("II*")); f.Class != 0 || f.Name != "" || Named("x.xyz") != f {
		t.Errorf("an unknown format is %q", f.Name)
	}
}
