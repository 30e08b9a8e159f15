package eval

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// caster casts the values of a batch.
type caster struct {
	from, to tables.Type
	x        *tables.Vector
	nulls    []bool // of the result; those of x until owned is set
	owned    bool
	bools    []bool
	ints     []int64
	floats   []float64
	try      bool
}

func (ev *Evaluator) cast(n *Node, x *tables.Vector) (*tables.Vector, error) {
	size := x.Len()
	c := &caster{from: n.Args[0].Type, to: n.Type, x: x, nulls: x.Nulls(), try: n.Try}
	if c.from.Kind == tables.Null {
		return tables.NewNulls(n.Type, size), nil
	}
	var err error
	switch c.to.Kind {
	case tables.Bool:
		c.bools = make([]bool, size)
		err = c.toBool()
		return tables.NewBools(c.bools, c.nulls), err
	case tables.Float64:
		c.floats = make([]float64, size)
		err = c.toFloat()
		return tables.NewFloats(n.Type, c.floats, c.nulls), err
	case tables.String:
		return c.toStrings(ev)
	case tables.Int64, tables.Uint64:
		if widens(c.from, c.to) {
			return tables.NewInts(n.Type, x.Ints(), c.nulls), nil
		}
		c.ints = make([]int64, size)
		err = c.toInt()
	default:
		if c.from.Kind == c.to.Kind {
			nanos := x.Nanos()
			if c.from.Nano && !c.to.Nano {
				nanos = nil
			}
			return tables.NewWide(n.Type, x.Ints(), nanos, c.nulls), nil
		}
		c.ints = make([]int64, size)
		err = c.toTime()
	}
	return tables.NewInts(n.Type, c.ints, c.nulls), err
}

// widens reports whether integers of one type have the same form in memory as integers of another type that holds them
// all.
func widens(from, to tables.Type) bool {
	switch {
	case from.Kind == to.Kind && (from.Kind == tables.Int64 || from.Kind == tables.Uint64):
		return from.Bits <= to.Bits
	case from.Kind == tables.Uint64 && to.Kind == tables.Int64:
		return from.Bits < to.Bits
	}
	return false
}

// each calls f for the values that are not null. A value for which f reports false becomes null in TRY_CAST, and is an
// error in CAST.
func (c *caster) each(f func(k int) bool) error {
	for row := range c.x.Len() {
		if c.x.Null(row) || f(row) {
			continue
		}
		if !c.try {
			return fmt.Errorf("could not cast %s of type %s to type %s", c.text(row),
				sql.Name(c.from), sql.Name(c.to))
		}
		// The nulls belong to c.x until then, so they must not be changed.
		if !c.owned {
			c.nulls, c.owned = ownNulls(c.nulls, c.x.Len()), true
		}
		c.nulls[row] = true
	}
	return nil
}

// text formats a value for an error.
func (c *caster) text(k int) string {
	const limit = 40 // bytes
	if sql.RepOf(c.from) == sql.RepBytes {
		s := c.x.Bytes(k)
		return strconv.Quote(string(s[:min(len(s), limit)]))
	}
	return string(c.x.AppendCast(nil, k))
}

func (c *caster) toBool() error {
	switch sql.RepOf(c.from) {
	case sql.RepBytes:
		return c.each(func(k int) (ok bool) {
			c.bools[k], ok = parseBool(c.x.Bytes(k))
			return ok
		})
	case sql.RepFloat:
		return c.each(func(k int) bool { c.bools[k] = c.x.Floats()[k] != 0; return true })
	}
	return c.each(func(k int) bool { c.bools[k] = c.x.Ints()[k] != 0; return true })
}

