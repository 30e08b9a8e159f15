package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOutputThatIsAnInput: a command whose output names one of its inputs, also by another path, is refused before it
// reads, and the file stays as it was. Another file that exists is replaced.
func TestOutputThatIsAnInput(t *testing.T) {
	dir := t.TempDir()
	b := testfile.Read(t, testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	chip, link := filepath.Join(dir, "chip.tif"), filepath.Join(dir, "link.tif")
	put := func(name string) {
		testfile.Write(t, name, b)
	}
	put(chip)
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(chip, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"index", "--format", "parquet", "-o", chip, chip},
		{"stats", "-o", chip, filepath.Join(dir, "x") + "/../chip.tif"},
		{"index", "-o", chip, link}, {"index", "-o", link, "file://" + chip},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
		if have, err := os.ReadFile(chip); err != nil || string(have) != string(b) {
			t.Fatalf("%q changed its input: %v", args, err)
		}
	}
	other := filepath.Join(dir, "other.parquet")
	put(other)
	if r := chaski(t.Context(), "index", "--format", "parquet", "-o", other, chip); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// TestOutputAmongInputs: an output is refused that is a raster of a directory or glob that the command reads, or a file
// that another flag names, also by links. A catalog in the directory of its rasters is replaced.
func TestOutputAmongInputs(t *testing.T) {
	dir := t.TempDir()
	b := testfile.Read(t, testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.MkdirAll(at("chips/sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	const table = "path,label\nchips/a.tif,1\nchips/sub/b.TIF,2\n"
	inputs := map[string]string{"chips/a.tif": string(b), "chips/sub/b.TIF": string(b), "labels.csv": table,
		"about.json": "{}"}
	for name, text := range inputs {
		testfile.Write(t, at(name), []byte(text))
	}
	for link, to := range map[string]string{"link": "chips", "labels": "labels.csv"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	index := []string{"index", "--format", "parquet", "-o"}
	for _, args := range [][]string{
		append(index, at("chips/a.tif"), at("chips")), append(index, at("chips/sub/b.TIF"), at("chips")),
		append(index, at("link/a.tif"), at("chips")), append(index, at("chips/a.tif"), at("link")),
		append(index, at("chips/a.tif"), at("chips/*.tif")), append(index, at("chips/sub/b.TIF"), at("chips/*/*.TIF")),
		append(index, at("labels.csv"), "--join", at("labels.csv"), "--on", "path", at("chips")),
		append(index, at("labels.csv"), "--join", at("labels"), "--on", "path", at("chips")),
		{"pack", "-o", at("about.json"), "--form", "zip", "--collection", at("about.json"), at("chips")},
		{"paste", "-o", at("chips/a.tif"), "--like", at("chips/a.tif"), "--window", "8", at("about.json")},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
		for name, want := range inputs {
			if have, err := os.ReadFile(at(name)); err != nil || string(have) != want {
				t.Fatalf("%q changed %s: %v", args, name, err)
			}
		}
	}
	for range 2 {
		args := append(index, at("chips/catalog.parquet"), at("chips"))
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
}
