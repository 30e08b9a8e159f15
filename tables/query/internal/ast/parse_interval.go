package ast

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// interval reads the operand of INTERVAL: a number and a unit, or a string of several.
func (p *parser) interval(pos int) (*Expr, error) {
	tok := p.take()
	expr := &Expr{Op: OpInterval, Name: tok.text, pos: pos}
	if unit := clock.UnitNames[strings.ToLower(p.peek().text)]; unit != "" && p.peek().kind == tName {
		p.at++
		n, err := strconv.ParseInt(strings.TrimSpace(tok.text), 10, 64)
		if err != nil || !expr.Interval.Add(n, unit) {
			return nil, sqlerr.Unsupported("an interval of %s %s", tok.text, unit)
		}
		if tok.kind == tString {
			expr.Name = "'" + tok.text + "'"
		}
		expr.Table = unit
		return expr, nil
	}
	words := strings.Fields(tok.text)
	if tok.kind != tString || len(words) == 0 || len(words)%2 != 0 {
		return nil, sqlerr.Unsupported("the interval %q", tok.text)
	}
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || !expr.Interval.Add(n, clock.UnitNames[strings.ToLower(words[i+1])]) {
			return nil, sqlerr.Unsupported("the interval %q", tok.text)
		}
	}
	return expr, nil
}
