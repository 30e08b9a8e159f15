package duckdb

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// sample has a column of every kind, with a null in each.
func sample() *tables.Table {
	one := []bool{false, false, true}
	ints := func(k tables.Kind, bits uint8, v ...int64) *tables.Vector {
		return tables.NewInts(tables.Type{Kind: k, Bits: bits}, v, one)
	}
	names := []string{"Text", "b", "i8", "u64", "f32", "f64", "ts", "d", "tm", "bin", "dec", "li", "st", "none"}
	return tables.FromVectors(names, []*tables.Vector{
		tables.NewStrings([]string{"ñandú", "", ""}, one),
		ints(tables.Bool, 0, 1, 0, 0), ints(tables.Int64, 8, -128, 127, 0), ints(tables.Uint64, 64, -1, 5, 0),
		tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, []float64{0.5, -1, 0}, one),
		tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, []float64{0.1, 1e300, 0}, one),
		ints(tables.Timestamp, 0, -1, 1420070400000001, 0), ints(tables.Date, 0, -1, 16436, 0),
		ints(tables.Time, 0, 123456, 86399999999, 0),
		tables.NewBytes(tables.Type{Kind: tables.Binary}, []byte{0, 255, 1}, []uint32{0, 2, 3, 3}, one),
		tables.NewBigs(tables.Type{Kind: tables.Decimal, Precision: 18, Scale: 4}, []int64{-12345, 1, 0},
			[]int64{-1, 0, 0}, one),
		tables.NewList(tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, []int64{1, 2, 3},
			[]bool{false, true, false}), []uint32{0, 3, 3, 3}, one),
		tables.NewStruct([]string{"x", "y"}, []*tables.Vector{ints(tables.Int64, 64, 7, 8, 0),
			tables.NewStrings([]string{"a", "b", ""}, one)}, one),
		tables.NewNulls(tables.Type{}, 3),
	})
}

func runOn(t *testing.T, sql string, tab *tables.Table) (*tables.Table, error) {
	t.Helper()
	return Run(t.Context(), sql, []string{"data"}, query.Map(map[string]*tables.Table{"data": tab}))
}

