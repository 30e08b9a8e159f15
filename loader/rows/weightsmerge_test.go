package rows_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
)

// weightsOf is a file of weights with one cell of each row's number of pixels.
func weightsOf(t testing.TB, h rows.WeightsHeader, counts ...rows.CellCounts) []byte {
	t.Helper()
	h.Version, h.Rows = 1, int64(len(counts))
	var b bytes.Buffer
	if err := rows.WriteWeights(&b, h, counts); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mergeWeights(w io.Writer, parts ...[]byte) error {
	return rows.MergeWeights(w, func(yield func(rows.WeightsPart, error) bool) {
		for _, b := range parts {
			f := io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
			if !yield(rows.WeightsPart{Rows: 2, File: f}, nil) {
				return
			}
		}
	})
}

// TestHostileWeights: parts that are not files of weights, of other rows, or unlike the others, are refused.
func TestHostileWeights(t *testing.T) {
	h := rows.WeightsHeader{CellHeight: 4, CellWidth: 4, Field: "x", Samples: "a"}
	other := h
	other.Samples = "b"
	row := rows.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}
	good := weightsOf(t, h, row, rows.CellCounts{})
	var got bytes.Buffer
	if err := mergeWeights(&got, good, good); err != nil {
		t.Fatal(err)
	}
	if want := weightsOf(t, h, row, rows.CellCounts{}, row, rows.CellCounts{}); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%x, want %x", got.Bytes(), want)
	}
	large := bytes.Clone(good)
	at := 12 + binary.LittleEndian.Uint32(good[8:])
	copy(large[at:], strings.Repeat("\xff", 8))
	wide := weightsOf(t, h, rows.CellCounts{Height: 1 << 31}, rows.CellCounts{})
	for name, parts := range map[string][][]byte{
		"wide": {wide}, "nothing": {}, "empty": {nil}, "no weights": {[]byte(strings.Repeat("x", 100))},
		"torn": {good[:len(good)-1]},
		"more": {append(bytes.Clone(good), 0, 0, 0, 0)}, "one row": {good, weightsOf(t, h, row)}, "large": {large},
		"others": {good, weightsOf(t, other, row, row)},
	} {
		if err := mergeWeights(io.Discard, parts...); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
	}
}

// FuzzWeightsPart: what is merged can be read, and anything else is refused with a kind.
func FuzzWeightsPart(f *testing.F) {
	h := rows.WeightsHeader{CellHeight: 4, CellWidth: 4, Field: "x"}
	good := weightsOf(f, h, rows.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}, rows.CellCounts{})
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		err := mergeWeights(&out, b, b)
		if err == nil {
			_, err = rows.ParseWeights(out.Bytes())
			if err != nil {
				err = fmt.Errorf("merged: %v", err)
			}
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatal(err)
		}
	})
}
