package taco

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Times is a range of instants, both ends included, in microseconds since 1970 UTC.
type Times struct{ First, Last int64 }

// layouts of an instant; those without a zone are read as UTC.
var layouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04",
}

// ParseTimes reads "A/B", or "A" alone, where A and B are dates (that whole UTC day) or instants, and
// ".." or nothing stands for an open end. An error is one of usage, and has no kind.
func ParseTimes(text string) (Times, error) {
	a, b, two := strings.Cut(text, "/")
	if !two {
		b = a
	}
	first, _, err := parseTime(a, math.MinInt64)
	if err != nil {
		return Times{}, err
	}
	_, last, err := parseTime(b, math.MaxInt64)
	if err != nil {
		return Times{}, err
	}
	if strings.TrimSpace(text) == "" || open(a) && open(b) {
		return Times{}, fmt.Errorf("%q is no range of times", text)
	}
	if first > last {
		return Times{}, fmt.Errorf("range of times %q: its start is after its end", text)
	}
	return Times{first, last}, nil
}

func open(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || s == ".."
}

// parseTime returns the first and last microsecond of a date or instant, unbounded for an open end.
func parseTime(text string, unbounded int64) (first, last int64, err error) {
	if open(text) {
		return unbounded, unbounded, nil
	}
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t.UnixMicro(), t.AddDate(0, 0, 1).UnixMicro() - 1, nil
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t.UnixMicro(), t.UnixMicro(), nil
		}
	}
	return 0, 0, fmt.Errorf("%q is neither a date (2006-01-02) nor an instant (2006-01-02T15:04:05Z)", text)
}
