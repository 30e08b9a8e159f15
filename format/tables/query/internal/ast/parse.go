package ast

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// parser is a recursive-descent parser of one SELECT. After the first error it stands at the end of the query, where
// every method returns something, so only its callers look at err.
type parser struct {
	query  string
	tokens []token // the last one is tEnd
	at     int
	depth  int // of the expression that is being read
	err    error
}

// Parse reads one SELECT.
func Parse(query string) (*Select, error) {
	return parsed(query, (*parser).statement)
}

// ParseCondition reads a single expression.
func ParseCondition(query string) (*Expr, error) {
	return parsed(query, func(p *parser) *Expr {
		expr := p.expr()
		if p.peek().kind != tEnd {
			p.unexpected()
		}
		return expr
	})
}

// parsed returns what read reads of a query.
func parsed[T any](query string, read func(*parser) *T) (*T, error) {
	list, err := tokens(query)
	if err != nil {
		return nil, err
	}
	p := &parser{query: query, tokens: list}
	out := read(p)
	if p.err != nil {
		return nil, p.err
	}
	return out, nil
}

// fail ends the query with an error, unless it has ended with one. It returns an expression to go on with.
func (p *parser) fail(err error) *Expr {
	p.err = cmp.Or(p.err, err)
	// At the end every method returns, so only the callers of the parser look at err.
	p.at = len(p.tokens) - 1
	return &Expr{}
}

func (p *parser) peek() token { return p.after(0) }

// after returns the token n places after the next one.
func (p *parser) after(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) take() token {
	tok := p.peek()
	if tok.kind != tEnd {
		p.at++
	}
	return tok
}

// accept takes the words if all of them come next.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if !p.after(i).is(w) {
			return false
		}
	}
	p.at += len(words)
	return true
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.unexpected()
	}
}

// unexpected fails at the next token: as unsupported, naming DuckDB, if a construct of DuckDB's grammar begins there,
// otherwise as a syntax error.
func (p *parser) unexpected() *Expr {
	tok := p.peek()
	if word := strings.ToUpper(tok.text); (tok.kind == tName || tok.kind == tSign) && onlyDuckDB[word] {
		return p.fail(sql.Unsupported("%q here", word))
	}
	return p.fail(syntaxErrorAt(tok, p.query))
}

// statement reads a query to the end of the input.
func (p *parser) statement() *Select {
	switch tok := p.peek(); {
	case p.accept("SELECT"):
	case p.beginsQuery(), slices.ContainsFunc(
		[]string{"(", "SUMMARIZE", "DESCRIBE", "PIVOT", "UNPIVOT", "TABLE", "SHOW", "EXPLAIN"}, tok.is):
		p.fail(sql.Unsupported("a query that begins with %q", strings.ToUpper(tok.text)))
	default:
		p.fail(syntaxErrorAt(tok, p.query))
	}
	sel := p.selection()
	p.tail(sel)
	ended := false
	for p.accept(";") {
		ended = true
	}
	switch tok := p.peek(); {
	case tok.kind == tEnd:
	case ended:
		p.fail(&sql.SyntaxError{Msg: "after \";\": only a single SELECT is run", Pos: tok.pos})
	default:
		p.unexpected()
	}
	return sel
}

// beginsQuery reports whether the next token begins a query.
func (p *parser) beginsQuery() bool {
	return slices.ContainsFunc([]string{"SELECT", "WITH", "FROM", "VALUES"}, p.peek().is)
}

// noQuery fails if a query in brackets begins here.
func (p *parser) noQuery() {
	if p.beginsQuery() {
		p.fail(sql.Unsupported("a query inside a query"))
	}
}

// selection reads a SELECT after this word and up to HAVING.
func (p *parser) selection() *Select {
	sel := &Select{Distinct: p.accept("DISTINCT")}
	if !sel.Distinct {
		p.accept("ALL")
	} else if p.peek().is("ON") {
		p.unexpected()
	}
	sel.Items = p.items()
	if p.accept("FROM") {
		sel.From = p.from()
	}
	if p.accept("WHERE") {
		sel.Where = p.expr()
	}
	if p.accept("GROUP", "BY") {
		sel.GroupBy = p.list()
	}
	if p.accept("HAVING") {
		sel.Having = p.expr()
	}
	return sel
}

// tail reads ORDER BY, LIMIT and OFFSET.
func (p *parser) tail(sel *Select) {
	if p.accept("ORDER", "BY") {
		sel.OrderBy = commas(p, p.order)
	}
	for range 2 { // in either order
		switch {
		case sel.Limit == nil && p.accept("LIMIT"):
			sel.Limit = p.binary(additive)
		case sel.Offset == nil && p.accept("OFFSET"):
			sel.Offset = p.binary(additive)
		}
	}
}

