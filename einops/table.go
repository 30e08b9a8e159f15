package einops

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Table has the elements that samples become by a look-up table. It is immutable.
type Table struct {
	rows     []int32    // by the bits of a sample, the number of its value, or none
	elements [][]uint64 // by band, or one for all bands, and by the number of the value: the bits of the element
	complete bool       // every sample has a value
}

// none is the row of a sample without a value.
const none = -1

// maxElements bounds the elements of a table, of all bands together. They take 8 bytes each, 32 MiB.
const maxElements = 4 << 20

// NewTable returns the table in which samples become values, one for all bands or one for each. Scale, Offset and Clip
// of c are applied to the values, as Convert says. Without them a value is rounded to To once, and an integer To must
// hold it; only uint8 saturates, if c is not Checked. c.From is uint8, int8, uint16 or int16.
func NewTable(c Convert, samples []int, values [][]float64) (*Table, error) {
	low, n := 0, 1<<(8*c.From.Size())
	switch c.From {
	case chunk.Uint8, chunk.Uint16:
	case chunk.Int8, chunk.Int16:
		low = -n / 2
	default:
		return nil, fault.New(fault.Unsupported, "look-up table", fault.NoOffset,
			"of %s: only uint8, int8, uint16 and int16 have one", c.From)
	}
	if len(samples) == 0 || len(samples) != len(values) {
		return nil, errors.New("einops: a table needs a value for each sample")
	}
	bands := max(len(values[0]), len(c.Scale), len(c.Offset))
	if len(samples) > maxElements/max(bands, 1) {
		return nil, fault.New(fault.Limit, "look-up table", fault.NoOffset,
			"%d values for each of %d bands: at most %d together", len(samples), bands, maxElements)
	}
	table := &Table{rows: make([]int32, n), elements: make([][]uint64, bands)}
	for i := range table.rows {
		table.rows[i] = none
	}
	for k, sample := range samples {
		if sample < low || sample >= low+n {
			return nil, fault.New(fault.Unsupported, "look-up table", fault.NoOffset, "%s has no %d", c.From, sample)
		}
		table.rows[sample&(n-1)] = int32(k) // two's complement: the bits of a negative sample
	}
	// The samples differ, so that as many as there can be are all.
	table.complete = len(samples) == n
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

// Whole reports whether every sample has a value.
func (t *Table) Whole() bool { return t.complete }

// element returns the bits of the element that a value becomes in a band.
func (c *Convert) element(value float64, band int) (uint64, error) {
	num := c.To.Num()
	if c.Scale == nil && c.Offset == nil && !c.Clip && (c.To != chunk.Uint8 || c.Checked) {
		if num.IsFloat() {
			return kernel.FloatBits(num, value), nil
		}
		bits, ok := kernel.IntBits(num, value)
		if !ok {
			return 0, fault.New(fault.Unsupported, "look-up table", fault.NoOffset, "%v is not a number of %s", value,
				c.To)
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
func (p *place) setBand(b int) (a, c float32) {
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
