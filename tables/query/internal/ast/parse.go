package ast

import (
	"cmp"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// parser is a recursive-descent parser of one SELECT.
type parser struct {
	q       string
	toks    []token
	at      int
	depth   int // depth of the expression that is being read
	queries int // queries read so far
	inside  int // how many queries contain the current position
}

// Parse reads one SELECT.
func Parse(q string) (*Select, error) {
	toks, err := tokens(q)
	if err != nil {
		return nil, err
	}
	p := &parser{q: q, toks: toks}
	sel, err := p.statement()
	if err != nil {
		return nil, err
	}
	return sel, nil
}

// ParseCondition reads a single expression.
func ParseCondition(q string) (*Expr, error) {
	toks, err := tokens(q)
	if err != nil {
		return nil, err
	}
	p := &parser{q: q, toks: toks}
	expr, err := p.expr()
	if err == nil && p.peek().kind != tEnd {
		err = p.unexpected()
	}
	return expr, err
}

func (p *parser) peek() token { return p.toks[p.at] }

func (p *parser) take() token {
	tok := p.toks[p.at]
	if tok.kind != tEnd {
		p.at++
	}
	return tok
}

// accept takes the words if all of them come next.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if p.at+i >= len(p.toks) || !p.toks[p.at+i].is(w) {
			return false
		}
	}
	p.at += len(words)
	return true
}

func (p *parser) expect(word string) error {
	if !p.accept(word) {
		return p.unexpected()
	}
	return nil
}

// unexpected is the error for the next token: unsupported if it begins a construct of DuckDB's grammar, so that the
// error can name DuckDB, otherwise a syntax error.
func (p *parser) unexpected() error {
	tok := p.peek()
	for _, w := range [...]string{"UNION", "INTERSECT", "EXCEPT", "WINDOW", "QUALIFY", "FETCH", "USING", "OVER",
		"FILTER", "SELECT", "WITH",
		"CASE", "CAST", "EXISTS", "INTERVAL", "ARRAY", "::", "[", ":", "COLLATE", "AT", "SIMILAR", "GLOB", "RIGHT",
		"FULL", "NATURAL", "SEMI",
		"ANTI", "ASOF", "POSITIONAL", "LATERAL", "EXCLUDE", "REPLACE", "RENAME", "TABLESAMPLE", "PIVOT", "UNPIVOT",
		"VALUES", "ANY", "ALL",
		"SOME", "ORDER", "LAMBDA", "TRY_CAST", "EXTRACT", "WITHIN", "IGNORE", "RESPECT"} {
		if tok.is(w) {
			return sqlerr.Unsupported("%q here", strings.ToUpper(w))
		}
	}
	return syntaxErrorAt(tok, p.q)
}

// statement reads a query to the end of the input.
func (p *parser) statement() (*Select, error) {
	sel, err := p.query()
	if err != nil {
		return nil, err
	}
	ended := false
	for p.accept(";") {
		ended = true
	}
	switch tok := p.peek(); {
	case tok.kind == tEnd:
		return sel, nil
	case ended:
		return nil, &sqlerr.SyntaxError{Msg: "after \";\": only a single SELECT is run", Pos: tok.pos}
	}
	return nil, p.unexpected()
}

// beginsQuery reports whether the next token begins a query in brackets.
func (p *parser) beginsQuery() bool {
	t := p.peek()
	return t.is("SELECT") || t.is("WITH") || t.is("FROM") || t.is("VALUES")
}

// query reads WITH, the SELECTs of a UNION, and the ORDER BY and LIMIT that apply to all of them.
func (p *parser) query() (*Select, error) {
	p.queries++
	p.inside++
	defer func() { p.inside-- }()
	if p.queries > maxQueries || p.inside > maxNested {
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than %d queries, or %d inside each other",
			maxQueries, maxNested)
	}
	queries, err := p.with()
	if err != nil {
		return nil, err
	}
	sel, bracketed, err := p.term()
	if err != nil {
		return nil, err
	}
	union := &Union{Parts: []*Select{sel}}
	for p.accept("UNION") {
		every := p.accept("ALL")
		if p.peek().is("BY") {
			return nil, sqlerr.Unsupported("UNION BY NAME")
		}
		if sel, _, err = p.term(); err != nil {
			return nil, err
		}
		if union.Parts, union.All = append(union.Parts, sel), append(union.All, every); len(union.Parts) > maxQueries {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than %d queries", maxQueries)
		}
	}
	// ORDER BY and LIMIT that follow apply to the rows of all: select them from the union
	if len(union.All) > 0 || bracketed {
		sel = &Select{Items: []SelectItem{{Expr: &Expr{Op: OpStar}}}, From: []From{{Alias: "union", Union: union}}}
	}
	sel.With = append(queries, sel.With...)
	return sel, p.tail(sel)
}

