package containers_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/raster"
	specpkg "github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// The chips of testdata/coast are windows of testdata/demo/coast.tif, which is read by another way: it is
// what pixels are compared with.
const chipSide = 24

// sceneChips returns the pixels of chips as they are in the scene, and their labels.
func sceneChips(t testing.TB, n int) (images [][]uint16, labels [][]byte) {
	t.Helper()
	for k := range n {
		y, x := 64+160*(k/4), 32+150*(k%4)
		scene := filepath.Join(corpus.Testdata(t), "demo", "coast.tif")
		a, err := raster.Read(t.Context(), []string{scene}, raster.ReadOptions{
			B: raster.Selection{List: []int{1, 3, 5}},
			Y: raster.Selection{Slice: true, Start: y, Stop: y + chipSide},
			X: raster.Selection{Slice: true, Start: x, Stop: x + chipSide},
		})
		if err != nil {
			t.Fatal(err)
		}
		img := make([]uint16, len(a.Data)/2)
		label := make([]byte, chipSide*chipSide)
		for i := range img {
			img[i] = binary.LittleEndian.Uint16(a.Data[2*i:])
		}
		for i := range label {
			if img[len(label)+i] > 1200 {
				label[i] = 1
			}
		}
		images, labels = append(images, img), append(labels, label)
	}
	return images, labels
}

var coastFields = []loader.Field{
	{Name: "image", Column: "s2/img.tif"}, {Name: "mask", Column: "ref/label.tif"},
	{Name: "rank"}, {Name: "cloud", Column: "cloud_cover"}, {Name: "region"},
	{Name: "haze", Column: "s2/img.tif@haze"}, {Name: "water", Column: "ref/label.tif@water"},
}

// coastSources lists the ways to name the dataset, with the number of chips in each.
func coastSources(t testing.TB) map[string]loader.Spec {
	parts := []string{
		coast(t, "parts/coast_north.tacozip"), coast(t, "parts/coast_middle.tacozip"),
		coast(t, "parts/coast_south.tacozip"),
	}
	moved := filepath.Join(t.TempDir(), "moved.tacocat")
	if err := os.CopyFS(moved, os.DirFS(coast(t, "parts/.tacocat"))); err != nil {
		t.Fatal(err)
	}
	return map[string]loader.Spec{
		"zip":       {Source: coast(t, "coast.tacozip")},
		"catalog":   {Source: coast(t, "parts/.tacocat")},
		"in folder": {Source: coast(t, "parts")},
		"list":      {Source: parts[0], Container: specpkg.Container{Parts: parts[1:]}},
		"base path": {Source: moved, Container: specpkg.Container{BasePath: coast(t, "parts")}},
		"folder":    {Source: coast(t, "coast_dir")},
	}
}

// TestContainersGiveTheScene: samples of a container, named in any way, have the pixels of the
// scene from which their chips were cut, windows of image and mask at the same place, and the
// values of their rows.
func TestContainersGiveTheScene(t *testing.T) {
	images, labels := sceneChips(t, 12)
	for name, spec := range coastSources(t) {
		t.Run(name, func(t *testing.T) {
			spec.Fields, spec.BatchSize, spec.Shuffle, spec.Seed = coastFields, 12, true, 5
			spec.Sampler = loader.Sampler{Kind: specpkg.RandomWindow, Height: 20, Width: 12}
			e := mustOpen(t, spec, loader.Options{})
			want := 12
			if name == "folder" {
				want = 3
			}
			if e.Len() != int64(want) {
				t.Fatalf("%d samples, want %d", e.Len(), want)
			}
			b := first(t, e)
			img, mask := b.Tensor("image"), b.Tensor("mask")
			seen := map[int]bool{}
			for i, k := range ranks(b, "rank") {
				seen[k] = true
				box := shuffle.Window(shuffle.Crop{
					Seed: 5, Position: int64(i),
					Height: chipSide, Width: chipSide, H: 20, W: 12, AlignY: 1, AlignX: 1,
				})
				y0, x0 := box.Y, box.X
				for c := range 3 {
					for y := range 20 {
						for x := range 12 {
							at := (y0+y)*chipSide + x0 + x
							got := binary.LittleEndian.Uint16(img.Data[2*(((i*3+c)*20+y)*12+x):])
							if got != images[k][c*chipSide*chipSide+at] {
								t.Fatalf("chip %d (%d, %d, %d): %d, want %d",
									k, c, y, x, got, images[k][c*chipSide*chipSide+at])
							}
							if got := mask.Data[(i*20+y)*12+x]; got != labels[k][at] {
								t.Fatalf("mask %d (%d, %d): %d, want %d", k, y, x, got, labels[k][at])
							}
						}
					}
				}
				checkCoastValues(t, b, i, k)
			}
			if len(seen) != want {
				t.Errorf("chips %v", seen)
			}
		})
	}
}

