package loader

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// markedSamples is how many samples Marks reads with Options.VerifyContents. If a twentieth of the data differs, it
// misses that once in 26 times (0.95^64); reading them takes about as long as two batches of 32.
const markedSamples = 64

// Marks returns what marks the contents of the files, which the fingerprint lacks: "etag:" or "mtime:" and a text that
// is equal for equal marks, or "" if some source has neither. With Options.VerifyContents it is "bytes:" and a hash of
// the tensors of 64 samples, spread over the first epoch, as they are at the first call.
func (e *Engine) Marks(ctx context.Context) (string, error) {
	if e.options.VerifyContents {
		e.marking.Lock()
		defer e.marking.Unlock()
		if e.marks == "" {
			var err error
			if e.marks, err = e.contents(ctx); err != nil {
				return "", err
			}
		}
		return e.marks, nil
	}
	marks := make([]string, len(e.sets))
	for i, d := range e.sets {
		marks[i] = d.table.Marks
	}
	return rows.JoinMarks(marks), nil
}

// contents returns "bytes:" and a hash of the tensors of some samples.
func (e *Engine) contents(ctx context.Context) (string, error) {
	sum := digest.New()
	n := min(markedSamples, e.samples)
	for i := range n {
		// Each position has a ticket of its own, because a batch may have to have samples of one source or size only.
		b, err := e.Start(ctx, steps.Ticket{Positions: []int64{i * (e.samples / n)}}, true).Wait(ctx)
		if err != nil {
			return "", errors.Join(ctx.Err(), err)
		}
		addContents(sum, b)
		b.Release()
	}
	return "bytes:" + sum.Hex(), nil
}

// addContents adds the tensors of a batch to a hash.
func addContents(sum digest.Digest, b *batch.Batch) {
	for _, tensor := range b.Tensors {
		sum.Record([]byte(tensor.Name))
		sum.Record(tensor.Data)
		sum.Record(tensor.Offsets)
		if tensor.Convert != nil {
			sum.Record(tensor.Convert.Mask)
		}
	}
}
