package funcs

import (
	"cmp"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Times returns the functions of dates and times.
func Times() []*bind.Function {
	var out []*bind.Function
	for _, part := range parts {
		name, aliases, _ := strings.Cut(part.names, " ")
		out = append(out, bind.Define(name+"(t) "+aliases, part.doc, sql.Int64,
			eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) { return part.of(sql.Time(r.Int(0))), nil })))
	}
	return append(out,
		bind.Define("epoch(t)", "seconds since 1970", sql.Double,
			eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) { return float64(r.Int(0)) / 1e6, nil })),
		bind.Define("date_part(part, t) datepart",
			"a part of a date or timestamp; part is a literal: "+partNames+"; also `extract(part FROM t)`",
			sql.Int64, nil).Bound(bindPart),
		bind.Define("date_trunc(part, t) datetrunc",
			"t cut to the begin of the year, month, week (Monday) or other part", sql.Timestamp,
			eval.Ints(func(n *eval.Node, r eval.Row) (int64, error) {
				return n.State.(func(int64) int64)(r.Int(1)), nil
			})).Prepared(prepareTrunc))
}

// partNames are the parts for the documentation.
const partNames = "year, quarter, month, week, day, doy, dow, isodow, hour, minute, second, epoch"

// parts are the parts of a timestamp: the names of their functions, and other words for them in DATE_PART.
var parts = []struct {
	names, doc, words string
	of                func(t time.Time) int64
}{
	{"year", "the year", "years yr yrs y", func(t time.Time) int64 { return int64(t.Year()) }},
	{"quarter", "the quarter, 1 to 4", "quarters", func(t time.Time) int64 { return int64(t.Month()-1)/3 + 1 }},
	{"month", "the month, 1 to 12", "months mon mons", func(t time.Time) int64 { return int64(t.Month()) }},
	{"week weekofyear", "the week of ISO 8601", "weeks w", func(t time.Time) int64 {
		_, week := t.ISOWeek()
		return int64(week)
	}},
	{"day dayofmonth", "the day of the month", "days d", func(t time.Time) int64 { return int64(t.Day()) }},
	{"dayofyear", "the day of the year", "doy", func(t time.Time) int64 { return int64(t.YearDay()) }},
	{"dayofweek weekday", "the day of the week, Sunday is 0", "dow",
		func(t time.Time) int64 { return int64(t.Weekday()) }},
	{"isodow", "the day of the week, Monday is 1 and Sunday 7", "",
		func(t time.Time) int64 { return int64(t.Weekday()+6)%7 + 1 }},
	{"hour", "the hour", "hours hr hrs h", func(t time.Time) int64 { return int64(t.Hour()) }},
	{"minute", "the minute", "minutes min mins m", func(t time.Time) int64 { return int64(t.Minute()) }},
	{"second", "the second", "seconds sec secs s", func(t time.Time) int64 { return int64(t.Second()) }},
}

// partFunctions are the functions of the parts of DATE_PART.
var partFunctions = func() map[string]string {
	m := map[string]string{"epoch": "epoch"}
	for _, part := range parts {
		for name := range strings.FieldsSeq(part.names + " " + part.words) {
			m[name] = strings.Fields(part.names)[0]
		}
	}
	return m
}()

// bindPart binds DATE_PART, whose part must be a literal, as the function of the part.
func bindPart(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 2 || !sql.IsDay(args[1].Type) && args[1].Type.Kind != tables.Null {
		return b.WrongArguments(f, args)
	}
	if args[0].Literal == nil || args[0].Type.Kind != tables.String {
		return b.Fail(sql.Unsupported("date_part with a part that is not a literal"))
	}
	function := b.Library.Functions[partFunctions[strings.ToLower(args[0].Literal.String)]]
	if function == nil {
		return b.Fail(sql.Unsupported("the part %q of a date", args[0].Literal.String))
	}
	return b.ByParams(function, args[1:])
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
func weekNumber(us int64) int64 { return sql.FloorDiv(sql.FloorDiv(us, sql.DayMicros)+3, 7) }

// prepareTrunc makes the function that cuts a timestamp.
func prepareTrunc(n *eval.Node) (any, error) {
	text, err := bind.LiteralString(n, 0)
	if err != nil {
		return nil, err
	}
	text = strings.ToLower(text)
	unit := cmp.Or(partFunctions[text], text)
	if f := truncations[unit]; f != nil {
		return func(us int64) int64 { return f(sql.Time(us)).UnixMicro() }, nil
	}
	if unit == "week" {
		return func(us int64) int64 { return (weekNumber(us)*7 - 3) * sql.DayMicros }, nil
	}
	size := sql.UnitMicros[unit]
	if size == 0 {
		return nil, sql.Unsupported("the part %q of a date", text)
	}
	return func(us int64) int64 { return sql.FloorDiv(us, size) * size }, nil
}
