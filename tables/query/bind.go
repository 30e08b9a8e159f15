package query

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// condition binds an expression that must be a truth value.
func (b *binder) condition(e *expr) (*node, error) {
	n, err := b.bind(e)
	if err != nil {
		return nil, err
	}
	return b.truth(n)
}

// truth makes a truth value of a node: a number is true unless it is 0.
func (b *binder) truth(n *node) (*node, error) {
	switch {
	case n.typ.Kind == tables.Bool || n.typ.Kind == tables.Null:
		return n, nil
	case isInteger(n.typ) && n.lit == nil:
		return b.compare("<>", n, b.number(big.NewRat(0, 1)))
	case isInteger(n.typ):
		return b.literal(boolType, literal{i: bit(n.lit.rat.Sign() != 0)})
	}
	return nil, unsupported("a condition of type %s", typeName(n))
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (b *binder) literal(t tables.Type, l literal) (*node, error) {
	return b.intern(&node{op: opLiteral, typ: t, lit: &l})
}

// number returns a whole number as a literal of the narrowest type: INTEGER, BIGINT or HUGEINT.
func (b *binder) number(r *big.Rat) *node {
	t := hugeType
	if x := r.Num(); x.IsInt64() {
		t = int64Type
		if v := x.Int64(); v == int64(int32(v)) {
			t.Bits = 32
		}
	}
	n, _ := b.intern(&node{op: opLiteral, typ: t, lit: &literal{rat: r}}) // one node is never too many
	return n
}

func (b *binder) bindAll(es []*expr) ([]*node, error) {
	out := make([]*node, len(es))
	for i, e := range es {
		var err error
		if out[i], err = b.bind(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bind finds what an expression means.
func (b *binder) bind(e *expr) (*node, error) {
	switch e.op {
	case opColumn:
		return b.column(e)
	case opStar:
		return nil, unsupported("a star inside of an expression")
	case opNumber:
		return b.bindNumber(e)
	case opString:
		return b.literal(textType, literal{s: e.name})
	case opNull:
		return b.literal(tables.Type{}, literal{null: true})
	case opTrue, opFalse:
		return b.literal(boolType, literal{i: bit(e.op == opTrue)})
	case opDate, opTimestamp:
		return b.timeLiteral(e.op, e.name)
	case opCall:
		return b.call(e)
	case opQuery:
		return b.scalar(e.sub)
	case opList:
		return nil, unsupported("a list")
	case opInterval:
		return nil, unsupported("an interval but behind + or -")
	case opArith:
		if n, err := b.shifted(e); n != nil || err != nil {
			return n, err
		}
	}
	args, err := b.bindAll(e.args)
	if err != nil {
		return nil, err
	}
	return b.operator(e, args)
}

// operator binds an operator over bound operands.
func (b *binder) operator(e *expr, args []*node) (*node, error) {
	switch e.op {
	case opNot, opAnd, opOr:
		return b.truths(&node{op: e.op, args: args})
	case opMinus:
		return b.minus(args[0])
	case opCompare:
		return b.compare(e.name, args[0], args[1])
	case opDistinct:
		return b.isDistinct(args[0], args[1], e.not)
	case opArith:
		return b.arith(e.name, args[0], args[1])
	case opConcat:
		for i, a := range args {
			var err error
			if args[i], err = b.asText(a); err != nil {
				return nil, err
			}
		}
		return b.intern(&node{op: opConcat, typ: textType, args: args})
	case opCast:
		return b.cast(args[0], e.typ, e.flag)
	case opCase:
		return b.caseOf(args)
	case opInQuery:
		return b.inQuery(args[0], e.sub, e.not)
	case opIn:
		return b.in(args, e.not)
	case opBetween:
		return b.between(args, e.not)
	case opLike:
		return b.like(e.name, args, e.not)
	case opIsNull:
		if a := args[0]; repOf(a.typ) == repOther && a.op != opColumn && a.op != opAggregate {
			return nil, unsupported("IS NULL of type %s", typeName(a))
		}
		return b.intern(&node{op: opIsNull, typ: boolType, args: args, not: e.not})
	case opIsBool:
		return b.truths(&node{op: opIsBool, name: e.name, args: args, not: e.not})
	case opIndex:
		return b.index(args[0], args[1])
	}
	return nil, unsupported("this expression")
}

// truths finishes a truth value of truth values.
func (b *binder) truths(n *node) (*node, error) {
	for i := range n.args {
		var err error
		if n.args[i], err = b.truth(n.args[i]); err != nil {
			return nil, err
		}
	}
	n.typ = boolType
	return b.intern(n)
}

// isDistinct binds l IS DISTINCT FROM r.
func (b *binder) isDistinct(l, r *node, not bool) (*node, error) {
	n, err := b.equal(l, r)
	if err != nil {
		return nil, err
	}
	if n.op != opCompare { // one side is out of the other's range, so that they are never equal
		return nil, unsupported("IS DISTINCT FROM of these")
	}
	return b.intern(&node{op: opDistinct, typ: boolType, args: n.args, not: not})
}

// column finds a column, or an alias of the select list where there is none.
func (b *binder) column(e *expr) (*node, error) {
	found := []*node{}
	tableThere := false
	for i := range b.tables {
		t := &b.tables[i]
		if e.table != "" && !strings.EqualFold(e.table, t.alias) {
			continue
		}
		tableThere = true
		for _, c := range t.names[strings.ToLower(e.name)] {
			found = append(found, &node{op: opColumn, name: t.t.Columns()[c].Name, tab: i, col: c, typ: t.t.Columns()[c].Type})
		}
	}
	switch {
	case len(found) == 1:
		return b.intern(found[0])
	case len(found) > 1:
		return nil, binderError("ambiguous reference to column name %q", e.name)
	case b.columnAround(e.table, e.name) && (e.table == "" && b.aliases[strings.ToLower(e.name)] == nil || e.table != "" && !tableThere):
		return nil, correlated(e.name)
	case e.table != "" && !tableThere:
		if b.columnNamed(e.table) {
			return nil, unsupported("a field of a struct")
		}
		return nil, fault.New(fault.NotFound, "query", fault.NoOffset, "no table %q in FROM; there are %s", e.table, b.tableNames())
	case e.table == "":
		if n, err := b.alias(e.name); n != nil || err != nil {
			return n, err
		}
		if slices.ContainsFunc(b.tables, func(t bound) bool { return strings.EqualFold(t.alias, e.name) }) {
			return nil, unsupported("a table as a value")
		}
		switch strings.ToLower(e.name) {
		case "rowid", "current_date", "current_timestamp", "current_time", "localtime", "localtimestamp":
			return nil, unsupported("%s", e.name)
		}
	}
	return nil, b.noColumn(e.name)
}

func (b *binder) columnNamed(name string) bool {
	return slices.ContainsFunc(b.tables, func(t bound) bool { return len(t.names[strings.ToLower(name)]) > 0 })
}

func (b *binder) tableNames() string {
	var s []string
	for _, t := range b.tables {
		s = append(s, t.alias)
	}
	return strings.Join(s, ", ")
}

func (b *binder) noColumn(name string) error {
	if len(b.tables) == 0 {
		return fault.New(fault.NotFound, "query", fault.NoOffset, "no column %q; there is no FROM", name)
	}
	var s []string
	for _, t := range b.tables {
		s = append(s, tables.Names(t.t.Columns()))
	}
	return fault.New(fault.NotFound, "query", fault.NoOffset, "no column %q; there are %s", name, strings.Join(s, ", "))
}

// alias binds what an alias of the select list stands for; nil if there is none.
func (b *binder) alias(name string) (*node, error) {
	name = strings.ToLower(name)
	e := b.aliases[name]
	if e == nil || b.busy[name] {
		return nil, nil
	}
	key := aliasUse{name, b.allow, b.inAgg}
	if n := b.meant[key]; n != nil {
		return n, nil
	}
	b.busy[name] = true
	defer delete(b.busy, name)
	n, err := b.bind(e)
	if err == nil {
		b.meant[key] = n
	}
	return n, err
}

func (b *binder) bindNumber(e *expr) (*node, error) {
	if strings.ContainsAny(e.name, "eE") {
		f, err := strconv.ParseFloat(e.name, 64)
		if err != nil {
			return nil, binderError("%s is out of range", e.name)
		}
		return b.literal(doubleType, literal{f: f})
	}
	if len(e.name) > 64 {
		return nil, unsupported("a number of %d digits", len(e.name))
	}
	r, ok := new(big.Rat).SetString(e.name)
	if !ok {
		return nil, binderError("%q is no number", e.name)
	}
	if digits := strings.TrimPrefix(e.name, "-"); strings.Contains(digits, ".") {
		_, fraction, _ := strings.Cut(digits, ".")
		if len(digits)-1 > maxDigits {
			f, _ := r.Float64()
			return b.literal(doubleType, literal{f: f})
		}
		return b.literal(tables.Type{Kind: tables.Decimal, Precision: uint8(len(digits) - 1), Scale: uint8(len(fraction))}, literal{rat: r})
	}
	if r.Num().BitLen() > 126 {
		return nil, unsupported("the number %s", e.name)
	}
	return b.number(r), nil
}

func (b *binder) minus(n *node) (*node, error) {
	switch {
	case n.lit != nil && n.lit.rat != nil && n.typ.Kind == tables.Decimal:
		return b.literal(n.typ, literal{rat: new(big.Rat).Neg(n.lit.rat)})
	case n.lit != nil && n.lit.rat != nil:
		return b.number(new(big.Rat).Neg(n.lit.rat)), nil
	case n.typ.Kind == tables.Int64:
		return b.intern(&node{op: opMinus, typ: int64Type, args: []*node{n}})
	case n.typ.Kind == tables.Float64, n.typ.Kind == tables.Null, n.typ.Kind == tables.Huge, n.typ.Kind == tables.Decimal:
		return b.intern(&node{op: opMinus, typ: n.typ, args: []*node{n}})
	}
	return nil, unsupported("- of type %s", typeName(n))
}

// compare binds a comparison, after both sides were brought to one type.
func (b *binder) compare(name string, l, r *node) (*node, error) {
	if l.lit != nil && r.lit == nil { // the literal to the right
		flip := map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
		return b.compare(flip[name], r, l)
	}
	if r.lit != nil && r.lit.rat != nil && isInteger(l.typ) && l.lit == nil {
		return b.compareNumber(name, l, r.lit.rat)
	}
	l, r, err := b.unify(l, r)
	if err != nil {
		return nil, err
	}
	return b.intern(&node{op: opCompare, name: name, typ: boolType, args: []*node{l, r}})
}

// asScanned returns a condition as the scan of the original readers applies it: where a column of
// floats is compared with a number, and the comparison alone or joined by AND to others is the whole
// condition, NaN is not above the number. Anywhere else NaN is above every number, so also where floats of
// 32 bits meet a number with an exponent, one of 64 bits: they are converted before they are compared.
func (b *binder) asScanned(n *node) (*node, error) {
	switch {
	case n.op == opAnd:
		c := *n
		c.args = make([]*node, len(n.args))
		for i, a := range n.args {
			var err error
			if c.args[i], err = b.asScanned(a); err != nil {
				return nil, err
			}
		}
		return b.intern(&c)
	case n.op == opNot && n.args[0].op == opCompare:
		in := n.args[0]
		if opposite := map[string]string{"<": ">=", "<=": ">"}[in.name]; opposite != "" {
			c := *in
			c.name = opposite
			if got, err := b.asScanned(&c); err != nil || got != &c {
				return got, err
			}
		}
	case n.op == opCompare && (n.name == ">" || n.name == ">="):
		l, r := n.args[0], n.args[1]
		if l.op == opColumn && r.lit != nil && r.typ.Kind == tables.Float64 && !math.IsNaN(r.lit.f) && (l.typ.Bits == 64 || r.typ.Bits < 64) {
			c := *n
			c.name += ieee
			return b.intern(&c)
		}
	}
	return n, nil
}

// ieee is behind the name of a comparison that NaN never satisfies.
const ieee = "!"

// compareNumber compares integers with a number that may have a fraction or be out of their range.
func (b *binder) compareNumber(name string, l *node, r *big.Rat) (*node, error) {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and Denom is positive
	whole := r.IsInt()
	always := func(yes bool) (*node, error) { // but null where l is
		n, err := b.intern(&node{op: opIsNull, typ: boolType, args: []*node{l}, not: yes})
		if err != nil {
			return nil, err
		}
		null, err := b.literal(tables.Type{}, literal{null: true})
		if err != nil {
			return nil, err
		}
		// x IS NOT NULL OR NULL; x IS NULL AND NULL
		o := opAnd
		if yes {
			o = opOr
		}
		return b.intern(&node{op: o, typ: boolType, args: []*node{n, null}})
	}
	if !whole {
		switch name {
		case "=", "<>":
			return always(name == "<>")
		case "<":
			name = "<="
		case ">=":
			name = ">"
		}
	}
	lo, hi := limits(l.typ)
	switch {
	case l.typ.Kind == tables.Huge && floor.BitLen() > 126:
		return nil, unsupported("the number %s", r)
	case l.typ.Kind != tables.Huge && floor.Cmp(lo) < 0:
		return always(name == "<>" || name == ">" || name == ">=")
	case l.typ.Kind != tables.Huge && floor.Cmp(hi) > 0:
		return always(name == "<>" || name == "<" || name == "<=")
	}
	c, err := b.intern(&node{op: opLiteral, typ: l.typ, lit: &literal{rat: new(big.Rat).SetInt(floor), i: int64(lowBits(floor))}})
	if err != nil {
		return nil, err
	}
	return b.intern(&node{op: opCompare, name: name, typ: boolType, args: []*node{l, c}})
}

func lowBits(x *big.Int) uint64 {
	low := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)) // two's complement
	return low.Uint64()
}

// limits returns the least and the largest value of integers of a type.
func limits(t tables.Type) (lo, hi *big.Int) {
	one := big.NewInt(1)
	if t.Kind == tables.Uint64 {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(t.Bits)), one)
	}
	bits := uint(t.Bits)
	if t.Kind == tables.Huge {
		bits = 128
	}
	hi = new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(hi), hi.Sub(hi, one)
}

