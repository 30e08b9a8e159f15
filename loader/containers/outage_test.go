package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// everything opens a dataset, and returns what it has of each sample.
func everything(ctx context.Context, sp spec.Spec, o resources.Options) (found [][]any, err error) {
	table, err := new(kind).OpenDataset(ctx, &spec.Source{Source: sp.Source}, sp.Fields, o)
	if err != nil {
		return nil, err
	}
	defer table.Close() //nolint:errcheck // nothing was written
	for row := range table.N {
		id, err := table.ID(ctx, row)
		if err != nil {
			return nil, err
		}
		line := []any{id}
		for _, f := range table.Fields {
			v, err := f.Value(ctx, row)
			if err != nil {
				return nil, err
			}
			line = append(line, v)
			if f.Kind == catalog.Raster {
				a, err := f.Asset(ctx, row)
				if err != nil && fault.KindOf(err) != fault.NotFound {
					return nil, err
				}
				line = append(line, a.URI, a.Offset, a.Names, a.Place, a.Index)
			}
		}
		found = append(found, line)
	}
	err = table.ScanIDs(ctx, func(row int64, id string) error {
		if id != found[row][0] {
			return fmt.Errorf("row %d is %s", row, id)
		}
		return nil
	})
	return found, err
}

// TestOutages: whichever read of a container fails, what is asked of it fails with that error, or is the same as
// without.
func TestOutages(t *testing.T) {
	data := corpus.Testdata(t)
	coast, scenes := filepath.Join(data, "coast"), filepath.Join(data, "taco3", "scenes.zip")
	options := func(files source.Opener) resources.Options {
		return resources.Options{Opener: files, Workers: 1}.WithDefaults()
	}
	each := func(name string, do func(files source.Opener) (any, error)) {
		outage.Each(t, name, func(files source.Opener) (any, error) {
			found, err := do(files)
			if err != nil && !errors.Is(err, outage.Err) {
				t.Errorf("%s: %v", name, err)
			}
			return found, err
		})
	}
	image := spec.Field{Name: "image", Column: "s2/img.tif"}
	for name, sp := range map[string]spec.Spec{
		"a ZIP": {Source: filepath.Join(coast, "coast.tacozip"),
			Fields: []spec.Field{image, {Name: "haze", Column: "s2/img.tif@haze"}}},
		"a folder": {Source: filepath.Join(coast, "coast_dir"), Fields: []spec.Field{image}},
		"steps":    {Source: scenes, Fields: []spec.Field{{Name: "seq", Column: "seq/t"}}},
		"headers": {Source: newHeaded(t, t.TempDir()).write(t, filepath.Join(t.TempDir(), "c.zip"), build.Cozip),
			Fields: []spec.Field{{Name: "image", Column: "image.tif"}}},
		"rasters": {Source: filepath.Join(coast, "flat.tacozip"), Fields: []spec.Field{{Name: "image"}}},
	} {
		each(name, func(files source.Opener) (any, error) {
			return everything(t.Context(), sp, options(files))
		})
	}
	stream := filepath.Join(data, "containers", "taco-v1", "stream_n2_top.taco")
	for _, path := range []string{filepath.Join(coast, "parts"), filepath.Join(coast, "coast_dir"), scenes, stream} {
		each(path, func(files source.Opener) (any, error) {
			return new(kind).Describe(t.Context(), path, options(files))
		})
	}
	for _, name := range []string{filepath.Join(coast, "coast.tacozip") + "::tile_00/s2/img.tif",
		stream + "::roi_1/t1/t1-img::4"} {
		each(name, func(files source.Opener) (any, error) {
			asset, err := new(kind).Member(t.Context(), options(files), name)
			return []any{asset.URI, asset.Offset, asset.Index}, err
		})
	}
	one, _ := deepBox(t)
	anywhere := strings.Replace(one, `, "level": 2`, "", 1) // the level is looked for
	spec200 := filepath.Join(data, "containers", "taco-v2", "spec200")
	for where, names := range map[string][]string{`[]`: {"below1", "entries0", "entries1", "l1"},
		`[` + one + `]`: {"below2", "entries2"}, `[` + anywhere + `]`: {"data"},
		`[{"concat": [{"paths": 1, "where": [` + one + `]}, {"paths": 1}]}]`: {"l2"},
		`[{"concat": [{"paths": 1}, {"paths": 1}]}]`:                         {"level2"}} {
		for _, name := range []string{"three_level.tacozip", "three_level_dir"} { // a file, and one for each level
			each(name+where, func(files source.Opener) (any, error) {
				return answers(t.Context(), options(files), filepath.Join(spec200, name), where, names)
			})
		}
	}
}

