package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// divisible are command lines without -o that can be divided into shards: of files that can be read and that cannot,
// and of every option that says what is left out.
func divisible(t *testing.T) map[string][]string {
	t.Helper()
	data := testdata(t, "coast", "coast_dir", "DATA")
	dir := t.TempDir()
	table := "image,mask,cover\n"
	for _, tile := range []string{"tile_00", "tile_01", "tile_02"} {
		for folder, from := range map[string]string{"images": "s2/img.tif", "masks": "ref/label.tif"} {
			if tile == "tile_01" && folder == "masks" {
				continue
			}
			to := filepath.Join(dir, folder, tile+".tif")
			from := filepath.Join(data, tile, filepath.FromSlash(from))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.Symlink(from, to)); err != nil {
				t.Fatal(err)
			}
		}
		table += "images/" + tile + ".tif,masks/" + tile + ".tif,1.5\n"
	}
	table += "images/bad.tif,masks/tile_00.tif,2\nimages/tile_00.tif,,2\n"
	labels := "name,label\ntile_00,3\ntile_02,4\nother,5\n"
	for name, text := range map[string]string{"table.csv": table, "labels.csv": labels, "images/bad.tif": "no TIFF"} {
		testfile.Write(t, filepath.Join(dir, name), []byte(text))
	}
	images, coast := filepath.Join(dir, "images"), testdata(t, "coast", "coast.tacozip")
	pairs := []string{"--field", "image={id}/s2/img.tif", "--field", "mask={id}/ref/label.tif", data}
	return map[string][]string{
		"stats.json":  {"stats", "--bad-samples", "skip", images},
		"a.weights":   append([]string{"stats", "--sampling", "--cell", "16", "--count", "mask"}, pairs...),
		"report.json": {"verify", data, images, coast},
		"some.json":   {"verify", "--pixels", "--max-faults", "1", images, filepath.Join(images, "bad.tif"), coast},
		"all.parquet": {"index", "--absolute", data, coast},
		"skip.parquet": {"index", "--skip-bad", "--join", filepath.Join(dir, "labels.csv"), "--on", "name",
			"--join-left", images},
		"pairs.parquet": {"index", "--drop-missing", "--field", "image=images/{id}.tif", "--field",
			"mask=masks/{id}.tif", dir},
		"table.parquet": {"index", "--drop-missing", "--skip-bad", "--field", "image=image", "--field", "mask",
			filepath.Join(dir, "table.csv")},
		"togs/":  {"convert", "--overwrite", "--skip-bad", "--tile", "64", "--level", "3", data, images},
		"rumis/": {"convert", "--overwrite", "--to", "rumi", "--tile", "64", "--level", "3", data},
	}
}

// TestShardsAreOneRun: the shards of any command, in any order, merge into what one process writes, byte for byte. It
// prints the same notes and ends with the same exit code. No part is left.
func TestShardsAreOneRun(t *testing.T) {
	race.SkipCovered(t)
	for out, args := range divisible(t) {
		for _, shards := range []int{1, 4, 30} {
			if testing.Short() && shards == 30 && out != "stats.json" && out != "table.parquet" {
				continue
			}
			dir := t.TempDir()
			one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
			if err := errors.Join(os.Mkdir(one, 0o777), os.Mkdir(two, 0o777)); err != nil {
				t.Fatal(err)
			}
			at := func(dir string, more ...string) result {
				name := dir + string(filepath.Separator) + out
				return chaski(t.Context(), slices.Concat(args[:1], []string{"-o", name}, more, args[1:])...)
			}
			want := at(one)
			if want.code != 0 && len(contents(t, one)) == 0 {
				t.Fatal(out, want.err)
			}
			for k := shards - 1; k >= 0; k-- {
				if r := at(two, "--shard", fmt.Sprintf("%d/%d", k, shards)); r.code != 0 || r.err != "" || r.out != "" {
					t.Fatalf("shard %d of %d of %s: exit %d: %s%s", k, shards, out, r.code, r.out, r.err)
				}
			}
			r := at(two, "--merge", fmt.Sprint(shards))
			local := func(text, dir string) string { return strings.ReplaceAll(text, dir, "") }
			if r.code != want.code || r.err != want.err || local(r.out, two) != local(want.out, one) {
				t.Errorf("%d shards of %s: exit %d, %q and %q; want %d, %q and %q", shards, out, r.code, r.err, r.out,
					want.code, want.err, want.out)
			}
			a, b := contents(t, one), contents(t, two)
			maps.DeleteFunc(b, func(name string, _ []byte) bool { return strings.HasSuffix(name, ".merged") })
			for name, text := range a {
				if !bytes.Equal(b[name], text) {
					t.Errorf("%d shards of %s: %s has %d bytes, want %d, and the same", shards, out, name, len(b[name]),
						len(text))
				}
			}
			if len(a) != len(b) {
				t.Errorf("%d shards of %s: %d files, want %d", shards, out, len(b), len(a))
			}
		}
	}
}

