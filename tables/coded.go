package tables

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/tables/parquet"
)

// coded are texts of which few are different: a byte a row.
type coded struct {
	codes  []uint8
	values *Vector // of the codes; the last, which is nullCode's, is null

	once sync.Once
	data []byte
	offs []uint32
	made atomic.Int64 // bytes of data and offs
}

// nullCode is the code of a row without a text, and the number of texts that may be different.
const nullCode = math.MaxUint8

// Coded returns texts of which few are different, as they lie in memory: the code of each row, and the value of each
// code, 256 of them, which is null for rows without a text and for codes that no row has. It returns nil where there is
// another form, that of Raw. Neither must be changed.
func (v *Vector) Coded() (codes []uint8, values *Vector) {
	if v.coded == nil {
		return nil, nil
	}
	return v.coded.codes, v.coded.values
}

// RawRange returns the values lo to hi of the kinds Text and Binary: value lo+i is data[offs[i]:offs[i+1]]. Texts that lie
// in memory by their codes are copied, and not kept.
func (v *Vector) RawRange(lo, hi int) (data []byte, offs []uint32) {
	if v.coded != nil {
		return v.coded.spell(lo, hi)
	}
	return v.data, v.offs[lo : hi+1]
}

// size returns how many bytes the texts lo to hi have.
func (c *coded) size(lo, hi int) int {
	size := 0
	for _, k := range c.codes[lo:hi] {
		size += int(c.values.offs[int(k)+1] - c.values.offs[k])
	}
	return size
}

// spell returns the texts lo to hi as RawRange has them.
func (c *coded) spell(lo, hi int) (data []byte, offs []uint32) {
	data, offs = make([]byte, 0, c.size(lo, hi)), make([]uint32, 1, hi-lo+1)
	for _, k := range c.codes[lo:hi] {
		data = append(data, c.values.Bytes(int(k))...)
		offs = append(offs, uint32(len(data)))
	}
	return data, offs
}

// flat returns all texts as Raw has them. They are made once.
func (c *coded) flat() (data []byte, offs []uint32) {
	c.once.Do(func() {
		c.data, c.offs = c.spell(0, len(c.codes))
		c.made.Store(int64(cap(c.data)) + 4*int64(cap(c.offs)))
	})
	return c.data, c.offs
}

// cost is about how much memory the texts take, also as Raw has them if somebody asked for that.
func (c *coded) cost() int64 { return int64(cap(c.codes)) + c.values.cost() + c.made.Load() }

// coder gives texts their codes.
type coder struct {
	codes   []uint8
	texts   []string
	known   map[string]uint8
	longest int
	bytes   int64 // of texts
	dict    *parquet.Values
	last    []uint8 // codes of dict's values
}

func newCoder() *coder { return &coder{known: map[string]uint8{}} }

// takes reports whether a page's texts have codes, or get them now: all texts of its dictionary. The rows so far, of which
// each may have the longest text, have no more than limit bytes as Raw has them; nor have all texts together, of which a file
// may have many that no row has.
func (c *coder) takes(v *parquet.Values, rows int, limit int64) bool {
	limit = min(limit, math.MaxUint32)
	d := v.Dictionary()
	if d == nil || d.Len() > nullCode {
		return false
	}
	if d != c.dict {
		last := make([]uint8, d.Len())
		for i := range last {
			text := string(d.Raw(i))
			k, ok := c.known[text]
			if !ok {
				if len(c.texts) == nullCode {
					return false
				}
				k = uint8(len(c.texts))
				c.known[text] = k
				c.texts = append(c.texts, text)
				c.longest = max(c.longest, len(text))
				if c.bytes += int64(len(text)); c.bytes > limit {
					return false
				}
			}
			last[i] = k
		}
		c.dict, c.last = d, last
	}
	return int64(rows) <= limit/int64(max(c.longest, 1))
}

// coded returns what was given codes.
func (c *coder) coded() *coded {
	v := NewTexts(c.texts, make([]bool, nullCode+1))
	for i := len(c.texts); i <= nullCode; i++ {
		v.nulls[i] = true
		v.offs = append(v.offs, uint32(len(v.data)))
	}
	v.n = nullCode + 1
	return &coded{codes: c.codes, values: v}
}
