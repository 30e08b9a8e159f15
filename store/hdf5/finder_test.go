package hdf5

import (
	"context"
	"errors"
	"testing"

	format "github.com/chaski-eo/chaski/format/hdf5"
)

// TestAnIndexThatHangs: a wait for an index that somebody reads ends with its context; one that was read needs no wait.
func TestAnIndexThatHangs(t *testing.T) {
	var f chunkFinder
	unlock, err := f.reading.Lock(t.Context(), struct{}{}) // as a read that hangs
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	f.index.Store(&format.Chunks{{Number: 3}})
	if index, err := f.read(ctx); err != nil || len(index) != 1 {
		t.Errorf("%v, %v", index, err)
	}
}
