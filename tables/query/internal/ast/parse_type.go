package ast

import (
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
	case t.Kind == tables.String && p.accept("("): // VARCHAR(10) has no effect
		p.take()
		err = p.expect(")")
	}
	if p.peek().is("[") || p.peek().is("WITH") && t.Kind == tables.Timestamp {
		return t, sqlerr.Unsupported("the type %s %s", tok.text, p.peek().text)
	}
	return t, err
}