func checkCoastValues(t *testing.T, b *batch.Batch, i, k int) {
	t.Helper()
	f64 := func(name string) float64 {
		return math.Float64frombits(binary.LittleEndian.Uint64(b.Tensor(name).Data[8*i:]))
	}
	r := b.Tensor("region")
	region := string(r.Data[binary.LittleEndian.Uint64(r.Offsets[8*i:]):binary.LittleEndian.Uint64(r.Offsets[8*i+8:])])
	water := binary.LittleEndian.Uint64(b.Tensor("water").Data[8*i:])
	if f64("cloud") != float64(k*7%30) || f64("haze") != float64(k)/8 ||
		region != []string{"north", "middle", "south"}[k/4] || water != uint64(k%2) {
		t.Errorf("chip %d: cloud %v, haze %v, region %q, water %d", k, f64("cloud"), f64("haze"), region, water)
	}
}

// TestFlatContainers: in a container without levels, the sample itself is the raster.
func TestFlatContainers(t *testing.T) {
	images, _ := sceneChips(t, 3)
	e := mustOpen(t, loader.Spec{Source: coast(t, "flat.tacozip"), BatchSize: 3}, loader.Options{})
	b := first(t, e)
	for k := range 3 {
		for i, want := range images[k] {
			if got := binary.LittleEndian.Uint16(b.Tensor("image").Data[2*(k*len(images[k])+i):]); got != want {
				t.Fatalf("chip %d sample %d: %d, want %d", k, i, got, want)
			}
		}
	}
}

