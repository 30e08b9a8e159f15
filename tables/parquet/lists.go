package parquet

import (
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
)

// Lists returns how many rows of a column of lists begin in the page.
func (f *Few) Lists() int { return len(f.starts) }

// AppendHead appends the first limit of the values before the first row, as numbers. They belong to the last row that
// begins in an earlier page.
func (f *Few) AppendHead(dst []float64, limit int) ([]float64, error) {
	end := f.values.n
	if len(f.starts) > 0 {
		end = int(f.starts[0])
	}
	return f.append(dst, 0, end, limit)
}

// AppendRow appends the first limit values of row i, counted from the first that begins in the page, as numbers. Null
// elements are left out.
func (f *Few) AppendRow(dst []float64, i, limit int) ([]float64, error) {
	end := f.values.n
	if i+1 < len(f.starts) {
		end = int(f.starts[i+1])
	}
	return f.append(dst, int(f.starts[i]), end, limit)
}

func (f *Few) append(dst []float64, lo, hi, limit int) ([]float64, error) {
	for i := lo; i < min(hi, lo+limit); i++ {
		values, k, err := f.Find(i)
		if err != nil {
			return dst, err
		}
		dst = append(dst, values.Float(k))
	}
	return dst, nil
}

// begin sets where the rows of a page of lists begin, values.n of them, and then values.n to the number of
// values, which it returns. Most pages have no nulls and no empty lists, so that every level stands for a value.
func (f *Few) begin(h *pageHeader, rep, def []byte, col *Column) (there int, err error) {
	count, rows := int(h.values), f.values.n
	if f.starts, err = zeros(rep, count, h.repEncoding, make([]int32, 0, min(rows, count))); err != nil {
		return 0, err
	}
	if len(f.starts) != rows {
		return 0, fault.New(fault.Corrupt, "page header", 0, "%d rows, not %d", len(f.starts), rows)
	}
	f.values.n = count
	if h.defEncoding == encRLE && oneRun(def, col.defLevel, count) {
		return count, nil
	}
	defs, err := levels(def, col.defLevel, count, h.defEncoding)
	if defs == nil || err != nil {
		return count, err
	}
	next := 0
	for k, level := range defs {
		if next < len(f.starts) && int(f.starts[next]) == k {
			f.starts[next] = int32(there)
			next++
		}
		if int(level) == col.defLevel {
			there++
		}
	}
	f.values.n = there
	return there, nil
}

// zeros appends to dst which of n levels of one bit are 0.
func zeros(b []byte, n int, encoding int32, dst []int32) ([]int32, error) {
	if encoding != encRLE {
		return nil, fault.New(fault.Unsupported, "page", 0, "levels in encoding %d", encoding)
	}
	for done := 0; done < n; {
		run, rest, err := nextRun(b, 1, done, n)
		if err != nil {
			return nil, err
		}
		for i := 0; run.bits == nil && run.value == 0 && i < run.count; i++ {
			dst = append(dst, int32(done+i))
		}
		for i := 0; run.bits != nil && i < run.count; i += 8 {
			zeroBits := ^run.bits[i/8]
			if left := run.count - i; left < 8 {
				zeroBits &= 1<<left - 1
			}
			for ; zeroBits != 0; zeroBits &= zeroBits - 1 {
				dst = append(dst, int32(done+i+bits.TrailingZeros8(zeroBits)))
			}
		}
		done, b = done+run.count, rest
	}
	return dst, nil
}
