package taco_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// matches returns the ids of level 0 that match a filter in a TACOLLECTION.json, and the files that were opened for it.
func matches(t *testing.T, path string, f spacetime.Filter, only ...spacetime.Filter) (ids, opened []string) {
	t.Helper()
	s := &spy{}
	defer s.files.Close()
	d, err := taco.Open(t.Context(), s, []string{path}, taco.Options{Filters: only})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rows, err := d.Filter(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		e, err := d.Entry(t.Context(), 0, row)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	return ids, d.Parts()
}

// samePruned compares the answer of a filter with and without pruning, and returns the number of files not opened.
func samePruned(t *testing.T, path string, f spacetime.Filter) int {
	t.Helper()
	want, all := matches(t, path, f)
	got, opened := matches(t, path, f, f)
	if !slices.Equal(got, want) {
		t.Errorf("%s: box %v, times %v of %q %q: %q of %d files, %q of all %d", path, f.Box, f.Times, f.Geometry,
			f.Time, got, len(opened), want, len(all))
	}
	return len(all) - len(opened)
}

// span returns the days from one date to another.
func span(t *testing.T, from, to time.Time) *column.Times {
	t.Helper()
	times, err := column.ParseTimes(from.Format(time.DateOnly) + "/" + to.Format(time.DateOnly))
	if err != nil {
		t.Fatal(err)
	}
	return &times
}

// TestPrunedExtentsOfToolbox: the extents that tacotoolbox writes leave out places and times of samples. A filter finds
// these all the same, and still leaves files unopened where it may.
func TestPrunedExtentsOfToolbox(t *testing.T) {
	race.SkipCovered(t)
	root := filepath.Join(corpus.Testdata(t), "extents")
	opened := map[string]int{}
	step, years := 22.5, 4
	if soak.All() {
		step, years = 15, 2
	} else if testing.Short() { // each filter opens files in the same way
		step, years = 37.5, 5
	}
	for _, name := range []string{"sides", "middles", "both", "starts"} {
		path := filepath.Join(root, name, "TACOLLECTION.json")
		for lon := -180.0; lon < 180; lon += step {
			for _, lat := range []float64{-40, -1, 0, 49, 50, 60} {
				for _, geometry := range []string{"", "stac:centroid"} {
					box := mustBox(t, lon, lat, lon+8, lat+3)
					opened[name+" place"] += samePruned(t, path, spacetime.Filter{Box: &box, Geometry: geometry})
				}
			}
		}
		for year := 2008; year < 2033; year += years {
			for _, months := range []int{1, 12, 40} {
				from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
				opened[name+" time"] += samePruned(t, path,
					spacetime.Filter{Times: span(t, from, from.AddDate(0, months, 0))})
			}
		}
	}
	for _, name := range []string{"sides place", "middles place", "both place", "starts place", "starts time"} {
		if opened[name] == 0 {
			t.Errorf("%s: every file was opened for every filter", name)
		}
	}
	for _, name := range []string{"sides time", "middles time", "both time"} { // there is a column of middles
		if opened[name] != 0 {
			t.Errorf("%s: %d files were not opened", name, opened[name])
		}
	}
}

// pruneRow is a row of level 0 of a random part.
type pruneRow struct {
	ID     string `parquet:"id"`
	Type   string `parquet:"type"`
	Centre []byte `parquet:"stac:centroid"`
	Start  *int64 `parquet:"stac:time_start,optional,timestamp(microsecond)"`
}

// pruneRowMiddle has a column of middles too.
type pruneRowMiddle struct {
	ID     string `parquet:"id"`
	Type   string `parquet:"type"`
	Centre []byte `parquet:"stac:centroid"`
	Start  *int64 `parquet:"stac:time_start,optional,timestamp(microsecond)"`
	Middle *int64 `parquet:"stac:time_middle,optional,timestamp(microsecond)"`
}

func pointWKB(lon, lat float64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{1}, 1)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(lon))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(lat))
}

// toolboxExtent is the extent that tacotoolbox 0.26.9 writes of centroids and times: of the
// longitudes those of the side of longitude 0 with the larger span, of the times the middles if
// there is one, else the starts. sides false is as
// 0.16.11 writes longitudes: those of both sides.
func toolboxExtent(rows []pruneRowMiddle, places [][2]float64, sides bool) map[string]any {
	var lons, east, west, lats []float64
	for _, p := range places {
		lons, lats = append(lons, p[0]), append(lats, p[1])
		if p[0] >= 0 {
			east = append(east, p[0])
		} else {
			west = append(west, p[0])
		}
	}
	spanOf := func(v []float64) float64 { return slices.Max(v) - slices.Min(v) }
	switch {
	case !sides || len(east) == 0 || len(west) == 0:
	case spanOf(east) >= spanOf(west):
		lons = east
	default:
		lons = west
	}
	out := map[string]any{"spatial": []float64{slices.Min(lons), slices.Min(lats), slices.Max(lons), slices.Max(lats)}}
	var starts, times []int64
	for _, r := range rows {
		if r.Start != nil {
			starts = append(starts, *r.Start)
		}
		if r.Middle != nil {
			times = append(times, *r.Middle)
		}
	}
	if len(times) == 0 {
		times = starts
	}
	if len(times) > 0 {
		text := func(t int64) string { return time.UnixMicro(t).UTC().Format("2006-01-02T15:04:05.999999Z07:00") }
		out["temporal"] = []string{text(slices.Min(times)), text(slices.Max(times))}
	}
	return out
}

