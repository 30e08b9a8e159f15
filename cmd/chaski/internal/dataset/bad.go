package dataset

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// badRow is a row whose sample was bad, as reports print it.
type badRow struct {
	Row      int    `json:"row"`
	Position int64  `json:"position"`
	Error    string `json:"error"`
	// Sample is the bad sample. Instead is its substitute, if the policy is to replace bad samples.
	Sample  *loader.SampleRef `json:"sample,omitempty"`
	Instead *loader.SampleRef `json:"instead,omitempty"`
}

// badRows returns the bad rows of a batch. It is never nil, so that JSON has an empty list.
func badRows(b *loader.Batch) []badRow {
	out := make([]badRow, len(b.Bad))
	for i, bad := range b.Bad {
		out[i] = badRow{bad.Row, bad.Position, fault.Line(bad.Err), bad.Sample, bad.Instead}
	}
	return out
}
