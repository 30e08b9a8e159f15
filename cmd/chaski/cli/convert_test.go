package cli

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

//go:embed testdata/read_rumi.py
var readRumi string

// place holds the location and the labels of an image as `chaski info` prints them.
type place struct {
	TIFF struct {
		EPSG      int
		Transform *[6]float64
		NoData    string
		BandNames []string `json:"band_names"`
		TOG       bool
		NotTOG    []string `json:"not_tog"`
	}
}

func placeOf(t *testing.T, path string) place {
	t.Helper()
	var p place
	if r := chaski(t.Context(), "info", "--json", path); r.code != 0 || json.Unmarshal([]byte(r.out), &p) != nil {
		t.Fatalf("%s: exit %d: %s", path, r.code, r.err)
	}
	return p
}

// rasters are the files of testdata that must be readable.
func rasters(t *testing.T) []corpus.File {
	return slices.DeleteFunc(small(t), func(f corpus.File) bool {
		return f.Kind != "tiff" && f.Kind != "rumi" && f.Kind != "rumi-new" || f.MayRefuse()
	})
}

var conversions = map[string][]string{
	"tog":   {"--to", "tog", "--tile", "48", "--level", "3"},
	"rumi":  {"--to", "rumi", "--tile", "50", "--level", "3"},
	"delta": {"--to", "rumi", "--tile", "40", "--graph", "delta>zigzag>transpose>zstd", "--level", "3"},
	"store": {"--to", "rumi", "--graph", "store", "--tile", "1000", "--level", "3"},
	"rumi2": {"--to", "rumi2", "--tile", "33", "--level", "3"},
	"cells": {"--to", "rumi2", "--tile", "33", "--unit", "cell", "--level", "3"},
	"plane": {
		"--to", "rumi2", "--tile", "70", "--unit", "cell", "--graph",
		"planar>zigzag>transpose>entropy", "--level", "3",
	},
	"rumi3": {"--to", "rumi3", "--tile", "33", "--level", "3", "--time", "2024-05-06"},
	"pixel": {"--to", "rumi3", "--tile", "70", "--level", "3", "--time", "1969-01-02/2024-05-06", "--unit", "h w b"},
	"pfor": {
		"--to", "rumi3", "--tile", "70", "--graph", "planar>zigzag>pfor", "--time", "2024-05-06", "--unit", "cell",
	},
	"join": {
		"--to", "rumi3", "--tile", "60", "--graph", "planar>zigzag>transpose>zstd", "--time", "2024-05-06",
		"--level", "1",
	},
	"best": {
		"--to", "rumi3", "--tile", "70", "--codec", "best", "--time", "2024-05-06", "--level", "1", "--unit", "cell",
	},
	"pivco": {
		"--to", "rumi3", "--tile", "70", "--graph", "planar>zigzag>pivco", "--time", "2024-05-06", "--geozl", "19",
	},
}

// TestConvertKeeps: every raster converts to every format with its samples, its location and, in a
// TOG, its labels. Under the race detector encoding takes twenty times as long, so each raster is
// converted to two formats only, by turns.
func TestConvertKeeps(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	for k, name := range slices.Sorted(maps.Keys(conversions)) {
		flags := conversions[name]
		for i, f := range rasters(t) {
			if turn := (k + i) % len(conversions); race.Enabled && turn > 0 || turn%2 > 0 && !soak.All() {
				continue
			}
			src, dst := filepath.Join(f.Dir, f.Path), filepath.Join(dir, fmt.Sprintf("%s-%d.out", name, i))
			r := chaski(t.Context(), slices.Concat([]string{"convert"}, flags, []string{src, "-o", dst})...)
			warned := name != "tog" && strings.HasPrefix(r.err, "chaski: warning: ")
			if r.code != 0 || r.out != "" || r.err != "" && !warned {
				t.Errorf("%s to %s: %+v", f.Path, name, r)
				continue
			}
			sameSum(t, f.Path+" to "+name, chaski(t.Context(), "cat", dst), f.Shape, f.DType, f.SHA256)
			was, is := placeOf(t, src).TIFF, placeOf(t, dst).TIFF
			if was.EPSG != is.EPSG || (was.Transform == nil) != (is.Transform == nil) ||
				was.Transform != nil && *was.Transform != *is.Transform {
				t.Errorf("%s to %s: EPSG %d %v became %d %v",
					f.Path, name, was.EPSG, was.Transform, is.EPSG, is.Transform)
			}
			if name != "tog" {
				continue
			}
			if was.NoData != is.NoData || !slices.Equal(was.BandNames, is.BandNames) {
				t.Errorf("%s: nodata %q, names %q became %q, %q",
					f.Path, was.NoData, was.BandNames, is.NoData, is.BandNames)
			}
			if !is.TOG {
				t.Errorf("%s: no TOG: %v", f.Path, is.NotTOG)
			}
		}
	}
}

