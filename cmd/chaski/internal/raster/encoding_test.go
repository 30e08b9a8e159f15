package raster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/source/openers"
)

// TestEncoding: flags become the options of a conversion, and those that do not go together are refused.
func TestEncoding(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "tog auto false",
		"--to rumi2 --unit cell":           "rumi2 auto true",
		"--to rumi --codec best":           "rumi best false",
		"--to rumi --graph planar>pfor":    "rumi planar>pfor false",
		"--to png":                         "",
		"--to rumi --codec best --graph x": "",
		"--to rumi --unit step":            "", // only of rumi3
		"--to rumi3 --time yesterday":      "",
		"--tile 0":                         "",
		"--level 23":                       "",
	} {
		var f encoding
		fl := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(fl)
		err := fl.Parse(strings.Fields(text))
		if err == nil {
			err = f.resolve()
		}
		got := ""
		if err == nil {
			got = fmt.Sprintf("%s %s %t", f.o.Format, f.o.Graph, f.o.Cells)
		}
		if got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestNamedBands: bands of a sensor are found by their names, and numbers are left to the parser of selections.
func TestNamedBands(t *testing.T) {
	files := &openers.Files{}
	defer files.Close() //nolint:errcheck // it read nothing
	for text, want := range map[string][]int{
		"sentinel2msi[B04, B03]": {3, 2},
		"0,2":                    nil,
		"1:3":                    nil,
	} {
		got, err := namedBands(t.Context(), files, text, []string{"a.tif"})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"nosensor[B04]", "sentinel2msi[B99]"} {
		if got, err := namedBands(t.Context(), files, text, []string{"a.tif"}); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}
