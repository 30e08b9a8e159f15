package cli

import (
	"strings"
	"testing"
)

// TestSamplerFlags: every member of a sampler is a flag, which decides the windows as the member of a spec does, and is
// named by errors as it was written.
func TestSamplerFlags(t *testing.T) {
	chips := testdata(t, "raster", "tog", "tog-series-0.tif")
	for _, test := range []struct {
		flags string
		want  string // of standard error; "" for success
	}{
		{"--sampler grid --window 64x64 --stride 32x64", ""},
		{"--sampler grid --window 64 --overlap 16", ""},
		{"--sampler resized_window --window 64x64 --scale 0.5,1.5 --ratio 1.2", ""},
		{"--sampler resized_window --window 64x64 --scale 0.1,0.5 --of-asset", ""},
		{"--sampler tile_window --window 32x32 --tile 128 --pool 4 --per-visit 2", ""},
		{"--sampler grid --window 64x64 --stride 0x2", `--stride is "0x2": it must be HxW in pixels`},
		{"--sampler grid --window 64x64 --ratio 2", "--ratio needs --sampler resized_window"},
		{"--sampler resized_window --window 64x64 --scale 2,1", "--scale is [2,1]: it must be [least, greatest]"},
		{"--sampler resized_window --window 64x64 --scale 2", `--scale is "2": it must be two numbers`},
		{"--sampler resized_window --window 64x64 --ratio x", `--ratio is "x": it must be a number`},
		{"--sampler tile_window --window 64x64 --pool 0", `--pool is "0": it must be above 0`},
		{"--sampler tile_window --window 64x64 --pool 2000000", "--pool is 2000000: it must be from 0 to 1048576"},
		{"--window 64x64 --per-asset 2000000", "--per-asset is 2000000: it must be from 1 to 1048576"},
		{"--window 70000x64", "--window is [70000,64]: both sides must be from 1 to 65536 pixels"},
		{"--window 32,48,64", ""},
		{"--sampler resized_window --window 32,64", ""},
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
