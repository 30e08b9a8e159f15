package ast

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// make returns an expression over args. It fails if the expression is deeper than maxDepth.
func (p *parser) make(op Op, name string, args ...*Expr) *Expr {
	expr := &Expr{Op: op, Name: name, Args: args}
	for _, arg := range args {
		expr.depth = max(expr.depth, arg.depth+1)
	}
	if expr.depth > maxDepth {
		return p.tooDeep()
	}
	return expr
}

func (p *parser) tooDeep() *Expr {
	return p.fail(fault.New(fault.Limit, "query", "an expression more than %d deep", maxDepth))
}

// expr reads an expression. The methods from here on go by precedence, loosest first.
func (p *parser) expr() *Expr {
	if p.depth++; p.depth > maxDepth {
		return p.tooDeep()
	}
	defer func() { p.depth-- }()
	return p.chain("OR", OpOr, func() *Expr { return p.chain("AND", OpAnd, p.not) })
}

// chain reads terms joined by a word into one node with many arguments.
func (p *parser) chain(word string, op Op, term func() *Expr) *Expr {
	// All terms are arguments of one node, so a long AND or OR is not deep.
	terms := []*Expr{term()}
	for p.accept(word) {
		terms = append(terms, term())
	}
	if len(terms) == 1 {
		return terms[0]
	}
	return p.make(op, word, terms...)
}

func (p *parser) not() *Expr {
	nots := 0
	for p.accept("NOT") {
		nots++
	}
	if nots > maxDepth {
		return p.tooDeep()
	}
	expr := p.is()
	for range nots {
		expr = p.make(OpNot, "NOT", expr)
	}
	return expr
}

func (p *parser) is() *Expr {
	expr := p.compare()
	for {
		not := false
		switch {
		case p.accept("ISNULL"):
			expr = p.make(OpIsNull, "", expr)
		case p.accept("NOTNULL"), p.accept("NOT", "NULL"):
			expr, not = p.make(OpIsNull, "", expr), true
		case p.accept("IS"):
			not = p.accept("NOT")
			switch word := strings.ToUpper(p.peek().text); {
			case p.accept("NULL"), p.accept("UNKNOWN"):
				expr = p.make(OpIsNull, "", expr)
			case p.accept("TRUE"), p.accept("FALSE"):
				expr = p.make(OpIsBool, word, expr)
			default:
				return p.unexpected()
			}
		default:
			return expr
		}
		expr.Not = not
	}
}

// comparisons are the signs of comparisons, with their names.
var comparisons = map[string]string{"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">",
	">=": ">="}

func (p *parser) compare() *Expr {
	expr := p.between()
	if tok := p.peek(); tok.kind == tSign && comparisons[tok.text] != "" {
		p.at++
		return p.make(OpCompare, comparisons[tok.text], expr, p.between())
	}
	return expr
}

// between reads an operand and the BETWEEN, IN and LIKE that follow it.
func (p *parser) between() *Expr {
	expr := p.binary(loosest)
	for {
		not := p.peek().is("NOT") &&
			slices.ContainsFunc([]string{"BETWEEN", "IN", "LIKE", "ILIKE", "SIMILAR"}, p.after(1).is)
		if not {
			p.at++
		}
		switch word := strings.ToUpper(p.peek().text); {
		case p.accept("BETWEEN"):
			low := p.binary(loosest)
			p.expect("AND")
			expr = p.make(OpBetween, "", expr, low, p.binary(loosest))
		case p.accept("IN"):
			expr = p.in(expr)
		case p.accept("LIKE"), p.accept("ILIKE"):
			args := []*Expr{expr, p.binary(loosest)}
			if p.accept("ESCAPE") {
				args = append(args, p.binary(loosest))
			}
			expr = p.make(OpLike, word, args...)
		default:
			return expr
		}
		if not && expr.Op == OpCall {
			expr = p.make(OpNot, "NOT", expr)
		} else {
			expr.Not = not
		}
	}
}

