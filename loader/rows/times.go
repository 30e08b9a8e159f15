package rows

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// NoTime is the time of a row that has none. numpy's NaT has the same bits.
const NoTime = math.MinInt64

// Times returns the time of each row in microseconds since 1970 UTC, or NoTime, by the first of some
// columns that holds times: dates, timestamps, or strings of these; numbers only in one of spec.TimeColumns, as seconds
// since 1970. It returns nil if there is no such column. It fails if a column cannot be read.
func Times(ctx context.Context, t *Table, columns []string) ([]int64, error) {
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
func timesIn(ctx context.Context, t *Table, name string) ([]int64, error) {
	out, some := make([]int64, t.N), false
	err := scan(ctx, t, name, func(row int64, c *Column, v catalog.Value) error {
		unit := c.Unit
		if unit == 0 && slices.Contains(spec.TimeColumns, name) {
			unit = time.Second
		}
		out[row] = NoTime
		switch kind := c.Kind; {
		case v.Null:
		case kind == catalog.Text:
			if at, err := timeOf(string(v.Text)); err == nil {
				out[row] = at
			}
		case kind == catalog.Int:
			out[row] = micros(v.Int, unit)
		case kind == catalog.Float:
			if us := math.Round(v.Float * float64(unit/time.Microsecond)); unit > 0 && math.Abs(us) < 1<<63 {
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

// inName matches the time of acquisition in the name of a product, such as
// S2A_MSIL2A_20240105T103421_N0510_R008_T32TQM_20240105T141530 or LC08_L2SP_193028_20240105_20240113_02_T1.
var inName = regexp.MustCompile(`(?:^|[_.-])((?:19|20)[0-9]{6}(?:T[0-9]{6})?)(?:[_.-]|$)`)

// timeOf returns the time that text is, in microseconds since 1970 UTC: a date or a timestamp, the start of a range of
// them, or the name of a product with the time of acquisition.
func timeOf(text string) (int64, error) {
	parsed, err := column.ParseTimes(text)
	if err == nil {
		return parsed.First, nil
	}
	if found := inName.FindStringSubmatch(text); found != nil {
		for _, form := range []string{"20060102T150405", "20060102"} {
			if at, err := time.Parse(form, found[1]); err == nil {
				return at.UnixMicro(), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is no time, such as 2006-01-02 or 2006-01-02T15:04:05Z", text)
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
	if per := int64(unit / time.Microsecond); n <= math.MaxInt64/per && n >= math.MinInt64/per {
		return n * per
	}
	return NoTime
}
