package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestExtract: a directory appears completely or not at all.
func TestExtract(t *testing.T) {
	zip, dir := testdata(t, "coast", "coast.tacozip"), t.TempDir()
	out := filepath.Join(dir, "tile")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{zip + "::tile_00"}, 2}, // a folder needs -o
		{[]string{"-o", out, zip + "::tile_00"}, 0},
		{[]string{"-o", out, zip + "::tile_00"}, 2}, // it is there already
		{[]string{"-o", filepath.Join(dir, "none"), zip + "::tile_99"}, 1},
		{[]string{"-o", filepath.Join(dir, "img.tif"), zip + "::tile_00/s2/img.tif"}, 0},
	} {
		if r := chaski(t.Context(), append([]string{"extract"}, c.args...)...); r.code != c.code {
			t.Errorf("%q: exit %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
	}
	// The same chip, by the original writer.
	want := testfile.Read(t, testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	for _, name := range []string{filepath.Join(out, "s2", "img.tif"), filepath.Join(dir, "img.tif")} {
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s: %d bytes (%v), want %d", name, len(got), err, len(want))
		}
	}
	if got, err := os.ReadDir(dir); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
