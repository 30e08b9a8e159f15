package arrays

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
)

const labelsPart = "labels"

// cfTime says what the numbers of times count, and from when on (CF conventions, section 4.4).
type cfTime struct {
	unit time.Duration
	from time.Time
}

// timeUnits are the units that xarray reads without another library. Months and years have no fixed length.
var timeUnits = map[string]time.Duration{
	"day": 24 * time.Hour, "d": 24 * time.Hour, "hour": time.Hour, "hr": time.Hour, "h": time.Hour,
	"minute": time.Minute, "min": time.Minute, "second": time.Second, "sec": time.Second, "s": time.Second,
	"millisecond": time.Millisecond, "msec": time.Millisecond, "ms": time.Millisecond,
	"microsecond": time.Microsecond, "us": time.Microsecond, "nanosecond": time.Nanosecond, "ns": time.Nanosecond,
}

// timeOrigin matches the date, the time of day and the zone behind "since".
var timeOrigin = regexp.MustCompile(`^(\d{1,4})-(\d{1,2})-(\d{1,2})` +
	`(?:[T ]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(\.\d*)?)?)?)?\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?$`)

// gregorian is the first day of the calendar that standard ones have had since.
var gregorian = time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)

// cfTime returns what the attribute units says of times, and nil for other numbers. Other calendars than the one in
// use are fault.Unsupported: their days have no timestamps.
func (m *Meta) cfTime() (*cfTime, error) {
	units := m.Attrs.Text("units")
	unit, since, ok := strings.Cut(strings.ToLower(units), " since ")
	if !ok {
		return nil, nil
	}
	calendar := strings.ToLower(m.Attrs.Text("calendar"))
	count, known := timeUnits[strings.TrimSpace(unit)]
	if !known {
		count, known = timeUnits[strings.TrimSuffix(strings.TrimSpace(unit), "s")]
	}
	origin, ok := originOf(strings.ToUpper(strings.TrimSpace(since)))
	switch {
	case calendar != "" && calendar != "standard" && calendar != "gregorian" && calendar != "proleptic_gregorian":
		return nil, fault.New(fault.Unsupported, labelsPart, "times of the calendar %q", calendar)
	case !known || !ok || calendar != "proleptic_gregorian" && origin.Before(gregorian):
		return nil, fault.New(fault.Unsupported, labelsPart, "times in %q", units)
	}
	return &cfTime{count, origin}, nil
}

// originOf parses the moment that times count from. It reports false if it is malformed.
func originOf(text string) (origin time.Time, ok bool) {
	parts := timeOrigin.FindStringSubmatch(text)
	if parts == nil {
		return origin, false
	}
	var n [6]int
	for i := range n {
		n[i], _ = strconv.Atoi(parts[i+1]) // "" is 0
	}
	fraction, _ := strconv.ParseFloat("0"+parts[7], 64)
	origin = time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], int(math.Round(fraction*1e9)), time.UTC)
	isDay := origin.Month() == time.Month(n[1]) && origin.Day() == n[2]
	if !isDay || n[3] > 24 || n[4] > 59 || n[5] > 59 {
		return origin, false
	}
	if zone := parts[8]; zone != "" && strings.Contains("+-", zone[:1]) {
		digits := strings.ReplaceAll(zone[1:], ":", "")
		minutes, _ := strconv.Atoi(digits)
		if len(digits) > 2 {
			minutes = minutes/100*60 + minutes%100
		} else {
			minutes *= 60
		}
		if zone[0] == '+' {
			minutes = -minutes
		}
		origin = origin.Add(time.Duration(minutes) * time.Minute)
	}
	return origin, true
}

// value returns the time that a number stands for, in microseconds since 1970. A number that is not finite, or too
// large for microseconds, is null.
func (t *cfTime) value(number float64) column.Value {
	micros := math.Round(number*(float64(t.unit)/float64(time.Microsecond))) + float64(t.from.UnixMicro())
	if !(math.Abs(micros) < 1<<62) {
		return column.Value{Null: true}
	}
	return column.Value{Int: int64(micros)}
}
