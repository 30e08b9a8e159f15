package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackOfTacos: a container becomes a streaming TACO 0.2 with statistics, histograms and tiles, and a plain one,
// with the bytes of its samples.
func TestPackOfTacos(t *testing.T) {
	dir, coast := t.TempDir(), testdata(t, "coast", "coast.tacozip")
	stream, described := filepath.Join(dir, "a.taco"), filepath.Join(dir, "about.json")
	if err := os.WriteFile(described, []byte(about), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-o", stream}, {"-o", filepath.Join(dir, "plain.taco"), "--form", "taco-plain"},
		{"-o", filepath.Join(dir, "more.taco"), "--columns", "index,majortom", "--workers", "1"}} {
		r := chaski(t.Context(), append([]string{"pack", "--collection", described, coast}, args...)...)
		if r.code != 0 || !strings.Contains(r.out, "12 samples") {
			t.Fatalf("%q: %s %s", args, r.out, r.err)
		}
		if got, want := leavesOf(t, args[1]), leavesOf(t, coast); got != want {
			t.Errorf("%q: leaves %s, want %s", args, got, want)
		}
		if r := chaski(t.Context(), "verify", args[1]); r.code != 0 {
			t.Errorf("%q: %s", args, r.err)
		}
	}
	report := filepath.Join(dir, "stats.json")
	r := chaski(t.Context(), "stats", "--from-metadata", "--field", "image=s2/img.tif", "-o", report, stream)
	if b, err := os.ReadFile(report); r.code != 0 || err != nil || !strings.Contains(string(b), `"98.5"`) {
		t.Errorf("%s %v %s", r.err, err, b)
	}
	if r := chaski(t.Context(), "cat", stream+"::tile_00/s2/img.tif::0"); r.code != 0 || len(r.out) == 0 {
		t.Error(r.err)
	}
	for _, args := range [][]string{{"--classes", "ref/label.tif=0-9", "--columns", "stats"}, {"--part-size", "1"}} {
		if r := chaski(t.Context(), append(append([]string{"pack", "-o", stream}, args...), coast)...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}
