package vec

import "github.com/chaski-eo/chaski/fault"

// MaxBatchBytes bounds the strings that an expression makes for a batch of rows, those of its parts included: 64 KiB
// for each of 4,096 rows.
const MaxBatchBytes = 1 << 28

func tooLong() error {
	return fault.New(fault.Limit, "query", fault.NoOffset, "strings of more than %d MiB for %d rows",
		MaxBatchBytes>>20, BatchRows)
}

// Budget counts the bytes of the strings made for one batch of rows.
type Budget struct {
	used     int
	exceeded bool
}

// Reset starts the next batch: the strings of the last one are garbage, or belong to the caller.
func (b *Budget) Reset() { *b = Budget{} }

// StringWriter makes the strings of a batch. Once they exceed the budget it drops what follows, and Finish returns an
// error: functions need no error path.
type StringWriter struct {
	Vec    *Vec
	budget *Budget
}

// NewStrings returns a writer of n strings.
func NewStrings(n int, b *Budget) *StringWriter {
	return &StringWriter{Vec: &Vec{N: n, Lo: make([]uint32, n), Hi: make([]uint32, n)}, budget: b}
}

// Exceed marks the budget as exceeded.
func (w *StringWriter) Exceed() { w.budget.exceeded = true }

// HasRoom reports whether n more bytes fit in the budget.
func (w *StringWriter) HasRoom(n int) bool {
	if w.budget.used+len(w.Vec.Data)+n > MaxBatchBytes {
		w.budget.exceeded = true
	}
	return !w.budget.exceeded
}

// Add appends to the current string.
func (w *StringWriter) Add(s ...[]byte) {
	for _, part := range s {
		if w.HasRoom(len(part)) {
			w.Vec.Data = append(w.Vec.Data, part...)
		}
	}
}

// End ends string k. Strings are written in order.
func (w *StringWriter) End(k int) {
	if k > 0 {
		w.Vec.Lo[k] = w.Vec.Hi[k-1]
	}
	w.Vec.Hi[k] = uint32(len(w.Vec.Data))
}

// AddNull makes string k null.
func (w *StringWriter) AddNull(k int) {
	if w.Vec.Nulls == nil {
		w.Vec.Nulls = make([]bool, w.Vec.N)
	}
	w.Vec.Nulls[k] = true
	w.End(k)
}

// Finish returns the strings.
func (w *StringWriter) Finish() (*Vec, error) {
	if !w.HasRoom(0) {
		return nil, tooLong()
	}
	w.budget.used += len(w.Vec.Data)
	return w.Vec, nil
}
