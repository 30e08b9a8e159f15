package bind_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// TestAnyArguments: each function, with up to four arguments of any types, is bound, or refused as what it is: a
// query that is wrong, or one that is not supported.
func TestAnyArguments(t *testing.T) {
	table := tables.FromVectors([]string{"n", "s", "f", "b", "t"}, []*tables.Vector{
		tables.NewInts(sql.Int64, []int64{1}, nil), tables.NewStrings([]string{"x"}, nil),
		tables.NewFloats(sql.Double, []float64{1}, nil), tables.NewInts(sql.Bool, []int64{1}, nil),
		tables.NewNulls(tables.Type{Kind: tables.Timestamp}, 1),
	})
	from := named.Tables(map[string]*tables.Table{"data": table})
	args := []string{"n", "s", "f", "b", "t", "NULL", "'day'", "-2"}
	bound := 0
	for _, f := range query.Functions() {
		name, _, _ := strings.Cut(f.Signature, "(")
		for k := range 4 * len(args) {
			list := make([]string, k%5)
			for i := range list {
				list[i] = args[(k+i*(k/5+1))%len(args)]
			}
			call := name + "(" + strings.Join(list, ", ") + ")"
			_, err := query.Run(t.Context(), "SELECT "+call+" FROM data", from)
			var refusal *query.BindError
			switch {
			case err == nil:
				bound++
			case !errors.As(err, &refusal) && fault.KindOf(err) == 0:
				t.Errorf("%s: %v is no refusal", call, err)
			}
		}
	}
	if bound < len(query.Functions()) {
		t.Errorf("%d calls of %d functions are bound", bound, len(query.Functions()))
	}
}

// TestNamesOfColumns: a column that several tables have must be named with its table, and a name that is one letter off
// is refused with the names that there are.
func TestNamesOfColumns(t *testing.T) {
	one := func(names ...string) *tables.Table {
		columns := make([]*tables.Vector, len(names))
		for i := range columns {
			columns[i] = tables.NewInts(sql.Int64, []int64{int64(i)}, nil)
		}
		return tables.FromVectors(names, columns)
	}
	from := named.Tables(map[string]*tables.Table{"a": one("id", "cloud"), "b": one("id", "split")})
	for text, says := range map[string]string{
		"SELECT id FROM a JOIN b ON a.id = b.id":             "id",
		"SELECT a.id, cloud FROM a JOIN b ON a.id = b.id":    "",
		"SELECT claud FROM a":                                "cloud",
		"SELECT c.id FROM a":                                 "c",
		"SELECT a.split FROM a JOIN b ON a.id = b.id":        "split",
		"SELECT x.id FROM a x JOIN a y ON x.cloud = y.cloud": "",
	} {
		_, err := query.Run(t.Context(), text, from)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestCommonTypes: values of a CASE and of lists have one type, as in DuckDB: the wider number, or the string.
func TestCommonTypes(t *testing.T) {
	table := tables.FromVectors([]string{"n"}, []*tables.Vector{tables.NewInts(sql.Int64, []int64{2}, nil)})
	from := named.Tables(map[string]*tables.Table{"data": table})
	for text, want := range map[string]string{
		"CASE WHEN n = 2 THEN n ELSE 0.5 END":     "2",
		"CASE WHEN n = 1 THEN n ELSE 0.5 END":     "0.5",
		"coalesce(NULL, n, 7)":                    "2",
		"CASE WHEN n = 2 THEN NULL ELSE n END":    "null",
		"CASE n WHEN 2 THEN 'a' ELSE 'b' END":     `"a"`,
		"greatest(n, 2.5)":                        "2.5",
		"n IN (1, 2.0)":                           "true",
		"CAST(n AS VARCHAR) || 'x'":               `"2x"`,
		"CASE WHEN n > 5 THEN TRUE ELSE NULL END": "null",
	} {
		out, err := query.Run(t.Context(), "SELECT "+text+" FROM data", from)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v, err := out.At(t.Context(), 0)
		if err != nil || string(v.AppendJSON(nil, 0)) != want {
			t.Errorf("%s is %s, want %s: %v", text, v.AppendJSON(nil, 0), want, err)
		}
	}
}