// TestContainerConditions: conditions leave the samples that follow from how the dataset was made.
func TestContainerConditions(t *testing.T) {
	all := func(keep func(k int) bool) (ks []int) {
		for k := range 12 {
			if keep(k) {
				ks = append(ks, k)
			}
		}
		return ks
	}
	cloud := func(k int) int { return k * 7 % 30 }
	for _, c := range []struct {
		name string
		in   loader.Subset
		want []int
	}{
		{
			"sql", loader.Subset{Where: []loader.Condition{{SQL: "cloud_cover < 10"}}},
			all(func(k int) bool { return cloud(k) < 10 }),
		},
		{
			"comparison", loader.Subset{Where: []loader.Condition{condition("cloud_cover", "<", "10")}},
			all(func(k int) bool { return cloud(k) < 10 }),
		},
		{
			"of a child", loader.Subset{Where: []loader.Condition{condition("s2/img.tif@haze", ">=", "1")}},
			[]int{8, 9, 10, 11},
		},
		{
			"several",
			loader.Subset{
				Where: []loader.Condition{
					{SQL: "cloud_cover < 20"},
					condition("region", "in", `["north","south"]`), {SQL: "rank % 2 = 0"},
				},
			},
			all(func(k int) bool { return cloud(k) < 20 && k/4 != 1 && k%2 == 0 }),
		},
		{"place", loader.Subset{Where: []loader.Condition{{BBox: &[4]float64{-63, 38, -61.8, 38.4}}}}, []int{4, 5}},
		{
			"place, corners swapped",
			loader.Subset{Where: []loader.Condition{{BBox: &[4]float64{-61.8, 38.4, -63, 38}}}}, []int{4, 5},
		},
		{
			"within",
			loader.Subset{Where: []loader.Condition{{BBox: &[4]float64{-63.1, 38, -61.8, 38.6}, Within: true}}},
			[]int{4},
		},
		{"time", loader.Subset{Where: []loader.Condition{{Datetime: "2020-03-05/2020-05-05"}}}, []int{2, 3, 4}},
		{
			"time to the minute",
			loader.Subset{Where: []loader.Condition{{Datetime: "2020-03-05T10:01/2020-05-05T10:00"}}},
			[]int{3, 4},
		},
		{
			"a column of times",
			loader.Subset{
				Where: []loader.Condition{
					condition("istac:time_start", ">=", `"2020-03-05T10:00:00.5"`),
					condition("istac:time_start", "<", `"2020-06"`),
				},
			},
			[]int{3, 4},
		},
		{
			"dates",
			loader.Subset{
				Use: "late",
				Split: &specpkg.Split{
					By: "date", Column: "istac:time_start",
					Ranges: []specpkg.Range{{Name: "late", From: json.RawMessage(`"2020-11-05"`)}},
				},
			},
			[]int{10, 11},
		},
		{
			"place and time",
			loader.Subset{
				Where: []loader.Condition{{BBox: &[4]float64{-63, 38, -61.8, 38.4}}, {Datetime: "2020-06-01/.."}},
			},
			[]int{5},
		},
		{"given split", loader.Subset{Split: &specpkg.Split{By: "given"}, Use: "test"}, []int{2, 6, 10}},
		{
			"given by another column",
			loader.Subset{Split: &specpkg.Split{By: "given", Column: "region"}, Use: "south"},
			[]int{8, 9, 10, 11},
		},
		{
			"split of what is left",
			loader.Subset{
				Where: []loader.Condition{{SQL: "rank > 5"}},
				Split: &specpkg.Split{By: "given"}, Use: "train",
			},
			[]int{8, 9},
		},
		{
			"query with rows",
			loader.Subset{
				Where: []loader.Condition{
					{Select: "SELECT * FROM data WHERE region = 'north' ORDER BY rank DESC LIMIT 2"},
				},
			},
			[]int{2, 3},
		},
		{"query with ids", loader.Subset{
			Where: []loader.Condition{{Select: "SELECT id FROM data ORDER BY cloud_cover DESC LIMIT 3"}},
		},
			func() []int { // the three cloudiest
				ks := all(func(int) bool { return true })
				slices.SortFunc(ks, func(a, b int) int { return cloud(b) - cloud(a) })
				slices.Sort(ks[:3])
				return ks[:3]
			}()},
		{
			"query of a query",
			loader.Subset{
				Where: []loader.Condition{{SQL: "rank >= 4"}, {Select: "SELECT id FROM data ORDER BY rank LIMIT 2"}},
			},
			[]int{4, 5},
		},
		{
			"query of the columns of a query",
			loader.Subset{Where: []loader.Condition{
				{Select: "SELECT *, cloud_cover * 2 AS double FROM data"},
				{SQL: "double > 50"},
				{Datetime: "2020-05-01/.."},
				{Select: "SELECT id, double FROM data ORDER BY double DESC LIMIT 1"},
			}},
			[]int{4},
		},
		{
			"query of levels",
			loader.Subset{Where: []loader.Condition{{Select: `SELECT "l0:id" AS id FROM l2 WHERE "l2:haze" < 0.3`}}},
			[]int{0, 1, 2},
		},
	} {
		for _, src := range []string{"coast.tacozip", "parts"} {
			spec := loader.Spec{
				Source: coast(t, src), BatchSize: 12, Subset: c.in, Fields: []loader.Field{{Name: "rank"}},
			}
			e, err := open(t, spec, loader.Options{})
			if err != nil {
				t.Errorf("%s of %s: %v", c.name, src, err)
				continue
			}
			if got := ranks(first(t, e), "rank"); !slices.Equal(got, c.want) {
				t.Errorf("%s of %s: %v, want %v", c.name, src, got, c.want)
			}
		}
	}
}

