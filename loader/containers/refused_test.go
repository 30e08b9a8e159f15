package containers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestDamagedTables: a table has no column of bytes that the container does not have: reading it is an error where the
// place of a row is one.
func TestDamagedTables(t *testing.T) {
	o, damaged := options(t), 0
	for _, c := range rowsOfCorpus(t, "bad") {
		if describeAll(t, o, c.At()[0]) != nil {
			damaged++
			continue // refused as a whole, see TestFind
		}
		set := opened(t, o, c.At())
		named, err := Tables(t.Context(), set, nil, o)
		if err != nil {
			t.Error(c.Path[0], err)
			continue
		}
		for level := range set.Levels() {
			visible, err := set.Visible(t.Context(), level)
			if err != nil {
				t.Fatal(err)
			}
			var wrong error
			for _, row := range visible {
				if _, err := set.EntryAt(t.Context(), level, row); err != nil {
					wrong = err
				}
			}
			table, err := named(t.Context(), fmt.Sprint("below", level))
			if err == nil {
				_, err = table.Column(t.Context(), FolderColumn)
			}
			if entries, other := named(t.Context(), fmt.Sprint("entries", level)); (wrong != nil) != (other != nil) {
				t.Errorf("%s: entries %d: %+v, %v, want %v", c.Path[0], level, entries, other, wrong)
			}
			if (wrong != nil) != (err != nil) {
				t.Errorf("%s: level %d: %v, want %v", c.Path[0], level, err, wrong)
			}
		}
	}
	if damaged == 0 {
		t.Error("nothing is refused")
	}
}

// TestNamesWithSigns: ids may contain "@", and columns of the rows below samples have their values.
func TestNamesWithSigns(t *testing.T) {
	set := &sampleTrees{}
	for i := range 2 {
		set.samples = append(set.samples, folder(fmt.Sprint("s", i), bytesOf("x@y@z"), bytesOf("w"), bytesOf("v@")))
	}
	path := set.write(t, filepath.Join(t.TempDir(), "signs.tacozip"), build.Auto)
	for column, want := range map[string]string{"x@y@z@id": "x@y@z", "w@id": "w", "v@@id": "v@", "id": "s1"} {
		made, err := table(t, spec.Spec{Source: path, Fields: []spec.Field{{Name: "f", Column: column}}}, options(t))
		if err != nil {
			t.Error(column, err)
			continue
		}
		if v, err := made.Fields[0].Value(t.Context(), 1); err != nil || v.Text != want {
			t.Errorf("%s: %+v, %v", column, v, err)
		}
	}
}

