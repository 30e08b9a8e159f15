package einops

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Table has the elements that samples become by a look-up table. It is immutable.
type Table struct {
	rows     []int32          // by the bits of a sample, the number of its value, or none
	wide     map[uint64]int32 // in place of rows, of samples of more than 16 bits
	wholes   bool             // in place of values: samples become the whole numbers of int64 that they are
	elements [][]uint64       // by band, or one for all bands, and by the number of the value: the bits of the element
	complete bool             // every sample has a value
}

// none is the entry in Table.rows of a sample that has no value.
const none = -1

// maxElements bounds the elements of a table, of all bands together. They take 8 bytes each, 32 MiB.
const maxElements = 4 << 20

// NewTable returns the table in which samples become values, one for all bands or one for each. Scale, Offset and Clip
// of c are applied to the values, as Convert says. Without them a value is rounded to To once, and an integer To must
// hold it; only uint8 saturates, if c is not Checked. c.From is a real type.
func NewTable(c Convert, samples []int, values [][]float64) (*Table, error) {
	num := c.From.Num()
	if num == kernel.None {
		return nil, fault.New(fault.Unsupported, "look-up table", "of %s: only real types have one", c.From)
	}
	if len(samples) == 0 || len(samples) != len(values) {
		return nil, errors.New("einops: a table needs a value for each sample")
	}
	bands := max(len(values[0]), len(c.Scale), len(c.Offset))
	if len(samples) > maxElements/max(bands, 1) {
		return nil, fault.New(fault.Limit, "look-up table",
			"%d values for each of %d bands: at most %d together", len(samples), bands, maxElements)
	}
	table := &Table{elements: make([][]uint64, bands)}
	if c.From.Size() <= 2 && !num.IsFloat() {
		table.rows = make([]int32, 1<<(8*c.From.Size()))
		for i := range table.rows {
			table.rows[i] = none
		}
	} else {
		table.wide = make(map[uint64]int32, len(samples))
	}
	for k, sample := range samples {
		bits, ok := sampleBits(num, c.From.Size(), sample)
		switch {
		case !ok:
			return nil, fault.New(fault.Unsupported, "look-up table", "%s has no %d", c.From, sample)
		case table.wide != nil:
			table.wide[bits] = int32(k)
		default:
			table.rows[bits] = int32(k)
		}
	}
	// The samples differ: as many of them as rows fill the table.
	table.complete = len(samples) == len(table.rows)
	for b := range table.elements {
		table.elements[b] = make([]uint64, len(values))
		for k, value := range values {
			var err error
			if table.elements[b][k], err = c.element(value[min(b, len(value)-1)], b); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

// sampleBits returns the bits of a whole number as a sample of a type of size bytes, or false if the type lacks it.
func sampleBits(num kernel.Num, size, number int) (bits uint64, ok bool) {
	if num.IsFloat() {
		bits = kernel.FloatBits(num, float64(number))
		if size == 8 {
			return bits, int(float64(number)) == number
		}
		var stored [8]byte
		binary.LittleEndian.PutUint64(stored[:], bits)
		rounded := [1]float32{}
		kernel.Load(rounded[:], stored[:], num, 1)
		return bits, float64(rounded[0]) == float64(number)
	}
	switch low, high := -1<<(8*size-1), 1<<(8*size-1)-1; {
	case size == 8 && num == kernel.U64:
		return uint64(number), number >= 0
	case size == 8:
		return uint64(number), true
	case num == kernel.U8 || num == kernel.U16 || num == kernel.U32:
		return uint64(number), number >= 0 && number <= 2*high+1
	default:
		return uint64(number) & (1<<(8*size) - 1), number >= low && number <= high
	}
}

// wholeNumbers makes int64 of floats and of uint64.
var wholeNumbers = &Table{wholes: true, elements: [][]uint64{nil}}

// Whole reports whether every sample has a value.
func (t *Table) Whole() bool { return t.complete }

// element returns the bits of the element that a value becomes in a band.
func (c *Convert) element(value float64, band int) (uint64, error) {
	num := c.To.Num()
	arithmetic := c.Scale != nil || c.Offset != nil || c.Clip
	if !arithmetic && (c.To != dtype.Uint8 || c.Checked) {
		if num.IsFloat() {
			return kernel.FloatBits(num, value), nil
		}
		bits, ok := kernel.IntBits(num, value)
		if !ok {
			return 0, fault.New(fault.Unsupported, "look-up table", "%v is not a number of %s", value, c.To)
		}
		return bits, nil
	}
	var sample, element [8]byte
	binary.LittleEndian.PutUint32(sample[:], math.Float32bits(float32(value)))
	rounded := [1]float32{}
	kernel.LoadAffine(rounded[:], sample[:4], kernel.F32, 1, pick(c.Scale, band, 1), pick(c.Offset, band, 0))
	if c.Clip {
		kernel.Clip(rounded[:], c.Lo, c.Hi)
	}
	kernel.Store(element[:c.To.Size()], rounded[:], num, 1)
	return binary.LittleEndian.Uint64(element[:]), nil
}

// setTable makes the converter look its elements up.
func (cv *Converter) setTable(table *Table) {
	cv.table = table
	cv.copies, cv.widens, cv.affine, cv.checked = false, false, false, false
	cv.setBands(len(table.elements), len(cv.missing))
}

// setBand makes band b the one that rows are converted for, and returns its scale and offset.
func (p *blockPlace) setBand(b int) (a, c float32) {
	if t := p.cv.table; t != nil {
		p.elements = t.elements[min(b, len(t.elements)-1)]
	}
	p.missing = p.cv.missing[min(b, len(p.cv.missing)-1)]
	return p.cv.band(b)
}

// look writes the elements of n samples to element at of a run, with the fill value for nodata.
func (j *job) look(at int, s []byte, n int) (bad int) {
	cv, size := j.cv, j.cv.toSize
	if cv.noData {
		bad = j.markMissing(s, n)
	} else {
		kernel.Repeat(j.valid[:n], 1, ones, n)
	}
	switch {
	case cv.table.wholes:
		return j.wholeNumbers(at, s, n, bad)
	case cv.table.wide != nil:
		return j.lookWide(at, s, n, bad)
	}
	for i := range n {
		var bits int
		if cv.fromSize == 1 {
			bits = int(s[i*j.strideX])
		} else {
			bits = int(binary.LittleEndian.Uint16(s[2*i*j.strideX:]))
		}
		row := cv.table.rows[bits]
		dst := j.dst.Data[(at+i*j.runs.stride)*size:][:size]
		switch {
		case row == none:
			bad += int(j.valid[i])
			j.valid[i] = 0
			copy(dst, cv.fill[:size])
		case cv.fillNoData && j.valid[i] == 0:
			copy(dst, cv.fill[:size])
		default:
			cast.PutUint(dst, size, j.elements[row])
		}
	}
	j.mask(at, 0, n, bad > 0)
	return bad
}

// lookWide is look for samples of more than 16 bits; bad of them are nodata.
func (j *job) lookWide(at int, s []byte, n, bad int) int {
	cv, size := j.cv, j.cv.toSize
	negative := uint64(0) // zero, which equals zero
	if cv.fromNum.IsFloat() {
		negative = 1 << (8*cv.fromSize - 1)
	}
	for i := range n {
		bits := cast.Uint(s[i*j.strideX*cv.fromSize:], cv.fromSize)
		if negative != 0 && bits == negative {
			bits = 0
		}
		row, known := cv.table.wide[bits]
		dst := j.dst.Data[(at+i*j.runs.stride)*size:][:size]
		switch {
		case !known:
			bad += int(j.valid[i])
			j.valid[i] = 0
			copy(dst, cv.fill[:size])
		case cv.fillNoData && j.valid[i] == 0:
			copy(dst, cv.fill[:size])
		default:
			cast.PutUint(dst, size, j.elements[row])
		}
	}
	j.mask(at, 0, n, bad > 0)
	return bad
}

// wholeNumbers writes floats or uint64 as int64; bad of them are nodata. One that is no number of int64 is OutOfRange,
// unless it is nodata that has a fill.
func (j *job) wholeNumbers(at int, s []byte, n, bad int) int {
	cv, unfit := j.cv, false
	for i := range n {
		number, integer := 0.0, uint64(0)
		switch sample := s[i*j.strideX*cv.fromSize:]; {
		case cv.fromNum == kernel.U64:
			if integer = binary.LittleEndian.Uint64(sample); integer > math.MaxInt64 {
				number = math.Inf(1)
			}
		case cv.fromSize == 8:
			number = math.Float64frombits(binary.LittleEndian.Uint64(sample))
		case cv.fromSize == 4:
			number = float64(math.Float32frombits(binary.LittleEndian.Uint32(sample)))
		default:
			var f [1]float32
			kernel.Load(f[:], sample, cv.fromNum, 1)
			number = float64(f[0])
		}
		dst, element := j.dst.Data[(at+i*j.runs.stride)*8:], uint64(0)
		switch {
		case cv.fillNoData && j.valid[i] == 0:
			element = binary.LittleEndian.Uint64(cv.fill[:])
		case number == math.Trunc(number) && number >= -1<<63 && number < 1<<63:
			element = uint64(int64(number)) | integer
		default:
			j.valid[i], unfit = OutOfRange, true
		}
		binary.LittleEndian.PutUint64(dst, element)
	}
	j.mask(at, 0, n, bad > 0 || unfit)
	return bad
}