// unify brings two nodes to a type in which they can be compared.
func (b *binder) unify(l, r *node) (*node, *node, error) {
	lt, rt := l.typ, r.typ
	either := func(k tables.Kind) bool { return lt.Kind == k || rt.Kind == k }
	switch {
	case either(tables.Null):
		return l, r, nil
	case lt.Kind == rt.Kind && (lt.Kind == tables.Text || lt.Kind == tables.Binary || lt.Kind == tables.Bool || lt.Kind == tables.Date):
		return l, r, nil
	case r.lit != nil && rt.Kind == tables.Text:
		r2, err := b.parseAs(r.lit.s, lt)
		if err != nil {
			return nil, nil, err
		}
		if r2.typ.Equal(lt) {
			return l, r2, nil
		}
		return b.unify(l, r2)
	case l.lit != nil && lt.Kind == tables.Text:
		r2, l2, err := b.unify(r, l)
		return l2, r2, err
	case repOf(lt) == repOther || repOf(rt) == repOther || either(tables.Time):
		return nil, nil, unsupported("a comparison of type %s and type %s", typeName(l), typeName(r))
	case either(tables.Text) || either(tables.Binary):
		return nil, nil, cannotCompare(l, r)
	case isDay(lt) && isDay(rt):
		return b.both(l, r, tables.Type{Kind: tables.Timestamp})
	case lt.Kind == tables.Bool && isInteger(rt) || isInteger(lt) && rt.Kind == tables.Bool:
		return nil, nil, unsupported("a comparison of type %s and type %s", typeName(l), typeName(r))
	case !isNumber(lt) && lt.Kind != tables.Decimal || !isNumber(rt) && rt.Kind != tables.Decimal:
		return nil, nil, cannotCompare(l, r)
	}
	return b.unifyNumbers(l, r)
}

