package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// people is a small table with nulls and NaN.
func people() *tables.Table {
	return tables.FromVectors([]string{"id", "Name", "age", "score", "tags", "big", "born"}, []*tables.Vector{
		tables.NewInts(sql.Int64, []int64{0, 1, 2, 3, 4}, nil),
		tables.NewStrings([]string{"ana", "Bo", "", "ñusta", "bo"}, []bool{false, false, true, false, false}),
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 8}, []int64{30, -4, 127, 30, 0},
			[]bool{false, false, false, false, true}),
		tables.NewFloats(sql.Double, []float64{1.5, math.NaN(), -1, 0, 2},
			[]bool{false, false, false, true, false}),
		tables.NewList(tables.NewStrings([]string{"x", "y", "x"}, nil), []uint32{0, 2, 2, 2, 3, 3},
			[]bool{false, false, true, false, false}),
		tables.NewInts(tables.Type{Kind: tables.Uint64, Bits: 64}, []int64{-1, 1, 2, math.MinInt64, 0}, nil),
		tables.NewInts(tables.Type{Kind: tables.Date}, []int64{16436, 16437, 16500, -1, 0}, nil),
	})
}

func run1(t testing.TB, sql string) (*tables.Table, error) {
	t.Helper()
	p := people()
	return Run(t.Context(), sql, named.Tables(map[string]*tables.Table{"data": p, "l1": p}))
}

// shown is a result on one line: names, then rows.
func shown(t testing.TB, tab *tables.Table) string {
	t.Helper()
	var b strings.Builder
	for i, c := range tab.Columns() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(c.Name)
	}
	for r := range tab.Len() {
		b.WriteString(" |")
		for i := range tab.Columns() {
			v, err := tab.At(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(" " + string(v.AppendJSON(nil, r)))
		}
	}
	return b.String()
}

