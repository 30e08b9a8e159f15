package tables

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/num"
)

// coded holds strings with at most 255 distinct values, in one byte a row.
type coded struct {
	codes  []uint8
	values *Vector // the string of each code; nullCode's is null

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
	if v.coded == nil {
		return nil, nil
	}
	return v.coded.codes, v.coded.values
}

// spans returns where the string of each row lies in the data of values. It finds out once, and keeps it.
func (c *coded) spans() (lo, hi []uint32) {
	c.once.Do(func() {
		c.lo, c.hi = num.Pick(c.values.offs, c.codes), num.Pick(c.values.offs[1:], c.codes)
		c.made.Store(4 * int64(cap(c.lo)+cap(c.hi)))
	})
	return c.lo, c.hi
}

// cost is about how much memory the strings take, including what spans keeps.
func (c *coded) cost() int64 { return int64(cap(c.codes)) + c.values.cost() + c.made.Load() }

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
	// Who writes the rows out must not allocate without bound for a file of few bytes.
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
