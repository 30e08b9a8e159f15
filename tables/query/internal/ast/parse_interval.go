package ast

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// interval reads the operand of INTERVAL: a number and a unit, or a string of several.
func (p *parser) interval(pos int) (*Expr, error) {
	t := p.take()
	e := &Expr{Op: OpInterval, Name: t.text, pos: pos}
	if unit := clock.UnitNames[strings.ToLower(p.peek().text)]; unit != "" && p.peek().kind == tName {
		p.at++
		n, err := strconv.ParseInt(strings.TrimSpace(t.text), 10, 64)
		if err != nil || !e.Interval.Add(n, unit) {
			return nil, sqlerr.Unsupported("an interval of %s %s", t.text, unit)
		}
		if t.kind == tString {
			e.Name = "'" + t.text + "'"
		}
		e.Table = unit
		return e, nil
	}
	words := strings.Fields(t.text)
	if t.kind != tString || len(words) == 0 || len(words)%2 != 0 {
		return nil, sqlerr.Unsupported("the interval %q", t.text)
	}
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || !e.Interval.Add(n, clock.UnitNames[strings.ToLower(words[i+1])]) {
			return nil, sqlerr.Unsupported("the interval %q", t.text)
		}
	}
	return e, nil
}
