package query

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables"
)

// cast binds CAST, or TRY_CAST.
func (b *binder) cast(n *node, t tables.Type, try bool) (*node, error) {
	if n.typ.Kind != t.Kind && !castable(n.typ.Kind, t.Kind) || repOf(n.typ) == repOther {
		return nil, unsupported("a cast of type %s to type %s", typeName(n), sqlName(t))
	}
	if n.typ.Equal(t) && n.typ.Nano == t.Nano && (n.lit == nil || n.lit.rat == nil) {
		return n, nil
	}
	out, err := b.intern(&node{op: opCast, typ: t, args: []*node{n}, try: try})
	if err != nil || n.lit == nil || !isDay(t) {
		return out, err
	}
	return b.fold(out)
}

// fold makes a literal of a date or timestamp that is computed of literals, so that rows can be left out by it. One that
// cannot be computed stays: it is an error once there is a row.
func (b *binder) fold(n *node) (*node, error) {
	v, err := newEvaluator(b.ctx, nil).eval(n, &batch{n: 1})
	if err != nil {
		return n, nil //nolint:nilerr // it is one of evaluation
	}
	if v.null(0) {
		return b.literal(n.typ, literal{null: true})
	}
	return b.literal(n.typ, literal{i: v.i[0], ns: v.nanos(0)})
}

// asText binds a cast to text, of what is not one.
func (b *binder) asText(n *node) (*node, error) {
	if n.typ.Kind == tables.Text || n.typ.Kind == tables.Null {
		return n, nil
	}
	return b.cast(n, textType, false)
}

// castable reports whether values of a kind are cast to another here.
func castable(from, to tables.Kind) bool {
	number := func(k tables.Kind) bool {
		return k == tables.Int64 || k == tables.Uint64 || k == tables.Huge || k == tables.Float64 || k == tables.Decimal
	}
	switch {
	case from == tables.Null:
		return true
	case from == tables.Text || number(from) || from == tables.Bool:
		if from == tables.Text && (to == tables.Date || to == tables.Time || to == tables.Timestamp) {
			return true
		}
		return number(to) || to == tables.Bool || to == tables.Text
	case from == tables.Date:
		return to == tables.Timestamp || to == tables.Text
	case from == tables.Timestamp:
		return to == tables.Date || to == tables.Time || to == tables.Text
	case from == tables.Time:
		return to == tables.Text
	}
	return false
}

// caster is a cast of the values of a batch.
type caster struct {
	from, to tables.Type
	x, v     *vec
	try      bool
}

func (ev *evaluator) cast(n *node, x *vec) (*vec, error) {
	c := &caster{from: n.args[0].typ, to: n.typ, x: x, try: n.try, v: &vec{n: x.n, nulls: x.nulls}}
	if c.from.Kind == tables.Null {
		return allNull(n.typ, x.n), nil
	}
	switch c.to.Kind {
	case tables.Bool:
		c.v.t = make([]bool, x.n)
		return c.v, c.toBool()
	case tables.Int64, tables.Uint64:
		if widens(c.from, c.to) {
			c.v.i = x.i
			return c.v, nil
		}
		c.v.i = make([]int64, x.n)
		return c.v, c.toInt()
	case tables.Huge, tables.Decimal:
		c.v.i, c.v.h = make([]int64, x.n), make([]int64, x.n)
		return c.v, c.toBig()
	case tables.Float64:
		c.v.f = make([]float64, x.n)
		return c.v, c.toFloat()
	case tables.Text:
		return c.toText(ev)
	}
	c.v.i = make([]int64, x.n)
	return c.v, c.toTime()
}

// widens reports whether integers of a type lie in memory as those of another that holds them all.
func widens(from, to tables.Type) bool {
	switch {
	case from.Kind == to.Kind && (from.Kind == tables.Int64 || from.Kind == tables.Uint64):
		return from.Bits <= to.Bits
	case from.Kind == tables.Uint64 && to.Kind == tables.Int64:
		return from.Bits < to.Bits
	}
	return false
}

// each computes the values that are there. One for which f reports false is null for TRY_CAST, otherwise an error.
func (c *caster) each(f func(k int) bool) error {
	owned := false
	for k := range c.x.n {
		if c.x.null(k) || f(k) {
			continue
		}
		if !c.try {
			return fmt.Errorf("could not cast %s of type %s to type %s", c.shown(k), sqlName(c.from), sqlName(c.to))
		}
		if !owned {
			c.v.nulls = append(make([]bool, 0, c.x.n), c.x.nulls...)[:c.x.n]
			owned = true
		}
		c.v.nulls[k] = true
	}
	return nil
}