// with reads the named queries before a query.
func (p *parser) with() (out []NamedQuery, err error) {
	if !p.accept("WITH") {
		return nil, nil
	}
	if p.peek().is("RECURSIVE") {
		return nil, sqlerr.Unsupported("WITH RECURSIVE")
	}
	for {
		tok := p.take()
		if tok.kind != tQuoted && (tok.kind != tName || reserved(tok.text)) {
			p.at--
			return nil, p.unexpected()
		}
		if p.peek().is("(") {
			return nil, sqlerr.Unsupported("names of columns in WITH")
		}
		if err := p.expect("AS"); err != nil {
			return nil, err
		}
		if p.peek().is("NOT") || p.peek().is("MATERIALIZED") {
			return nil, sqlerr.Unsupported("WITH … AS [NOT] MATERIALIZED")
		}
		sel, err := p.bracketed()
		if err != nil {
			return nil, err
		}
		out = append(out, NamedQuery{tok.text, sel})
		if !p.accept(",") {
			return out, nil
		}
	}
}

// bracketed reads a query in brackets.
func (p *parser) bracketed() (*Select, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	sel, err := p.query()
	if err != nil {
		return nil, err
	}
	return sel, p.expect(")")
}

// term reads a query in brackets, or a SELECT without ORDER BY and LIMIT.
func (p *parser) term() (s *Select, bracketed bool, err error) {
	switch tok := p.peek(); {
	case tok.is("("):
		s, err = p.bracketed()
		return s, true, err
	case tok.is("VALUES"), tok.is("SUMMARIZE"), tok.is("DESCRIBE"), tok.is("PIVOT"), tok.is("UNPIVOT"), tok.is("TABLE"),
		tok.is("SHOW"), tok.is("EXPLAIN"):
		return nil, false, sqlerr.Unsupported("a query that begins with %q", strings.ToUpper(tok.text))
	case !tok.is("SELECT") && !tok.is("FROM"):
		return nil, false, syntaxErrorAt(tok, p.q)
	}
	s, err = p.selection()
	return s, false, err
}