func isDay(t tables.Type) bool { return t.Kind == tables.Date || t.Kind == tables.Timestamp }

func cannotCompare(l, r *node) error {
	return binderError("cannot compare values of type %s and type %s", typeName(l), typeName(r))
}

// both converts two nodes to a type.
func (b *binder) both(l, r *node, t tables.Type) (*node, *node, error) {
	l2, err := b.convert(l, t)
	if err != nil {
		return nil, nil, err
	}
	r2, err := b.convert(r, t)
	return l2, r2, err
}

// unifyNumbers is unify of numbers.
func (b *binder) unifyNumbers(l, r *node) (*node, *node, error) {
	if t, ok := floatOf(l, r); ok {
		return b.both(l, r, t)
	}
	if l.lit != nil && r.lit != nil {
		order := int64(l.lit.rat.Cmp(r.lit.rat))
		c, err := b.literal(int64Type, literal{i: order, rat: big.NewRat(order, 1)})
		if err != nil {
			return nil, nil, err
		}
		zero, err := b.literal(int64Type, literal{rat: new(big.Rat)})
		return c, zero, err
	}
	switch {
	case l.typ.Equal(r.typ) || repOf(l.typ) == repInt && repOf(r.typ) == repInt:
		return l, r, nil
	case l.typ.Kind == tables.Decimal || r.typ.Kind == tables.Decimal:
		return b.both(l, r, meetNumbers(l.typ, r.typ))
	}
	return b.both(l, r, hugeType)
}

