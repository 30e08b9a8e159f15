package tables

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/num"
)

// coded holds strings with few distinct values: at most 255 in one byte a row, others in four.
type coded struct {
	codes  []uint8
	wide   []uint32 // instead of codes
	values *Vector  // the string of each code; that of null rows is null

	once   sync.Once
	lo, hi []uint32
	made   atomic.Int64 // bytes of lo and hi once spans made them; cost reads it without waiting for once
}

// nullCode is the code of null rows. Codes 0 to 254 are left for strings, so it is also how many distinct strings there
// may be.
const nullCode = math.MaxUint8

// Coded returns the strings in coded form: the code of each row, and the 256 values of the codes. The values of code
// 255, which null rows have, and of unused codes are null. It returns nil if the vector is not coded; then Spans
// has the values. The caller must change neither.
func (v *Vector) Coded() (codes []uint8, values *Vector) {
	if v.coded == nil || v.coded.codes == nil {
		return nil, nil
	}
	return v.coded.codes, v.coded.values
}

// NewCoded returns the strings distinct[codes[i]], with what Distinct returns.
func NewCoded(codes []uint32, distinct []string, nulls []bool) *Vector {
	none := len(distinct)
	for i, null := range nulls {
		if null {
			codes[i] = uint32(none)
		}
	}
	values := NewStrings(append(distinct, ""), make([]bool, none+1))
	values.nulls[none] = true
	return &Vector{typ: values.typ, n: len(codes), nulls: nulls, coded: &coded{wide: codes, values: values}}
}

// Distinct returns the strings of NewCoded, and of each row the position there, or their number if it is null; nil of
// other vectors. The caller must not change the codes.
func (v *Vector) Distinct() (codes []uint32, distinct []string) {
	if v.coded == nil || v.coded.codes != nil {
		return nil, nil
	}
	distinct = make([]string, v.coded.values.n-1)
	for i := range distinct {
		distinct[i] = v.coded.values.Str(i)
	}
	return v.coded.wide, distinct
}

// at returns the code of a row.
func (c *coded) at(i int) int {
	if c.codes == nil {
		return int(c.wide[i])
	}
	return int(c.codes[i])
}

// spans returns where the string of each row lies in the data of values. It finds out once, and keeps it.
func (c *coded) spans() (lo, hi []uint32) {
	c.once.Do(func() {
		if lo, hi := c.values.offs, c.values.offs[1:]; c.codes == nil {
			c.lo, c.hi = num.Pick(lo, c.wide), num.Pick(hi, c.wide)
		} else {
			c.lo, c.hi = num.Pick(lo, c.codes), num.Pick(hi, c.codes)
		}
		c.made.Store(4 * int64(cap(c.lo)+cap(c.hi)))
	})
	return c.lo, c.hi
}

// cost is about how much memory the strings take, including what spans keeps.
func (c *coded) cost() int64 {
	return int64(cap(c.codes)+4*cap(c.wide)) + c.values.cost() + c.made.Load()
}

// coder assigns codes to strings.
type coder struct {
	codes   []uint8
	strings []string // by code
	codeOf  map[string]uint8
	longest int
	bytes   int64 // of strings
	dict    *parquet.Values
	last    []uint8 // the code of each value of dict
}

// admits reports whether the strings of a page fit the codes, and assigns codes to new ones in the page's dictionary.
// It refuses when the first rows strings, each as long as the longest, could take more than limit bytes written out. It
// also refuses when the distinct strings take more than limit: a dictionary may hold many that no row uses.
func (c *coder) admits(v *parquet.Values, rows int, limit int64) bool {
	limit = min(limit, math.MaxUint32)
	values := v.Dictionary()
	if values == nil || values.Len() > nullCode {
		return false
	}
	if values != c.dict {
		last := make([]uint8, values.Len())
		for i := range last {
			text := string(values.Raw(i))
			code, ok := c.codeOf[text]
			if !ok {
				if len(c.strings) == nullCode {
					return false
				}
				code = uint8(len(c.strings))
				c.codeOf[text] = code
				c.strings = append(c.strings, text)
				c.longest = max(c.longest, len(text))
				if c.bytes += int64(len(text)); c.bytes > limit {
					return false
				}
			}
			last[i] = code
		}
		c.dict, c.last = values, last
	}
	// A file of few bytes must not make the caller allocate much when it writes the rows out.
	return int64(rows) <= limit/int64(max(c.longest, 1))
}

// coded returns the rows that were coded.
func (c *coder) coded() *coded {
	values := NewStrings(c.strings, make([]bool, nullCode+1))
	for i := len(c.strings); i <= nullCode; i++ {
		values.nulls[i] = true
		values.offs = append(values.offs, uint32(len(values.data)))
	}
	values.n = nullCode + 1
	return &coded{codes: c.codes, values: values}
}
