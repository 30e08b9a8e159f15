package taco_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// spy is an opener of files that counts and can fail.
type spy struct {
	files openers.Files
	mu    sync.Mutex
	opens []string
	reads []string // "name offset+size"
	open  int      // readers not closed yet
	most  int      // of them at the same time
	// failAt is the number of the call, counted from 1, that fails; 0: none.
	failAt, calls int
}

var errBroken = errors.New("the line is broken")

func (s *spy) call() error {
	s.calls++
	if s.calls == s.failAt {
		return errBroken
	}
	return nil
}

func (s *spy) Open(ctx context.Context, uri string) (source.Reader, error) {
	s.mu.Lock()
	s.opens = append(s.opens, filepath.Base(uri))
	err := s.call()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r, err := s.files.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
	return &spyReader{r, s, filepath.Base(uri)}, nil
}

func (r *spyReader) Close() error {
	r.s.mu.Lock()
	r.s.open--
	r.s.mu.Unlock()
	return r.Reader.Close()
}

type spyReader struct {
	source.Reader
	s    *spy
	name string
}

func (r *spyReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.s.mu.Lock()
	r.s.reads = append(r.s.reads, fmt.Sprintf("%s %d+%d", r.name, off, len(p)))
	err := r.s.call()
	r.s.mu.Unlock()
	if err != nil {
		return err
	}
	return r.Reader.ReadAt(ctx, p, off)
}

// apart returns a ZIP with a gap in front of COLLECTION.json, its last entry, so that the tables are far from the end.
func apart(t *testing.T, b []byte, gap int) []byte {
	t.Helper()
	le := binary.LittleEndian
	end := bytes.LastIndex(b, []byte("PK\x05\x06"))
	directory := int(le.Uint32(b[end+16:]))
	entry := bytes.LastIndex(b[:directory], []byte("PK\x03\x04"))
	listed := bytes.LastIndex(b[:end], []byte("PK\x01\x02"))
	if int(le.Uint32(b[listed+42:])) != entry || !bytes.HasPrefix(b[entry+30:], []byte("COLLECTION.json")) {
		t.Fatal("COLLECTION.json is not the last entry")
	}
	out := slices.Concat(b[:entry], make([]byte, gap), b[entry:])
	le.PutUint32(out[gap+end+16:], uint32(directory+gap))
	le.PutUint32(out[gap+listed+42:], uint32(entry+gap))
	header := out[taco2.HeaderAt:]
	pair := header[4+16*(int(header[0])-1):]
	le.PutUint64(pair, le.Uint64(pair)+uint64(gap))
	return out
}

