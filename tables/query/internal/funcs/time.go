package funcs

import (
	"cmp"
	"fmt"
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
	diff := []bind.Param{bind.StringParam, bind.TimestampParam, bind.TimestampParam}
	return append([]*bind.Function{
		part("year", "the year"), part("quarter", "the quarter, 1 to 4"), part("month", "the month, 1 to 12"),
		part("week", "the week of ISO 8601", "weekofyear"), part("day", "the day of the month", "dayofmonth"),
		part("dayofyear", "the day of the year"), part("dayofweek", "the day of the week, Sunday is 0", "weekday"),
		part("isodow", "the day of the week, Monday is 1 and Sunday 7"),
		part("isoyear", "the year of ISO 8601"), part("yearweek", "year and week of ISO 8601 as one number"),
		part("hour", "the hour"), part("minute", "the minute"), part("second", "the second"),
		part("decade", "the year divided by 10"), part("century", "the century"),
		part("epoch_ms", "milliseconds since 1970"), part("epoch_us", "microseconds since 1970"),
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
		{Names: []string{"date_diff", "datediff"}, Signature: "date_diff(part, from, to)",
			Doc: "how many years, months or other parts begin between two timestamps; of weeks, how many times " +
				"seven days lie between them", Params: diff, Type: sqltype.Int64, Prepare: prepareDiff,
			Eval: eval.Ints(func(n *plan.Node, r eval.Row) (int64, error) {
				return n.State.(func(from, to int64) int64)(r.Int(1), r.Int(2)), nil
			})},
		{Names: []string{"last_day"}, Signature: "last_day(t)", Doc: "the last day of the month",
			Params: []bind.Param{bind.TimestampParam}, Type: sqltype.Date,
			Eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
				t := clock.Time(r.Int(0))
				return clock.DayNumber(t.Year(), t.Month()+1, 0), nil
			})},
		{Names: []string{"make_date"}, Signature: "make_date(year, month, day)", Doc: "a date",
			Params: []bind.Param{bind.IntParam, bind.IntParam, bind.IntParam}, Type: sqltype.Date,
			Eval: eval.Ints(makeDate)},
	}, formats()...)
}

// formats returns the functions that write timestamps as strings, and read them.
func formats() []*bind.Function {
	named := func(name, doc string, f func(t time.Time) string) *bind.Function {
		return &bind.Function{Names: []string{name}, Signature: name + "(t)", Doc: doc,
			Params: []bind.Param{bind.TimestampParam}, Type: sqltype.String,
			Eval: eval.Strings(func(w *vec.StringWriter, _ *plan.Node, r eval.Row) error {
				w.Add([]byte(f(clock.Time(r.Int(0)))))
				return nil
			})}
	}
	return []*bind.Function{
		named("monthname", "the month's name in English", func(t time.Time) string { return t.Month().String() }),
		named("dayname", "the name of the day of the week in English", func(t time.Time) string {
			return t.Weekday().String()
		}),
		{Names: []string{"strftime"}, Signature: "strftime(t, format)",
			Doc: "t as a string; the format is a literal:  %Y %m %d %H %M %S %f %j %b %B %a %A %p %I %y %U %W %V " +
				"%G %u %w %g %x %X %c %z %Z %%, and %-d … without leading zeros",
			Bind: bindFormat, Prepare: prepareFormat,
			Eval: eval.Strings(func(w *vec.StringWriter, n *plan.Node, r eval.Row) error {
				us, ns := r.Int(0), r.Args[0].Nanos(r.Index)
				n.State.(*timeFormat).write(w, clock.Time(us).Add(time.Duration(ns)))
				return nil
			})},
		{Names: []string{"strptime"}, Signature: "strptime(string, format)",
			Doc:    "the timestamp that a string holds; the format is a literal: %Y %y %m %d %H %M %S %f %j %b %B %%",
			Params: []bind.Param{bind.StringParam, bind.StringParam}, Type: sqltype.Timestamp,
			Prepare: prepareParse, Eval: eval.Ints(func(n *plan.Node, r eval.Row) (int64, error) {
				us, ok := n.State.(*timeFormat).read(string(r.Bytes(0)))
				if !ok {
					return 0, fmt.Errorf("could not read %.40q by the format %q", r.Bytes(0), n.Args[1].Literal.String)
				}
				return us, nil
			})},
		{Names: []string{"try_strptime"}, Signature: "try_strptime(string, format)",
			Doc:    "the same, but NULL for a string that does not hold a timestamp",
			Params: []bind.Param{bind.StringParam, bind.StringParam}, Type: sqltype.Timestamp,
			Prepare: prepareParse, Eval: evalTryParse},
	}
}

