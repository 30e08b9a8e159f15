package ast

import (
	"cmp"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// parser is a recursive-descent parser of one SELECT.
type parser struct {
	q     string
	toks  []token
	at    int
	depth int // depth of the expression that is being read
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
	if word := strings.ToUpper(tok.text); (tok.kind == tName || tok.kind == tSign) && onlyDuckDB[word] {
		return sqlerr.Unsupported("%q here", word)
	}
	return syntaxErrorAt(tok, p.q)
}

// statement reads a query to the end of the input.
func (p *parser) statement() (*Select, error) {
	switch tok := p.peek(); {
	case tok.is("SELECT"):
	case p.beginsQuery(), tok.is("("), tok.is("SUMMARIZE"), tok.is("DESCRIBE"), tok.is("PIVOT"), tok.is("UNPIVOT"),
		tok.is("TABLE"), tok.is("SHOW"), tok.is("EXPLAIN"):
		return nil, sqlerr.Unsupported("a query that begins with %q", strings.ToUpper(tok.text))
	default:
		return nil, syntaxErrorAt(tok, p.q)
	}
	sel, err := p.selection()
	if err == nil {
		err = p.tail(sel)
	}
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

// beginsQuery reports whether the next token begins a query.
func (p *parser) beginsQuery() bool {
	t := p.peek()
	return t.is("SELECT") || t.is("WITH") || t.is("FROM") || t.is("VALUES")
}

// noQuery is the error for a query in brackets, if one begins here.
func (p *parser) noQuery() error {
	if p.beginsQuery() {
		return sqlerr.Unsupported("a query inside a query")
	}
	return nil
}

// selection reads a SELECT up to HAVING.
func (p *parser) selection() (s *Select, err error) {
	s = &Select{}
	if err = p.expect("SELECT"); err != nil {
		return nil, err
	}
	if s.Distinct = p.accept("DISTINCT"); !s.Distinct {
		p.accept("ALL")
	} else if p.peek().is("ON") {
		return nil, p.unexpected()
	}
	if s.Items, err = p.items(); err != nil {
		return nil, err
	}
	if p.accept("FROM") {
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
		if s.GroupBy, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.accept("HAVING") {
		if s.Having, err = p.expr(); err != nil {
			return nil, err
		}
	}
	return s, nil
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
		start := p.peek().pos
		if it.Expr, err = p.star(); it.Expr == nil && err == nil {
			it.Expr, err = p.expr()
		}
		if err != nil {
			return nil, err
		}
		it.Text = strings.TrimSpace(p.q[start:p.peek().pos])
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

// star reads * or table.*, with EXCLUDE; or returns nil.
func (p *parser) star() (*Expr, error) {
	tok := p.peek()
	expr := &Expr{Op: OpStar, pos: tok.pos}
	switch next := p.toks[min(p.at+1, len(p.toks)-1)]; {
	case p.accept("*"):
	case (tok.kind == tName && !reserved(tok.text) || tok.kind == tQuoted) && p.at+2 < len(p.toks) && next.is(".") &&
		p.toks[p.at+2].is("*"):
		p.at += 3
		expr.Table = tok.text
	default:
		return nil, nil
	}
	if p.accept("EXCLUDE") {
		return expr, p.excluded(expr)
	}
	return expr, nil
}

// excluded reads a name, or names in brackets.
func (p *parser) excluded(star *Expr) error {
	several := p.accept("(")
	for {
		tok := p.peek()
		if tok.kind != tQuoted && tok.kind != tName {
			return p.unexpected()
		}
		p.at++
		if p.peek().is(".") {
			return sqlerr.Unsupported("EXCLUDE of a column of a table")
		}
		star.Exclude = append(star.Exclude, tok.text)
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
		cond := true
		switch {
		case p.accept(","), p.accept("CROSS", "JOIN"):
			cond = false
		case p.accept("JOIN"), p.accept("INNER", "JOIN"):
		default:
			return out, nil
		}
		from, err := p.tableRef()
		if err != nil {
			return nil, err
		}
		if cond {
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
		p.at++
		return f, cmp.Or(p.noQuery(), p.unexpected())
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
		var err error
		if o.Expr, err = p.expr(); err != nil {
			return nil, err
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