// floatOf returns the type in which two numbers meet if one of them is a float.
func floatOf(l, r *node) (tables.Type, bool) {
	if l.typ.Kind != tables.Float64 && r.typ.Kind != tables.Float64 {
		return tables.Type{}, false
	}
	t := doubleType
	single := func(n *node) bool { return n.typ.Kind != tables.Float64 || n.typ.Bits < 64 }
	if single(l) && single(r) {
		t.Bits = 32
	}
	return t, true
}

// convert brings a node to another type that holds its values, or the nearest of them.
func (b *binder) convert(n *node, t tables.Type) (*node, error) {
	switch {
	case n.typ.Equal(t) || n.typ.Kind == tables.Null:
		return n, nil
	case n.typ.Kind == tables.Timestamp && t.Kind == tables.Timestamp:
		return n, nil
	case n.typ.Kind == tables.Float64 && t.Kind == tables.Float64 && t.Bits == 64:
		return n, nil
	case n.lit != nil && n.lit.rat != nil && t.Kind == tables.Float64:
		f, _ := n.lit.rat.Float64()
		if t.Bits < 64 {
			g, _ := n.lit.rat.Float32()
			f = float64(g)
		}
		return b.literal(t, literal{f: f})
	case n.lit != nil && n.lit.rat != nil && isInteger(n.typ) && (t.Kind == tables.Int64 || t.Kind == tables.Uint64):
		if lo, hi := limits(t); within(n.lit.rat.Num(), lo, hi) {
			return b.integer(n, t)
		}
	case n.lit != nil && n.typ.Kind == tables.Text && t.Kind != tables.Text:
		return b.parseAs(n.lit.s, t)
	}
	return b.intern(&node{op: opCast, typ: t, args: []*node{n}})
}

