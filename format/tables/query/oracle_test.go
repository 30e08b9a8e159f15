package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestAgainstDuckDB compares random queries with DuckDB: the same columns and rows, or an error where DuckDB has one.
// Few of them may be unsupported. CHASKI_ORACLE_PYTHON is a Python with duckdb and pyarrow, CHASKI_ORACLE_SEED another
// seed.
func TestAgainstDuckDB(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" || exec.Command(python, "-c", "import duckdb, pyarrow").Run() != nil {
		t.Skip("no Python with duckdb and pyarrow (CHASKI_ORACLE_PYTHON)")
	}
	seed, _ := strconv.ParseUint(os.Getenv("CHASKI_ORACLE_SEED"), 10, 64)
	file := filepath.Join(t.TempDir(), "table.parquet")
	if out, err := exec.Command(python, "testdata/oracle.py", "table", file,
		fmt.Sprint(seed)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := testfile.Read(t, file)
	tab, err := tables.Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &grammar{rng: rng(seed)}
	queries := make([]string, 1000)
	for i := range queries {
		queries[i] = g.query()
	}
	cmd := exec.Command(python, "testdata/oracle.py", "run", file)
	cmd.Stdin = strings.NewReader(strings.Join(queries, "\n") + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(queries) {
		t.Fatalf("%d answers", len(lines))
	}
	unsupported, failed, answered := 0, 0, 0
	for i, sql := range queries {
		var want struct {
			Error   string
			Columns []string
			Rows    [][]any
		}
		d := json.NewDecoder(bytes.NewReader(lines[i]))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // nothing is in memory: row groups and pages are left out where they can be
			if tab, err = tables.Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)),
				tables.Options{Whole: 1}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Run(t.Context(), sql, named.Tables(map[string]*tables.Table{"data": tab}))
		var rows [][]any
		var names []string
		if err == nil {
			rows, err = valuesOrError(t, got)
			for _, c := range got.Columns() {
				names = append(names, c.Name)
			}
		}
		switch {
		case fault.KindOf(err) == fault.Unsupported:
			unsupported++
			if unsupported <= 5 {
				t.Logf("%s: %v", sql, err)
			}
			continue
		case strings.HasPrefix(want.Error, "Out of Range Error: Overflow"), // of types narrower than ours
			// of a row that is left out here
			strings.HasPrefix(want.Error, "Conversion Error") && strings.Contains(sql, "LIMIT"),
			// of the scan through Arrow
			strings.HasPrefix(want.Error, "Not implemented Error"):
		case (err != nil) != (want.Error != ""):
			t.Errorf("%s\n  error %v, DuckDB's %q", sql, err, want.Error)
			failed++
		case err == nil:
			answered++
			if diff := differ(names, rows, want.Columns, want.Rows, ordered(sql)); diff != "" {
				t.Errorf("%s\n  %s", sql, diff)
				failed++
			}
		}
		if failed >= 15 {
			break
		}
	}
	t.Logf("%d answered, %d unsupported", answered, unsupported)
	if unsupported > len(queries)/10 || answered < len(queries)/2 {
		t.Errorf("%d answered, %d unsupported", answered, unsupported)
	}
}

func valuesOrError(t *testing.T, tab *tables.Table) ([][]any, error) {
	for i := range tab.Columns() {
		if _, err := tab.At(t.Context(), i); err != nil {
			return nil, err
		}
	}
	return values(t, tab), nil
}

// ordered reports whether the rows of a query have an order: an ORDER BY outside brackets.
func ordered(sql string) bool {
	depth := 0
	for i, c := range sql {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && strings.HasPrefix(sql[i:], "ORDER BY") {
			return true
		}
	}
	return false
}