func rows(t *testing.T, tab *tables.Table) string {
	t.Helper()
	var b []byte
	for r := range tab.Len() {
		for i, c := range tab.Columns() {
			v, err := tab.At(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			b = v.AppendJSON(append(b, c.Name+"="...), r)
			b = append(b, ' ')
		}
		b = append(b, '\n')
	}
	return string(b)
}

// TestRoundTrip promises that every value passes through DuckDB unchanged.
func TestRoundTrip(t *testing.T) {
	in := sample()
	out, err := runOn(t, "SELECT * FROM data", in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rows(t, out), rows(t, in); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestFullSQL runs SQL that package query does not support.
func TestFullSQL(t *testing.T) {
	for _, c := range [][2]string{
		{`WITH a AS (SELECT i8 FROM data WHERE i8 IS NOT NULL) SELECT sum(x.i8) AS s FROM a x, a y`, "s=-2 \n"},
		{`SELECT row_number() OVER (ORDER BY i8 DESC NULLS LAST) AS r, "text" FROM data ORDER BY r LIMIT 1`,
			`r=1 Text="" ` + "\n"},
		{`SELECT CASE WHEN b THEN 1.5 ELSE 2 END AS c FROM data LIMIT 1`, `c=1.5 ` + "\n"},
		{`SELECT li || [4] AS l, st.y, {'a': 1} AS s FROM data LIMIT 1; `, `l=[1,null,3,4] y="a" s={"a":1} ` + "\n"},
		{`SELECT E'a\';b' AS e, $$x;'y$$ AS d, ';' AS s /* ; */ -- ;` +
			"\n",
			`e="a';b" d="x;'y" s=";" ` + "\n"},
		{`SELECT count(*) AS n FROM data t1 JOIN data t2 ON t1.i8 < t2.i8 WHERE t1.i8 IN (SELECT min(i8) FROM data)`,
			"n=1 \n"},
	} {
		sql, want := c[0], c[1]
		out, err := runOn(t, sql, sample())
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got := rows(t, out); got != want {
			t.Errorf("%s: got %s want %s", sql, got, want)
		}
	}
}

// TestOrderOfScan promises that rows come in the order of the table, also if they are many.
func TestOrderOfScan(t *testing.T) {
	v := make([]int64, 100_000)
	for i := range v {
		v[i] = int64(i)
	}
	tab := tables.FromVectors([]string{"i"},
		[]*tables.Vector{tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, v, nil)})
	out, err := runOn(t, "SELECT i FROM data WHERE i % 3 = CASE WHEN true THEN 1 END", tab)
	if err != nil {
		t.Fatal(err)
	}
	c, err := out.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() != 33333 {
		t.Fatalf("%d rows", out.Len())
	}
	for i := range out.Len() {
		if c.Int(i) != int64(3*i+1) {
			t.Fatalf("row %d is %d", i, c.Int(i))
		}
	}
}

// TestProjection promises that only the columns that a query uses are loaded.
func TestProjection(t *testing.T) {
	loaded := map[int]bool{}
	cols := sample().Columns()
	in := sample()
	tab := tables.New(3, cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		loaded[i] = true
		return in.At(ctx, i)
	})
	if _, err := runOn(t, "SELECT count(*), max(i8 + 0.5) FROM data WHERE f64 > 0", tab); err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 2 || !loaded[2] || !loaded[5] {
		t.Errorf("loaded %v", loaded)
	}
}

// A table that a query does not name is not opened.
func TestTablesOnDemand(t *testing.T) {
	open := func(_ context.Context, name string) (*tables.Table, error) {
		if name != "data" {
			t.Errorf("%s is opened", name)
		}
		return sample(), nil
	}
	if _, err := Run(t.Context(), `SELECT 1 + 0.5 FROM "Data"`, []string{"data", "level1", "l0"}, open); err != nil {
		t.Error(err)
	}
}

// A query reaches no file, no network, no extension and no setting, and is one SELECT.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(secret, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.csv")
	for _, sql := range []string{
		`SELECT * FROM '` + secret + `'`,
		`SELECT * FROM read_csv('` + secret + `')`,
		`SELECT * FROM read_text('` + secret + `')`,
		`SELECT * FROM glob('` + dir + `/*')`,
		`SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')`,
		`COPY (SELECT 1) TO '` + out + `'`,
		`SELECT 1; COPY (SELECT 1) TO '` + out + `'; SELECT 2`,
		`COPY (SELECT 1) TO '` + out + `'; SELECT 2`,
		`SELECT 'a' -- '` + "\n" + `; COPY (SELECT 1) TO '` + out + `'; SELECT 2`,
		`SELECT 1 /* /* */ ; COPY (SELECT 1) TO '` + out + `'; SELECT 2 -- */`,
		`EXPORT DATABASE '` + dir + `/x'`,
		`ATTACH '` + dir + `/x.db' AS x`,
		`INSTALL httpfs`, `LOAD httpfs`,
		`SET enable_external_access = true`, `RESET lock_configuration`, `PRAGMA enable_external_access`,
		`SET memory_limit = '100GB'`,
		`CREATE TABLE x AS SELECT 1`, `DROP VIEW data`, `INSERT INTO data VALUES (1)`,
		`PREPARE p AS SELECT 1`, `CALL pragma_version()`, `SELECT $1`, `SELECT ?`,
		`EXPLAIN ANALYZE SELECT 1`,
		"SELECT 1\x00; SELECT 2", ``, `;`,
		`SELECT * FROM read_duckdb('` + dir + `/x.db')`, `SELECT * FROM which_secret('s3://x', 's3')`,
		`SELECT * FROM query('SELECT * FROM read_text(''` + secret + `'')')`, `SELECT * FROM arrow_scan(1, 2, 3)`,
		// What switches on logs and profiles is a SELECT too, and what runs the text of another query.
		`FROM enable_logging(level := 'trace', storage := 'file', storage_path := '` + dir +
			`/log'), (SELECT write_log('x') FROM range(10_000))`,
		`FROM "Enable_Logging"(level := 'trace', storage := 'stdout') UNION ALL SELECT true`,
		`FROM system.main.enable_profiling(format := 'json', save_location := '` + out + `.json'), range(10_000)`,
		`SELECT (SELECT 1 WHERE EXISTS (FROM enable_profiling(save_location := '` + out + `.txt')))`,
		`WITH x AS (FROM query('FROM enable_' || 'logging()')) SELECT 1`,
		`SELECT 1 FROM json_execute_serialized_sql(json_serialize_sql('FROM enable_profiling()'))`,
		`PIVOT (FROM enable_logging()) ON Success USING count(*)`, `FROM (DESCRIBE FROM query('SELECT 1'))`,
		`SELECT write_log('x')`,
	} {
		if got, err := runOn(t, sql, sample()); err == nil {
			t.Errorf("%s: %s", sql, rows(t, got))
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%s wrote a file", sql)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// A query that takes too much memory fails, and one that is cancelled ends.
func TestBounds(t *testing.T) {
	_, err := runOn(t, "SELECT len(list(repeat('x', 1_000_000) || r.range)) FROM range(100_000) r", sample())
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("memory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tab := tables.New(3, sample().Columns(), func(ctx context.Context, i int) (*tables.Vector, error) {
		cancel()
		return sample().At(ctx, i)
	})
	_, err = Run(ctx, "SELECT count(*) FROM data, range(1_000_000_000_000) r WHERE i8 + r.range % 7 = 3",
		[]string{"data"},
		query.Map(map[string]*tables.Table{"data": tab}))
	if err == nil {
		t.Error("a cancelled query gave an answer")
	}
}

// A result that takes too much memory fails, whatever its cells are, as its rows may be many more
// than those of the tables.
func TestResultIsBounded(t *testing.T) {
	defer func(m string, n int64) { memory, maxResult = m, n }(memory, maxResult)
	memory, maxResult = "32MB", 1<<20
	for _, sql := range []string{
		"SELECT r.range FROM data, range(1_000_000_000) r",
		"SELECT NULL FROM range(1_000_000_000)",
		"SELECT repeat('x', 1000) FROM range(1_000_000_000)",
		"SELECT [1, 2, 3] FROM range(1_000_000_000)",
		"SELECT {'a': repeat('x', 1000)} FROM range(1_000_000_000)",
		"SELECT 1::DECIMAL(38, 2) FROM range(1_000_000_000)",
	} {
		if _, err := runOn(t, sql, sample()); fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := runOn(t, "SELECT r.range FROM range(1000) r", sample()); err != nil {
		t.Error(err)
	}
}

// What DuckDB takes for a SELECT is run, however it begins and ends, and its columns keep their names.
func TestForms(t *testing.T) {
	for sql, want := range map[string]int{
		"SELECT 1 AS a, 2 AS a, NULL AS b": 1, "VALUES (1), (2) -- two": 2, "FROM range(3);": 3,
		"TABLE data ; -- all":                   sample().Len(),
		"WITH x AS (SELECT 1) FROM x /* one */": 1, "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 DESC; ;": 2,
		`PIVOT (VALUES (1, 'a'), (2, 'b')) x(n, k) ON k IN ('a', 'b') USING count(*) GROUP BY n`: 2,
		`SELECT 'enable_logging()', 'query(' AS query`:                                           1,
		"DESCRIBE data": len(sample().Columns()), "SELECT ';' AS \";\" ;": 1,
		"SELECT range FROM range(5) ORDER BY range DESC LIMIT 4": 4,
	} {
		got, err := runOn(t, sql, sample())
		if err != nil || got.Len() != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	got, err := runOn(t, "SELECT range AS a, -range AS a, NULL AS b FROM range(100_000) ORDER BY 1 DESC", sample())
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Columns(); c[0].Name != "a" || c[1].Name != "a" || c[2].Name != "b" {
		t.Errorf("columns %v", c)
	}
	v, err := got.At(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Len() {
		if v.Int(i) != int64(99_999-i) {
			t.Fatalf("row %d is %d", i, v.Int(i))
		}
	}
}

// Errors have the kinds that package query gives.
func TestKinds(t *testing.T) {
	for sql, want := range map[string]fault.Kind{
		"SELECT nosuch FROM data": fault.NotFound, "SELECT 1 FROM nosuch": fault.NotFound, "SELEC 1": 0,
		"SELECT 1 + 'x'": 0, "SELECT sum(text) FROM data": 0,
	} {
		if _, err := runOn(t, sql, sample()); err == nil || fault.KindOf(err) != want ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestNanoseconds promises that timestamps in nanoseconds pass through DuckDB unchanged and are compared exactly.
// Columns that they were joined with may be out of their range.
func TestNanoseconds(t *testing.T) {
	typ := tables.Type{Kind: tables.Timestamp, Nano: true}
	us := []int64{-1, 0, 1577836800123456, 1577836800123456, 0}
	ns := []int64{999, 0, 789, 0, 0}
	in := tables.FromVectors([]string{"id", "t"}, []*tables.Vector{
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, []int64{0, 1, 2, 3, 4}, nil),
		tables.NewTimes(typ, us, ns, []bool{4: true}),
	})
	out, err := runOn(t, "SELECT * FROM data", in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rows(t, out), rows(t, in); got != want || !out.Columns()[1].Type.Nano {
		t.Errorf("%s, want %s", got, want)
	}
	for _, c := range [][2]string{
		{"SELECT id FROM data WHERE t > '2020-01-01 00:00:00.123456' QUALIFY row_number() OVER () > 0", "2"},
		{"SELECT list(id ORDER BY id)::VARCHAR AS id FROM data WHERE t < '1970-01-01'", `"[0]"`},
		{"SELECT epoch_ns(t) AS id FROM data WHERE id = 2", "1577836800123456789"},
		{"SELECT strftime(date_trunc('day', t) + INTERVAL 1 DAY, '%Y-%m-%d') AS id FROM data WHERE id = 2",
			`"2020-01-02"`},
		{"SELECT year(t) + month(t) + extract(hour FROM t) AS id FROM data WHERE id = 2", "2021"},
		{"SELECT CAST(t AS DATE)::VARCHAR || dayname(t) AS id FROM data WHERE id = 2", `"2020-01-01Wednesday"`},
		{"SELECT date_diff('day', t, TIMESTAMP '2020-01-03') AS id FROM data WHERE id = 2", "2"},
		{"SELECT (t BETWEEN TIMESTAMP '2020-01-01' AND TIMESTAMP '2020-01-02' + INTERVAL 1 DAY)::INT AS id " +
			"FROM data WHERE id = 2",
			"1"},
		{"SELECT left((t - TIMESTAMP '2020-01-01')::VARCHAR, 8) AS id FROM data WHERE id = 2", `"00:00:00"`},
		{"SELECT left(time_bucket(INTERVAL 1 DAY, t)::VARCHAR, 10) AS id FROM data WHERE id = 2", `"2020-01-01"`},
		{"SELECT make_date(year(t), 2, 1)::VARCHAR AS id FROM data WHERE id = 2", `"2020-02-01"`},
		{"SELECT strftime(t, '%Y') AS id FROM data WHERE id = 2", `"2020"`},
		{"SELECT epoch(t)::BIGINT AS id FROM data WHERE id = 2", "1577836800"},
		{"SELECT date_part('doy', t) AS id FROM data WHERE id = 2", "1"},
		{"SELECT isodow(t) + quarter(t) AS id FROM data WHERE id = 2", "4"},
		{"SELECT last_day(t)::VARCHAR AS id FROM data WHERE id = 2", `"2020-01-31"`},
		{"SELECT age(TIMESTAMP '2020-01-02', t) < INTERVAL 2 DAY AS id FROM data WHERE id = 2", "true"},
	} {
		sql, want := c[0], c[1]
		out, err := runOn(t, sql, in)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got := rows(t, out); got != "id="+want+" \n" {
			t.Errorf("%s: %q, want %s", sql, got, want)
		}
	}
	for _, us := range []int64{math.MaxInt64/1000 + 1, math.MinInt64 / 1000, 1 << 60} {
		far := tables.FromVectors([]string{"t"}, []*tables.Vector{tables.NewTimes(typ, []int64{us}, []int64{1}, nil)})
		if _, err := runOn(t, "SELECT t FROM data QUALIFY row_number() OVER () > 0", far); err == nil ||
			!strings.Contains(err.Error(), "nanoseconds") {
			t.Errorf("%d: %v", us, err)
		}
	}
}
