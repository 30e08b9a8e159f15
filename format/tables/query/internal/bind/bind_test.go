package bind_test

import (
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// TestTypes: expressions have the types that DuckDB 1.5 gives them, and what it refuses is an error.
func TestTypes(t *testing.T) {
	small := tables.Type{Kind: tables.Int64, Bits: 16}
	table := tables.FromVectors([]string{"n", "s", "f", "b"}, []*tables.Vector{
		tables.NewInts(small, []int64{1}, nil), tables.NewStrings([]string{"x"}, nil),
		tables.NewFloats(sql.Float, []float64{1}, nil), tables.NewInts(sql.Bool, []int64{1}, nil),
	})
	for text, want := range map[string]string{
		"n":                                   "SMALLINT",
		"n < 2":                               "BOOLEAN",
		"n + n":                               "BIGINT", // of 64 bits, as docs/sql.md says
		"n / 2":                               "DOUBLE",
		"f * f":                               "FLOAT",
		"s || 'y'":                            "VARCHAR",
		"CASE WHEN b THEN n ELSE f END":       "FLOAT",
		"CAST(s AS DATE)":                     "DATE",
		"CAST(s AS INTEGER)":                  "INTEGER",
		"n = 'x'":                             "", // no number
		"s + 1":                               "",
		"missing":                             "",
		"no_function(n)":                      "",
		"CAST(DATE '2024-05-06' AS BOOLEAN)":  "",
		"n IN (1, 2)":                         "BOOLEAN",
		"s LIKE 'x%'":                         "BOOLEAN",
		"n BETWEEN 1 AND 2 AND NOT b OR NULL": "BOOLEAN",
	} {
		e, err := ast.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		binder := bind.New(t.Context(), &bind.Library{})
		binder.AddTable("data", table)
		node := binder.Bind(e)
		switch {
		case (binder.Err == nil) != (want != ""):
			t.Errorf("%s: %v", text, binder.Err)
		case binder.Err == nil && sql.Name(node.Type) != want:
			t.Errorf("%s is %s, want %s", text, sql.Name(node.Type), want)
		}
	}
}
