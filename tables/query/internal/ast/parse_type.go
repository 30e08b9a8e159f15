package ast

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// sqlType reads a type.
func (p *parser) sqlType() (tables.Type, error) {
	tok := p.take()
	if tok.kind != tName {
		p.at--
		return tables.Type{}, p.unexpected()
	}
	t, ok := sqltype.ByName[strings.ToUpper(tok.text)]
	if !ok {
		return t, sqlerr.Unsupported("the type %s", tok.text)
	}
	var err error
	switch {
	case tok.is("DOUBLE"):
		p.accept("PRECISION")
	case t.Kind == tables.Decimal && p.accept("("):
		err = p.decimalType(&t)
	case t.Kind == tables.String && p.accept("("): // VARCHAR(10) has no effect
		p.take()
		err = p.expect(")")
	}
	if p.peek().is("[") || p.peek().is("WITH") && t.Kind == tables.Timestamp {
		return t, sqlerr.Unsupported("the type %s %s", tok.text, p.peek().text)
	}
	return t, err
}

// decimalType reads the precision and scale of a decimal.
func (p *parser) decimalType(t *tables.Type) error {
	digits := [2]int{18, 0}
	for i := range digits {
		tok := p.take()
		n, err := strconv.Atoi(tok.text)
		if tok.kind != tNumber || err != nil {
			p.at--
			return p.unexpected()
		}
		if digits[i] = n; !p.accept(",") {
			break
		}
	}
	if digits[0] < 1 || digits[0] > sqltype.MaxDigits || digits[1] < 0 || digits[1] > digits[0] {
		return sqlerr.Bind("DECIMAL(%d, %d): the precision must be between 1 and %d, and not below the scale",
			digits[0], digits[1], sqltype.MaxDigits)
	}
	t.Precision, t.Scale = uint8(digits[0]), uint8(digits[1])
	return p.expect(")")
}
