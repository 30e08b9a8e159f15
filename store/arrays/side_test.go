package arrays

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TestPiecesOfElementsSideBySide reads arrays of numbers that say where they lie by the ranges of their pieces.
func TestPiecesOfElementsSideBySide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		shape := make([]int64, 1+r.IntN(4))
		for d := range shape {
			shape[d] = 1 + r.Int64N([]int64{4, 40, 300}[r.IntN(3)])
		}
		for Cells(shape, 1<<16) < 0 {
			d := slices.Index(shape, slices.Max(shape))
			shape[d] = (shape[d] + 1) / 2
		}
		m := &Meta{Shape: shape, DType: chunk.Uint32}
		if r.IntN(2) == 0 {
			m.Order = r.Perm(len(shape))
		}
		file := []byte("head")
		for i := range Cells(shape, 1<<16) {
			file = binary.LittleEndian.AppendUint32(file, uint32(i))
		}
		side := m.LaySide(chunk.Stored{}, chunk.Range{Off: 4, Len: int64(len(file) - 4)})
		if most := int64(4) * Cells(m.Chunks, 1<<30); most > wholeBytes {
			t.Fatalf("a piece of %v has %d bytes: %v", shape, most, m.Chunks)
		}
		checkPieces(t, m, side, file)
	}
}

// checkPieces checks that each element is in one piece, at its place.
func checkPieces(t *testing.T, m *Meta, side *Side, file []byte) {
	t.Helper()
	seen := make([]bool, (len(file)-4)/4)
	pieces := slices.Clone(m.Shape)
	for d, n := range pieces {
		pieces[d] = (n + m.Chunks[d] - 1) / m.Chunks[d]
	}
	for _, at := range places(pieces) {
		found, err := side.Find(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		piece := append(slices.Clone(file[found.At.Off:found.At.Off+found.At.Len]), make([]byte, found.Pad)...)
		for _, in := range places(m.Chunks) {
			inFile, inPiece, isIn := int64(0), int64(0), true
			for _, d := range m.Order {
				cell := at[d]*m.Chunks[d] + in[d]
				isIn = isIn && cell < m.Shape[d]
				inFile, inPiece = inFile*m.Shape[d]+cell, inPiece*m.Chunks[d]+in[d]
			}
			if !isIn {
				continue
			}
			if got := binary.LittleEndian.Uint32(piece[4*inPiece:]); int64(got) != inFile || seen[inFile] {
				t.Fatalf("%v in pieces of %v, order %v: element %d at %v of piece %v is %d", m.Shape, m.Chunks, m.Order,
					inFile, in, at, got)
			}
			seen[inFile] = true
		}
	}
	if slices.Contains(seen, false) {
		t.Fatalf("%v in pieces of %v lacks element %d", m.Shape, m.Chunks, slices.Index(seen, false))
	}
}

// places lists all places in a shape.
func places(shape []int64) [][]int64 {
	list := [][]int64{{}}
	for _, n := range shape {
		var longer [][]int64
		for _, place := range list {
			for i := range n {
				longer = append(longer, append(slices.Clone(place), i))
			}
		}
		list = longer
	}
	return list
}