// shown is a value for an error.
func (c *caster) shown(k int) string {
	const most = 40 // bytes
	if repOf(c.from) == repBytes {
		s := c.x.bytes(k)
		return strconv.Quote(string(s[:min(len(s), most)]))
	}
	one := collector{typ: c.from}
	if one.add(c.x.at(k)) != nil {
		return "a value"
	}
	return string(one.vector().AppendCast(nil, 0))
}

// at returns value k of a vec as a vec of one value.
func (v *vec) at(k int) *vec {
	out := &vec{n: 1}
	if v.nulls != nil {
		out.nulls = v.nulls[k : k+1]
	}
	if v.t != nil {
		out.t = v.t[k : k+1]
	}
	if v.i != nil {
		out.i = v.i[k : k+1]
	}
	if v.h != nil {
		out.h = v.h[k : k+1]
	}
	if v.f != nil {
		out.f = v.f[k : k+1]
	}
	if v.lo != nil {
		out.data, out.lo, out.hi = v.data, v.lo[k:k+1], v.hi[k:k+1]
	}
	return out
}

func (c *caster) toBool() error {
	switch repOf(c.from) {
	case repBytes:
		return c.each(func(k int) (ok bool) {
			c.v.t[k], ok = parseBool(c.x.bytes(k))
			return ok
		})
	case repFloat:
		return c.each(func(k int) bool { c.v.t[k] = c.x.f[k] != 0; return true })
	case repBig:
		return c.each(func(k int) bool { c.v.t[k] = c.x.i[k] != 0 || c.x.h[k] != 0; return true })
	}
	return c.each(func(k int) bool { c.v.t[k] = c.x.i[k] != 0; return true })
}