// TestConvertFolders: the bytes of a file do not depend on the number of workers, and directories
// are converted as a whole.
func TestConvertFolders(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	names := []string{"a/odd.tif", "b.TIFF", "deep/er/c.rumi"}
	for i, from := range []string{"tog/tog-odd-16.tif", "rumi-v1/int8.tif", "rumi-new/v0.16.0/uint64.rumi"} {
		b := testfile.Read(t, testdata(t, "raster", from))
		write(t, filepath.Join(src, names[i]), b)
	}
	write(t, filepath.Join(src, ".hidden", "d.tif"), []byte("no raster"))
	write(t, filepath.Join(src, "notes.txt"), []byte("no raster"))
	var first map[string]string
	for _, workers := range []string{"1", "7"} {
		out := filepath.Join(src, "out"+workers) // below the source: must not convert itself
		r := chaski(t.Context(), "convert", "--to", "rumi2", "--tile", "16", "--level", "3", "--workers", workers,
			src, "-o", out)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		got := files(t, out)
		if first == nil {
			first = got
		}
		for _, want := range []string{"a/odd.rumi", "b.rumi", "deep/er/c.rumi"} {
			if got[want] == "" || got[want] != first[want] {
				t.Errorf("%s workers: %s differs or is missing", workers, want)
			}
		}
		if len(got) != 3 {
			t.Errorf("%d files", len(got))
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConvertReplacesAtomically: an existing file is kept unless --overwrite is given, and then
// until the new one is complete.
func TestConvertReplacesAtomically(t *testing.T) {
	dir := t.TempDir()
	good, bad := testdata(t, "raster", "tog", "tog-odd-16.tif"), testdata(t, "raster", "bad", "tog-bomb-zstd-claim.tif")
	dst := filepath.Join(dir, "x.tif")
	write(t, dst, []byte("old"))
	for _, args := range [][]string{{good}, {"--overwrite", bad}} {
		r := chaski(t.Context(), slices.Concat([]string{"convert", "-o", dst}, args)...)
		if r.code != 1 || !errorLine.MatchString(r.err) {
			t.Errorf("%v: %+v", args, r)
		}
		if got := files(t, dir); len(got) != 1 || got["x.tif"] != "old" {
			t.Errorf("%v: left %d files", args, len(got))
		}
	}
	if r := chaski(t.Context(), "convert", "--overwrite", "--level", "3", "-o", dst, good); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if got := files(t, dir); len(got) != 1 || !strings.HasPrefix(got["x.tif"], "II+") {
		t.Errorf("left %d files", len(got))
	}
	// This holds in place too: the raster is read before it is replaced.
	if r := chaski(t.Context(), "convert", "--overwrite", "--to", "rumi", "--level", "3", "-o", dst, dst); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	f := rasters(t)[slices.IndexFunc(rasters(t), func(f corpus.File) bool { return f.Path == "tog/tog-odd-16.tif" })]
	sameSum(t, "in place", chaski(t.Context(), "cat", dst), f.Shape, f.DType, f.SHA256)
}

func TestConvertRefuses(t *testing.T) {
	dir := t.TempDir()
	tif, twin := testdata(t, "raster", "tog", "tog-odd-16.tif"), filepath.Join(dir, "tog-odd-16.tiff")
	write(t, twin, []byte("II"))
	for _, c := range []struct {
		code int
		args []string
	}{
		{2, []string{tif}},
		{2, []string{"-o", dir}},
		{2, []string{tif, "-o", dir + "/x.tif", "--to", "cog"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--tile", "17"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--tile", "0"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--tile", "65536"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--level", "23"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--unit", "cell"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--graph", "magic"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--to", "rumi", "--graph", "planar>zstd"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--workers", "-1"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--time", "2024-05-06"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3", "--time", "May"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3", "--time", "2024-05-06", "--unit", "b b h w"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--t", "0", "--stack"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--graph", "planar>zigzag>pfor"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--graph", "zstd"}},
		{2, []string{tif, "-o", dir + "/x.tif", "--codec", "best"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--geozl", "19"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--codec", "worst"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--max-cost", "-1"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--codec", "best", "--graph", "zstd"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3", "--geozl", "20"}},
		{2, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3", "--graph", "planar>zigzag>pivco"}},
		{1, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3"}},
		{1, []string{tif, "-o", dir + "/x.rumi", "--to", "rumi3", "--time", "2024-05-06", "--names", "a,a"}},
		{1, []string{tif, "-o", dir + "/x.rumi", "--t", "1"}},
		{2, []string{tif, twin, "-o", dir}},
		{1, []string{dir + "/none.tif", "-o", dir + "/x.tif"}},
		{1, []string{t.TempDir(), "-o", dir}},
		{1, []string{tif, "-o", dir + "/x.tif", "--max-bytes", "100"}},
		{1, []string{testdata(t, "raster", "rumi-new", "written", "uint4.rumi"), "-o", dir + "/x.tif"}},
		{1, []string{testdata(t, "raster", "README.md"), "-o", dir + "/x.tif"}},
		{1, []string{tif, "-o", twin + "/below/x.tif"}},
	} {
		r := chaski(t.Context(), append([]string{"convert"}, c.args...)...)
		if r.code != c.code || c.code == 1 && !errorLine.MatchString(r.err) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("left %d files", len(got))
	}
}

// TestOriginalsReadWhatIsConverted: the original packages read the same samples from converted
// files, and make the same blob.
func TestOriginalsReadWhatIsConverted(t *testing.T) {
	for _, c := range []struct {
		env   string
		names []string
	}{
		{"CHASKI_ORACLE_PYTHON08", []string{"rumi", "store", "delta"}},
		{"CHASKI_ORACLE_PYTHON16", []string{"rumi2", "cells", "plane"}},
		{"CHASKI_ORACLE_PYTHON26", []string{"rumi3", "pixel", "pfor", "join", "best"}},
	} {
		t.Run(c.env, func(t *testing.T) {
			python := os.Getenv(c.env)
			if python == "" {
				t.Skip(c.env + " names no Python with rumi-eo")
			}
			dir := t.TempDir()
			want := map[string]corpus.File{}
			var paths []string
			for _, name := range c.names {
				for i, f := range rasters(t) {
					dst := filepath.Join(dir, fmt.Sprintf("%s-%d.tif", name, i))
					args := slices.Concat([]string{"convert"}, conversions[name], []string{
						filepath.Join(f.Dir, f.Path), "-o", dst,
					})
					if r := chaski(t.Context(), args...); r.code != 0 {
						t.Fatalf("%+v", r)
					}
					want[dst], paths = f, append(paths, dst)
				}
			}
			out, err := exec.Command(python, append([]string{"-c", readRumi}, paths...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			rows := map[string]struct {
				Shape                      []int
				DType, SHA256, Blob, Error string
			}{}
			if err := json.Unmarshal(out, &rows); err != nil {
				t.Fatal(err)
			}
			for path, f := range want {
				r := rows[path]
				if r.Error != "" || !slices.Equal(r.Shape, f.Shape) || r.DType != f.DType || r.SHA256 != f.SHA256 {
					t.Errorf("%s: %+v, want %v %s %s", f.Path, r, f.Shape, f.DType, f.SHA256)
				}
				if ours := strings.TrimSpace(chaski(t.Context(), "index", path).out); r.Blob != "" && ours != r.Blob {
					t.Errorf("%s: blob %s, the original's %s", f.Path, ours, r.Blob)
				}
			}
		})
	}
}

// TestGDALReadsWhatIsConverted: GDAL reads the TOGs with their labels and location, and accepts
// them as COGs.
func TestGDALReadsWhatIsConverted(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio")
	}
	script := testfile.Read(t, filepath.Join(corpus.Root(t), "tiff", "testdata", "read.py"))
	dir := t.TempDir()
	want := map[string]corpus.File{}
	args := []string{"-c", string(script)}
	for i, f := range rasters(t) {
		dst := filepath.Join(dir, fmt.Sprintf("%d.tif", i))
		r := chaski(t.Context(), "convert", "--to", "tog", "--tile", "64", filepath.Join(f.Dir, f.Path), "-o", dst)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		want[dst], args = f, append(args, dst)
	}
	out, err := exec.Command(python, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		SHA256, Layout string
		COG            *bool
	}{}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatal(err)
	}
	for path, f := range want {
		r := rows[path]
		if r.SHA256 != f.SHA256 || r.Layout != "COG" || r.COG != nil && !*r.COG {
			t.Errorf("%s: %+v", f.Path, r)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	testfile.Write(t, path, b)
}

// files returns the contents of all files below dir by relative path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		all[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestConvertInterrupted: an interrupted conversion leaves no file.
func TestConvertInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(console.Interrupt{Signal: os.Interrupt})
	for _, to := range []string{"tog", "rumi", "rumi2"} {
		r := chaski(ctx, "convert", "--to", to, testdata(t, "raster", "tog", "tog-odd-16.tif"), "-o",
			filepath.Join(dir, "x"))
		if r.code != console.ExitIntr || r.err != "chaski: interrupted\n" {
			t.Errorf("%s: %+v", to, r)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left %d files", len(got))
	}
}