// parseAs reads a text as a value of a type.
func (b *binder) parseAs(s string, t tables.Type) (*node, error) {
	bad := func() (*node, error) {
		return nil, binderError("could not convert string %q to %s", s, typeName(&node{typ: t}))
	}
	switch t.Kind {
	case tables.Date:
		d, rest, ok := parseDate(s)
		if !ok {
			return bad()
		}
		if rest != "" {
			return nil, unsupported("a date that reads %q", s)
		}
		return b.literal(t, literal{i: d})
	case tables.Timestamp:
		if d, rest, ok := parseDate(s); ok && t.Nano {
			return b.clockLiteral(s, d, rest, true)
		}
		return b.timeLiteral(opTimestamp, s)
	case tables.Int64, tables.Uint64, tables.Float64:
		r, ok := new(big.Rat).SetString(strings.TrimSpace(s))
		if !ok || len(s) > 64 || strings.ContainsAny(s, "/eExXoObBpP_") {
			if len(s) > 0 && strings.ContainsAny(s, "0123456789infINF") {
				return nil, unsupported("the text %q as a number", s)
			}
			return bad()
		}
		if t.Kind == tables.Float64 {
			f, _ := r.Float64()
			if t.Bits < 64 {
				g, _ := r.Float32()
				f = float64(g)
			}
			return b.literal(t, literal{f: f})
		}
		lo, hi := limits(t)
		if !r.IsInt() || r.Num().Cmp(lo) < 0 || r.Num().Cmp(hi) > 0 {
			return bad()
		}
		return b.literal(t, literal{rat: r, i: int64(lowBits(r.Num()))})
	case tables.Bool:
		switch strings.ToLower(s) {
		case "true", "t":
			return b.literal(boolType, literal{i: 1})
		case "false", "f":
			return b.literal(boolType, literal{})
		}
		return nil, unsupported("the text %q as a truth value", s)
	}
	return nil, unsupported("the text %q as a value of type %s", s, typeName(&node{typ: t}))
}

