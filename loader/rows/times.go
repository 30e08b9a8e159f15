package rows

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
)

// NoTime is the time of a row that has none. numpy's NaT has the same bits.
const NoTime = math.MinInt64

// Times returns the time of each row in microseconds since 1970 UTC, or NoTime, by the first of some
// columns that holds times: dates, timestamps, or strings of these; numbers only in one of spec.TimeColumns, as seconds
// since 1970. It returns nil if there is no such column. It fails if a column cannot be read.
func Times(ctx context.Context, t Table, columns []string) ([]int64, error) {
	for _, name := range columns {
		times, err := timesIn(ctx, t, name)
		switch fault.KindOf(err) {
		case fault.NotFound, fault.Unsupported: // the dataset has no such column, or none of values
			continue
		}
		if err != nil || times != nil {
			return times, err
		}
	}
	return nil, nil
}

// timesIn returns the times of a column, or nil if it holds none.
func timesIn(ctx context.Context, t Table, name string) ([]int64, error) {
	out, some := make([]int64, t.Len()), false
	err := scan(ctx, t, name, func(row int64, c *Column, v catalog.Value) error {
		unit := c.Unit
		if unit == 0 && slices.Contains(spec.TimeColumns, name) {
			unit = time.Second
		}
		out[row] = NoTime
		switch kind := c.Kind; {
		case v.Null:
		case kind == catalog.Text:
			if parsed, err := taco.ParseTimes(v.Text); err == nil {
				out[row] = parsed.First
			}
		case kind == catalog.Int:
			out[row] = micros(v.Int, unit)
		case kind == catalog.Float:
			if us := math.Round(v.Float * float64(unit/time.Microsecond)); unit > 0 && math.Abs(us) < 1<<62 {
				out[row] = int64(us)
			}
		}
		some = some || out[row] != NoTime
		return nil
	})
	if err != nil || !some {
		return nil, err
	}
	return out, nil
}

// micros returns a number of units in microseconds, rounded down, or NoTime if there is no unit or it is beyond int64.
func micros(n int64, unit time.Duration) int64 {
	switch {
	case unit == 0:
		return NoTime
	case unit < time.Microsecond:
		per := int64(time.Microsecond / unit)
		q := n / per
		if n%per < 0 {
			q--
		}
		return q
	}
	if per := int64(unit / time.Microsecond); n < math.MaxInt64/per && n > math.MinInt64/per {
		return n * per
	}
	return NoTime
}
