package survey

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"iter"
	"reflect"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
)

// CellCounts are the counts of one row: the size of its asset in pixels, and the pixels of each cell
// that count, line by line. The zero value is a row that could not be read.
type CellCounts struct {
	Height, Width uint32
	Cells         []uint32
}

// WriteWeights writes a file of weights to w: the counts of all rows.
func WriteWeights(w io.Writer, h rows.WeightsHeader, counts []CellCounts) error {
	head, err := beginWeights(&h)
	if err != nil {
		return err
	}
	// Writing 64 KiB at a time avoids a second copy of all cells in memory. Flush returns the errors of all writes.
	out := bufio.NewWriterSize(w, 1<<16)
	_, _ = out.Write(head)
	add := func(n uint32) { _, _ = out.Write(binary.LittleEndian.AppendUint32(out.AvailableBuffer(), n)) }
	for _, r := range counts {
		add(r.Height)
		add(r.Width)
	}
	for _, r := range counts {
		for _, cell := range r.Cells {
			add(cell)
		}
	}
	return out.Flush()
}

// beginWeights returns the bytes of a file of weights before the sizes.
func beginWeights(h *rows.WeightsHeader) ([]byte, error) {
	head, err := json.Marshal(h)
	return append(binary.LittleEndian.AppendUint32([]byte(rows.WeightsMagic), uint32(len(head))), head...), err
}

// badWeights returns the error about parts that do not make one file of weights.
func badWeights(format string, args ...any) error {
	return fault.New(fault.Corrupt, "weights", format, args...)
}

// WeightsPart is a file of weights of a run of rows.
type WeightsPart struct {
	Rows int64 // that it must have
	File *io.SectionReader
}

// MergeWeights joins files of weights of runs of rows into the file of all rows, in their order. It holds them in
// memory, since the sizes of all rows come before the cells: as much as OpenWeights takes of the result. It returns
// fault.Corrupt for a part that is not such a file, has other rows, or has other fields, cells or samples than the
// first one.
func MergeWeights(w io.Writer, parts iter.Seq2[WeightsPart, error]) error {
	var total *rows.WeightsHeader
	var sizes, cells []byte
	var found []bool // of the classes, by the parts so far
	for part, err := range parts {
		if err != nil {
			return err
		}
		size := part.File.Size()
		if size > rows.MaxWeights-int64(len(sizes)+len(cells)) {
			return fault.New(fault.Limit, "weights", "the parts are over %d bytes", int64(rows.MaxWeights))
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(io.NewSectionReader(part.File, 0, size), data); err != nil {
			return err
		}
		weights, err := rows.ParseWeights(data)
		if err != nil {
			return err
		}
		head := weights.WeightsHeader
		if head.Rows != part.Rows {
			return badWeights("%d rows, where there should be %d", head.Rows, part.Rows)
		}
		for class, pixels := range head.Found {
			if len(found) != len(head.Found) {
				found = make([]bool, len(head.Found))
			}
			found[class] = found[class] || pixels
		}
		if head.Found = nil; total == nil {
			total = &rows.WeightsHeader{}
			*total = head
			total.Rows = 0
		}
		if head.Rows = total.Rows; !reflect.DeepEqual(head, *total) {
			return badWeights("of other fields, cells or samples than the part before it")
		}
		total.Rows += part.Rows
		sizes, cells = append(sizes, weights.Sizes...), append(cells, weights.Cells...)
	}
	if total == nil {
		return badWeights("no part")
	}
	if err := classesFound(total, found); err != nil {
		return err
	}
	head, err := beginWeights(total)
	for _, section := range [][]byte{head, sizes, cells} {
		if err == nil {
			_, err = w.Write(section)
		}
	}
	return err
}

// classesFound fails with kind not found if all pixels lack the classes of a file: windows would be drawn as if
// nobody asked for them.
func classesFound(h *rows.WeightsHeader, found []bool) error {
	var none []float64
	for class := range min(len(found), len(h.Classes)) {
		if !found[class] {
			none = append(none, h.Classes[class])
		}
	}
	if none == nil {
		return nil
	}
	return fault.New(fault.NotFound, "classes", "no pixel of field %q is one of %v: leave them out", h.Field, none)
}