// TestNothingIsLeft: a container of which nothing is selected says why; queries about it see the columns of level 0, if
// one is open.
func TestNothingIsLeft(t *testing.T) {
	data, o := corpus.Testdata(t), options(t)
	empty := filepath.Join(t.TempDir(), "empty.tortilla")
	testfile.Write(t, empty, tortilla(t, nil, nil))
	for path, c := range map[string]struct {
		where spec.Condition
		says  string
	}{
		filepath.Join(data, "extents", "starts"): {spec.Condition{Datetime: "1990-01-01/1990-12-31"},
			"dataset: none of its files has samples that meet bbox and datetime: not found"},
		empty: {spec.Condition{SQL: "id > ''"}, "dataset: no samples: not found"},
		filepath.Join(data, "coast", "coast.tacozip"): {spec.Condition{SQL: "rank > 99"},
			"dataset: none of its 12 rows is selected: no row meets rank > 99: not found"},
	} {
		src := spec.Source{Source: path, Subset: spec.Subset{Where: []spec.Condition{c.where}}}
		if _, err := table(t, spec.Spec{Source: path, Subset: src.Subset,
			Fields: []spec.Field{{Name: "id"}}}, o); fmt.Sprint(err) != path+": "+c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
		set, err := taco.Open(t.Context(), o.Opener, []string{path}, taco.Options{Filters: fileFilters(&src)})
		if err != nil {
			t.Fatal(err)
		}
		named, err := Tables(t.Context(), set, src.Where, o)
		if err != nil {
			t.Fatal(path, err)
		}
		level0, err := set.Level(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"data", "below0", "entries0"} {
			got, err := named(t.Context(), name)
			if err != nil || got.Len() != 0 || name == "data" && !slices.EqualFunc(got.Columns(), level0.Columns(),
				func(a, b tables.Column) bool { return a.Name == b.Name }) {
				t.Errorf("%s: %s: %+v, %v", path, name, got, err)
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMissingAssets: a sample without a raster of a field is not found, with what is missing; a field of values has no
// raster.
func TestMissingAssets(t *testing.T) {
	data := corpus.Testdata(t)
	found, err := Select(t.Context(), opened(t, options(t), []string{filepath.Join(data, "coast", "coast.tacozip")}),
		spec.Subset{}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	none := make([]int32, len(found.Rows))
	for i := range none {
		none[i] = -1
	}
	for says, field := range map[string]*fieldPlace{
		"has nothing for":    {name: "x", kind: catalog.Raster, rows: none},
		"numbered from 0 on": {name: "x", kind: catalog.Raster, files: &fileSequence{first: make([]int32, 13)}},
		"not a raster":       {name: "x", kind: catalog.Int, rows: none},
	} {
		_, err := found.c.asset(t.Context(), field, 1)
		raster := field.kind == catalog.Raster
		if err == nil || !strings.Contains(err.Error(), says) || raster != (fault.KindOf(err) == fault.NotFound) ||
			raster != strings.Contains(err.Error(), "tile_01") {
			t.Errorf("%v, want %q", err, says)
		}
	}
	// One damaged container is no list of paths.
	whole := testfile.Read(t, filepath.Join(data, "coast", "coast.tacozip"))
	cut := filepath.Join(t.TempDir(), "cut.tacozip")
	testfile.Write(t, cut, whole[:200])
	sp, o := spec.Spec{Source: cut, BatchSize: 1}, options(t)
	if _, err := survey.OpenTable(t.Context(), &sp, &o); fault.KindOf(err) == 0 ||
		strings.Contains(err.Error(), "a list of") {
		t.Errorf("a damaged container: %v", err)
	}
}

// TestEndOfScans: scans end with the error of a visit, or of a context that is cancelled.
func TestEndOfScans(t *testing.T) {
	sp := spec.Spec{Source: filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip"), BatchSize: 1,
		Fields: []spec.Field{{Name: "rank"}}}
	o := options(t)
	table, err := survey.OpenTable(t.Context(), &sp, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	column, err := table.Column(t.Context(), "rank")
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	stop := errors.New("stop")
	for name, scan := range map[string]func(ctx context.Context, visit func() error) error{
		"ids": func(ctx context.Context, visit func() error) error {
			return table.ScanIDs(ctx, func(int64, string) error { return visit() })
		},
		"values": func(ctx context.Context, visit func() error) error {
			return column.Scan(ctx, func(int64, catalog.Value) error { return visit() })
		},
		"centroids": func(ctx context.Context, visit func() error) error {
			return table.Centroids(ctx, func(int64, float64, float64) error { return visit() })
		},
	} {
		visits := 0
		count := func() error { visits++; return nil }
		if err := scan(t.Context(), count); err != nil || visits != 12 {
			t.Errorf("%s: %d visits, %v", name, visits, err)
		}
		if err := scan(cancelled, count); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
		if err := scan(t.Context(), func() error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s, stopped: %v", name, err)
		}
	}
	// The fingerprint takes a pass, too.
	found, err := Select(t.Context(), opened(t, o, []string{sp.Source}), spec.Subset{}, o)
	if err != nil {
		t.Fatal(err)
	}
	found.c.fields = []fieldPlace{{kind: catalog.Raster, level: 2, rows: make([]int32, 12)}}
	if err := found.c.hash(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a fingerprint, cancelled: %v", err)
	}
}
