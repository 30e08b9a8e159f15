package tables

import (
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/crash"
)

// vectorBuilder makes a vector from the pages of one leaf column. It decides page by page where the values go, and
// copies them there on several processors.
type vectorBuilder struct {
	p     *parquetTable
	name  string
	unit  uint8 // of times, see parquet.Note
	v     Vector
	codes *coder // codes of strings while there are at most 255 distinct ones, else nil

	copying errgroup.Group
}

func newBuilder(p *parquetTable, leaf int) *vectorBuilder {
	column := &p.f.Columns[leaf]
	built := &vectorBuilder{p: p, name: column.Name, unit: 6, v: Vector{typ: leafType(column)}}
	built.copying.SetLimit(min(runtime.GOMAXPROCS(0), paged.MaxAhead) - 1)
	if (column.Note.Kind == parquet.Timestamp || column.Note.Kind == parquet.Time) && column.Type != parquet.Int96 {
		built.unit = column.Note.Unit
	}
	switch built.v.typ.Kind {
	case String:
		built.codes = &coder{codeOf: map[string]uint8{}}
		fallthrough
	case Binary:
		built.v.offs = make([]uint32, 1)
	}
	return built
}

// add appends the values of a page.
func (b *vectorBuilder) add(v *parquet.Values) error {
	values := &b.v
	rows := v.Len()
	if int64(values.n+rows) > b.p.o.MaxRows {
		return fault.New(fault.Limit, "column "+b.name, "more than %d values", b.p.o.MaxRows)
	}
	if values.typ.Kind != Null && (values.nulls != nil || v.HasNulls()) {
		if values.nulls == nil {
			values.nulls = make([]bool, values.n)
		}
		values.nulls = v.AppendNulls(values.nulls)
	}
	values.n += rows
	switch values.typ.Kind {
	case Null:
	case Bool:
		var out []bool
		values.bools, out = extend(b, values.bools, rows)
		b.copy(rows, func() { v.FillBools(out) })
	case Float64:
		var out []float64
		values.floats, out = extend(b, values.floats, rows)
		b.copy(rows, func() { v.FillFloats(out) })
	case String, Binary:
		return b.addBytes(v)
	case Decimal:
		return b.addDecimals(v)
	default:
		var out []int64
		values.ints, out = extend(b, values.ints, rows)
		b.copy(rows, func() { v.FillInts(out) })
	}
	return nil
}

// minParallelRows is the least number of rows that are copied on another goroutine: 4,096 values of 8 bytes are 32 KiB,
// which one processor copies in about the microseconds that starting a goroutine takes.
const minParallelRows = 4096

// copy calls run, which copies n rows, on another goroutine if one is free. The caller must not move the memory that
// run writes to before copying.Wait has returned: see reserve and extend.
func (b *vectorBuilder) copy(n int, run func()) {
	safely := func() error {
		return crash.Call(func() error {
			run()
			return nil
		})
	}
	if n < minParallelRows || !b.copying.TryGo(safely) {
		run()
	}
}

// vector returns what was added. It waits for copies that still run, so it must be called even after an error.
func (b *vectorBuilder) vector() (*Vector, error) {
	if err := b.copying.Wait(); err != nil {
		return nil, err
	}
	if b.codes != nil && b.v.n > 0 {
		b.v.coded, b.v.offs = b.codes.coded(), nil
	}
	return &b.v, b.scale()
}

// reserve makes room for n more bytes. It extrapolates the size of all rows from those so far, but grows at most
// fourfold, so a wrong row count in a file cannot allocate more than a multiple of the decoded bytes.
func (b *vectorBuilder) reserve(n int) {
	values := &b.v
	need := len(values.data) + n
	if need <= cap(values.data) {
		return
	}
	expect := int64(0)
	if values.n > 0 && b.p.keep == nil {
		expect = min(int64(float64(need)/float64(values.n)*float64(b.p.f.Rows)*1.05), b.p.o.MaxBytes)
	}
	// Copies that run write to the old memory, so it must not move before they end; vector returns their error.
	_ = b.copying.Wait()
	grown := make([]byte, len(values.data), max(need, 2*len(values.data), int(min(expect, 4*int64(need)))))
	copy(grown, values.data)
	values.data = grown
}

