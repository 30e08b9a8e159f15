package ast

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// sqlType reads a type, and returns it with the name that DuckDB gives it in titles.
func (p *parser) sqlType() (t tables.Type, title string, err error) {
	tok := p.take()
	if tok.kind != tName {
		p.at--
		return t, "", p.unexpected()
	}
	t, ok := sqltype.ByName[strings.ToUpper(tok.text)]
	if !ok {
		return t, "", sqlerr.Unsupported("the type %s", tok.text)
	}
	if tok.is("DOUBLE") {
		p.accept("PRECISION")
	}
	title = sqltype.Title(t)
	switch {
	case t.Kind == tables.Decimal:
		if t, title, err = p.decimalType(t); err != nil {
			return t, "", err
		}
	case t.Kind == tables.String && p.accept("("): // VARCHAR(10) has no effect
		p.take()
		err = p.expect(")")
	}
	if p.peek().is("[") || p.peek().is("WITH") && t.Kind == tables.Timestamp {
		return t, "", sqlerr.Unsupported("the type %s %s", tok.text, p.peek().text)
	}
	return t, title, err
}

// decimalType reads the optional precision and scale of a decimal.
func (p *parser) decimalType(t tables.Type) (tables.Type, string, error) {
	if !p.accept("(") {
		return t, "DECIMAL", nil
	}
	digits := [2]int{18, 0}
	title := "DECIMAL("
	for i := range digits {
		tok := p.take()
		n, err := strconv.Atoi(tok.text)
		if tok.kind != tNumber || err != nil {
			p.at--
			return t, "", p.unexpected()
		}
		digits[i] = n
		title += tok.text
		if !p.accept(",") {
			break
		}
		title += ", "
	}
	if digits[0] < 1 || digits[0] > sqltype.MaxDigits || digits[1] < 0 || digits[1] > digits[0] {
		return t, "", sqlerr.Bind("DECIMAL(%d, %d): the precision must be between 1 and %d, and not "+
			"below the scale", digits[0], digits[1], sqltype.MaxDigits)
	}
	t.Precision, t.Scale = uint8(digits[0]), uint8(digits[1])
	return t, title + ")", p.expect(")")
}
