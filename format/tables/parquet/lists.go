package parquet

import (
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
)

// Lists returns how many rows of a column of lists begin in the page.
func (f *Few) Lists() int { return len(f.starts) }

// List returns the elements of row i, counted from the first that begins in the page: those from lo to hi, hi not
// included, which Find finds. Of row -1 they stand before the first row, and belong to the last one that begins in an
// earlier page. null reports whether the list is null.
func (f *Few) List(i int) (lo, hi int, null bool) {
	hi = f.values.n
	if i+1 < len(f.starts) {
		hi = int(f.starts[i+1])
	}
	if i < 0 {
		return 0, hi, false
	}
	return int(f.starts[i]), hi, f.nulls != nil && f.nulls[i]
}

// emptyList is in Few.reps of a list in a list that is null or has no elements. It stands for one that is null.
const emptyList = 1 << 7

// Rep returns the level of the list that element i goes on with, from 1 for the outermost one; 0 of the first element
// of a row. With empty, a list that is null or empty stands in place of the element. It is for lists in lists.
func (f *Few) Rep(i int) (level int, empty bool) {
	if f.reps == nil {
		return 0, false
	}
	return int(f.reps[i] &^ emptyList), f.reps[i]&emptyList != 0
}

// rowStarts sets where the rows of a page of n values begin.
func (f *Few) rowStarts(h *pageHeader, rep []byte, col *Column, n int) (err error) {
	f.starts = make([]int32, 0, min(f.values.n, n))
	if col.repLevel == 1 {
		f.starts, err = zeros(rep, n, h.repEncoding, f.starts)
		return err
	}
	reps, err := levels(rep, col.repLevel, n, h.repEncoding)
	f.reps = make([]uint8, len(reps))
	for i, level := range reps {
		if f.reps[i] = uint8(level); level == 0 { // at most 64, the depth of a schema
			f.starts = append(f.starts, int32(i))
		}
	}
	return err
}

// begin sets where the rows of a page of lists begin, values.n of them, and then values.n to the number of elements. It
// returns how many of these are not null. In most pages, all values are there and all lists have elements: every level
// stands for a value.
func (f *Few) begin(h *pageHeader, rep, def []byte, col *Column) (there int, err error) {
	count, rows := int(h.values), f.values.n
	if err := f.rowStarts(h, rep, col, count); err != nil {
		return 0, err
	}
	if len(f.starts) != rows {
		return 0, fault.At(fault.Corrupt, "page header", 0, "%d rows, not %d", len(f.starts), rows)
	}
	f.values.n = count
	if h.defEncoding == encRLE && oneRun(def, col.defLevel, count) {
		return count, nil
	}
	defs, err := levels(def, col.defLevel, count, h.defEncoding)
	if defs == nil || err != nil {
		return count, err
	}
	elems, row := make([]int32, 0, count), -1
	for k, level := range defs {
		if row+1 < rows && int(f.starts[row+1]) == k {
			row++
			f.starts[row] = int32(len(elems))
			if int(level) < col.listDef-1 { // the level above an empty list
				if f.nulls == nil {
					f.nulls = make([]bool, rows)
				}
				f.nulls[row] = true
			}
		}
		empty := int(level) < col.elemDef
		if empty && int(level) < col.listDef { // of a row
			continue
		}
		if f.reps != nil {
			if f.reps[len(elems)] = f.reps[k]; empty {
				f.reps[len(elems)] |= emptyList
			}
		}
		if int(level) == col.defLevel {
			elems = append(elems, int32(there))
			there++
		} else {
			elems = append(elems, -1)
		}
	}
	if f.values.n = len(elems); there < len(elems) {
		f.values.at = elems
	}
	return there, nil
}

// zeros appends to dst which of n levels of one bit are 0.
func zeros(b []byte, n int, encoding int32, dst []int32) ([]int32, error) {
	if encoding != encRLE {
		return nil, fault.At(fault.Unsupported, "page", 0, "levels in encoding %d", encoding)
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
