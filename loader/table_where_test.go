package loader_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// tablesOfChips writes twelve chips with the columns of testdata/coast as a CSV file, and as a
// catalog with the columns joined in.
func tablesOfChips(t *testing.T) (csv, parquet string) {
	t.Helper()
	dir := t.TempDir()
	chip, err := os.ReadFile(coast(t, filepath.Join("coast_dir", "DATA", "tile_00", "s2", "img.tif")))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("image,rank,cloud_cover,region,datetime,geometry,note\n")
	for k := range 12 {
		name := fmt.Sprintf("chip_%02d.tif", k)
		testfile.Write(t, filepath.Join(dir, name), chip)
		note := ""
		if k%3 == 0 {
			note = fmt.Sprintf("note %d", k)
		}
		fmt.Fprintf(&b, "%s,%d,%g,%s,2020-%02d-05T10:00:00Z,POINT (%d %d),%s\n",
			name, k, float64(k*7%30)+0.5, []string{"north", "middle", "south"}[k/4], 1+k, -63+k%4, 39-k/4, note)
	}
	csv, parquet = filepath.Join(dir, "chips.csv"), filepath.Join(dir, "chips.parquet")
	if err := writeFile(csv, b.String()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_, err = build.Write(t.Context(), &out, []string{filepath.Join(dir, "*.tif")}, build.Options{
		Base: dir, Join: &build.Join{Table: csv, On: "image"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(parquet, out.String()); err != nil {
		t.Fatal(err)
	}
	return csv, parquet
}

// TestTableConditions: conditions in SQL, on location and on time leave the rows of a CSV file and
// of a catalog that follow from how the tables were made.
func TestTableConditions(t *testing.T) {
	race.SkipCovered(t)
	csv, parquet := tablesOfChips(t)
	cloud := func(k int) float64 { return float64(k*7%30) + 0.5 }
	all := func(keep func(k int) bool) (ks []int) {
		for k := range 12 {
			if keep(k) {
				ks = append(ks, k)
			}
		}
		return ks
	}
	sql := func(s ...string) (out []loader.Condition) {
		for _, s := range s {
			out = append(out, loader.Condition{SQL: s})
		}
		return out
	}
	box := [4]float64{-62, 38, -61, 39}
	inBox := func(k int) bool { return k%4 >= 1 && k%4 <= 2 && k/4 <= 1 }
	for name, c := range map[string]struct {
		where []loader.Condition
		want  []int
	}{
		"comparison": {sql("cloud_cover < 10"), all(func(k int) bool { return cloud(k) < 10 })},
		"and, or": {
			sql("rank >= 2 AND (region = 'north' OR region = 'south') AND NOT rank = 9"),
			[]int{2, 3, 8, 10, 11},
		},
		"in, between": {sql("region IN ('middle', 'south') AND rank BETWEEN 5 AND 8"), []int{5, 6, 7, 8}},
		"like":        {sql("region LIKE '%o%th'"), []int{0, 1, 2, 3, 8, 9, 10, 11}},
		"is null":     {sql("note IS NULL"), all(func(k int) bool { return k%3 != 0 })},
		"is not null": {sql("note IS NOT NULL", "rank > 0"), []int{3, 6, 9}},
		"with comparisons": {
			append(sql("rank % 2 = 0"), condition("region", "==", `"middle"`)), []int{4, 6},
		},
		"order and limit": {
			[]loader.Condition{{Select: "SELECT * FROM data WHERE rank < 8 ORDER BY cloud_cover DESC LIMIT 3"}},
			[]int{3, 4, 7},
		},
		"select after sql": {
			append(sql("region = 'north'"), loader.Condition{
				Select: `SELECT "chaski:row", rank FROM data ORDER BY rank DESC LIMIT 2 OFFSET 1`,
			}),
			[]int{1, 2},
		},
		"box":       {[]loader.Condition{{BBox: &box, Column: "geometry"}}, all(inBox)},
		"box, auto": {[]loader.Condition{{BBox: &box}}, all(inBox)},
		"time": {
			[]loader.Condition{{Datetime: "2020-03-05/2020-06-05", Column: "datetime"}}, []int{2, 3, 4, 5},
		},
		"time, auto": {[]loader.Condition{{Datetime: "2020-03-05T10:00:01Z/2020-06-05"}}, []int{3, 4, 5}},
		"all together": {
			append(sql("cloud_cover < 20"), loader.Condition{BBox: &box},
				loader.Condition{Datetime: "2020-01-01/2020-06-30"}),
			all(func(k int) bool { return cloud(k) < 20 && inBox(k) && k < 6 }),
		},
	} {
		for _, src := range []string{csv, parquet} {
			image := loader.Field{Name: "image", Column: "image"}
			if src == parquet {
				image.Column = ""
			}
			spec := loader.Spec{
				Source: src, BatchSize: 12, Fields: []loader.Field{image, {Name: "rank", Column: "rank"}},
				Subset: loader.Subset{Where: c.where},
			}
			e, err := open(t, spec, loader.Options{})
			if err != nil {
				t.Errorf("%s of %s: %v", name, filepath.Base(src), err)
				continue
			}
			if got := ranks(first(t, e), "rank"); !slices.Equal(got, c.want) {
				t.Errorf("%s of %s: %v, want %v", name, filepath.Base(src), got, c.want)
			}
		}
	}
	for name, c := range map[string]struct {
		where loader.Condition
		kind  fault.Kind
	}{
		"no column":      {loader.Condition{SQL: "nothing < 1"}, fault.NotFound},
		"another table":  {loader.Condition{Select: "SELECT * FROM level1"}, fault.NotFound},
		"without rows":   {loader.Condition{Select: "SELECT rank FROM data"}, fault.Unsupported},
		"rows of others": {loader.Condition{Select: `SELECT rank + 100 AS "chaski:row" FROM data`}, fault.Unsupported},
		"no time":        {loader.Condition{Datetime: "2020", Column: "region"}, 0},
		"levels":         {loader.Condition{BBox: &box, Level: 1}, 0},
	} {
		for _, src := range []string{csv, parquet} {
			spec := loader.Spec{
				Source: src, BatchSize: 2, Fields: []loader.Field{{Name: "rank", Column: "rank"}},
				Subset: loader.Subset{Where: []loader.Condition{c.where}},
			}
			if _, err := open(t, spec, loader.Options{}); err == nil || c.kind != 0 && fault.KindOf(err) != c.kind {
				t.Errorf("%s of %s: %v", name, filepath.Base(src), err)
			}
		}
	}
}

// TestBoundsOfCatalogs: without a column of geometries, a box is compared with the bounds of the
// rasters in the catalog, and exactly if it is in their CRS.
func TestBoundsOfCatalogs(t *testing.T) {
	scene := coast(t, filepath.Join("coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	var out strings.Builder
	if _, err := build.Write(t.Context(), &out, []string{scene}, build.Options{}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "scene.parquet")
	if err := writeFile(name, out.String()); err != nil {
		t.Fatal(err)
	}
	_, meta, err := catalog.OpenAsset(t.Context(), &openers.Files{}, scene, 0)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := catalog.Open(t.Context(), name, nil, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	a, err := tab.Asset(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := meta.Bounds(a.Index.Height, a.Index.Width)
	if !ok {
		t.Fatal("no bounds")
	}
	for _, c := range []struct {
		box    [4]float64
		within bool
		met    bool
	}{
		{b, false, true},
		{b, true, true},
		{[4]float64{b[0] + 1, b[1] + 1, b[0] + 2, b[1] + 2}, false, true},
		{[4]float64{b[0] + 1, b[1] + 1, b[0] + 2, b[1] + 2}, true, false},
		{[4]float64{b[2] + 1, b[1], b[2] + 2, b[3]}, false, false},
		{[4]float64{b[0], b[3] + 1, b[2], b[3] + 2}, false, false},
		{[4]float64{-1e12, -1e12, 1e12, 1e12}, true, true},
		{[4]float64{b[0] - 5e-324, b[1] - 1e-30, b[2], b[3]}, false, true},
	} {
		spec := loader.Spec{
			Source: name, BatchSize: 1,
			Subset: loader.Subset{Where: []loader.Condition{
				{BBox: &c.box, BBoxCRS: spec.EPSG(meta.EPSG), Within: c.within}}},
		}
		e, err := open(t, spec, loader.Options{})
		if met := err == nil && e.Len() == 1; met != c.met || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("%v: %v, %v", c.box, met, err)
		}
	}
}

// TestBoxOfCatalog: a box of longitude and latitude is a place on Earth for rasters in any CRS, and
// so is a box in another CRS. A raster whose CRS is unknown is an error, neither inside nor
// outside.
func TestBoxOfCatalog(t *testing.T) {
	race.SkipCovered(t)
	chip := coast(t, filepath.Join("coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	write := func(more ...string) string {
		out := "image,row,minx,miny,maxx,maxy,epsg\n"
		// PROJ computed longitude and latitude of the lower left corners.
		for i, r := range []struct {
			epsg       int
			x, y, size float64
		}{
			{4326, 0, -15, 0.01},
			{4326, 179.5, -15, 0.01},
			{4326, -179.9, -15, 0.01},
			{32632, 500000, 5538630, 100}, // 9, 50
			{32633, 500000, 5538630, 100}, // 15, 50
			{32733, 500000, 4461369, 100}, // 15, -50
			{32760, 822700, 8338000, 100}, // -179.9994, -15.0134
			{32701, 177000, 8338000, 100}, // 179.9966, -15.0134
			{3031, -50, -50, 100},         // the south pole is inside
			{3413, -100000, 1000000, 100}, // 140.7, 80.7
			{3857, 1001875, 6446276, 100}, // 9, 50
			{27700, 530000, 180000, 100},  // -0.1283, 51.5037
		} {
			out += fmt.Sprintf("%s,%d,%v,%v,%v,%v,%d\n", chip, i, r.x, r.y, r.x+r.size, r.y+r.size, r.epsg)
		}
		name := filepath.Join(t.TempDir(), "rows.csv")
		if err := writeFile(name, out+strings.Join(more, "\n")); err != nil {
			t.Fatal(err)
		}
		return name
	}
	choose := func(src string, where ...loader.Condition) ([]int, error) {
		spec := loader.Spec{
			Source: src, BatchSize: 20, Fields: []loader.Field{{Name: "row", Column: "row"}},
			Subset: loader.Subset{Where: where},
		}
		e, err := open(t, spec, loader.Options{})
		if err != nil {
			return nil, err
		}
		return ranks(first(t, e), "row"), nil
	}
	known := write()
	for _, c := range []struct {
		box    [4]float64
		epsg   int
		within bool
		want   []int
	}{
		{[4]float64{170, -20, -170, -10}, 0, false, []int{1, 2, 6, 7}},
		{[4]float64{170, -20, -170, -10}, 0, true, []int{1, 2, 6, 7}},
		{[4]float64{-1, -20, 1, -10}, 0, false, []int{0}},
		{[4]float64{8, 49, 10, 51}, 0, false, []int{3, 10}},
		{[4]float64{14, -51, 16, 51}, 4326, false, []int{4, 5}},
		{[4]float64{499000, 5538000, 501000, 5539000}, 32632, false, []int{3, 10}},
		{[4]float64{499000, 5538000, 501000, 5539000}, 32633, false, []int{4}},
		{[4]float64{-180, -90, 180, -89}, 0, true, []int{8}},
		{[4]float64{20, -90, 30, -85}, 0, false, []int{8}},
		{[4]float64{140, 80, 141, 81}, 0, false, []int{9}},
		{[4]float64{-0.2, 51.5, -0.1, 51.51}, 0, true, []int{11}},
		{[4]float64{-180, -90, 180, 90}, 0, false, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
	} {
		got, err := choose(known, loader.Condition{BBox: &c.box, BBoxCRS: spec.EPSG(c.epsg), Within: c.within})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v of EPSG:%d, within %t: %v, %v, want %v", c.box, c.epsg, c.within, got, err, c.want)
		}
	}
	box := loader.Condition{BBox: &[4]float64{-180, -90, 180, 90}}
	for more, want := range map[string]string{
		chip + ",12,0,0,1,1,": "row 12: is null",
		chip + ",12,0,0,1,1,5514\n" + chip + ",13,0,0,1,1,5514": "against 2 of the rows",
		chip + ",12,0,0,1,1,32767":                              "EPSG:32767",
	} {
		src := write(more)
		got, err := choose(src, box)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", more, got, err)
		}
		if got, err := choose(src, loader.Condition{SQL: `"row" < 12`}, box); err != nil || len(got) != 12 {
			t.Errorf("%s, left out: %v, %v", more, got, err)
		}
	}
	if got, err := choose(write(chip+",12,,,,,"), box); err != nil || len(got) != 12 {
		t.Errorf("a row that lies nowhere: %v, %v", got, err)
	}
	// In its own CRS a box needs no projection.
	got, err := choose(write(chip+",12,0,0,1,1,5514"), loader.Condition{SQL: "epsg = 5514"}, loader.Condition{
		BBox: &[4]float64{-1, -1, 2, 2}, BBoxCRS: 5514,
	})
	if err != nil || !slices.Equal(got, []int{12}) {
		t.Error(got, err)
	}
}