// commas reads one or more items with commas between them.
func commas[T any](p *parser, item func() T) []T {
	out := []T{item()}
	for p.accept(",") {
		out = append(out, item())
	}
	return out
}

func (p *parser) list() []*Expr { return commas(p, p.expr) }

func (p *parser) items() []SelectItem {
	out := []SelectItem{p.item()}
	for p.accept(",") {
		if tok := p.peek(); tok.is("FROM") || tok.kind == tEnd { // DuckDB allows a comma after the last item
			break
		}
		out = append(out, p.item())
	}
	return out
}

func (p *parser) item() SelectItem {
	start := p.peek().pos
	item := SelectItem{Expr: p.star()}
	if item.Expr == nil {
		item.Expr = p.expr()
	}
	if p.err != nil {
		return item
	}
	item.Text = strings.TrimSpace(p.query[start:p.peek().pos])
	if item.Alias = p.alias(true); item.Alias != "" && item.Expr.Op == OpStar {
		p.fail(sql.Unsupported("a star with a name"))
	}
	return item
}

// star reads * or table.*, with EXCLUDE; or returns nil.
func (p *parser) star() *Expr {
	tok := p.peek()
	expr := &Expr{Op: OpStar}
	switch {
	case p.accept("*"):
	case tok.names() && p.after(1).is(".") && p.after(2).is("*"):
		p.at += 3
		expr.Table = tok.text
	default:
		return nil
	}
	if !p.accept("EXCLUDE") {
		return expr
	}
	if p.accept("(") {
		expr.Exclude = commas(p, p.excluded)
		p.expect(")")
	} else {
		expr.Exclude = []string{p.excluded()}
	}
	return expr
}

// excluded reads the name of a column.
func (p *parser) excluded() string {
	tok := p.peek()
	if tok.kind != tQuoted && tok.kind != tName {
		p.unexpected()
		return ""
	}
	p.at++
	if p.peek().is(".") {
		p.fail(sql.Unsupported("EXCLUDE of a column of a table"))
	}
	return tok.text
}

// alias reads an alias, "" if none follows. With anyWord, a reserved word may be one after AS.
func (p *parser) alias(anyWord bool) string {
	as := p.accept("AS")
	tok := p.peek()
	if tok.names() || tok.kind == tName && as && anyWord {
		p.at++
		return tok.text
	}
	if as {
		p.unexpected()
	}
	return ""
}

func (p *parser) from() []From {
	out := []From{p.tableRef()}
	for {
		condition := true
		switch {
		case p.accept(","), p.accept("CROSS", "JOIN"):
			condition = false
		case p.accept("JOIN"), p.accept("INNER", "JOIN"):
		default:
			return out
		}
		from := p.tableRef()
		if condition {
			p.expect("ON")
			from.On = p.expr()
		}
		if out = append(out, from); len(out) > 16 {
			p.fail(fault.New(fault.Limit, "query", "more than 16 tables"))
		}
	}
}

func (p *parser) tableRef() (f From) {
	tok := p.peek()
	switch {
	case p.accept("("):
		p.noQuery()
		p.unexpected()
	case tok.kind == tString:
		p.fail(sql.Unsupported("a table that is a file"))
	case !tok.names():
		p.unexpected()
	default:
		p.at++
		f.Table = tok.text
		if p.peek().is("(") || p.peek().is(".") {
			p.fail(sql.Unsupported("a table that is a function or lies in a schema"))
		}
	}
	f.Alias = p.alias(false)
	if f.Alias != "" && p.peek().is("(") {
		p.fail(sql.Unsupported("names of columns after a table's alias"))
	}
	f.Alias = cmp.Or(f.Alias, f.Table)
	return f
}

func (p *parser) order() OrderTerm {
	term := OrderTerm{Expr: p.expr()}
	if !p.accept("ASC") {
		term.Desc = p.accept("DESC")
	}
	if p.accept("NULLS", "FIRST") {
		term.NullsFirst = true
	} else if p.peek().is("NULLS") && !p.accept("NULLS", "LAST") {
		p.unexpected()
	}
	return term
}

// sqlType reads a type.
func (p *parser) sqlType() tables.Type {
	tok := p.peek()
	if tok.kind != tName {
		p.unexpected()
		return tables.Type{}
	}
	p.at++
	typ, ok := sql.ByName[strings.ToUpper(tok.text)]
	switch {
	case !ok:
		p.fail(sql.Unsupported("the type %s", tok.text))
	case tok.is("DOUBLE"):
		p.accept("PRECISION")
	case typ.Kind == tables.String && p.accept("("): // VARCHAR(10) has no effect
		p.take()
		p.expect(")")
	}
	if next := p.peek(); next.is("[") || next.is("WITH") && typ.Kind == tables.Timestamp {
		p.fail(sql.Unsupported("the type %s %s", tok.text, next.text))
	}
	return typ
}
