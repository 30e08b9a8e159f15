package query

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

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
			if n := p.toks[min(p.at+1, len(p.toks)-1)]; !n.is("BETWEEN") && !n.is("IN") && !n.is("LIKE") && !n.is("ILIKE") && !n.is("SIMILAR") {
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
		case err == nil && not && e.op == opCall:
			e, err = p.make(opNot, t.pos, "NOT", e)
		case err == nil:
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

// in reads what stands behind IN: a list, a query, or a column of lists.
func (p *parser) in(e *expr, pos int) (*expr, error) {
	if !p.accept("(") {
		list, err := p.concat()
		if err != nil {
			return nil, err
		}
		return p.make(opCall, pos, "contains", list, e)
	}
	if p.beginsQuery() {
		s, err := p.query()
		if err != nil {
			return nil, err
		}
		out, err := p.make(opInQuery, pos, "", e)
		if err != nil {
			return nil, err
		}
		out.sub = s
		return out, p.expect(")")
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

// pair makes a call of what was read and what comes next.
func (p *parser) pair(name string, pos int, e *expr) (*expr, error) {
	r, err := p.concat()
	if err != nil {
		return nil, err
	}
	return p.make(opCall, pos, name, e, r)
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
	return p.operators(opArith, p.power, "*", "/", "//", "%")
}

func (p *parser) power() (*expr, error) {
	return p.operators(opArith, p.unary, "^", "**")
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

// postfix reads what [ ] and :: apply to.
func (p *parser) postfix() (*expr, error) {
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

func (p *parser) index(e *expr, pos int) (*expr, error) {
	if p.peek().is(":") {
		return nil, unsupported("a part of a list")
	}
	i, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.peek().is(":") {
		return nil, unsupported("a part of a list")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return p.make(opIndex, pos, "", e, i)
}

// castTo reads the type of a cast of e.
func (p *parser) castTo(e *expr, pos int, try bool) (*expr, error) {
	t, name, err := p.sqlType()
	if err != nil {
		return nil, err
	}
	out, err := p.make(opCast, pos, name, e)
	if err == nil {
		out.typ, out.flag = t, try
	}
	return out, err
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

// brackets reads an expression or a query that is in brackets.
func (p *parser) brackets(pos int) (*expr, error) {
	if p.beginsQuery() {
		from := p.peek().pos
		s, err := p.query()
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(p.q[from:p.peek().pos])
		return &expr{op: opQuery, sub: s, name: text[:min(len(text), maxTitle)], pos: pos}, p.expect(")")
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

// listOf reads the elements of a list.
func (p *parser) listOf(pos int) (*expr, error) {
	if p.accept("]") {
		return p.make(opList, pos, "")
	}
	list, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.peek().is("FOR") {
		return nil, unsupported("a list that is computed")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	return p.make(opList, pos, "", list...)
}

// word reads what begins with a name: an expression with a grammar of its own, a literal with a type, a column or a call.
func (p *parser) word(t token) (*expr, error) {
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
		return nil, unsupported("an interval that is computed")
	case next.kind == tString:
		return p.typed()
	case (t.is("LEFT") || t.is("RIGHT")) && next.is("("):
		return p.named()
	case t.is("EXISTS") && next.is("("), reserved(t.text):
		return nil, p.unexpected()
	}
	return p.named()
}

// bracketSyntax are the functions whose arguments have words between them. The closing bracket is not theirs.
var bracketSyntax map[string]func(p *parser, t token) (*expr, error)

func init() {
	bracketSyntax = map[string]func(p *parser, t token) (*expr, error){
		"CAST": (*parser).castCall, "TRY_CAST": (*parser).castCall, "EXTRACT": (*parser).extract,
		"SUBSTRING": (*parser).substring, "TRIM": (*parser).trim, "POSITION": (*parser).position,
	}
}

func (p *parser) castCall(t token) (*expr, error) {
	e, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	return p.castTo(e, t.pos, t.is("TRY_CAST"))
}

// grammatical makes a call that the grammar stands for; DuckDB writes its schema in front.
func (p *parser) grammatical(pos int, name string, args ...*expr) (*expr, error) {
	e, err := p.make(opCall, pos, name, args...)
	if err == nil {
		e.table = "main"
	}
	return e, err
}

func (p *parser) extract(t token) (*expr, error) {
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
	return p.grammatical(t.pos, "date_part", &expr{op: opString, name: strings.ToLower(part.text), pos: part.pos}, e)
}

// substring reads x, from, for; or x FROM from FOR for.
func (p *parser) substring(t token) (*expr, error) {
	args, err := p.list()
	if err != nil {
		return nil, err
	}
	for _, word := range [...]string{"FROM", "FOR"} {
		if !p.accept(word) {
			continue
		}
		if word == "FOR" && len(args) == 1 {
			args = append(args, &expr{op: opNumber, name: "1", pos: t.pos})
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
func (p *parser) trim(t token) (*expr, error) {
	name := "trim"
	switch {
	case p.accept("LEADING"):
		name = "ltrim"
	case p.accept("TRAILING"):
		name = "rtrim"
	default:
		p.accept("BOTH")
	}
	var args []*expr
	var err error
	if !p.peek().is("FROM") {
		if args, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.accept("FROM") {
		from, err := p.list()
		if err != nil {
			return nil, err
		}
		args = append(from, args...)
	}
	return p.grammatical(t.pos, name, args...)
}

func (p *parser) position(t token) (*expr, error) {
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

// caseOf reads CASE up to its END. One with an operand compares it with each value.
func (p *parser) caseOf(pos int) (*expr, error) {
	var operand *expr
	var err error
	if !p.peek().is("WHEN") {
		if operand, err = p.expr(); err != nil {
			return nil, err
		}
	}
	var args []*expr
	for p.accept("WHEN") {
		cond, err := p.expr()
		if err == nil && operand != nil {
			cond, err = p.make(opCompare, cond.pos, "=", operand, cond)
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
	last := &expr{op: opNull, name: "NULL", pos: pos}
	if p.accept("ELSE") {
		if last, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if err := p.expect("END"); err != nil {
		return nil, err
	}
	return p.make(opCase, pos, "", append(args, last)...)
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
		e.name = "count_star"
	case p.peek().is(")"):
	default:
		distinct := p.accept("DISTINCT")
		args, err := p.list()
		if err != nil {
			return nil, err
		}
		if e, err = p.make(opCall, t.pos, e.name, args...); err != nil {
			return nil, err
		}
		e.flag = distinct
		if p.accept("ORDER", "BY") {
			if e.order, err = p.order(); err != nil {
				return nil, err
			}
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return p.behindCall(e)
}

// behindCall reads WITHIN GROUP and FILTER.
func (p *parser) behindCall(e *expr) (*expr, error) {
	if p.peek().is("WITHIN") {
		if err := p.within(e); err != nil {
			return nil, err
		}
	}
	if p.peek().is("FILTER") && p.toks[p.at+1].is("(") {
		p.at += 2
		p.accept("WHERE")
		var err error
		if e.filter, err = p.expr(); err != nil {
			return nil, err
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
		if e.depth = max(e.depth, e.filter.depth+1); e.depth > maxDepth {
			return nil, tooDeep()
		}
	}
	if n := p.peek(); n.is("OVER") || n.is(".") {
		return nil, unsupported("%s( … ) %s", e.name, strings.ToUpper(n.text))
	}
	return e, nil
}

// within reads WITHIN GROUP (ORDER BY x), which percentile_cont and percentile_disc have.
func (p *parser) within(e *expr) error {
	name := map[string]string{"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}[e.name]
	if name == "" || len(e.args) != 1 {
		return unsupported("%s( … ) WITHIN GROUP", e.name)
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
	if len(order) != 1 || order[0].desc || order[0].e == nil {
		return unsupported("%s( … ) WITHIN GROUP but in ascending order of one expression", e.name)
	}
	e.name, e.order = name, order
	return p.expect(")")
}