// TestSplitByCentroids: a split by cells of longitude and latitude uses a container's centroids if
// it has no columns of bounds.
func TestSplitByCentroids(t *testing.T) {
	split := specpkg.Split{
		By: "cell", Size: 1.5, LonLat: true, Seed: 3,
		Shares: []specpkg.Share{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}},
	}
	const half = shuffle.SplitTotal / 2
	cells := shuffle.Split{Seed: 3, Shares: []shuffle.Share{{Name: "a", Parts: half}, {Name: "b", Parts: half}}}
	want := map[string][]int{}
	for k := range 12 { // the middles of squares of half a degree, four a row
		lon, lat := -62.75+float64(k%4), 39.25-float64(k/4)
		part := []string{"a", "b"}[cells.OfCell([4]float64{lon, lat, lon, lat}, 1.5)]
		want[part] = append(want[part], k)
	}
	for _, src := range []string{"coast.tacozip", "parts"} {
		for part, want := range want {
			spec := loader.Spec{
				Source: coast(t, src), BatchSize: 12, Subset: loader.Subset{Split: &split, Use: part},
				Fields: []loader.Field{{Name: "rank"}},
			}
			if got := ranks(first(t, mustOpen(t, spec, loader.Options{})), "rank"); !slices.Equal(got, want) {
				t.Errorf("%s of %s: %v, want %v", part, src, got, want)
			}
		}
	}
	spec := loader.Spec{
		Source: coast(t, "flat.tacozip"), BatchSize: 1,
		Subset: loader.Subset{Split: &split, Use: "a"}, Fields: []loader.Field{{Name: "rank"}},
	}
	_, err := open(t, spec, loader.Options{})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "centroid") {
		t.Errorf("without centroids: %v", err)
	}
}

