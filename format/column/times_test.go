package column

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
		"2020-02":                                   {us("2020-02-01T00:00:00Z"), us("2020-02-29T23:59:59.999999Z")},
		"2021_12/2022_01_05":                        {us("2021-12-01T00:00:00Z"), us("2022-01-05T23:59:59.999999Z")},
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
	for _, text := range []string{"", "/", "../..", "2020", "2020-13-01", "2020-13", "2020_1", "yesterday",
		"2020-01-02/2020-01-01", "2020-01-01T10:00:00Z/2020-01-01T09:00:00Z", "2020-01-01/2020-01-02/2020-01-03"} {
		if got, err := ParseTimes(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
