package taco_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

func open(t testing.TB, paths []string, o taco.Options) (*taco.Dataset, error) {
	t.Helper()
	files := &openers.Files{}
	t.Cleanup(func() { files.Close() })
	d, err := taco.Open(context.Background(), files, paths, o)
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return d, err
}

func mustOpen(t testing.TB, paths ...string) *taco.Dataset {
	t.Helper()
	d, err := open(t, paths, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// v2 returns the rows of a type about TACO 2.
func v2(t testing.TB, typ string) []corpus.Container {
	t.Helper()
	rows := slices.DeleteFunc(corpus.Containers(t), func(c corpus.Container) bool {
		of := strings.HasPrefix(c.Path[0], "taco-v2/") || typ == "bad" && strings.HasPrefix(c.Base, "taco-v2/")
		return c.Type != typ || !of
	})
	if len(rows) == 0 {
		t.Fatalf("no %s of TACO 2", typ)
	}
	return rows
}

// line is a leaf as the manifest's hash counts it.
func line(t *testing.T, files source.Opener, e store.Entry) string {
	t.Helper()
	r, err := e.Open(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := make([]byte, r.Size())
	if err := r.ReadAt(t.Context(), b, 0); err != nil {
		t.Fatal(err)
	}
	off := "None"
	if e.Offset != store.Whole {
		off = fmt.Sprint(e.Offset)
	}
	h := sha256.Sum256(b)
	return fmt.Sprintf("%s\t%s\t%d\t%s\n", e.Path, off, len(b), hex.EncodeToString(h[:]))
}

// TestLeaves: the bytes of every sample are those that the original writers put there, in both
// generations, wherever the writers misplaced offsets too.
func TestLeaves(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	for _, c := range v2(t, "case") {
		if c.SHA256 == "" {
			continue
		}
		t.Run(c.Path[0], func(t *testing.T) {
			var lines []string
			for e, err := range mustOpen(t, c.At()...).Leaves(t.Context(), true) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, line(t, files, e))
			}
			slices.Sort(lines)
			if c.ByZIP == nil {
				if got := corpus.SHA256([]byte(strings.Join(lines, ""))); got != c.SHA256 || len(lines) != c.NLeaves {
					t.Errorf("%d leaves with hash %s, want %d with %s", len(lines), got, c.NLeaves, c.SHA256)
				}
				return
			}
			var want []string
			for _, l := range c.ByZIP {
				want = append(want, fmt.Sprintf("%v\t%.0f\t%.0f\t%v\n", l[0], l[1], l[2], l[3]))
			}
			slices.Sort(want)
			if !slices.Equal(lines, want) {
				t.Errorf("leaves %q, want %q", lines, want)
			}
		})
	}
}

// TestLevels: rows a level, placeholders among them, and that verification passes.
func TestLevels(t *testing.T) {
	race.SkipCovered(t)
	for _, c := range v2(t, "case") {
		t.Run(c.Path[0], func(t *testing.T) {
			d := mustOpen(t, c.At()...)
			for k := range d.Levels() {
				name := fmt.Sprintf("level%d", k)
				tab, err := d.Level(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				visible, err := d.Visible(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				if n, ok := c.Levels[name]; ok && tab.Len() != n {
					t.Errorf("%s has %d rows, want %d", name, tab.Len(), n)
				}
				if n, ok := c.Padding[name]; ok && tab.Len()-len(visible) != n {
					t.Errorf("%s hides %d rows, want %d", name, tab.Len()-len(visible), n)
				}
			}
			if n := len(c.Levels); n > 0 && d.Levels() != n {
				t.Errorf("%d levels, want %d", d.Levels(), n)
			}
			r, err := d.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if fault := c.ByZIP != nil; fault != strings.Contains(strings.Join(r.Notes, "\n"),
				"offset or size of another sample") {
				t.Errorf("misplaced offsets: %v, notes %q", fault, r.Notes)
			}
		})
	}
}

// TestBad: what is malformed is refused with a kind, at the latest when everything is verified.
func TestBad(t *testing.T) {
	for _, c := range v2(t, "bad") {
		t.Run(c.Path[0], func(t *testing.T) {
			d, err := open(t, c.At(), taco.Options{})
			if err == nil {
				_, err = d.Verify(t.Context())
			}
			switch c.Expect {
			case "error", "refuse", "error-on-read":
				if fault.KindOf(err) == 0 {
					t.Errorf("%s: %v", c.Wrong, err)
				}
			case "accept":
				if err != nil {
					t.Errorf("%s: %v", c.Wrong, err)
				}
			default:
				if err != nil && fault.KindOf(err) == 0 {
					t.Errorf("%s: an error without a kind: %v", c.Wrong, err)
				}
			}
		})
	}
}

func ids(t *testing.T, d *taco.Dataset, rows []int) []string {
	t.Helper()
	tab, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tab.Column(t.Context(), d.IDColumn())
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, r := range rows {
		list = append(list, v.Str(r))
	}
	return list
}

func checkIDs(t *testing.T, got []string, c corpus.Container) {
	t.Helper()
	if h := corpus.SHA256([]byte(strings.Join(got, "\n") + strings.Repeat("\n",
		min(1, len(got))))); len(got) != c.N || h != c.IDsSHA256 {
		t.Errorf("%d ids %.5q, want %d %.5q", len(got), got, c.N, c.IDs)
	}
}

// TestFilters: boxes by both rules, and ranges of whole days, at every level. The answers were computed
// from the specification's join.
func TestFilters(t *testing.T) {
	race.SkipCovered(t)
	for _, c := range v2(t, "query") {
		f := spacetime.Filter{Level: c.Level}
		switch c.Op {
		case "filter_bbox ST_Intersects", "filter_bbox ST_Within":
			box := mustBox(t, c.BBox...)
			f.Box, f.Geometry = &box, c.Column
			if strings.HasSuffix(c.Op, "Within") {
				f.Rule = column.Within
			}
		case "filter_datetime whole days", "filter_datetime instants":
			if strings.Contains(c.Range, "T") != strings.HasSuffix(c.Op, "instants") {
				continue
			}
			times, err := column.ParseTimes(c.Range)
			if err != nil {
				t.Fatal(err)
			}
			f.Times, f.Time = &times, c.Column
		default:
			continue
		}
		d := mustOpen(t, c.At()...)
		rows, err := d.Filter(t.Context(), f)
		if err != nil {
			t.Errorf("%s %s: %v", c.Path[0], c.Op, err)
			continue
		}
		t.Run(fmt.Sprintf("%s %s level %d", c.Path[0], c.Op, c.Level), func(t *testing.T) {
			checkIDs(t, ids(t, d, rows), c)
		})
	}
}

// TestAutomaticColumns: without a name, the column is the one that the original reader chose.
func TestAutomaticColumns(t *testing.T) {
	for _, c := range v2(t, "query") {
		if c.Op != "filter_bbox" || strings.Contains(c.Reader, "2.0.0rc5") || strings.HasPrefix(c.Reader, "computed") {
			continue
		}
		box := mustBox(t, c.BBox...)
		d := mustOpen(t, c.At()...)
		rows, err := d.Filter(t.Context(), spacetime.Filter{Box: &box, Geometry: c.GeometryCol, Level: c.Level})
		if (err != nil) != (c.Error != "") {
			t.Errorf("%s %v: %v, want %q", c.Path[0], c.BBox, err, c.Error)
		}
		if err != nil {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %v", c.Path[0], err)
			}
			continue
		}
		got, want := ids(t, d, rows), slices.Clone(c.IDs)
		slices.Sort(got)
		slices.Sort(want)
		if len(got) != c.N || want != nil && !slices.Equal(got, want) {
			t.Errorf("%s %v level %d: %d rows, want %d", c.Path[0], c.BBox, c.Level, len(got), c.N)
		}
	}
}

// TestLocate: samples by id and by position.
func TestLocate(t *testing.T) {
	for _, c := range v2(t, "query") {
		if c.Op != "read" {
			continue
		}
		var keys []string
		for _, k := range c.Keys {
			if n, ok := k.(float64); ok {
				k = fmt.Sprintf("#%.0f", n)
			}
			keys = append(keys, fmt.Sprint(k))
		}
		d := mustOpen(t, c.At()...)
		e, err := d.Locate(t.Context(), keys)
		// that reader shows placeholders
		hidden := strings.Contains(c.Path[0], "padded") && strings.Contains(c.VSI, "_0,")
		if c.Error != "" || hidden {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s %v: %v, %v", c.Path[0], keys, e, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %v: %v", c.Path[0], keys, err)
			continue
		}
		if c.VSI != "" {
			got, want := e.VSI(), c.VSI
			short := func(s string) string { return strings.Split(s, ",")[0] + filepath.Base(s) }
			if got, want := short(got), short(want); strings.HasPrefix(c.VSI, "/vsisubfile/") && got != want ||
				!strings.HasSuffix(got, filepath.Base(c.VSI)) {
				t.Errorf("%s %v: %s, want %s", c.Path[0], keys, got, want)
			}
			continue
		}
		var got []string
		for child, err := range d.Children(t.Context(), e) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, child.ID)
		}
		want := slices.DeleteFunc(slices.Clone(c.FrameIDs), func(id string) bool {
			return strings.HasPrefix(id, "__TACOPAD__")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s %v: %q, want %q", c.Path[0], keys, got, want)
		}
	}
}

// TestConcat: rows of several containers in the order of the files, by every mode.
func TestConcat(t *testing.T) {
	for _, c := range v2(t, "query") {
		if c.Op != "concat" || len(c.Path) < 2 {
			continue
		}
		name := fmt.Sprint(c.Path, c.Mode)
		mode, err := column.ParseMode(c.Mode)
		if err != nil {
			if c.Error == "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		d, err := open(t, c.At(), taco.Options{Mode: mode})
		var rows []int
		if err == nil {
			rows, err = d.Visible(t.Context(), 0)
		}
		if (err != nil) != (c.Error != "") {
			t.Errorf("%s: %v, want %q", name, err, c.Error)
		}
		if err != nil {
			if fault.KindOf(err) != fault.Unsupported {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) { checkIDs(t, ids(t, d, rows), c) })
	}
}

// testdata returns a file of the module's own.
func testdata(t testing.TB, path string) string {
	t.Helper()
	p := filepath.Join(corpus.Testdata(t), "containers", filepath.FromSlash(path))
	if _, err := os.Stat(p); err != nil {
		t.Fatal(err)
	}
	return p
}
