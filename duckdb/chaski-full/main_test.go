package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/duckdb"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestMain lets a test run the command as a process of its own: this binary again.
func TestMain(m *testing.M) {
	duckdb.Child() // the process of a query has no environment that names what runs it
	if os.Getenv("CHASKI_RUN_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "CHASKI_RUN_MAIN=1")
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), o.String(), e.String()
}

// The full command runs what the default one refuses, keeps to the tables, and exits as the default
// one does.
func TestSQL(t *testing.T) {
	containers, err := filepath.Glob(filepath.Join(corpus.Testdata(t), "containers", "taco-v2", "*", "*.tacozip"))
	if err != nil || len(containers) == 0 {
		t.Fatalf("%v %v", containers, err)
	}
	for _, c := range []struct {
		sql  string
		code int
		out  string
	}{
		{`WITH a AS (SELECT 1 AS n FROM data) SELECT count(*) > 0 AS some FROM a`, 0,
			`{"columns":["some"],"rows":[[true]]}`},
		{`SELECT count(*) > 0 AS some FROM data`, 0, `{"columns":["some"],"rows":[[true]]}`},
		// What our own parser takes for an error of syntax or of types reaches DuckDB.
		{`SELECT printf('%02d', 7) AS p, [x + 1 for x in [1, 2]] AS l, 5 & 3 AS b, 'ab'[1] AS c`, 0,
			`{"columns":["p","l","b","c"],"rows":[["07",[2,3],1,"a"]]}`},
		{`SELECT row_number() OVER () AS r FROM data QUALIFY r = 2`, 0, `{"columns":["r"],"rows":[[2]]}`},
		{`SELECT 1 + 2 AS n, length([1, 2, 3]) AS l, {'a': 1}.a AS s`, 0, `{"columns":["n","l","s"],"rows":[[3,3,1]]}`},
		{`SELECT count(*) > 0 AS some FROM data AS t(a)`, 0, `{"columns":["some"],"rows":[[true]]}`},
		{`SELECT * FROM glob('/*')`, 1, ""},
		{`WITH a AS (SELECT nosuch FROM data) SELECT * FROM a`, 1, ""},
		{`WITH a AS (SELECT 1 SELECT * FROM a`, 2, ""},
		{`SELECT CASE WHEN true THEN 1 END; DROP VIEW data`, 2, ""},
	} {
		code, out, errs := command(t, "sql", "--format", "json", c.sql, containers[0])
		if code != c.code || strings.TrimSpace(out) != c.out {
			t.Errorf("%s: exit %d, %s%s", c.sql, code, out, errs)
		}
	}
}

// TestConditions promises that conditions may use SQL that only DuckDB runs, but nothing outside the tables.
func TestConditions(t *testing.T) {
	coast := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	spec := filepath.Join(t.TempDir(), "spec.json")
	for _, c := range []struct {
		where string
		code  int
		out   string
	}{
		{`{"select":"WITH a AS (SELECT * FROM data WHERE rank < 6) SELECT * FROM a"},` +
			`{"sql":"regexp_matches(region, 'mid.*')"}`, 0, `"samples":2,`},
		{`{"sql":"regexp_matches(region, 'south') -- to the end"},` +
			`{"select":"WITH a AS (SELECT id FROM data WHERE rank > 9) SELECT * FROM a"}`, 0, `"samples":2,`},
		{`{"select":"FROM glob('/*')"}`, 1, ""},
		{`{"sql":"regexp_matches(region, 'x') OR EXISTS (FROM glob('/*'))"}`, 1, ""},
	} {
		text := `{"source": "` + coast + `", "batch_size": 1, "where": [` + c.where +
			`], "fields": [{"name": "image", "column": "s2/img.tif", "dtype": "native"}]}`
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := command(t, "plan", "--json", spec)
		if code != c.code || !strings.Contains(out, c.out) {
			t.Errorf("%s: exit %d, %s%s", c.where, code, out, errs)
		}
	}
}
