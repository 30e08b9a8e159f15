package rows_test

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
)

func FuzzWeights(f *testing.F) {
	head := rows.WeightsHeader{Version: 1, Rows: 2, CellHeight: 4, CellWidth: 4, Field: "x"}
	var b bytes.Buffer
	if err := rows.WriteWeights(&b, head, []rows.CellCounts{{5, 4, []uint32{1, 2}}, {}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := rows.ParseWeights(b)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("%v has no kind", err)
			}
			return
		}
		for row := range w.Rows {
			h, x := w.Size(row)
			if _, err := w.Of(row, h, x); err != nil {
				t.Fatal(err)
			}
		}
	})
}