// extend appends n zeros to values and returns all of them and the new ones. It makes room for all rows of the table at
// once, but for at most four times the rows decoded so far.
func extend[T any](b *vectorBuilder, values []T, n int) (all, more []T) {
	need := len(values) + n
	if need > cap(values) {
		room := max(need, 2*len(values))
		// At most four times the decoded rows, because the file only claims its number of rows.
		if whole := int(b.p.f.Rows) + 1; b.p.keep == nil && need <= whole {
			room = max(need, min(4*need, whole))
		}
		_ = b.copying.Wait() // vector returns the error
		values = append(make([]T, 0, room), values...)
	}
	return values[:need], values[need-n : need]
}

func (b *vectorBuilder) addBytes(v *parquet.Values) error {
	values := &b.v
	if b.codes != nil {
		if b.codes.admits(v, values.n, b.p.o.MaxBytes) {
			var out []uint8
			b.codes.codes, out = extend(b, b.codes.codes, v.Len())
			codes := b.codes.last
			b.copy(v.Len(), func() { v.FillCodes(out, codes, nullCode) })
			return nil
		}
		_ = b.copying.Wait() // vector returns the error
		before := &Vector{typ: values.typ, n: len(b.codes.codes), coded: b.codes.coded()}
		_ = values.append(before) // strings have no error
		b.codes = nil
	}
	size := v.Size()
	if total := int64(len(values.data)) + int64(size); total > b.p.o.MaxBytes || total > math.MaxUint32 {
		return fault.New(fault.Limit, "column "+b.name, "more than %d bytes", b.p.o.MaxBytes)
	}
	b.reserve(size)
	pos := len(values.data)
	values.data = values.data[:pos+size]
	var offs []uint32
	values.offs, offs = extend(b, values.offs, v.Len())
	data := values.data[pos:]
	b.copy(v.Len(), func() { v.FillBytes(data, offs, uint32(pos)) })
	return nil
}

// addDecimals appends decimals that the file stores as integers or as big-endian two's complement of up to 16 bytes.
func (b *vectorBuilder) addDecimals(v *parquet.Values) error {
	values := &b.v
	for i := range v.Len() {
		var low, high int64
		if !v.Null(i) {
			raw := v.Raw(i)
			if v.Numbers() {
				low, _ = v.Int(i)
				high = low >> 63
			} else {
				if len(raw) > 16 {
					return fault.New(fault.Unsupported, "column "+b.name, "a decimal of %d bytes", len(raw))
				}
				if len(raw) > 0 && raw[0]&0x80 != 0 {
					low, high = -1, -1
				}
				for _, octet := range raw {
					high = high<<8 | int64(uint64(low)>>56)
					low = low<<8 | int64(octet)
				}
			}
		}
		values.ints, values.high = append(values.ints, low), append(values.high, high)
	}
	return nil
}

// scale converts times from the column's unit to microseconds, and keeps the rest of nanoseconds.
func (b *vectorBuilder) scale() error {
	values := &b.v
	if values.typ.Kind != Timestamp && values.typ.Kind != Time || b.unit == 6 {
		return nil
	}
	for i, time := range values.ints {
		micros, ok := Microseconds(time, b.unit)
		if !ok {
			return fault.New(fault.Unsupported, "column "+b.name, "a time that 64 bits of microseconds do not hold")
		}
		if rest := time - micros*1000; values.typ.Nano && rest != 0 {
			if values.high == nil {
				values.high = make([]int64, len(values.ints))
			}
			values.high[i] = rest
		}
		values.ints[i] = micros
	}
	return nil
}