// TestInvalidContainerConditions: invalid conditions are refused when the container is opened, with
// a kind.
func TestInvalidContainerConditions(t *testing.T) {
	for _, c := range []struct {
		name string
		in   loader.Subset
		kind fault.Kind // 0: an error of usage
	}{
		{"no such column", loader.Subset{Where: []loader.Condition{condition("nothing", "<", "1")}}, fault.NotFound},
		{"no such column in SQL", loader.Subset{Where: []loader.Condition{{SQL: "nothing < 1"}}}, fault.NotFound},
		{"no SQL", loader.Subset{Where: []loader.Condition{{SQL: "cloud_cover <"}}}, 0},
		{
			"no id in the result",
			loader.Subset{Where: []loader.Condition{{Select: "SELECT count(*) AS n FROM data"}}},
			fault.Unsupported,
		},
		{"nothing is left", loader.Subset{Where: []loader.Condition{{SQL: "rank > 99"}}}, fault.NotFound},
		{"no such part", loader.Subset{Split: &specpkg.Split{By: "given"}, Use: "holdout"}, fault.NotFound},
		{
			"no such level",
			loader.Subset{Where: []loader.Condition{{BBox: &[4]float64{0, 0, 1, 1}, Level: 7}}},
			fault.NotFound,
		},
		{"times reversed", loader.Subset{Where: []loader.Condition{{Datetime: "2021-01-01/2020-01-01"}}}, 0},
		{"NaN", loader.Subset{Where: []loader.Condition{{BBox: &[4]float64{math.NaN(), 0, 1, 1}}}}, 0},
		{"two kinds at once", loader.Subset{Where: []loader.Condition{{SQL: "rank > 1", Datetime: "2020-01-01"}}}, 0},
		{"empty", loader.Subset{Where: []loader.Condition{{}}}, 0},
	} {
		spec := loader.Spec{
			Source: coast(t, "coast.tacozip"), BatchSize: 2,
			Subset: c.in, Fields: []loader.Field{{Name: "rank"}},
		}
		_, err := open(t, spec, loader.Options{})
		if err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %v", c.name, err, c.kind)
		}
	}
	typo := loader.Spec{
		Source: coast(t, "coast.tacozip"), BatchSize: 2,
		Subset: loader.Subset{Split: &specpkg.Split{By: "given"}, Use: "trian"},
		Fields: []loader.Field{{Name: "rank"}},
	}
	_, err := open(t, typo, loader.Options{})
	if err == nil ||
		!strings.Contains(err.Error(), `no row is of the part "trian"; there are ["test" "train" "validation"]`) {
		t.Errorf("a part that no column names: %v", err)
	}
	for want, c := range map[string]loader.Condition{
		"sql: syntax error":       {Select: "SELEC id FROM data"},
		"where: syntax error":     {SQL: "rank <"},
		"bbox level0 table: ":     {BBox: &[4]float64{0, 0, 1, 1}, Column: "nothing"},
		"datetime level0 table: ": {Datetime: "2020-01-01/2020-02-01", Column: "nothing"},
		"where: column \"cloud_":  {Column: "cloud_cover", Op: "<", Value: json.RawMessage(`"a"`)},
	} {
		spec := loader.Spec{
			Source: coast(t, "coast.tacozip"), BatchSize: 2,
			Subset: loader.Subset{Where: []loader.Condition{c}}, Fields: []loader.Field{{Name: "rank"}},
		}
		if _, err := open(t, spec, loader.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, list := range [][]string{
		{filepath.Join(corpus.Testdata(t), "demo", "coast.tif"), filepath.Join(corpus.Testdata(t), "masks", "tog.tif")},
		{coast(t, "coast.tacozip"), filepath.Join(corpus.Testdata(t), "masks", "tog.tif")},
		{coast(t, "coast.tacozip"), t.TempDir()},
	} {
		_, err := open(t, loader.Spec{
			Source: list[0], Container: specpkg.Container{Parts: list[1:]}, BatchSize: 1,
		}, loader.Options{})
		if fault.KindOf(err) != fault.Unsupported ||
			!strings.Contains(err.Error(), ": dataset: is not a container: a list of paths names containers") {
			t.Errorf("a list of rasters: %v", err)
		}
	}
	chips := filepath.Join(corpus.Testdata(t), "demo")
	_, err = open(t, loader.Spec{
		Source: chips, BatchSize: 1, Subset: loader.Subset{Where: []loader.Condition{{SQL: "a < 1"}}},
	}, loader.Options{})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "there are folder, name, path") {
		t.Errorf("SQL on a folder of files: %v", err)
	}
}

// TestMissingContainerFields: the error about a field that does not exist lists the fields that do.
func TestMissingContainerFields(t *testing.T) {
	for column, want := range map[string]string{
		"s2/image.tif":     "img.tif",
		"s3/img.tif":       "s2, ref",
		"s2":               "folder",
		"s2/img.tif@smoke": "haze",
		"s3/img.tif@haze":  "s3/img.tif",
		"no@s3/img@haze":   "s2, ref",
		"istac:geometry":   "binary",
	} {
		spec := loader.Spec{
			Source: coast(t, "coast.tacozip"), BatchSize: 2,
			Fields: []loader.Field{{Name: "image", Column: column}},
		}
		_, err := open(t, spec, loader.Options{})
		if err == nil || fault.KindOf(err) == 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", column, err, want)
		}
	}
}