// TestRequests: opening a ZIP takes two reads. Each level takes one more, however much is asked of it, unless the
// tables are near the end of the file.
func TestRequests(t *testing.T) {
	b := testfile.Read(t, testdata(t, "taco-v2/current/three_level.tacozip"))
	for gap, each := range map[int]int{0: 0, 1 << 20: 1} {
		name := filepath.Join(t.TempDir(), "a.tacozip")
		testfile.Write(t, name, apart(t, b, gap))
		s := &spy{}
		defer s.files.Close()
		d, err := taco.Open(t.Context(), s, []string{name}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if len(s.opens) != 1 || len(s.reads) != 2 {
			t.Fatalf("gap %d: opens %q, reads %q", gap, s.opens, s.reads)
		}
		for k := range d.Levels() {
			if _, err := d.Visible(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range d.Leaves(t.Context(), true) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(s.opens) != 1 || len(s.reads) != 2+each*d.Levels() {
			t.Errorf("gap %d: opens %q, reads %q", gap, s.opens, s.reads)
		}
	}
}

// TestEveryCallFailsOnce: whichever call of the source fails, the error comes out, and nothing wrong
// with it.
func TestEveryCallFailsOnce(t *testing.T) {
	race.SkipCovered(t)
	for _, path := range []string{"taco-v2/spec200/unsorted_three_level.tacozip", "taco-v2/spec200/three_level_dir"} {
		walk := func(s *spy) (paths []string, err error) {
			d, err := taco.Open(t.Context(), s, []string{testdata(t, path)}, taco.Options{})
			if err != nil {
				return nil, err
			}
			defer d.Close()
			for e, err := range d.Leaves(t.Context(), true) {
				if err != nil {
					return nil, err
				}
				paths = append(paths, e.VSI())
			}
			_, err = d.Verify(t.Context())
			return paths, err
		}
		good := &spy{}
		want, err := walk(good)
		if err != nil || len(want) == 0 {
			t.Fatal(want, err)
		}
		for n := 1; n <= good.calls; n++ {
			s := &spy{failAt: n}
			got, err := walk(s)
			// Of a folder the name itself may be asked for in vain: it is not a file.
			if err == nil && !slices.Equal(got, want) || err != nil && !errors.Is(err, errBroken) &&
				fault.KindOf(err) == 0 {
				t.Errorf("%s, call %d of %d (of %q): %v", path, n, good.calls, s.reads, err)
			}
			if err == nil && !strings.HasSuffix(path, "_dir") {
				t.Errorf("%s, call %d of %d: no error", path, n, good.calls)
			}
			if err := s.files.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := good.files.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWarnings: what is left out or filled is named, with the files that lack it, once.
func TestWarnings(t *testing.T) {
	paths := []string{testdata(t, "taco-v2/spec200/concat_a.tacozip"), testdata(t, "taco-v2/spec200/concat_b.tacozip")}
	for mode, what := range map[column.Mode]string{column.Intersection: "left out",
		column.FillMissing: "filled with null"} {
		var warnings []string
		d, err := open(t, paths, taco.Options{Mode: mode, Warn: func(m string) { warnings = append(warnings, m) }})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := d.Level(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		tab, err := d.Level(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if (tab.Index("only_a") >= 0) != (mode == column.FillMissing) {
			t.Errorf("mode %v: columns %s", mode, tables.Names(tab.Columns()))
		}
		n := 0
		for _, m := range warnings {
			if strings.Contains(m, `"only_a"`) {
				n++
				if !strings.Contains(m, what) || !strings.Contains(m, paths[1]) || strings.Contains(m, paths[0]) {
					t.Errorf("mode %v: %q", mode, m)
				}
			}
		}
		if n != 1 {
			t.Errorf("mode %v: warnings %q", mode, warnings)
		}
	}
}

// collection writes a TACOLLECTION.json over three copies of a container, one in each third of the
// longitudes, of years of its own.
func collection(t *testing.T) (string, *spy) {
	t.Helper()
	dir := t.TempDir()
	zip := testfile.Read(t, testdata(t, "taco-v2/current/flat_istac.tacozip"))
	var files []string
	var extents []map[string]any
	for i := range 3 {
		name := fmt.Sprintf("part%d.tacozip", i)
		testfile.Write(t, filepath.Join(dir, name), zip)
		files = append(files, name)
		extents = append(extents, map[string]any{"file": name, "spatial": []float64{-180 + 120*float64(i), -90,
			-60 + 120*float64(i), 90},
			"temporal": []string{fmt.Sprintf("%d-01-01T00:00:00Z", 2010+i), fmt.Sprintf("%d-12-31T00:00:00Z", 2010+i)}})
	}
	doc, err := json.Marshal(map[string]any{"id": "all", "taco:sources": map[string]any{"count": 3, "files": files,
		"extents": extents},
		"taco:field_schema": map[string]any{"level0": [][2]string{{"id", "string"}, {"istac:geometry", "binary"},
			{"istac:centroid", "binary"}, {"istac:time_start", "timestamp"}}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "TACOLLECTION.json")
	testfile.Write(t, path, doc)
	s := &spy{}
	t.Cleanup(func() { s.files.Close() })
	return path, s
}

// TestFilesThatCannotMatch are never opened; those that the extents do not rule out are.
func TestFilesThatCannotMatch(t *testing.T) {
	box := mustBox(t, 100, 0, 170, 80)
	late := func(text string) *column.Times {
		times, err := column.ParseTimes(text)
		if err != nil {
			t.Fatal(err)
		}
		return &times
	}
	all := []string{"part0.tacozip", "part1.tacozip", "part2.tacozip"}
	for name, c := range map[string]struct {
		only spacetime.Filter
		want []string
	}{
		"nothing asked for": {spacetime.Filter{}, all},
		"centroids": {spacetime.Filter{Box: &box, Geometry: "istac:centroid"},
			[]string{"part0.tacozip", "part2.tacozip"}}, // part0 lies in the west: its east is not known
		"footprints may pass the extent": {spacetime.Filter{Box: &box}, all},
		"centroids of another level":     {spacetime.Filter{Box: &box, Geometry: "istac:centroid", Level: 1}, all},
		"after the end": {spacetime.Filter{Times: late("2011-06-01/2030-01-01")},
			[]string{"part1.tacozip", "part2.tacozip"}},
		"before the start": {spacetime.Filter{Times: late("2000-01-01/2010-06-01")},
			[]string{"part0.tacozip"}},
		"the last microsecond": {spacetime.Filter{Times: late("2011-12-31T00:00:00Z/2011-12-31T23:59:59Z")},
			[]string{"part1.tacozip"}},
		"after the end of all": {spacetime.Filter{Times: late("2020-06-01/2030-01-01")}, nil},
		"both": {spacetime.Filter{Box: &box, Geometry: "istac:centroid",
			Times: late("2012-02-01/..")}, []string{"part2.tacozip"}},
		"another column of times is told": {spacetime.Filter{Times: late("2020-06-01/.."),
			Time: "istac:time_end"}, all},
	} {
		path, s := collection(t)
		d, err := taco.Open(t.Context(), s, []string{path}, taco.Options{Filters: []spacetime.Filter{c.only}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := slices.Sorted(slices.Values(s.opens[1:]))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: opened %q, want %q", name, got, c.want)
		}
		if len(c.want) == 0 {
			if rows, err := d.Filter(t.Context(), c.only); len(rows) != 0 || err != nil {
				t.Errorf("%s: %v, %v", name, rows, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenMember promises that "container::path" has the sample's bytes, and that a folder has none.
func TestOpenMember(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	path := testdata(t, "taco-v2/spec200/codec_snappy.tacozip")
	r, err := new(taco.Kind).OpenMember(t.Context(), files, path+"::roi_qs1/image")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if err := r.ReadAt(t.Context(), b, 0); err != nil || string(b) != "II*\x00" && string(b) != "II+\x00" {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.ReadAt(t.Context(), b, r.Size()-3); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("past the end: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]fault.Kind{"::roi_qs1": fault.Unsupported, "::roi_qs1/none": fault.NotFound,
		"::roi_qs1/image/x": fault.NotFound, ".none": fault.NotFound} {
		if _, err := new(taco.Kind).OpenMember(t.Context(), files, path+name); fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
	}
}

// TestEntriesKnowTheirRow: the sample of a row, found by its path, is on that row again, in one
// container and in several.
func TestEntriesKnowTheirRow(t *testing.T) {
	for _, d := range []*taco.Dataset{
		mustOpen(t, testdata(t, "taco-v2/current/three_level.tacozip")),
		mustOpen(t, testdata(t, "taco-v2/spec200/concat_a.tacozip"), testdata(t, "taco-v2/spec200/concat_b.tacozip")),
	} {
		for k := range d.Levels() {
			tab, err := d.Level(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			parents, err := d.Parents(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			for row := range tab.Len() {
				e, err := d.Entry(t.Context(), k, row)
				if err != nil {
					t.Fatal(err)
				}
				again, err := d.Resolve(t.Context(), e.Path)
				if err != nil || again != e {
					t.Errorf("%v, %v, want %v", again, err, e)
				}
				if root, rest, ok := strings.Cut(e.Path, "/"); ok {
					top, err := d.Resolve(t.Context(), root)
					if err != nil {
						t.Fatal(err)
					}
					if below, err := d.Below(t.Context(), top, rest); err != nil || below != e {
						t.Errorf("%v, %v, want %v", below, err, e)
					}
				}
				if e.Row != row {
					t.Errorf("%s: row %d, want %d", e.Path, e.Row, row)
				}
				if k == 0 {
					continue
				}
				if up, err := d.Entry(t.Context(), k-1, int(parents[row])); err != nil || up.Path+"/"+e.ID != e.Path {
					t.Errorf("%s has parent %s, %v", e.Path, up.Path, err)
				}
			}
		}
		for _, bad := range [][2]int{{-1, 0}, {9, 0}, {0, -1}, {0, 1 << 30}} {
			if _, err := d.Entry(t.Context(), bad[0], bad[1]); fault.KindOf(err) != fault.NotFound {
				t.Errorf("level and row %v: %v", bad, err)
			}
		}
	}
}

// TestManyFiles: a list longer than files may be open is read like a short one, and nothing stays open.
func TestManyFiles(t *testing.T) {
	s := &spy{}
	defer s.files.Close()
	const n = 300
	paths := slices.Repeat([]string{testdata(t, "taco-v2/spec200/concat_a.tacozip")}, n)
	d, err := taco.Open(t.Context(), s, paths, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for _, err := range d.Leaves(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		leaves++
	}
	if leaves == 0 || leaves%n != 0 {
		t.Errorf("%d leaves of %d equal containers", leaves, n)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if s.open != 0 || s.most > 250 {
		t.Errorf("%d readers are open, were %d at once", s.open, s.most)
	}
}

// TestCollectionsDoNotNest: one that names itself is refused.
func TestCollectionsDoNotNest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "TACOLLECTION.json")
	if err := os.WriteFile(path, []byte(`{"id":"a","taco:sources":{"files":["TACOLLECTION.json"]}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, []string{path}, taco.Options{}); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustBox(t testing.TB, sides ...float64) crs.Box {
	t.Helper()
	box, err := crs.NewBox([4]float64(sides), 4326)
	if err != nil {
		t.Fatal(err)
	}
	return box
}
