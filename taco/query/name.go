package query

import (
	"math"
	"strconv"
	"strings"
)

// maxTitle is about where a name ends that would be longer, in bytes.
const maxTitle = 4096

// title is the name of a result's column without an alias: the expression as DuckDB writes it, but for
// what it rewrites before (NOT of a comparison) and names that are words of its grammar.
func title(e *expr) string {
	var t titler
	t.expr(e)
	return t.String()
}

// titler writes expressions as DuckDB does.
type titler struct{ strings.Builder }

// parts writes texts as they are, and expressions.
func (t *titler) parts(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.WriteString(p)
		case *expr:
			t.expr(p)
		}
	}
}

// list writes expressions with a text between them.
func (t *titler) list(args []*expr, between string) {
	for i, a := range args {
		if i > 0 {
			t.WriteString(between)
		}
		t.expr(a)
	}
}

// operator writes expressions in brackets with a sign between them.
func (t *titler) operator(sign string, args []*expr) {
	t.WriteByte('(')
	t.list(args, " "+sign+" ")
	t.WriteByte(')')
}

func (t *titler) expr(e *expr) {
	if t.Len() > maxTitle {
		return
	}
	not := ""
	if e.not {
		not = "NOT "
	}
	switch e.op {
	case opCall:
		t.call(e)
	case opNot:
		t.parts("(NOT ", e.args[0], ")")
	case opMinus:
		t.parts("-(", e.args[0], ")")
	case opAnd, opOr, opArith:
		t.operator(e.name, e.args)
	case opConcat:
		t.operator("||", e.args)
	case opCompare:
		t.operator(strings.Replace(e.name, "<>", "!=", 1), e.args)
	case opLike:
		sign := map[string]string{"LIKE": "~~", "ILIKE": "~~*"}[e.name]
		if e.not {
			sign = "!" + sign
		}
		t.operator(sign, e.args[:2])
	case opIn:
		t.parts("(", e.args[0], " "+not+"IN (")
		t.list(e.args[1:], ", ")
		t.WriteString("))")
	case opBetween:
		open, shut := "(", ")"
		if e.not {
			open, shut = "(NOT (", "))"
		}
		t.parts(open, e.args[0], " BETWEEN ", e.args[1], " AND ", e.args[2], shut)
	case opIsNull:
		t.parts("(", e.args[0], " IS "+not+"NULL)")
	case opIsBool:
		t.parts("(", e.args[0], " IS "+not+e.name+")")
	case opDistinct:
		t.parts("(", e.args[0], " IS "+not+"DISTINCT FROM ", e.args[1], ")")
	case opIndex:
		t.parts(e.args[0], "[", e.args[1], "]")
	default:
		t.WriteString(leafTitle(e))
	}
}

func (t *titler) call(e *expr) {
	name := e.name
	switch name {
	case "coalesce":
		name = "COALESCE"
	case "year", "month", "day": // words of DuckDB's grammar
		name = `"` + name + `"`
	}
	t.WriteString(name + "(")
	if e.flag {
		t.WriteString("DISTINCT ")
	}
	t.list(e.args, ", ")
	t.WriteByte(')')
}

// leafTitle returns a column or a literal as DuckDB writes it.
func leafTitle(e *expr) string {
	switch e.op {
	case opColumn:
		if e.table != "" {
			return ident(e.table) + "." + ident(e.name)
		}
		return ident(e.name)
	case opNumber:
		return numberText(e.name)
	case opString:
		return "'" + strings.ReplaceAll(e.name, "'", "''") + "'"
	case opNull:
		return "NULL"
	case opTrue:
		return "CAST('t' AS BOOLEAN)"
	case opFalse:
		return "CAST('f' AS BOOLEAN)"
	case opDate:
		return "CAST('" + e.name + "' AS \"DATE\")"
	case opTimestamp:
		return "CAST('" + e.name + "' AS TIMESTAMP)"
	}
	return ""
}

// numberText writes a number with an exponent as a float.
func numberText(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !strings.ContainsAny(s, "eE"):
		return s
	case f == math.Trunc(f) && math.Abs(f) < 1e16:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// ident quotes a name that is no plain word.
func ident(s string) string {
	plain := s != "" && !digit(s[0]) && !reserved(s)
	for i := range len(s) {
		c := s[i]
		plain = plain && (c|0x20 >= 'a' && c|0x20 <= 'z' || digit(c) || c == '_')
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
