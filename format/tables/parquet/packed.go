package parquet

import (
	"sort"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// Few has the values of one page when only few of them are asked for. Indexes of the dictionary stay as the page has
// them where that takes less memory than decoded ones. They are immutable.
type Few struct {
	values *Values        // of a column of lists the elements of all rows
	packed *packedNumbers // in place of values.ix, or nil
	starts []int32        // of a column of lists: the number of the first element of each row that begins in the page
	nulls  []bool         // of a column of lists: which of these rows are null; nil: none
	reps   []uint8        // of a column of lists in lists: the repetition level of each element, or emptyList
	column string         // for errors
	off    int64
}

// decode reads n values. It finds the faults that Values.decode finds, but an index outside of the dictionary, which
// Find finds. It calls dictionary only if values are indexes: writers end a dictionary when it is large, and write the
// other pages without it.
func (f *Few) decode(b []byte, n int, encoding int32, dictionary func() (*Values, error)) error {
	if n == 0 || encoding != encPlainDictionary && encoding != encRLEDictionary {
		return f.values.decode(b, n, encoding, nil)
	}
	dict, err := dictionary()
	if err != nil {
		return err
	}
	if dict != nil && len(b) > 0 && b[0] <= 32 {
		packed, err := pack(b[1:], int(b[0]), n)
		if err != nil {
			return err
		}
		if packed != nil {
			f.values.dict, f.packed = dict, packed
			return nil
		}
	}
	return f.values.decode(b, n, encoding, dict)
}

// Dictionary returns the values that the rows refer to by number, or nil.
func (f *Few) Dictionary() *Values { return f.values.dict }

// Find returns the values that hold the value of row i, and which of them it is. If the row is null, that one is too.
func (f *Few) Find(i int) (v *Values, k int, err error) {
	v = f.values
	if f.packed == nil || v.Null(i) {
		return v, i, nil
	}
	if v.at != nil {
		i = int(v.at[i])
	}
	x, err := f.number(i)
	if err != nil {
		return nil, 0, err
	}
	return v.dict, int(x), nil
}

// Values returns the values of all rows of a column without lists, or nil if their indexes are packed.
func (f *Few) Values() *Values {
	if f.packed != nil {
		return nil
	}
	return f.values
}

// Take returns the values of some rows of a column without lists, in that order.
func (f *Few) Take(rows []int32) (*Values, error) {
	v := f.values.Take(rows)
	if f.packed == nil {
		return v, nil
	}
	out, places := *v, make([]int32, v.n)
	out.ix = make([]uint32, 0, v.n)
	for i, k := range v.at {
		if places[i] = -1; k < 0 {
			continue
		}
		x, err := f.number(int(k))
		if err != nil {
			return nil, err
		}
		places[i] = int32(len(out.ix))
		out.ix = append(out.ix, x)
	}
	if out.at, out.full = nil, false; len(out.ix) < v.n {
		out.at = places
	}
	return &out, nil
}

// number returns number i of the dictionary's numbers that are packed.
func (f *Few) number(i int) (uint32, error) {
	x := f.packed.number(i)
	if err := indexBelow(x, f.values.dict.n); err != nil {
		return 0, fault.WithPart(fault.WithPart(err, "", f.off), "column "+f.column, 0)
	}
	return x, nil
}

// Cost returns about how many bytes of memory the values take, without their dictionary.
func (f *Few) Cost() int {
	return 96 + f.values.Cost() + f.packed.cost() + 4*cap(f.starts) + cap(f.nulls) + cap(f.reps)
}

// packedNumbers are numbers in the run-length / bit-packed hybrid. Any of them can be read without decoding the others.
type packedNumbers struct {
	width int
	bits  []byte // the page's, from its first run on
	runs  []packedRun
}

// packedRun is one run of packed numbers.
type packedRun struct {
	first int32 // how many numbers stand before it
	pos   int32 // where its bits begin, -1 if all its numbers are value
	value uint32
}

// packedRunBytes is the size of a packedRun.
const packedRunBytes = 12

// pack returns n numbers of width bits, n >= 1. It finds the faults that hybrid finds. It returns nil if the runs are
// so short that decoded numbers take less memory.
func pack(b []byte, width, n int) (*packedNumbers, error) {
	count := 0
	for rest, done := b, 0; done < n; count++ {
		run, after, err := nextRun(rest, width, done, n)
		if err != nil {
			return nil, err
		}
		done, rest = done+run.count, after
	}
	// Runs are counted before any is kept, because a file may have as many as numbers.
	if packedRunBytes*count+len(b) > 4*n {
		return nil, nil
	}
	packedRuns := &packedNumbers{width: width, bits: b, runs: make([]packedRun, 0, count)}
	for rest, done := b, 0; done < n; {
		run, after, err := nextRun(rest, width, done, n)
		if err != nil {
			return nil, err
		}
		kept := packedRun{first: int32(done), pos: -1, value: run.value}
		if run.bits != nil {
			kept.pos = int32(len(b) - len(run.bits))
		}
		packedRuns.runs = append(packedRuns.runs, kept)
		done, rest = done+run.count, after
	}
	return packedRuns, nil
}

// indexBelow checks an index of a dictionary of n values.
func indexBelow(i uint32, n int) error {
	if uint64(i) >= uint64(n) {
		return corrupt("value %d of a dictionary of %d", i, n)
	}
	return nil
}

// number returns number i.
func (p *packedNumbers) number(i int) uint32 {
	k := sort.Search(len(p.runs), func(k int) bool { return int(p.runs[k].first) > i }) - 1
	run := &p.runs[k]
	if run.pos < 0 {
		return run.value
	}
	return uint32(cursor.BitsAt(p.bits[run.pos:], (i-int(run.first))*p.width, p.width))
}

// cost returns how many bytes of memory the numbers take. p may be nil.
func (p *packedNumbers) cost() int {
	if p == nil {
		return 0
	}
	return 64 + cap(p.bits) + packedRunBytes*cap(p.runs)
}
