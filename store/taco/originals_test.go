package taco_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/oracle"
)

// original is a container as testdata/originals.py describes it.
type original struct {
	Paths  []string
	Leaves [][3]any
	Levels [][]map[string]any
	Reads  [][2]any
	Times  [][3]any
}

// TestOriginals: random containers of the original writers are read as what was put into them, and as
// their reader reads them.
func TestOriginals(t *testing.T) {
	python, seed := oracle.TACO(t, "CHASKI_ORACLE_PYTHON_TACO")
	const count = 18
	lines, warnings := oracle.Lines(t, python, "testdata/originals.py", t.TempDir(), seed, fmt.Sprint(count))
	if len(lines) < count*2/3 { // what a writer refuses is not there
		t.Fatalf("%d of %d containers: %s", len(lines), count, warnings)
	}
	for _, line := range lines {
		var want original
		oracle.Decode(t, line, &want)
		t.Run(filepath.Join(filepath.Base(filepath.Dir(want.Paths[0])), filepath.Base(want.Paths[0])), want.compare)
	}
}

func (o *original) compare(t *testing.T) {
	d := mustOpen(t, o.Paths...)
	if _, err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	var got, want []string
	for e, err := range d.Leaves(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		// PATH, offset, size, hash
		f := strings.Split(strings.TrimSuffix(line(t, &openers.Files{}, e), "\n"), "\t")
		n := len(f)
		got = append(got, strings.Join(f[:n-3], "\t")+" "+f[n-2]+" "+f[n-1])
	}
	for _, l := range o.Leaves {
		want = append(want, fmt.Sprint(l[0], " ", l[1], " ", l[2]))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("leaves %q, want %q", got, want)
	}
	for k, rows := range o.Levels {
		tab, err := d.Level(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if tab.Len() != len(rows) {
			t.Fatalf("level %d: %d rows, want %d", k, tab.Len(), len(rows))
		}
		for i, row := range rows {
			compareRow(t, tab, k, i, row)
		}
	}
	for _, r := range o.Reads {
		var keys []string
		for _, key := range r[0].([]any) {
			keys = append(keys, key.(string))
		}
		e, err := d.Locate(t.Context(), keys)
		if err != nil {
			t.Error(err)
			continue
		}
		place := fmt.Sprintf("/vsisubfile/%d_%d", e.Offset, e.Size)
		if e.Offset == store.Whole {
			if place, err = filepath.EvalSymlinks(e.URI); err != nil {
				t.Fatal(err)
			}
		}
		if place != r[1] {
			t.Errorf("%q is at %s, want %v", keys, place, r[1])
		}
	}
	for _, f := range o.Times {
		o.compareTimes(t, d, f)
	}
}

func compareRow(t *testing.T, tab *tables.Table, k, i int, want map[string]any) {
	t.Helper()
	for _, c := range tab.Columns() {
		if _, ok := want[c.Name]; !ok && c.Name != taco.SourceColumn {
			t.Fatalf("level %d: column %q", k, c.Name)
		}
	}
	for name, w := range want {
		if strings.HasPrefix(name, "internal:") { // the writer's may be wrong; leaves and reads tell
			continue
		}
		v, err := tab.Column(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		oracle.Decode(t, v.AppendJSON(nil, i), &got)
		if !oracle.Same(got, w) {
			t.Errorf("level %d row %d %q (%v): %v, want %v", k, i, name, v.Type(), got, w)
		}
	}
}

func (o *original) compareTimes(t *testing.T, d *taco.Dataset, f [3]any) {
	times, err := column.ParseTimes(f[1].(string))
	if err != nil {
		t.Fatal(err)
	}
	level, err := f[0].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := d.Filter(t.Context(), spacetime.Filter{Times: &times, Level: int(level)})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tab.Column(t.Context(), d.IDColumn())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(rows))
	for _, row := range rows {
		got = append(got, ids.Str(row))
	}
	slices.Sort(got)
	if want := fmt.Sprint(f[2]); fmt.Sprint(got) != want {
		t.Errorf("times %v at level %d: %v, want %v", f[1], level, got, want)
	}
}
