package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// selected returns the rows of the only source of a spec, in the order of the dataset.
func selected(t *testing.T, s Subset, tab *fakeTable) []int64 {
	t.Helper()
	e, err := tryMixed(Spec{Source: "a", Fields: sampledFields, BatchSize: 1, Subset: s},
		map[string]*fakeTable{"a": tab}, 1)
	if err != nil {
		if !errors.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return nil
	}
	defer func() { _ = e.Close() }()
	var rows []int64
	for p := range e.Len() {
		rows = append(rows, e.Plan().At(0, p).Row)
	}
	return rows
}

// TestWhere: every operator on every kind of column agrees with Go's.
func TestWhere(t *testing.T) {
	tab := chips(3, 12)
	tab.ints("int", func(r int64) int64 { return r - 4 })
	tab.texts("text", func(r int64) string { return strings.Repeat("b", int(r%4)) })
	f := fakeColumn{kind: catalog.Float}
	for r := range tab.rows {
		v := catalog.Value{Float: float64(r) / 2}
		if r == 3 {
			v.Float = math.NaN()
		}
		if r == 4 {
			v = catalog.Value{Null: true}
		}
		f.values = append(f.values, v)
	}
	tab.put("float", f)
	for _, c := range []struct {
		column, op, value string
		want              func(r int64) bool
	}{
		{"int", "<", "2", func(r int64) bool { return r-4 < 2 }},
		{"int", ">=", "1.5", func(r int64) bool { return float64(r-4) >= 1.5 }},
		{"int", "!=", "0", func(r int64) bool { return r != 4 }},
		{"int", "in", "[-4, 7, 100, 2.0]", func(r int64) bool { return r == 0 || r == 11 || r == 6 }},
		{"float", "<=", "2.5", func(r int64) bool { return r <= 5 && r != 3 && r != 4 }},
		{"float", "!=", "1", func(r int64) bool {
			return r != 2 && r != 4
		}}, // NaN differs from everything, a null is nothing
		{"float", "==", "3", func(r int64) bool { return r == 6 }},
		{"text", ">", `"b"`, func(r int64) bool { return r%4 > 1 }},
		{"text", "==", `"b"`, func(r int64) bool { return r%4 == 1 }},
		{"text", "in", `["bbb", "b"]`, func(r int64) bool { return r%4 == 1 || r%4 == 3 }},
	} {
		var want []int64
		for r := range tab.rows {
			if c.want(r) {
				want = append(want, r)
			}
		}
		got := selected(t, Subset{Where: []Condition{{Column: c.column, Op: c.op,
			Value: json.RawMessage(c.value)}}}, tab)
		if !slices.Equal(got, want) {
			t.Errorf("%s %s %s: rows %v, want %v", c.column, c.op, c.value, got, want)
		}
	}
	for _, c := range []Condition{
		{Column: "int", Op: "<", Value: json.RawMessage(`"2"`)},
		{Column: "text", Op: "<", Value: json.RawMessage(`2`)}, {Column: "none", Op: "<", Value: json.RawMessage(`2`)},
		{Column: "int", Op: "~", Value: json.RawMessage(`2`)},
		{Column: "int", Op: "in", Value: json.RawMessage(`2`)}, {Column: "int", Op: "<", Value: json.RawMessage(`{}`)},
		{Column: "int", Op: ">", Value: json.RawMessage(`1000`)},
	} {
		_, err := tryMixed(Spec{Source: "a", Fields: sampledFields, BatchSize: 1,
			Subset: Subset{Where: []Condition{c}}}, map[string]*fakeTable{"a": tab}, 1)
		if err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// TestWhereOfTimes: columns of dates or timestamps compare with dates and timestamps given as
// strings, to the fraction of a second, in any unit.
func TestWhereOfTimes(t *testing.T) {
	race.SkipCovered(t)
	begin := time.Date(1969, 12, 28, 0, 0, 0, 0, time.UTC)
	tab := chips(3, 12)
	at := map[string]func(r int64) time.Time{}
	for name, unit := range map[string]time.Duration{"day": 24 * time.Hour, "ms": time.Millisecond,
		"us": time.Microsecond, "ns": time.Nanosecond} {
		step := 12 * time.Hour
		if name == "day" {
			step *= 2
		}
		at[name] = func(r int64) time.Time { return begin.Add(time.Duration(r) * step) }
		tab.ints(name, func(r int64) int64 { return int64(at[name](r).Sub(time.Unix(0, 0)) / unit) })
		c := tab.columns[name]
		c.unit = unit
		tab.columns[name] = c
	}
	texts := map[string]time.Time{
		"1969-12-30": time.Date(1969, 12, 30, 0, 0, 0, 0, time.UTC), "1970-01-01T12:00": time.Date(1970, 1, 1,
			12, 0, 0, 0, time.UTC),
		"1969-12-31T12:00:00.0000001Z": time.Date(1969, 12, 31, 12, 0, 0, 100, time.UTC),
		"1970-01-01 01:00:00+01:00":    time.Unix(0, 0),
		"1970":                         time.Unix(0, 0), "1970-01": time.Unix(0, 0), "0001-01-01": {},
		"9999-12-31": time.Date(9999, 12, 31,
			0, 0, 0, 0, time.UTC),
		"1969-12-29T23:59:59.999999999": time.Date(1969, 12, 29, 23, 59, 59, 999999999, time.UTC),
	}
	for column, when := range at {
		for text, bound := range texts {
			for op, want := range map[string]func(c int) bool{
				"<": func(c int) bool {
					return c < 0
				}, "<=": func(c int) bool { return c <= 0 }, "==": func(c int) bool { return c == 0 },
				"!=": func(c int) bool {
					return c != 0
				}, ">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
			} {
				var rows []int64
				for r := range tab.rows {
					if want(when(r).Compare(bound)) {
						rows = append(rows, r)
					}
				}
				value, _ := json.Marshal(text)
				if got := selected(t, Subset{Where: []Condition{{Column: column, Op: op, Value: value}}},
					tab); !slices.Equal(got, rows) {
					t.Errorf("%s %s %s: rows %v, want %v", column, op, text, got, rows)
				}
			}
		}
		split := &spec.Split{By: "date", Column: column,
			Ranges: []spec.Range{{Name: "a", To: json.RawMessage(`"1970-01-01"`)},
				{Name: "b", From: json.RawMessage(`"1970-01-01"`)}}}
		a, b := selected(t, Subset{Split: split, Use: "a"}, tab), selected(t, Subset{Split: split, Use: "b"}, tab)
		if !slices.Equal(append(slices.Clone(a), b...), selected(t, Subset{}, tab)) || len(b) == 0 ||
			when(b[0]).Before(time.Unix(0, 0)) || !when(a[len(a)-1]).Before(time.Unix(0, 0)) {
			t.Errorf("%s: split into %v and %v", column, a, b)
		}
	}
	for _, text := range []string{`"2"`, `"yesterday"`, `"2024-13-01"`} {
		c := Condition{Column: "ns", Op: "<", Value: json.RawMessage(text)}
		if _, err := tryMixed(Spec{Source: "a", Fields: sampledFields, BatchSize: 1,
			Subset: Subset{Where: []Condition{c}}}, map[string]*fakeTable{"a": tab}, 1); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// TestSplitsArePartitions: every row is in exactly one part, rows that belong together stay
// together, and adding rows moves none.
func TestSplitsArePartitions(t *testing.T) {
	few, many := chips(3, 30), chips(3, 40)
	for _, tab := range []*fakeTable{few, many} {
		tab.texts("scene", func(r int64) string { return fmt.Sprint("s", r/3) })
		for i, name := range []string{"minx", "miny", "maxx", "maxy"} {
			tab.ints(name, func(r int64) int64 { return r/4*10 + int64(i/2)*2 })
		}
	}
	shares := []spec.Share{{Name: "train", Weight: 2}, {Name: "val", Weight: 1}, {Name: "test", Weight: 1}}
	for _, c := range []struct {
		split    spec.Split
		together int64
	}{{spec.Split{By: "hash", Shares: shares}, 1}, {spec.Split{By: "column", Column: "scene", Shares: shares}, 3},
		{spec.Split{By: "cell", Size: 10, Shares: shares}, 4}} {
		part := map[int64]string{}
		for _, h := range shares {
			for _, r := range selected(t, Subset{Split: &c.split, Use: h.Name}, few) {
				if part[r] != "" {
					t.Errorf("by %s: row %d is in %s and %s", c.split.By, r, part[r], h.Name)
				}
				part[r] = h.Name
			}
			for _, r := range selected(t, Subset{Split: &c.split, Use: h.Name}, many) {
				if r < few.rows && part[r] != h.Name {
					t.Errorf("by %s: row %d moved from %s to %s", c.split.By, r, part[r], h.Name)
				}
			}
		}
		if int64(len(part)) != few.rows {
			t.Errorf("by %s: %d of %d rows are in a part", c.split.By, len(part), few.rows)
		}
		for r := range few.rows {
			if first := r / c.together * c.together; part[r] != part[first] {
				t.Errorf("by %s: row %d is in %s, its neighbour in %s", c.split.By, r, part[r], part[first])
			}
		}
	}
}

// TestSplitByLonLat: neighbours on both sides of a UTM zone's edge are in one cell. A row without a
// CRS or location is in no part, and one with an unknown CRS is refused if it counts. A split
// without the option is unchanged.
func TestSplitByLonLat(t *testing.T) {
	tab := chips(1, 8)
	// About 6 degrees east and 50.9 north, in zones 31 and 32, and rows around. The last rows have
	// no CRS, no location and an unknown CRS.
	x := []float64{714984, 285016, 714000, 286000, 714984, 285016, math.NaN(), 700000}
	codes := []int64{32631, 32632, 32631, 32632, 32731, 0, 32631, 2154}
	float := func(of func(r int64) float64) fakeColumn {
		c := fakeColumn{kind: catalog.Float}
		for r := range tab.rows {
			c.values = append(c.values, catalog.Value{Float: of(r)})
		}
		return c
	}
	for i, name := range []string{"minx", "miny", "maxx", "maxy"} {
		tab.put(name, float(func(r int64) float64 {
			if i%2 == 0 {
				return x[r] - 50 + float64(50*i)
			}
			return 5642944 - 50 + float64(50*(i-1))
		}))
	}
	tab.ints("epsg", func(r int64) int64 { return codes[r] })
	epsg := tab.columns["epsg"]
	epsg.values[5].Null = true
	known := Condition{Column: "epsg", Op: "!=", Value: json.RawMessage("2154")}
	split := &spec.Split{By: "cell", Size: 2.5, LonLat: true, Shares: []spec.Share{{Name: "a", Weight: 1},
		{Name: "b", Weight: 1}}}
	const half = shuffle.SplitTotal / 2
	cells := shuffle.Split{Seed: 0, Shares: []shuffle.Share{{Name: "a", Parts: half}, {Name: "b", Parts: half}}}
	want := map[string][]int64{}
	for r := range int64(8) {
		lon, lat := 6.0, 50.9
		if r == 4 { // read as of the south
			lat = -39.4
		}
		if part := []string{"a", "b"}[cells.OfCell([4]float64{lon, lat, lon, lat}, 2.5)]; r < 5 {
			want[part] = append(want[part], r)
		}
	}
	for _, part := range []string{"a", "b"} {
		if got := selected(t, Subset{Split: split, Use: part, Where: []Condition{known}},
			tab); !slices.Equal(got, want[part]) {
			t.Errorf("part %s: %v, want %v", part, got, want[part])
		}
	}
	_, err := tryMixed(Spec{Source: "a", Fields: sampledFields, BatchSize: 1,
		Subset: Subset{Split: split, Use: "a"}}, map[string]*fakeTable{"a": tab}, 1)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "EPSG:2154") ||
		!strings.Contains(err.Error(), "row 7") {
		t.Error(err)
	}
	if b, err := json.Marshal(Spec{Subset: Subset{Split: &spec.Split{By: "cell",
		Size: 10}}}.WithDefaults()); err != nil || strings.Contains(string(b), "lonlat") ||
		strings.Contains(string(b), "crs") {
		t.Errorf("a split in the files' own CRSs has become %s", b)
	}
}

// TestWeightsOfWindows: windows are drawn by weights of a field of half the resolution, and the hash covers them.
func TestWeightsOfWindows(t *testing.T) {
	tab := chips(9, 6)
	path := filepath.Join(t.TempDir(), "weights")
	sp := Spec{Source: "x", Fields: slices.Clone(sampledFields), BatchSize: 1}.WithDefaults()
	o := Options{Opener: tab, Workers: 3}.WithDefaults()
	head, counts, err := survey.CountWeights(t.Context(), sp, o, tab.table(),
		survey.WeightOptions{Field: "mask", Cell: 5}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := survey.WriteWeights(&b, head, counts); err != nil {
		t.Fatal(err)
	}
	w, err := rows.ParseWeights(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Of(0, 21, 24); err == nil {
		t.Error("an asset of another size was accepted")
	}
	testfile.Write(t, path, b.Bytes())
	sp = Spec{Source: "memory", Fields: sampledFields, BatchSize: 4,
		Sampler: Sampler{Kind: spec.WeightedWindow, Height: 8, Width: 6,
			WeightedWindows: spec.WeightedWindows{Weights: path}, PerAsset: 2}}
	tab.objects[path] = b.Bytes()
	e := openFake(t, sp, tab, 2)
	for step := range e.Steps() {
		tk := steps.StepTicket(0, step, 4, 0, 1)
		batch := wait(t, e.Start(context.Background(), tk, false))
		checkSampled(t, e, map[string]*fakeTable{"memory": tab}, tk, batch)
		batch.Release()
	}
	sp.Fields = sampledFields[:1]
	h := openFake(t, sp, tab, 1).Hash()
	other := bytes.Clone(b.Bytes())
	other[len(other)-1]++
	tab.objects[path] = other
	if openFake(t, sp, tab, 1).Hash() == h {
		t.Error("the hash does not cover the weights")
	}
}

// renamed returns a table whose rows have other ids.
func renamed(t *fakeTable, ids []string) *rows.Table {
	return rows.New(renamedStore{fakeStore{t}, ids})
}

type renamedStore struct {
	fakeStore
	ids []string
}

func (s renamedStore) ID(_ context.Context, row int64) (string, error) { return s.ids[row], nil }

// TestWeightsAreOfTheirSamples: weights belong to row numbers, so rows in another order, or other
// rows, are refused. Data that only moved are accepted.
func TestWeightsAreOfTheirSamples(t *testing.T) {
	tab := chips(9, 4)
	ctx, o := context.Background(), Options{Opener: tab, Workers: 1}.WithDefaults()
	counted := []string{"a/b/1.tif", "a/b/2.tif", "a/bc/3.tif", "a/4.tif"}
	sp := Spec{Source: "x", Fields: slices.Clone(sampledFields), BatchSize: 1}.WithDefaults()
	head, counts, err := survey.CountWeights(ctx, sp, o, renamed(tab, counted),
		survey.WeightOptions{Field: "mask"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := survey.WriteWeights(&b, head, counts); err != nil {
		t.Fatal(err)
	}
	tab.objects["weights"] = b.Bytes()
	for _, ids := range [][]string{counted, {"/x/a/b/1.tif", "/x/a/b/2.tif", "/x/a/bc/3.tif", "/x/a/4.tif"},
		{"b/1.tif", "b/2.tif", "bc/3.tif", "4.tif"}} {
		if _, err := rows.OpenWeights(ctx, "weights", o, renamed(tab, ids)); err != nil {
			t.Errorf("%q: %v", ids, err)
		}
	}
	for _, ids := range [][]string{
		{"a/b/2.tif", "a/b/1.tif", "a/bc/3.tif", "a/4.tif"}, {"a/b/1.tif", "a/b/2.tif", "a/bc/3.tif",
			"a/5.tif"}, {"", "", "", ""},
		{"a/b/1.tif", "a/b/2.tif", "a/b/c3.tif", "a/4.tif"}, {"/", "//", "/", "x"},
	} {
		if _, err := rows.OpenWeights(ctx, "weights", o, renamed(tab, ids)); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%q: %v, want a fault of kind unsupported", ids, err)
		}
	}
	head.Samples = "" // as files were before
	b.Reset()
	if err := survey.WriteWeights(&b, head, counts); err != nil {
		t.Fatal(err)
	}
	tab.objects["weights"] = b.Bytes()
	if _, err := rows.OpenWeights(ctx, "weights", o, renamed(tab, []string{"1", "2", "3", "4"})); err != nil {
		t.Errorf("a file that names no samples: %v", err)
	}
}

// counting counts the bytes that are read of each object.
type counting struct {
	*fakeTable
	mu    sync.Mutex
	reads map[string]int
}

type countedReader struct {
	source.Reader
	c   *counting
	uri string
}

func (c *counting) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := c.fakeTable.Open(ctx, uri)
	return countedReader{r, c, uri}, err
}

func (r countedReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.c.mu.Lock()
	r.c.reads[fmt.Sprint(r.uri, " ", off, " ", len(p))]++
	r.c.mu.Unlock()
	return r.Reader.ReadAt(ctx, p, off)
}

// TestTilesHoldNoMoreThanTheirBound: with tiles of any sizes that evict each other, the counted
// memory is the memory in use.
func TestTilesHoldNoMoreThanTheirBound(t *testing.T) {
	c := pixels.NewTileCache(1 << 20)
	for round, n := range []int{1 << 17, 1 << 16, 1 << 15, 1 << 14, 1 << 13, 1 << 17} {
		for i := range 2 * int(c.Bound) / n {
			got, mine := c.Get(pixels.TileKey{Chunk: i, Row: int64(round)}, 0, n, 0, 1)
			if got == nil || !mine {
				t.Fatalf("tile %d of %d bytes: %v, %v", i, n, got, mine)
			}
			c.Finish(got, false)
			c.Put(got)
		}
		real := int64(0)
		for _, tile := range c.By {
			real += int64(cap(tile.Samples) - chunk.Spare)
		}
		if real > c.Bound || c.Held > c.Bound || c.Held != real {
			t.Errorf("tiles of %d bytes: %d are held and %d counted, of %d", n, real, c.Held, c.Bound)
		}
	}
}

// TestTilesAreOutOfTheMemory: tiles are part of the memory for batches: together they take what the
// options say.
func TestTilesAreOutOfTheMemory(t *testing.T) {
	race.SkipCovered(t)
	const memory = 1 << 20
	sp := Spec{Fields: chipFields[:1], BatchSize: 4, Sampler: Sampler{Kind: spec.TileWindow, Height: 8,
		Width: 8, TileWindows: spec.TileWindows{PerVisit: 4}}}
	tab := chips(5, 5000)
	keys := fakeColumn{kind: catalog.Int}
	for row := range tab.rows {
		keys.values = append(keys.values, catalog.Value{Int: row})
	}
	tab.columns = map[string]fakeColumn{"key": keys}
	for _, pool := range []int{1, 40, 1 << 20, -1} {
		s := sp
		if s.Sampler.Pool = pool; pool < 0 { // so much that it overflows, where it is not bounded
			s.Sampler.Pool, s.Sampler.TileHeight, s.Sampler.TileWidth = 1<<20, 1<<20, 1<<20
			s.Strata = &spec.Strata{Column: "key"}
		}
		s.Source = "memory"
		e, err := newEngine(t.Context(), s.WithDefaults(),
			Options{Workers: 1, Opener: tab, MemoryBytes: memory}.WithDefaults(), tab.table())
		if err != nil {
			t.Fatal(err)
		}
		if e.memory.bound+e.tiles.Bound != memory || e.tiles.Bound < 1 || e.tiles.Bound > memory/2 {
			t.Errorf("pools of %d: %d bytes of batches and %d of tiles in a memory of %d", pool, e.memory.bound,
				e.tiles.Bound, memory)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTilesOfAPoolAreReadOnce: with room for a pool, an epoch of pools that cover the dataset reads
// no chunk twice, with any number of workers. With hardly any room the batches are the same.
func TestTilesOfAPoolAreReadOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	tab := &fakeTable{rows: 3, kinds: []catalog.Kind{catalog.Raster}}
	for row := range tab.rows {
		a, o := newFakeAsset(r, 2, 40, 48, 8, true, row == 1)
		tab.add(0, row, a, o)
	}
	sp := Spec{Source: "memory", Fields: []Field{{Name: "image"}}, BatchSize: 16, Shuffle: true,
		Sampler: Sampler{Kind: spec.TileWindow, Height: 8, Width: 8, TileWindows: spec.TileWindows{PerVisit: 16,
			Pool: 1000}}}.WithDefaults()
	var want [][]byte
	for _, memory := range []int64{64 << 20, 40_000} {
		c := &counting{fakeTable: tab, reads: map[string]int{}}
		e, err := newEngine(context.Background(), sp,
			Options{Workers: 7, Opener: c, MemoryBytes: memory}.WithDefaults(), tab.table())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := collect(t, e, LoaderOptions{Epochs: 1})
		if e.tiles.Held > e.tiles.Bound || len(e.tiles.Idle) != len(e.tiles.By) {
			t.Errorf("%d bytes of tiles, at most %d; %d of %d are held", e.tiles.Held, e.tiles.Bound,
				len(e.tiles.By)-len(e.tiles.Idle), len(e.tiles.By))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if e.tiles.Held != 0 || len(e.tiles.By) != 0 {
			t.Errorf("%d bytes of tiles after Close", e.tiles.Held)
		}
		if want == nil {
			want = got
			for what, n := range c.reads {
				if n > 1 {
					t.Errorf("%s was read %d times", what, n)
				}
			}
			continue
		}
		sameRun(t, "with little memory", got, want)
	}
}

// TestTilesThatFail: a worker that waits for a chunk does not get the error of another chunk.
func TestTilesThatFail(t *testing.T) {
	c := pixels.NewTileCache(1000)
	a, mine := c.Get(pixels.TileKey{Chunk: 1}, 0, 100, 0, 1)
	b, others := c.Get(pixels.TileKey{Chunk: 1}, 0, 100, 0, 1)
	if !mine || others || a != b {
		t.Fatal("a chunk was given out twice")
	}
	c.Finish(a, true)
	c.Put(a)
	if again, mine := c.Get(pixels.TileKey{Chunk: 1}, 0, 100, 0, 1); !mine || again == a {
		t.Error("a chunk that failed is still there")
	}
	c.Put(b)
	if c.Held != 100 {
		t.Errorf("%d bytes are held", c.Held)
	}
	if big, _ := c.Get(pixels.TileKey{Chunk: 2}, 0, 901, 0, 1); big != nil {
		t.Error("more was given out than there is room for")
	}
}

func TestBadLimit(t *testing.T) {
	tab := chips(5, 20)
	gone := fault.At(fault.Corrupt, "tile 1", 99, "broken")
	tab.broken = map[int64]error{3: gone, 7: gone, 15: gone}
	run := func(limit *spec.BadLimit, world int) (batches int, err error) {
		e := openFake(t, Spec{Fields: chipFields, BatchSize: 5, BadSamples: spec.BadSkip, BadLimit: limit}, tab, 2)
		l, err := NewLoader(e, LoaderOptions{Epochs: 2, World: world})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for b, err := range l.All(context.Background()) {
			if err != nil {
				return batches, err
			}
			_ = b
			batches++
		}
		return batches, nil
	}
	count, rate := func(n int64) *spec.BadLimit {
		return &spec.BadLimit{Count: &n}
	}, func(r float64) *spec.BadLimit { return &spec.BadLimit{Rate: &r} }
	for _, c := range []struct {
		limit *spec.BadLimit
		want  int
	}{{nil, 8}, {count(3), 8}, {count(2), 3}, {count(1), 1}, {count(0), 0}, {rate(0.15), 8}, {rate(0.1), 3}} {
		n, err := run(c.limit, 1)
		if n != c.want || (err == nil) != (c.want == 8) || err != nil && !errors.Is(err, fault.Limit) {
			t.Errorf("limit %+v: %d batches, %v; want %d", c.limit, n, err, c.want)
		}
	}
	// With batches of five, rank 1 of 2 has positions 1, 3, 6, 8, 11, 13, 16 and 18, and so of
	// these samples only 3.
	for _, c := range []struct {
		rank, world int
		from        int64
		limit       int64
		want        string // in the error; empty: there is none
	}{
		{0, 1, 0, 2, "3 in epoch 0, over the limit of 2"},
		{0, 1, 5, 2, ""},
		{0, 1, 5, 1, "2 in epoch 0 since position 5, where this loader began, over the limit of 1"},
		{1, 2, 0, 1, ""},
		{1, 2, 0, 0, "1 in epoch 0 among the rows of rank 1 of 2, over the limit of 0"},
		{0, 2, 5, 1, "2 in epoch 0 among the rows of rank 0 of 2 since position 5, where this loader began, over " +
			"the limit of 1"},
	} {
		e := openFake(t, Spec{Fields: chipFields, BatchSize: 5, BadSamples: spec.BadSkip, BadLimit: count(c.limit)},
			tab, 2)
		state := steps.State{Version: steps.Version, Spec: e.Hash(), Samples: c.from}
		l, err := NewLoader(e, LoaderOptions{Epochs: 1, Rank: c.rank, World: c.world, State: &state})
		if err != nil {
			t.Fatal(err)
		}
		var got error
		for _, err := range l.All(t.Context()) {
			got = err
		}
		l.Close()
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	steps := Spec{BatchSize: 1, BadLimit: count(2)}.BadCounter(20, 0, 1)
	for first := range int64(3) { // the bad steps of one row are one bad sample
		err := steps.Note(&batch.Batch{First: first, Bad: []batch.Bad{{Row: 1, Err: gone}, {Row: 1, Err: gone}}})
		if (err == nil) != (first < 2) {
			t.Errorf("%d bad samples with two bad steps each, of 2 that may be: %v", first+1, err)
		}
	}
	for _, c := range []struct {
		spec        Spec
		n           int64
		rank, world int
		want        int64
	}{
		{Spec{BatchSize: 5}, 100, 0, 4, 20}, // rows 0 and 4 of every five
		{Spec{BatchSize: 5}, 100, 1, 4, 10}, // row 1
		{Spec{BatchSize: 5}, 102, 1, 4, 10}, // of 21 rows, half a row is none
		{Spec{BatchSize: 5, Last: "drop"}, 104, 0, 4, 20},
		{Spec{BatchSize: 5}, 100, 6, 8, 0},
	} {
		c.spec.BadLimit = rate(0.5)
		counter := c.spec.BadCounter(c.n, c.rank, c.world)
		if got := counter.Limit(); got != c.want {
			t.Errorf("%d samples in batches of %d, rank %d of %d: half of them are %d, want %d", c.n,
				c.spec.BatchSize, c.rank, c.world, got, c.want)
		}
	}
	hundred := Spec{BatchSize: 1, BadLimit: rate(0.29)}.BadCounter(100, 0, 1)
	if got := hundred.Limit(); got != 29 {
		t.Errorf("a rate of 0.29 in 100 samples lets %d be bad", got)
	}
	base := openFake(t, Spec{Fields: chipFields, BatchSize: 5, BadSamples: spec.BadSkip}, tab, 1)
	if limited := openFake(t, Spec{Fields: chipFields, BatchSize: 5, BadSamples: spec.BadSkip, BadLimit: count(3)},
		tab, 1); limited.Hash() != base.Hash() {
		t.Error("a limit, which changes no batch, changes the hash")
	}
}

// TestExplain: the rows, chunks and bytes that Explain lists are those that a batch reads.
func TestExplain(t *testing.T) {
	tabs := sampledTables()
	for name, sp := range fixedSpecs() {
		if name == "tiles" {
			continue // which reads less than is explained
		}
		e := openMixed(t, sp, tabs, 2)
		var read atomic.Int64
		for step := range min(e.Steps(), 4) {
			tk := steps.StepTicket(0, step, 5, 0, 1)
			rows, err := e.Explain(context.Background(), tk)
			if err != nil {
				t.Fatal(err)
			}
			b := wait(t, e.Start(context.Background(), tk, false))
			for k, r := range rows {
				if r.Row != k || r.Position != b.Positions[k] {
					t.Fatalf("%s: row %d is explained as %d at %d", name, k, r.Row, r.Position)
				}
				bad := slices.ContainsFunc(b.Bad, func(x batch.Bad) bool { return x.Row == k })
				if (r.Err != nil) != bad {
					t.Fatalf("%s row %d: explained error %v, bad %v", name, k, r.Err, bad)
				}
				if r.Position < 0 || bad {
					continue
				}
				want := 2 * max(e.sets[0].steps, 1) * len(e.sets[0].ofViews())
				if r.Draw.Sample != b.Samples[k] || len(r.Assets) != want {
					t.Fatalf("%s row %d: %+v, sample %d", name, k, r.Draw, b.Samples[k])
				}
				for _, a := range r.Assets {
					for _, c := range a.Chunks {
						if !slices.ContainsFunc(a.Runs, func(x dryrun.Range) bool {
							return c.Off >= x.Off && c.Off+c.Len <= x.Off+x.Len
						}) && c.Len > 0 {
							t.Fatalf("%s row %d: chunk %+v in no run of %+v", name, k, c, a.Runs)
						}
						read.Add(c.Len)
					}
				}
			}
			b.Release()
		}
		if read.Load() == 0 {
			t.Errorf("%s: nothing is explained to be read", name)
		}
	}
}

// TestSourceErrors: errors name the source.
func TestSourceErrors(t *testing.T) {
	tabs := sampledTables()
	small := chips(1, 3)
	for row := range small.rows {
		a, o := newFakeAsset(rand.New(rand.NewPCG(1, uint64(row))), 2, 20, 24, 8, false, false)
		small.add(0, row, a, o)
	}
	tabs["two bands"] = small
	mixed := func(sources ...Source) Spec {
		return Spec{Fields: slices.Clone(sampledFields), BatchSize: 2, Mixture: spec.Mixture{Sources: sources}}
	}
	for want, sp := range map[string]Spec{
		`source "b": no table "missing"`:             mixed(Source{Source: "a"}, Source{Name: "b", Source: "missing"}),
		`source "1": field "image": normalize: mean`: mixed(Source{Source: "a"}, Source{Source: "two bands"}),
		`source "1": field "image" is (3, 20, 24) float32, and in the first source (2, 20, 24)`: mixed(
			Source{Source: "two bands",
				Fields: []Field{{Name: "image", Normalize: &spec.Normalize{Scale: []float64{1},
					Offset: []float64{0}}}}}, Source{Source: "a"}),
		`source "deep": source "0": b: where table: no column "none"`: mixed(Source{Source: "a"},
			Source{Name: "deep", Mixture: spec.Mixture{Sources: []Source{
				{Source: "b", Subset: Subset{Where: []Condition{{Column: "none", Op: "<",
					Value: json.RawMessage("1")}}}}}}}),
		`source "0": source is empty`: mixed(Source{}),
	} {
		_, err := tryMixed(sp, tabs, 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
	}
	sp := mixed(Source{Source: "a"}, Source{Name: "other", Source: "b"})
	sp.BadSamples = spec.BadError
	e := openMixed(t, sp, tabs, 2)
	found := map[bool]int{}
	for step := range e.Steps() {
		b, err := e.Start(context.Background(), steps.StepTicket(0, step, 2, 0, 1), false).Wait(context.Background())
		if err == nil {
			b.Release()
			continue
		}
		found[strings.Contains(err.Error(), `source "other"`)]++
		if !strings.Contains(err.Error(), "source ") {
			t.Errorf("%v names no source", err)
		}
	}
	if len(found) == 0 {
		t.Error("no broken sample was met")
	}
}

// TestInvalidSpecs: invalid specs are refused when they are parsed or opened.
func TestInvalidSpecs(t *testing.T) {
	tabs := sampledTables()
	base := func() Spec { return Spec{Source: "a", Fields: slices.Clone(sampledFields), BatchSize: 2} }
	for name, change := range map[string]func(*Spec){
		"d4 of oblong chips": func(s *Spec) { s.Augment = "d4" },
		"two shares of one name": func(s *Spec) {
			s.Split, s.Use = &spec.Split{By: "hash", Shares: []spec.Share{{Name: "a", Weight: 1},
				{Name: "b", Weight: 1}, {Name: "a", Weight: 1}}}, "a"
		},
		"unknown augment":   func(s *Spec) { s.Augment = "shear" },
		"grid without size": func(s *Spec) { s.Sampler = Sampler{Kind: spec.GridWindow} },
		"stride of a random window": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.RandomWindow, Height: 4, Width: 4, GridWindows: spec.GridWindows{StrideY: 2}}
		},
		"odd stride": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.GridWindow, Height: 4, Width: 4, GridWindows: spec.GridWindows{StrideY: 3}}
		},
		"grid that pads alone": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.GridWindow, Height: 4, Width: 4, GridWindows: spec.GridWindows{Pad: true}}
		},
		"weights without file": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.WeightedWindow, Height: 4, Width: 4}
		},
		"odd tile": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.TileWindow, Height: 4, Width: 4, TileWindows: spec.TileWindows{TileHeight: 5,
				TileWidth: 4}}
		},
		"scale of nothing": func(s *Spec) {
			s.Sampler = Sampler{Kind: spec.ResizedWindow, Height: 4, Width: 4,
				ResizedWindows: spec.ResizedWindows{ScaleMin: 2, ScaleMax: 1}}
		},
		"use without split": func(s *Spec) { s.Use = "train" },
		"split without use": func(s *Spec) {
			s.Split = &spec.Split{By: "hash", Shares: []spec.Share{{Name: "a", Weight: 1}}}
		},
		"no such part": func(s *Spec) {
			s.Split, s.Use = &spec.Split{By: "hash", Shares: []spec.Share{{Name: "a", Weight: 1}}}, "b"
		},
		"a cell of longitude by hash": func(s *Spec) {
			s.Split, s.Use = &spec.Split{By: "hash", LonLat: true, Shares: []spec.Share{{Name: "a", Weight: 1}}}, "a"
		},
		"a CRS of own coordinates": func(s *Spec) {
			s.Split, s.Use = &spec.Split{By: "cell", Size: 1, CRS: "epsg",
				Shares: []spec.Share{{Name: "a", Weight: 1}}}, "a"
		},
		"time without order": func(s *Spec) { s.Time = &spec.Time{Key: "site", Length: 2} },
		"time and strata": func(s *Spec) {
			s.Time, s.Strata = &spec.Time{Key: "site", Order: "date", Length: 2}, &spec.Strata{Column: "class"}
		},
		"layout without t": func(s *Spec) {
			s.Time = &spec.Time{Key: "site", Order: "date", Length: 2}
			s.Fields[0].Layout = "n b y x"
		},
		"weight and temperature": func(s *Spec) {
			s.Source, s.Temperature, s.Sources = "", 2, []Source{{Source: "a"}, {Source: "a", Weight: 2}}
		},
		"length by shortest": func(s *Spec) { s.Source = ""; s.Sources = []Source{{Source: "a"}}; s.Length = 4 },
		"both":               func(s *Spec) { s.Sources = []Source{{Source: "a"}} },
		"rows of a mixture": func(s *Spec) {
			s.Source = ""
			s.Sources = []Source{{Source: "a"}}
			s.Where = []Condition{{Column: "cloud", Op: "<", Value: json.RawMessage("1")}}
		},
		"field called source": func(s *Spec) {
			s.Source = ""
			s.Sources = []Source{{Source: "a"}}
			s.Fields[2].Name = "source"
		},
		"unknown field of a source": func(s *Spec) {
			s.Source = ""
			s.Sources = []Source{{Source: "a", Fields: []Field{{Name: "elsewhere"}}}}
		},
		"bad limit":         func(s *Spec) { n := int64(-1); s.BadLimit = &spec.BadLimit{Count: &n} },
		"resample":          func(s *Spec) { s.Fields[0].Resample = "cubic" },
		"antialias of ints": func(s *Spec) { s.Fields[1].Resample = spec.Antialias },
		"bilinear of ints":  func(s *Spec) { s.Fields[1].Resample = spec.Bilinear },
		"empty selection": func(s *Spec) {
			s.Where = []Condition{{Column: "cloud", Op: ">", Value: json.RawMessage("100")}}
		},
	} {
		s := base()
		change(&s)
		if e, err := tryMixed(s, tabs, 1); err == nil {
			t.Errorf("%s was accepted", name)
			_ = e.Close()
		}
	}
}