// TestShardIsKept: a shard that is done is not done again, until an input or a flag is another; a merge says which
// shards have no part, and then writes nothing.
func TestShardIsKept(t *testing.T) {
	dir := t.TempDir()
	chips, out := filepath.Join(dir, "chips"), filepath.Join(dir, "out.json")
	add := func(name string) {
		t.Helper()
		b, err := os.ReadFile(testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif"))
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(os.MkdirAll(chips, 0o777), os.WriteFile(filepath.Join(chips, name), b, 0o666))
		if err != nil {
			t.Fatal(err)
		}
	}
	add("a.tif")
	add("b.tif")
	run := func(code int, say string, args ...string) {
		t.Helper()
		r := chaski(t.Context(), slices.Concat([]string{"verify", "-o", out}, args, []string{chips})...)
		if r.code != code || !strings.Contains(r.err, say) {
			t.Errorf("%q: exit %d: %s, want %d and %q", args, r.code, r.err, code, say)
		}
	}
	part := func() os.FileInfo {
		t.Helper()
		st, err := os.Stat(out + ".part-1-of-2")
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	run(0, "", "--shard", "1/2")
	first := part()
	run(0, "", "--shard", "1/2")
	if !os.SameFile(first, part()) {
		t.Error("the shard was done again")
	}
	run(1, "1 of 2 shards have none: 0", "--merge", "2")
	run(0, "", "--shard", "0/2")
	run(1, "it was made with other flags", "--merge", "2", "--pixels")
	add("c.tif")
	run(1, "the inputs have changed since it was made", "--merge", "2")
	if _, err := os.Stat(out); err == nil {
		t.Error("a merge that failed wrote the output")
	}
	run(0, "", "--shard", "0/2")
	run(0, "", "--shard", "1/2")
	if os.SameFile(first, part()) {
		t.Error("the shard was kept")
	}
	run(0, "", "--merge", "2")
	b, err := os.ReadFile(out)
	if err != nil || !bytes.Contains(b, []byte(`"files":3,`)) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestShardMistakes: what cannot be divided is refused, and a shard that fails says why.
func TestShardMistakes(t *testing.T) {
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "a.tif"), []byte("no TIFF"))
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{2, "need --format parquet", []string{"index", "-o", "x.hex", "--shard", "0/2", "a.tif"}},
		{2, `-o is "-"`, []string{"stats", "--shard", "0/2", dir}},
		{2, "need --overwrite", []string{"convert", "-o", "x/", "--shard", "0/2", dir}},
		{2, "writes one", []string{"convert", "-o", "x", "--to", "rumi3", "--stack", "--merge", "2", dir}},
		{2, "not for --pairs", []string{"verify", "-o", "x", "--pairs", "--merge", "2", dir}},
		{2, "--shard is about pixels", []string{"stats", "--from-metadata", "-o", "x", "--shard", "0/2", dir}},
		{1, "a.tif: header", []string{"index", "-o", filepath.Join(dir, "x.parquet"), "--shard", "0/1", dir}},
		{1, "a.tif: header", []string{"stats", "-o", filepath.Join(dir, "x.json"), "--shard", "0/1", dir}},
		{1, "none/x.json", []string{"stats", "-o", filepath.Join(dir, "none", "x.json"), "--merge", "1",
			testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif")}},
	} {
		r := chaski(t.Context(), c.args...)
		if r.code != c.code || !strings.Contains(r.err, c.say) {
			t.Errorf("%q: exit %d: %s, want %d and %q", c.args, r.code, r.err, c.code, c.say)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestConvertedFilesAreThere: a shard whose files were removed counts as not done.
func TestConvertedFilesAreThere(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	run := func(code int, say string, args ...string) {
		t.Helper()
		r := chaski(t.Context(), slices.Concat([]string{"convert", "--overwrite", "-o", out + "/"}, args,
			[]string{testdata(t, "coast", "coast_dir", "DATA", "tile_00")})...)
		if r.code != code || !strings.Contains(r.err, say) {
			t.Errorf("%q: exit %d: %s, want %d and %q", args, r.code, r.err, code, say)
		}
	}
	run(0, "", "--shard", "0/2")
	run(0, "", "--shard", "1/2")
	want := len(contents(t, out))
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	run(1, "2 of 2 shards have none: 0, 1", "--merge", "2")
	run(0, "", "--shard", "0/2")
	run(0, "", "--shard", "1/2")
	run(0, "", "--merge", "2")
	if got := len(contents(t, out)); got != want || want < 2 {
		t.Errorf("%d files, want %d", got, want)
	}
}
