package ast

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// make returns an expression over args, or an error if it is deeper than maxDepth.
func (p *parser) make(op Op, pos int, name string, args ...*Expr) (*Expr, error) {
	e := &Expr{Op: op, Name: name, Args: args, pos: pos}
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

// expr reads an expression. The methods from here on go by precedence, loosest first.
func (p *parser) expr() (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, tooDeep()
	}
	defer func() { p.depth-- }()
	return p.chain("OR", OpOr, func() (*Expr, error) { return p.chain("AND", OpAnd, p.not) })
}

// chain reads terms joined by a word into one node with many arguments, so that a long AND or OR is not deep.
func (p *parser) chain(word string, op Op, term func() (*Expr, error)) (*Expr, error) {
	pos := p.peek().pos
	first, err := term()
	if err != nil || !p.peek().is(word) {
		return first, err
	}
	terms := []*Expr{first}
	for p.accept(word) {
		t, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return p.make(op, pos, word, terms...)
}

func (p *parser) not() (*Expr, error) {
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
		e, err = p.make(OpNot, pos, "NOT", e)
	}
	return e, err
}

func (p *parser) is() (*Expr, error) {
	e, err := p.compare()
	for err == nil {
		pos := p.peek().pos
		switch {
		case p.accept("ISNULL"):
			e, err = p.make(OpIsNull, pos, "", e)
		case p.accept("NOTNULL"), p.accept("NOT", "NULL"):
			if e, err = p.make(OpIsNull, pos, "", e); err == nil {
				e.Not = true
			}
		case p.accept("IS"):
			e, err = p.isWhat(e, pos)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) isWhat(e *Expr, pos int) (out *Expr, err error) {
	not := p.accept("NOT")
	switch {
	case p.accept("NULL"), p.accept("UNKNOWN"):
		out, err = p.make(OpIsNull, pos, "", e)
	case p.accept("TRUE"):
		out, err = p.make(OpIsBool, pos, "TRUE", e)
	case p.accept("FALSE"):
		out, err = p.make(OpIsBool, pos, "FALSE", e)
	case p.accept("DISTINCT", "FROM"):
		var r *Expr
		if r, err = p.compare(); err == nil {
			out, err = p.make(OpDistinct, pos, "", e, r)
		}
	default:
		return nil, p.unexpected()
	}
	if err == nil {
		out.Not = not
	}
	return out, err
}

func (p *parser) compare() (*Expr, error) {
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
	return p.make(OpCompare, t.pos, name, l, r)
}

// between reads an operand and the BETWEEN, IN and LIKE that follow it.
func (p *parser) between() (*Expr, error) {
	e, err := p.concat()
	for err == nil {
		t := p.peek()
		not := false
		if t.is("NOT") {
			if n := p.toks[min(p.at+1, len(p.toks)-1)]; !n.is("BETWEEN") && !n.is("IN") && !n.is("LIKE") &&
				!n.is("ILIKE") && !n.is("SIMILAR") {
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
		case p.accept("SIMILAR", "TO"):
			e, err = p.pair("regexp_full_match", t.pos, e)
		default:
			return e, nil
		}
		switch {
		case err == nil && not && e.Op == OpCall:
			e, err = p.make(OpNot, t.pos, "NOT", e)
		case err == nil:
			e.Not = not
		}
	}
	return nil, err
}

func (p *parser) range3(e *Expr, pos int) (*Expr, error) {
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
	return p.make(OpBetween, pos, "", e, lo, hi)
}

// in reads the operand of IN: a list, a query, or a column of lists.
func (p *parser) in(e *Expr, pos int) (*Expr, error) {
	if !p.accept("(") {
		list, err := p.concat()
		if err != nil {
			return nil, err
		}
		return p.make(OpCall, pos, "contains", list, e)
	}
	if p.beginsQuery() {
		s, err := p.query()
		if err != nil {
			return nil, err
		}
		out, err := p.make(OpInQuery, pos, "", e)
		if err != nil {
			return nil, err
		}
		out.Query = s
		return out, p.expect(")")
	}
	list, err := p.list()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return p.make(OpIn, pos, "", append([]*Expr{e}, list...)...)
}

// pair reads a second operand and makes a call with both.
func (p *parser) pair(name string, pos int, e *Expr) (*Expr, error) {
	r, err := p.concat()
	if err != nil {
		return nil, err
	}
	return p.make(OpCall, pos, name, e, r)
}

func (p *parser) like(e *Expr, pos int, name string) (*Expr, error) {
	pattern, err := p.concat()
	if err != nil {
		return nil, err
	}
	args := []*Expr{e, pattern}
	if p.accept("ESCAPE") {
		esc, err := p.concat()
		if err != nil {
			return nil, err
		}
		args = append(args, esc)
	}
	return p.make(OpLike, pos, name, args...)
}

func (p *parser) concat() (*Expr, error) {
	return p.operators(OpConcat, p.additive, "||")
}

func (p *parser) additive() (*Expr, error) {
	return p.operators(OpArith, p.multiplicative, "+", "-")
}

func (p *parser) multiplicative() (*Expr, error) {
	return p.operators(OpArith, p.power, "*", "/", "//", "%")
}

func (p *parser) power() (*Expr, error) {
	return p.operators(OpArith, p.unary, "^", "**")
}

// operators reads terms joined by signs, from left to right.
func (p *parser) operators(op Op, term func() (*Expr, error), signs ...string) (*Expr, error) {
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
		var r *Expr
		if r, err = term(); err == nil {
			e, err = p.make(op, t.pos, t.text, e, r)
		}
	}
	return nil, err
}

func (p *parser) unary() (*Expr, error) {
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
		if e.Op == OpNumber && !strings.HasPrefix(e.Name, "-") && minus == 1 { // one literal: -9223372036854775808 fits
			e = &Expr{Op: OpNumber, Name: "-" + e.Name, pos: pos}
			continue
		}
		e, err = p.make(OpMinus, pos, "-", e)
	}
	return e, err
}

// postfix reads an operand and the [ ] and :: that follow it.
func (p *parser) postfix() (*Expr, error) {
	e, err := p.primary()
	for err == nil {
		pos := p.peek().pos
		switch {
		case p.accept("["):
			e, err = p.index(e, pos)
		case p.accept("::"):
			e, err = p.castTo(e, pos, false)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) index(e *Expr, pos int) (*Expr, error) {
	if p.peek().is(":") {
		return nil, sqlerr.Unsupported("a slice of a list")
	}
	i, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek().is(":") {
		return nil, sqlerr.Unsupported("a slice of a list")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return p.make(OpIndex, pos, "", e, i)
}

// castTo reads the type that e is cast to.
func (p *parser) castTo(e *Expr, pos int, try bool) (*Expr, error) {
	t, name, err := p.sqlType()
	if err != nil {
		return nil, err
	}
	out, err := p.make(OpCast, pos, name, e)
	if err == nil {
		out.Type, out.Flag = t, try
	}
	return out, err
}

func (p *parser) primary() (*Expr, error) {
	t := p.peek()
	word := func(op Op) (*Expr, error) { p.at++; return &Expr{Op: op, Name: t.text, pos: t.pos}, nil }
	switch t.kind {
	case tNumber:
		return word(OpNumber)
	case tString:
		return word(OpString)
	case tQuoted:
		return p.named()
	case tName:
		switch {
		case t.is("TRUE"):
			return word(OpTrue)
		case t.is("FALSE"):
			return word(OpFalse)
		case t.is("NULL"):
			return word(OpNull)
		}
		return p.word(t)
	case tSign:
		switch {
		case p.accept("("):
			return p.brackets(t.pos)
		case p.accept("["):
			return p.listOf(t.pos)
		}
	}
	return nil, p.unexpected()
}

// brackets reads an expression or a query in brackets.
func (p *parser) brackets(pos int) (*Expr, error) {
	if p.beginsQuery() {
		start := p.peek().pos
		s, err := p.query()
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(p.q[start:p.peek().pos])
		return &Expr{Op: OpQuery, Query: s, Name: text[:min(len(text), maxTitle)], pos: pos}, p.expect(")")
	}
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek().is(",") {
		return nil, sqlerr.Unsupported("a row of values")
	}
	return e, p.expect(")")
}

// listOf reads the elements of a list.
func (p *parser) listOf(pos int) (*Expr, error) {
	if p.accept("]") {
		return p.make(OpList, pos, "")
	}
	list, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.peek().is("FOR") {
		return nil, sqlerr.Unsupported("a list that is computed")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return p.make(OpList, pos, "", list...)
}

// word reads an expression that begins with a name: one with syntax of its own, a typed literal, a column or a call.
func (p *parser) word(t token) (*Expr, error) {
	next := p.toks[p.at+1]
	if next.is("(") {
		if read := bracketSyntax[strings.ToUpper(t.text)]; read != nil {
			p.at += 2
			e, err := read(p, t)
			if err != nil {
				return nil, err
			}
			return e, p.expect(")")
		}
	}
	switch {
	case t.is("CASE"):
		p.at++
		return p.caseOf(t.pos)
	case t.is("INTERVAL") && (next.kind == tNumber || next.kind == tString):
		p.at++
		return p.interval(t.pos)
	case t.is("INTERVAL") && next.is("("):
		return nil, sqlerr.Unsupported("an interval that is computed")
	case next.kind == tString:
		return p.typed()
	case (t.is("LEFT") || t.is("RIGHT")) && next.is("("):
		return p.named()
	case t.is("EXISTS") && next.is("("), reserved(t.text):
		return nil, p.unexpected()
	}
	return p.named()
}

// bracketSyntax are the functions whose arguments have words between them. They leave the closing bracket to the
// caller. init fills the map, because its functions use it through expr.
var bracketSyntax map[string]func(p *parser, t token) (*Expr, error)

func init() {
	bracketSyntax = map[string]func(p *parser, t token) (*Expr, error){
		"CAST": (*parser).castCall, "TRY_CAST": (*parser).castCall, "EXTRACT": (*parser).extract,
		"SUBSTRING": (*parser).substring, "TRIM": (*parser).trim, "POSITION": (*parser).position,
	}
}

func (p *parser) castCall(t token) (*Expr, error) {
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	return p.castTo(e, t.pos, t.is("TRY_CAST"))
}

// grammatical makes a call that DuckDB's grammar rewrites to a function: it names such columns with its schema, main.
func (p *parser) grammatical(pos int, name string, args ...*Expr) (*Expr, error) {
	e, err := p.make(OpCall, pos, name, args...)
	if err == nil {
		e.Table = "main"
	}
	return e, err
}

func (p *parser) extract(t token) (*Expr, error) {
	part := p.take()
	if part.kind != tName && part.kind != tString && part.kind != tQuoted {
		p.at--
		return nil, p.unexpected()
	}
	if err := p.expect("FROM"); err != nil {
		return nil, err
	}
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	return p.grammatical(t.pos, "date_part", &Expr{Op: OpString, Name: strings.ToLower(part.text), pos: part.pos}, e)
}

// substring reads (x, from, count) or (x FROM from FOR count).
func (p *parser) substring(t token) (*Expr, error) {
	args, err := p.list()
	if err != nil {
		return nil, err
	}
	for _, word := range [...]string{"FROM", "FOR"} {
		if !p.accept(word) {
			continue
		}
		if word == "FOR" && len(args) == 1 {
			args = append(args, &Expr{Op: OpNumber, Name: "1", pos: t.pos})
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	return p.grammatical(t.pos, "substring", args...)
}

// trim reads [BOTH | LEADING | TRAILING] [characters] FROM x, or x, characters.
func (p *parser) trim(t token) (*Expr, error) {
	name := "trim"
	switch {
	case p.accept("LEADING"):
		name = "ltrim"
	case p.accept("TRAILING"):
		name = "rtrim"
	default:
		p.accept("BOTH")
	}
	var args []*Expr
	var err error
	if !p.peek().is("FROM") {
		if args, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.accept("FROM") {
		operands, err := p.list()
		if err != nil {
			return nil, err
		}
		args = append(operands, args...)
	}
	return p.grammatical(t.pos, name, args...)
}

func (p *parser) position(t token) (*Expr, error) {
	what, err := p.concat()
	if err != nil {
		return nil, err
	}
	if err := p.expect("IN"); err != nil {
		return nil, err
	}
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	return p.grammatical(t.pos, "position", e, what)
}

// caseOf reads CASE up to END. CASE with an operand compares it with each value.
func (p *parser) caseOf(pos int) (*Expr, error) {
	var operand *Expr
	var err error
	if !p.peek().is("WHEN") {
		if operand, err = p.expr(); err != nil {
			return nil, err
		}
	}
	var args []*Expr
	for p.accept("WHEN") {
		cond, err := p.expr()
		if err == nil && operand != nil {
			cond, err = p.make(OpCompare, cond.pos, "=", operand, cond)
		}
		if err != nil {
			return nil, err
		}
		if err := p.expect("THEN"); err != nil {
			return nil, err
		}
		value, err := p.expr()
		if err != nil {
			return nil, err
		}
		args = append(args, cond, value)
	}
	if len(args) == 0 {
		return nil, p.unexpected()
	}
	last := &Expr{Op: OpNull, Name: "NULL", pos: pos}
	if p.accept("ELSE") {
		if last, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if err := p.expect("END"); err != nil {
		return nil, err
	}
	return p.make(OpCase, pos, "", append(args, last)...)
}

// typed reads a literal with a type before it: DATE '…' or TIMESTAMP '…'.
func (p *parser) typed() (*Expr, error) {
	t, s := p.take(), p.peek()
	o := OpDate
	switch {
	case t.is("DATE"):
	case t.is("TIMESTAMP"), t.is("DATETIME"):
		o = OpTimestamp
	case reserved(t.text):
		return nil, syntaxErrorAt(s, p.q)
	default:
		return nil, sqlerr.Unsupported("a literal of type %s", t.text)
	}
	p.at++
	return &Expr{Op: o, Name: s.text, pos: t.pos}, nil
}

// named reads a column or a call.
func (p *parser) named() (*Expr, error) {
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
		return nil, sqlerr.Unsupported("names of more than two parts")
	case len(parts) == 2:
		return &Expr{Op: OpColumn, Table: parts[0], Name: parts[1], pos: t.pos}, nil
	}
	return &Expr{Op: OpColumn, Name: parts[0], pos: t.pos}, nil
}

func (p *parser) call(t token) (*Expr, error) {
	p.at++
	e := &Expr{Op: OpCall, Name: strings.ToLower(t.text), pos: t.pos}
	switch {
	case p.accept("*"):
		if e.Name != "count" {
			return nil, sqlerr.Unsupported("a star in %s", e.Name)
		}
		e.Name = "count_star"
	case p.peek().is(")"):
	default:
		distinct := p.accept("DISTINCT")
		args, err := p.list()
		if err != nil {
			return nil, err
		}
		if e, err = p.make(OpCall, t.pos, e.Name, args...); err != nil {
			return nil, err
		}
		e.Flag = distinct
		if p.accept("ORDER", "BY") {
			if e.Order, err = p.order(); err != nil {
				return nil, err
			}
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return p.afterCall(e)
}

// afterCall reads the WITHIN GROUP and FILTER of a call.
func (p *parser) afterCall(e *Expr) (*Expr, error) {
	if p.peek().is("WITHIN") {
		if err := p.within(e); err != nil {
			return nil, err
		}
	}
	if p.peek().is("FILTER") && p.toks[p.at+1].is("(") {
		p.at += 2
		p.accept("WHERE")
		var err error
		if e.Filter, err = p.expr(); err != nil {
			return nil, err
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
		if e.depth = max(e.depth, e.Filter.depth+1); e.depth > maxDepth {
			return nil, tooDeep()
		}
	}
	if n := p.peek(); n.is("OVER") || n.is(".") {
		return nil, sqlerr.Unsupported("%s( … ) %s", e.Name, strings.ToUpper(n.text))
	}
	return e, nil
}

// within reads the WITHIN GROUP (ORDER BY x) of percentile_cont and percentile_disc.
func (p *parser) within(e *Expr) error {
	name := map[string]string{"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}[e.Name]
	if name == "" || len(e.Args) != 1 {
		return sqlerr.Unsupported("%s( … ) WITHIN GROUP", e.Name)
	}
	for _, w := range [...]string{"WITHIN", "GROUP", "(", "ORDER", "BY"} {
		if err := p.expect(w); err != nil {
			return err
		}
	}
	order, err := p.order()
	if err != nil {
		return err
	}
	if len(order) != 1 || order[0].Desc || order[0].Expr == nil {
		return sqlerr.Unsupported("%s( … ) WITHIN GROUP other than in ascending order of one expression", e.Name)
	}
	e.Name, e.Order = name, order
	return p.expect(")")
}