// selection reads a SELECT up to HAVING or SAMPLE. FROM may come before SELECT, as DuckDB allows.
func (p *parser) selection() (s *Select, err error) {
	s = &Select{}
	fromFirst := p.accept("FROM")
	if fromFirst {
		if s.From, err = p.from(); err != nil {
			return nil, err
		}
	}
	if p.accept("SELECT") {
		if err = p.selectList(s); err != nil {
			return nil, err
		}
	} else {
		s.Items = []SelectItem{{Expr: &Expr{Op: OpStar}}}
	}
	if !fromFirst && p.accept("FROM") {
		if s.From, err = p.from(); err != nil {
			return nil, err
		}
	}
	if p.accept("WHERE") {
		if s.Where, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.accept("GROUP", "BY") {
		if p.accept("ALL") {
			s.GroupAll = true
		} else if s.GroupBy, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.accept("HAVING") {
		if s.Having, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.accept("USING", "SAMPLE") {
		s.Sample, err = p.sample()
	}
	return s, err
}

func (p *parser) selectList(s *Select) (err error) {
	if p.accept("DISTINCT") {
		s.Distinct = true
		if p.accept("ON") {
			if err = p.expect("("); err != nil {
				return err
			}
			if s.DistinctOn, err = p.list(); err != nil {
				return err
			}
			if err = p.expect(")"); err != nil {
				return err
			}
		}
	} else {
		p.accept("ALL")
	}
	s.Items, err = p.items()
	return err
}

// tail reads ORDER BY, LIMIT and OFFSET.
func (p *parser) tail(s *Select) (err error) {
	if p.accept("ORDER", "BY") {
		if s.OrderBy, err = p.order(); err != nil {
			return err
		}
	}
	for range 2 { // in either order
		switch {
		case s.Limit == nil && p.accept("LIMIT"):
			s.Limit, err = p.additive()
		case s.Offset == nil && p.accept("OFFSET"):
			s.Offset, err = p.additive()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) items() ([]SelectItem, error) {
	var out []SelectItem
	for {
		var it SelectItem
		var err error
		if it.Expr, err = p.star(); it.Expr == nil && err == nil {
			it.Expr, err = p.expr()
		}
		if err != nil {
			return nil, err
		}
		if it.Alias, err = p.alias(true); err != nil {
			return nil, err
		}
		if it.Alias != "" && it.Expr.Op == OpStar {
			return nil, sqlerr.Unsupported("a star with a name")
		}
		out = append(out, it)
		if !p.accept(",") {
			return out, nil
		}
		if t := p.peek(); t.is("FROM") || t.kind == tEnd { // DuckDB allows a comma after the last item
			return out, nil
		}
	}
}

// star reads *, table.* or COLUMNS('…'), with EXCLUDE and REPLACE; or returns nil.
func (p *parser) star() (*Expr, error) {
	tok := p.peek()
	expr := &Expr{Op: OpStar, pos: tok.pos}
	switch next := p.toks[min(p.at+1, len(p.toks)-1)]; {
	case p.accept("*"):
	case (tok.kind == tName && !reserved(tok.text) || tok.kind == tQuoted) && p.at+2 < len(p.toks) && next.is(".") &&
		p.toks[p.at+2].is("*"):
		p.at += 3
		expr.Table = tok.text
	case tok.is("COLUMNS") && next.is("(") && p.at+3 < len(p.toks) && p.toks[p.at+2].kind == tString &&
		p.toks[p.at+3].is(")"):
		expr.Star = &Star{Columns: p.toks[p.at+2].text}
		p.at += 4
		return expr, nil
	default:
		return nil, nil
	}
	for {
		switch {
		case p.accept("EXCLUDE"), p.accept("EXCEPT"):
			expr.Star = cmp.Or(expr.Star, &Star{})
			if err := p.excluded(expr.Star); err != nil {
				return nil, err
			}
		case p.accept("REPLACE"):
			expr.Star = cmp.Or(expr.Star, &Star{})
			if err := p.replaced(expr.Star); err != nil {
				return nil, err
			}
		default:
			return expr, nil
		}
	}
}

// excluded reads a name, or names in brackets.
func (p *parser) excluded(s *Star) error {
	several := p.accept("(")
	for {
		tok := p.take()
		if tok.kind != tQuoted && tok.kind != tName {
			p.at--
			return p.unexpected()
		}
		if p.peek().is(".") {
			return sqlerr.Unsupported("EXCLUDE of a column of a table")
		}
		s.Exclude = append(s.Exclude, tok.text)
		if !several {
			return nil
		}
		if !p.accept(",") {
			return p.expect(")")
		}
	}
}

// replaced reads an expression with an alias, or several in brackets.
func (p *parser) replaced(s *Star) error {
	several := p.accept("(")
	for {
		expr, err := p.expr()
		if err != nil {
			return err
		}
		name, err := p.alias(true)
		if err != nil {
			return err
		}
		if name == "" {
			return p.unexpected()
		}
		s.Replace = append(s.Replace, SelectItem{expr, name})
		if !several {
			return nil
		}
		if !p.accept(",") {
			return p.expect(")")
		}
	}
}

// alias reads an alias, "" if none follows. With anyWord, a reserved word may be one after AS.
func (p *parser) alias(anyWord bool) (string, error) {
	as := p.accept("AS")
	token := p.peek()
	free := as && anyWord || !reserved(token.text)
	if token.kind == tQuoted || token.kind == tName && free {
		p.at++
		return token.text, nil
	}
	if as {
		return "", p.unexpected()
	}
	return "", nil
}

func (p *parser) from() ([]From, error) {
	first, err := p.tableRef()
	if err != nil {
		return nil, err
	}
	out := []From{first}
	for {
		left, cond := false, true
		switch {
		case p.accept(","), p.accept("CROSS", "JOIN"):
			cond = false
		case p.accept("JOIN"), p.accept("INNER", "JOIN"):
		case p.accept("LEFT", "JOIN"), p.accept("LEFT", "OUTER", "JOIN"):
			left = true
		default:
			return out, nil
		}
		from, err := p.tableRef()
		if err != nil {
			return nil, err
		}
		if from.Left = left; cond {
			if err := p.expect("ON"); err != nil {
				return nil, err
			}
			if from.On, err = p.expr(); err != nil {
				return nil, err
			}
		}
		if out = append(out, from); len(out) > 16 {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than 16 tables")
		}
	}
}

func (p *parser) tableRef() (f From, err error) {
	tok := p.peek()
	switch {
	case tok.is("("):
		if f.Query, err = p.bracketed(); err != nil {
			return f, err
		}
		f.Table = "unnamed_subquery"
	case tok.kind == tString:
		return f, sqlerr.Unsupported("a table that is a file")
	case tok.kind != tQuoted && (tok.kind != tName || reserved(tok.text)):
		return f, p.unexpected()
	default:
		p.at++
		f.Table = tok.text
		if p.peek().is("(") || p.peek().is(".") {
			return f, sqlerr.Unsupported("a table that is a function or lies in a schema")
		}
	}
	f.Alias, err = p.alias(false)
	if f.Alias != "" && p.peek().is("(") {
		return f, sqlerr.Unsupported("names of columns after a table's alias")
	}
	f.Alias = cmp.Or(f.Alias, f.Table)
	if err == nil && p.accept("TABLESAMPLE") {
		f.Sample, err = p.sample()
	}
	return f, err
}

func (p *parser) list() ([]*Expr, error) {
	var out []*Expr
	for {
		expr, err := p.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, expr)
		if !p.accept(",") {
			return out, nil
		}
	}
}

func (p *parser) order() ([]OrderTerm, error) {
	var out []OrderTerm
	for {
		var o OrderTerm
		if !p.accept("ALL") {
			var err error
			if o.Expr, err = p.expr(); err != nil {
				return nil, err
			}
		}
		if !p.accept("ASC") {
			o.Desc = p.accept("DESC")
		}
		if p.accept("NULLS", "FIRST") {
			o.NullsFirst = true
		} else if p.peek().is("NULLS") && !p.accept("NULLS", "LAST") {
			return nil, p.unexpected()
		}
		out = append(out, o)
		if !p.accept(",") {
			return out, nil
		}
	}
}
