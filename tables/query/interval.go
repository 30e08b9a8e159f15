package query

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/tables"
)

// span is a length of time. Months have no fixed number of days, nor days (to DuckDB) of microseconds.
type span struct {
	months, days, us int64
}

// maxSpan bounds the numbers of a span, so that no sum of two overflows.
const maxSpan = 1 << 31

// add adds so many units.
func (s *span) add(n int64, unit string) bool {
	if n > maxSpan || n < -maxSpan {
		return false
	}
	months := map[string]int64{"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}[unit]
	switch {
	case months > 0:
		s.months += n * months
	case unit == "week":
		s.days += n * 7
	case unit == "day":
		s.days += n
	case unitSizes[unit] > 0:
		s.us += n * unitSizes[unit]
	default:
		return false
	}
	return max(s.months, -s.months, s.days, -s.days) <= maxSpan && max(s.us, -s.us) <= maxSpan*1e6
}

// interval reads what stands behind INTERVAL: a number and a unit, or a text that says them.
func (p *parser) interval(pos int) (*expr, error) {
	t := p.take()
	e := &expr{op: opInterval, name: t.text, pos: pos}
	if unit := unitNames[strings.ToLower(p.peek().text)]; unit != "" && p.peek().kind == tName {
		p.at++
		n, err := strconv.ParseInt(strings.TrimSpace(t.text), 10, 64)
		if err != nil || !e.span.add(n, unit) {
			return nil, unsupported("an interval of %s %s", t.text, unit)
		}
		if t.kind == tString {
			e.name = "'" + t.text + "'"
		}
		e.table = unit
		return e, nil
	}
	words := strings.Fields(t.text)
	if t.kind != tString || len(words) == 0 || len(words)%2 != 0 {
		return nil, unsupported("the interval %q", t.text)
	}
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || !e.span.add(n, unitNames[strings.ToLower(words[i+1])]) {
			return nil, unsupported("the interval %q", t.text)
		}
	}
	return e, nil
}

// shifted binds x + INTERVAL … and x - INTERVAL …; it returns nil if the expression is neither.
func (b *binder) shifted(e *expr) (*node, error) {
	x, by := e.args[0], e.args[1]
	if e.name == "+" && x.op == opInterval {
		x, by = by, x
	}
	if by.op != opInterval || e.name != "+" && e.name != "-" {
		return nil, nil
	}
	n, err := b.bind(x)
	if err != nil {
		return nil, err
	}
	t := n.typ
	switch t.Kind {
	case tables.Null:
		t = timestampType
	case tables.Date:
		t = timestampType
		if n, err = b.convert(n, t); err != nil {
			return nil, err
		}
	case tables.Timestamp:
	default:
		return nil, unsupported("%s of type %s and an interval", e.name, typeName(n))
	}
	s := by.span
	if e.name == "-" {
		s = span{-s.months, -s.days, -s.us}
	}
	out, err := b.intern(&node{op: opShift, typ: t, args: []*node{n}, span: s})
	if err != nil || n.lit == nil && (n.op != opCast || n.args[0].lit == nil) {
		return out, err
	}
	return b.fold(out)
}

func evalShift(n *node, x *vec) (*vec, error) {
	if x.i == nil || n.args[0].typ.Kind == tables.Null {
		return allNull(n.typ, x.n), nil
	}
	v := &vec{n: x.n, nulls: x.nulls, h: x.h, i: make([]int64, x.n)}
	for k, us := range x.i {
		if v.null(k) {
			continue
		}
		var ok bool
		if v.i[k], ok = n.span.after(us); !ok {
			return nil, errTime
		}
	}
	return v, nil
}

// after returns the timestamp a span after another: the months first, of which a day that the month has not becomes its
// last one.
func (s span) after(us int64) (int64, bool) {
	const far = math.MaxInt64 / 4 // 73,000 years: spans are shorter
	if us > far || us < -far {
		return 0, false
	}
	if s.months != 0 {
		t := clockTime(us)
		month := int64(t.Year())*12 + int64(t.Month()) - 1 + s.months
		year, m := floorDiv(month, 12), time.Month(month-floorDiv(month, 12)*12+1)
		if year < -290000 || year > 290000 {
			return 0, false
		}
		days := dayNumber(int(year), m+1, 0)
		first := dayNumber(int(year), m, 1)
		days = min(days, first+int64(t.Day())-1)
		us = days*86400e6 + us - floorDiv(us, 86400e6)*86400e6
	}
	us += s.days*86400e6 + s.us
	return us, us <= far*2 && us >= -far*2
}

// dayArith binds what DuckDB computes of dates: a date and a number of days, and the days between two dates.
func (b *binder) dayArith(name string, l, r *node) (*node, error) {
	if name == "+" && isInteger(l.typ) {
		l, r = r, l
	}
	refused := unsupported("%s of type %s and type %s", name, typeName(l), typeName(r))
	switch {
	case l.typ.Kind != tables.Date || name != "+" && name != "-":
		return nil, refused
	case r.typ.Kind == tables.Date && name == "-":
		return b.fn(daysBetween, int64Type, l, r)
	case !isInteger(r.typ) || r.typ.Kind == tables.Huge:
		return nil, refused
	}
	days, err := b.convert(r, int64Type)
	if err == nil && name == "-" {
		days, err = b.minus(days)
	}
	if err == nil && days.lit != nil {
		days, err = b.literal(int64Type, literal{rat: days.lit.rat, i: int64(lowBits(days.lit.rat.Num()))})
	}
	if err != nil {
		return nil, err
	}
	out, err := b.fn(daysAfter, dateType, l, days)
	if err != nil || l.lit == nil || days.lit == nil {
		return out, err
	}
	return b.fold(out)
}

// Functions of operators.
var (
	daysBetween = &function{names: []string{"-"}, eval: ofInts(func(_ *node, r row) (int64, error) { return r.whole(0) - r.whole(1), nil })}
	daysAfter   = &function{names: []string{"+"}, eval: ofInts(func(_ *node, r row) (int64, error) {
		if by := r.whole(1); by > maxSpan || by < -maxSpan {
			return 0, errTime
		}
		return r.whole(0) + r.whole(1), nil
	})}
)
