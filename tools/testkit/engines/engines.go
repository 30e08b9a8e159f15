// Package engines opens engines in tests, and looks at their batches.
package engines

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// Coast returns the path of a file of the dataset of the coast in testdata.
func Coast(t testing.TB, name string) string {
	return filepath.Join(corpus.Testdata(t), "coast", name)
}

// Open opens an engine, and closes it when the test ends.
func Open(t testing.TB, spec loader.Spec, o loader.Options) (*loader.Engine, error) {
	e, err := loader.Open(t.Context(), spec, o)
	if err == nil {
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return e, err
}

// MustOpen is Open, and ends the test if it fails.
func MustOpen(t testing.TB, spec loader.Spec, o loader.Options) *loader.Engine {
	t.Helper()
	e, err := Open(t, spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// First returns the first batch of an epoch.
func First(t testing.TB, e *loader.Engine) *batch.Batch {
	t.Helper()
	b, err := e.Start(t.Context(), steps.StepTicket(0, 0, e.Spec().BatchSize, 0, 1), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

// Ranks returns the values of an integer field in a batch's valid rows.
func Ranks(b *batch.Batch, name string) []int {
	out := []int{}
	for i, v := range b.Valid {
		if v {
			out = append(out, int(int64(binary.LittleEndian.Uint64(b.Tensor(name).Data[8*i:]))))
		}
	}
	return out
}

// Condition makes a comparison.
func Condition(column, op, value string) loader.Condition {
	return loader.Condition{Column: column, Op: op, Value: json.RawMessage(value)}
}
