package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestDamagedTables: a table has no column of bytes that the container does not have: reading it, and the fingerprint
// of a field, is an error where the place of a row is one.
func TestDamagedTables(t *testing.T) {
	o, refused, damaged := options(t), 0, 0
	for _, c := range rowsOfCorpus(t, "bad") {
		if _, err := new(kind).Describe(t.Context(), c.At()[0], o); err != nil {
			refused++
			continue // as a whole, see TestFind
		}
		set := opened(t, o, c.At())
		named, err := set.Tables(t.Context(), nil, o)
		if err != nil {
			t.Error(c.Path[0], err)
			continue
		}
		found, err := set.Samples(t.Context(), spec.Subset{}, o)
		if err != nil {
			t.Fatal(err)
		}
		for level := range set.Levels() {
			visible, err := set.Visible(t.Context(), level)
			if err != nil {
				t.Fatal(err)
			}
			var wrong error
			row := 0
			for _, row = range visible {
				if _, wrong = set.EntryAt(t.Context(), level, row); wrong != nil {
					damaged++
					break
				}
			}
			found.c.fields = []fieldPlace{{kind: catalog.Raster, level: level,
				rows: slices.Repeat([]int32{int32(row)}, len(found.Rows))}}
			_, entries := named(t.Context(), fmt.Sprint("entries", level))
			table, below := named(t.Context(), fmt.Sprint("below", level))
			if below == nil {
				_, below = table.Column(t.Context(), FolderColumn)
			}
			for _, err := range []error{entries, below, found.c.hash(t.Context())} {
				if fmt.Sprint(err) != fmt.Sprint(wrong) {
					t.Errorf("%s: level %d: %v, want %v", c.Path[0], level, err, wrong)
				}
			}
		}
	}
	if refused == 0 || damaged == 0 {
		t.Errorf("%d are refused, %d have a row without a place", refused, damaged)
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
		if v, err := made.Fields[0].Value(t.Context(), 1); err != nil || string(v.Text) != want {
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
		named, err := Set{set}.Tables(t.Context(), src.Where, o)
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
	set := opened(t, options(t), []string{filepath.Join(data, "coast", "coast.tacozip")})
	found, err := set.Samples(t.Context(), spec.Subset{}, options(t))
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
	all, err := opened(t, o, []string{sp.Source}).Samples(t.Context(), spec.Subset{}, o)
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
			return all.c.Centroids(ctx, func(int64, float64, float64) error { return visit() })
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
	found, err := opened(t, o, []string{sp.Source}).Samples(t.Context(), spec.Subset{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.c.hash(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a fingerprint of ids, cancelled: %v", err)
	}
	ranks, err := found.c.level0.Column(t.Context(), "rank")
	if err != nil {
		t.Fatal(err)
	}
	values, err := ranks.Column("rank")
	if err != nil {
		t.Fatal(err)
	}
	found.c.fields = []fieldPlace{{kind: catalog.Int, value: values, rows: make([]int32, 12)}}
	for looks := range 2 {
		if err := found.c.hash(&ending{t.Context(), looks}); !errors.Is(err, context.Canceled) {
			t.Errorf("a fingerprint, cancelled when asked the %d. time: %v", looks+1, err)
		}
	}
}

// ending is a context that ends after it was asked a few times whether it has.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestRefusedSources: what a container cannot be asked for is told with its file, the part and the way.
func TestRefusedSources(t *testing.T) {
	coast := filepath.Join(corpus.Testdata(t), "coast")
	zip, flat, none := filepath.Join(coast, "coast.tacozip"), filepath.Join(coast, "flat.tacozip"),
		filepath.Join(coast, "none.tacozip")
	raster := filepath.Join(corpus.Testdata(t), "masks", "tog.tif")
	field := func(column string) spec.Field { return spec.Field{Name: "f", Column: column} }
	where := func(path string, c ...spec.Condition) spec.Source {
		return spec.Source{Source: path, Subset: spec.Subset{Where: c}}
	}
	parts := func(paths ...string) spec.Source {
		return spec.Source{Source: paths[0], Container: spec.Container{Parts: paths[1:]}}
	}
	for says, c := range map[string]struct {
		spec.Source
		field spec.Field
	}{
		zip + `: field "f": patterns pair the files of directories and catalogs`: {where(zip),
			spec.Field{Name: "f", Pattern: "{id}.tif"}},
		zip + `: field "nope" sample tile_00: no id "nope": the ids are s2, ref: not found`: {where(zip),
			spec.Field{Name: "nope"}},
		zip + `: field "f" table: no column "@rank"; there are id, type,`: {where(zip), field("@rank")},
		zip + `: field "f" sample tile_00/s2/img.tif: no id "more"`:       {where(zip), field("s2/img.tif/more")},
		zip + `: field "f" sample tile_05: no path "s2/#0": not found`: {where(zip, spec.Condition{SQL: "rank = 5"}),
			field("s2/#0")},
		flat + `: field "f" sample chip_00.tif: is a file: nothing lies below it, and there is no column "x/y"`: {
			where(flat), field("x/y")},
		flat + ": bbox level0: no geometry column (": {where(flat, spec.Condition{BBox: &[4]float64{0, 0, 1, 1}}),
			field("id")},
		"none.csv: tables file: not found": {spec.Source{Source: zip, Subset: spec.Subset{Tables: []spec.SideTable{
			{Path: "none.csv", On: "id"}}}}, field("id")},
		raster + ": file at 0: is not a container, which base_path is for: its first bytes": {
			spec.Source{Source: raster, Container: spec.Container{BasePath: coast}}, field("id")},
		raster + ": dataset: is not a container: a list of paths names": {parts(zip, raster), field("id")},
		flat + ": taco:pit_schema: its hierarchy is another than":       {parts(zip, flat), field("id")},
		none + ": file: not found":                                      {parts(zip, none), field("id")},
		"context canceled":                                              {parts(zip, zip), field("id")},
	} {
		o := options(t)
		ctx, cancel := context.WithCancel(t.Context())
		if cancel(); says != context.Canceled.Error() {
			ctx = t.Context()
		}
		if _, err := new(kind).OpenDataset(ctx, &c.Source, []spec.Field{c.field}, o); err == nil ||
			!strings.HasPrefix(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	// One sample is enough to find out what a field means.
	for path, fields := range map[string][]spec.Field{zip: {{Name: "s2/img.tif"}}, flat: {{Name: "image"}}} {
		src := where(path, spec.Condition{SQL: "rank = 2"})
		made, err := new(kind).OpenDataset(t.Context(), &src, fields, options(t))
		if err != nil || made.N != 1 || made.Fields[0].Kind != catalog.Raster {
			t.Errorf("%s: %+v, %v", path, made, err)
		} else if err := made.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFindRefuses: a name that leads nowhere is told with its file and path, whether containers stay open or not.
func TestFindRefuses(t *testing.T) {
	coast := filepath.Join(corpus.Testdata(t), "coast")
	stream := filepath.Join(corpus.Testdata(t), "containers", "taco-v1", "stream_n2_top.taco")
	flat, none := filepath.Join(coast, "flat.tacozip"), filepath.Join(coast, "none.tacozip")
	small := options(t)
	small.MaxChunkBytes = 1
	kept := resources.Options{Opener: options(t).Opener, Members: &resources.Members{}}.WithDefaults()
	defer kept.Members.Close()
	for _, c := range []struct {
		o          resources.Options
		name, says string
	}{
		{kept, "/vsisubfile/10_999999," + flat, flat + ": sample at 10 at 10: 999999 bytes in a file of 18751"},
		{kept, "/vsisubfile/0_5," + none, none + ": file: not found"},
		{kept, none + "::a", none + ": file: not found"},
		{options(t), none + "::a", none + ": file: not found"},
		{options(t), flat + "::no/such", flat + `: level0: no id "no/such": the ids are chip_00.tif, `},
		{options(t), stream + "::roi_1/t1", "sample roi_1/t1: is a folder, not a raster: unsupported"},
		{small, stream + "::roi_1/t1/t1-img::4", stream + ": chunk roi_1/t1/t1-img::4 chunk index at 0: a row of"},
	} {
		if _, err := new(kind).Member(t.Context(), c.o, c.name); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// TestMissingLevels: a level that a container lacks is told by every table that queries name by it, also after a
// concat.
func TestMissingLevels(t *testing.T) {
	o := options(t)
	set := opened(t, o, []string{filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")})
	for where, names := range map[string][]string{`[]`: {"below9", "entries9", "l9"},
		`[{"concat": [{"paths": 1}]}]`: {"below3", "entries3", "l3", "level3"}} {
		var conditions []spec.Condition
		if err := json.Unmarshal([]byte(where), &conditions); err != nil {
			t.Fatal(err)
		}
		named, err := set.Tables(t.Context(), conditions, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if got, err := named(t.Context(), name); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %s: %+v, %v", where, name, got, err)
			}
		}
	}
	// What conditions cannot select is told with the container.
	_, err := set.Tables(t.Context(), []spec.Condition{{SQL: "nothing > 1"}}, o)
	if err == nil || !strings.HasPrefix(err.Error(), set.Parts()[0]+": where") {
		t.Errorf("%v", err)
	}
}

// oddOpener opens local files by URIs of a scheme that GDAL does not have.
type oddOpener struct{ openers.Files }

func (o *oddOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	return o.Files.Open(ctx, strings.TrimPrefix(uri, "odd://"))
}

// TestNamesForGDAL: a container whose scheme GDAL does not have has no names for it, and everything else.
func TestNamesForGDAL(t *testing.T) {
	o := options(t)
	o.Opener = &oddOpener{}
	set := opened(t, o, []string{"odd://" + filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")})
	found, err := set.Samples(t.Context(), spec.Subset{}, o)
	if err != nil {
		t.Fatal(err)
	}
	table, err := found.below(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if folders, err := table.Column(t.Context(), FolderColumn); err != nil || folders.Len() != 24 {
		t.Errorf("%+v, %v", folders, err)
	}
	if names, err := table.Column(t.Context(), VSIColumn); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "coast.tacozip: sample img.tif: GDAL has no name for it") {
		t.Errorf("%+v, %v", names, err)
	}
}
