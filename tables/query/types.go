package query

import (
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/tables"
)

// castTypes are the types that a cast may name, in upper case.
var castTypes = map[string]tables.Type{}

func init() {
	for _, t := range []struct {
		names string
		t     tables.Type
	}{
		{"BOOLEAN BOOL LOGICAL", boolType},
		{"TINYINT INT1", tables.Type{Kind: tables.Int64, Bits: 8}},
		{"SMALLINT INT2 INT16 SHORT", tables.Type{Kind: tables.Int64, Bits: 16}},
		{"INTEGER INT INT4 INT32 SIGNED", tables.Type{Kind: tables.Int64, Bits: 32}},
		{"BIGINT INT8 INT64 LONG OID", int64Type},
		{"HUGEINT INT128", hugeType},
		{"UTINYINT UINT8", tables.Type{Kind: tables.Uint64, Bits: 8}},
		{"USMALLINT UINT16", tables.Type{Kind: tables.Uint64, Bits: 16}},
		{"UINTEGER UINT32", tables.Type{Kind: tables.Uint64, Bits: 32}},
		{"UBIGINT UINT64", tables.Type{Kind: tables.Uint64, Bits: 64}},
		{"FLOAT FLOAT4 REAL", floatType},
		{"DOUBLE FLOAT8", doubleType},
		{"VARCHAR TEXT STRING CHAR BPCHAR", textType},
		{"DATE", dateType},
		{"TIME", tables.Type{Kind: tables.Time}},
		{"TIMESTAMP DATETIME TIMESTAMP_US", timestampType},
		{"DECIMAL NUMERIC DEC", tables.Type{Kind: tables.Decimal, Precision: 18, Scale: 3}},
	} {
		for name := range strings.FieldsSeq(t.names) {
			castTypes[name] = t.t
		}
	}
}

// sqlType reads a type, and returns it with the name that DuckDB gives it in titles.
func (p *parser) sqlType() (t tables.Type, title string, err error) {
	tok := p.take()
	if tok.kind != tName {
		p.at--
		return t, "", p.unexpected()
	}
	t, ok := castTypes[strings.ToUpper(tok.text)]
	if !ok {
		return t, "", unsupported("the type %s", tok.text)
	}
	if tok.is("DOUBLE") {
		p.accept("PRECISION")
	}
	title = typeTitle(t)
	switch {
	case t.Kind == tables.Decimal:
		if t, title, err = p.decimalType(t); err != nil {
			return t, "", err
		}
	case t.Kind == tables.Text && p.accept("("): // VARCHAR(10) has no effect
		p.take()
		err = p.expect(")")
	}
	if p.peek().is("[") || p.peek().is("WITH") && t.Kind == tables.Timestamp {
		return t, "", unsupported("the type %s %s", tok.text, p.peek().text)
	}
	return t, title, err
}

// decimalType reads the precision and scale of a decimal, which may be missing.
func (p *parser) decimalType(t tables.Type) (tables.Type, string, error) {
	if !p.accept("(") {
		return t, "DECIMAL", nil
	}
	digits := [2]int{18, 0}
	title := "DECIMAL("
	for i := range digits {
		tok := p.take()
		n, err := strconv.Atoi(tok.text)
		if tok.kind != tNumber || err != nil {
			p.at--
			return t, "", p.unexpected()
		}
		digits[i] = n
		title += tok.text
		if !p.accept(",") {
			break
		}
		title += ", "
	}
	if digits[0] < 1 || digits[0] > maxDigits || digits[1] < 0 || digits[1] > digits[0] {
		return t, "", binderError("DECIMAL(%d, %d): the precision is between 1 and %d, and not below the scale", digits[0], digits[1], maxDigits)
	}
	t.Precision, t.Scale = uint8(digits[0]), uint8(digits[1])
	return t, title + ")", p.expect(")")
}

// typeTitle is the name of a type in a title: quoted where it is a name to DuckDB's grammar, not a word of it.
func typeTitle(t tables.Type) string {
	name := sqlName(t)
	switch name {
	case "BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "VARCHAR", "TIME", "TIMESTAMP":
		return name
	}
	return `"` + name + `"`
}

