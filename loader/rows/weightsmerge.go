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
	"github.com/chaski-eo/chaski/loader/spec"
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
		weightsPart, err := openWeightsPart(part.File)
		if err == nil {
			err = weightsPart.check()
		}
		if err != nil {
			return err
		}
		if weightsPart.Rows != part.Rows {
			return badPart("%d rows, where there should be %d", weightsPart.Rows, part.Rows)
		}
		if total == nil {
			h := weightsPart.WeightsHeader
			h.Rows = 0
			total = &h
		}
		weightsPart.Rows = total.Rows
		if !reflect.DeepEqual(weightsPart.WeightsHeader, *total) {
			return badPart("of other fields, cells or samples than the part before it")
		}
		total.Rows += part.Rows
	}
	if total == nil {
		return badPart("no part")
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
			weightsPart, err := openWeightsPart(part.File)
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, section(weightsPart)); err != nil {
				return err
			}
		}
	}
	return nil
}

func badPart(format string, args ...any) error {
	return fault.New(fault.Corrupt, "weights", fault.NoOffset, format, args...)
}

// openWeightsPart parses the header of a file of weights.
func openWeightsPart(r *io.SectionReader) (*weightsPart, error) {
	start := make([]byte, weightsStart)
	if r.Size() < weightsStart {
		return nil, errNotWeights
	}
	if _, err := r.ReadAt(start, 0); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(start[8:]))
	// No header is empty, and a read of nothing at the end of a file says that it has ended.
	if string(start[:8]) != WeightsMagic || n == 0 || n > min(maxWeightsHeader, r.Size()-weightsStart) {
		return nil, errNotWeights
	}
	head := make([]byte, n)
	if _, err := r.ReadAt(head, weightsStart); err != nil {
		return nil, err
	}
	p := &weightsPart{}
	if err := json.Unmarshal(head, &p.WeightsHeader); err != nil {
		return nil, fault.New(fault.Corrupt, "weights", weightsStart, "header: %v", err)
	}
	pos := weightsStart + n
	rest := r.Size() - pos
	switch {
	case p.Version != 1:
		return nil, badPart("version %d; this is version 1", p.Version)
	case p.CellHeight < 1 || p.CellWidth < 1 || p.CellHeight > spec.MaxWindow || p.CellWidth > spec.MaxWindow:
		return nil, badPart("cells of %d by %d pixels", p.CellHeight, p.CellWidth)
	case p.Rows < 0 || p.Rows > rest/8:
		return nil, badPart("%d rows in %d bytes", p.Rows, rest)
	}
	p.sizes = io.NewSectionReader(r, pos, 8*p.Rows)
	p.cells = io.NewSectionReader(r, pos+8*p.Rows, rest-8*p.Rows)
	return p, nil
}

// check checks that the cells are those which the sizes say.
func (p *weightsPart) check() error {
	sizes := bufio.NewReaderSize(p.sizes, 1<<16)
	var b [8]byte
	left := p.cells.Size() / 4
	for row := range p.Rows {
		if _, err := io.ReadFull(sizes, b[:]); err != nil {
			return err
		}
		h, x := int64(binary.LittleEndian.Uint32(b[:])), int64(binary.LittleEndian.Uint32(b[4:]))
		if h > math.MaxInt32 || x > math.MaxInt32 {
			return badPart("row %d has %d by %d pixels", row, h, x)
		}
		down, across := (h+int64(p.CellHeight)-1)/int64(p.CellHeight), (x+int64(p.CellWidth)-1)/int64(p.CellWidth)
		if across > 0 && down > left/across {
			return badPart("row %d has cells past the end of the file", row)
		}
		left -= down * across
	}
	if left != 0 || p.cells.Size()%4 != 0 {
		return badPart("%d bytes of cells, which are not those of the sizes", p.cells.Size())
	}
	return nil
}