// answers returns the cells of tables that queries about a container, or about it twice, name, or of what these queries
// answer.
func answers(ctx context.Context, o resources.Options, path, where string, names []string) ([][]string, error) {
	var found [][]string
	var conditions []spec.Condition
	if err := json.Unmarshal([]byte(where), &conditions); err != nil {
		return nil, err
	}
	paths := []string{path}
	if len(conditions) > 0 && conditions[0].Concat != nil {
		paths = append(paths, path)
	}
	set, err := taco.Open(ctx, o.Opener, paths, taco.Options{})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	named, err := Set{set}.Tables(ctx, conditions, o)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		ask := named
		if strings.HasPrefix(name, "SELECT") {
			ask = func(ctx context.Context, sql string) (*tables.Table, error) { return query.Run(ctx, sql, named) }
		}
		table, err := ask(ctx, name)
		if err != nil {
			return nil, err
		}
		for i := range table.Columns() {
			v, err := table.At(ctx, i)
			if err != nil {
				return nil, err
			}
			var texts []string
			for row := range table.Len() {
				texts = append(texts, string(v.AppendJSON(nil, row)))
			}
			found = append(found, texts)
		}
	}
	return found, nil
}

// TestConcatOfTortillas: a group of Tortillas without a level has no rows there, whatever the groups beside it select.
func TestConcatOfTortillas(t *testing.T) {
	dir, o := t.TempDir(), options(t)
	flat, deep := filepath.Join(dir, "flat.tortilla"), filepath.Join(dir, "deep.tortilla")
	inner := [][]byte{tortilla(t, []string{"2020-01-01", "2021-01-01"}, nil), tortilla(t, []string{"2022-01-01"}, nil)}
	testfile.Write(t, flat, inner[0])
	testfile.Write(t, deep, tortilla(t, []string{"2020-01-01", "2021-01-01"}, inner))
	const late = `{"datetime": "2021-01-01/..", "level": 1}`
	for _, paths := range [][]string{{deep, flat}, {flat, deep}} {
		set := opened(t, o, paths)
		where := []spec.Condition{{Concat: []spec.Group{{Paths: 1}, {Paths: 1}}}}
		for i, path := range paths {
			if path == deep {
				where[0].Concat[i].Where = make([]spec.Condition, 1)
				if err := json.Unmarshal([]byte(late), &where[0].Concat[i].Where[0]); err != nil {
					t.Fatal(err)
				}
			}
		}
		named, err := set.Tables(t.Context(), where, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"below1", "l1"} {
			table, err := query.Run(t.Context(), `SELECT "l1:stac:time_start" FROM `+name, named)
			if err != nil {
				t.Fatal(err)
			}
			got := cells(t, table)["l1:stac:time_start"]
			if !slices.Equal(got, []string{`"2021-01-01"`, `"2022-01-01"`}) {
				t.Errorf("%s of %s first: %q", name, filepath.Base(paths[0]), got)
			}
		}
	}
}