// TestLongSequences: the memory of a sequence grows with its steps, and not with their square.
func TestLongSequences(t *testing.T) {
	const length = 1 << 13
	tab := sampledTables()["b"]
	tab.broken = nil
	s := Spec{Source: "b", Fields: slices.Clone(sampledFields[:1]), BatchSize: 1,
		Sampler: Sampler{Kind: spec.RandomWindow, Height: 2, Width: 2}}
	s.Time = &spec.Time{Key: "site", Order: "date", Length: length}
	e, err := tryMixed(s, map[string]*fakeTable{"b": tab}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	read := func() uint64 {
		return corpus.Allocated(func() {
			wait(t, e.Start(t.Context(), steps.StepTicket(0, 0, 1, 0, 1), false)).Release()
		})
	}
	read()
	if n := read(); n > 1000*length {
		t.Errorf("%d bytes are allocated for %d steps", n, length)
	}
}

// TestSizesOfRowsThatCount: sizes are read for selected rows only, however they are grouped.
func TestSizesOfRowsThatCount(t *testing.T) {
	tabs := sampledTables()
	for name, change := range map[string]func(*Spec){
		"rows":   func(*Spec) {},
		"series": func(s *Spec) { s.Time = &spec.Time{Key: "site", Order: "date", Length: 2} },
		"strata": func(s *Spec) { s.Strata = &spec.Strata{Column: "class"} },
	} {
		s := Spec{Source: "a", Fields: slices.Clone(sampledFields[:1]), BatchSize: 2,
			Sampler: Sampler{Kind: spec.GridWindow, Height: 8, Width: 6}}
		// not rows 3 and 8, which are broken
		s.Where = []Condition{{Column: "cloud", Op: "in", Value: json.RawMessage("[0, 2, 3, 4, 5, 7, 8, 9]")}}
		change(&s)
		e, err := tryMixed(s, tabs, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = e.Close()
	}
}

// TestFilledSpecsGoRound: the spec that an engine fills in, parsed again, is the same run.
func TestFilledSpecsGoRound(t *testing.T) {
	tabs := sampledTables()
	for name, sp := range fixedSpecs() {
		e := openMixed(t, sp, tabs, 1)
		b, err := json.Marshal(e.Spec())
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSpec(b)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, b)
		}
		if o := openMixed(t, again, tabs, 1); o.Hash() != e.Hash() || o.Len() != e.Len() {
			t.Errorf("%s: hash %s, and %s when it is parsed again", name, e.Hash(), o.Hash())
		}
	}
}