// TestContainerFingerprints: a fingerprint depends on the names and sizes of the samples and on the
// selection, and not on where they are stored.
func TestContainerFingerprints(t *testing.T) {
	prints, hashes := map[string]string{}, map[string]string{}
	for name, spec := range coastSources(t) {
		if name == "folder" {
			continue
		}
		spec.Fields, spec.BatchSize = coastFields, 3
		e := mustOpen(t, spec, loader.Options{})
		prints[e.Fingerprint()], hashes[e.Hash()] = name, name
	}
	if len(prints) != 1 || len(hashes) != 1 {
		t.Errorf("one dataset in several places has the fingerprints %v and hashes %v", prints, hashes)
	}
	for _, where := range []loader.Condition{{SQL: "rank > 1"}, {SQL: "rank > 2"}, {SQL: "rank > 2 AND rank < 11"}} {
		spec := loader.Spec{
			Source: coast(t, "coast.tacozip"), Fields: coastFields, BatchSize: 3,
			Subset: loader.Subset{Where: []loader.Condition{where}},
		}
		prints[mustOpen(t, spec, loader.Options{}).Fingerprint()] = where.SQL
	}
	one := loader.Spec{Source: coast(t, "coast.tacozip"), Fields: coastFields[:1], BatchSize: 3}
	prints[mustOpen(t, one, loader.Options{}).Fingerprint()] = "one field"
	if len(prints) != 5 {
		t.Errorf("five datasets have the fingerprints %v", prints)
	}
}

// TestContainerStats: statistics cover the selected samples.
func TestContainerStats(t *testing.T) {
	images, _ := sceneChips(t, 12)
	spec := loader.Spec{
		Source: coast(t, "coast.tacozip"), Fields: coastFields[:1],
		Subset: loader.Subset{Split: &specpkg.Split{By: "given"}, Use: "validation"},
	}
	r, err := survey.Stats(t.Context(), spec, loader.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0., chipSide*chipSide
	for _, k := range []int{3, 7, 11} {
		for _, v := range images[k][:n] {
			sum += float64(v)
		}
	}
	b := r.Fields["image"].Bands[0]
	if want := sum / float64(3*n); r.Samples != 3 || b.Count != uint64(3*n) || math.Abs(*b.Mean-want) > 1e-9*want {
		t.Errorf("%d samples, %d pixels, mean %v, want %v", r.Samples, b.Count, *b.Mean, want)
	}
}

// TestPaddingIsNoSample: placeholders are left out.
func TestPaddingIsNoSample(t *testing.T) {
	tried := 0
	for _, c := range corpus.Containers(t) {
		pad, rows := c.Levels["level0"], c.Levels["level0"]-c.Padding["level0"]
		if c.Type != "case" || c.Padding["level0"] == 0 {
			continue
		}
		tried++
		e, err := open(t, loader.Spec{
			Source: c.At()[0], BatchSize: pad, Fields: []loader.Field{{Name: "id"}},
		}, loader.Options{})
		if err != nil {
			t.Error(err)
		} else if e.Len() != int64(rows) {
			t.Errorf("%v: %d samples, want %d", c.Path, e.Len(), rows)
		}
	}
	if tried == 0 {
		t.Skip("no container with padding at level 0 here")
	}
}

// counting counts the reads of an opener.
type counting struct {
	openers.Files
	reads atomic.Int64
}

type countingReader struct {
	source.Reader
	c *counting
}

func (c *counting) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := c.Files.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &countingReader{r, c}, nil
}

func (r *countingReader) ModTime() time.Time { return r.Reader.(source.Timed).ModTime() }

func (r *countingReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.c.reads.Add(1)
	return r.Reader.ReadAt(ctx, p, off)
}

