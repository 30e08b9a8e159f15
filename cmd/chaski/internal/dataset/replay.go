package dataset

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/picture/npy"
	"github.com/chaski-eo/chaski/loader/batch"
)

// Replayed is the content of step.json.
type Replayed struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	stepAt
	Bad []badRow `json:"bad"`
}

// writeBatch writes a batch as .npz.
func writeBatch(w io.Writer, b *batch.Batch, step Replayed) error {
	note, err := json.Marshal(step)
	if err != nil {
		return err
	}
	zip := npy.NewZip(w)
	for i := range b.Tensors {
		if err := writeTensor(zip, &b.Tensors[i]); err != nil {
			return err
		}
	}
	ints := func(v []int64) (out []byte) {
		for _, n := range v {
			out = binary.LittleEndian.AppendUint64(out, uint64(n))
		}
		return out
	}
	rows := []int{b.Rows}
	return cmp.Or(zip.Bools("valid", b.Valid), zip.Array("position", chunk.Int64, rows, ints(b.Positions)),
		zip.Array("sample", chunk.Int64, rows, ints(b.Samples)), zip.File("step.json", append(note, '\n')), zip.Close())
}

func writeTensor(z *npy.Zip, t *batch.Tensor) error {
	shape := make([]int, len(t.Shape))
	for i, n := range t.Shape {
		shape[i] = int(n)
	}
	switch t.Kind {
	case batch.Dense:
		return z.Array(t.Name, t.DType, shape, t.Data)
	case batch.Text:
		return z.Strings(t.Name, shape, t.Texts())
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("tensor %q", t.Name), fault.NoOffset,
		"it is ragged, which .npz cannot hold")
}

// badRow is a row whose sample was bad, as reports print it.
type badRow struct {
	Row      int    `json:"row"`
	Position int64  `json:"position"`
	Error    string `json:"error"`
	// Sample is the bad sample. Instead is its substitute, if the policy is to replace bad samples.
	Sample  *batch.SampleRef `json:"sample,omitempty"`
	Instead *batch.SampleRef `json:"instead,omitempty"`
}

// badRows returns the bad rows of a batch. It is never nil, so that JSON has an empty list.
func badRows(b *batch.Batch) []badRow {
	out := make([]badRow, len(b.Bad))
	for i, bad := range b.Bad {
		out[i] = badRow{bad.Row, bad.Position, fault.Line(bad.Err), bad.Sample, bad.Instead}
	}
	return out
}