// TestGroups: tickets have one group if and only if their first positions are in one pool.
func TestGroups(t *testing.T) {
	tabs := sampledTables()
	e := openMixed(t, fixedSpecs()["tiles"], tabs, 1)
	groups, _ := e.Plan().Groups()
	pools := map[int64]steps.Pool{}
	for epoch := range uint64(3) {
		for step := range e.Steps() {
			tk := steps.StepTicket(epoch, step, 5, 0, 1)
			draw := e.plan.At(epoch, tk.First)
			visits := e.leaves[draw.Dataset].sampler
			pool := steps.Pool{Dataset: draw.Dataset, Epoch: draw.Epoch,
				Index: draw.Position / int64(visits.Pool*visits.PerVisit)}
			g, _ := groups.Of(tk, 3)
			if g < 0 || g != int64(pool.Key()>>1) {
				t.Fatalf("step %d: group %d of pool %+v", step, g, pool)
			}
			if other, seen := pools[g]; seen && other != pool {
				t.Fatalf("pools %+v and %+v have group %d", pool, other, g)
			}
			pools[g] = pool
		}
	}
	if len(pools) < 6 {
		t.Errorf("%d pools in three epochs", len(pools))
	}
	if g, ok := openMixed(t, fixedSpecs()["resized"], tabs, 1).Plan().Groups(); ok {
		t.Errorf("resized: groups %+v", g)
	}
}