// TestMembersStayInTheirBytes: a raster in a container whose tiles lie in other samples is refused.
func TestMembersStayInTheirBytes(t *testing.T) {
	data, err := os.ReadFile(coast(t, "flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	// chip_00.tif has 4503 bytes from 203 on. Its directory lists the offsets of 12 tiles as
	// uint64. Each is the end of the tile before plus 8 bytes for GDAL's leader and trailer.
	member := data[203:][:4503]
	list := -1
	for i := 0; i+24 < len(member); i++ {
		a := binary.LittleEndian.Uint64(member[i:])
		b := binary.LittleEndian.Uint64(member[i+8:])
		c := binary.LittleEndian.Uint64(member[i+16:])
		if a > 300 && a < b && b < c && c < 4503 && a > uint64(i) {
			list = i
			break
		}
	}
	if list < 0 {
		t.Fatal("no list of offsets")
	}
	binary.LittleEndian.PutUint64(member[list:], 9000)
	src := filepath.Join(t.TempDir(), "flat.tacozip")
	testfile.Write(t, src, data)
	_, err = open(t, loader.Spec{Source: src, BatchSize: 3}, loader.Options{})
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(fmt.Sprint(err), "chip_00.tif") {
		t.Errorf("%v, want corrupt, and the sample's name", err)
	}
}

// TestRewrittenContainers: a container that changes while it is read is refused, but a copy with
// another modification time is not.
func TestRewrittenContainers(t *testing.T) {
	data, err := os.ReadFile(coast(t, "flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(t.TempDir(), "flat.tacozip")
	write := func(b []byte) {
		err := os.WriteFile(src, b, 0o600)
		if err != nil { // in place: a file that takes its place leaves the open one as it is
			t.Fatal(err)
		}
	}
	write(data)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(src, old, old); err != nil {
		t.Fatal(err)
	}
	e := mustOpen(t, loader.Spec{Source: src, BatchSize: 3}, loader.Options{})
	images, _ := sceneChips(t, 1)
	if b := first(t, e); binary.LittleEndian.Uint16(b.Tensor("image").Data) != images[0][0] {
		t.Error("wrong pixel")
	}
	write(data) // the same, at another time
	first(t, e)
	other := bytes.Clone(data)
	copy(other[203:][:4503], data[4752:]) // another raster in the place of the first
	write(other)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(src, later, later); err != nil {
		t.Fatal(err)
	}
	_, err = e.Start(t.Context(), steps.StepTicket(0, 0, 3, 0, 1), false).Wait(t.Context())
	if fault.KindOf(err) != fault.Corrupt {
		t.Errorf("%v, want corrupt", err)
	}
}

// TestRootsHoldForContainers: nothing outside of the roots is opened: no container, no file of a
// catalog, and no file behind a link in a FOLDER.
func TestRootsHoldForContainers(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "in")
	if err := os.CopyFS(inside, os.DirFS(coast(t, ""))); err != nil {
		t.Fatal(err)
	}
	o := loader.Options{Roots: []string{inside}}
	fields := coastFields[:2]
	for _, src := range []string{"coast.tacozip", "parts", "coast_dir"} {
		_, err := open(t, loader.Spec{Source: filepath.Join(inside, src), Fields: fields, BatchSize: 2}, o)
		if err != nil {
			t.Errorf("%s, which lies inside: %v", src, err)
		}
	}
	err := os.Rename(filepath.Join(inside, "coast_dir/DATA/tile_00/s2/img.tif"), filepath.Join(root, "img.tif"))
	if err != nil {
		t.Fatal(err)
	}
	link := func(from, to string) {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(root, "img.tif"), filepath.Join(inside, "coast_dir/DATA/tile_00/s2/img.tif"))
	link(coast(t, "coast.tacozip"), filepath.Join(inside, "link.tacozip"))
	for name, spec := range map[string]loader.Spec{
		"a file of a FOLDER": {Source: filepath.Join(inside, "coast_dir")},
		"a link":             {Source: filepath.Join(inside, "link.tacozip")},
		"a container":        {Source: coast(t, "coast.tacozip")},
		"a part": {
			Source:    filepath.Join(inside, "coast.tacozip"),
			Container: specpkg.Container{Parts: []string{coast(t, "coast.tacozip")}},
		},
		"files of a catalog": {
			Source:    filepath.Join(inside, "parts/.tacocat"),
			Container: specpkg.Container{BasePath: coast(t, "parts")},
		},
	} {
		spec.Fields, spec.BatchSize = fields, 2
		_, err := open(t, spec, o)
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "outside") ||
			name == "a file of a FOLDER" && !strings.Contains(err.Error(), "img.tif") {
			t.Errorf("%s outside: %v, want not found", name, err)
		}
	}
}
