package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// coastPairs writes images and masks, and returns their folder. What is wrong with each pair is its name.
func coastPairs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, n int, o tog.Options) {
		o.Shape, o.DType, o.Tile = [3]int{1, n, n}, chunk.Uint8, 64
		var b bytes.Buffer
		if err := tog.Write(&b, make([]byte, n*n), o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".tif")
		testfile.Write(t, path, b.Bytes())
	}
	geo := func(epsg int, x, y, size float64) (o tog.Options) {
		o.Geo = tiff.Geo{EPSG: epsg, Transform: [6]float64{x, size, 0, y, 0, -size}, HasTransform: true}
		return o
	}
	here, no := geo(32630, 5e5, 4.6e6, 10), tog.Options{}
	for name, o := range map[string]tog.Options{"aligned": here, "east640m": here, "lonlat": here, "noplace": no} {
		write("images/"+name, 128, o)
	}
	write("masks/aligned", 128, here)
	write("masks/east640m", 128, geo(32630, 5e5+640, 4.6e6, 10))
	write("masks/lonlat", 100, geo(4326, -3, 41.55, 1.3e-4))
	write("masks/noplace", 128, no)
	return dir
}

// TestVerifyPairs: masks at another place are named, with their shift if it is one; others are not.
func TestVerifyPairs(t *testing.T) {
	dir := coastPairs(t)
	fields := []string{"--field", "image=images/{id}.tif", "--field", "mask=masks/{id}.tif"}
	r := chaski(t.Context(), append(append([]string{"verify", "--pairs", "--json"}, fields...), dir)...)
	var got survey.PairReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 1 ||
		!strings.HasSuffix(r.err, ": misplaced\n") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if got.Pairs != 4 || len(got.Faults) != 2 {
		t.Fatalf("%s", r.out)
	}
	for i, want := range []struct{ name, says string }{
		{"east640m", "640 m (64 pixels) east"}, {"lonlat", "the CRSs differ"},
	} {
		p := got.Faults[i]
		if !strings.Contains(p.Error, want.name+".tif: place") || !strings.Contains(p.Error, want.says) ||
			p.Field != "mask" {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	r = chaski(t.Context(), append(append([]string{"verify", "--pairs", "--max-faults", "1"}, fields...), dir)...)
	for _, line := range []string{"unplaced: 1\n", "640 m (64 pixels) east"} {
		if !strings.Contains(r.out, line) {
			t.Errorf("%q is missing in\n%s", line, r.out)
		}
	}
	if r.code != 1 || strings.Contains(r.out, "noplace") || strings.Contains(r.out, "lonlat") {
		t.Errorf("exit %d:\n%s", r.code, r.out)
	}
}

// TestVerifyPairsUsage: flags of pairs need --pairs, which takes one dataset of several rasters a sample.
func TestVerifyPairsUsage(t *testing.T) {
	workplace(t)
	for _, args := range [][]string{
		{"verify", "--pairs", "chip.tif", "chip.tif"},
		{"verify", "--pairs", "chips"},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 || r.out != "" {
			t.Errorf("%q: exit %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	plain, asked := chaski(t.Context(), "verify", "chip.tif"), chaski(t.Context(), "verify", "--json", "chip.tif")
	if asked.code != 0 || asked.out != plain.out {
		t.Errorf("verify --json: exit %d and %q, want what it prints without, %q", asked.code, asked.out, plain.out)
	}
}
