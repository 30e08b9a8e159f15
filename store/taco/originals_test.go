package taco_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
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
// their reader reads them. CHASKI_ORACLE_PYTHON_TACO is a Python with the originals, CHASKI_ORACLE_SEED
// another seed.
func TestOriginals(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TACO")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TACO names no Python with tacotoolbox, tacoreader and pytortilla")
	}
	seed := os.Getenv("CHASKI_ORACLE_SEED")
	if seed == "" {
		seed = "0"
	}
	t.Log("CHASKI_ORACLE_SEED=" + seed)
	const count = 18
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "testdata/originals.py", t.TempDir(), seed, fmt.Sprint(count))
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) < count*2/3 { // what a writer refuses is not there
		t.Fatalf("%d of %d containers: %s", len(lines), count, errs.String())
	}
	for _, line := range lines {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var want original
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
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
		if e.Offset == taco.Whole {
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
		dec := json.NewDecoder(bytes.NewReader(v.AppendJSON(nil, i)))
		dec.UseNumber()
		if err := dec.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if !sameJSON(got, w) {
			t.Errorf("level %d row %d %q (%v): %v, want %v", k, i, name, v.Type(), got, w)
		}
	}
}

// sameJSON compares values, numbers by what they are: 1.0 is 1.
func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok { // pyarrow's decimals are text
			text, _ := b.(string)
			return text == x.String()
		}
		f, err := x.Float64()
		g, err2 := y.Float64()
		return x == y || err == nil && err2 == nil && f == g && math.Abs(f) < 1<<53
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameJSON)
	case map[string]any:
		y, ok := b.(map[string]any)
		for name, v := range x {
			w, there := y[name]
			ok = ok && there && sameJSON(v, w)
		}
		return ok && len(x) == len(y)
	}
	return a == b
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
