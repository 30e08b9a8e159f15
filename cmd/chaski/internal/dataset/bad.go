package dataset

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// badRow is a row that the bad-sample policy touched.
type badRow struct {
	Row      int    `json:"row"`
	Position int64  `json:"position"`
	Error    string `json:"error"`
	// Sample is the one that is bad; Instead what stands in its place.
	Sample  *loader.SampleRef `json:"sample,omitempty"`
	Instead *loader.SampleRef `json:"instead,omitempty"`
}

func badRows(b *loader.Batch) []badRow {
	out := make([]badRow, len(b.Bad))
	for i, bad := range b.Bad {
		out[i] = badRow{bad.Row, bad.Position, fault.Line(bad.Err), bad.Sample, bad.Instead}
	}
	return out
}
