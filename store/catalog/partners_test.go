package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestPartnersOfSamples compares which samples are dropped, and the error about them, with a slow count: a sample is
// incomplete if a field that must have it has no file of its names, and so is a file that belongs to no sample.
func TestPartnersOfSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		var files []string
		var lead []string
		pairs, dates, others := map[string]bool{}, map[string]bool{}, map[string]bool{}
		rare := random.IntN(4) // 0: all files are there
		there := func() bool { return rare == 0 || random.IntN(1+2*rare) > 0 }
		for _, date := range []string{"1", "2", "3"} {
			for _, id := range []string{"a", "b"} {
				key := date + "/" + id
				if key == "1/a" || there() {
					lead, files = append(lead, key), append(files, "x/"+date+"_"+id+".tif")
				}
				if key == "1/a" || there() {
					pairs[key], files = true, append(files, "y/"+date+"_"+id+".tif")
				}
			}
			if date == "1" || there() {
				dates[date], files = true, append(files, "z/"+date+".tif")
			}
			if date == "1" || there() {
				others[date], files = true, append(files, "o/"+date+".tif")
			}
		}
		optional := random.IntN(2) == 0
		fields := []catalog.Source{
			{Field: "x", Pattern: "x/{date}_{id}.tif"}, {Field: "y", Pattern: "y/{date}_{id}.tif"},
			{Field: "z", Pattern: "z/{date}.tif"}, {Field: "o", Pattern: "o/{date}.tif", Optional: optional},
		}
		missing, used := map[string]bool{}, map[string]bool{}
		check := func(key string) {
			date, _, _ := strings.Cut(key, "/")
			used[date] = true
			if !slices.Contains(lead, key) || !pairs[key] || !dates[date] ||
				!optional && !others[date] {
				missing[key] = true
			}
		}
		for _, key := range lead {
			check(key)
		}
		for key := range pairs {
			check(key)
		}
		for date := range dates {
			if !used[date] {
				missing[date] = true
			}
		}
		for date := range others {
			if !used[date] {
				missing[date] = true
			}
		}
		left := slices.DeleteFunc(slices.Clone(lead), func(key string) bool { return missing[key] })
		what := fmt.Sprintf("round %d: %q, optional %v", round, files, optional)
		dir := folder.Of(t, files...)
		tab, err := catalog.Open(t.Context(), dir, fields, catalog.Options{})
		if err == nil {
			_ = tab.Close()
		}
		if (err != nil) != (len(missing) > 0) {
			t.Errorf("%s: missing %v: %v", what, missing, err)
		}
		if len(left) == 0 {
			continue
		}
		tab, err = catalog.Open(t.Context(), dir, fields, catalog.Options{DropIncomplete: true})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		tables := []*catalog.Table{tab}
		if round%5 == 0 { // a catalog whose rows are in another order
			type row struct {
				URI   *string `parquet:"uri,optional"`
				Index []byte  `parquet:"chaski:index"`
			}
			rows := []row{{}}
			for _, i := range random.Perm(len(files)) {
				uri := []string{"", dir + "/"}[round/5%2] + files[i]
				rows = append(rows, row{URI: &uri})
			}
			path := filepath.Join(dir, "c.parquet")
			writeTable(t, path, rows, nil)
			tables = append(tables, folder.Open(t, path, catalog.Options{DropIncomplete: true}, fields...))
		}
		for _, tab := range tables {
			if n := tab.Remarks.Dropped; tab.Len() != int64(len(left)) || n != len(missing) {
				t.Errorf("%s: %d samples, %d dropped, want %q and %v", what, tab.Len(), n, left, missing)
				continue
			}
			if len(tables) == 1 {
				break
			}
			for row, key := range left {
				date, id, _ := strings.Cut(key, "/")
				name := date + "_" + id + ".tif"
				for field, want := range []string{"x/" + name, "y/" + name, "z/" + date + ".tif",
					"o/" + date + ".tif"} {
					v, err := tab.Value(t.Context(), field, int64(row))
					if there := field < 3 || others[date]; err != nil || v.Null == there || there &&
						strings.TrimPrefix(string(v.Text), dir+"/") != want {
						t.Errorf("%s, row %d: %+v, %v, want %s", what, row, v, err, want)
					} else if _, err := tab.Asset(t.Context(), field, int64(row)); !there &&
						fault.KindOf(err) != fault.NotFound {
						t.Errorf("%s, row %d has an asset without a file: %v", what, row, err)
					}
				}
			}
		}
		_ = tab.Close()
	}
}

