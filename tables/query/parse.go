package query

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// expr is a parsed expression.
type expr struct {
	op    op
	name  string // of columns, functions; the text of literals; the sign of operators
	table string // of columns and stars, "" if none
	args  []*expr
	not   bool // of IN, BETWEEN, LIKE, IS
	flag  bool // DISTINCT of an aggregate; TRY_CAST
	depth int
	pos   int

	typ    tables.Type // of opCast
	sub    *selection  // of opQuery and opInQuery
	filter *expr       // FILTER of an aggregate, nil: none
	order  []orderItem // ORDER BY of an aggregate
	star   *starred    // of opStar, nil: all columns
	span   span        // of opInterval
}

type op uint8

const (
	opColumn op = iota
	opStar
	opNumber
	opString
	opNull
	opTrue
	opFalse
	opDate
	opTimestamp
	opCall
	opNot
	opMinus
	opAnd // of any number of terms
	opOr
	opCompare // name: = <> < <= > >=
	opArith   // name: + - * / // % ^ **
	opConcat
	opIn      // args[0] in the others
	opBetween // three
	opLike    // two or, with ESCAPE, three; name: LIKE or ILIKE
	opIsNull
	opIsBool   // name: TRUE or FALSE
	opDistinct // IS [NOT] DISTINCT FROM
	opIndex
	opCast     // to typ
	opCase     // condition, value, condition, value, …, value of ELSE
	opList     // [a, b]
	opInterval // span
	opQuery    // a query in brackets that gives one value
	opInQuery  // args[0] in the only column of sub
)

// selection is a parsed query: a SELECT, with what stands in front of it and behind it.
type selection struct {
	with     []named
	distinct bool
	on       []*expr // of DISTINCT ON
	items    []item
	from     []from
	where    *expr
	group    []*expr
	groupAll bool
	having   *expr
	sample   *sample // nil: all rows of FROM
	order    []orderItem
	limit    *expr
	offset   *expr
}

// named is a query of WITH.
type named struct {
	name string
	s    *selection
}

type item struct {
	e     *expr
	alias string
}

// starred is what stands behind a star.
type starred struct {
	exclude []string
	replace []item
	columns string // COLUMNS('…'): a regular expression of names
}

// from is a term of FROM: a table, a query in brackets or several joined by UNION.
type from struct {
	table, alias string
	sub          *selection
	union        *union
	sample       *sample // of TABLESAMPLE
	on           *expr   // nil: all pairs
	left         bool
}

// union are queries whose rows follow each other.
type union struct {
	parts []*selection
	all   []bool // whether UNION ALL stands before part k+1, or UNION
}

// orderItem is a term of ORDER BY; e is nil for ALL.
type orderItem struct {
	e           *expr
	desc, first bool // first: NULLS FIRST
}

type parser struct {
	q       string
	toks    []token
	at      int
	depth   int // of the expression that is being read
	queries int // read so far
	inside  int // queries around the one that is being read
}

