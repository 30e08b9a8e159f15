package taco

import (
	"math"
	"testing"
	"time"
)

func us(s string) int64 {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

// TestParseTimes reads a date as a whole UTC day, with both ends included, and a time as one timestamp.
func TestParseTimes(t *testing.T) {
	for text, want := range map[string]Times{
		"2020-02-28/2020-02-29":                     {us("2020-02-28T00:00:00Z"), us("2020-02-29T23:59:59.999999Z")},
		"2020-12-31":                                {us("2020-12-31T00:00:00Z"), us("2020-12-31T23:59:59.999999Z")},
		"2020-01-01T12:00:00Z/2020-01-02":           {us("2020-01-01T12:00:00Z"), us("2020-01-02T23:59:59.999999Z")},
		"2020-01-01T12:00:00/2020-01-01T12:30":      {us("2020-01-01T12:00:00Z"), us("2020-01-01T12:30:00Z")},
		"2020-01-01T02:00:00+02:00":                 {us("2020-01-01T00:00:00Z"), us("2020-01-01T00:00:00Z")},
		"2020-01-01 12:00:00.5/..":                  {us("2020-01-01T12:00:00.5Z"), math.MaxInt64},
		"/2020-01-01":                               {math.MinInt64, us("2020-01-01T23:59:59.999999Z")},
		" 1969-12-31 / 1970-01-01T00:00:00.000001Z": {-86400e6, 1},
	} {
		if got, err := ParseTimes(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/", "../..", "2020", "2020-13-01", "yesterday", "2020-01-02/2020-01-01",
		"2020-01-01T10:00:00Z/2020-01-01T09:00:00Z", "2020-01-01/2020-01-02/2020-01-03"} {
		if got, err := ParseTimes(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestDivisions: by multiplication back.
func TestDivisions(t *testing.T) {
	for _, a := range []int64{math.MinInt64, math.MinInt64 + 1, -day - 1, -day, -1, 0, 1, day, day + 1, math.MaxInt64} {
		for _, b := range []int64{1, 1e6, day} {
			f, c := floorDiv(a, b), ceilDiv(a, b)
			if r := a - f*b; r < 0 || r >= b {
				t.Errorf("floor of %d / %d is not %d", a, b, f)
			}
			if want := f + int64(btoi(f*b != a)); c != want {
				t.Errorf("ceiling of %d / %d: %d, want %d", a, b, c, want)
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
