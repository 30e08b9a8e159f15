package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestJobIndexesPairs: a job with fields gives the catalog and the notes of 'chaski index --field', of patterns and of
// a table.
func TestJobIndexesPairs(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	table := "image,mask,cover\n"
	for _, tile := range []string{"tile_00", "tile_01", "tile_02"} {
		for folder, from := range map[string]string{"images": "s2/img.tif", "masks": "ref/label.tif"} {
			if tile == "tile_01" && folder == "masks" {
				continue
			}
			to := filepath.Join(dir, folder, tile+".tif")
			from := testdata(t, "coast", "coast_dir", "DATA", tile, filepath.FromSlash(from))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.Symlink(from, to)); err != nil {
				t.Fatal(err)
			}
		}
		table += "images/" + tile + ".tif,masks/" + tile + ".tif,1.5\n"
	}
	table += "images/tile_00.tif,,2\n"
	if err := os.WriteFile(at("table.csv"), []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"patterns": {"--drop-missing", "--field", "image=images/{id}.tif", "--field", "mask=masks/{id}.tif", dir},
		"table":    {"--drop-missing", "--skip-bad", "--field", "image=image", "--field", "mask", at("table.csv")},
	} {
		one, two := at(name+"-one.parquet"), at(name+"-two.parquet")
		want := chaski(t.Context(), append([]string{"index", "-o", one}, args...)...)
		if want.code != 0 {
			t.Fatal(want.err)
		}
		plan := append([]string{"job", "plan", "index", "--base", dir, "-o", at(name), "--shards", "2"}, args...)
		for _, args := range [][]string{plan, {"job", "local", at(name)}} {
			if r := chaski(t.Context(), args...); r.code != 0 {
				t.Fatalf("%q: exit %d: %s", args, r.code, r.err)
			}
		}
		r := chaski(t.Context(), "job", "merge", "-o", two, at(name))
		if r.code != 0 || r.err != want.err {
			t.Errorf("%s: exit %d: %q, want %q", name, r.code, r.err, want.err)
		}
		a, err := os.ReadFile(one)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(two); err != nil || string(a) != string(b) {
			t.Errorf("%s: %d bytes, want %d, and the same: %v", name, len(b), len(a), err)
		}
	}
	for _, args := range [][]string{
		{"--field", "image", dir}, {"--drop-missing", dir}, {"--field", "a={id}.tif", "--resume", "x.parquet", dir},
	} {
		plan := append([]string{"job", "plan", "index", "-o", at("none")}, args...)
		if r := chaski(t.Context(), plan...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", plan, r.code, r.err)
		}
	}
}