// parse reads one SELECT.
func parse(q string) (*selection, error) {
	toks, err := tokens(q)
	if err != nil {
		return nil, err
	}
	p := &parser{q: q, toks: toks}
	s, err := p.statement()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// parseCondition reads an expression that stands alone.
func parseCondition(q string) (*expr, error) {
	toks, err := tokens(q)
	if err != nil {
		return nil, err
	}
	p := &parser{q: q, toks: toks}
	e, err := p.expr()
	if err == nil && p.peek().kind != tEnd {
		err = p.unexpected()
	}
	return e, err
}

func (p *parser) peek() token { return p.toks[p.at] }

func (p *parser) take() token {
	t := p.toks[p.at]
	if t.kind != tEnd {
		p.at++
	}
	return t
}

// accept takes the words if they all come next.
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

// unexpected is the error for the next token: unsupported if DuckDB's grammar has something that
// begins with it, otherwise one of syntax.
func (p *parser) unexpected() error {
	t := p.peek()
	for _, w := range [...]string{"UNION", "INTERSECT", "EXCEPT", "WINDOW", "QUALIFY", "FETCH", "USING", "OVER", "FILTER", "SELECT", "WITH",
		"CASE", "CAST", "EXISTS", "INTERVAL", "ARRAY", "::", "[", ":", "COLLATE", "AT", "SIMILAR", "GLOB", "RIGHT", "FULL", "NATURAL", "SEMI",
		"ANTI", "ASOF", "POSITIONAL", "LATERAL", "EXCLUDE", "REPLACE", "RENAME", "TABLESAMPLE", "PIVOT", "UNPIVOT", "VALUES", "ANY", "ALL",
		"SOME", "ORDER", "LAMBDA", "TRY_CAST", "EXTRACT", "WITHIN", "IGNORE", "RESPECT"} {
		if t.is(w) {
			return unsupported("%q in this place", strings.ToUpper(w))
		}
	}
	return near(t, p.q)
}

// statement reads a query, and what ends it.
func (p *parser) statement() (*selection, error) {
	s, err := p.query()
	if err != nil {
		return nil, err
	}
	more := false
	for p.accept(";") {
		more = true
	}
	switch t := p.peek(); {
	case t.kind == tEnd:
		return s, nil
	case more:
		return nil, &SyntaxError{"behind \";\": only a single SELECT is run", t.pos}
	}
	return nil, p.unexpected()
}

// beginsQuery reports whether the next token begins a query in brackets.
func (p *parser) beginsQuery() bool {
	t := p.peek()
	return t.is("SELECT") || t.is("WITH") || t.is("FROM") || t.is("VALUES")
}

// query reads WITH, SELECTs joined by UNION, and ORDER BY and LIMIT of them all.
func (p *parser) query() (*selection, error) {
	p.queries++
	p.inside++
	defer func() { p.inside-- }()
	if p.queries > maxQueries || p.inside > maxNested {
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than %d queries, or %d inside of each other", maxQueries, maxNested)
	}
	with, err := p.with()
	if err != nil {
		return nil, err
	}
	s, bracketed, err := p.term()
	if err != nil {
		return nil, err
	}
	u := &union{parts: []*selection{s}}
	for p.accept("UNION") {
		all := p.accept("ALL")
		if p.peek().is("BY") {
			return nil, unsupported("UNION BY NAME")
		}
		if s, _, err = p.term(); err != nil {
			return nil, err
		}
		if u.parts, u.all = append(u.parts, s), append(u.all, all); len(u.parts) > maxQueries {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than %d queries", maxQueries)
		}
	}
	if len(u.all) > 0 || bracketed { // what follows is about the rows of all of them
		s = &selection{items: []item{{e: &expr{op: opStar}}}, from: []from{{alias: "union", union: u}}}
	}
	s.with = append(with, s.with...)
	return s, p.tail(s)
}

// with reads the named queries in front of a query.
func (p *parser) with() (out []named, err error) {
	if !p.accept("WITH") {
		return nil, nil
	}
	if p.peek().is("RECURSIVE") {
		return nil, unsupported("WITH RECURSIVE")
	}
	for {
		t := p.take()
		if t.kind != tQuoted && (t.kind != tName || reserved(t.text)) {
			p.at--
			return nil, p.unexpected()
		}
		if p.peek().is("(") {
			return nil, unsupported("names of columns in WITH")
		}
		if err := p.expect("AS"); err != nil {
			return nil, err
		}
		if p.peek().is("NOT") || p.peek().is("MATERIALIZED") {
			return nil, unsupported("WITH … AS [NOT] MATERIALIZED")
		}
		s, err := p.bracketed()
		if err != nil {
			return nil, err
		}
		out = append(out, named{t.text, s})
		if !p.accept(",") {
			return out, nil
		}
	}
}

// bracketed reads a query in brackets.
func (p *parser) bracketed() (*selection, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	s, err := p.query()
	if err != nil {
		return nil, err
	}
	return s, p.expect(")")
}

// term reads a query in brackets, or a SELECT without ORDER BY and LIMIT.
func (p *parser) term() (s *selection, bracketed bool, err error) {
	switch t := p.peek(); {
	case t.is("("):
		s, err = p.bracketed()
		return s, true, err
	case t.is("VALUES"), t.is("SUMMARIZE"), t.is("DESCRIBE"), t.is("PIVOT"), t.is("UNPIVOT"), t.is("TABLE"), t.is("SHOW"), t.is("EXPLAIN"):
		return nil, false, unsupported("a query that begins with %q", strings.ToUpper(t.text))
	case !t.is("SELECT") && !t.is("FROM"):
		return nil, false, near(t, p.q)
	}
	s, err = p.selection()
	return s, false, err
}

// selection reads a SELECT up to its HAVING, or its SAMPLE. FROM may stand in front.
func (p *parser) selection() (s *selection, err error) {
	s = &selection{}
	fromFirst := p.accept("FROM")
	if fromFirst {
		if s.from, err = p.from(); err != nil {
			return nil, err
		}
	}
	if p.accept("SELECT") {
		if err = p.selectList(s); err != nil {
			return nil, err
		}
	} else {
		s.items = []item{{e: &expr{op: opStar}}}
	}
	if !fromFirst && p.accept("FROM") {
		if s.from, err = p.from(); err != nil {
			return nil, err
		}
	}
	if p.accept("WHERE") {
		if s.where, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.accept("GROUP", "BY") {
		if p.accept("ALL") {
			s.groupAll = true
		} else if s.group, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.accept("HAVING") {
		if s.having, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.accept("USING", "SAMPLE") {
		s.sample, err = p.sample()
	}
	return s, err
}

func (p *parser) selectList(s *selection) (err error) {
	if p.accept("DISTINCT") {
		s.distinct = true
		if p.accept("ON") {
			if err = p.expect("("); err != nil {
				return err
			}
			if s.on, err = p.list(); err != nil {
				return err
			}
			if err = p.expect(")"); err != nil {
				return err
			}
		}
	} else {
		p.accept("ALL")
	}
	s.items, err = p.items()
	return err
}

// tail reads ORDER BY, LIMIT and OFFSET.
func (p *parser) tail(s *selection) (err error) {
	if p.accept("ORDER", "BY") {
		if s.order, err = p.order(); err != nil {
			return err
		}
	}
	for range 2 { // in either order
		switch {
		case s.limit == nil && p.accept("LIMIT"):
			s.limit, err = p.additive()
		case s.offset == nil && p.accept("OFFSET"):
			s.offset, err = p.additive()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) items() ([]item, error) {
	var out []item
	for {
		var it item
		var err error
		if it.e, err = p.star(); it.e == nil && err == nil {
			it.e, err = p.expr()
		}
		if err != nil {
			return nil, err
		}
		if it.alias, err = p.alias(true); err != nil {
			return nil, err
		}
		if it.alias != "" && it.e.op == opStar {
			return nil, unsupported("a star with a name")
		}
		out = append(out, it)
		if !p.accept(",") {
			return out, nil
		}
		if t := p.peek(); t.is("FROM") || t.kind == tEnd { // a comma too many is allowed there
			return out, nil
		}
	}
}

// star reads *, table.* or COLUMNS('…'), with EXCLUDE and REPLACE; or returns nil.
func (p *parser) star() (*expr, error) {
	t := p.peek()
	e := &expr{op: opStar, pos: t.pos}
	switch next := p.toks[min(p.at+1, len(p.toks)-1)]; {
	case p.accept("*"):
	case (t.kind == tName && !reserved(t.text) || t.kind == tQuoted) && p.at+2 < len(p.toks) && next.is(".") && p.toks[p.at+2].is("*"):
		p.at += 3
		e.table = t.text
	case t.is("COLUMNS") && next.is("(") && p.at+3 < len(p.toks) && p.toks[p.at+2].kind == tString && p.toks[p.at+3].is(")"):
		e.star = &starred{columns: p.toks[p.at+2].text}
		p.at += 4
		return e, nil
	default:
		return nil, nil
	}
	for {
		switch {
		case p.accept("EXCLUDE"), p.accept("EXCEPT"):
			if e.star == nil {
				e.star = &starred{}
			}
			if err := p.excluded(e.star); err != nil {
				return nil, err
			}
		case p.accept("REPLACE"):
			if e.star == nil {
				e.star = &starred{}
			}
			if err := p.replaced(e.star); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
	}
}

// excluded reads a name, or names in brackets.
func (p *parser) excluded(s *starred) error {
	several := p.accept("(")
	for {
		t := p.take()
		if t.kind != tQuoted && t.kind != tName {
			p.at--
			return p.unexpected()
		}
		if p.peek().is(".") {
			return unsupported("EXCLUDE of a column of a table")
		}
		s.exclude = append(s.exclude, t.text)
		if !several {
			return nil
		}
		if !p.accept(",") {
			return p.expect(")")
		}
	}
}

// replaced reads an expression with a name, or several in brackets.
func (p *parser) replaced(s *starred) error {
	several := p.accept("(")
	for {
		e, err := p.expr()
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
		s.replace = append(s.replace, item{e, name})
		if !several {
			return nil
		}
		if !p.accept(",") {
			return p.expect(")")
		}
	}
}

// alias reads a name that may follow, "" if none does. After AS any word is one where anyWord says so.
func (p *parser) alias(anyWord bool) (string, error) {
	as := p.accept("AS")
	t := p.peek()
	if t.kind == tQuoted || t.kind == tName && (as && anyWord || !reserved(t.text)) {
		p.at++
		return t.text, nil
	}
	if as {
		return "", p.unexpected()
	}
	return "", nil
}

func (p *parser) from() ([]from, error) {
	first, err := p.tableRef()
	if err != nil {
		return nil, err
	}
	out := []from{first}
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
		f, err := p.tableRef()
		if err != nil {
			return nil, err
		}
		if f.left = left; cond {
			if err := p.expect("ON"); err != nil {
				return nil, err
			}
			if f.on, err = p.expr(); err != nil {
				return nil, err
			}
		}
		if out = append(out, f); len(out) > 16 {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than 16 tables")
		}
	}
}

func (p *parser) tableRef() (f from, err error) {
	t := p.peek()
	switch {
	case t.is("("):
		if f.sub, err = p.bracketed(); err != nil {
			return f, err
		}
		f.table = "unnamed_subquery"
	case t.kind == tString:
		return f, unsupported("a table that is a file")
	case t.kind != tQuoted && (t.kind != tName || reserved(t.text)):
		return f, p.unexpected()
	default:
		p.at++
		f.table = t.text
		if p.peek().is("(") || p.peek().is(".") {
			return f, unsupported("a table that is a function or lies in a schema")
		}
	}
	f.alias, err = p.alias(false)
	if f.alias != "" && p.peek().is("(") {
		return f, unsupported("names of columns behind a table's alias")
	}
	if f.alias == "" {
		f.alias = f.table
	}
	if err == nil && p.accept("TABLESAMPLE") {
		f.sample, err = p.sample()
	}
	return f, err
}

func (p *parser) list() ([]*expr, error) {
	var out []*expr
	for {
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if !p.accept(",") {
			return out, nil
		}
	}
}

func (p *parser) order() ([]orderItem, error) {
	var out []orderItem
	for {
		var o orderItem
		if !p.accept("ALL") {
			var err error
			if o.e, err = p.expr(); err != nil {
				return nil, err
			}
		}
		if !p.accept("ASC") {
			o.desc = p.accept("DESC")
		}
		if p.accept("NULLS", "FIRST") {
			o.first = true
		} else if p.peek().is("NULLS") && !p.accept("NULLS", "LAST") {
			return nil, p.unexpected()
		}
		out = append(out, o)
		if !p.accept(",") {
			return out, nil
		}
	}
}
