package funcs_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// result runs a query over a table and returns the values of its columns, as JSON.
func result(t *testing.T, table *tables.Table, text string) (columns [][]string) {
	t.Helper()
	out, err := query.Run(t.Context(), text, named.Tables(map[string]*tables.Table{"data": table}))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for c := range out.Columns() {
		v, err := out.At(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		column := make([]string, out.Len())
		for i := range column {
			column[i] = string(v.AppendJSON(nil, i))
		}
		columns = append(columns, column)
	}
	return columns
}

// near reports whether a number as JSON is want, within 1 in 10⁹.
func near(text string, want float64) bool {
	var got float64
	_, err := fmt.Sscan(text, &got)
	return err == nil && math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))
}

// TestAggregatesAgainstLoops: the aggregates of groups are those of plain loops over the values that are not
// null; a group with null alone has null.
func TestAggregatesAgainstLoops(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	const n, groups = 700, 12
	keys, values, null := make([]int64, n), make([]float64, n), make([]bool, n)
	byGroup := make([][]float64, groups)
	for i := range n {
		keys[i], values[i] = int64(rnd.IntN(groups)), math.Round(rnd.NormFloat64()*1e4)/8
		null[i] = keys[i] == 3 || rnd.IntN(5) == 0
		if !null[i] {
			byGroup[keys[i]] = append(byGroup[keys[i]], values[i])
		}
	}
	table := tables.FromVectors([]string{"k", "x"},
		[]*tables.Vector{tables.NewInts(sql.Int64, keys, nil), tables.NewFloats(sql.Double, values, null)})
	got := result(t, table, "SELECT k, count(x), sum(x), avg(x), min(x), max(x), median(x), stddev_samp(x), "+
		"var_pop(x), quantile_cont(x, 0.3) FROM data GROUP BY k ORDER BY k")
	for k, x := range byGroup {
		if got[0][k] != fmt.Sprint(k) || got[1][k] != fmt.Sprint(len(x)) {
			t.Fatalf("group %d is %s with %s values, want %d", k, got[0][k], got[1][k], len(x))
		}
		if len(x) == 0 {
			for c := 2; c < len(got); c++ {
				if got[c][k] != "null" {
					t.Errorf("column %d of a group of nulls is %s", c, got[c][k])
				}
			}
			continue
		}
		slices.Sort(x)
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		mean, squares := sum/float64(len(x)), 0.0
		for _, v := range x {
			squares += (v - mean) * (v - mean)
		}
		// The quantile between the two values around it, as docs/sql.md says: at fraction × (n - 1).
		at := 0.3 * float64(len(x)-1)
		low, part := int(at), at-math.Floor(at)
		median, deviation := (x[(len(x)-1)/2]+x[len(x)/2])/2, math.Sqrt(squares/float64(len(x)-1))
		for c, want := range []float64{sum, mean, x[0], x[len(x)-1], median, deviation,
			squares / float64(len(x)), x[low] + part*(x[min(low+1, len(x)-1)]-x[low])} {
			if !near(got[c+2][k], want) {
				t.Errorf("group %d, column %d: %s, want %v", k, c+2, got[c+2][k], want)
			}
		}
	}
}

// TestStringsLikeGo: functions of strings give what those of Go's standard library give, also for letters of several
// bytes and for null.
func TestStringsLikeGo(t *testing.T) {
	texts := []string{"", " a b ", "Lima", "ÑANDÚ", "path/to/a.tif", "aaa", "日本"}
	null := make([]bool, len(texts)+1)
	null[len(texts)] = true
	table := tables.FromVectors([]string{"s"}, []*tables.Vector{tables.NewStrings(append(texts, ""), null)})
	calls := map[string]func(string) any{
		"lower(s)":               func(s string) any { return strings.ToLower(s) },
		"upper(s)":               func(s string) any { return strings.ToUpper(s) },
		"trim(s)":                func(s string) any { return strings.Trim(s, " ") },
		"ltrim(s)":               func(s string) any { return strings.TrimLeft(s, " ") },
		"rtrim(s)":               func(s string) any { return strings.TrimRight(s, " ") },
		"replace(s, 'a', 'bc')":  func(s string) any { return strings.ReplaceAll(s, "a", "bc") },
		"length(s)":              func(s string) any { return len([]rune(s)) },
		"repeat(s, 2)":           func(s string) any { return s + s },
		"starts_with(s, 'path')": func(s string) any { return strings.HasPrefix(s, "path") },
		"ends_with(s, '.tif')":   func(s string) any { return strings.HasSuffix(s, ".tif") },
		"contains(s, 'a')":       func(s string) any { return strings.Contains(s, "a") },
		"left(s, 2)":             func(s string) any { return string([]rune(s)[:min(2, len([]rune(s)))]) },
		"right(s, 2)":            func(s string) any { return string([]rune(s)[max(0, len([]rune(s))-2):]) },
		"substring(s, 2)":        func(s string) any { return string([]rune(s)[min(1, len([]rune(s))):]) },
	}
	for call, inGo := range calls {
		got := result(t, table, "SELECT "+call+" FROM data")[0]
		for i, s := range texts {
			want := fmt.Sprint(inGo(s))
			if _, isText := inGo(s).(string); isText {
				want = fmt.Sprintf("%q", want)
			}
			if got[i] != want {
				t.Errorf("%s of %q is %s, want %s", call, s, got[i], want)
			}
		}
		if got[len(texts)] != "null" {
			t.Errorf("%s of null is %s", call, got[len(texts)])
		}
	}
}