// TestConcatOfDeepConditions: after a concat the tables of levels have, one group after the other, the rows that a
// condition on places leaves in a group, and all rows of a group without one.
func TestConcatOfDeepConditions(t *testing.T) {
	one, other := deepBox(t)
	three := filepath.Join(corpus.Testdata(t), "containers", "taco-v2", "spec200", "three_level.tacozip")
	from := func(table, where string) (all [][]string) {
		for level := range 3 {
			query := fmt.Sprintf(`SELECT "l%d:id" FROM %s%d`, level, table, level)
			found, err := answers(t.Context(), options(t), three, where, []string{query})
			if err != nil {
				t.Fatal(where, err)
			}
			all = append(all, found[0])
		}
		return all
	}
	ids := func(where string) [][]string { return from("below", where) }
	if free := strings.Replace(one, `, "level": 2`, "", 1); free == one ||
		!reflect.DeepEqual(ids(`[`+free+`]`), ids(`[`+one+`]`)) {
		t.Error("a condition on places finds others than on their level")
	}
	for _, groups := range [][2]string{{one, other}, {one, ""}, {"", other}, {"", ""}} {
		want := ids(`[` + groups[0] + `]`)
		for level, more := range ids(`[` + groups[1] + `]`) {
			want[level] = append(want[level], more...)
		}
		where := fmt.Sprintf(`[{"concat": [{"paths": 1, "where": [%s]}, {"paths": 1, "where": [%s]}]}]`, groups[0],
			groups[1])
		for _, table := range []string{"below", "l"} {
			if got := from(table, where); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %s: %q, want %q", groups, table, got, want)
			}
		}
	}
}

// TestValues: types of columns are kinds of fields, and values of fields are those of the column.
func TestValues(t *testing.T) {
	number, text := tables.Type{Kind: tables.Int64, Bits: 64}, tables.Type{Kind: tables.String}
	list := func(of tables.Type) tables.Type { return tables.Type{Kind: tables.List, Elem: &of} }
	for _, c := range []struct {
		of   tables.Type
		kind catalog.Kind
	}{{number, catalog.Int}, {tables.Type{Kind: tables.Bool}, catalog.Int},
		{tables.Type{Kind: tables.Date}, catalog.Int}, {tables.Type{Kind: tables.Float64}, catalog.Float},
		{text, catalog.Text}, {list(number), catalog.Int | column.List}, {list(text), catalog.Text | column.List}} {
		if made, err := tables.NewNulls(c.of, 1).Column("x"); err != nil || made.Kind != c.kind {
			t.Errorf("%v is %v, %v; want %v", c.of, made, err, c.kind)
		}
	}
	group := tables.Type{Kind: tables.Struct}
	for _, of := range []tables.Type{list(list(number)), group, list(group)} {
		if made, err := tables.NewNulls(of, 1).Column("x"); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%v is %v, %v", of, made, err)
		}
	}
	ints := tables.NewInts(number, []int64{4, 5, 6}, []bool{false, true, false})
	lists := tables.NewList(ints, []uint32{0, 2, 3}, nil)
	halves := tables.NewFloats(tables.Type{Kind: tables.Float64}, []float64{.5}, nil)
	valueOf := func(v *tables.Vector, row int64) catalog.Value {
		made, err := v.Column("x")
		if err != nil {
			t.Fatal(err)
		}
		value, err := made.Cell(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	got, err := json.Marshal([]catalog.Value{valueOf(ints, 2), valueOf(ints, 1),
		valueOf(tables.NewStrings([]string{"a"}, nil), 0), valueOf(halves, 0), valueOf(lists, 0), valueOf(lists, 1)})
	want, werr := json.Marshal([]catalog.Value{{Int: 6}, {Null: true}, {Text: []byte("a")}, {Float: .5},
		{List: []catalog.Value{{Int: 4}, {Null: true}}}, {List: []catalog.Value{{Int: 6}}}})
	if err != nil || werr != nil || string(got) != string(want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAssetCost: an asset costs 16 bytes a chunk of the image and of its mask, and its texts and bytes.
func TestAssetCost(t *testing.T) {
	cost := func(chunks, masks int, text string, bytes int) int64 {
		a := catalog.Asset{URI: text, Member: text, Bytes: make([]byte, bytes),
			Index: &chunk.Index{Ranges: make([]chunk.Range, chunks)}}
		if masks >= 0 {
			a.Index.Mask = &chunk.Index{Ranges: make([]chunk.Range, masks)}
		}
		return assetCost(a)
	}
	none := cost(0, -1, "", 0)
	if got := cost(3, -1, "abc", 7) - none; got != 3*16+2*3+7 {
		t.Errorf("%d bytes", got)
	}
	if got := cost(0, 5, "", 0) - none; got != 256+5*16 {
		t.Errorf("a mask of %d bytes", got)
	}
	if none != 512 {
		t.Errorf("%d bytes of an empty asset", none)
	}
}