// arith binds + - * / // % ^.
func (b *binder) arith(name string, l, r *node) (*node, error) {
	if name == "^" || name == "**" {
		f := functions["pow"]
		return b.invoke(f, []*node{l, r})
	}
	if isDay(l.typ) || isDay(r.typ) {
		return b.dayArith(name, l, r)
	}
	for _, n := range [...]*node{l, r} {
		if !isNumeric(n.typ) && n.typ.Kind != tables.Null || n.typ.Kind == tables.Null && l.typ.Kind == r.typ.Kind {
			return nil, unsupported("%s of type %s and type %s", name, typeName(l), typeName(r))
		}
	}
	float, isFloat := floatOf(l, r)
	decimal := l.typ.Kind == tables.Decimal || r.typ.Kind == tables.Decimal
	huge := l.typ.Kind == tables.Huge || r.typ.Kind == tables.Huge
	switch {
	case (isFloat || decimal) && name == "//":
		return nil, unsupported("// of type %s and type %s", typeName(l), typeName(r))
	case isFloat:
		return b.arithAs(name, l, r, float)
	case name == "/":
		return b.arithAs(name, l, r, doubleType)
	case decimal:
		return b.decimals(name, l, r)
	case huge:
		return b.arithAs(name, l, r, hugeType)
	}
	t, ok := b.integerType(l, r)
	if !ok {
		return nil, unsupported("%s of type %s and type %s", name, typeName(l), typeName(r))
	}
	l, err := b.integer(l, t)
	if err != nil {
		return nil, err
	}
	if r, err = b.integer(r, t); err != nil {
		return nil, err
	}
	return b.intern(&node{op: opArith, name: name, typ: t, args: []*node{l, r}})
}

func isNumeric(t tables.Type) bool { return isNumber(t) || t.Kind == tables.Decimal }

// arithAs binds arithmetic of one type.
func (b *binder) arithAs(name string, l, r *node, t tables.Type) (*node, error) {
	l, r, err := b.both(l, r, t)
	if err != nil {
		return nil, err
	}
	return b.intern(&node{op: opArith, name: name, typ: t, args: []*node{l, r}})
}

// decimals binds arithmetic of decimals, and of integers with them. The result has the precision that DuckDB gives it:
// 18 digits where 64 bits hold the operands, as it computes in those; otherwise 38 at most.
func (b *binder) decimals(name string, l, r *node) (*node, error) {
	x, y := asDecimal(l.typ), asDecimal(r.typ)
	most := uint8(maxDigits)
	if max(x.Precision, y.Precision) <= 18 {
		most = 18
	}
	if name == "*" {
		t := tables.Type{Kind: tables.Decimal, Scale: x.Scale + y.Scale}
		if t.Scale > maxDigits {
			return nil, binderError("a product with %d digits behind the point: %d is the most", t.Scale, maxDigits)
		}
		if most == 18 && t.Scale >= 18 {
			most = maxDigits
		}
		t.Precision = max(min(x.Precision+y.Precision, most), t.Scale)
		l, err := b.convert(l, x)
		if err != nil {
			return nil, err
		}
		if r, err = b.convert(r, y); err != nil {
			return nil, err
		}
		return b.intern(&node{op: opArith, name: name, typ: t, args: []*node{l, r}})
	}
	t := meetNumbers(x, y)
	if name != "%" && (t.Precision < most || t.Precision < maxDigits && most > 18) {
		t.Precision++
	}
	return b.arithAs(name, l, r, t)
}

// integerType returns the type of a sum or product. All that fits is computed in 64 bits with a sign:
// where DuckDB has a narrower type, whose overflow is an error only if no rule rewrote the expression
// before, the result is right instead.
func (b *binder) integerType(l, r *node) (tables.Type, bool) {
	wide := tables.Type{Kind: tables.Uint64, Bits: 64}
	lo, hi := limits(wide)
	fits := func(n *node) bool {
		return n.typ.Equal(wide) || n.typ.Kind == tables.Null || n.lit != nil && n.lit.rat != nil && within(n.lit.rat.Num(), lo, hi)
	}
	if l.typ.Equal(wide) || r.typ.Equal(wide) {
		return wide, fits(l) && fits(r)
	}
	return int64Type, l.typ.Kind != tables.Huge && r.typ.Kind != tables.Huge
}

// integer gives a literal the type t; other integers that lie in memory alike stay.
func (b *binder) integer(n *node, t tables.Type) (*node, error) {
	if n.lit == nil || n.lit.null {
		return n, nil
	}
	return b.literal(t, literal{rat: n.lit.rat, i: int64(lowBits(n.lit.rat.Num()))})
}

