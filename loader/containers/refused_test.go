package containers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
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
	set := &build.Taco{Samples: &build.Tortilla{}, Collection: build.Collection{ID: "signs", DatasetVersion: "1",
		Description: "d", Licenses: []string{"CC0-1.0"}, Providers: []map[string]any{{"name": "Ana"}},
		Tasks: []string{"classification"}}}
	for i := range 2 {
		below := &build.Tortilla{Samples: []build.Sample{{ID: "x@y@z", Bytes: []byte("a")},
			{ID: "w", Bytes: []byte("b")}, {ID: "v@", Bytes: []byte("c")}}}
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint("s", i), Children: below})
	}
	path := filepath.Join(t.TempDir(), "signs.tacozip")
	if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
		t.Fatal(err)
	}
	for column, want := range map[string]string{"x@y@z@id": "x@y@z", "w@id": "w", "v@@id": "v@", "id": "s1"} {
		sp, o := spec.Spec{Source: path, BatchSize: 1, Fields: []spec.Field{{Name: "f", Column: column}}}, options(t)
		table, err := survey.OpenTable(t.Context(), &sp, &o)
		if err != nil {
			t.Error(column, err)
			continue
		}
		if v, err := table.Fields[0].Value(t.Context(), 1); err != nil || v.Text != want {
			t.Errorf("%s: %+v, %v", column, v, err)
		}
		if err := table.Close(); err != nil {
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
