package query

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// duckAnswer is DuckDB's answer to a query.
type duckAnswer struct {
	SQL, Error     string
	Columns, Types []string
	Rows           [][]any
}

func duckAnswers(t *testing.T) []duckAnswer {
	t.Helper()
	b := testfile.Read(t, "testdata/analyst/answers.jsonl")
	var out []duckAnswer
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b))
	for lines.Scan() {
		var a duckAnswer
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func parquetTable(t *testing.T, path string) *tables.Table {
	t.Helper()
	b := testfile.Read(t, path)
	tab, err := tables.Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// TestAnalystQueries promises DuckDB's names, types and rows for queries that an analyst of metadata writes.
// testdata/analyst/analyst.py asked DuckDB for them.
func TestAnalystQueries(t *testing.T) {
	tables := named.Tables(map[string]*tables.Table{"data": parquetTable(t, "testdata/analyst/data.parquet"),
		"level1": parquetTable(t, "testdata/analyst/level1.parquet")})
	all := duckAnswers(t)
	answered, refused := 0, 0
	for _, a := range all {
		got, err := Run(t.Context(), a.SQL, tables)
		var rows [][]any
		if err == nil {
			rows, err = valuesOrError(t, got)
		}
		if fault.KindOf(err) == fault.Unsupported {
			refused++
			t.Logf("refused: %s: %v", a.SQL, err)
			continue
		}
		if (err != nil) != (a.Error != "") {
			t.Errorf("%s\n  error %v, DuckDB's %q", a.SQL, err, a.Error)
			continue
		}
		answered++
		if err != nil || strings.Contains(a.SQL, "random()") {
			continue
		}
		var names, types []string
		for _, c := range got.Columns() {
			names, types = append(names, c.Name), append(types, sql.Name(c.Type))
		}
		if diff := differTypes(types, a.Types); diff != "" {
			t.Errorf("%s\n  %s", a.SQL, diff)
		}
		if diff := differ(names, rows, a.Columns, a.Rows, ordered(a.SQL)); diff != "" {
			t.Errorf("%s\n  %s", a.SQL, diff)
		}
	}
	t.Logf("%d of %d queries answered, %d refused", answered, len(all), refused)
	if least := 115; answered < least {
		t.Errorf("%d of %d queries answered, at least %d were", answered, len(all), least)
	}
}

// differTypes compares types. Integers are computed in 64 bits here, and decimals as DOUBLE.
func differTypes(got, want []string) string {
	if len(got) != len(want) {
		return ""
	}
	wide := func(s string) string {
		switch s {
		case "TINYINT", "SMALLINT", "INTEGER", "HUGEINT":
			return "BIGINT"
		}
		if strings.HasPrefix(s, "DECIMAL") {
			return "DOUBLE"
		}
		return s
	}
	for i := range got {
		if got[i] != want[i] && got[i] != wide(want[i]) {
			return "column " + strings.Join(got[i:i+1], "") + " of type " + got[i] + ", want " + want[i]
		}
	}
	return ""
}
