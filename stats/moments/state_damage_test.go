package moments

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// TestDamagedStates: whatever byte of a state is changed, or cut off, reading it gives an error that has a kind, or
// a state that says the same when it is written again. It never panics.
func TestDamagedStates(t *testing.T) {
	for _, dtype := range []chunk.DType{chunk.Uint8, chunk.Int16, chunk.Float32} {
		f, err := NewField(dtype, 2)
		if err != nil {
			t.Fatal(err)
		}
		row := make([]byte, 6*dtype.Size())
		for i := range row {
			row[i] = byte(i * i / 3)
		}
		f.AddRows(0, row)
		f.AddRows(1, row[:2*dtype.Size()])
		state := f.AppendState(nil)
		check := func(what string, damaged []byte) {
			got, err := ParseState(damaged)
			switch kind := fault.KindOf(err); {
			case err == nil:
				again, err := ParseState(got.AppendState(nil))
				if err != nil || !bytes.Equal(again.AppendState(nil), got.AppendState(nil)) {
					t.Errorf("%v, %s: got a state that is read as another one (%v)", dtype, what, err)
				}
			case kind == 0:
				t.Errorf("%v, %s: got %v; want an error that has a kind", dtype, what, err)
			}
		}
		for i := range state {
			check("cut", state[:i])
			for _, b := range []byte{0, 0x7f, 0xff, state[i] + 1, state[i] - 1} {
				damaged := bytes.Clone(state)
				damaged[i] = b
				check("changed", damaged)
			}
		}
	}
}
