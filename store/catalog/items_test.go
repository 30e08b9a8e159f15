package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// stacItem returns the JSON of a STAC item with two assets, number i.tif and the next.
func stacItem(i int, more string) string {
	return fmt.Sprintf(`{"type": "Feature", "stac_version": "1.0.0", "id": "S2_%03d", "links": [],
		"geometry": null, "bbox": [%d, 40, %d.5, 41], "collection": "sentinel-2",
		"properties": {"datetime": "2024-03-%02dT10:00:00.5Z", "eo:cloud_cover": %d.25, "rank": %d, "clear": %t%s,
			"list": [1, 2], "processing": {"level": 2}},
		"assets": {"B04": {"href": "./%d.tif", "type": "image/tiff"}, "B08": {"href": "%d.tif"}}}`,
		i, i, i, i+1, i*3, i, i%2 == 0, more, i, i+1)
}

// TestItems promises that items are one table in every form in which they are written: a collection, a list, JSON
// lines, with members in any order; and that the catalog of them has the same values.
func TestItems(t *testing.T) {
	ctx := t.Context()
	var list []string
	for i := range 4 {
		more := ""
		if i == 2 {
			more = `, "note": "a \"quoted\" é", "mixed": "x"`
		} else if i == 3 {
			more = `, "mixed": 7`
		}
		list = append(list, strings.ReplaceAll(stacItem(i, more), "\n", " "))
	}
	all := strings.Join(list, ",\n")
	dir := folder.Of(t, "0.tif", "1.tif", "2.tif", "3.tif", "4.tif",
		"collection.json="+`{"type": "FeatureCollection", "links": [{"href": "x"}], "features": [`+all+`]}`,
		"after.geojson="+`{"features": [`+all+`], "context": {"returned": 4}, "type": "FeatureCollection"}`,
		"list.json=["+all+"]", "lines.ndjson="+strings.Join(list, "\n")+"\n")
	file := filepath.Join(dir, "items.parquet")
	var counts build.Counts
	pair := []catalog.Source{{Field: "B04"}, {Field: "nir", Column: "B08"}}
	folder.Index(t, file, build.Options{Counts: &counts, Fields: pair},
		filepath.Join(dir, "collection.json"))
	if counts.Rows != 4 {
		t.Errorf("counts %+v", counts)
	}
	want := []string{
		`1 S2_000 sentinel-2 2024-03-01T10:00:00.5Z 0.25 0 1 0 0.5 null null`,
		`2 S2_001 sentinel-2 2024-03-02T10:00:00.5Z 3.25 1 0 1 1.5 null null`,
		`3 S2_002 sentinel-2 2024-03-03T10:00:00.5Z 6.25 2 1 2 2.5 a "quoted" é x`,
		`4 S2_003 sentinel-2 2024-03-04T10:00:00.5Z 9.25 3 0 3 3.5 null 7`,
	}
	for _, name := range []string{"collection.json", "after.geojson", "list.json", "lines.ndjson", "items.parquet"} {
		src := filepath.Join(dir, name)
		fields := []catalog.Source{{Field: "B04"}, {Field: "nir", Column: "B08"}}
		if name == "items.parquet" {
			fields[1].Column = ""
		}
		columns := []string{"id", "collection", "datetime", "eo:cloud_cover", "rank", "clear", "bbox.xmin", "bbox.xmax",
			"note", "mixed"}
		tab, err := catalog.Open(ctx, src, fields, catalog.Options{Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		if unit := unitOf(tab, "datetime"); unit != time.Microsecond {
			t.Errorf("%s: datetime in %v", name, unit)
		}
		got := make([]string, tab.Len())
		for row := range tab.Len() {
			for f, asset := range []int64{row, row + 1} {
				a, err := tab.Asset(ctx, f, row)
				if err != nil || a.Index.Height != int(asset+1) {
					t.Fatalf("%s: row %d field %d: %v, %v", name, row, f, a.Index, err)
				}
				got[row] = fmt.Sprint(a.Index.Height - 1)
			}
		}
		for _, c := range columns {
			kind, err := scanned(ctx, tab, c, func(row int64, v catalog.Value) error {
				got[row] += " " + show(c, v)
				return nil
			})
			if err != nil || kind == catalog.Raster {
				t.Fatal(name, c, kind, err)
			}
		}
		for row := range want {
			if got[row] != want[row] {
				t.Errorf("%s row %d:\n%s, want\n%s", name, row, got[row], want[row])
			}
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
}

// show formats a value of one of the columns of TestItems.
func show(column string, v catalog.Value) string {
	switch {
	case v.Null:
		return "null"
	case column == "datetime":
		return time.UnixMicro(v.Int).UTC().Format(time.RFC3339Nano)
	case string(v.Text) != "":
		return string(v.Text)
	case v.Float != 0:
		return fmt.Sprint(v.Float)
	}
	return fmt.Sprint(v.Int)
}

// TestLabelsAreNoTable: the error about JSON without a column says what reads labels and items.
func TestLabelsAreNoTable(t *testing.T) {
	for _, text := range []string{`{"images": [{"id": 1}], "annotations": []}`,
		`{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": null}]}`} {
		path := filepath.Join(folder.Of(t, "rows.json="+text), "rows.json")
		fields := []catalog.Source{{Field: "image", Column: "image"}}
		_, err := catalog.Open(t.Context(), path, fields, catalog.Options{})
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "(chaski.stac); labels, such as") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPlainRows reads objects that are not STAC items as rows, and objects by name with the column "key".
func TestPlainRows(t *testing.T) {
	for text, want := range map[string]string{
		`[{"key": "a", "y": 1}, {"y": 2, "key": "b", "z": {}}, {"key": "c"}]`:                   "a 1, b 2, c null",
		`{"a": {"y": 1, "bbox": 3}, "b": {"y": 2}, "c": {"key": "c"}}`:                          "a 1, b 2, c null",
		"{\"key\": \"a\", \"y\": 1}\n{\"key\": \"b\", \"y\": 2}\n{\"key\": \"c\", \"y\": null}": "a 1, b 2, c null",
		`{"a": {"y": 1}, "b": 3}`:        "member b",
		`{"a": {"y": 1}, "b": null}`:     "member b",
		`{"a": {"y": 1}, "b": {"y": 2`:   "unexpected EOF",
		`{"a": 1, "c": null, "b": 2}`:    `no column "y"`, // values by name
		`[{"key": "a", "y": 1}, 3]`:      "row 1",
		`{"key": "a", "y": {"no": "1"}}`: "objects",
	} {
		dir := folder.Of(t, "rows.json="+text)
		fields := []catalog.Source{{Field: "key", Column: "key", Kind: catalog.Text}, {Field: "y", Column: "y"}}
		tab, err := catalog.Open(t.Context(), filepath.Join(dir, "rows.json"), fields, catalog.Options{})
		if err != nil {
			if !strings.Contains(err.Error(), want) || fault.KindOf(err) == 0 {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		var rows []string
		for row := range tab.Len() {
			key, err1 := tab.Value(t.Context(), 0, row)
			y, err2 := tab.Value(t.Context(), 1, row)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(key.Text)+" "+map[bool]string{true: "null", false: fmt.Sprint(y.Int)}[y.Null])
		}
		if got := strings.Join(rows, ", "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		_ = tab.Close()
	}
}

// TestItemsWithoutAnAsset promises that a row without the asset of a field is an error, or is left out and counted.
func TestItemsWithoutAnAsset(t *testing.T) {
	second := strings.Replace(stacItem(1, ""), `"B08"`, `"B8A"`, 1)
	dir := folder.Of(t, "0.tif", "1.tif", "2.tif", "items.json=["+stacItem(0, "")+","+second+"]")
	fields := []catalog.Source{{Field: "B04"}, {Field: "B08"}}
	var counts build.Counts
	o := build.Options{Counts: &counts, Fields: fields, Base: dir}
	_, err := build.Write(t.Context(), discard{}, []string{filepath.Join(dir, "items.json")}, o)
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(fmt.Sprint(err), `field "B08" row 1`) {
		t.Error(err)
	}
	o.DropIncomplete = true
	if n, err := build.Write(t.Context(), discard{}, []string{filepath.Join(dir, "items.json")}, o); err != nil ||
		n != 1 || counts.Incomplete != 1 {
		t.Error(n, err, counts)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestBadItems promises that what is not items is refused by kind.
func TestBadItems(t *testing.T) {
	race.SkipCovered(t)
	good := stacItem(0, "")
	for text, kind := range map[string]fault.Kind{
		"":                                      fault.Corrupt,
		"{":                                     fault.Corrupt,
		"[":                                     fault.Corrupt,
		"[]":                                    fault.Corrupt,
		"7":                                     fault.Corrupt,
		"{}":                                    fault.Unsupported,
		`{"type": "FeatureCollection"}`:         fault.Unsupported,
		`{"features": 3}`:                       fault.Corrupt,
		`{"features": [3]}`:                     fault.Corrupt,
		`{"features": []}`:                      fault.Corrupt,
		`{"type": "Feature", "properties": {}}`: fault.NotFound, // without an asset
		good + "x":                              fault.Corrupt,
		good[:len(good)-3]:                      fault.Corrupt,
		strings.Replace(good, "[0, 40", "[40", 1):          fault.Corrupt,
		strings.Replace(good, `"id"`, `"id\ud800"`, 1):     0, // a name that nobody asks for
		strings.Replace(good, `40, 0.5`, `40, 0, 1, 9`, 1): 0, // with heights
	} {
		dir := folder.Of(t, "0.tif", "1.tif", "items.json="+text)
		tab, err := catalog.Open(t.Context(), filepath.Join(dir, "items.json"), []catalog.Source{{Field: "B04"}},
			catalog.Options{})
		if fault.KindOf(err) != kind || (err == nil) != (kind == 0) {
			t.Errorf("%.60s: %v, want kind %v", text, err, kind)
		}
		if err == nil {
			_ = tab.Close()
		}
	}
	// Every item has other properties, so that the table is far larger than the file.
	var wide strings.Builder
	for i := range 1100 {
		wide.WriteString(stacItem(0, fmt.Sprintf(`, "p%d": 1`, i)))
	}
	dir := folder.Of(t, "items.json="+wide.String())
	_, err := catalog.Open(t.Context(), filepath.Join(dir, "items.json"), []catalog.Source{{Field: "B04"}},
		catalog.Options{AllColumns: true})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("1,100 properties: %v", err)
	}
}

// TestItemsAreCharged promises that a table of items is charged to the budget with the values that items lack: a file
// of which few items have all properties makes a table many times its size.
func TestItemsAreCharged(t *testing.T) {
	race.SkipCovered(t)
	var wide, few strings.Builder
	for i := range 500 {
		fmt.Fprintf(&wide, `, "p%d": 1`, i)
	}
	const items = 400
	for i := range items - 1 {
		few.WriteString(stacItem(i, ""))
	}
	for name, text := range map[string]string{
		"first": stacItem(0, wide.String()) + few.String(), "last": few.String() + stacItem(0, wide.String()),
	} {
		dir := folder.Of(t, "items.json="+text)
		run := func(limit int64) (held int64, err error) {
			a, err := budget.New(limit).Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			tab, err := catalog.Open(budget.With(t.Context(), a), filepath.Join(dir, "items.json"),
				[]catalog.Source{{Field: "B04"}}, catalog.Options{AllColumns: true})
			if err == nil {
				err = tab.Close()
			}
			return a.Held(), err
		}
		const size = 500 * items * 9 // an end and a null of each value
		if held, err := run(1 << 30); err != nil || held < size {
			t.Errorf("%s: %d bytes are charged, %d are made: %v", name, held, size, err)
		}
		if _, err := run(size); fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzItems: any bytes are a table or refused by kind.
func FuzzItems(f *testing.F) {
	item := stacItem(0, "")
	f.Add(item, "B04", "")
	f.Add("["+item+","+stacItem(1, `, "x": null`)+"]", "eo:cloud_cover", "")
	f.Add(`{"features": [`+item+`]}`, "id", "features")
	f.Add(item+"\n"+item, "datetime", "properties")
	f.Add(`{"n": 1, "a": [{"s": [{"raw": "x"}, {"k": 2}], "f": "a.png"}]}`, "s.raw", "a")
	f.Add(`{"n": 1, "a": [{"s": [{"raw": "x"}, {"k": 2}], "f": "a.png"}]}`, "f", "a.s")
	f.Add(`{"0": {"s": [["t", "a.png"]], "e": [["u", "b.png"]]}}`, "e.1.0", "{id}.s")
	f.Add(`{"crop": ["a", "b"], "wood": [7]}`, "value", "{class}[]")
	f.Add(strings.Repeat("[", 100), "value", "a")
	f.Fuzz(func(t *testing.T, text, column, member string) {
		name := "/t.json"
		if member != "" && !strings.Contains(member, "/") {
			name += "::" + member
		}
		taken.Check(t, 2*len(text), taken.FactorRows, func() {
			use(t, name, []byte(text), catalog.Source{Field: "image", Column: column})
			use(t, name, []byte(text), catalog.Source{Field: "text", Column: column, Kind: catalog.Text})
		})
	})
}

// TestItemsBesideAMap compares columns of random items with a map of each item's values.
func TestItemsBesideAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := []any{nil, 1, -2.5, 1e300, "x", "", "2020-01-01T00:00:00Z", true, false, []int{1}}
	for range 200 {
		var items []map[string]any
		n := 1 + r.IntN(6)
		for range n {
			props := map[string]any{}
			for _, name := range []string{"a", "b", "c"} {
				if r.IntN(3) > 0 {
					props[name] = values[r.IntN(len(values))]
				}
			}
			items = append(items, map[string]any{"type": "Feature", "id": "i", "properties": props,
				"assets": map[string]any{"B04": map[string]any{"href": "x.tif"}}})
		}
		text, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		tab, err := catalog.Open(t.Context(), "/t.json", []catalog.Source{{Field: "B04"}},
			catalog.Options{Opener: folder.Memory{Name: "/t.json", Data: text}, AllColumns: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			row := 0
			_, err := scanned(context.Background(), tab, name, func(at int64, v catalog.Value) error {
				if row++; !sameValue(items[at]["properties"].(map[string]any)[name], v) {
					t.Errorf("%s: %s of item %d is %+v", text, name, at, v)
				}
				return nil
			})
			lists := false // and nothing else
			for _, item := range items {
				v := item["properties"].(map[string]any)[name]
				if _, list := v.([]int); v != nil {
					if lists = list; !list {
						break
					}
				}
			}
			want := map[bool]fault.Kind{true: fault.Unsupported, false: fault.NotFound}[lists]
			if err == nil && (lists || row != n) || err != nil && fault.KindOf(err) != want {
				t.Errorf("%s: %d rows of %s, %v", text, row, name, err)
			}
		}
		_ = tab.Close()
	}
}

// sameValue reports whether a value of a column holds that of a property.
func sameValue(want any, v catalog.Value) bool {
	b, _ := json.Marshal(want)
	switch want := want.(type) {
	case nil, []int:
		return v.Null
	case string:
		at, err := time.Parse(time.RFC3339, want)
		return !v.Null && (string(v.Text) == want || err == nil && v.Int == at.UnixMicro())
	case bool:
		n := map[bool]int64{true: 1}[want]
		number := v.Int == n && v.Float == 0 && string(v.Text) == "" || v.Float == float64(n)
		return !v.Null && (number || string(v.Text) == fmt.Sprint(n))
	case int:
		return v.Int == int64(want) || v.Float == float64(want) || string(v.Text) == string(b)
	}
	return v.Float == want || string(v.Text) == string(b)
}