// sqlName is a type's name in DuckDB.
func sqlName(t tables.Type) string {
	switch t.Kind {
	case tables.Null:
		return `"NULL"`
	case tables.Bool:
		return "BOOLEAN"
	case tables.Int64, tables.Uint64:
		name := map[uint8]string{8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[t.Bits]
		if t.Kind == tables.Uint64 {
			name = "U" + name
		}
		return name
	case tables.Huge:
		return "HUGEINT"
	case tables.Float64:
		if t.Bits < 64 {
			return "FLOAT"
		}
		return "DOUBLE"
	case tables.Text:
		return "VARCHAR"
	case tables.Binary:
		return "BLOB"
	case tables.Date:
		return "DATE"
	case tables.Time:
		return "TIME"
	case tables.Timestamp:
		switch {
		case t.UTC:
			return "TIMESTAMP WITH TIME ZONE"
		case t.Nano:
			return "TIMESTAMP_NS"
		}
		return "TIMESTAMP"
	case tables.Decimal:
		return "DECIMAL(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case tables.List:
		return sqlName(*t.Elem) + "[]"
	}
	return t.String()
}

// maxDigits is the largest precision of a decimal: 38 digits fit in 128 bits.
const maxDigits = 38

// digitsOf returns how many digits an integer of a type may have in DuckDB's decimals.
func digitsOf(t tables.Type) int {
	if t.Kind == tables.Huge {
		return maxDigits
	}
	digits := map[uint8]int{8: 3, 16: 5, 32: 10, 64: 19}[t.Bits]
	if t.Kind == tables.Uint64 && t.Bits == 64 {
		digits = 20
	}
	return digits
}

// asDecimal returns the decimal type that holds the numbers of an integer or decimal type.
func asDecimal(t tables.Type) tables.Type {
	if t.Kind == tables.Decimal {
		return t
	}
	return tables.Type{Kind: tables.Decimal, Precision: uint8(digitsOf(t))}
}

// meet returns the type in which values of two types meet, in CASE, COALESCE, UNION and comparisons of decimals; ok is
// false where DuckDB has none or one that is not made here.
func meet(a, b tables.Type) (t tables.Type, ok bool) {
	switch {
	case a.Kind == tables.Null:
		return b, true
	case b.Kind == tables.Null:
		return a, true
	case a.Kind == tables.Timestamp && b.Kind == tables.Timestamp && a.UTC == b.UTC:
		a.Nano = a.Nano || b.Nano
		return a, true
	case a.Equal(b):
		return a, true
	case isNumber(a) && isNumber(b), a.Kind == tables.Decimal && (isNumber(b) || b.Kind == tables.Decimal), b.Kind == tables.Decimal && isNumber(a):
		return meetNumbers(a, b), true
	case a.Kind == tables.Date && b.Kind == tables.Timestamp:
		return b, true
	case a.Kind == tables.Timestamp && b.Kind == tables.Date:
		return a, true
	}
	return t, false
}

func meetNumbers(a, b tables.Type) tables.Type {
	switch {
	case a.Kind == tables.Float64 || b.Kind == tables.Float64:
		t := floatType
		if a.Kind == tables.Float64 && a.Bits == 64 || b.Kind == tables.Float64 && b.Bits == 64 {
			t = doubleType
		}
		return t
	case a.Kind == tables.Decimal || b.Kind == tables.Decimal:
		x, y := asDecimal(a), asDecimal(b)
		scale := max(x.Scale, y.Scale)
		whole := max(x.Precision-x.Scale, y.Precision-y.Scale)
		return tables.Type{Kind: tables.Decimal, Precision: min(whole+scale, maxDigits), Scale: scale}
	case a.Kind == tables.Huge || b.Kind == tables.Huge:
		return hugeType
	case a.Kind == b.Kind:
		a.Bits = max(a.Bits, b.Bits)
		return a
	case a.Kind == tables.Uint64:
		a, b = b, a
	}
	// a has a sign and b has none: one that holds both has more bits than b.
	if b.Bits == 64 {
		return hugeType
	}
	a.Bits = max(a.Bits, 2*b.Bits)
	return a
}
