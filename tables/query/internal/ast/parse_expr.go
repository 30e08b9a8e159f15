package ast

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
)

// make returns an expression over args, or an error if it is deeper than maxDepth.
func (p *parser) make(op Op, pos int, name string, args ...*Expr) (*Expr, error) {
	expr := &Expr{Op: op, Name: name, Args: args, pos: pos}
	for _, a := range args {
		expr.depth = max(expr.depth, a.depth+1)
	}
	if expr.depth > maxDepth {
		return nil, tooDeep()
	}
	return expr, nil
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
		expr, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, expr)
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
	expr, err := p.is()
	for ; err == nil && nots > 0; nots-- {
		expr, err = p.make(OpNot, pos, "NOT", expr)
	}
	return expr, err
}

func (p *parser) is() (*Expr, error) {
	expr, err := p.compare()
	for err == nil {
		pos := p.peek().pos
		switch {
		case p.accept("ISNULL"):
			expr, err = p.make(OpIsNull, pos, "", expr)
		case p.accept("NOTNULL"), p.accept("NOT", "NULL"):
			if expr, err = p.make(OpIsNull, pos, "", expr); err == nil {
				expr.Not = true
			}
		case p.accept("IS"):
			expr, err = p.isWhat(expr, pos)
		default:
			return expr, nil
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
	default:
		return nil, p.unexpected()
	}
	if err == nil {
		out.Not = not
	}
	return out, err
}

func (p *parser) compare() (*Expr, error) {
	expr, err := p.between()
	if err != nil {
		return nil, err
	}
	tok := p.peek()
	if tok.kind != tSign {
		return expr, nil
	}
	name := tok.text
	switch name {
	case "=", "<>", "<", "<=", ">", ">=":
	case "==":
		name = "="
	case "!=":
		name = "<>"
	default:
		return expr, nil
	}
	p.at++
	r, err := p.between()
	if err != nil {
		return nil, err
	}
	return p.make(OpCompare, tok.pos, name, expr, r)
}

// between reads an operand and the BETWEEN, IN and LIKE that follow it.
func (p *parser) between() (*Expr, error) {
	expr, err := p.concat()
	for err == nil {
		tok := p.peek()
		not := false
		if tok.is("NOT") {
			if n := p.toks[min(p.at+1, len(p.toks)-1)]; !n.is("BETWEEN") && !n.is("IN") && !n.is("LIKE") &&
				!n.is("ILIKE") && !n.is("SIMILAR") {
				return expr, nil
			}
			p.at++
			not = true
		}
		switch {
		case p.accept("BETWEEN"):
			expr, err = p.range3(expr, tok.pos)
		case p.accept("IN"):
			expr, err = p.in(expr, tok.pos)
		case p.accept("LIKE"):
			expr, err = p.like(expr, tok.pos, "LIKE")
		case p.accept("ILIKE"):
			expr, err = p.like(expr, tok.pos, "ILIKE")
		default:
			return expr, nil
		}
		switch {
		case err == nil && not && expr.Op == OpCall:
			expr, err = p.make(OpNot, tok.pos, "NOT", expr)
		case err == nil:
			expr.Not = not
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

// in reads the operand of IN: a list, or a column of lists.
func (p *parser) in(e *Expr, pos int) (*Expr, error) {
	if !p.accept("(") {
		list, err := p.concat()
		if err != nil {
			return nil, err
		}
		return p.make(OpCall, pos, "contains", list, e)
	}
	if err := p.noQuery(); err != nil {
		return nil, err
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
	expr, err := term()
	for err == nil {
		tok := p.peek()
		found := false
		for _, s := range signs {
			found = found || tok.kind == tSign && tok.text == s
		}
		if !found {
			return expr, nil
		}
		p.at++
		var r *Expr
		if r, err = term(); err == nil {
			expr, err = p.make(op, tok.pos, tok.text, expr, r)
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
	expr, err := p.postfix()
	for ; err == nil && minus > 0; minus-- {
		// One literal: -9223372036854775808 fits.
		if expr.Op == OpNumber && !strings.HasPrefix(expr.Name, "-") && minus == 1 {
			expr = &Expr{Op: OpNumber, Name: "-" + expr.Name, pos: pos}
			continue
		}
		expr, err = p.make(OpMinus, pos, "-", expr)
	}
	return expr, err
}

// postfix reads an operand and the [ ] and :: that follow it.
func (p *parser) postfix() (*Expr, error) {
	expr, err := p.primary()
	for err == nil {
		pos := p.peek().pos
		switch {
		case p.accept("["):
			expr, err = p.index(expr, pos)
		case p.accept("::"):
			expr, err = p.castTo(expr, pos, false)
		default:
			return expr, nil
		}
	}
	return nil, err
}

func (p *parser) index(e *Expr, pos int) (*Expr, error) {
	if p.peek().is(":") {
		return nil, sqlerr.Unsupported("a slice of a list")
	}
	expr, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek().is(":") {
		return nil, sqlerr.Unsupported("a slice of a list")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return p.make(OpIndex, pos, "", e, expr)
}

// castTo reads the type that e is cast to.
func (p *parser) castTo(e *Expr, pos int, try bool) (*Expr, error) {
	typ, err := p.sqlType()
	if err != nil {
		return nil, err
	}
	out, err := p.make(OpCast, pos, "", e)
	if err == nil {
		out.Type, out.Flag = typ, try
	}
	return out, err
}

func (p *parser) primary() (*Expr, error) {
	tok := p.peek()
	word := func(op Op) (*Expr, error) { p.at++; return &Expr{Op: op, Name: tok.text, pos: tok.pos}, nil }
	switch tok.kind {
	case tNumber:
		return word(OpNumber)
	case tString:
		return word(OpString)
	case tQuoted:
		return p.named()
	case tName:
		switch {
		case tok.is("TRUE"):
			return word(OpTrue)
		case tok.is("FALSE"):
			return word(OpFalse)
		case tok.is("NULL"):
			return word(OpNull)
		}
		return p.word(tok)
	case tSign:
		if p.accept("(") {
			return p.brackets()
		}
	}
	return nil, p.unexpected()
}

// brackets reads an expression in brackets.
func (p *parser) brackets() (*Expr, error) {
	if err := p.noQuery(); err != nil {
		return nil, err
	}
	expr, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek().is(",") {
		return nil, sqlerr.Unsupported("a row of values")
	}
	return expr, p.expect(")")
}

// word reads an expression that begins with a name: one with syntax of its own, a typed literal, a column or a call.
func (p *parser) word(t token) (*Expr, error) {
	next := p.toks[p.at+1]
	if next.is("(") {
		if read := bracketSyntax[strings.ToUpper(t.text)]; read != nil {
			p.at += 2
			expr, err := read(p, t)
			if err != nil {
				return nil, err
			}
			return expr, p.expect(")")
		}
	}
	switch {
	case t.is("CASE"):
		p.at++
		return p.caseOf(t.pos)
	case t.is("INTERVAL") && (next.kind == tNumber || next.kind == tString || next.is("(")):
		return nil, sqlerr.Unsupported("an interval")
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
	}
}

func (p *parser) castCall(t token) (*Expr, error) {
	expr, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	return p.castTo(expr, t.pos, t.is("TRY_CAST"))
}

func (p *parser) extract(t token) (*Expr, error) {
	part := p.peek()
	if part.kind != tName && part.kind != tString && part.kind != tQuoted {
		return nil, p.unexpected()
	}
	p.at++
	if err := p.expect("FROM"); err != nil {
		return nil, err
	}
	expr, err := p.expr()
	if err != nil {
		return nil, err
	}
	name := &Expr{Op: OpString, Name: strings.ToLower(part.text), pos: part.pos}
	return p.make(OpCall, t.pos, "date_part", name, expr)
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
	tok, token := p.take(), p.peek()
	o := OpDate
	switch {
	case tok.is("DATE"):
	case tok.is("TIMESTAMP"), tok.is("DATETIME"):
		o = OpTimestamp
	case reserved(tok.text):
		return nil, syntaxErrorAt(token, p.q)
	default:
		return nil, sqlerr.Unsupported("a literal of type %s", tok.text)
	}
	p.at++
	return &Expr{Op: o, Name: token.text, pos: tok.pos}, nil
}

// named reads a column or a call.
func (p *parser) named() (*Expr, error) {
	tok := p.take()
	if p.peek().is("(") {
		return p.call(tok)
	}
	parts := []string{tok.text}
	for p.peek().is(".") {
		token := p.toks[min(p.at+1, len(p.toks)-1)]
		if token.kind != tName && token.kind != tQuoted {
			p.at++
			return nil, p.unexpected()
		}
		p.at += 2
		parts = append(parts, token.text)
	}
	switch {
	case p.peek().is("(") || len(parts) > 2:
		return nil, sqlerr.Unsupported("names of more than two parts")
	case len(parts) == 2:
		return &Expr{Op: OpColumn, Table: parts[0], Name: parts[1], pos: tok.pos}, nil
	}
	return &Expr{Op: OpColumn, Name: parts[0], pos: tok.pos}, nil
}

func (p *parser) call(t token) (*Expr, error) {
	p.at++
	expr := &Expr{Op: OpCall, Name: strings.ToLower(t.text), pos: t.pos}
	switch {
	case p.accept("*"):
		if expr.Name != "count" {
			return nil, sqlerr.Unsupported("a star in %s", expr.Name)
		}
		expr.Name = "count_star"
	case p.peek().is(")"):
	default:
		distinct := p.accept("DISTINCT")
		if err := p.without(expr.Name+"(", "BOTH", "LEADING", "TRAILING", "FROM"); err != nil {
			return nil, err
		}
		args, err := p.list()
		if err == nil {
			err = p.without(expr.Name+"( …", "FROM", "FOR", "ORDER")
		}
		if err != nil {
			return nil, err
		}
		if expr, err = p.make(OpCall, t.pos, expr.Name, args...); err != nil {
			return nil, err
		}
		expr.Flag = distinct
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return expr, p.without(expr.Name+"( … )", "WITHIN", "FILTER", "OVER", ".")
}

// without is the error for one of the words that DuckDB allows after what was read.
func (p *parser) without(read string, words ...string) error {
	for _, word := range words {
		if p.peek().is(word) {
			return sqlerr.Unsupported("%s %s", read, word)
		}
	}
	return nil
}
