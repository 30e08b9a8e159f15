package rows

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

// WeightsMagic begins a file of weights. All numbers of the file are little-endian uint32:
//
//	8 bytes   magic "CHSKWGT1"
//	u32       length of the header, and the header as JSON: WeightsHeader
//	sizes     for each row of the dataset, u32 height and u32 width of its first asset in pixels
//	cells     for each row, the u32 weights of its cells, line by line
const WeightsMagic = "CHSKWGT1"

// WeightsHeader describes the counts in a file of weights.
type WeightsHeader struct {
	Version int `json:"version"`
	// Rows is the number of rows of the dataset.
	Rows int64 `json:"rows"`
	// CellHeight and CellWidth are the size of a cell in pixels of the first raster field.
	CellHeight int `json:"cell_height"`
	CellWidth  int `json:"cell_width"`
	// Field is the field whose pixels were counted. Classes are the values that count; without any,
	// all valid pixels do.
	Field   string    `json:"field"`
	Classes []float64 `json:"classes,omitempty"`
	// Samples is a digest of the rows that were counted, as SamplesOf makes it. A table that is
	// sorted anew has as many rows of the same sizes, so without a digest windows would be drawn by
	// another row's weights. Old files have none and are not checked.
	Samples string `json:"samples,omitempty"`
}

// CellCounts are the counts of one row: the size of its asset in pixels, and the pixels of each cell
// that count, line by line. The zero value is a row that could not be read.
type CellCounts struct {
	Height, Width uint32
	Cells         []uint32
}

// WriteWeights writes a file of weights to w: the counts of all rows.
func WriteWeights(w io.Writer, h WeightsHeader, counts []CellCounts) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	buf := binary.LittleEndian.AppendUint32([]byte(WeightsMagic), uint32(len(head)))
	buf = append(buf, head...)
	for _, r := range counts {
		buf = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(buf, r.Height), r.Width)
	}
	for _, r := range counts {
		for _, c := range r.Cells {
			buf = binary.LittleEndian.AppendUint32(buf, c)
		}
		// Writing 64 KiB at a time avoids a second copy of all cells in memory.
		if len(buf) > 1<<16 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err = w.Write(buf)
	return err
}

// Weights is a file of weights in memory.
type Weights struct {
	WeightsHeader
	sizes []byte
	cells []byte
	ends  []int64 // for each row, the number of the cell after its last
	// Hash is the XXH3-128 of the file.
	Hash [16]byte
}

// maxWeights bounds a file of weights in bytes, because it is held in memory: 2 GiB.
const maxWeights = 2 << 30

// OpenWeights reads the file of weights at path for the dataset t. A file for another number of
// rows, or for other samples, is fault.Unsupported.
func OpenWeights(ctx context.Context, path string, o resources.Options, t Table) (*Weights, error) {
	weights, err := readWeights(ctx, path, o)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	if weights.Rows != t.Len() {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "weights", fault.NoOffset,
			"of %d rows; the dataset has %d", weights.Rows, t.Len()), path)
	}
	if weights.Samples == "" {
		return weights, nil
	}
	switch samples, err := SamplesOf(ctx, t); {
	case err != nil:
		return nil, err
	case samples != "" && samples != weights.Samples:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "weights", fault.NoOffset,
			"of other samples, or in another order: count them again, with this run's first raster field first"), path)
	}
	return weights, nil
}

