package sql

import (
	"errors"
	"strings"
	"time"
)

// Dates are days since 1970, timestamps microseconds.

// FloorDiv divides and rounds down.
func FloorDiv(x, y int64) int64 {
	quotient := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		quotient--
	}
	return quotient
}

// TrimZone cuts the offset off a time of day.
func TrimZone(s string) string {
	s = strings.TrimSuffix(s, " UTC")
	if sign := strings.LastIndexAny(s, "+-"); sign > 0 {
		if zone := s[sign+1:]; len(zone) >= 2 && len(zone) <= 5 && strings.Trim(zone, "0123456789:") == "" {
			return s[:sign]
		}
	}
	return s
}

// Time converts microseconds since 1970 to a time.Time in UTC.
func Time(us int64) time.Time { return time.UnixMicro(us).UTC() }

// UnitMicros gives the microseconds of the units of constant length.
var UnitMicros = map[string]int64{
	"day": 86400e6, "hour": 3600e6, "minute": 60e6, "second": 1e6,
	"millisecond": 1e3, "milliseconds": 1e3, "ms": 1e3, "msec": 1e3,
	"microsecond": 1, "microseconds": 1, "us": 1, "usec": 1,
}

// DayMicros is the microseconds of a day.
const DayMicros = 86400_000_000

// MaxDays bounds the days that are added to a date: 5.8 million years.
const MaxDays = 1 << 31

// ErrRange is the error for dates and timestamps that 64 bits of microseconds do not hold.
var ErrRange = errors.New("a date or timestamp is out of range")

// ParseDate parses a leading year, month and day. It returns the days since 1970 and the rest of the string.
func ParseDate(s string) (days int64, rest string, ok bool) {
	s = strings.TrimSpace(s)
	var part [3]int
	for i := range part {
		digits := 0
		for digits < len(s) && IsDigit(s[digits]) && digits < 5 {
			part[i] = part[i]*10 + int(s[digits]-'0')
			digits++
		}
		if digits == 0 || i > 0 && digits > 2 || digits > 4 {
			return 0, "", false
		}
		s = s[digits:]
		if i < 2 {
			if s == "" || s[0] != '-' && s[0] != '/' {
				return 0, "", false
			}
			s = s[1:]
		}
	}
	when := time.Date(part[0], time.Month(part[1]), part[2], 0, 0, 0, 0, time.UTC)
	if when.Year() != part[0] || int(when.Month()) != part[1] || when.Day() != part[2] {
		return 0, "", false
	}
	return when.Unix() / 86400, s, when.Unix()%86400 == 0
}

// ParseTimeOfDay parses the time of day after a date, optionally followed by Z, +00 or +00:00. It returns nanoseconds
// and the number of digits after the point.
func ParseTimeOfDay(s string) (ns int64, digits int, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	if s[0] != ' ' && s[0] != 'T' {
		return 0, 0, false
	}
	s = s[1:]
	if t, ok := strings.CutSuffix(s, "Z"); ok {
		s = t
	} else if t, ok := strings.CutSuffix(s, "+00"); ok {
		s = t
	} else if t, ok := strings.CutSuffix(s, "+00:00"); ok {
		s = t
	}
	for _, layout := range [...]string{"15:04:05.999999999", "15:04"} {
		if when, err := time.Parse(layout, s); err == nil {
			if point := strings.IndexAny(s, ".,"); point >= 0 {
				digits = len(s) - point - 1
			}
			return int64(when.Sub(when.Truncate(24 * time.Hour))), digits, digits <= 9
		}
	}
	return 0, 0, false
}