func makeDate(_ *plan.Node, r eval.Row) (int64, error) {
	y, m, d := r.Int(0), r.Int(1), r.Int(2)
	outside := func(v, low, high int64) bool { return v < low || v > high }
	if outside(y, 0, 9999) || outside(m, 1, 12) || outside(d, 1, 31) {
		return 0, fmt.Errorf("there is no date %d-%d-%d", y, m, d)
	}
	n := clock.DayNumber(int(y), time.Month(m), int(d))
	if time.Unix(n*86400, 0).UTC().Day() != int(d) {
		return 0, fmt.Errorf("there is no date %d-%d-%d", y, m, d)
	}
	return n, nil
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
const partNames = "year, quarter, month, week, day, doy, dow, isodow, isoyear, yearweek, hour, minute, second, " +
	"millisecond, microsecond, decade, century, millennium, epoch"

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
	add("isoyear", func(t time.Time) int64 { y, _ := t.ISOWeek(); return int64(y) })
	add("yearweek", func(t time.Time) int64 { y, w := t.ISOWeek(); return int64(y*100 + w) })
	add("hour hours h", func(t time.Time) int64 { return int64(t.Hour()) })
	add("minute minutes m", func(t time.Time) int64 { return int64(t.Minute()) })
	add("second seconds s", func(t time.Time) int64 { return int64(t.Second()) })
	add("millisecond milliseconds ms", func(t time.Time) int64 { return int64(t.Second()*1000 + t.Nanosecond()/1e6) })
	add("microsecond microseconds us", func(t time.Time) int64 { return int64(t.Second()*1e6 + t.Nanosecond()/1e3) })
	add("decade decades", func(t time.Time) int64 { return int64(t.Year() / 10) })
	add("century centuries", func(t time.Time) int64 { return ages(t.Year(), 100) })
	add("millennium millennia", func(t time.Time) int64 { return ages(t.Year(), 1000) })
	add("epoch_ms", func(t time.Time) int64 { return t.UnixMilli() })
	add("epoch_us", func(t time.Time) int64 { return t.UnixMicro() })
	m["epoch"] = &datePart{epoch: true}
	return m
}()

func isoWeekday(t time.Time) int64 { return int64(t.Weekday()+6)%7 + 1 }

