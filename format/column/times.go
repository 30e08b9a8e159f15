package column

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Times is a range of timestamps, both ends included, in microseconds since 1970 UTC.
type Times struct{ First, Last int64 }

// layouts are the accepted forms of timestamps. Those without a time zone are in UTC.
var layouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04",
	"20060102T150405Z07:00", "20060102T150405",
}

// ParseTimes parses "A/B", or "A" alone. A and B are dates, which stand for the whole day in UTC, or timestamps; ".."
// or nothing is an open end. Errors have no kind, because they are errors of usage.
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
		return Times{}, fmt.Errorf("%q is not a time range START/END", text)
	}
	if first > last {
		return Times{}, fmt.Errorf("time range %q: the start is after the end", text)
	}
	return Times{first, last}, nil
}

func open(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || s == ".."
}

// parseTime returns the first and last microsecond of a date or timestamp, or unbounded for an open end.
func parseTime(text string, unbounded int64) (first, last int64, err error) {
	if open(text) {
		return unbounded, unbounded, nil
	}
	text = strings.TrimSpace(text)
	for _, l := range [...]string{time.DateOnly, "2006-1-2", "20060102", "2.1.2006", "2006_01_02"} {
		if t, err := time.Parse(l, text); err == nil {
			return t.UnixMicro(), t.AddDate(0, 0, 1).UnixMicro() - 1, nil
		}
	}
	for _, l := range [...]string{"2006-01", "2006_01"} {
		if t, err := time.Parse(l, text); err == nil {
			return t.UnixMicro(), t.AddDate(0, 1, 0).UnixMicro() - 1, nil
		}
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t.UnixMicro(), t.UnixMicro(), nil
		}
	}
	return 0, 0, fmt.Errorf("%q is neither a date (2006-01-02) nor a timestamp (2006-01-02T15:04:05Z)", text)
}