func parseBool(s []byte) (value, ok bool) {
	switch strings.ToLower(string(s)) {
	case "true", "t", "yes", "y", "1":
		return true, true
	case "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

// toInt casts to integers. Floats round to the nearest, halves to even; strings round halves away from 0, as in DuckDB.
func (c *caster) toInt() error {
	wide := sql.RepOf(c.to) == sql.RepUint // hi does not count
	lo, hi := int64(0), int64(1)<<(c.to.Bits&63)-1
	if c.to.Kind == tables.Int64 {
		lo = math.MinInt64 >> (64 - c.to.Bits)
		hi = -1 - lo
	}
	put := func(k int, x int64) bool {
		c.ints[k] = x
		return x >= lo && (wide || x <= hi)
	}
	round := func(k int, f float64, to func(float64) float64) bool {
		// The range is checked before f is rounded, because DuckDB does so too: it refuses -0.4 as UTINYINT.
		if math.IsNaN(f) || f < float64(lo) {
			return false
		}
		f = to(f)
		if wide {
			c.ints[k] = int64(uint64(f))
			return f < 1<<64
		}
		return f < 1<<63 && put(k, int64(f))
	}
	switch {
	case c.from.Kind == tables.Bool:
		return c.each(func(k int) bool { c.ints[k] = sql.Bit(c.x.Bools()[k]); return true })
	case c.from.Kind == tables.String:
		return c.each(func(row int) bool {
			text := string(bytes.TrimSpace(c.x.Bytes(row)))
			if x, err := strconv.ParseInt(text, 10, 64); err == nil {
				return put(row, x)
			}
			if x, err := strconv.ParseUint(text, 10, 64); err == nil {
				c.ints[row] = int64(x)
				return wide
			}
			f, ok := parseFloat([]byte(text), 64)
			return ok && round(row, f, math.Round)
		})
	case c.from.Kind == tables.Float64:
		return c.each(func(k int) bool { return round(k, c.x.Floats()[k], math.RoundToEven) })
	case sql.RepOf(c.from) == sql.RepUint:
		return c.each(func(k int) bool {
			c.ints[k] = c.x.Ints()[k]
			return uint64(c.x.Ints()[k]) <= uint64(hi)
		})
	}
	return c.each(func(k int) bool { return put(k, c.x.Ints()[k]) })
}

func (c *caster) toFloat() error {
	single := c.to.Bits < 64
	return c.each(func(row int) bool {
		switch sql.RepOf(c.from) {
		case sql.RepBytes:
			f, ok := parseFloat(c.x.Bytes(row), int(c.to.Bits))
			c.floats[row] = f
			return ok
		case sql.RepFloat:
			c.floats[row] = c.x.Floats()[row]
		case sql.RepUint:
			if c.floats[row] = float64(uint64(c.x.Ints()[row])); single {
				c.floats[row] = float64(float32(uint64(c.x.Ints()[row])))
			}
		default:
			if c.from.Kind == tables.Bool {
				c.floats[row] = float64(sql.Bit(c.x.Bools()[row]))
			} else if c.floats[row] = float64(c.x.Ints()[row]); single {
				c.floats[row] = float64(float32(c.x.Ints()[row]))
			}
		}
		if !single {
			return true
		}
		number := c.floats[row]
		c.floats[row] = float64(float32(number))
		// Rounding to FLOAT must not make a number infinite.
		return math.IsInf(number, 0) || !math.IsInf(c.floats[row], 0)
	})
}

// parseFloat parses a number, nan or inf, with optional blanks around it.
func parseFloat(s []byte, bitSize int) (float64, bool) {
	s = bytes.TrimSpace(s)
	if bytes.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	number, err := strconv.ParseFloat(string(s), bitSize)
	if err != nil && !math.IsInf(number, 0) {
		return 0, false
	}
	return number, true
}

func (c *caster) toStrings(ev *Evaluator) (*tables.Vector, error) {
	writer := ev.Strings(c.x.Len())
	for row := range c.x.Len() {
		if !c.x.Null(row) {
			writer.Data = c.x.AppendCast(writer.Data, row)
		}
		writer.End(row)
	}
	writer.Nulls = c.nulls
	return writer.Finish()
}

// toTime casts to dates, times and timestamps.
func (c *caster) toTime() error {
	const day = sql.DayMicros
	ints := c.x.Ints()
	switch {
	case c.from.Kind == tables.String:
		return c.each(func(k int) bool { return c.parseTime(k) })
	case c.to.Kind == tables.Timestamp && c.from.Kind == tables.Date:
		return c.each(func(k int) bool {
			c.ints[k] = c.x.Ints()[k] * day
			return c.x.Ints()[k] < math.MaxInt64/day && c.x.Ints()[k] > math.MinInt64/day
		})
	case c.to.Kind == tables.Date && c.from.Kind == tables.Timestamp:
		return c.each(func(k int) bool { c.ints[k] = sql.FloorDiv(c.x.Ints()[k], day); return true })
	}
	return c.each(func(k int) bool { // a time of day
		c.ints[k] = ints[k] - sql.FloorDiv(ints[k], day)*day
		return true
	})
}

func (c *caster) parseTime(k int) bool {
	text := strings.TrimSpace(string(c.x.Bytes(k)))
	if c.to.Kind == tables.Time {
		ns, _, ok := sql.ParseTimeOfDay(" " + text)
		c.ints[k] = ns / 1000
		return ok && text != ""
	}
	days, rest, ok := sql.ParseDate(text)
	if !ok {
		return false
	}
	// For a timestamp without a zone, DuckDB ignores an offset in the string.
	nanos, _, ok := sql.ParseTimeOfDay(sql.TrimZone(rest))
	if c.to.Kind == tables.Date {
		c.ints[k] = days
		return ok
	}
	c.ints[k] = days*86400e6 + nanos/1000
	return ok
}