func parseBool(s []byte) (value, ok bool) {
	switch strings.ToLower(string(s)) {
	case "true", "t", "yes", "y", "1":
		return true, true
	case "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

// toInt casts to integers of 64 bits or less: floats to the nearest, the even one of two; texts and decimals away from 0.
func (c *caster) toInt() error {
	lo, hi := limits(c.to)
	least, _ := new(big.Float).SetInt(lo).Float64()
	put := func(k int, x *big.Int) bool {
		if x == nil || !within(x, lo, hi) {
			return false
		}
		c.v.i[k] = int64(lowBits(x))
		return true
	}
	switch {
	case c.from.Kind == tables.Bool:
		return c.each(func(k int) bool { c.v.i[k] = bit(c.x.t[k]); return true })
	case c.from.Kind == tables.Text:
		return c.each(func(k int) bool { return put(k, parseWhole(c.x.bytes(k))) })
	case c.from.Kind == tables.Float64:
		return c.each(func(k int) bool {
			f := c.x.f[k]
			if math.IsNaN(f) || math.Abs(f) > 1<<65 || f < least { // DuckDB looks before it rounds
				return false
			}
			f = math.RoundToEven(f)
			if math.Abs(f) < 1<<62 && lo.IsInt64() && hi.IsInt64() {
				c.v.i[k] = int64(f)
				return c.v.i[k] >= lo.Int64() && c.v.i[k] <= hi.Int64()
			}
			x, _ := big.NewFloat(f).Int(nil)
			return put(k, x)
		})
	case repOf(c.from) == repInt && lo.IsInt64() && hi.IsInt64():
		l, h := lo.Int64(), hi.Int64()
		return c.each(func(k int) bool {
			c.v.i[k] = c.x.i[k]
			return c.x.i[k] >= l && c.x.i[k] <= h
		})
	}
	return c.each(func(k int) bool { return put(k, rounded(c.big(k), int(c.from.Scale))) })
}

// big returns an integer, or the digits of a decimal.
func (c *caster) big(k int) *big.Int {
	switch repOf(c.from) {
	case repBig:
		return bigInt(c.x.h[k], c.x.i[k])
	case repUint:
		return new(big.Int).SetUint64(uint64(c.x.i[k]))
	}
	if c.from.Kind == tables.Bool {
		return big.NewInt(bit(c.x.t[k]))
	}
	return big.NewInt(c.x.i[k])
}

var bigPowers = func() (p [2*maxDigits + 1]*big.Int) {
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

// rounded divides by a power of ten, halves away from 0.
func rounded(x *big.Int, digits int) *big.Int {
	if digits == 0 {
		return x
	}
	by := bigPowers[digits]
	half := new(big.Int).Rsh(by, 1)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	x = new(big.Int).Add(x, half)
	return x.Quo(x, by)
}

// roundRat returns a number times a power of ten, as an integer, halves away from 0.
func roundRat(r *big.Rat, digits int) *big.Int {
	x := new(big.Int).Mul(r.Num(), bigPowers[digits])
	half := new(big.Int).Rsh(r.Denom(), 1)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	x.Add(x, half)
	return x.Quo(x, r.Denom())
}

// parseNumber reads a decimal number with an exponent or without, and blanks around it.
func parseNumber(s []byte) *big.Rat {
	s = bytes.TrimSpace(s)
	const most = 64 // bytes, and of the exponent's value: longer ones are out of the range of 38 digits, or are zeros
	if len(s) == 0 || len(s) > most || bytes.ContainsAny(s, "/xXoObBpP_") {
		return nil
	}
	if at := bytes.IndexAny(s, "eE"); at >= 0 {
		if e, err := strconv.Atoi(string(s[at+1:])); err != nil || e > most || e < -most {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(string(s))
	if !ok {
		return nil
	}
	return r
}

// parseWhole reads a number and rounds it.
func parseWhole(s []byte) *big.Int {
	if len(s) < 19 {
		if x, err := strconv.ParseInt(string(s), 10, 64); err == nil {
			return big.NewInt(x)
		}
	}
	if r := parseNumber(s); r != nil {
		return roundRat(r, 0)
	}
	return nil
}

// toBig casts to HUGEINT or to a decimal.
func (c *caster) toBig() error {
	scale := int(c.to.Scale)
	lo, hi := limits(hugeType)
	if c.to.Kind == tables.Decimal {
		hi = new(big.Int).Sub(bigPowers[c.to.Precision], big.NewInt(1))
		lo = new(big.Int).Neg(hi)
	}
	put := func(k int, x *big.Int) bool {
		if x == nil || !within(x, lo, hi) {
			return false
		}
		c.v.i[k], c.v.h[k] = int64(lowBits(x)), int64(lowBits(shifted(x)))
		return true
	}
	switch {
	case c.from.Kind == tables.Text:
		return c.each(func(k int) bool {
			r := parseNumber(c.x.bytes(k))
			return r != nil && put(k, roundRat(r, scale))
		})
	case c.from.Kind == tables.Float64:
		return c.each(func(k int) bool {
			f := c.x.f[k]
			if c.to.Kind == tables.Decimal {
				// DuckDB moves the product off 0 by as much, so that 1.15 becomes 1.2.
				f = f * math.Pow10(scale)
				f = math.Round(f + math.Copysign(1e-9, f))
			} else {
				f = math.RoundToEven(f)
			}
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
			x, _ := big.NewFloat(f).Int(nil)
			return put(k, x)
		})
	case c.from.Kind != tables.Bool && repOf(c.from) == repInt:
		return c.each(func(k int) bool {
			return c.scaled(k, scale) || put(k, new(big.Int).Mul(big.NewInt(c.x.i[k]), bigPowers[scale]))
		})
	}
	more := scale - int(c.from.Scale)
	return c.each(func(k int) bool {
		x := c.big(k)
		if more >= 0 {
			return put(k, new(big.Int).Mul(x, bigPowers[more]))
		}
		return put(k, rounded(x, -more))
	})
}

// scaled sets a value of 64 bits times a power of ten, if 18 digits hold it.
func (c *caster) scaled(k, scale int) bool {
	if c.to.Kind == tables.Huge {
		c.v.i[k], c.v.h[k] = c.x.i[k], c.x.i[k]>>63
		return true
	}
	if scale > 18 || c.x.i[k] == math.MinInt64 {
		return false
	}
	high, low := bits.Mul64(abs(c.x.i[k]), powers[scale])
	if high != 0 || low >= powers[min(int(c.to.Precision), 18)] {
		return false
	}
	z := int64(low)
	if c.x.i[k] < 0 {
		z = -z
	}
	c.v.i[k], c.v.h[k] = z, z>>63
	return true
}

// powers are those of ten that 64 bits hold.
var powers = func() (p [19]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

func (c *caster) toFloat() error {
	single := c.to.Bits < 64
	return c.each(func(k int) bool {
		switch repOf(c.from) {
		case repBytes:
			f, ok := parseFloat(c.x.bytes(k), int(c.to.Bits))
			c.v.f[k] = f
			return ok
		case repFloat:
			c.v.f[k] = c.x.f[k]
		case repUint:
			if c.v.f[k] = float64(uint64(c.x.i[k])); single {
				c.v.f[k] = float64(float32(uint64(c.x.i[k])))
			}
		case repBig:
			c.v.f[k] = decimalFloat(c.x.h[k], c.x.i[k], int(c.from.Scale))
		default:
			if c.from.Kind == tables.Bool {
				c.v.f[k] = float64(bit(c.x.t[k]))
			} else if c.v.f[k] = float64(c.x.i[k]); single {
				c.v.f[k] = float64(float32(c.x.i[k]))
			}
		}
		if !single {
			return true
		}
		f := c.v.f[k]
		c.v.f[k] = float64(float32(f))
		return math.IsInf(f, 0) || !math.IsInf(c.v.f[k], 0) // it is in the range
	})
}

// parseFloat reads a number, nan or inf, with blanks around it.
func parseFloat(s []byte, bitSize int) (float64, bool) {
	s = bytes.TrimSpace(s)
	if bytes.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(s), bitSize)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// decimalFloat returns a decimal as a float.
func decimalFloat(h, l int64, scale int) float64 {
	if scale == 0 {
		return bigFloat(h, l)
	}
	if h == l>>63 && abs(l) < 1<<53 && scale < len(powers) {
		return float64(l) / float64(powers[scale]) // both are exact: the quotient is the nearest
	}
	f, _ := new(big.Rat).SetFrac(bigInt(h, l), bigPowers[scale]).Float64()
	return f
}

func (c *caster) toText(ev *evaluator) (*vec, error) {
	all := collector{typ: c.from}
	if err := all.add(c.x); err != nil {
		return nil, err
	}
	from := all.vector()
	w := ev.texts(c.x.n)
	for k := range c.x.n {
		if !c.x.null(k) {
			w.v.data = from.AppendCast(w.v.data, k)
		}
		w.end(k)
	}
	w.v.nulls = c.x.nulls
	return w.finish()
}

// toTime casts to dates, times and timestamps.
func (c *caster) toTime() error {
	const day = microsecondsOfDay
	switch {
	case c.from.Kind == tables.Text:
		return c.each(func(k int) bool { return c.parseTime(k) })
	case c.to.Kind == tables.Timestamp && c.from.Kind == tables.Date:
		return c.each(func(k int) bool {
			c.v.i[k] = c.x.i[k] * day
			return c.x.i[k] < math.MaxInt64/day && c.x.i[k] > math.MinInt64/day
		})
	case c.to.Kind == tables.Timestamp:
		c.v.i = c.x.i
		if c.to.Nano || c.from.Nano == c.to.Nano {
			c.v.h = c.x.h
		}
		return nil
	case c.to.Kind == tables.Date && c.from.Kind == tables.Timestamp:
		return c.each(func(k int) bool { c.v.i[k] = floorDiv(c.x.i[k], day); return true })
	case c.to.Kind == tables.Time && c.from.Kind == tables.Timestamp:
		return c.each(func(k int) bool { c.v.i[k] = c.x.i[k] - floorDiv(c.x.i[k], day)*day; return true })
	}
	c.v.i, c.v.h = c.x.i, c.x.h
	return nil
}

func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func (c *caster) parseTime(k int) bool {
	s := strings.TrimSpace(string(c.x.bytes(k)))
	if c.to.Kind == tables.Time {
		ns, _, ok := parseClock(" " + s)
		c.v.i[k] = ns / 1000
		return ok && s != ""
	}
	days, rest, ok := parseDate(s)
	if !ok {
		return false
	}
	// DuckDB does not move a timestamp without a zone by an offset that the text names.
	ns, _, ok := parseClock(withoutZone(rest))
	if c.to.Kind == tables.Date {
		c.v.i[k] = days
		return ok
	}
	c.v.i[k] = days*86400e6 + ns/1000
	return ok
}

// withoutZone cuts an offset off a time of day.
func withoutZone(s string) string {
	s = strings.TrimSuffix(s, " UTC")
	if at := strings.LastIndexAny(s, "+-"); at > 0 {
		if zone := s[at+1:]; len(zone) >= 2 && len(zone) <= 5 && strings.Trim(zone, "0123456789:") == "" {
			return s[:at]
		}
	}
	return s
}
