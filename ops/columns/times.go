package columns

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// The columns of times of the extensions stac and istac, without their prefix.
const (
	timeStart  = "time_start"
	timeEnd    = "time_end"
	timeMiddle = "time_middle"
)

// timestamps is the type of the columns of times: microseconds since 1970, in UTC.
var timestamps = tables.Type{Kind: tables.Timestamp}

// times casts the columns of times that a level has for an extension to timestamps. If there is an end, it adds the
// middle, rounded down to a microsecond as tacotoolbox does. A time is a timestamp, a date, a number
// of microseconds since 1970, or text such as 2024-05-01T10:00:00Z. An end before its start is an error.
func (c *Compute) times(ctx context.Context, set *Set, l *build.Level, prefix string) error {
	start, err := timesOf(ctx, l, prefix+timeStart)
	if start == nil || err != nil {
		return err
	}
	set.Add(prefix+timeStart, start)
	end, err := timesOf(ctx, l, prefix+timeEnd)
	if end == nil || err != nil {
		return err
	}
	set.Add(prefix+timeEnd, end)
	middle, none := make([]int64, len(l.Rows)), make([]bool, len(l.Rows))
	for i := range middle {
		if none[i] = start.Null(i) || end.Null(i); none[i] {
			continue
		}
		a, b := start.Int(i), end.Int(i)
		if a > b {
			return fault.New(fault.Corrupt, fmt.Sprintf("sample %q", l.Rows[i].ID), fault.NoOffset,
				"%s is %s, after %s, which is %s", prefix+timeStart, tables.FormatTimestamp(a), prefix+timeEnd,
				tables.FormatTimestamp(b))
		}
		middle[i] = a + int64(uint64(b-a)/2) // their sum could overflow
	}
	if l.Table.Index(prefix+timeMiddle) < 0 {
		set.Add(prefix+timeMiddle, tables.NewInts(timestamps, middle, none))
	}
	return nil
}

// timesOf returns a column as timestamps, or nil if the level does not have it.
func timesOf(ctx context.Context, l *build.Level, name string) (*tables.Vector, error) {
	if l.Table.Index(name) < 0 {
		return nil, nil
	}
	values, err := l.Table.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	switch values.Kind() {
	case tables.Timestamp:
		return values, nil
	case tables.Date, tables.Int64, tables.String:
		values, err = build.Cast(values, timestamps)
		return values, fault.WithPart(err, "column "+name, fault.NoOffset)
	}
	return nil, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "is of type %v, not of times", values.Type())
}
