package query

import (
	"strings"
	"time"

	"github.com/chaski-eo/chaski/tables"
)

// timeLiteral binds DATE '…' and TIMESTAMP '…'.
func (b *binder) timeLiteral(o op, s string) (*node, error) {
	d, rest, ok := parseDate(s)
	if o == opDate {
		switch {
		case !ok:
			return nil, binderError("%q is no date of the form 2006-01-02", s)
		case rest != "":
			return nil, unsupported("a date that reads %q", s)
		}
		return b.literal(tables.Type{Kind: tables.Date}, literal{i: d})
	}
	if !ok {
		return nil, binderError("%q is no timestamp of the form 2006-01-02 15:04:05", s)
	}
	return b.clockLiteral(s, d, rest, false)
}

// clockLiteral makes a timestamp of days and a text with the time of day, nano: as one that counts nanoseconds.
func (b *binder) clockLiteral(s string, days int64, rest string, nano bool) (*node, error) {
	ns, digits, ok := parseClock(rest)
	if !ok || !nano && digits > 6 {
		return nil, unsupported("a timestamp that reads %q", s)
	}
	return b.literal(tables.Type{Kind: tables.Timestamp, Nano: nano}, literal{i: days*86400e6 + ns/1000, ns: ns % 1000})
}

// parseDate reads year, month and day in front, and returns the days since 1970 and what follows.
func parseDate(s string) (days int64, rest string, ok bool) {
	s = strings.TrimSpace(s)
	var part [3]int
	for i := range part {
		n := 0
		for n < len(s) && digit(s[n]) && n < 5 {
			part[i] = part[i]*10 + int(s[n]-'0')
			n++
		}
		if n == 0 || i > 0 && n > 2 || n > 4 {
			return 0, "", false
		}
		s = s[n:]
		if i < 2 {
			if s == "" || s[0] != '-' && s[0] != '/' {
				return 0, "", false
			}
			s = s[1:]
		}
	}
	t := time.Date(part[0], time.Month(part[1]), part[2], 0, 0, 0, 0, time.UTC)
	if t.Year() != part[0] || int(t.Month()) != part[1] || t.Day() != part[2] {
		return 0, "", false
	}
	return t.Unix() / 86400, s, t.Unix()%86400 == 0
}

// parseClock reads a time of day behind a date, in nanoseconds, with Z or nothing behind it; and how many digits stand
// behind the point.
func parseClock(s string) (ns int64, digits int, ok bool) {
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
		if t, err := time.Parse(layout, s); err == nil {
			if at := strings.IndexAny(s, ".,"); at >= 0 {
				digits = len(s) - at - 1
			}
			return int64(t.Sub(t.Truncate(24 * time.Hour))), digits, digits <= 9
		}
	}
	return 0, 0, false
}