// in binds x IN (a, b, …): a set where all are literals of x's own type, else equality with each.
func (b *binder) in(args []*node, not bool) (*node, error) {
	x := args[0]
	if s := newSet(x, args[1:]); s != nil {
		n, err := b.intern(&node{op: opIn, typ: boolType, args: args, not: not})
		if err == nil && n.set == nil {
			n.set = s
		}
		return n, err
	}
	terms := make([]*node, 0, len(args)-1)
	for _, a := range args[1:] {
		t, err := b.equal(x, a)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return b.negate(not, opOr, terms...)
}

// equal is compare for IN and IS DISTINCT FROM, where DuckDB casts texts and numbers to each other.
func (b *binder) equal(l, r *node) (*node, error) {
	n, err := b.compare("=", l, r)
	if err != nil && (l.typ.Kind == tables.Text) != (r.typ.Kind == tables.Text) {
		return nil, unsupported("a cast of type %s or %s", typeName(l), typeName(r))
	}
	return n, err
}

// negate returns NOT of terms joined by AND or OR, or without the NOT.
func (b *binder) negate(not bool, o op, terms ...*node) (*node, error) {
	n := terms[0]
	if len(terms) > 1 {
		var err error
		if n, err = b.intern(&node{op: o, typ: boolType, args: terms}); err != nil {
			return nil, err
		}
	}
	if !not {
		return n, nil
	}
	return b.intern(&node{op: opNot, typ: boolType, args: []*node{n}})
}

func (b *binder) between(args []*node, not bool) (*node, error) {
	lo, err := b.compare(">=", args[0], args[1])
	if err != nil {
		return nil, err
	}
	hi, err := b.compare("<=", args[0], args[2])
	if err != nil {
		return nil, err
	}
	return b.negate(not, opAnd, lo, hi)
}

func (b *binder) like(name string, args []*node, not bool) (*node, error) {
	for _, a := range args {
		if a.typ.Kind != tables.Text && a.typ.Kind != tables.Null {
			return nil, binderError("no function matches %s of type %s", name, typeName(a))
		}
	}
	var escape string
	if len(args) == 3 {
		if args[2].lit == nil || args[2].lit.null || len([]rune(args[2].lit.s)) != 1 {
			return nil, unsupported("an ESCAPE that is not one character")
		}
		escape = args[2].lit.s
	}
	n, err := b.intern(&node{op: opLike, name: name, typ: boolType, args: args, not: not})
	if err != nil || n.like != nil {
		return n, err
	}
	if p := args[1]; p.lit != nil && !p.lit.null {
		if n.like, err = newLike(p.lit.s, escape, name == "ILIKE"); err != nil {
			return nil, err
		}
		return n, nil
	}
	if p := args[1]; p.lit == nil && p.typ.Kind != tables.Null {
		return nil, unsupported("%s with a pattern that is no literal", name)
	}
	return n, nil
}

// index binds list[i].
func (b *binder) index(x, i *node) (*node, error) {
	if x.typ.Kind != tables.List || x.op != opColumn {
		return nil, unsupported("[ ] of type %s", typeName(x))
	}
	if repOf(*x.typ.Elem) == repOther {
		return nil, unsupported("[ ] of a list of lists")
	}
	if !isInteger(i.typ) || i.typ.Kind == tables.Huge {
		return nil, unsupported("[ ] with an index of type %s", typeName(i))
	}
	i, err := b.integer(i, int64Type)
	if err != nil {
		return nil, err
	}
	return b.intern(&node{op: opIndex, typ: *x.typ.Elem, args: []*node{x, i}})
}

// call binds a function or an aggregate.
func (b *binder) call(e *expr) (*node, error) {
	if aggregates[e.name] != nil {
		return b.aggregate(e)
	}
	f := functions[e.name]
	switch {
	case f == nil:
		return nil, unsupported("the function %s", e.name)
	case e.flag || e.filter != nil || e.order != nil:
		return nil, binderError("DISTINCT, ORDER BY and FILTER are for aggregates, and %s is none", e.name)
	case len(e.args) > maxArgs:
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "%s of %d values, at most %d", e.name, len(e.args), maxArgs)
	}
	args, err := b.bindAll(e.args)
	if err != nil {
		return nil, err
	}
	return b.invoke(f, args)
}

// invoke binds a function over bound arguments.
func (b *binder) invoke(f *function, args []*node) (*node, error) {
	if f.bind != nil {
		return f.bind(b, f, args)
	}
	return b.byParams(f, args)
}
