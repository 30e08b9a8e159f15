package numpy_test

import (
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/store/numpy"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
)

// FuzzOpen: a file of any content is read or refused, with a kind.
func FuzzOpen(f *testing.F) {
	head, err := npy.Header(chunk.Uint16, []int{3, 4})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(head, make([]byte, 24)...))
	f.Fuzz(func(t *testing.T, b []byte) { arrayfile.ReadAll(t, b, "a.npy", numpy.Open) })
}
