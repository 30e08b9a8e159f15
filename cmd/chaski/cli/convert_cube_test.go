package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// cubeRow is a line of the manifest of testdata/raster/rumi-3, and what `chaski info` and the original package say of
// a file.
type cubeRow struct {
	Path, DType, SHA256, Frame, Error string
	Shape                             []int // steps of time, bands, height, width
	Bands                             []string
	Times                             any
}

func cubeRows(t *testing.T, prefix string) []cubeRow {
	t.Helper()
	rows := corpus.Rows[cubeRow](t, testdata(t, "raster", "rumi-3"))
	return slices.DeleteFunc(rows, func(r cubeRow) bool { return !strings.HasPrefix(r.Path, prefix) })
}

// cubeInfo is what `chaski info` prints of a file of generation 3.
type cubeInfo struct {
	TIFF struct {
		BandNames []string `json:"band_names"`
	}
	Rumi struct {
		Frame    string
		TimeKind string `json:"time_kind"`
		Times    []string
	}
}

func cubeOf(t *testing.T, path string) (i cubeInfo) {
	t.Helper()
	if r := chaski(t.Context(), "info", "--json", path); r.code != 0 || json.Unmarshal([]byte(r.out), &i) != nil {
		t.Fatalf("%s: exit %d: %s", path, r.code, r.err)
	}
	return i
}

// ok fails the test unless a command succeeds.
func ok(t *testing.T, args ...string) result {
	t.Helper()
	r := chaski(t.Context(), args...)
	if r.code != 0 {
		t.Fatalf("%q: %+v", args, r)
	}
	return r
}

// units are values of --unit for an image with several bands and steps of time, and the axes of a frame.
var units = map[string]string{
	"tile": "h w", "step": "h w", "cell": "t b h w", "b t h w": "b t h w", "b h w t": "b h w t", "t h w b": "t h w b",
	"h w b t": "h w b t", "h w t b": "h w t b",
}

// TestConvertCubes: a file with bands and steps of time converts to every frame unit with its samples, names and
// times, also under --strict, which the original package reads, too.
func TestConvertCubes(t *testing.T) {
	dir := t.TempDir()
	python := os.Getenv("CHASKI_ORACLE_PYTHON26")
	var paths []string
	for i, src := range cubeRows(t, "unit-") {
		from := testdata(t, "raster", "rumi-3", src.Path)
		was := cubeOf(t, from)
		for k, unit := range slices.Sorted(maps.Keys(units)) {
			if testing.Short() && k != i%len(units) {
				continue // one unit of each file: the race detector sees the same goroutines
			}
			dst := filepath.Join(dir, fmt.Sprintf("%d-%d.rumi", i, k))
			r := chaski(t.Context(), "convert", "--to", "rumi3", "--strict", "--unit", unit, "--tile", "9",
				"--level", "1", from, "-o", dst)
			many := src.Shape[0] > 1 && src.Shape[1] > 1
			if !many && len(unit) == len("b t h w") && r.code == 1 {
				t.Errorf("%s: --unit %q: axes of length one count: %+v", src.Path, unit, r)
			}
			if r.code != 0 || r.err != "" {
				t.Errorf("%s: --unit %q: %+v", src.Path, unit, r)
				continue
			}
			paths = append(paths, dst)
			is := cubeOf(t, dst)
			if many && is.Rumi.Frame != units[unit] || !slices.Equal(is.TIFF.BandNames, was.TIFF.BandNames) ||
				is.Rumi.TimeKind != was.Rumi.TimeKind || !slices.Equal(is.Rumi.Times, was.Rumi.Times) {
				t.Errorf("%s: --unit %q: %+v became %+v", src.Path, unit, was, is)
			}
			sum := chaski(t.Context(), "cat", "--layout", "t b y x", dst)
			sameSum(t, src.Path, sum, src.Shape, src.DType, src.SHA256)
			if t.Failed() {
				return
			}
		}
	}
	if python == "" {
		t.Log("CHASKI_ORACLE_PYTHON26 names no Python with rumi-eo")
		return
	}
	sums := map[string]cubeRow{}
	out, err := exec.Command(python, append([]string{"-c", readRumi}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &sums); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		is, theirs := cubeOf(t, path), sums[path]
		ours := strings.Fields(ok(t, "cat", path).out)
		if theirs.Error != "" || !strings.Contains(ours[0], theirs.SHA256) || theirs.Frame != is.Rumi.Frame ||
			!slices.Equal(theirs.Bands, is.TIFF.BandNames) {
			t.Errorf("%s: %+v, want %+v %s", path, theirs, is, ours)
		}
	}
}

