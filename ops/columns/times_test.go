package columns

import (
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// TestTimes: the middles are those of STAC of tacotoolbox 0.26.9, (start + end) // 2 in Python, whose types the columns
// have.
func TestTimes(t *testing.T) {
	level := func(names []string, v ...*tables.Vector) *build.Level {
		l := &build.Level{Table: tables.FromVectors(names, v)}
		for range v[0].Len() {
			l.Rows = append(l.Rows, build.Row{ID: "a"})
		}
		return l
	}
	both := []string{"stac:time_start", "stac:time_end"}
	const null = math.MinInt64
	whole := tables.Type{Kind: tables.Int64, Bits: 64}
	for name, c := range map[string]struct {
		level *build.Level
		want  []int64 // the middles
		err   string
	}{
		"numbers": {level(both, tables.NewInts(whole, []int64{1, -7, 5}, nil),
			tables.NewInts(whole, []int64{4, -2, 9}, []bool{false, false, true})), []int64{2, -5, null}, ""},
		"text": {level(both, tables.NewStrings([]string{"2024-05-01T10:00:00Z"}, nil),
			tables.NewStrings([]string{"2024-05-02"}, nil)), []int64{1714582800000000}, ""},
		"days": {level(both, tables.NewInts(tables.Type{Kind: tables.Date}, []int64{0}, nil),
			tables.NewInts(tables.Type{Kind: tables.Date}, []int64{2}, nil)), []int64{86400000000}, ""},
		"far apart": {level(both, tables.NewInts(timestamps, []int64{-1 << 62}, nil),
			tables.NewInts(timestamps, []int64{1<<62 - 1}, nil)), []int64{-1}, ""},
		"reversed": {level(both, tables.NewInts(whole, []int64{5}, nil), tables.NewInts(whole, []int64{4}, nil)), nil,
			"after stac:time_end"},
		"no time": {level(both[:1], tables.NewStrings([]string{"soon"}, nil)), nil, "no timestamp"},
		"a range": {level(both[:1], tables.NewStrings([]string{"2024-01-01/2024-01-02"}, nil)), nil, "no timestamp"},
		"floats": {level(both[:1], tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64},
			[]float64{1}, nil)), nil,
			"not of times"},
		"no end": {level(both[:1], tables.NewInts(whole, []int64{5}, nil)), nil, ""},
	} {
		set := &build.Columns{}
		err := (&Compute{}).times(t.Context(), set, c.level, "stac:")
		if c.err != "" {
			if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := set.Table(len(c.level.Rows))
		for _, col := range got.Columns() {
			if col.Type.Kind != tables.Timestamp {
				t.Errorf("%s: %s is %v", name, col.Name, col.Type)
			}
		}
		if i := got.Index("stac:time_middle"); (i >= 0) != (c.want != nil) {
			t.Errorf("%s: columns %v", name, got.Columns())
		} else if i >= 0 {
			v, err := got.At(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			for row, want := range c.want {
				if v.Null(row) != (want == null) || want != null && v.Int(row) != want {
					t.Errorf("%s: %d, want %d", name, v.Int(row), want)
				}
			}
		}
	}
}