// TestRootsOfSources: every source and every file of weights must lie below a root.
func TestRootsOfSources(t *testing.T) {
	inside, outside := t.TempDir(), t.TempDir()
	chip := testfile.Read(t, filepath.Join("..", "testdata", "raster", "tog", "tog-series-0.tif"))
	for _, dir := range []string{inside, outside} {
		testfile.Write(t, filepath.Join(dir, "a.tif"), chip)
		var b bytes.Buffer
		if err := survey.Weights(context.Background(), &b, Spec{Source: dir}, Options{},
			survey.WeightOptions{Cell: 16}, nil, nil); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, "weights"), b.Bytes())
	}
	mixed := func(second string) Spec {
		return Spec{BatchSize: 1, Mixture: spec.Mixture{Sources: []Source{{Source: inside}, {Source: second}}}}
	}
	weighted := func(dir string) Spec {
		return Spec{Source: inside, BatchSize: 1, Sampler: Sampler{Kind: spec.WeightedWindow, Height: 8, Width: 8,
			WeightedWindows: spec.WeightedWindows{Weights: filepath.Join(dir, "weights")}}}
	}
	for i, sp := range []Spec{mixed(inside), weighted(inside), mixed(outside), weighted(outside)} {
		e, err := Open(context.Background(), sp, Options{Roots: []string{inside}})
		if (err == nil) != (i < 2) || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("spec %d: %v", i, err)
		}
		if e != nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
