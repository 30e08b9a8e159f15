package cli

import (
	"strings"
	"testing"
)

// TestSamplerFlags: the flags of windows, and JSON for what only one kind of sampler has, decide the windows as the
// members of a spec do. Errors name flags and members as they were written.
func TestSamplerFlags(t *testing.T) {
	chips := testdata(t, "raster", "tog", "tog-series-0.tif")
	for _, test := range []struct {
		flags string
		want  string // of standard error; "" for success
	}{
		{`--window 64x64 --sampler {"kind":"grid","stride":[32,64]}`, ""},
		{`--sampler {"kind":"grid","size":64,"overlap":16}`, ""},
		{`--window 64x64 --sampler {"kind":"resized_window","scale":[0.5,1.5],"ratio":1.2}`, ""},
		{`--window 32x32 --sampler {"kind":"tile_window","tile":128,"pool":4,"per_visit":2}`, ""},
		{`--sampler {"sizes":[64,96,128]}`,
			`spec: sizes is [64 96 128]: the kind of sampler is "chip"`},
		{`--sampler {"kind":"random_window","sizes":[64,96]}`, ""},
		{`--sampler {"kind":"random_window","size":[64,96,112]}`, "--sampler: size is [64,96,112]: it"},
		{`--window 64x64 --sampler {"kind":"grid","ratio":2}`, `spec: ratio is a member of kind "resized_window"`},
		{`--window 64x64 --sampler {"kind":"grid","strid":2}`,
			`--sampler: no member "strid"; there are bounds`},
		{`--window 64x64 --sampler {"kind":"resized_window","scale":2}`, "--sampler: scale is 2: it must be"},
		{`--window 64x64 --sampler {"kind":"tile_window","pool":2000000}`,
			"spec: pool is 2000000: it must be from 0 to"},
		{`--sampler {"kind":`, "--sampler: unexpected end of JSON input"},
		{"--window 64x64 --per-asset 2000000", "--per-asset is 2000000: it must be from 1 to 1048576"},
		{"--window 70000x64", "--window is [70000,64]: both sides must be from 1 to 65536 pixels"},
		{"--window 32,48,64", ""},
		{"--sampler resized_window --window 32,64", ""},
		{`--window 32x32 --sampler {"kind":"row_window","fit":"fill"}`, `spec: fit is "fill": it must be one of`},
		{"--sampler row_window --window 32x32 --per-asset 2", "--per-asset is 2: the kind is \"row_window\""},
		{"--window 32,4x", `--window is "32,4x": it must be HxW in pixels`},
		{"--window 32,0", "--window is [32 0]: it must have 1 to 64 sides of at least 1 pixel"},
		{"--sampler grid --window 32,48", "--window is [32 48]: the kind of sampler is"},
		{"--batch 2000000", "--batch is 2000000: it must be from 1 to 1048576"},
	} {
		r := chaski(t.Context(), append(append([]string{"plan"}, strings.Fields(test.flags)...), chips)...)
		switch {
		case test.want == "" && r.code != 0:
			t.Errorf("%s: got exit %d and %q; want success", test.flags, r.code, r.err)
		case test.want != "" && (r.code != 2 || !strings.Contains(r.err, "chaski: "+test.want)):
			t.Errorf("%s: got exit %d and %q; want exit 2 and %q", test.flags, r.code, r.err, test.want)
		}
	}
}
