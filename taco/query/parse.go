package query

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// expr is a parsed expression.
type expr struct {
	op    op
	name  string // of columns, functions; the text of literals; the sign of operators
	table string // of columns and stars, "" if none
	args  []*expr
	not   bool // of IN, BETWEEN, LIKE, IS
	flag  bool // DISTINCT of an aggregate; of a function: written with a star
	depth int
	pos   int
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
	opArith   // name: + - * / // %
	opConcat
	opIn      // args[0] in the others
	opBetween // three
	opLike    // two or, with ESCAPE, three; name: LIKE or ILIKE
	opIsNull
	opIsBool   // name: TRUE or FALSE
	opDistinct // IS [NOT] DISTINCT FROM
	opIndex
)

// selection is a parsed SELECT.
type selection struct {
	distinct bool
	items    []item
	from     []from
	where    *expr
	group    []*expr
	groupAll bool
	having   *expr
	order    []orderItem
	limit    *expr
	offset   *expr
}

type item struct {
	e     *expr
	alias string
}

type from struct {
	table, alias string
	on           *expr // nil: all pairs
	left         bool
}

type orderItem struct {
	e           *expr
	desc, first bool // first: NULLS FIRST
}

type parser struct {
	q     string
	toks  []token
	at    int
	depth int
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

func (p *parser) statement() (*selection, error) {
	t := p.peek()
	for _, w := range [...]string{"WITH", "FROM", "VALUES", "(", "SUMMARIZE", "DESCRIBE", "PIVOT", "UNPIVOT", "TABLE", "SHOW", "EXPLAIN"} {
		if t.is(w) {
			return nil, unsupported("a query that begins with %q", strings.ToUpper(w))
		}
	}
	if err := p.expect("SELECT"); err != nil {
		return nil, near(t, p.q)
	}
	s, err := p.selection()
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

func (p *parser) selection() (s *selection, err error) {
	s = &selection{}
	if p.accept("DISTINCT") {
		if p.peek().is("ON") {
			return nil, unsupported("DISTINCT ON")
		}
		s.distinct = true
	} else {
		p.accept("ALL")
	}
	if s.items, err = p.items(); err != nil {
		return nil, err
	}
	if p.accept("FROM") {
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
	if p.accept("ORDER", "BY") {
		if s.order, err = p.order(); err != nil {
			return nil, err
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
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) items() ([]item, error) {
	var out []item
	for {
		var it item
		var err error
		if star := p.star(); star != nil {
			it.e = star
		} else if it.e, err = p.expr(); err != nil {
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

// star reads * or table.*, or returns nil.
func (p *parser) star() *expr {
	t := p.peek()
	if p.accept("*") {
		return &expr{op: opStar, pos: t.pos}
	}
	if (t.kind == tName && !reserved(t.text) || t.kind == tQuoted) && p.at+2 < len(p.toks) && p.toks[p.at+1].is(".") && p.toks[p.at+2].is("*") {
		p.at += 3
		return &expr{op: opStar, table: t.text, pos: t.pos}
	}
	return nil
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
	case t.is("(") || t.kind == tString:
		return f, unsupported("a table that is a query or a file")
	case t.kind != tQuoted && (t.kind != tName || reserved(t.text)):
		return f, p.unexpected()
	}
	p.at++
	f.table = t.text
	if p.peek().is("(") || p.peek().is(".") {
		return f, unsupported("a table that is a function or lies in a schema")
	}
	f.alias, err = p.alias(false)
	if f.alias != "" && p.peek().is("(") {
		return f, unsupported("names of columns behind a table's alias")
	}
	if f.alias == "" {
		f.alias = f.table
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
		if p.peek().is("ALL") {
			return nil, unsupported("ORDER BY ALL")
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		o := orderItem{e: e}
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

// make returns an expression over args; one that is too deep is an error.
func (p *parser) make(op op, pos int, name string, args ...*expr) (*expr, error) {
	e := &expr{op: op, name: name, args: args, pos: pos}
	for _, a := range args {
		e.depth = max(e.depth, a.depth+1)
	}
	if e.depth > maxDepth {
		return nil, tooDeep()
	}
	return e, nil
}

func tooDeep() error {
	return fault.New(fault.Limit, "query", fault.NoOffset, "an expression more than %d deep", maxDepth)
}

// expr reads an expression. From here on down the methods go by precedence, loosest first.
func (p *parser) expr() (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, tooDeep()
	}
	defer func() { p.depth-- }()
	return p.chain("OR", opOr, func() (*expr, error) { return p.chain("AND", opAnd, p.not) })
}

// chain reads terms with a word between them.
func (p *parser) chain(word string, op op, term func() (*expr, error)) (*expr, error) {
	pos := p.peek().pos
	first, err := term()
	if err != nil || !p.peek().is(word) {
		return first, err
	}
	terms := []*expr{first}
	for p.accept(word) {
		t, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return p.make(op, pos, word, terms...)
}

func (p *parser) not() (*expr, error) {
	pos := p.peek().pos
	nots := 0
	for p.accept("NOT") {
		nots++
	}
	if nots > maxDepth {
		return nil, tooDeep()
	}
	e, err := p.is()
	for ; err == nil && nots > 0; nots-- {
		e, err = p.make(opNot, pos, "NOT", e)
	}
	return e, err
}

func (p *parser) is() (*expr, error) {
	e, err := p.compare()
	for err == nil {
		pos := p.peek().pos
		switch {
		case p.accept("ISNULL"):
			e, err = p.make(opIsNull, pos, "", e)
		case p.accept("NOTNULL"), p.accept("NOT", "NULL"):
			if e, err = p.make(opIsNull, pos, "", e); err == nil {
				e.not = true
			}
		case p.accept("IS"):
			e, err = p.isWhat(e, pos)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) isWhat(e *expr, pos int) (out *expr, err error) {
	not := p.accept("NOT")
	switch {
	case p.accept("NULL"), p.accept("UNKNOWN"):
		out, err = p.make(opIsNull, pos, "", e)
	case p.accept("TRUE"):
		out, err = p.make(opIsBool, pos, "TRUE", e)
	case p.accept("FALSE"):
		out, err = p.make(opIsBool, pos, "FALSE", e)
	case p.accept("DISTINCT", "FROM"):
		var r *expr
		if r, err = p.compare(); err == nil {
			out, err = p.make(opDistinct, pos, "", e, r)
		}
	default:
		return nil, p.unexpected()
	}
	if err == nil {
		out.not = not
	}
	return out, err
}

func (p *parser) compare() (*expr, error) {
	l, err := p.between()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	if t.kind != tSign {
		return l, nil
	}
	name := t.text
	switch name {
	case "=", "<>", "<", "<=", ">", ">=":
	case "==":
		name = "="
	case "!=":
		name = "<>"
	default:
		return l, nil
	}
	p.at++
	r, err := p.between()
	if err != nil {
		return nil, err
	}
	return p.make(opCompare, t.pos, name, l, r)
}

// between reads what BETWEEN, IN and LIKE apply to.
func (p *parser) between() (*expr, error) {
	e, err := p.concat()
	for err == nil {
		t := p.peek()
		not := false
		if t.is("NOT") {
			if n := p.toks[min(p.at+1, len(p.toks)-1)]; !n.is("BETWEEN") && !n.is("IN") && !n.is("LIKE") && !n.is("ILIKE") {
				return e, nil
			}
			p.at++
			not = true
		}
		switch {
		case p.accept("BETWEEN"):
			e, err = p.range3(e, t.pos)
		case p.accept("IN"):
			e, err = p.in(e, t.pos)
		case p.accept("LIKE"):
			e, err = p.like(e, t.pos, "LIKE")
		case p.accept("ILIKE"):
			e, err = p.like(e, t.pos, "ILIKE")
		default:
			return e, nil
		}
		if err == nil {
			e.not = not
		}
	}
	return nil, err
}

func (p *parser) range3(e *expr, pos int) (*expr, error) {
	lo, err := p.concat()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	hi, err := p.concat()
	if err != nil {
		return nil, err
	}
	return p.make(opBetween, pos, "", e, lo, hi)
}

func (p *parser) in(e *expr, pos int) (*expr, error) {
	if !p.accept("(") {
		return nil, unsupported("IN without a list in brackets")
	}
	if p.peek().is("SELECT") || p.peek().is("FROM") || p.peek().is("WITH") {
		return nil, unsupported("a query inside of a query")
	}
	list, err := p.list()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return p.make(opIn, pos, "", append([]*expr{e}, list...)...)
}

func (p *parser) like(e *expr, pos int, name string) (*expr, error) {
	pattern, err := p.concat()
	if err != nil {
		return nil, err
	}
	args := []*expr{e, pattern}
	if p.accept("ESCAPE") {
		esc, err := p.concat()
		if err != nil {
			return nil, err
		}
		args = append(args, esc)
	}
	return p.make(opLike, pos, name, args...)
}

func (p *parser) concat() (*expr, error) {
	return p.operators(opConcat, p.additive, "||")
}

func (p *parser) additive() (*expr, error) {
	return p.operators(opArith, p.multiplicative, "+", "-")
}

func (p *parser) multiplicative() (*expr, error) {
	return p.operators(opArith, p.unary, "*", "/", "//", "%")
}

// operators reads terms with signs between them, from left to right.
func (p *parser) operators(op op, term func() (*expr, error), signs ...string) (*expr, error) {
	e, err := term()
	for err == nil {
		t := p.peek()
		found := false
		for _, s := range signs {
			found = found || t.kind == tSign && t.text == s
		}
		if !found {
			return e, nil
		}
		p.at++
		var r *expr
		if r, err = term(); err == nil {
			e, err = p.make(op, t.pos, t.text, e, r)
		}
	}
	return nil, err
}

func (p *parser) unary() (*expr, error) {
	pos := p.peek().pos
	signs, minus := 0, 0
	for p.peek().is("-") || p.peek().is("+") {
		if p.take().text == "-" {
			minus++
		}
		signs++
	}
	if signs > maxDepth {
		return nil, tooDeep()
	}
	e, err := p.postfix()
	for ; err == nil && minus > 0; minus-- {
		if e.op == opNumber && !strings.HasPrefix(e.name, "-") && minus == 1 {
			e = &expr{op: opNumber, name: "-" + e.name, pos: pos}
			continue
		}
		e, err = p.make(opMinus, pos, "-", e)
	}
	return e, err
}

func (p *parser) postfix() (*expr, error) {
	e, err := p.primary()
	for err == nil && p.peek().is("[") {
		pos := p.take().pos
		var i *expr
		if i, err = p.expr(); err == nil {
			if err = p.expect("]"); err == nil {
				e, err = p.make(opIndex, pos, "", e, i)
			}
		}
	}
	return e, err
}

func (p *parser) primary() (*expr, error) {
	t := p.peek()
	word := func(op op) (*expr, error) { p.at++; return &expr{op: op, name: t.text, pos: t.pos}, nil }
	switch t.kind {
	case tNumber:
		return word(opNumber)
	case tString:
		return word(opString)
	case tQuoted:
		return p.named()
	case tName:
		switch {
		case t.is("TRUE"):
			return word(opTrue)
		case t.is("FALSE"):
			return word(opFalse)
		case t.is("NULL"):
			return word(opNull)
		case p.toks[p.at+1].kind == tString:
			return p.typed()
		case reserved(t.text) || t.is("INTERVAL") || t.is("EXTRACT") || t.is("EXISTS") || t.is("TRY_CAST"):
			if n := p.toks[p.at+1]; t.is("INTERVAL") && !n.is("(") && n.kind != tNumber || t.is("EXISTS") && !n.is("(") {
				return p.named() // a column of that name
			}
			return nil, p.unexpected()
		}
		return p.named()
	case tSign:
		if !t.is("(") {
			break
		}
		p.at++
		if p.peek().is("SELECT") || p.peek().is("WITH") || p.peek().is("FROM") || p.peek().is("VALUES") {
			return nil, unsupported("a query inside of a query")
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		if p.peek().is(",") {
			return nil, unsupported("a row of values")
		}
		return e, p.expect(")")
	}
	return nil, p.unexpected()
}

// typed reads a type's name and a text.
func (p *parser) typed() (*expr, error) {
	t, s := p.take(), p.peek()
	o := opDate
	switch {
	case t.is("DATE"):
	case t.is("TIMESTAMP"), t.is("DATETIME"):
		o = opTimestamp
	case reserved(t.text):
		return nil, near(s, p.q)
	default:
		return nil, unsupported("a literal of type %s", t.text)
	}
	p.at++
	return &expr{op: o, name: s.text, pos: t.pos}, nil
}

// named reads a column or a call.
func (p *parser) named() (*expr, error) {
	t := p.take()
	if p.peek().is("(") {
		return p.call(t)
	}
	parts := []string{t.text}
	for p.peek().is(".") {
		n := p.toks[min(p.at+1, len(p.toks)-1)]
		if n.kind != tName && n.kind != tQuoted {
			p.at++
			return nil, p.unexpected()
		}
		p.at += 2
		parts = append(parts, n.text)
	}
	switch {
	case p.peek().is("(") || len(parts) > 2:
		return nil, unsupported("names of more than two parts")
	case len(parts) == 2:
		return &expr{op: opColumn, table: parts[0], name: parts[1], pos: t.pos}, nil
	}
	return &expr{op: opColumn, name: parts[0], pos: t.pos}, nil
}

func (p *parser) call(t token) (*expr, error) {
	p.at++
	e := &expr{op: opCall, name: strings.ToLower(t.text), pos: t.pos}
	switch {
	case p.accept("*"):
		if e.name != "count" {
			return nil, unsupported("a star in %s", e.name)
		}
		e.name, e.flag = "count_star", false
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	case p.accept(")"):
	default:
		if p.accept("DISTINCT") {
			e.flag = true
		}
		args, err := p.list()
		if err != nil {
			return nil, err
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
		distinct := e.flag
		if e, err = p.make(opCall, t.pos, e.name, args...); err != nil {
			return nil, err
		}
		e.flag = distinct
	}
	if n := p.peek(); n.is("OVER") || n.is("FILTER") || n.is("WITHIN") || n.is(".") {
		return nil, unsupported("%s( … ) %s", e.name, strings.ToUpper(n.text))
	}
	return e, nil
}

// reserved words cannot name a column, a table or an alias without quotes.
func reserved(word string) bool { return reservedWords[strings.ToUpper(word)] }

var reservedWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`ALL ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASYMMETRIC BOTH CASE CAST CHECK COLLATE
COLUMN CONSTRAINT CREATE CROSS DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR FOREIGN FROM FULL GLOB
GROUP HAVING ILIKE IN INITIALLY INNER INTERSECT INTO IS ISNULL JOIN LAMBDA LATERAL LEADING LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL
OFFSET ON ONLY OR ORDER OUTER OVERLAPS PIVOT PLACING POSITIONAL PRIMARY QUALIFY REFERENCES RETURNING RIGHT SELECT SEMI SHOW SIMILAR
SOME SUMMARIZE SYMMETRIC TABLE TABLESAMPLE THEN TO TRAILING TRUE UNION UNIQUE UNPIVOT USING VARIADIC WHEN WHERE WINDOW WITH BETWEEN`) {
		m[w] = true
	}
	return m
}()
