package sidecar_test

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// beside is the folder of files that GDAL reads beside rasters.
const beside = "../../../../testdata/beside"

func read(t testing.TB, name string) []byte {
	t.Helper()
	b := testfile.Read(t, filepath.Join(beside, name))
	return b
}

func TestBrokenPAM(t *testing.T) {
	for _, text := range []string{"", "<", "<PAMDataset>",
		strings.Repeat("<PAMDataset>", 20000)} {
		if p, err := sidecar.ParsePAM(t.Context(), []byte(text)); fault.KindOf(err) == 0 {
			t.Errorf("%.60q: %+v, %v", text, p, err)
		}
	}
}

// TestSeparatorsTakeNoMemory reads texts of separators: what lies between them is not kept.
func TestSeparatorsTakeNoMemory(t *testing.T) {
	commas, lines := strings.Repeat("1,", 1<<20), []byte(strings.Repeat("1\n", 1<<20))
	for name, parse := range map[string]func(){
		"transform": func() { sidecar.Transform(commas) },
		"world":     func() { sidecar.ParseWorld(lines) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parse()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d bytes of 2 MiB", name, got)
		}
	}
	six := "1, 2, 0, 3, 0, -2"
	if sidecar.Transform(six) == nil || sidecar.Transform(six+", 4") != nil {
		t.Error("a transform has six numbers")
	}
}

func TestNamesOfWorldFiles(t *testing.T) {
	for name, want := range map[string]string{"a.tif": ".tfw .tifw .wld", "b.TIFF": ".tfw .tiffw .wld",
		"c.jpg": ".jgw .jpgw .wld", "d.png": ".pgw .pngw .wld", "e": ".wld"} {
		exts := sidecar.World(name)
		if got := strings.Join(exts, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		for _, ext := range exts {
			if !sidecar.Is("x" + ext) {
				t.Errorf("%s is no file beside %s", ext, name)
			}
		}
	}
	for _, name := range []string{"x.tif", "x.tif.ovr", "x.xml", "x.nw", "xtfw"} {
		if sidecar.Is(name) {
			t.Errorf("%s is a file beside another", name)
		}
	}
}

// TestTransforms: what has no six numbers is no transform.
func TestTransforms(t *testing.T) {
	for text, is := range map[string]bool{"1,2,3,4,5,6": true, "1.5e1x, 2,3,4,,5,word": true, "": false,
		"1,2,3,4,5": false, "1,2,3,4,5,6,7": false, "1,2,3,4,5,NaN": false, "1,2,3,4,5,-inf": false,
		"1,2,3,4,5,1e999": false} {
		if got := sidecar.Transform(text); (got != nil) != is {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestTaken: texts of many parts take memory by their length.
func TestTaken(t *testing.T) {
	band := "<PAMDataset><PAMRasterBand band='1'>"
	for _, element := range []string{"<PAMDataset>", band, band + "<CategoryNames>", band + "<ColorTable>",
		band + "<GDALRasterAttributeTable>"} {
		for _, text := range taken.XML(element) {
			taken.Check(t, len(text), taken.FactorXML, func() { _, _ = sidecar.ParsePAM(t.Context(), []byte(text)) })
		}
	}
}

// FuzzPAM: no input makes the parser panic, and what it returns is finite.
func FuzzPAM(f *testing.F) {
	f.Add(read(f, "pam.tif.aux.xml"))
	f.Add(read(f, "world.png.aux.xml"))
	f.Add([]byte("<?xml version='1.0' encoding='ISO-8859-1'?><PAMDataset><SRS>\xe9</SRS></PAMDataset>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p *sidecar.PAM
		var err error
		taken.Check(t, len(b), taken.FactorXML, func() { p, err = sidecar.ParsePAM(t.Context(), b) })
		if (p == nil) != (err != nil) || err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("%+v, %v", p, err)
		}
		if p != nil && p.Transform != nil {
			finite(t, p.Transform)
		}
	})
}

// FuzzWorld: no input makes the parser panic, and a world file has pixels with an area or is none.
func FuzzWorld(f *testing.F) {
	f.Add(read(f, "world.tfw"))
	f.Add(read(f, "world.pgw"))
	f.Add([]byte("1e308\n1e308\n1e308\n1e308\n-1e308\n1e308"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v := sidecar.ParseWorld(b); v != nil {
			finite(t, v)
		}
	})
}

func finite(t *testing.T, v *[6]float64) {
	t.Helper()
	for _, x := range v {
		if x-x != 0 { // of NaN and infinities it is NaN
			t.Fatal(v)
		}
	}
}
