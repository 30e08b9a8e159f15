package ast

import (
	"errors"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// shown writes an expression with all its parentheses.
func shown(e *Expr) string {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = shown(a)
	}
	name := e.Name
	switch e.Op {
	case OpColumn, OpNumber, OpString:
		return name
	case OpAnd:
		name = "and"
	case OpOr:
		name = "or"
	case OpNot:
		return "(not " + args[0] + ")"
	case OpMinus:
		return "(-" + args[0] + ")"
	case OpBetween:
		name = "between"
	case OpConcat:
		name = "||"
	case OpCall:
		return name + "(" + strings.Join(args, ", ") + ")"
	}
	return "(" + strings.Join(args, " "+name+" ") + ")"
}

// TestPrecedence: operators bind as in PostgreSQL and DuckDB.
func TestPrecedence(t *testing.T) {
	for text, want := range map[string]string{
		"a + b * c":                     "(a + (b * c))",
		"a - b - c":                     "((a - b) - c)",
		"a * b + c < d || e":            "(((a * b) + c) < (d || e))",
		"not a = b and c":               "((not (a = b)) and c)",
		"a or b and c":                  "(a or (b and c))",
		"-a ^ b":                        "((-a) ^ b)",
		"a between b and c and d":       "((a between b between c) and d)",
		"(a + b) * c":                   "((a + b) * c)",
		"abs(a, b + c) > d":             "(abs(a, (b + c)) > d)",
		"a and b and c or d or e and f": "((a and b and c) or d or (e and f))",
	} {
		e, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := shown(e); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// TestSelect: each part of a query is where it belongs.
func TestSelect(t *testing.T) {
	s, err := Parse(`select distinct a as x, count(*) from data join l on l.p = data.q where a > 1 group by 1 ` +
		`having count(*) > 2 order by x desc nulls first limit 3 offset 4; -- the end`)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Distinct || len(s.Items) != 2 || s.Items[0].Alias != "x" || len(s.From) != 2 || s.From[1].On == nil ||
		s.Where == nil || len(s.GroupBy) != 1 || s.Having == nil || s.Limit == nil || s.Offset == nil {
		t.Errorf("%+v", s)
	}
	if o := s.OrderBy; len(o) != 1 || !o[0].Desc || !o[0].NullsFirst {
		t.Errorf("%+v", o)
	}
}

// TestRefused: what is no SQL, or not of this dialect, is an error, and never a panic, also where any part is missing.
func TestRefused(t *testing.T) {
	for text, kind := range map[string]fault.Kind{
		"":                         0,
		"a +":                      0,
		"a = 'open":                0,
		"a in ()":                  0,
		"a )":                      0,
		"case when a then b":       0,
		"a in (select b from c)":   fault.Unsupported,
		strings.Repeat("(", 10000): 0,
	} {
		_, err := ParseCondition(text)
		if err == nil || kind != 0 && !errors.Is(err, kind) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
	whole := "SELECT a, 'b' FROM data WHERE a BETWEEN 1 AND 2 GROUP BY a ORDER BY a LIMIT 1"
	for n := range len(whole) {
		_, _ = Parse(whole[:n]) // it returns
	}
	if _, err := Parse(whole); err != nil {
		t.Error(err)
	}
}

// TestWords: words of SQL in letters of any case, comments and line ends between them change nothing.
func TestWords(t *testing.T) {
	want, err := ParseCondition("a BETWEEN 1 AND 2 OR NOT b IS NULL AND c LIKE 'x''y%'")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseCondition("a between 1\n-- a comment\nand 2 Or nOt b is Null /* and\n more */ AND c like 'x''y%'")
	if err != nil || shown(got) != shown(want) {
		t.Errorf("%v is not %v: %v", got, want, err)
	}
}

// TestTaken: queries and conditions of many parts take memory by their length.
func TestTaken(t *testing.T) {
	for _, text := range taken.SQL() {
		for _, parse := range []func(){
			func() { _, _ = Parse("select * from data where " + text) },
			func() { _, _ = Parse("select " + text) },
			func() { _, _ = ParseCondition(text) },
		} {
			taken.Check(t, len(text), taken.FactorSQL, parse)
		}
	}
}
