package rows

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"iter"
	"math"
	"reflect"

	"github.com/chaski-eo/chaski/fault"
)

// WeightsPart is a file of weights of a run of rows.
type WeightsPart struct {
	Rows int64 // that it must have
	File *io.SectionReader
}

// weightsPart is a file of weights of some rows. Only its header is in memory.
type weightsPart struct {
	WeightsHeader
	sizes, cells *io.SectionReader
	start        int64 // where sizes begin in the file
}

// MergeWeights joins files of weights of runs of rows into the file of all rows, in their order. It passes over parts
// three times, since the sizes of all rows come before the cells, and holds no part in memory. It returns
// fault.Corrupt for a part that is not such a file, has other rows, or has other fields, cells or samples than the
// first one.
func MergeWeights(w io.Writer, parts iter.Seq2[WeightsPart, error]) error {
	var total *WeightsHeader
	for part, err := range parts {
		if err != nil {
			return err
		}
		opened, err := openWeightsPart(part.File)
		if err == nil {
			err = opened.check(func(int64) {})
		}
		if err != nil {
			return err
		}
		if opened.Rows != part.Rows {
			return badWeights(fault.NoOffset, "%d rows, where there should be %d", opened.Rows, part.Rows)
		}
		if total == nil {
			h := opened.WeightsHeader
			h.Rows = 0
			total = &h
		}
		opened.Rows = total.Rows
		if !reflect.DeepEqual(opened.WeightsHeader, *total) {
			return badWeights(fault.NoOffset, "of other fields, cells or samples than the part before it")
		}
		total.Rows += part.Rows
	}
	if total == nil {
		return badWeights(fault.NoOffset, "no part")
	}
	head, err := json.Marshal(total)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32([]byte(WeightsMagic), uint32(len(head)))
	if _, err := w.Write(append(b, head...)); err != nil {
		return err
	}
	for _, section := range []func(*weightsPart) *io.SectionReader{
		func(p *weightsPart) *io.SectionReader { return p.sizes },
		func(p *weightsPart) *io.SectionReader { return p.cells },
	} {
		for part, err := range parts {
			if err != nil {
				return err
			}
			opened, err := openWeightsPart(part.File)
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, section(opened)); err != nil {
				return err
			}
		}
	}
	return nil
}

// openWeightsPart parses the header of a file of weights.
func openWeightsPart(r *io.SectionReader) (*weightsPart, error) {
	read := func(p []byte, off int64) error {
		_, err := r.ReadAt(p, off)
		return err
	}
	h, start, err := readWeightsHeader(read, r.Size())
	if err != nil {
		return nil, err
	}
	end := start + 8*h.Rows
	sizes, cells := io.NewSectionReader(r, start, 8*h.Rows), io.NewSectionReader(r, end, r.Size()-end)
	return &weightsPart{h, sizes, cells, start}, nil
}

// check checks that the cells are those which the sizes say. It calls row for each row, with the number of the cell
// after its last.
func (p *weightsPart) check(row func(end int64)) error {
	sizes := bufio.NewReaderSize(p.sizes, 1<<16)
	var b [8]byte
	end, total := int64(0), p.cells.Size()/4
	for i := range p.Rows {
		if _, err := io.ReadFull(sizes, b[:]); err != nil {
			return err
		}
		height, width := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
		if height > math.MaxInt32 || width > math.MaxInt32 {
			return badWeights(p.start+8*i, "row %d has %d by %d pixels", i, height, width)
		}
		down := int64(RoundUp(int(height), p.CellHeight) / p.CellHeight)
		across := int64(RoundUp(int(width), p.CellWidth) / p.CellWidth)
		if down*across > total-end { // two numbers below 2^31
			return badWeights(p.start+8*i, "row %d has cells past the end of the file", i)
		}
		end += down * across
		row(end)
	}
	if n := p.cells.Size(); 4*end != n {
		return badWeights(fault.NoOffset, "%d bytes of cells, where there should be %d", n, 4*end)
	}
	return nil
}
