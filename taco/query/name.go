package query

import (
	"math"
	"strconv"
	"strings"
)

// title is the name of a result's column without an alias: the expression as DuckDB writes it, but for
// what it rewrites before (NOT of a comparison) and names that are words of its grammar.
func title(e *expr) string {
	var b strings.Builder
	write(&b, e)
	return b.String()
}

func write(b *strings.Builder, e *expr) {
	if b.Len() > 4096 {
		return
	}
	sep := func(op string, args []*expr) {
		b.WriteByte('(')
		for i, a := range args {
			if i > 0 {
				b.WriteString(" " + op + " ")
			}
			write(b, a)
		}
		b.WriteByte(')')
	}
	not := func(word string) string {
		if e.not {
			return "NOT " + word
		}
		return word
	}
	switch e.op {
	case opColumn:
		if e.table != "" {
			b.WriteString(ident(e.table) + ".")
		}
		b.WriteString(ident(e.name))
	case opNumber:
		b.WriteString(numberText(e.name))
	case opString:
		b.WriteString("'" + strings.ReplaceAll(e.name, "'", "''") + "'")
	case opNull:
		b.WriteString("NULL")
	case opTrue:
		b.WriteString("CAST('t' AS BOOLEAN)")
	case opFalse:
		b.WriteString("CAST('f' AS BOOLEAN)")
	case opDate:
		b.WriteString("CAST('" + e.name + "' AS \"DATE\")")
	case opTimestamp:
		b.WriteString("CAST('" + e.name + "' AS TIMESTAMP)")
	case opCall:
		name := e.name
		switch name {
		case "coalesce":
			name = "COALESCE"
		case "year", "month", "day": // words of DuckDB's grammar
			name = `"` + name + `"`
		}
		b.WriteString(name + "(")
		if e.flag {
			b.WriteString("DISTINCT ")
		}
		for i, a := range e.args {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, a)
		}
		b.WriteByte(')')
	case opNot:
		b.WriteString("(NOT ")
		write(b, e.args[0])
		b.WriteByte(')')
	case opMinus:
		b.WriteString("-(")
		write(b, e.args[0])
		b.WriteByte(')')
	case opAnd, opOr, opArith, opConcat:
		op := e.name
		if e.op == opConcat {
			op = "||"
		}
		sep(op, e.args)
	case opCompare:
		op := e.name
		if op == "<>" {
			op = "!="
		}
		sep(op, e.args)
	case opLike:
		op := map[string]string{"LIKE": "~~", "ILIKE": "~~*"}[e.name]
		if e.not {
			op = "!" + op
		}
		sep(op, e.args[:2])
	case opIn:
		b.WriteByte('(')
		write(b, e.args[0])
		b.WriteString(" " + not("IN") + " (")
		for i, a := range e.args[1:] {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, a)
		}
		b.WriteString("))")
	case opBetween:
		if e.not {
			b.WriteString("(NOT ")
		}
		b.WriteByte('(')
		write(b, e.args[0])
		b.WriteString(" BETWEEN ")
		write(b, e.args[1])
		b.WriteString(" AND ")
		write(b, e.args[2])
		b.WriteByte(')')
		if e.not {
			b.WriteByte(')')
		}
	case opIsNull, opIsBool, opDistinct:
		b.WriteByte('(')
		write(b, e.args[0])
		b.WriteString(" IS ")
		switch e.op {
		case opIsNull:
			b.WriteString(not("NULL"))
		case opIsBool:
			b.WriteString(not(e.name))
		default:
			b.WriteString(not("DISTINCT FROM "))
			write(b, e.args[1])
		}
		b.WriteByte(')')
	case opIndex:
		write(b, e.args[0])
		b.WriteByte('[')
		write(b, e.args[1])
		b.WriteByte(']')
	}
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
