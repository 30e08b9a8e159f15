package vec

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// MaxBatchBytes bounds the strings that an expression and its parts make for a batch of rows: 64 KiB
// for each of 4,096 rows.
const MaxBatchBytes = 1 << 28

// StepBytes is after how many bytes that are read or made a budget calls its Step. Most functions take at most some 10
// ns a byte: less than a millisecond, for which a goroutine keeps its turn in any case.
const StepBytes = 64 << 10

// Budget counts the bytes of the strings that are made for one batch of rows, and those that functions read.
type Budget struct {
	// Step, if it is not nil, comes before the strings of the batch have more bytes than in the last call, and each
	// time StepBytes were read. Its error becomes the batch's.
	Step func(bytes int) error
	used int
	till int // bytes that the last Step was called with
	read int // bytes since the last Step
	err  error
}

// Reset starts the next batch: the strings of the last one are garbage, or belong to the caller.
func (b *Budget) Reset() { *b = Budget{Step: b.Step} }

// Read counts n bytes that a function reads and returns the error of the batch. A function calls it for loops whose
// time grows with the bytes of a string.
func (b *Budget) Read(n int) error {
	if b.read += n; b.read >= StepBytes {
		b.step(b.till)
	}
	return b.err
}

// step calls Step, unless the batch has an error.
func (b *Budget) step(bytes int) {
	b.read = 0
	if b.err == nil && b.Step != nil {
		b.err = b.Step(bytes)
	}
	b.till = bytes
}

// makes says that the strings of the batch are going to have so many bytes.
func (b *Budget) makes(bytes int) {
	switch {
	case bytes > MaxBatchBytes && b.err == nil:
		b.err = fault.New(fault.Limit, "query", "strings of more than %d MiB for %d rows", MaxBatchBytes>>20, BatchRows)
	case bytes > b.till && b.err == nil:
		b.step(min(bytes+StepBytes, MaxBatchBytes))
	}
}

// StringWriter makes the strings of a batch. Once they exceed the budget, or its Step fails, it drops further strings,
// and Finish returns an error: functions need no error path.
type StringWriter struct {
	Type   tables.Type
	Data   []byte
	Nulls  []bool // nil: no string is null
	offs   []uint32
	budget *Budget
}

// NewStrings returns a writer of n strings.
func NewStrings(n int, b *Budget) *StringWriter {
	return &StringWriter{Type: sql.String, offs: make([]uint32, n+1), budget: b}
}

// HasRoom reports whether n more bytes fit in the budget.
func (w *StringWriter) HasRoom(n int) bool {
	if bytes := w.budget.used + len(w.Data) + n; bytes > w.budget.till {
		w.budget.makes(bytes)
	}
	return w.budget.err == nil
}

// Read counts n bytes that are read for the current string and reports whether the writer goes on.
func (w *StringWriter) Read(n int) bool { return w.budget.Read(n) == nil }

// Add appends to the current string.
func (w *StringWriter) Add(s ...[]byte) {
	for _, part := range s {
		if w.HasRoom(len(part)) {
			w.Data = append(w.Data, part...)
		}
	}
}

// End ends string k. Strings are written in order.
func (w *StringWriter) End(k int) {
	w.offs[k+1] = uint32(len(w.Data))
	// Functions may append to Data themselves, so its size needs to be counted here.
	w.HasRoom(0)
}

// AddNull makes string k null.
func (w *StringWriter) AddNull(k int) {
	if w.Nulls == nil {
		w.Nulls = make([]bool, len(w.offs)-1)
	}
	w.Nulls[k] = true
	w.End(k)
}

// Finish returns the strings.
func (w *StringWriter) Finish() (*tables.Vector, error) {
	if !w.HasRoom(0) {
		return nil, w.budget.err
	}
	w.budget.used += len(w.Data)
	return tables.NewBytes(w.Type, w.Data, w.offs, w.Nulls), nil
}