// TestUnsupportedAtOnce promises that unsupported queries are refused before there is a result.
func TestUnsupportedAtOnce(t *testing.T) {
	inner := tables.NewList(tables.NewInts(sql.Int64, []int64{1, 2}, nil), []uint32{0, 2}, nil)
	data := tables.FromVectors([]string{"ll"}, []*tables.Vector{tables.NewList(inner, []uint32{0, 1}, nil)})
	for _, sql := range []string{"ll[1] AS x", "ll[1] IS NULL AS x", "ll[1][1] AS x"} {
		if _, err := Run(t.Context(), "SELECT "+sql+" FROM data",
			named.Tables(map[string]*tables.Table{"data": data})); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := Run(t.Context(), "SELECT ll, ll IS NULL AS x FROM data",
		named.Tables(map[string]*tables.Table{"data": data})); err != nil {
		t.Error(err)
	}
}

// TestNaNOfScans promises DuckDB's answers over Arrow: NaN is above every number, except where the scan of a file
// compares a float column with a number without widening it.
func TestNaNOfScans(t *testing.T) {
	single := tables.Type{Kind: tables.Float64, Bits: 32}
	data := tables.FromVectors([]string{"f", "d"}, []*tables.Vector{
		tables.NewFloats(single, []float64{1, 0.5, math.NaN()}, nil),
		tables.NewFloats(sql.Double, []float64{1, 0.5, math.NaN()}, nil),
	})
	for where, n := range map[string]string{
		"f >= 0.5": "2", "f >= 5e-1": "3", "f > 5e-1": "2", "5e-1 <= f": "3", "NOT f < 5e-1": "3",
		"NOT f < 0.5": "2", "f >= -1": "2", "f > -1e0 AND f <> 1": "2",
		"d >= 0.5": "2", "d >= 5e-1": "2", "NOT d < 5e-1": "2",
	} {
		got, err := Run(t.Context(), "SELECT count(*) AS n FROM data WHERE "+where,
			named.Tables(map[string]*tables.Table{"data": data}))
		if err != nil {
			t.Fatal(err)
		}
		if s := shown(t, got); s != "n | "+n {
			t.Errorf("%s: %s rows, want %s", where, s, n)
		}
	}
}

// TestMeaning promises DuckDB's answers for semantics that the manifest does not show, and that a column without a
// name is called as it is written.
func TestMeaning(t *testing.T) {
	for _, c := range [][2]string{
		{"select NAME, Data.ID from DATA limit 1", `Name,id | "ana" 0`},
		{"select id i, age+1, -age, count_star() from data group by 1,2,3 order by 1,2",
			`i,age+1,-age,count_star() | 0 31 -30 1 | 1 -3 4 1 | 2 128 -127 1 | 3 31 -30 1 | 4 null null 1`},
		{"select 7//2, -7//2, 7%0, 7/2, 1/0, 0/0, 2*3",
			`7//2,-7//2,7%0,7/2,1/0,0/0,2*3 | 3 -3 null 3.5 "Infinity" "NaN" 6`},
		{"select upper('straße ñÿ'), lower('ẞÑ')", `upper('straße ñÿ'),lower('ẞÑ') | "STRAẞE ÑŸ" "ßñ"`},
		{"select max(score), min(score), sum(age), avg(age) from data",
			`max(score),min(score),sum(age),avg(age) | "NaN" -1 183 45.75`},
		{"select avg(big), count(distinct age) from data", `avg(big),count(distinct age) | 5534023222112865000 3`},
		{"select id from data order by score, id", `id | 2 | 0 | 4 | 1 | 3`},
		{"select id from data order by score desc, id", `id | 1 | 4 | 0 | 2 | 3`},
		{"select id from data order by score desc nulls first", `id | 3 | 1 | 4 | 0 | 2`},
		{"select id from data where score > 0", `id | 0 | 4`},
		{"select id from data where score > 0 or id > 100", `id | 0 | 1 | 4`},
		{"select score > 0 as p from data where id < 2", `p | true | true`},
		{"select id from data where big > 9223372036854775807", `id | 0 | 3`},
		{"select id from data where id < 9223372036854775808 and id > -0.5", `id | 0 | 1 | 2 | 3 | 4`},
		{"select id from data where big >= -1 and big < 1e30", `id | 0 | 1 | 2 | 3 | 4`},
		{"select id from data where age > 29.5 and age <> 30.5 and age < 1000", `id | 0 | 2 | 3`},
		{"select id from data where id + 9223372036854775803 < 9223372036854775808", `id | 0 | 1 | 2 | 3 | 4`},
		{"select id from data where 9223372036854775808 = id + 9223372036854775803", `id`},
		{"select id from data where id + 9223372036854775803 < 9223372036854775806.5", `id | 0 | 1 | 2 | 3`},
		{"select id from data where id + 9223372036854775803 >= 9223372036854775806.5", `id | 4`},
		{"select id from data where id + 9223372036854775803 = 9223372036854775806.5", `id`},
		{"select id from data where age <> 30.5 and age > -9223372036854775808.5", `id | 0 | 1 | 2 | 3`},
		{"select id from data where not age = 9223372036854775808", `id | 0 | 1 | 2 | 3`},
		{"select id from data where big > -1.5 and big <= 18446744073709551615.5", `id | 0 | 1 | 2 | 3 | 4`},
		{"select id from data where big < -1 or big = -1 or big >= 18446744073709551615.5", `id`},
		{"select id from data where name ilike 'B_' order by name", `id | 1 | 4`},
		{"select id from data where name like 'ñ%' or name like '%n_'", `id | 0 | 3`},
		{"select id from data where name not in ('ana', null)", `id`},
		{"select len(tags), tags[1], tags[-1], tags[0] from data where id in (0,1)",
			`len(tags),tags[1],tags[-1],tags[0] | 2 "x" "y" null | 0 null null null`},
		{"select born from data where born = '2015-01-01' or year(born) = 1969", `born | "2015-01-01" | "1969-12-31"`},
		{"select a.id, b.id as c from data a join l1 b on a.id = b.id + 3", `id,c | 3 0 | 4 1`},
		{"select count(*) from data a, l1 b where a.id < b.id", `count(*) | 10`},
		{"select count(*), sum(age), max(name) from data where false",
			`count(*),sum(age),max(name) | 0 null null`},
		{"select age from data where false group by 1", `age`},
		{"select distinct age from data", `age | 30 | -4 | 127 | null`},
		{"select age as k, count(*) n from data group by k having n > 1", `k,n | 30 2`},
		{"select id as age from data order by age desc limit 1", `age | 4`},
		{"select id from data limit 2 offset 4", `id | 4`},
		{"select id from data offset 9 limit 2;", `id`},
		{"select * from data where id = 4 -- all\n",
			`id,Name,age,score,tags,big,born | 4 "bo" null 2 [] 0 "1970-01-01"`},
		{"select (((id))) as x /* a /* b */ c */ from data where not not id = 1", `x | 1`},
		{`select "id" as "a""b", 'it''s' as s from "data" where id = 0`, `a"b,s | 0 "it's"`},
		{"select null is null, null = 1, true and null, false and null as f",
			`null is null,null = 1,true and null,f | true null null false`},
	} {
		sql, want := c[0], c[1]
		got, err := run1(t, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if s := shown(t, got); s != want {
			t.Errorf("%s:\n got %s\nwant %s", sql, s, want)
		}
	}
}

// TestErrors promises that invalid SQL has no kind, that missing names are not found and the error lists the existing
// ones, and that SQL which DuckDB might run is unsupported and the error says so.
func TestErrors(t *testing.T) {
	for sql, want := range map[string]fault.Kind{
		"": 0, "SELEC 1": 0, "select": 0, "select from data": 0, "select id data": fault.NotFound,
		"select id from data where": 0, "select 1 2": 0, "select * exclude": 0, "select extract(": 0,
		"select id from data where id = 'x'": 0, "select id + 'x' from data": fault.Unsupported,
		"select id from data where name > 1": 0,
		"select id from data; select 2":      0, "drop table data": 0, "select 'a": 0,
		"select id from data order by 9": 0, "select sum(name) from data": 0,
		"select age from data group by id": 0, "select count(count(*)) from data": 0,
		"select id from data where count(*) > 1": 0, "select len(id) from data": 0,
		"select id from data a join l1 b on a.id = b.id": 0, "select id from data limit -1": 0,
		"select \"\" from data": 0, "select 9223372036854775807 + id from data": 0,
		"select nosuch from data": fault.NotFound, "select id from nosuch": fault.NotFound,
		"select x.id from data": fault.NotFound, "select x.* from data": fault.NotFound,

		"select nosuch(id) from data":                fault.Unsupported,
		"select rank() over (order by id) from data": fault.Unsupported,

		"select * from 'x.parquet'": fault.Unsupported, "select * from read_csv('x')": fault.Unsupported,
		"select $1": fault.Unsupported,
		"with recursive a as (select 1) select * from a": fault.Unsupported, "values (1)": fault.Unsupported,
		"select id from data except select 1":                 fault.Unsupported,
		"select id from data union all select id from data":   fault.Unsupported,
		"select id from data d where exists (select 1)":       fault.Unsupported,
		"select id from data where id in (select id from l1)": fault.Unsupported,
		"select (select max(id) from data)":                   fault.Unsupported,
		"select count(*) from (select id from data) b":        fault.Unsupported,
		"with a as (select 1) select * from a":                fault.Unsupported,
		"(select 1)":                                          fault.Unsupported,
		"select * exclude (nosuch) from data":                 fault.NotFound,
		"select cast(name as int) from data":                  0, "select sqrt(id - 1) from data": 0,
		"select ln(id) from data":                               0,
		"select regexp_matches(name, '(') from data":            0,
		"select strftime(born, '%e') from data":                 fault.Unsupported,
		"select regexp_matches(name, name) from data":           fault.Unsupported,
		"select cast(1 as decimal(4, 1))":                       fault.Unsupported,
		"select sum(big) from data":                             fault.Unsupported,
		"select 99999999999999999999":                           fault.Unsupported,
		"select date '2020-01-01' + interval 3 day":             fault.Unsupported,
		"select quantile_cont(id, 1.5) from data":               0,
		"select quantile_cont(id, score) from data":             fault.Unsupported,
		"select stddev(score) from data":                        0,
		"select id from data using sample 10%":                  fault.Unsupported,
		"select id from data tablesample 10%":                   fault.Unsupported,
		"from data":                                             fault.Unsupported,
		"select columns('i.*') from data":                       fault.Unsupported,
		"select * replace (1 as id) from data":                  fault.Unsupported,
		"select distinct on (id) id from data":                  fault.Unsupported,
		"select a.id from data a left join l1 b on a.id = b.id": fault.Unsupported,
		"select id from data group by all":                      fault.Unsupported,
		"select id from data order by all":                      fault.Unsupported,
		"select make_date(2021, 2, 30)":                         fault.Unsupported,
		"select count(*) filter (where id > 1) from data":       fault.Unsupported,
		"select quantile_cont(id, [0.5, 0.9]) from data":        fault.Unsupported,
		"select max(name order by id) from data":                fault.Unsupported,
		"select id is distinct from 1 from data":                fault.Unsupported,
		"select name similar to 'a' from data":                  fault.Unsupported,
		"select name not similar to 'a' from data":              fault.Unsupported,
		"select substring(name from 2) from data":               fault.Unsupported,
	} {
		got, err := run1(t, sql)
		if err == nil {
			_, err = valuesOfAll(t.Context(), got)
		}
		if err == nil || fault.KindOf(err) != want {
			t.Errorf("%s: %v, want kind %v", sql, err, want)
		}
		if want == fault.Unsupported && err != nil && !strings.Contains(err.Error(), "DuckDB") {
			t.Errorf("%s: %v does not name DuckDB", sql, err)
		}
	}
	var syntax *SyntaxError
	if _, err := run1(t, "select id\nfrom data were id"); !errors.As(err, &syntax) || syntax.Pos != 25 {
		t.Errorf("%v", err)
	}
	if _, err := run1(t, "select nosuch from data"); !strings.Contains(err.Error(), "id, Name, age") {
		t.Errorf("%v", err)
	}
}

func valuesOfAll(ctx context.Context, tab *tables.Table) ([]*tables.Vector, error) {
	var out []*tables.Vector
	for i := range tab.Columns() {
		v, err := tab.At(ctx, i)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// TestHostile promises that deep, long, wide or explosive queries end soon, most of them with a limit.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("limits of one goroutine: the race detector would see nothing, and take a minute")
	}
	deep := func(open, end string) string {
		return "select " + strings.Repeat(open, 100_000) + "1" + strings.Repeat(end, 100_000)
	}
	many := func(n int, s, sep string) string { return strings.Repeat(s+sep, n) + s }
	lateral := "select id as x0"
	for i := range 60 {
		lateral += fmt.Sprintf(", x%d + x%d as x%d", i, i, i+1)
	}
	for name, sql := range map[string]string{
		"brackets": deep("(", ")"), "not": deep("not ", ""), "minus": deep("-", ""), "plus": deep("+", ""),
		"calls": deep("abs(", ")"), "indexes": deep("tags[", "]"),
		"comment": "select 1 " + strings.Repeat("/*", 100_000), "long": "select " +
			strings.Repeat("x", 1<<20),
		"and":     "select id from data where " + many(20_000, "id=1", " and "),
		"sum":     "select " + many(20_000, "id", "+") + " from data",
		"in":      "select id from data where id in (" + many(60_000, "7", ",") + ")",
		"aliases": lateral + " from data",
		"items":   "select " + many(30_000, "*", ",") + " from data",
		"like":    "select id from data where name like '" + strings.Repeat("%a", 60_000) + "'",
		"ors":     "select id from data where " + many(3_000, "(id = 1 or name like '%b_%')", " or "),
		"join":    "select count(*) from " + many(15, "data", ",x") + " x",
		"aggs":    "select " + many(3_000, "sum(id)", ",") + " from data",
		"strings": "select '" + strings.Repeat("''", 100_000) + "'",
		"repeat":  "select repeat('x', 1 << 60), repeat('x', 9223372036854775807)",
		"repeats": "select " + strings.Repeat("repeat(", 10) + "'xxxxxxxx'" + strings.Repeat(", 1000)", 10),
		"replace": "select replace(repeat('x', 100000), 'x', repeat('y', 100000))",
		"pattern": "select regexp_matches(repeat('x', 100000), '(x*)*y(x|x?)*z') from data",
		"concat":  "select concat(" + many(250, "repeat('x', 10000000)", ",") + ")",
		"pipes":   "select " + many(300, "repeat('x', 10000000)", "||"),
		"cases": "select " + strings.Repeat("case when id = 1 then ", 350) + "1" +
			strings.Repeat(" end", 350) + " from data",
		"whens":  "select case " + strings.Repeat("when id = 7 then 'x' ", 20_000) + "end from data",
		"casts":  "select 1" + strings.Repeat("::text", 100_000),
		"powers": "select " + many(300, "9e99", "^"),
		"days":   "select born + 9223372036854775807, date '9999-12-31' + 2147483647 from data",
		"numbers": "select try_cast(repeat('9', 10000000) as int), try_cast('1e999999999' as bigint), " +
			"try_cast('1e-999999999' as int)",
	} {
		start := cputime.Used()
		got, err := run1(t, sql)
		if err == nil && got.Len() < 1000 && len(got.Columns()) < 1000 {
			_, err = valuesOfAll(t.Context(), got)
		}
		d := cputime.Used() - start
		t.Logf("%s: %v, %.200v", name, d, err)
		// Without a bound, each of these takes hours or all memory. With one, writing 256 MiB of
		// text takes a second; the race detector on a busy machine makes eight of it.
		if d > time.Minute {
			t.Errorf("%s: %v", name, d)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// TestManyLiteralsTakeLittle promises that literals take memory in proportion to the query, and not a batch of rows
// each.
func TestManyLiteralsTakeLittle(t *testing.T) {
	many := func(format, sep string) string {
		var terms []string
		for i := range 20_000 {
			terms = append(terms, fmt.Sprintf(format, i))
		}
		return strings.Join(terms, sep)
	}
	for name, sql := range map[string]string{
		"in": "select id from data where name in (" + many("'a%d'", ",") + ")",
		"or": "select id from data where " + many("name = 'a%d'", " or "),
	} {
		n := corpus.Allocated(func() {
			if _, err := run1(t, sql); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})
		if n > 200<<20 {
			t.Errorf("%s: %d MiB allocated", name, n>>20)
		}
	}
}

// goesOn lets LIKE read as much as it wants.
func goesOn(int) bool { return true }

// TestLikeIsNotExponential promises linear time for each piece of a pattern with many wild cards.
func TestLikeIsNotExponential(t *testing.T) {
	l, err := eval.NewLike(strings.Repeat("%a", 2000)+"%b", "", false)
	if err != nil {
		t.Fatal(err)
	}
	start := cputime.Used()
	if l.Match([]byte(strings.Repeat("a", 1<<20)), goesOn) {
		t.Error("matches")
	}
	if d := cputime.Used() - start; d > time.Minute {
		t.Error(d)
	}
}

// TestLike compares LIKE with a matcher written from its definition.
func TestLike(t *testing.T) {
	var slow func(p, s []rune) bool
	slow = func(p, s []rune) bool {
		switch {
		case len(p) == 0:
			return len(s) == 0
		case p[0] == '%':
			return slow(p[1:], s) || len(s) > 0 && slow(p, s[1:])
		}
		return len(s) > 0 && (p[0] == '_' || p[0] == s[0]) && slow(p[1:], s[1:])
	}
	var patterns, texts []string
	for n := range 5 {
		patterns, texts = append(patterns, words("a_%é", n)...), append(texts, words("aéb", n)...)
	}
	for _, p := range patterns {
		l, err := eval.NewLike(p, "", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			if got, want := l.Match([]byte(s), goesOn), slow([]rune(p), []rune(s)); got != want {
				t.Fatalf("%q LIKE %q: %v", s, p, got)
			}
		}
	}
}

// words are all words of n letters.
func words(letters string, n int) []string {
	out := []string{""}
	for range n {
		var next []string
		for _, w := range out {
			for _, l := range letters {
				next = append(next, w+string(l))
			}
		}
		out = next
	}
	return out
}

// TestWhereAndSort promises row numbers of the table.
func TestWhereAndSort(t *testing.T) {
	p := people()
	rows, err := Where(t.Context(), p, "age = 30 AND name IS NOT NULL")
	if err != nil || !slices.Equal(rows, []int{0, 3}) {
		t.Errorf("%v %v", rows, err)
	}
	if rows, err = Sort(t.Context(), p, "age", true); err != nil || !slices.Equal(rows, []int{2, 0, 3, 1, 4}) {
		t.Errorf("%v %v", rows, err)
	}
	if _, err = Where(t.Context(), p, "id = 1; drop"); err == nil || fault.KindOf(err) != 0 {
		t.Error(err)
	}
	if _, err = Where(t.Context(), p, "count(*) > 1"); err == nil {
		t.Error("an aggregate in a condition")
	}
	if _, err = Sort(t.Context(), p, "nosuch", true); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

// TestLongCoalesce promises that strings of a batch beyond the budget are refused before they are made.
func TestLongCoalesce(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine makes strings up to the limit of a query")
	}
	rows := 4096
	tab := tables.FromVectors([]string{"s"},
		[]*tables.Vector{tables.NewStrings(make([]string, rows), slices.Repeat([]bool{true}, rows))})
	for length, fits := range map[int]bool{1 << 10: true, 1<<20 + 1<<16: false} {
		sql := "SELECT max(length(coalesce(s, '" + strings.Repeat("x", length) + "'))) FROM data"
		got, err := Run(t.Context(), sql, named.Tables(map[string]*tables.Table{"data": tab}))
		if !fits {
			if fault.KindOf(err) != fault.Limit {
				t.Errorf("%d times %d bytes: %v", rows, length, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if v, err := got.At(t.Context(), 0); err != nil || v.Int(0) != int64(length) {
			t.Errorf("%v, %v, want %d", v, err, length)
		}
	}
}
