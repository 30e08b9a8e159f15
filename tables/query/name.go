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
	case opCast:
		name := "CAST("
		if e.flag {
			name = "TRY_CAST("
		}
		t.parts(name, e.args[0], " AS "+e.name+")")
	case opCase:
		t.caseOf(e.args)
	case opList:
		t.WriteString("main.list_value(")
		t.list(e.args, ", ")
		t.WriteByte(')')
	case opInQuery:
		open, shut := "(", ")"
		if e.not {
			open, shut = "(NOT (", "))"
		}
		t.parts(open, e.args[0], " = ANY(…)"+shut)
	case opQuery:
		t.WriteString("(" + e.name + ")")
	case opInterval:
		t.WriteString(intervalTitle(e))
	default:
		t.WriteString(leafTitle(e))
	}
}

// caseOf writes CASE, as DuckDB does: with two spaces.
func (t *titler) caseOf(args []*expr) {
	t.WriteString("CASE ")
	for i := 0; i+1 < len(args); i += 2 {
		t.parts(" WHEN (", args[i], ") THEN (", args[i+1], ")")
	}
	t.parts(" ELSE ", args[len(args)-1], " END")
}

func (t *titler) call(e *expr) {
	name := ident(e.name)
	switch e.name {
	case "coalesce", "ifnull":
		name = "COALESCE"
	case "if":
		if len(e.args) == 3 {
			t.caseOf(e.args)
			return
		}
	}
	if e.table != "" && e.name != "coalesce" {
		name = e.table + "." + name
	}
	t.WriteString(name + "(")
	if e.flag {
		t.WriteString("DISTINCT ")
	}
	t.list(e.args, ", ")
	for i, o := range e.order {
		t.WriteString([]string{" ORDER BY ", ", "}[min(i, 1)])
		if o.e != nil {
			t.expr(o.e)
		}
		if o.desc {
			t.WriteString(" DESC")
		}
		if o.first {
			t.WriteString(" NULLS FIRST")
		}
	}
	t.WriteByte(')')
	if e.filter != nil {
		t.parts(" FILTER (WHERE ", e.filter, ")")
	}
}

// intervalTitle writes an interval as DuckDB does, which computes those of a number and a unit.
func intervalTitle(e *expr) string {
	if e.table == "" {
		return "CAST('" + e.name + "' AS INTERVAL)"
	}
	typ := "INTEGER"
	switch e.table {
	case "hour", "minute", "microsecond":
		typ = "BIGINT"
	case "second", "millisecond":
		return "to_" + e.table + "s(CAST(" + e.name + " AS DOUBLE))"
	}
	return "to_" + plural(e.table) + "(CAST(trunc(CAST(" + e.name + " AS DOUBLE)) AS " + typ + "))"
}

func plural(unit string) string {
	switch unit {
	case "century":
		return "centuries"
	case "millennium":
		return "millennia"
	}
	return unit + "s"
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
	plain := s != "" && !digit(s[0]) && !quotedInTitles[strings.ToLower(s)]
	for i := range len(s) {
		c := s[i]
		plain = plain && (c|0x20 >= 'a' && c|0x20 <= 'z' || digit(c) || c == '_')
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