// TestSamplesAmongPartners: a file that belongs to another sample is none of its own, unless it has all files that a
// sample needs, or is the file of its own sample.
func TestSamplesAmongPartners(t *testing.T) {
	field := func(name, pattern string) catalog.Source { return catalog.Source{Field: name, Pattern: pattern} }
	masks := []catalog.Source{field("image", "{id}.tif"), field("mask", "{id}_m.tif")}
	labels := []catalog.Source{field("image", "{scene}/{id}.tif"), field("b", "{scene}/{id}_b.tif"),
		field("label", "{scene}/label.tif")}
	same := append(slices.Clone(masks), field("same", "{id}.tif"), catalog.Source{Field: "name", Column: "name"})
	numbered := []catalog.Source{field("image", "{id}.tif"), field("mask", "{id}_m.tif"), field("n", "{id}_n.tif")}
	shared := []catalog.Source{field("image", "i/{id}.tif"), field("m", "m/{id}.tif"), field("q", "m/{id}_q.tif")}
	named := []catalog.Source{field("image", "{scene}/{id}.tif"), field("b", "{scene}/b_{id}.tif"),
		field("label", "{scene}/label.tif")}
	optional := slices.Clone(masks)
	optional[1].Optional = true
	for _, c := range []struct {
		fields      []catalog.Source
		files, want string
		dropped     int
		lacks       string
	}{
		{masks, "a a_m b b_m", "a b", 0, ""},
		{masks, "a a_m b", "a", 1, "b_m.tif"},
		{masks, "a a_m a_m_m", "a a_m", 0, ""},
		{optional, "a a_m b", "a b", 0, ""},
		{labels, "a/1 a/1_b a/label", "a/1", 1, "a/label_b.tif"},
		{labels, "a/1 a/1_b a/label a/label_b", "a/1 a/label", 0, ""},
		{labels, "a/1 a/1_b a/label b/2 b/2_b b/label b/label_b", "a/1 b/2 b/label", 1, "a/label_b.tif"},
		{labels, "a/1 a/1_b b/2 b/2_b b/label b/label_b", "b/2 b/label", 1, "a/label.tif"},
		{same, "a a_m b b_m", "a b", 0, ""}, {same, "a a_m b", "a", 1, "b_m.tif"},
		{append(same[2:3:3], optional...), "a a_m b", "a b", 0, ""},
		{numbered, "a a_m a_n a_m_n", "a", 1, "a_m.tif"}, // a number without a mask
		{shared, "i/a m/a m/a_q", "i/a", 0, ""},          // m/a_q is the q of a
		{named, "a/b_x a/x c/b_y c/label c/y", "c/y", 2, "c/b_label.tif"},
	} {
		var files []string
		for name := range strings.FieldsSeq(c.files) {
			files = append(files, name+".tif")
		}
		dir := folder.Of(t, files...)
		catalogOf := filepath.Join(dir, "c.parquet")
		folder.Index(t, catalogOf, build.Options{}, dir)
		for _, src := range []string{dir, catalogOf} {
			tab, err := catalog.Open(t.Context(), src, c.fields, catalog.Options{})
			if (err == nil) != (c.lacks == "") || err != nil && (fault.KindOf(err) != fault.NotFound ||
				!strings.Contains(err.Error(), c.lacks)) {
				t.Errorf("%s: %v, want %q", c.files, err, c.lacks)
			}
			if err == nil {
				_ = tab.Close()
			}
			tab = folder.Open(t, src, catalog.Options{DropIncomplete: true}, c.fields...)
			got := strings.ReplaceAll(strings.Join(folder.IDs(t, tab), " "), ".tif", "")
			if r := tab.Remarks; got != c.want || r.Dropped != c.dropped || r.Lacking != c.lacks {
				t.Errorf("%s: samples %s, want %s; %d dropped, such as %q", c.files, got, c.want, r.Dropped, r.Lacking)
			}
		}
	}
}

