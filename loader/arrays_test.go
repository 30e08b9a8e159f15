package loader

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestArraysMix: the sources of a mixture may be arrays, each with its own dimensions.
func TestArraysMix(t *testing.T) {
	a, b := corpus.Known(t, "numbered-3"), corpus.Known(t, "numbered-5")
	sp := Spec{BatchSize: 2, Shuffle: true, Mixture: spec.Mixture{Until: spec.UntilLongest, Sources: []Source{
		{Name: "a", Source: a}, {Name: "b", Source: b, Dims: "n y x"}}}}
	e, err := Open(t.Context(), sp, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	seen := map[uint64]int{}
	for step := range e.Steps() {
		batch := wait(t, e.Start(t.Context(), steps.Ticket{First: 2 * step, Count: 2, RowStride: 1}, false))
		for r := range 2 {
			if !batch.Valid[r] {
				continue
			}
			seen[binary.LittleEndian.Uint64(batch.Tensor(spec.SourceColumn).Data[8*r:])]++
		}
		batch.Release()
	}
	if seen[0] < 5 || seen[1] < 5 {
		t.Errorf("%v", seen)
	}
}

// TestEncryptedArray: an encrypted array needs its key, from the options or the environment.
func TestEncryptedArray(t *testing.T) {
	path, key := corpus.Known(t, "encrypted"), []byte("0123456789abcdef0123456789abcdef")
	data := []byte("the cells of two images of 4 x 4")
	sp := Spec{Source: path, BatchSize: 2}
	t.Setenv(store.KeyVar, "")
	if _, err := Open(t.Context(), sp, Options{}); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "key") {
		t.Errorf("without a key: %v", err)
	}
	for name, o := range map[string]Options{"options": {ArrayKey: key}, "environment": {}} {
		if o.ArrayKey == nil {
			t.Setenv(store.KeyVar, string(key))
		}
		e, err := Open(t.Context(), sp, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := wait(t, e.Start(t.Context(), steps.Ticket{Count: 2, RowStride: 1}, false))
		if !bytes.Equal(b.Tensor("image").Data, data) {
			t.Errorf("%s: %q", name, b.Tensor("image").Data)
		}
		b.Release()
		e.Close()
		t.Setenv(store.KeyVar, "")
	}
}