// SamplesOf returns a digest of the ids of a dataset in order, as 32 hexadecimal digits, or "" for
// a dataset without ids. The directory that all ids share is left out, so that weights stay valid
// after the files were moved.
func SamplesOf(ctx context.Context, t Table) (string, error) {
	dir, first := "", true
	err := t.ScanIDs(ctx, func(_ int64, id string) error {
		if first {
			dir, first = id[:strings.LastIndexByte(id, '/')+1], false
		}
		for !strings.HasPrefix(id, dir) {
			dir = dir[:strings.LastIndexByte(dir[:len(dir)-1], '/')+1]
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var h xxh3.Hasher
	var b []byte
	err = t.ScanIDs(ctx, func(_ int64, id string) error {
		id = strings.TrimPrefix(id, dir)
		// The length comes first, so that "ab", "c" and "a", "bc" differ.
		b = append(binary.LittleEndian.AppendUint64(b[:0], uint64(len(id))), id...)
		_, _ = h.Write(b)
		return nil
	})
	sum := h.Sum128()
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo), err
}

// readWeights reads and checks the file at path, which must lie below the roots.
func readWeights(ctx context.Context, path string, o resources.Options) (*Weights, error) {
	file, err := o.Opener.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if file.Size() > maxWeights {
		return nil, fault.New(fault.Limit, "weights", fault.NoOffset, "%d bytes, at most %d", file.Size(), maxWeights)
	}
	if err := checkWeights(ctx, file); err != nil {
		return nil, err
	}
	// The file, and as much at most for the ends of its rows, which have 8 bytes each in both.
	if err := budget.Grow(ctx, 2*file.Size()); err != nil {
		return nil, err
	}
	data := make([]byte, file.Size())
	for pos := 0; pos < len(data); pos += weightsPiece {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := file.ReadAt(ctx, data[pos:min(pos+weightsPiece, len(data))], int64(pos)); err != nil {
			return nil, err
		}
	}
	return ParseWeights(data)
}

// weightsPiece is how much of a file of weights is read at a time, so that a cancelled opening ends soon.
const weightsPiece = 16 << 20

// checkWeights checks the begin of a file of weights before the rest is read: the magic, and a header that is JSON of
// this version. Otherwise any file below the roots would be read whole.
func checkWeights(ctx context.Context, f source.Reader) error {
	head := make([]byte, min(f.Size(), weightsStart))
	if err := f.ReadAt(ctx, head, 0); err != nil {
		return err
	}
	if len(head) < weightsStart || string(head[:8]) != WeightsMagic {
		return errNotWeights
	}
	n := int64(binary.LittleEndian.Uint32(head[8:]))
	if n > min(maxWeightsHeader, f.Size()-weightsStart) {
		return fault.New(fault.Corrupt, "weights", 8, "a header of %d bytes in %d", n, f.Size()-weightsStart)
	}
	head = make([]byte, n)
	if err := f.ReadAt(ctx, head, weightsStart); err != nil {
		return err
	}
	var h WeightsHeader
	if err := json.Unmarshal(head, &h); err != nil {
		return fault.New(fault.Corrupt, "weights", weightsStart, "header: %v", err)
	}
	return nil
}

// A file of weights begins with the magic and the length of the header.
const weightsStart = 12

// maxWeightsHeader bounds the header in bytes. It has a few numbers, a name and a digest.
const maxWeightsHeader = 1 << 20

var errNotWeights = fault.New(fault.Corrupt, "weights", 0, "not a file of 'chaski stats --sampling'")

// ParseWeights parses the bytes of a file of weights, which it keeps. A damaged file is
// fault.Corrupt, another version fault.Unsupported.
func ParseWeights(b []byte) (*Weights, error) {
	bad := func(off int64, format string, args ...any) error {
		return fault.New(fault.Corrupt, "weights", off, format, args...)
	}
	if len(b) < weightsStart || string(b[:8]) != WeightsMagic {
		return nil, errNotWeights
	}
	n := int64(binary.LittleEndian.Uint32(b[8:]))
	rest := b[12:]
	if n > int64(len(rest)) {
		return nil, bad(8, "a header of %d bytes in %d", n, len(rest))
	}
	weights := &Weights{Hash: xxh3.Hash128(b).Bytes()}
	if err := json.Unmarshal(rest[:n], &weights.WeightsHeader); err != nil {
		return nil, bad(12, "header: %v", err)
	}
	rest = rest[n:]
	switch {
	case weights.Version != 1:
		return nil, fault.New(fault.Unsupported, "weights", 12, "version %d; this is version 1", weights.Version)
	case weights.CellHeight < 1 || weights.CellWidth < 1 || weights.CellHeight > spec.MaxWindow ||
		weights.CellWidth > spec.MaxWindow:
		return nil, bad(12, "cells of %d by %d pixels", weights.CellHeight, weights.CellWidth)
	case weights.Rows < 0 || weights.Rows > int64(len(rest))/8:
		return nil, bad(12, "%d rows in %d bytes", weights.Rows, len(rest))
	}
	// A row has 8 bytes of sizes, so the check above bounds the memory of ends by the size of the file.
	weights.sizes, weights.cells = rest[:8*weights.Rows], rest[8*weights.Rows:]
	end := int64(0)
	weights.ends = make([]int64, weights.Rows)
	for i := range weights.ends {
		h, x := weights.Size(int64(i))
		if h > math.MaxInt32 || x > math.MaxInt32 {
			return nil, bad(12+n+8*int64(i), "row %d has %d by %d pixels", i, h, x)
		}
		cells := int64(RoundUp(h, weights.CellHeight)/weights.CellHeight) * int64(RoundUp(x,
			weights.CellWidth)/weights.CellWidth)
		if cells > int64(len(weights.cells))/4-end {
			return nil, bad(12+n+8*int64(i), "row %d has cells past the end of the file", i)
		}
		end += cells
		weights.ends[i] = end
	}
	if 4*end != int64(len(weights.cells)) {
		return nil, bad(fault.NoOffset, "%d bytes of cells, where there should be %d", len(weights.cells), 4*end)
	}
	return weights, nil
}

// Size returns the size in pixels that a row's asset had when it was counted, 0 by 0 if it could
// not be read.
func (w *Weights) Size(row int64) (height, width int) {
	return int(binary.LittleEndian.Uint32(w.sizes[8*row:])), int(binary.LittleEndian.Uint32(w.sizes[8*row+4:]))
}

// Of returns the weights of a row's asset, which has height by width pixels. It returns nil if the
// asset could not be read when it was counted. An asset of another size than then is fault.Corrupt.
func (w *Weights) Of(row int64, height, width int) (*shuffle.Weights, error) {
	switch h, x := w.Size(row); {
	case h == 0 || x == 0:
		return nil, nil
	case h != height || x != width:
		return nil, fault.New(fault.Corrupt, "window", fault.NoOffset,
			"the asset has %d by %d pixels, and its weights are of one of %d by %d", height, width, h, x)
	}
	first := int64(0)
	if row > 0 {
		first = w.ends[row-1]
	}
	cells := make([]uint32, w.ends[row]-first)
	for i := range cells {
		cells[i] = binary.LittleEndian.Uint32(w.cells[4*(first+int64(i)):])
	}
	out, err := shuffle.NewWeights(cells, w.CellHeight, w.CellWidth, height, width, nil)
	return &out, err
}