// TestErrorsOfPartners: the error about a missing file says what is there instead, and the way.
func TestErrorsOfPartners(t *testing.T) {
	dir := folder.Of(t, "i/a.tif", "i/b.tif", "m/a.tif", "m/b.tiff", "n/a.TIF", "n/b.TIF", "s/a.geojson={}",
		"s/b.GEOJSON={}", "u/A.TIF", "t/a_1.tif", "t/a_2.tif", "q/x_y.tif")
	for name, text := range map[string]string{"v/a.tif": "", "w/b.tif": ""} {
		folder.Write(t, filepath.Join(dir, name), text)
	}
	image := catalog.Source{Field: "image", Pattern: "i/{id}.tif"}
	beside := func(pattern string, optional bool) catalog.Source {
		return catalog.Source{Field: "s", Pattern: pattern, Beside: true, Optional: optional}
	}
	field := func(pattern string) catalog.Source { return catalog.Source{Field: "m", Pattern: pattern} }
	for says, fields := range map[string][]catalog.Source{
		`but m/b.tiff is there: "m/{id}.*" takes any ending`: {image, field("m/{id}.tif")},
		`missing "fill" of the field keeps them`:             {image, field("t/{id}_1.tif")},
		`no file v/b.tif for the id "b"; 2 files are missing`: {image, field("v/{id}.tif"),
			{Field: "other", Pattern: "w/{id}.tif"}},
		`field "m"`: {image, field("../none/{id}.tif")},
		`field "s"`: {image, beside("../none/{id}.geojson", true)},
		`leaves out the samples that lack one: not found`:                     {field("t/{id}_1.tif"), image},
		`missing "empty" takes samples without a file`:                        {image, beside("s/{id}.geojson", false)},
		`no file matches the pattern "n/{id}.tif", but "n/a.TIF" does: write`: {image, field("n/{id}.tif")},
		`no file matches the pattern "z/{id}.tif": not found`:                 {image, field("z/{id}.tif")},
		`no file matches the pattern "z/{id}_{n}.tif": names and * stand`:     {field("z/{id}_{n}.tif")},
		`no file matches the pattern "z/*{id}.tif": names and * stand`:        {field("z/*{id}.tif")},
		`no file matches the pattern "s/{id}.csv": not found`:                 {image, beside("s/{id}.csv", true)},
		`no file matches the pattern "u/{id}.tif", but "u/A.TIF" does`:        {image, beside("u/{id}.tif", true)},
		`none of 2 samples has a file "s/{id}.GEOJSON"`: {field("t/a_{id}.tif"),
			beside("s/{id}.GEOJSON", true)},
		`two files of the pattern "t/{id}_*.tif" have the id "a": a name in`:     {image, field("t/{id}_*.tif")},
		`no id has a file or array for every field: 3 lack one, such as i/x.tif`: {image, field("q/{id}_y.tif")},
	} {
		drop := strings.HasPrefix(says, "no id")
		_, err := catalog.Open(t.Context(), dir, fields, catalog.Options{DropIncomplete: drop})
		if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestRowsOfPairs: samples have the order of their paths, and none twice; files outside of the directory are those of
// the patterns that lead there.
func TestRowsOfPairs(t *testing.T) {
	type row struct {
		ID    string `parquet:"id"`
		URI   string `parquet:"uri"`
		Index []byte `parquet:"chaski:index"`
	}
	dir := folder.Of(t, "d/t/x/7.tif", "m/7.tif")
	path := filepath.Join(dir, "d", "c.parquet")
	field := func(name, pattern string) catalog.Source { return catalog.Source{Field: name, Pattern: pattern} }
	for _, c := range []struct {
		uris, want, says string
		fields           []catalog.Source
	}{
		{"b.tif a.tif", "[a.tif b.tif]", "", []catalog.Source{field("x", "{id}.tif")}},
		{"a.tif a.tif", "", `two files of the pattern "{id}.tif" have the id "a"`,
			[]catalog.Source{field("x", "{id}.tif")}},
		{"../m/7.tif", "[../m/7.tif]", "", []catalog.Source{field("x", "*/m/{id}.tif")}},
		{"", "[t/x/7.tif]", "", []catalog.Source{field("x", "{split}/{site}/{id}.tif"), field("y", "../m/{id}.tif")}},
	} {
		src, rows := filepath.Dir(path), []row{}
		for uri := range strings.FieldsSeq(c.uris) {
			rows, src = append(rows, row{"stored", uri, nil}), path
		}
		writeTable(t, path, rows, nil)
		table, err := catalog.Open(t.Context(), src, c.fields, catalog.Options{})
		if err != nil || c.says != "" {
			if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), c.says) || c.says == "" {
				t.Errorf("%s: %v, want %q", c.uris, err, c.says)
			}
			continue
		}
		if got := fmt.Sprint(folder.IDs(t, table)); got != c.want {
			t.Errorf("%s: samples %s, want %s", c.uris, got, c.want)
		}
		data, err := table.Data(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, column := range data.Columns() {
			if names[column.Name] {
				t.Errorf("%s: two columns are called %s", c.uris, column.Name)
			}
			names[column.Name] = true
		}
		_ = table.Close()
	}
}
