package eval_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// where returns the rows of a table that meet a condition.
func where(t *testing.T, table *tables.Table, text string) []int32 {
	t.Helper()
	e, err := ast.ParseCondition(text)
	if err != nil {
		t.Fatal(err)
	}
	binder := bind.New(t.Context(), &bind.Library{})
	binder.AddTable("data", table)
	node := binder.Condition(e)
	if binder.Err != nil {
		t.Fatalf("%s: %v", text, binder.Err)
	}
	evaluator := eval.New(t.Context(), []*tables.Table{table})
	rows, err := evaluator.Where(node, &vec.Rows{N: table.Len(), Tables: [][]int32{nil}}, -1)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if list := rows.Tables[0]; list != nil {
		return list
	}
	all := make([]int32, rows.N)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// TestThreeValues: AND, OR and NOT of true, false and null are those of the tables of SQL-92, section 8.12; a condition
// holds where it is true, and IS tells null from false.
func TestThreeValues(t *testing.T) {
	values := []string{"true", "false", "null"}
	var a, b []int64
	var nullA, nullB []bool
	for i := range values {
		for k := range values {
			a, nullA = append(a, int64(1-i%2)), append(nullA, i == 2)
			b, nullB = append(b, int64(1-k%2)), append(nullB, k == 2)
		}
	}
	table := tables.FromVectors([]string{"a", "b"},
		[]*tables.Vector{tables.NewInts(sql.Bool, a, nullA), tables.NewInts(sql.Bool, b, nullB)})
	const yes, no, null = 0, 1, 2
	and := [3][3]int{{yes, no, null}, {no, no, no}, {null, no, null}}
	or := [3][3]int{{yes, yes, yes}, {yes, no, null}, {yes, null, null}}
	for text, value := range map[string]func(i, k int) int{
		"a AND b":       func(i, k int) int { return and[i][k] },
		"a OR b":        func(i, k int) int { return or[i][k] },
		"NOT (a AND b)": func(i, k int) int { return [3]int{no, yes, null}[and[i][k]] },
		"NOT a OR NOT b": func(i, k int) int {
			not := [3]int{no, yes, null}
			return or[not[i]][not[k]]
		},
		"a = b": func(i, k int) int {
			switch {
			case i == null || k == null:
				return null
			case i == k:
				return yes
			}
			return no
		},
	} {
		for test, want := range map[string]int{"%s": yes, "NOT (%s)": no, "(%s) IS NULL": null} {
			var rows []int32
			for i := range values {
				for k := range values {
					if value(i, k) == want {
						rows = append(rows, int32(3*i+k))
					}
				}
			}
			condition := fmt.Sprintf(test, text)
			if got := where(t, table, condition); !slices.Equal(got, rows) {
				t.Errorf("%s holds in rows %v, want %v", condition, got, rows)
			}
		}
	}
}

// TestManyRows: a condition over more rows than a batch has holds where a loop finds it to.
func TestManyRows(t *testing.T) {
	n := 3*vec.BatchRows + 17
	numbers, nulls, words := make([]int64, n), make([]bool, n), make([]string, n)
	var want []int32
	for i := range n {
		numbers[i], nulls[i], words[i] = int64(i%101), i%7 == 0, fmt.Sprint("w", i%13)
		if !nulls[i] && (numbers[i] > 90 || words[i] == "w12") && numbers[i]%2 == 0 {
			want = append(want, int32(i))
		}
	}
	table := tables.FromVectors([]string{"n", "w"},
		[]*tables.Vector{tables.NewInts(sql.Int64, numbers, nulls), tables.NewStrings(words, nil)})
	if got := where(t, table, "(n > 90 OR w = 'w12') AND n % 2 = 0 AND n IS NOT NULL"); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}
