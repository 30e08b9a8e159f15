package ast

import (
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// maxTitle is about the length, in bytes, at which a longer title is cut: a query of 2 MiB may have as many columns as
// fit.
const maxTitle = 4096

// Title names a column of the result that has no alias: the expression as DuckDB writes it, except for what DuckDB
// rewrites first (NOT of a comparison) and names that are words of its grammar.
func Title(e *Expr) string {
	var t titler
	t.expr(e)
	return t.String()
}

// titler writes expressions as DuckDB does.
type titler struct{ strings.Builder }

// parts writes strings as they are, and expressions.
func (t *titler) parts(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.WriteString(p)
		case *Expr:
			t.expr(p)
		}
	}
}

// list writes expressions with a separator.
func (t *titler) list(args []*Expr, between string) {
	for i, expr := range args {
		if i > 0 {
			t.WriteString(between)
		}
		t.expr(expr)
	}
}

// operator writes expressions in brackets with a sign between them.
func (t *titler) operator(sign string, args []*Expr) {
	t.WriteByte('(')
	t.list(args, " "+sign+" ")
	t.WriteByte(')')
}

func (t *titler) expr(e *Expr) {
	if t.Len() > maxTitle {
		return
	}
	not := ""
	if e.Not {
		not = "NOT "
	}
	switch e.Op {
	case OpCall:
		t.call(e)
	case OpNot:
		t.parts("(NOT ", e.Args[0], ")")
	case OpMinus:
		t.parts("-(", e.Args[0], ")")
	case OpAnd, OpOr, OpArith:
		t.operator(e.Name, e.Args)
	case OpConcat:
		t.operator("||", e.Args)
	case OpCompare:
		t.operator(strings.Replace(e.Name, "<>", "!=", 1), e.Args)
	case OpLike:
		sign := map[string]string{"LIKE": "~~", "ILIKE": "~~*"}[e.Name]
		if e.Not {
			sign = "!" + sign
		}
		t.operator(sign, e.Args[:2])
	case OpIn:
		t.parts("(", e.Args[0], " "+not+"IN (")
		t.list(e.Args[1:], ", ")
		t.WriteString("))")
	case OpBetween:
		open, shut := "(", ")"
		if e.Not {
			open, shut = "(NOT (", "))"
		}
		t.parts(open, e.Args[0], " BETWEEN ", e.Args[1], " AND ", e.Args[2], shut)
	case OpIsNull:
		t.parts("(", e.Args[0], " IS "+not+"NULL)")
	case OpIsBool:
		t.parts("(", e.Args[0], " IS "+not+e.Name+")")
	case OpDistinct:
		t.parts("(", e.Args[0], " IS "+not+"DISTINCT FROM ", e.Args[1], ")")
	case OpIndex:
		t.parts(e.Args[0], "[", e.Args[1], "]")
	case OpCast:
		name := "CAST("
		if e.Flag {
			name = "TRY_CAST("
		}
		t.parts(name, e.Args[0], " AS "+e.Name+")")
	case OpCase:
		t.caseOf(e.Args)
	case OpList:
		t.WriteString("main.list_value(")
		t.list(e.Args, ", ")
		t.WriteByte(')')
	default:
		t.WriteString(leafTitle(e))
	}
}

// caseOf writes CASE as DuckDB does, with two spaces.
func (t *titler) caseOf(args []*Expr) {
	t.WriteString("CASE ")
	for i := 0; i+1 < len(args); i += 2 {
		t.parts(" WHEN (", args[i], ") THEN (", args[i+1], ")")
	}
	t.parts(" ELSE ", args[len(args)-1], " END")
}

func (t *titler) call(e *Expr) {
	name := ident(e.Name)
	switch e.Name {
	case "coalesce", "ifnull":
		name = "COALESCE"
	case "if":
		if len(e.Args) == 3 {
			t.caseOf(e.Args)
			return
		}
	}
	if e.Table != "" && e.Name != "coalesce" {
		name = e.Table + "." + name
	}
	t.WriteString(name + "(")
	if e.Flag {
		t.WriteString("DISTINCT ")
	}
	t.list(e.Args, ", ")
	for i, term := range e.Order {
		t.WriteString([]string{" ORDER BY ", ", "}[min(i, 1)])
		t.expr(term.Expr)
		if term.Desc {
			t.WriteString(" DESC")
		}
		if term.NullsFirst {
			t.WriteString(" NULLS FIRST")
		}
	}
	t.WriteByte(')')
	if e.Filter != nil {
		t.parts(" FILTER (WHERE ", e.Filter, ")")
	}
}

// leafTitle returns a column or a literal as DuckDB writes it.
func leafTitle(e *Expr) string {
	switch e.Op {
	case OpColumn:
		if e.Table != "" {
			return ident(e.Table) + "." + ident(e.Name)
		}
		return ident(e.Name)
	case OpNumber:
		return numberTitle(e.Name)
	case OpString:
		return "'" + strings.ReplaceAll(e.Name, "'", "''") + "'"
	case OpNull:
		return "NULL"
	case OpTrue:
		return "CAST('t' AS BOOLEAN)"
	case OpFalse:
		return "CAST('f' AS BOOLEAN)"
	case OpDate:
		return "CAST('" + e.Name + "' AS \"DATE\")"
	case OpTimestamp:
		return "CAST('" + e.Name + "' AS TIMESTAMP)"
	}
	return ""
}

// numberTitle writes a number with an exponent as DuckDB writes the float.
func numberTitle(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !strings.ContainsAny(s, "eE"):
		return s
	case f == math.Trunc(f) && math.Abs(f) < 1e16:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// ident quotes a name that is not a plain word.
func ident(s string) string {
	plain := s != "" && !sqltype.IsDigit(s[0]) && !quotedInTitles[strings.ToLower(s)]
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		plain = plain && (letter || sqltype.IsDigit(c) || c == '_')
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