// in reads the operand of IN: a list, or a column of lists.
func (p *parser) in(x *Expr) *Expr {
	if !p.accept("(") {
		return p.make(OpCall, "contains", p.binary(loosest), x)
	}
	p.noQuery()
	list := p.list()
	p.expect(")")
	return p.make(OpIn, "", append([]*Expr{x}, list...)...)
}

// levels are the operators between two operands by precedence, loosest first. They are read from left to right.
var levels = [...]struct {
	op    Op
	signs []string
}{
	{OpConcat, []string{"||"}},
	{OpArith, []string{"+", "-"}},
	{OpArith, []string{"*", "/", "//", "%"}},
	{OpArith, []string{"^", "**"}},
}

// Numbers of levels.
const (
	loosest  = 0
	additive = 1
)

// binary reads operands joined by the operators of a level and tighter ones.
func (p *parser) binary(level int) *Expr {
	if level == len(levels) {
		return p.unary()
	}
	expr := p.binary(level + 1)
	for {
		tok := p.peek()
		if tok.kind != tSign || !slices.Contains(levels[level].signs, tok.text) {
			return expr
		}
		p.at++
		expr = p.make(levels[level].op, tok.text, expr, p.binary(level+1))
	}
}

func (p *parser) unary() *Expr {
	signs, minus := 0, 0
	for p.peek().is("-") || p.peek().is("+") {
		if p.take().text == "-" {
			minus++
		}
		signs++
	}
	if signs > maxDepth {
		return p.tooDeep()
	}
	expr := p.postfix()
	// The sign belongs to the literal, because -9223372036854775808 fits 64 bits and its positive number would not.
	if expr.Op == OpNumber && minus == 1 {
		return &Expr{Op: OpNumber, Name: "-" + expr.Name}
	}
	for range minus {
		expr = p.make(OpMinus, "-", expr)
	}
	return expr
}

// postfix reads an operand and the [ ] and :: that follow it.
func (p *parser) postfix() *Expr {
	expr := p.primary()
	for {
		switch {
		case p.accept("["):
			expr = p.index(expr)
		case p.accept("::"):
			expr = p.castTo(expr, false)
		default:
			return expr
		}
	}
}

func (p *parser) index(list *Expr) *Expr {
	slice := func() {
		if p.peek().is(":") {
			p.fail(sql.Unsupported("a slice of a list"))
		}
	}
	slice()
	number := p.expr()
	slice()
	p.expect("]")
	return p.make(OpIndex, "", list, number)
}

// castTo reads the type that x is cast to.
func (p *parser) castTo(x *Expr, try bool) *Expr {
	typ := p.sqlType()
	cast := p.make(OpCast, "", x)
	cast.Type, cast.Flag = typ, try
	return cast
}

func (p *parser) primary() *Expr {
	tok := p.peek()
	literal := func(op Op) *Expr {
		p.at++
		return &Expr{Op: op, Name: tok.text}
	}
	switch {
	case tok.kind == tNumber:
		return literal(OpNumber)
	case tok.kind == tString:
		return literal(OpString)
	case tok.kind == tQuoted:
		return p.named()
	case tok.kind == tName:
		switch {
		case tok.is("TRUE"):
			return literal(OpTrue)
		case tok.is("FALSE"):
			return literal(OpFalse)
		case tok.is("NULL"):
			return literal(OpNull)
		}
		return p.word(tok)
	case p.accept("("):
		p.noQuery()
		expr := p.expr()
		if p.peek().is(",") {
			return p.fail(sql.Unsupported("a row of values"))
		}
		p.expect(")")
		return expr
	}
	return p.unexpected()
}

// word reads an expression that begins with a name: one with syntax of its own, a typed literal, a column or a call.
func (p *parser) word(tok token) *Expr {
	next := p.after(1)
	called := next.is("(")
	switch {
	case called && (tok.is("CAST") || tok.is("TRY_CAST")):
		return p.castCall(tok.is("TRY_CAST"))
	case called && tok.is("EXTRACT"):
		return p.extract()
	case p.accept("CASE"):
		return p.caseOf()
	case tok.is("INTERVAL") && (next.kind == tNumber || next.kind == tString || called):
		return p.fail(sql.Unsupported("an interval"))
	case next.kind == tString:
		return p.typed()
	case called && (tok.is("LEFT") || tok.is("RIGHT")):
		return p.named()
	case called && tok.is("EXISTS"), reserved(tok.text):
		return p.unexpected()
	}
	return p.named()
}