func differ(names []string, got [][]any, wantNames []string, want [][]any, ordered bool) string {
	same := func(a, b string) bool { return a == b || strings.ContainsAny(b, "(.") } // DuckDB has its own words
	if !slices.EqualFunc(names, wantNames, same) {
		return fmt.Sprintf("columns %q, want %q", names, wantNames)
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	rest := slices.Clone(want)
	for i, row := range got {
		k := 0
		if !ordered { // the first equal row that no other has taken: rows that nearly tie sort in any order
			k = max(0, slices.IndexFunc(rest, func(w []any) bool { return sameDeep(row, w) }))
		}
		if !sameDeep(row, rest[k]) {
			return fmt.Sprintf("row %d: %v, want %v", i, row, rest[k])
		}
		rest = slices.Delete(rest, k, k+1)
	}
	return ""
}

func sameDeep(got, want any) bool {
	g, ok1 := got.([]any)
	w, ok2 := want.([]any)
	if !ok1 || !ok2 {
		return same(got, want)
	}
	return slices.EqualFunc(g, w, sameDeep)
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// grammar makes queries.
type grammar struct{ rng *rand.Rand }

func (g *grammar) pick(s ...string) string { return s[g.rng.IntN(len(s))] }

func (g *grammar) chance(p float64) bool { return g.rng.Float64() < p }

func (g *grammar) query() string {
	switch g.rng.IntN(11) {
	case 10:
		return "SELECT * EXCLUDE (f64, f32) FROM data" + g.where()
	case 0, 1, 2:
		return g.grouped()
	case 3:
		return g.joined()
	case 4:
		cols := g.pick("k", "b", "s", "k, b", "d, b", "f64", "i8 % 3 AS m", "lower(s) AS l", "li", "nothing, b")
		q := "SELECT DISTINCT " + cols + " FROM data" + g.where()
		return q
	}
	items := []string{"id"}
	for range 1 + g.rng.IntN(3) {
		items = append(items, g.item())
	}
	q := "SELECT " + strings.Join(items, ", ") + " FROM data" + g.where()
	if g.chance(0.6) {
		q += " ORDER BY "
		for range g.rng.IntN(3) {
			q += g.pick("k", "b", "s", "f64", "f32", "i64", "u64", "d", "ts", "w", "i8", "k % 2", "len(s)", "-k",
				"abs(k)") + g.pick("", " ASC", " DESC") +
				g.pick("", "", " NULLS FIRST", " NULLS LAST") + ", "
		}
		q += g.pick("id", "id DESC", "1", "1 DESC")
		if g.chance(0.4) {
			q += " LIMIT " + strconv.Itoa(g.rng.IntN(40))
			if g.chance(0.5) {
				q += " OFFSET " + strconv.Itoa(g.rng.IntN(40))
			}
		}
	}
	return q
}

func (g *grammar) item() string {
	e := g.pick("*", "", "", "", "", "", "", "")
	if e == "" {
		e = g.any(2)
	}
	if e != "*" && strings.ContainsAny(e, " (.") || g.chance(0.3) && e != "*" { // titles are another test's
		e += g.pick(" AS x", " x", ` AS "A b"`)
	}
	return e
}

func (g *grammar) where() string {
	if g.chance(0.2) {
		return ""
	}
	return " WHERE " + g.bool(3)
}

func (g *grammar) grouped() string {
	keys := []string{"k", "b", "s", "d", "i8 % 4", "len(w)", "f64", "u16 > 30000", "lower(w)", "li", "ls[1]"}
	g.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:g.rng.IntN(3)]
	items := slices.Clone(keys)
	for range 1 + g.rng.IntN(3) {
		items = append(items, g.agg())
	}
	q := "SELECT " + strings.Join(items, ", ") + " FROM data" + g.where()
	if len(keys) > 0 {
		by := slices.Clone(keys)
		for i := range by {
			if g.chance(0.4) {
				by[i] = strconv.Itoa(i + 1)
			}
		}
		q += " GROUP BY " + strings.Join(by, ", ")
	}
	if g.chance(0.3) {
		q += " HAVING " + g.pick("count(*) > 5", "min(k) < 0", "max(u16) > 1000 AND count(*) < 100", "sum(k) > 3",
			"avg(i8) <= 0", "count(DISTINCT s) >= 2")
	}
	return q
}

func (g *grammar) agg() string {
	a := g.aggregate()
	if strings.HasPrefix(a, "SUM(k) ") || strings.Contains(a, " AS ") {
		return a
	}
	return a + " AS a"
}

func (g *grammar) aggregate() string {
	if g.chance(0.4) {
		x := g.pick("k", "i8", "f64 / 1e290", "f32", "id", "dec", "k * 0.5", "len(s)")
		finite := g.pick("k", "i8", "id", "u16", "dec", "k * 0.5", "len(s)")
		switch g.rng.IntN(5) {
		case 0:
			return g.pick("stddev", "stddev_pop", "var_samp", "var_pop") + "(" + finite + ")"
		case 1:
			return g.pick("median(k)", "median(f32)", "median(f64)", "median(id)")
		case 2:
			return "quantile_cont(" + g.pick("k", "f64", "u16") + ", " + g.pick("0.1", "0.5", "0.9", "0", "1") + ")"
		}
		return g.pick("sum", "avg", "min", "max") + "(" + x + ")"
	}
	switch g.rng.IntN(8) {
	case 0:
		return "COUNT(*)"
	case 1: // the words of a title are another test's
		return "COUNT(" + g.pick("", "DISTINCT ") + g.pick("s", "k", "f64", "li", "nothing", g.any(1)) + ") AS c"
	case 2, 3:
		return g.pick("SUM", "AVG") + "(" + g.pick("", "", "DISTINCT ") + g.pick("i8", "k", "u16", "i64", "u64",
			"k + i8", "len(s)", "k * 2") + ")"
	case 4:
		return g.pick("SUM", "AVG") + "(f64 / 1e290) AS q"
	case 5:
		return "SUM(k) " + g.pick("/ COUNT(*)", "> 3", "/ 2") + g.pick("", " AS q")
	}
	return g.pick("MIN", "MAX") + "(" + g.pick("i8", "k", "u64", "i64", "f32", "f64", "s", "w", "b", "d", "ts",
		g.number(1), g.text(1)) + ") AS e"
}

func (g *grammar) joined() string {
	on := g.pick("a.k = b.i8 AND b.k > 0", "a.id = b.u16 % 300", "a.s = b.w AND a.k = b.k AND a.id < b.id",
		"a.id = b.id + 1", "a.d = b.d AND a.b = b.b AND a.id <> b.id",
		"a.k = b.k AND starts_with(b.w, a.s) AND a.id < 20", "a.id = b.id AND (a.b OR b.k = 1)")
	kind := g.pick("JOIN", "INNER JOIN")
	items := g.pick("a.id, b.id", "a.id AS x, b.s, b.f64", "count(*)", "b.k, count(*) AS n, sum(a.k)",
		"a.id, len(b.s), b.li", "a.id, b.id IS NULL, b.b")
	q := "SELECT " + items + " FROM data a " + kind + " data b ON " + on + g.pick("", " WHERE a.k > 1",
		" WHERE b.k IS NULL OR a.i8 > b.i8", " WHERE a.id < 100")
	if strings.Contains(items, "b.k, count") {
		q += " GROUP BY b.k"
	}
	return q
}

// computed are expressions of functions, casts and CASE.
func (g *grammar) computed(depth int) string {
	n := func() string { return g.number(depth - 1) }
	s := func() string { return g.text(depth - 1) }
	whole := func() string { return g.pick("k", "i8", "1", "2", "0", "-1", "-3", "7", "id") }
	day := func() string {
		return g.pick("d", "ts", "DATE '2020-02-29'", "TIMESTAMP '2021-12-31 23:59:59.5'", "d + k",
			"CAST(ts AS DATE)")
	}
	part := func() string {
		return g.pick("'year'", "'month'", "'day'", "'week'", "'quarter'", "'hour'", "'second'", "'minute'")
	}
	switch g.rng.IntN(25) {
	case 0:
		return "CASE WHEN " + g.bool(1) + " THEN " + n() + " ELSE " + n() + " END"
	case 1:
		return "CASE " + g.pick("k WHEN 1 THEN 'a' WHEN 2 THEN s", "s WHEN 'a' THEN w WHEN '' THEN 'x'",
			"k % 2 WHEN 0 THEN 'even' WHEN 1 THEN 'odd'") + g.pick("", " ELSE 'no'") + " END"
	case 2:
		return "CAST(" + g.pick("f64", "f32", "k", "i64", "u64", "i8", "id", "b", "f64 / 7") +
			" AS " + g.pick("INTEGER", "BIGINT", "TINYINT", "UBIGINT", "DOUBLE", "FLOAT", "BOOLEAN") + ")"
	case 3:
		return "TRY_CAST(" + g.pick("s", "w", "f64", "u64", "k", "ls[1]", "f32 * 1000", "num") + " AS " +
			g.pick("INTEGER", "BIGINT", "DOUBLE", "DATE", "BOOLEAN", "SMALLINT",
				"USMALLINT", "TIMESTAMP") + ")"
	case 4:
		return g.pick("k", "f64", "f32", "u64", "b", "d", "ts", "i64", "s") + "::VARCHAR"
	case 5:
		return g.pick("left", "right") + "(" + s() + ", " + whole() + ")"
	case 6: // of columns, and not to the left: see substring
		return "substring(" + g.pick("s", "w") + ", " + whole() + g.pick("", ", "+g.pick("0", "1", "2", "7")) + ")"
	case 7:
		return g.pick("trim", "ltrim", "rtrim") + "(" + s() + ")"
	case 8:
		return "replace(" + s() + ", " + g.pick("'a'", "'é'", "''", "s") + ", " + g.pick("'bb'", "''", "w") + ")"
	case 9:
		return "concat(" + s() + ", " + g.pick("k", "f64", "d", "NULL", "b", "ts") + ", 'x')"
	case 10:
		return "split_part(" + s() + ", " + g.pick("'_'", "'a'", "''", "'.'") + ", " + whole() + ")"
	case 11:
		return "repeat(" + s() + ", " + whole() + " % 4)"
	case 12:
		return "regexp_matches(" + s() + ", " + g.pick("'a'", "'^[a-z]+$'", "'[0-9]+'", "'.'", "'A', 'i'", "''") + ")"
	case 13:
		return g.pick("regexp_extract("+s()+", '[a-z]+')", "regexp_extract("+s()+", '([a-z])(.)', 2)")
	case 14:
		return "round(" + g.pick("f64", "f32", "k", "dec", "k * 0.125", "f64 / 3") + g.pick("", ", 1", ", 2",
			", 0", ", -1") + ")"
	case 15:
		return g.pick("floor", "ceil", "trunc", "sign", "abs") + "(" + g.pick("f64", "f32", "k", "dec", "i8") + ")"
	case 16:
		return g.pick("sqrt(abs(k))", "pow(k, 2)", "exp(k)", "ln(abs(k) + 1)", "log10(id + 1)",
			"radians(f64)", "degrees(f32)", "sin(k)", "k ^ 2", "f64 ** 2")
	case 17:
		return g.pick("greatest", "least") + "(" + g.pick("f64, k", "k, 2.5", "s, w", "f64, f32, 0", "k, i8",
			"d, ts", "dec, k", "u16, i8", "k, NULL") + ")"
	case 18:
		return g.pick("nullif(k, 1)", "nullif(s, 'a')", "nullif(f64, 0)", "nullif(k, 2.0)", "ifnull(k, 0.5)",
			"ifnull(s, w)", "coalesce(dec, k)", "coalesce(f32, k, 1)", "if(b, k, i8)", "if(k > 1, s, w)")
	case 19:
		return g.pick("year", "month", "day", "quarter", "week", "dayofyear", "dayofweek", "isodow", "hour",
			"minute", "second", "epoch") + "(" + day() + ")"
	case 20:
		return "date_part(" + part() + ", " + day() + ")"
	case 21:
		return "extract(" + g.pick("year", "doy", "dow", "epoch", "month", "week") + " FROM " + day() + ")"
	case 22:
		return "date_trunc(" + part() + ", " + day() + ")"
	case 23:
		return g.pick("d - DATE '2013-01-01'", "d + k", "d - 10", "k + d")
	}
	return g.pick("k", "dec", "u16", "i8") + g.pick(" + ", " - ", " * ", " / ", " % ") +
		g.pick("0.5", "1.25", "dec", "2.0", "10")
}

func (g *grammar) any(depth int) string {
	if g.chance(0.5) {
		return g.computed(depth)
	}
	switch g.rng.IntN(4) {
	case 0:
		return g.bool(depth)
	case 1:
		return g.text(depth)
	case 2:
		return g.pick("d", "ts", "li", "ls", "li[1]", "li[-1]", "ls[k]", "len(li)", "nothing", "year(d)",
			"month(ts)", "len(ls)")
	}
	return g.number(depth)
}

func (g *grammar) number(depth int) string {
	if depth == 0 || g.chance(0.3) {
		return g.pick("i8", "k", "i64", "u16", "u64", "f32", "f64", "id", "1", "2", "0", "-3", "1e2", "300",
			"9223372036854775807")
	}
	switch g.rng.IntN(8) {
	case 0:
		return "-" + g.pick("k", "f64", "i8", "(k + 1)")
	case 1:
		return "len(" + g.pick("s", "w", "lower(s)", "s || 'x'", "ls[1]") + ")"
	case 2:
		return "(" + g.number(depth-1) + ")"
	case 3:
		return g.pick("f64", "f32") + g.pick(" + ", " * ", " - ", " / ") + g.pick("0.5", "2", "k", "1.5", "f64", "f32")
	case 4:
		return "abs(" + g.pick("k", "f64", "i64") + ")"
	case 5:
		return "coalesce(" + g.pick("k, 7", "i64, 0", "k, k, 1", "f64, 0.5", "i8, 3") + ")"
	}
	return g.pick("k", "i8", "id", "u16", "li[1]") + g.pick(" + ", " - ", " * ", " / ", " // ", " % ") +
		g.pick("k", "2", "i8", "id", "7", "0")
}

func (g *grammar) text(depth int) string {
	if depth == 0 || g.chance(0.6) {
		return g.pick("s", "w", "'a'", "''", "'é'", "ls[1]")
	}
	return g.pick("lower", "upper") + "(" + g.text(depth-1) + ")" + g.pick("", "", " || 'x'", " || s")
}

func (g *grammar) cmp() string {
	return g.pick(" = ", " <> ", " < ", " <= ", " > ", " >= ", " != ", " == ")
}

func (g *grammar) bool(depth int) string {
	if depth > 0 && g.chance(0.45) {
		switch g.rng.IntN(4) {
		case 0:
			return "NOT (" + g.bool(depth-1) + ")"
		case 1:
			return "(" + g.bool(depth-1) + ") IS " + g.pick("", "NOT ") + g.pick("TRUE", "FALSE", "NULL", "UNKNOWN")
		case 2:
			return g.bool(depth-1) + " AND " + g.bool(depth-1)
		}
		return "(" + g.bool(depth-1) + " OR " + g.bool(depth-1) + ")"
	}
	switch g.rng.IntN(13) {
	case 0:
		return g.pick("b", "b = true", "NOT b", "b IS NOT TRUE", "b IS FALSE", "TRUE", "k", "b = b")
	case 1, 2:
		return g.number(1) + g.cmp() + g.pick("0", "1", "2.5", "-1.5", "100", "k", "f64", "0.1", "1e1", "'5'",
			"128", "-200", "i8", "9223372036854775808", "NULL")
	case 3:
		return g.text(1) + g.cmp() + g.pick("'a'", "'test'", "w", "s", "'é'", "''")
	case 4:
		return g.pick("s", "w", "lower(s)") + g.pick(" LIKE ", " NOT LIKE ", " ILIKE ", " NOT ILIKE ") +
			g.pick("'a%'", "'%a%'", "'%'", "''", "'_'", "'a_'", "'%é'", "'É%'", "'%b%_'", "'x\\%y'",
				"'x!%y' ESCAPE '!'", "'t%t'", "'_%_'", "'%日_'", "'%.tif'")
	case 5:
		return g.pick("k", "i8", "u64", "s", "f64", "i64") + g.pick(" IN ", " NOT IN ") +
			g.pick("(1, 2, 3)", "(1, NULL)", "(-1, 300, 5)", "(0)", "(2.0, 1)")
	case 6:
		return "s" + g.pick(" IN ", " NOT IN ") + g.pick("('a', 'é')", "('', NULL)", "('zz')", "(w, 'a')")
	case 7:
		return g.pick("k", "i8", "f64", "f32", "u16", "id") + g.pick(" BETWEEN ", " NOT BETWEEN ") +
			g.pick("-1 AND 3", "0 AND 100.5", "5 AND 1", "k AND 3", "0.1 AND 2")
	case 8:
		return g.pick("s", "k", "li", "f64", "d", "nothing", g.number(1)) + g.pick(" IS NULL", " IS NOT NULL",
			" ISNULL", " NOTNULL")
	case 9:
		return g.pick("d", "ts") + g.cmp() + g.pick("DATE '2013-11-15'", "TIMESTAMP '2013-11-15'",
			"TIMESTAMP '2013-11-15 12:00:00'", "'2013-11-15'", "d", "ts",
			"TIMESTAMP '2013-11-20T00:00:00.000001'", "'2013-12-01'")
	case 10:
		return g.pick("isnan(f64)", "isnan(f32)", "isinf(f64)", "isfinite(f32)", "isnan(k)", "f32 > 5e-1",
			"f32 >= -1e0", "NOT (f32 < 2e0)", "starts_with(w, s)", "contains(w, 'a')",
			"ends_with(s, 'b')", "prefix(w, 'a')")
	case 11:
		return g.pick("list_contains(li, 2)", "list_contains(ls, 'a')", "list_contains(li, NULL)", "len(li) > 1",
			"li[1] = 2", "ls[1] = 'a'", "list_contains(li, 1.5)",
			"array_contains(li, 3)", "list_has(ls, 'é')")
	}
	return g.pick("k", "s", "f64", "i8", "nothing") + " IS " + g.pick("", "NOT ") + "NULL"
}
