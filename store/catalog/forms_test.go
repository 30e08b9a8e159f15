package catalog_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// form is one of the ways in which a dataset of three images, their masks and their columns may be stored.
type form struct {
	source string
	fields []catalog.Source
	masks  bool // field 1 has the masks
	values bool // the last three fields are score, count and word, of which the table also has columns
}

// formRow is a row of the tables.
type formRow struct {
	Image string   `parquet:"image"`
	Mask  string   `parquet:"mask"`
	Score *float64 `parquet:"score,optional"`
	Count int64    `parquet:"count"`
	Word  string   `parquet:"word"`
}

// storedForms writes the dataset, whose rasters GDAL and rumi wrote, with files beside them, in all forms.
func storedForms(t *testing.T) (dir string, forms map[string]form) {
	t.Helper()
	data := corpus.Testdata(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"images/a.tif": "beside/pam.tif", "images/b.tif": "extras/scaled.tif",
		"images/c.tif": "raster/rumi-3/unit-t-b-y-x-0.rumi", "masks/a.tif": "masks/bytes.tif",
		"masks/b.tif": "beside/mask.tif", "masks/c.tif": "extras/palette.tif"} {
		folder.Write(t, filepath.Join(dir, name), string(testfile.Read(t, filepath.Join(data, from))))
		for _, ext := range []string{".aux.xml", ".msk"} {
			if b, err := os.ReadFile(filepath.Join(data, from+ext)); err == nil {
				folder.Write(t, filepath.Join(dir, name+ext), string(b))
			}
		}
	}
	half := .5
	rows := []formRow{{"images/a.tif", "masks/a.tif", &half, 3, "x"}, {"images/b.tif", "masks/b.tif", nil, 0, "é, y"},
		{"images/c.tif", "masks/c.tif", &half, -2, "z"}}
	csv, lines, objects := "image,mask,score,count,word\n", "", []string{}
	for _, r := range rows {
		score := ""
		if r.Score != nil {
			score = fmt.Sprint(*r.Score)
		}
		csv += fmt.Sprintf("%s,%s,%s,%d,\"%s\"\n", r.Image, r.Mask, score, r.Count, r.Word)
		object := fmt.Sprintf(`{"image": %q, "mask": %q, "score": %s, "count": %d, "word": %q}`, r.Image, r.Mask,
			strings.Replace("null"+score, "null0", "0", 1), r.Count, r.Word)
		lines, objects = lines+object+"\n", append(objects, object)
	}
	folder.Write(t, filepath.Join(dir, "t.csv"), csv)
	tabs := strings.ReplaceAll(csv, ",", "\t")
	folder.Write(t, filepath.Join(dir, "t.tsv"), strings.ReplaceAll(tabs, "é\t y", "é, y"))
	folder.Write(t, filepath.Join(dir, "t.jsonl"), lines)
	folder.Write(t, filepath.Join(dir, "t.json"), "["+strings.Join(objects, ",")+"]")
	if err := parquet.WriteFile(filepath.Join(dir, "t.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	image, both := []catalog.Source{{Field: "image"}}, []catalog.Source{{Field: "image", Column: "image"},
		{Field: "mask", Column: "mask"}}
	patterns := []catalog.Source{{Field: "image", Pattern: "images/{id}.tif"},
		{Field: "mask", Pattern: "masks/{id}.tif"}}
	values := []catalog.Source{{Field: "score"}, {Field: "count"}, {Field: "word"}}
	folder.Index(t, filepath.Join(dir, "catalog.parquet"), build.Options{}, filepath.Join(dir, "images"))
	folder.Index(t, filepath.Join(dir, "all.parquet"), build.Options{}, filepath.Join(dir, "images"),
		filepath.Join(dir, "masks"))
	folder.Index(t, filepath.Join(dir, "pairs.parquet"), build.Options{Fields: patterns}, dir)
	folder.Index(t, filepath.Join(dir, "joined.parquet"), build.Options{Fields: both}, filepath.Join(dir, "t.csv"))
	named := []catalog.Source{{Field: "image"}, {Field: "mask"}}
	forms = map[string]form{
		"a directory":        {filepath.Join(dir, "images"), image, false, false},
		"a glob":             {filepath.Join(dir, "images", "*.tif"), image, false, false},
		"a catalog":          {filepath.Join(dir, "catalog.parquet"), image, false, false},
		"patterns":           {dir, patterns, true, false},
		"a catalog's pairs":  {filepath.Join(dir, "all.parquet"), patterns, true, false},
		"a catalog of pairs": {filepath.Join(dir, "pairs.parquet"), named, true, false},
		"an indexed table":   {filepath.Join(dir, "joined.parquet"), append(named, values...), true, true},
	}
	for _, ext := range []string{"csv", "tsv", "jsonl", "json", "parquet"} {
		forms[ext] = form{filepath.Join(dir, "t."+ext), append(slices.Clone(both), values...), true, true}
	}
	return dir, forms
}

// assetText says what an asset is, but for what differs between a file and a catalog that keeps its header.
func assetText(a *catalog.Asset) string {
	mask := ""
	if a.MaskFile != nil {
		mask = a.MaskFile.URI
	}
	place, _ := json.Marshal(a.Place)
	return fmt.Sprintf("%s %q %x %s %s %q", a.URI, a.Names, blob.Append(nil, a.Index), place, mask, a.Beside)
}

// contents opens a form, and returns what it says of each row. It fails where two questions have different answers.
func contents(ctx context.Context, f form, o catalog.Options) (lines [][]string, err error) {
	o.AllColumns = true
	table, err := catalog.Open(ctx, f.source, f.fields, o)
	if err != nil {
		return nil, err
	}
	defer table.Close() //nolint:errcheck // nothing was written
	lines = make([][]string, table.Len())
	for row := range table.Len() {
		for field := range f.fields {
			v, err := table.Value(ctx, field, row)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if lines[row] = append(lines[row], string(text)); table.Kind(field) != catalog.Raster {
				continue
			}
			a, err := table.Asset(ctx, field, row)
			if err != nil {
				return nil, err
			}
			lines[row] = append(lines[row], assetText(&a))
		}
		id, err := table.ID(ctx, row)
		if err != nil {
			return nil, err
		}
		lines[row] = append(lines[row], id)
	}
	err = table.ScanIDs(ctx, func(row int64, id string) error {
		if line := lines[row]; line[len(line)-1] != id {
			return fmt.Errorf("row %d is %s, and %s", row, line[len(line)-1], id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.values {
		err = columnsOf(ctx, table, f, lines)
	}
	lines = append(lines, []string{table.Fingerprint()})
	if err != nil {
		return lines, err
	}
	more, err := answers(ctx, table)
	return append(lines, more...), err
}

// answers asks a table for what it says of all rows. It fails where its assets say otherwise.
func answers(ctx context.Context, table *catalog.Table) (lines [][]string, err error) {
	var keys []string
	err = table.ScanKeys(ctx, func(row int64, key string) error {
		if keys = append(keys, key); row != int64(len(keys)-1) {
			return fmt.Errorf("the key of row %d is number %d", row, len(keys))
		}
		return nil
	})
	if err != nil || int64(len(keys)) != table.Len() {
		return nil, errors.Join(err, fmt.Errorf("%d keys of %d", len(keys), table.Len()))
	}
	lines = append(lines, keys)
	for field := range table.Fields() {
		if table.Kind(field) != catalog.Raster {
			if _, err := table.Asset(ctx, field, 0); err == nil || fault.KindOf(err) != 0 {
				return nil, fmt.Errorf("an asset of field %d: %w", field, err)
			}
			continue
		}
		sizes, err := table.Sizes(ctx, field)
		if err != nil {
			return nil, err
		}
		paths, err := table.Paths(ctx, field)
		if err != nil {
			return nil, err
		}
		for row := range table.Len() {
			a, err := table.Asset(ctx, field, row)
			if err != nil {
				return nil, err
			}
			again, err := table.Asset(ctx, field, row)
			size := catalog.Size{Height: int32(a.Index.Height), Width: int32(a.Index.Width)}
			if err != nil || again.Index != a.Index || sizes != nil && sizes[row] != size ||
				a.Member == "" && paths[row] != a.URI {
				return nil, fmt.Errorf("row %d is %s by %v or %v, size %v: %w", row, paths[row], a.Index, again.Index,
					sizes, err)
			}
		}
		lines = append(lines, paths)
	}
	if table.Fields() > 1 && table.Kind(0) == catalog.Raster && table.Kind(1) == catalog.Raster {
		var apart []string
		err := table.Misplaced(ctx, 0, 1, nil, func(row int64, err error) {
			apart = append(apart, fmt.Sprintln(row, err))
		})
		if lines = append(lines, apart); err != nil {
			return nil, err
		}
	}
	data, err := table.Data(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range data.Columns() {
		values, err := data.Column(ctx, c.Name)
		if err != nil {
			return nil, err
		}
		line := []string{c.Name, fmt.Sprint(c.Type)}
		for row := range values.Len() {
			text := "null"
			if !values.Null(row) {
				text = string(values.AppendJSON(nil, row))
			}
			line = append(line, text)
		}
		if lines = append(lines, line); !table.HasColumn(c.Name) || int64(values.Len()) != table.Len() {
			return nil, fmt.Errorf("column %s has %d rows of %d", c.Name, values.Len(), table.Len())
		}
	}
	for _, row := range []int64{-1, table.Len()} {
		for what, ask := range map[string]func(){"value": func() { _, _ = table.Value(ctx, 0, row) },
			"id": func() { _, _ = table.ID(ctx, row) }, "asset": func() { _, _ = table.Asset(ctx, 0, row) }} {
			if !panics(ask) {
				return nil, fmt.Errorf("row %d of %d has a %s", row, table.Len(), what)
			}
		}
	}
	return lines, nil
}

// panics reports whether f panics with a text about a row.
func panics(f func()) (said bool) {
	defer func() {
		said = strings.HasPrefix(fmt.Sprint(recover()), "catalog: row ")
	}()
	f()
	return false
}

// columnsOf compares columns of a table, in its order and in another one, with the values of fields.
func columnsOf(ctx context.Context, table *catalog.Table, f form, lines [][]string) error {
	for k, name := range []string{"score", "count", "word"} {
		check := func(order []int32) func(row int64, v catalog.Value) error {
			return func(row int64, v catalog.Value) error {
				want := `{"Int":0,"Float":0,"Text":null,"List":null,"Null":true}`
				if order[row] >= 0 {
					line := lines[order[row]]
					want = line[len(line)-4+k]
				}
				if got, err := json.Marshal(v); err != nil || string(got) != want {
					return fmt.Errorf("%s of row %d is %s, want %s: %w", name, row, got, want, err)
				}
				return nil
			}
		}
		other := []int32{2, -1, 0, 2, 1}
		_, err := scanned(ctx, table, name, check([]int32{0, 1, 2}))
		if err == nil {
			_, err = scanAt(ctx, table, name, other, check(other))
		}
		if err != nil {
			return err
		}
		if !table.HasColumn(name) || table.HasColumn(name+"?") {
			return fmt.Errorf("HasColumn of %s", name)
		}
	}
	data, err := table.Data(ctx)
	if err == nil && data.Len() != len(lines) {
		err = fmt.Errorf("%d rows of data", data.Len())
	}
	return err
}

// TestForms: a dataset has the same samples in each form: the files as they are opened by their names, with what lies
// beside them, and the values of the table.
func TestForms(t *testing.T) {
	dir, forms := storedForms(t)
	files := &openers.Files{}
	text := func(s string) string { return `"Text":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"` }
	numbers := [][3]string{{`"Float":0.5`, `"Int":3`, text("x")}, {`"Null":true`, `"Int":0`, text("é, y")},
		{`"Float":0.5`, `"Int":-2`, text("z")}}
	prints := map[string]string{}
	for name, f := range forms {
		lines, err := contents(t.Context(), f, catalog.Options{})
		if err != nil {
			t.Error(name, err)
			continue
		}
		prints[name] = lines[3][0]
		for row, line := range lines[:3] {
			kinds := []string{"images", "masks"}
			if !f.masks {
				kinds = kinds[:1]
			}
			for _, kind := range kinds {
				path := filepath.Join(dir, kind, string(rune('a'+row))+".tif")
				want, _, err := catalog.OpenAsset(t.Context(), files, path, 0)
				if err != nil {
					t.Fatal(err)
				}
				var value catalog.Value // its path below the dataset
				if err := json.Unmarshal([]byte(line[0]), &value); err != nil ||
					!strings.HasSuffix(path, "/"+string(value.Text)) || line[1] != assetText(&want) {
					t.Errorf("%s: %s is %s, %s, want %s", name, path, line[0], line[1], assetText(&want))
				}
				line = line[2:]
			}
			for k := range 3 {
				if f.values && !strings.Contains(line[k], numbers[row][k]) {
					t.Errorf("%s: value %d of row %d is %s, want %s", name, k, row, line[k], numbers[row][k])
				}
			}
		}
	}
	for _, same := range [][]string{{"a directory", "a glob", "a catalog"}, {"patterns", "a catalog's pairs",
		"a catalog of pairs"}, {"csv", "tsv", "jsonl", "json", "parquet"}} {
		for _, name := range same[1:] {
			if prints[name] != prints[same[0]] {
				t.Errorf("fingerprints of %s and %s differ", name, same[0])
			}
		}
	}
}

// failing calls do with an opener that fails each of its reads in turn. do must fail with that error, but for some
// reads that are tolerated: it is the same without them.
func failing(t *testing.T, name string, tolerated int, do func(files source.Opener) (any, error)) {
	t.Helper()
	worked := -1 // one run has no outage
	outage.Each(t, name, func(files source.Opener) (any, error) {
		found, err := do(files)
		if err == nil {
			worked++
		} else if !errors.Is(err, outage.Err) {
			t.Errorf("%s fails with another error: %v", name, err)
		}
		return found, err
	})
	if worked > tolerated {
		t.Errorf("%s: %d reads may fail", name, worked)
	}
}

// TestOutages: whichever read of a dataset fails, what is asked of it fails with that error.
func TestOutages(t *testing.T) {
	dir, forms := storedForms(t)
	grey := pictures(t, 4)
	shard := imageRows(grey...)
	name := "images/a.tif"
	shard[2] = imageRow{&imageCell{Path: &name}, grey[0], 0}
	line := func(i int) string { return fmt.Sprintf("uri,image,n\nimages/%c.tif,%[1]c,%d\n", 'a'+i, i) }
	for name, content := range map[string]string{"parts/1.csv": line(0), "parts/2.csv": line(1),
		"parts/images/a.tif": string(grey[0]), "parts/images/b.tif": string(grey[0]), "shards/1.parquet": "",
		"shards/2.parquet": "", "splits/x/a.png": string(grey[1]), "splits/x/metadata.csv": "file_name,n\na.png,1\n",
		"splits/y/b.png": string(grey[1]), "splits/y/metadata.csv": "file_name,n\nb.png,2\n",
		"labels/a.geojson": "{}", "labels/c.geojson": "{}"} {
		if content == "" {
			content = string(imageTable(t, 2, shard...))
		}
		folder.Write(t, filepath.Join(dir, name), content)
	}
	folder.Write(t, filepath.Join(dir, "shards", "images", "a.tif"), string(grey[0]))
	uri, n := catalog.Source{Field: "image", Column: "uri"}, catalog.Source{Field: "n"}
	forms["text files"] = form{filepath.Join(dir, "parts", "*.csv"), []catalog.Source{uri, n,
		{Field: "same", Pattern: "images/{image}.tif"}, {Field: "s", Pattern: "../labels/{image}.geojson", Beside: true,
			Optional: true}}, false, false}
	forms["shards"] = form{filepath.Join(dir, "shards", "*.parquet"), []catalog.Source{{Field: "image"},
		{Field: "chip"}, {Field: "label"}}, false, false}
	forms["splits"] = form{filepath.Join(dir, "splits"), []catalog.Source{{Field: "image"}, n,
		{Field: "split", Column: "split"}}, false, false}
	labels := catalog.Source{Field: "s", Kind: catalog.Text, Pattern: "../labels/{id}.geojson", Beside: true,
		Optional: true}
	forms["labels"] = form{filepath.Join(dir, "images"), []catalog.Source{{Field: "image", Pattern: "{id}.tif"}, labels,
		{Field: "mask", Pattern: "../masks/{id}.tif"}}, false, false}
	type lacking struct {
		Note  *string `parquet:"note,optional"`
		Photo []byte  `parquet:"photo"`
	}
	lack := []lacking{{nil, grey[0]}, {&name, grey[1]}, {nil, grey[0]}}
	writeTable(t, filepath.Join(dir, "lacking.parquet"), lack, nil)
	failing(t, "names where rasters lack", 0, func(files source.Opener) (names any, err error) {
		fields := []catalog.Source{{Field: "note", Kind: catalog.Raster}, {Field: "image"}}
		table, err := catalog.Open(t.Context(), filepath.Join(dir, "lacking.parquet"), fields,
			catalog.Options{Opener: files, CacheBytes: 1})
		if err != nil {
			return nil, err
		}
		defer table.Close()
		var found []string
		err = table.ScanIDs(t.Context(), func(_ int64, id string) error {
			found = append(found, id)
			return nil
		})
		return found, err
	})
	forms["doubled"] = form{filepath.Join(dir, "all.parquet"), []catalog.Source{{Field: "image",
		Pattern: "{kind}/{id}.tif"}, {Field: "first", Pattern: "{kind}/a.tif"}}, false, false}
	for name, f := range forms {
		// A text is searched for a byte order mark first.
		tolerated := map[string]int{"csv": 2, "tsv": 2, "json": 2, "jsonl": 2, "text files": 4, "splits": 2}[name]
		failing(t, name, tolerated, func(files source.Opener) (any, error) {
			return contents(t.Context(), f, catalog.Options{Opener: files, CacheBytes: 3 << 10})
		})
	}
	for _, path := range []string{"catalog.parquet", "t.parquet", "t.csv"} {
		failing(t, path, 4, func(files source.Opener) (any, error) { // statistics of columns
			file, err := files.Open(t.Context(), filepath.Join(dir, path))
			if err != nil {
				return nil, err
			}
			defer file.Close()
			_, closer, err := catalog.ReadTable(t.Context(), files, filepath.Join(dir, path))
			if err != nil || closer.Close() != nil {
				return nil, err
			}
			if catalog.IsParquet(path) {
				return tableinfo.Parquet(t.Context(), file)
			}
			return tableinfo.CSV(t.Context(), file, path)
		})
	}
	path := filepath.Join(dir, "large.rumi") // whose header needs several reads
	folder.Write(t, path, rumiOf(t, chunk.Uint8, ifdwrite.Text(ifd.TagGDALMetadata, "<GDALMetadata>"+
		strings.Repeat(" ", 100_000)+"</GDALMetadata>")))
	failing(t, path, 0, func(files source.Opener) (any, error) {
		a, m, err := catalog.OpenAsset(t.Context(), files, path, 0)
		return []any{a.Names, m.Blob}, err
	})
	for _, name := range []string{"overviews/plain.tif", "beside/mask.tif", "beside/world.tif", "beside/pam.tif",
		"raster/rumi-3/unit-t-b-y-x-0.rumi"} {
		path := filepath.Join(corpus.Testdata(t), name)
		failing(t, path, 0, func(files source.Opener) (any, error) {
			a, m, err := catalog.OpenAsset(t.Context(), files, path, 0)
			if err != nil {
				return nil, err
			}
			file, levels, err := catalog.OverviewFile(t.Context(), files, path, a.Index, 0)
			return []any{assetText(&a), m.Blob, file.URI, len(levels)}, err
		})
		failing(t, "the index of "+path, 0, func(files source.Opener) (any, error) {
			a, _, err := catalog.OpenAsset(t.Context(), files, path, 0)
			if err != nil {
				return nil, err
			}
			file, err := files.Open(t.Context(), path)
			if err != nil {
				return nil, err
			}
			defer file.Close()
			levels, err := catalog.Overviews(t.Context(), file, a.Index, 0)
			if err != nil {
				return nil, err
			}
			same, err := catalog.SameIndex(t.Context(), file, a.Index, a.Beside, a.Axes, 0)
			if err == nil && !same {
				err = fmt.Errorf("%s is not its own index", path)
			}
			return len(levels), err
		})
	}
}