// TestConvertSteps: with --t a step of a file becomes a file, with their samples; a stack of these is the first file
// again.
func TestConvertSteps(t *testing.T) {
	dir := t.TempDir()
	for i, src := range cubeRows(t, "geo-") {
		from := testdata(t, "raster", "rumi-3", src.Path)
		for k, to := range []string{"tog", "rumi", "rumi2"} {
			if race.Enabled && i%3 != k {
				continue
			}
			out := filepath.Join(dir, src.Path, to)
			stack := []string{"convert", "--to", "rumi3", "--stack", "--names", strings.Join(src.Bands, ",")}
			for k := range src.Shape[0] {
				name := strings.TrimSuffix(src.Path, ".rumi") + fmt.Sprintf("-t%d", k)
				path := filepath.Join(out, name+map[bool]string{true: ".rumi", false: ".tif"}[to == "rumi2"])
				stack = append(stack, path, "--time", cubeOf(t, from).Rumi.Times[k])
				r := ok(t, "convert", "--to", to, "--tile", "16", "--t", fmt.Sprint(k), from, "-o", path)
				if !strings.Contains(r.err, "left out: times") {
					t.Errorf("%s to %s: %+v", src.Path, to, r)
				}
				want := ok(t, "cat", "--t", fmt.Sprint(k), "--layout", "b y x", from)
				if got := ok(t, "cat", path); got.out != want.out {
					t.Errorf("%s step %d to %s: %s, want %s", src.Path, k, to, got.out, want.out)
				}
				if was, is := placeOf(t, from).TIFF, placeOf(t, path).TIFF; was.EPSG != is.EPSG ||
					*was.Transform != *is.Transform {
					t.Errorf("%s step %d to %s: EPSG %d %v became %d %v", src.Path, k, to, was.EPSG, *was.Transform,
						is.EPSG, *is.Transform)
				}
			}
			again := filepath.Join(dir, src.Path, to+".rumi")
			ok(t, append(stack, "-o", again)...)
			sameSum(t, again, chaski(t.Context(), "cat", again), src.Shape, src.DType, src.SHA256)
			if was, is := cubeOf(t, from), cubeOf(t, again); !slices.Equal(was.Rumi.Times, is.Rumi.Times) ||
				!slices.Equal(was.TIFF.BandNames, is.TIFF.BandNames) {
				t.Errorf("%s: %+v became %+v", src.Path, was, is)
			}
		}
		one := filepath.Join(dir, src.Path+".tif")
		for _, args := range [][]string{{}, {"--t", "0,1"}, {"--t", "3"}, {"--strict", "--t", "1"}} {
			r := chaski(t.Context(), append([]string{"convert", "--to", "tog", from, "-o", one}, args...)...)
			if r.code == 0 {
				t.Errorf("%s with %v: %+v", src.Path, args, r)
			}
		}
		ok(t, "convert", "--t", "1", from, "-o", one)
		part := filepath.Join(dir, src.Path+"-part.rumi")
		ok(t, "convert", "--to", "rumi3", "--t", "2,0", from, "-o", part)
		if got, want := ok(t, "cat", part), ok(t, "cat", "--t", "2,0", from); got.out != want.out {
			t.Errorf("%s: steps 2 and 0: %s, want %s", src.Path, got.out, want.out)
		}
		if got, all := cubeOf(t, part).Rumi.Times, cubeOf(t, from).Rumi.Times; !slices.Equal(got,
			[]string{all[2], all[0]}) {
			t.Errorf("%s: steps 2 and 0 have the times %v of %v", src.Path, got, all)
		}
	}
}

// TestStackRefuses: rasters that differ do not become one file.
func TestStackRefuses(t *testing.T) {
	dir := t.TempDir()
	times := []string{"--time", "2024-05-06", "--time", "2024-05-07"}
	for _, other := range []string{"rumi-3/geo-rotated-point.rumi", "rumi-3/uint8.rumi", "tog/tog-odd-16.tif"} {
		args := slices.Concat([]string{"convert", "--to", "rumi3", "--stack", "--t", "0"}, times, []string{
			testdata(t, "raster", "rumi-3", "geo-projected.rumi"), testdata(t, "raster", other),
			"-o", filepath.Join(dir, "x.rumi"),
		})
		if r := chaski(t.Context(), args...); r.code != 1 || !errorLine.MatchString(r.err) {
			t.Errorf("%s: %+v", other, r)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left %d files", len(got))
	}
}
