package rumi

import (
	"slices"
	"testing"
)

// TestParseUnit: every unit has a name for every image that it fits, and axes of length one do not count.
func TestParseUnit(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 1}, {1, 3}, {3, 2}} {
		for u := range numUnits {
			name := u.Axes(shape[0], shape[1])
			if u == UnitTileTime {
				name = "step"
			}
			got, err := ParseUnit(name, shape[0], shape[1])
			if fits := u.fits(shape[0], shape[1]); fits && (err != nil || got != u) {
				t.Errorf("%q of %v: %d %v, want %d", name, shape, got, err, u)
			}
		}
	}
	for name, shape := range map[string][2]int{"b h w": {2, 2}, "": {2, 1}, "h b w": {2, 1}, "w h": {1, 1},
		"b b h w": {2, 1}, "cube": {1, 1}, "h w n": {1, 1}} {
		if u, err := ParseUnit(name, shape[0], shape[1]); err == nil {
			t.Errorf("%q of %v: unit %d", name, shape, u)
		}
	}
}

// TestBandNames: every band has a name that a trailer may have, and names that may stay do.
func TestBandNames(t *testing.T) {
	for _, c := range []struct {
		given, want []string
		kept        bool
	}{
		{nil, []string{"band 0", "band 1", "band 2"}, true},
		{[]string{"a", "", "b"}, []string{"a", "band 1", "b"}, true},
		{[]string{"a", "a", "a\x00"}, []string{"a", "band 1", "band 2"}, false},
		{[]string{"band 2", "", ""}, []string{"band 2", "band 1", "band 2'"}, true},
		{[]string{"\xff"}, []string{"band 0", "band 1", "band 2"}, false},
	} {
		got, kept := BandNames(c.given, 3)
		if !slices.Equal(got, c.want) || kept != c.kept {
			t.Errorf("%q: %q %t, want %q %t", c.given, got, kept, c.want, c.kept)
		}
		if err := (&Trailer{Bands: got, Kind: Instant, Times: []int64{0}}).check(3, 1); err != nil {
			t.Error(err)
		}
	}
}

// TestParseTimes: the seconds are those of `date -u -d TEXT +%s`.
func TestParseTimes(t *testing.T) {
	for _, c := range []struct {
		texts []string
		kind  TimeKind
		want  []int64
	}{
		{[]string{"2024-05-06", "1969-12-31"}, Instant, []int64{1714953600, -86400}},
		{[]string{"2024-05-06T07:08:09Z", "2024-05-06T07:08:09+02:00", "2024-05-06 07:08:09"}, Instant,
			[]int64{1714979289, 1714972089, 1714979289}},
		{[]string{"2024-05-06/2024-05-07T00:00:01"}, Interval, []int64{1714953600, 1715040001}},
	} {
		kind, got, err := ParseTimes(c.texts)
		if err != nil || kind != c.kind || !slices.Equal(got, c.want) {
			t.Errorf("%q: %s %v %v, want %s %v", c.texts, kind, got, err, c.kind, c.want)
		}
	}
	for _, texts := range [][]string{{""}, {"2024"}, {"2024-05-06", "2024-05-06/2024-05-07"}, {"2024-05-07/2024-05-06"},
		{"2024-05-06/2024-05-07/2024-05-08"}, {"2024-05-06T07:08:09.5Z"}} {
		if _, got, err := ParseTimes(texts); err == nil {
			t.Errorf("%q: %v", texts, got)
		}
	}
}