// castCall reads CAST(x AS type).
func (p *parser) castCall(try bool) *Expr {
	p.at += 2
	expr := p.expr()
	p.expect("AS")
	cast := p.castTo(expr, try)
	p.expect(")")
	return cast
}

// extract reads EXTRACT(part FROM x).
func (p *parser) extract() *Expr {
	p.at += 2
	part := p.peek()
	if part.kind != tName && part.kind != tString && part.kind != tQuoted {
		return p.unexpected()
	}
	p.at++
	p.expect("FROM")
	expr := p.expr()
	p.expect(")")
	return p.make(OpCall, "date_part", &Expr{Op: OpString, Name: strings.ToLower(part.text)}, expr)
}

// caseOf reads CASE up to END. CASE with an operand compares it with each value.
func (p *parser) caseOf() *Expr {
	var operand *Expr
	if !p.peek().is("WHEN") {
		operand = p.expr()
	}
	var args []*Expr
	for p.accept("WHEN") {
		condition := p.expr()
		if operand != nil {
			condition = p.make(OpCompare, "=", operand, condition)
		}
		p.expect("THEN")
		args = append(args, condition, p.expr())
	}
	if len(args) == 0 {
		return p.unexpected()
	}
	last := &Expr{Op: OpNull, Name: "NULL"}
	if p.accept("ELSE") {
		last = p.expr()
	}
	p.expect("END")
	return p.make(OpCase, "", append(args, last)...)
}

// typed reads a literal with a type before it: DATE '…' or TIMESTAMP '…'.
func (p *parser) typed() *Expr {
	typ, text := p.take(), p.peek()
	op := OpDate
	switch {
	case typ.is("DATE"):
	case typ.is("TIMESTAMP"), typ.is("DATETIME"):
		op = OpTimestamp
	case reserved(typ.text):
		return p.fail(syntaxErrorAt(text, p.query))
	default:
		return p.fail(sql.Unsupported("a literal of type %s", typ.text))
	}
	p.at++
	return &Expr{Op: op, Name: text.text}
}

// named reads a column or a call.
func (p *parser) named() *Expr {
	tok := p.take()
	if p.accept("(") {
		return p.call(strings.ToLower(tok.text))
	}
	parts := []string{tok.text}
	for p.accept(".") {
		part := p.peek()
		if part.kind != tName && part.kind != tQuoted {
			return p.unexpected()
		}
		p.at++
		parts = append(parts, part.text)
	}
	switch {
	case p.peek().is("(") || len(parts) > 2:
		return p.fail(sql.Unsupported("names of more than two parts"))
	case len(parts) == 2:
		return &Expr{Op: OpColumn, Table: parts[0], Name: parts[1]}
	}
	return &Expr{Op: OpColumn, Name: parts[0]}
}

// call reads the arguments of a function.
func (p *parser) call(name string) *Expr {
	call := &Expr{Op: OpCall, Name: name}
	switch {
	case p.accept("*"):
		if name != "count" {
			return p.fail(sql.Unsupported("a star in %s", name))
		}
		call.Name = "count_star"
	case p.peek().is(")"):
	default:
		distinct := p.accept("DISTINCT")
		p.without(name+"(", "BOTH", "LEADING", "TRAILING", "FROM")
		args := p.list()
		p.without(name+"( …", "FROM", "FOR", "ORDER")
		call = p.make(OpCall, name, args...)
		call.Flag = distinct
	}
	p.expect(")")
	p.without(call.Name+"( … )", "WITHIN", "FILTER", "OVER", ".")
	return call
}

// without fails at one of the words that DuckDB allows after what was read.
func (p *parser) without(read string, words ...string) {
	for _, word := range words {
		if p.peek().is(word) {
			p.fail(sql.Unsupported("%s %s", read, word))
		}
	}
}
