package column

import (
	"strings"
	"testing"
	"time"
)

// FuzzTimes parses any range of timestamps: its ends are in order, each end alone gives that end, and a date is what
// package time says.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{"2020-01-01/2021-01-01", "2020-02-29",
		"../2020-01-01", "2020-01-01T00:00:00Z/..", "..", "",
		"2020-01-01T23:59:60Z", "2020-01-01 10:00:00.123456789+05:30", "9999-12-31",
		"0000-01-01/..", "2020-01-01/2019-01-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseTimes(text)
		if err != nil {
			return
		}
		if r.First > r.Last {
			t.Fatalf("%q: %d is after %d", text, r.First, r.Last)
		}
		a, b, two := strings.Cut(text, "/")
		if two && !open(a) {
			if one, err := ParseTimes(a); err != nil || one.First != r.First {
				t.Fatalf("%q begins at %d; %q: %+v, %v", text, r.First, a, one, err)
			}
		}
		if two && !open(b) {
			if one, err := ParseTimes(b); err != nil || one.Last != r.Last {
				t.Fatalf("%q ends at %d; %q: %+v, %v", text, r.Last, b, one, err)
			}
		}
		if day, err := time.Parse(time.DateOnly, strings.TrimSpace(text)); err == nil {
			if r.First != day.UnixMicro() || r.Last-r.First != 24*3600*1e6-1 {
				t.Fatalf("%q is %+v", text, r)
			}
		}
	})
}