// ages counts periods of 100 or 1,000 years: the first began in the year 1, and there is no year 0.
func ages(year, size int) int64 {
	if year > 0 {
		return int64((year-1)/size) + 1
	}
	return int64(year/size) - 1
}

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
	"millennium": func(t time.Time) time.Time { return yearBegins(t.Year() / 1000 * 1000) },
	"century":    func(t time.Time) time.Time { return yearBegins(t.Year() / 100 * 100) },
	"decade":     func(t time.Time) time.Time { return yearBegins(t.Year() / 10 * 10) },
	"year":       func(t time.Time) time.Time { return yearBegins(t.Year()) },
	"quarter": func(t time.Time) time.Time {
		return time.Date(t.Year(), (t.Month()-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	},
	"month": func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
}

func yearBegins(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

// weekNumber numbers weeks, which begin on Monday. 1970 began on a Thursday, three days after one.
func weekNumber(us int64) int64 { return clock.FloorDiv(clock.FloorDiv(us, clock.DayMicros)+3, 7) }

func unitOf(n *plan.Node) (string, error) {
	text, err := bind.LiteralString(n, 0)
	if err != nil {
		return "", err
	}
	unit := clock.UnitNames[strings.ToLower(text)]
	if unit == "" {
		return "", sqlerr.Unsupported("the part %q of a date", text)
	}
	return unit, nil
}

// prepareTrunc makes the function that cuts a timestamp.
func prepareTrunc(n *plan.Node) (any, error) {
	unit, err := unitOf(n)
	if err != nil {
		return nil, err
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

// prepareDiff makes the function that counts the parts that begin between two timestamps, or for weeks how many times
// seven days lie between them.
func prepareDiff(n *plan.Node) (any, error) {
	unit, err := unitOf(n)
	if err != nil {
		return nil, err
	}
	number := func(us int64) int64 { return clock.FloorDiv(us, clock.UnitMicros[unit]) }
	months := map[string]int64{"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200,
		"millennium": 12000}[unit]
	switch {
	case unit == "week":
		return func(from, to int64) int64 {
			return (clock.FloorDiv(to, clock.DayMicros) - clock.FloorDiv(from, clock.DayMicros)) / 7
		}, nil
	case months > 0:
		number = func(us int64) int64 {
			t := clock.Time(us)
			return clock.FloorDiv(int64(t.Year())*12+int64(t.Month())-1, months)
		}
	}
	return func(from, to int64) int64 { return number(to) - number(from) }, nil
}

// bindFormat binds STRFTIME, whose arguments may come in either order.
func bindFormat(b *bind.Binder, f *bind.Function, args []*plan.Node) (*plan.Node, error) {
	if len(args) == 2 && args[0].Type.Kind == tables.String && sqltype.IsDay(args[1].Type) {
		args = []*plan.Node{args[1], args[0]}
	}
	if len(args) != 2 || !sqltype.IsDay(args[0].Type) && args[0].Type.Kind != tables.Null ||
		!bind.ArgsAre(args[1:], tables.String) {
		return nil, bind.WrongArguments(f, args)
	}
	node, err := b.Convert(args[0], sqltype.Timestamp)
	if err != nil {
		return nil, err
	}
	return b.Call(f, sqltype.String, node, args[1])
}

// timeFormat is a parsed format: specifiers, and strings between them.
type timeFormat struct{ parts []formatPart }

type formatPart struct {
	text   string // if spec is 0
	spec   byte
	narrow bool // %-d: no leading zeros
}

// compound are the specifiers that stand for several others.
var compound = map[byte]string{'c': "%Y-%m-%d %H:%M:%S", 'x': "%Y-%m-%d", 'X': "%H:%M:%S", 'T': "%H:%M:%S"}

// maxFormat bounds a format, in bytes: each row is formatted by all of it.
const maxFormat = 1 << 10

// cutFormat parses a format. known are the specifiers it may have, narrow those it may have with a minus.
func cutFormat(s, known, narrow string) (*timeFormat, error) {
	f := &timeFormat{}
	if len(s) > maxFormat {
		return nil, sqlerr.Unsupported("a format of %d bytes", len(s))
	}
	for s != "" {
		percent := strings.IndexByte(s, '%')
		if percent != 0 {
			if percent < 0 {
				percent = len(s)
			}
			f.parts = append(f.parts, formatPart{text: s[:percent]})
			s = s[percent:]
			continue
		}
		p := formatPart{}
		s = s[1:]
		if strings.HasPrefix(s, "-") {
			p.narrow, s = true, s[1:]
		}
		if s == "" {
			return nil, sqlerr.Bind("a format that ends in %%")
		}
		p.spec, s = s[0], s[1:]
		switch expansion := compound[p.spec]; {
		case p.spec == '%':
			f.parts = append(f.parts, formatPart{text: "%"})
		case expansion != "" && strings.IndexByte(known, p.spec) >= 0 && !p.narrow:
			s = expansion + s
		case strings.IndexByte(known, p.spec) < 0, p.narrow && strings.IndexByte(narrow, p.spec) < 0:
			return nil, sqlerr.Unsupported("%%%c in a format", p.spec)
		default:
			f.parts = append(f.parts, p)
		}
	}
	return f, nil
}

func prepareFormat(n *plan.Node) (any, error) {
	text, err := bind.LiteralString(n, 1)
	if err != nil {
		return nil, err
	}
	return cutFormat(text, "YymdHMSfgjbBaApIUWVGuwcxXzZn", "dHIjmMSy")
}

func (f *timeFormat) write(w *vec.StringWriter, t time.Time) {
	for _, formatPart := range f.parts {
		if formatPart.spec == 0 {
			w.Add([]byte(formatPart.text))
			continue
		}
		w.Add(formatPart.write(nil, t))
	}
}

// write appends one part of a time. Names are in English.
func (p *formatPart) write(dst []byte, t time.Time) []byte {
	number := func(x int64, width int) []byte {
		if p.narrow {
			width = 0
		}
		return fmt.Appendf(dst, "%0*d", width, x)
	}
	switch p.spec {
	case 'Y':
		return number(int64(t.Year()), 4)
	case 'y':
		return number(int64(t.Year()%100), 2)
	case 'm':
		return number(int64(t.Month()), 2)
	case 'd':
		return number(int64(t.Day()), 2)
	case 'H':
		return number(int64(t.Hour()), 2)
	case 'I':
		return number(int64((t.Hour()+11)%12+1), 2)
	case 'M':
		return number(int64(t.Minute()), 2)
	case 'S':
		return number(int64(t.Second()), 2)
	case 'f':
		return number(int64(t.Nanosecond()/1000), 6)
	case 'g':
		return number(int64(t.Nanosecond()/1e6), 3)
	case 'n':
		return number(int64(t.Nanosecond()), 9)
	case 'j':
		return number(int64(t.YearDay()), 3)
	case 'U': // weeks from the first Sunday on
		return number(int64((t.YearDay()+6-int(t.Weekday()))/7), 2)
	case 'W': // from the first Monday on
		return number(int64((t.YearDay()+6-int(t.Weekday()+6)%7)/7), 2)
	case 'V':
		_, week := t.ISOWeek()
		return number(int64(week), 2)
	case 'G':
		year, _ := t.ISOWeek()
		return number(int64(year), 4)
	case 'u':
		return number(isoWeekday(t), 1)
	case 'w':
		return number(int64(t.Weekday()), 1)
	case 'z':
		return append(dst, "+00"...)
	case 'Z':
		return dst
	}
	return t.AppendFormat(dst, map[byte]string{'b': "Jan", 'B': "January", 'a': "Mon",
		'A': "Monday", 'p': "PM"}[p.spec])
}

func prepareParse(n *plan.Node) (any, error) {
	text, err := bind.LiteralString(n, 1)
	if err != nil {
		return nil, err
	}
	return cutFormat(text, "YymdHMSfjbBxXcT", "dHmMSjy")
}

// moment holds the parts of a time as they are parsed.
type moment struct {
	year, month, day, hour, minute, second, micro, yearDay int
}

// read parses a string by the format, and returns microseconds since 1970.
func (f *timeFormat) read(s string) (us int64, ok bool) {
	m := moment{year: 1900, month: 1, day: 1}
	for _, formatPart := range f.parts {
		if formatPart.spec == 0 {
			if s, ok = strings.CutPrefix(s, formatPart.text); !ok {
				return 0, false
			}
			continue
		}
		if s, ok = formatPart.read(s, &m); !ok {
			return 0, false
		}
	}
	if strings.TrimSpace(s) != "" || m.hour > 23 || m.minute > 59 || m.second > 59 {
		return 0, false
	}
	if m.yearDay > 0 {
		m.month, m.day = 1, m.yearDay
	}
	when := time.Date(m.year, time.Month(m.month), m.day, m.hour, m.minute, m.second, m.micro*1000, time.UTC)
	if m.yearDay == 0 && (int(when.Month()) != m.month || when.Day() != m.day) || when.Year() != m.year {
		return 0, false
	}
	return when.UnixMicro(), true
}

// read parses one part at the start of s.
func (p *formatPart) read(s string, m *moment) (rest string, ok bool) {
	switch p.spec {
	case 'b', 'B':
		for month := time.January; month <= time.December; month++ {
			name := month.String()
			if p.spec == 'b' {
				name = name[:3]
			}
			if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
				m.month = int(month)
				return s[len(name):], true
			}
		}
		return s, false
	}
	width := map[byte]int{'Y': 4, 'f': 6, 'j': 3}[p.spec]
	width = cmp.Or(width, 2)
	n, x := 0, 0
	for n < len(s) && n < width && sqltype.IsDigit(s[n]) {
		x = x*10 + int(s[n]-'0')
		n++
	}
	if n == 0 {
		return s, false
	}
	switch p.spec {
	case 'Y':
		m.year = x
	case 'y':
		m.year = 2000 + x
		if x >= 69 {
			m.year = 1900 + x
		}
	case 'm':
		m.month = x
	case 'd':
		m.day = x
	case 'H':
		m.hour = x
	case 'M':
		m.minute = x
	case 'S':
		m.second = x
	case 'j':
		m.yearDay = x
		return s[n:], x >= 1
	case 'f':
		for i := n; i < 6; i++ {
			x *= 10
		}
		m.micro = x
		for n < len(s) && n < 9 && sqltype.IsDigit(s[n]) { // nanoseconds are cut
			n++
		}
	}
	return s[n:], true
}

func evalTryParse(_ plan.Evaluator, n *plan.Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error) {
	nulls, allNull := eval.Nulls(n, args)
	if allNull {
		return vec.AllNull(n.Type, b.N), nil
	}
	values := &vec.Vec{N: b.N, Nulls: make([]bool, b.N), Ints: make([]int64, b.N)}
	copy(values.Nulls, nulls)
	for k := range b.N {
		if !values.Nulls[k] {
			us, ok := n.State.(*timeFormat).read(string(args[0].Bytes(k)))
			values.Ints[k], values.Nulls[k] = us, !ok
		}
	}
	return values, nil
}
