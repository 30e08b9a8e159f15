package query

import "github.com/chaski-eo/chaski/fault"

// maxBatchText bounds the texts that are made for a batch of rows, in bytes, those inside of an expression included: 64
// KiB for each of 4,096 rows.
const maxBatchText = 1 << 28

func longTexts() error {
	return fault.New(fault.Limit, "query", fault.NoOffset, "texts of more than %d MiB for %d rows", maxBatchText>>20, batchRows)
}

// textWriter makes the texts of a batch. Once they are too long it takes no more, and finish says so.
type textWriter struct {
	v  *vec
	ev *evaluator
}

// texts returns a writer of n texts.
func (ev *evaluator) texts(n int) *textWriter {
	return &textWriter{v: &vec{n: n, lo: make([]uint32, n), hi: make([]uint32, n)}, ev: ev}
}

// room reports whether so many bytes more may be written.
func (w *textWriter) room(n int) bool {
	if w.ev.made+len(w.v.data)+n > maxBatchText {
		w.ev.full = true
	}
	return !w.ev.full
}

// add appends to the text that is being written.
func (w *textWriter) add(s ...[]byte) {
	for _, part := range s {
		if w.room(len(part)) {
			w.v.data = append(w.v.data, part...)
		}
	}
}

// end ends text k. Texts are written in order.
func (w *textWriter) end(k int) {
	if k > 0 {
		w.v.lo[k] = w.v.hi[k-1]
	}
	w.v.hi[k] = uint32(len(w.v.data))
}

// null makes text k null.
func (w *textWriter) null(k int) {
	if w.v.nulls == nil {
		w.v.nulls = make([]bool, w.v.n)
	}
	w.v.nulls[k] = true
	w.end(k)
}

// finish returns the texts.
func (w *textWriter) finish() (*vec, error) {
	if !w.room(0) {
		return nil, longTexts()
	}
	w.ev.made += len(w.v.data)
	return w.v, nil
}
