package rows

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// cellCounts are the size of an asset and the weights of its cells.
type cellCounts struct {
	Height, Width uint32
	Cells         []uint32
}

// weightsFile returns a file of weights, written from the description of WeightsMagic alone.
func weightsFile(h WeightsHeader, counts ...cellCounts) []byte {
	head, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	file := binary.LittleEndian.AppendUint32([]byte(WeightsMagic), uint32(len(head)))
	file = append(file, head...)
	for _, row := range counts {
		file = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(file, row.Height), row.Width)
	}
	for _, row := range counts {
		for _, cell := range row.Cells {
			file = binary.LittleEndian.AppendUint32(file, cell)
		}
	}
	return file
}

func FuzzWeights(f *testing.F) {
	head := WeightsHeader{Version: 1, Rows: 2, CellHeight: 4, CellWidth: 4, Field: "x"}
	file := weightsFile(head, cellCounts{5, 4, []uint32{1, 2}}, cellCounts{})
	f.Add(file)
	f.Add(file[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWeights(b)
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