// randomCollection writes a TACOLLECTION.json of random parts, and returns its path and the centroids.
func randomCollection(t *testing.T, rng *rand.Rand) (path string, centres [][2]float64) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, b []byte) {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, b)
	}
	middles, sides := rng.IntN(2) == 0, rng.IntN(2) == 0
	files, extents := []string{}, []any{}
	for part := range 2 + rng.IntN(4) {
		name := fmt.Sprintf("part%d", part)
		var rows []pruneRowMiddle
		var places [][2]float64
		lon, lat, year, spread := rng.Float64()*360-180, rng.Float64()*180-90, 1990+rng.IntN(40),
			math.Exp(rng.Float64()*4)
		if rng.IntN(2) == 0 {
			lon = rng.NormFloat64() * 10 // many parts have centroids on both sides of longitude 0
		}
		for i := range 1 + rng.IntN(5) {
			row := pruneRowMiddle{ID: fmt.Sprintf("%s_%d", name, i), Type: "FILE"}
			write(filepath.Join(name, "DATA", row.ID), []byte("x"))
			p := [2]float64{math.Round(math.Remainder(lon+rng.NormFloat64()*spread, 360)),
				math.Round(min(max(lat+rng.NormFloat64()*spread, -90), 90))}
			row.Centre, places = pointWKB(p[0], p[1]), append(places, p)
			if rng.IntN(8) > 0 {
				start := time.Date(year, time.Month(1+rng.IntN(30)), 1, 0, 0, 0, rng.IntN(2)*1000, time.UTC).UnixMicro()
				row.Start = &start
				if middles && rng.IntN(2) == 0 {
					middle := start + rng.Int64N(400*86400e6)
					row.Middle = &middle
				}
			}
			rows = append(rows, row)
		}
		var b bytes.Buffer
		var err error
		if middles {
			err = parquet.Write(&b, rows)
		} else {
			few := make([]pruneRow, len(rows))
			for i, r := range rows {
				few[i] = pruneRow{r.ID, r.Type, r.Centre, r.Start}
			}
			err = parquet.Write(&b, few)
		}
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(name, "METADATA", "level0.parquet"), b.Bytes())
		write(filepath.Join(name, "COLLECTION.json"), []byte(`{"id":"a"}`))
		centres = append(centres, places...)
		extent := toolboxExtent(rows, places, sides)
		extent["file"] = name
		files, extents = append(files, name), append(extents, extent)
	}
	columns := [][2]string{{"id", "string"}, {"type", "string"}, {"stac:centroid", "binary"},
		{"stac:time_start", "timestamp[us]"}}
	if middles {
		columns = append(columns, [2]string{"stac:time_middle", "timestamp[us]"})
	}
	doc, err := json.Marshal(map[string]any{
		"id": "all", "taco:field_schema": map[string]any{"level0": columns},
		"taco:sources": map[string]any{"files": files, "extents": extents},
	})
	if err != nil {
		t.Fatal(err)
	}
	write("TACOLLECTION.json", doc)
	return filepath.Join(dir, "TACOLLECTION.json"), centres
}

// TestPrunedAnswersAreTheUnpruned: over random collections with extents as tacotoolbox writes them,
// a filter finds the same samples whether files that it rules out are opened or not.
func TestPrunedAnswersAreTheUnpruned(t *testing.T) {
	race.SkipCovered(t)
	rng := rand.New(rand.NewPCG(7, 11))
	places, times, collections := 0, 0, 8
	if soak.All() {
		collections = 20
	} else if testing.Short() {
		collections = 5
	}
	for range collections {
		path, centres := randomCollection(t, rng)
		for range 12 {
			w, s := float64(rng.IntN(360)-180), float64(rng.IntN(170)-90)
			if rng.IntN(2) == 0 { // a corner of the box is a centroid
				c := centres[rng.IntN(len(centres))]
				w, s = min(c[0], 179), min(c[1], 89)
			}
			sides := [4]float64{w, s, w + float64(rng.IntN(60)), s + float64(rng.IntN(40))}
			if sides[3] = min(sides[3], 90); sides[2] > 180 {
				sides[2] -= 360 // across the antimeridian
			}
			box := mustBox(t, sides[:]...)
			places += samePruned(t, path, spacetime.Filter{Box: &box, Rule: column.Rule(rng.IntN(2))})
			// a box of UTM zone 32, whose region is not a rectangle of longitudes and latitudes
			x, y := 1e5+8e5*rng.Float64(), 9e6*rng.Float64()
			utm, err := crs.NewBox([4]float64{x, y, x + 2e5, y + 1e6}, 32632)
			if err != nil {
				t.Fatal(err)
			}
			places += samePruned(t, path, spacetime.Filter{Box: &utm})
			from := time.Date(1990+rng.IntN(40), time.Month(1+rng.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
			times += samePruned(t, path, spacetime.Filter{Times: span(t, from, from.AddDate(0, rng.IntN(30), 0))})
		}
	}
	if places == 0 || times == 0 {
		t.Errorf("%d files were left unopened by place and %d by time: the test tests nothing", places, times)
	}
	t.Logf("%d files were left unopened by place, %d by time", places, times)
}
