package rows

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// TestSelectedRows: without conditions all rows are selected, which nil says, and it is an error if none is left. The
// log counts bad ids of no sample.
func TestSelectedRows(t *testing.T) {
	var log bytes.Buffer
	options := resources.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}.WithDefaults()
	table := inMemory(3, 0, map[string]listed{"part": {catalog.Text, 0, []any{"a", "b", "a"}}})
	for _, c := range []struct {
		bad  []string
		want []uint32
		kind fault.Kind
	}{{nil, nil, 0}, {[]string{"1", "7"}, []uint32{0, 2}, 0}, {[]string{"0", "1", "2"}, nil, fault.NotFound}} {
		source := spec.Source{Source: "here", Subset: spec.Subset{Bad: c.bad}}
		got, err := Selected(t.Context(), table, source, options)
		same := slices.Equal(got, c.want) && (got == nil) == (c.want == nil)
		if fault.KindOf(err) != c.kind || err == nil && !same {
			t.Errorf("without %q: %v, %v", c.bad, got, err)
		}
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "ids=1 of=2 \"such as\"=7") {
		t.Error(said)
	}
	table.Selected = true
	got, err := Selected(t.Context(), table, spec.Source{Subset: spec.Subset{Bad: []string{"0"}}}, resources.Options{})
	if got != nil || err != nil {
		t.Errorf("a container that has selected its rows: %v, %v", got, err)
	}
}

// TestCellsOfCentroids: a table without columns of bounds is divided by its centroids, and a row without one is in no
// part.
func TestCellsOfCentroids(t *testing.T) {
	const n = 60
	table := inMemory(n, 0, nil)
	place := func(row int) (lon, lat float64) {
		if row%7 == 3 {
			return math.NaN(), math.NaN()
		}
		return float64(row*row%300) - 150, float64(row%80) - 40
	}
	placeless := table.base.(*stored)
	table.base = placed{placeless, place}
	parts := shuffle.Split{Seed: 3, Shares: []shuffle.Share{{Name: "a", Parts: 1 << 31}, {Name: "b", Parts: 1 << 31}}}
	split := &spec.Split{By: "cell", LonLat: true, Size: 2, Seed: 3, Columns: []string{"x0", "y0", "x1", "y1"},
		Shares: []spec.Share{{Name: "a", Parts: 1 << 31}, {Name: "b", Parts: 1 << 31}}}
	for number, use := range []string{"a", "b"} {
		var want []uint32
		for row := range n {
			lon, lat := place(row)
			if parts.OfCell([4]float64{lon, lat, lon, lat}, 2) == number {
				want = append(want, uint32(row))
			}
		}
		got, err := selectRows(t.Context(), table, &spec.Subset{Split: split, Use: use}, resources.Options{})
		if err != nil || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("part %s: %v, want %v; %v", use, got, want, err)
		}
	}
	table.base = placeless
	_, err := selectRows(t.Context(), table, &spec.Subset{Split: split, Use: "a"}, resources.Options{})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("neither bounds nor centroids: %v", err)
	}
}

// placed is a store with centroids.
type placed struct {
	*stored
	place func(row int) (lon, lat float64)
}

func (p placed) Centroids(_ context.Context, visit func(row int64, lon, lat float64) error) (err error) {
	for row := 0; row < p.n && err == nil; row++ {
		lon, lat := p.place(row)
		err = visit(int64(row), lon, lat)
	}
	return err
}

// TestErrorsEndAScan: an error of the visitor, of a column, of a bound or of a header is returned.
func TestErrorsEndAScan(t *testing.T) {
	stop := errors.New("stop")
	first := inMemory(1, 0, map[string]listed{"c": {catalog.Int, 0, []any{int64(1)}}})
	joined := &Joined{tables: []*Table{first, inMemory(2, 1, nil)}, begins: []int64{0, 1, 3}}
	column, err := joined.Column(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	for last := range int64(3) {
		visits := int64(0)
		err := column.Scan(t.Context(), func(row int64, _ catalog.Value) error {
			if visits++; row == last {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || visits != last+1 {
			t.Errorf("an error at row %d: %v after %d visits", last, err, visits)
		}
	}
	broken := New(&stored{n: 2, err: stop})
	if times, err := Times(t.Context(), broken, []string{"a", "b"}); !errors.Is(err, stop) || times != nil {
		t.Errorf("times of a column that cannot be read: %v, %v", times, err)
	}
	for _, bound := range []string{"{", "[1]", `"text"`} {
		split := &spec.Split{By: "date", Column: "c", Ranges: []spec.Range{{Name: "a", From: []byte(bound)}}}
		_, err := selectRows(t.Context(), first, &spec.Subset{Split: split, Use: "a"}, resources.Options{})
		if err == nil {
			t.Errorf("a range from %s of a column of integers", bound)
		}
	}
}

// TestStackedFields: a field that is a stack takes the place of its parts, and places of rasters are looked up by the
// first part. Steps of a field move behind all fields.
func TestStackedFields(t *testing.T) {
	table := New(&stored{fields: 7, rasters: func(field int, _ int64) (catalog.Asset, error) {
		return catalog.Asset{Index: &chunk.Index{Height: field + 1, Width: 1, Bands: 1}}, nil
	}})
	for i := range table.Fields {
		table.Fields[i].Size = &catalog.Size{Height: int32(i) + 1, Width: 1}
	}
	table.Fields[3].Steps = &Steps{Fields: []int{6}}
	stacks := []stack{{first: 0}, {first: 1, n: 2}, {first: 3}, {first: 4, n: 2}}
	if err := table.stack(slices.Repeat([]spec.Field{{DType: "native"}}, 6), stacks); err != nil {
		t.Fatal(err)
	}
	var heights []int32
	for _, field := range table.Fields {
		heights = append(heights, field.Size.Height)
	}
	if !slices.Equal(heights, []int32{1, 2, 4, 5, 7}) || !slices.Equal(table.Fields[2].Steps.Fields, []int{4}) {
		t.Errorf("fields of %v, and steps %v", heights, table.Fields[2].Steps.Fields)
	}
	for i, parts := range []int{0, 2, 0, 2, 0} {
		a, err := table.Fields[i].Asset(t.Context(), 0)
		if err != nil || len(a.Parts) != parts || a.Index.Height != int(heights[i]) || a.Index.Bands != max(parts, 1) {
			t.Errorf("field %d has %d parts, %v", i, len(a.Parts), err)
		}
	}
	text := &Table{Fields: []Field{{Kind: catalog.Raster}, {Kind: catalog.Text}}}
	if err := text.stack(make([]spec.Field, 2), []stack{{n: 2}}); err == nil {
		t.Error("a stack of strings")
	}
	stepped := &Table{Fields: []Field{{Kind: catalog.Raster}, {Kind: catalog.Raster, Steps: &Steps{}}}}
	if err := stepped.stack(slices.Repeat([]spec.Field{{DType: "native"}}, 2), []stack{{n: 2}}); err == nil {
		t.Error("a stack of steps of time")
	}
	if asked := [2]int{table.Fields[1].number, table.Fields[3].number}; asked != [2]int{1, 4} || table.misplaced {
		t.Errorf("places of %v are asked for", asked)
	}
}

// selectRows returns the rows that meet the conditions and the split of a subset; nil for all.
func selectRows(ctx context.Context, t *Table, s *spec.Subset, o resources.Options) ([]uint32, error) {
	sel, err := selected(ctx, t, s, o)
	if err != nil {
		return nil, err
	}
	return sel.rows()
}
