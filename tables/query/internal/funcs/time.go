package funcs

import (
	"strings"
	"time"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// Times returns the functions of dates and times.
func Times() []*bind.Function {
	part := func(name, doc string, more ...string) *bind.Function {
		return &bind.Function{Names: append([]string{name}, more...), Signature: name + "(t)", Doc: doc,
			Params: []bind.Param{bind.DateParam}, Type: sqltype.Int64, Eval: evalPart(dateParts[name])}
	}
	return []*bind.Function{
		part("year", "the year"), part("quarter", "the quarter, 1 to 4"), part("month", "the month, 1 to 12"),
		part("week", "the week of ISO 8601", "weekofyear"), part("day", "the day of the month", "dayofmonth"),
		part("dayofyear", "the day of the year"), part("dayofweek", "the day of the week, Sunday is 0", "weekday"),
		part("isodow", "the day of the week, Monday is 1 and Sunday 7"),
		part("hour", "the hour"), part("minute", "the minute"), part("second", "the second"),
		{Names: []string{"epoch"}, Signature: "epoch(t)", Doc: "seconds since 1970",
			Params: []bind.Param{bind.TimestampParam}, Type: sqltype.Double,
			Eval: eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) {
				return float64(r.Int(0)) / 1e6, nil
			})},
		{Names: []string{"date_part", "datepart"}, Signature: "date_part(part, t)",
			Doc:  "a part of a date or timestamp; part is a literal: " + partNames + "; also `extract(part FROM t)`",
			Bind: bindPart, Eval: func(ev plan.Evaluator, n *plan.Node, args []*vec.Vec,
				b *vec.Batch) (*vec.Vec, error) {
				return n.State.(*datePart).eval(ev, n, args[1:], b)
			}},
		{Names: []string{"date_trunc", "datetrunc"}, Signature: "date_trunc(part, t)",
			Doc:    "t cut to the begin of the year, month, week (Monday) or other part",
			Params: []bind.Param{bind.StringParam, bind.TimestampParam}, Type: sqltype.Timestamp,
			Prepare: prepareTrunc, Eval: eval.Ints(func(n *plan.Node, r eval.Row) (int64, error) {
				return n.State.(func(int64) int64)(r.Int(1)), nil
			})},
	}
}

// datePart is a part of a timestamp. A date counts as midnight.
type datePart struct {
	of    func(t time.Time) int64
	epoch bool // seconds since 1970, a DOUBLE
}

func (p *datePart) eval(_ plan.Evaluator, n *plan.Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error) {
	day := n.Args[len(n.Args)-1].Type.Kind == tables.Date
	instant := func(x int64) time.Time {
		if day {
			return time.Unix(x*86400, 0).UTC()
		}
		return clock.Time(x)
	}
	values := args[0]
	if values.Ints == nil {
		return vec.AllNull(n.Type, b.N), nil
	}
	vector := &vec.Vec{N: b.N, Nulls: values.Nulls}
	if p.epoch {
		vector.Floats = make([]float64, b.N)
		for k, t := range values.Ints {
			vector.Floats[k] = float64(instant(t).UnixMicro()) / 1e6
		}
		return vector, nil
	}
	vector.Ints = make([]int64, b.N)
	for k, t := range values.Ints {
		vector.Ints[k] = p.of(instant(t))
	}
	return vector, nil
}

func evalPart(p *datePart) plan.Evaluation { return p.eval }

// partNames are the parts for the documentation.
const partNames = "year, quarter, month, week, day, doy, dow, isodow, hour, minute, second, epoch"

// dateParts are the parts of DATE_PART and of the functions named like them.
var dateParts = func() map[string]*datePart {
	m := map[string]*datePart{}
	add := func(names string, of func(t time.Time) int64) {
		for name := range strings.FieldsSeq(names) {
			m[name] = &datePart{of: of}
		}
	}
	add("year years y", func(t time.Time) int64 { return int64(t.Year()) })
	add("quarter quarters", func(t time.Time) int64 { return int64(t.Month()-1)/3 + 1 })
	add("month months mon", func(t time.Time) int64 { return int64(t.Month()) })
	add("week weeks weekofyear w", func(t time.Time) int64 { _, w := t.ISOWeek(); return int64(w) })
	add("day days dayofmonth d", func(t time.Time) int64 { return int64(t.Day()) })
	add("doy dayofyear", func(t time.Time) int64 { return int64(t.YearDay()) })
	add("dow dayofweek weekday", func(t time.Time) int64 { return int64(t.Weekday()) })
	add("isodow", isoWeekday)
	add("hour hours h", func(t time.Time) int64 { return int64(t.Hour()) })
	add("minute minutes m", func(t time.Time) int64 { return int64(t.Minute()) })
	add("second seconds s", func(t time.Time) int64 { return int64(t.Second()) })
	m["epoch"] = &datePart{epoch: true}
	return m
}()

func isoWeekday(t time.Time) int64 { return int64(t.Weekday()+6)%7 + 1 }

// bindPart binds DATE_PART, whose part must be a literal.
func bindPart(b *bind.Binder, f *bind.Function, args []*plan.Node) (*plan.Node, error) {
	if len(args) != 2 || !sqltype.IsDay(args[1].Type) && args[1].Type.Kind != tables.Null {
		return nil, bind.WrongArguments(f, args)
	}
	if args[0].Literal == nil || args[0].Type.Kind != tables.String {
		return nil, sqlerr.Unsupported("date_part with a part that is not a literal")
	}
	datePart := dateParts[strings.ToLower(args[0].Literal.String)]
	if datePart == nil {
		return nil, sqlerr.Unsupported("the part %q of a date", args[0].Literal.String)
	}
	typ := sqltype.Int64
	if datePart.epoch {
		typ = sqltype.Double
	}
	node, err := b.Call(f, typ, args...)
	if err == nil {
		node.State = datePart
	}
	return node, err
}

// truncations cut a time to the begin of a part, for the parts that vary in length.
var truncations = map[string]func(t time.Time) time.Time{
	"year": func(t time.Time) time.Time { return time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC) },
	"quarter": func(t time.Time) time.Time {
		return time.Date(t.Year(), (t.Month()-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	},
	"month": func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
}

// weekNumber numbers weeks, which begin on Monday. 1970 began on a Thursday, three days after one.
func weekNumber(us int64) int64 { return clock.FloorDiv(clock.FloorDiv(us, clock.DayMicros)+3, 7) }

// prepareTrunc makes the function that cuts a timestamp.
func prepareTrunc(n *plan.Node) (any, error) {
	text, err := bind.LiteralString(n, 0)
	if err != nil {
		return nil, err
	}
	unit := clock.UnitNames[strings.ToLower(text)]
	if unit == "" {
		return nil, sqlerr.Unsupported("the part %q of a date", text)
	}
	if f := truncations[unit]; f != nil {
		return func(us int64) int64 { return f(clock.Time(us)).UnixMicro() }, nil
	}
	if unit == "week" {
		return func(us int64) int64 { return (weekNumber(us)*7 - 3) * clock.DayMicros }, nil
	}
	size := clock.UnitMicros[unit]
	return func(us int64) int64 { return clock.FloorDiv(us, size) * size }, nil
}
