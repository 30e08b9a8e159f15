package rows

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
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
	// another row's weights. Old files lack it and are left unchecked.
	Samples string `json:"samples,omitempty"`
	// Found says in the file of a share of the rows which of Classes its pixels have. A file of all rows has it not:
	// each of its classes has a pixel.
	Found []bool `json:"found,omitempty"`
}

// Weights is a file of weights in memory.
type Weights struct {
	WeightsHeader
	Sizes []byte  // as the file has them
	Cells []byte  // too
	ends  []int64 // for each row, the number of the cell after its last
	// Hash is the XXH3-128 of the file.
	Hash [16]byte
}

// MaxWeights bounds a file of weights in bytes, because it is held in memory: 2 GiB.
const MaxWeights = 2 << 30

// OpenWeights reads the file of weights at path for the dataset t. A file for another number of
// rows, or for other samples, is fault.Unsupported.
func OpenWeights(ctx context.Context, path string, o resources.Options, t *Table) (*Weights, error) {
	weights, err := readWeights(ctx, path, o)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	if weights.Rows != t.N {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "weights",
			"of %d rows; the dataset has %d", weights.Rows, t.N), path)
	}
	if weights.Samples == "" {
		return weights, nil
	}
	samples, err := SamplesOf(ctx, t)
	if _, ok := t.base.(*catalog.Table); ok && err == nil && samples != weights.Samples {
		samples, err = samplesOf(ctx, t.ScanIDs) // as older files have it
	}
	if err == nil && samples != "" && samples != weights.Samples {
		err = fault.WithFile(fault.New(fault.Unsupported, "weights",
			"of other samples, or in another order: count them again"), path)
	}
	if err != nil {
		return nil, err
	}
	return weights, nil
}

// SamplesOf returns a digest of the keys of a dataset in order, as 32 hexadecimal digits. The directory that all keys
// share is left out, so weights stay valid after the files were moved.
func SamplesOf(ctx context.Context, t *Table) (string, error) { return samplesOf(ctx, t.Keys) }

func samplesOf(ctx context.Context, scan func(context.Context, func(int64, string) error) error) (string, error) {
	dir, first := "", true
	err := scan(ctx, func(_ int64, id string) error {
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
	hash := digest.New()
	err = scan(ctx, func(_ int64, id string) error {
		hash.Record([]byte(strings.TrimPrefix(id, dir)))
		return nil
	})
	return hash.Hex(), err
}

// readWeights reads and checks the file at path, which must lie below the roots.
func readWeights(ctx context.Context, path string, o resources.Options) (*Weights, error) {
	file, err := o.Opener.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if file.Size() > MaxWeights {
		return nil, fault.New(fault.Limit, "weights", "%d bytes, at most %d", file.Size(), MaxWeights)
	}
	// Otherwise any file below the roots would be read whole.
	read := func(p []byte, off int64) error { return file.ReadAt(ctx, p, off) }
	if _, _, err := readWeightsHeader(read, file.Size()); err != nil {
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

// weightsPiece is how much of a file of weights is read at a time, so a cancelled opening ends soon.
const weightsPiece = 16 << 20

// A file of weights begins with the magic and the length of the header.
const weightsStart = 12

// maxWeightsHeader bounds the header in bytes. It has a few numbers, a name and a digest.
const maxWeightsHeader = 1 << 20

var errNotWeights = fault.At(fault.Corrupt, "weights", 0, "not a file of 'chaski stats --sampling'")

// readWeightsHeader reads and checks the header of a file of weights of size bytes. It returns where the sizes of the
// rows begin. A damaged header is fault.Corrupt, another version fault.Unsupported.
func readWeightsHeader(read func(p []byte, off int64) error, size int64) (h WeightsHeader, sizes int64, err error) {
	start := make([]byte, weightsStart)
	if size < weightsStart {
		return h, 0, errNotWeights
	}
	if err := read(start, 0); err != nil {
		return h, 0, err
	}
	n := int64(binary.LittleEndian.Uint32(start[8:]))
	switch {
	case string(start[:8]) != WeightsMagic:
		return h, 0, errNotWeights
	case n > min(maxWeightsHeader, size-weightsStart):
		return h, 0, fault.At(fault.Corrupt, "weights", 8, "a header of %d bytes in %d", n, size-weightsStart)
	}
	text := make([]byte, n)
	if err := read(text, weightsStart); err != nil {
		return h, 0, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, 0, badWeights(weightsStart, "header: %v", err)
	}
	sizes = weightsStart + n
	switch {
	case h.Version != 1:
		return h, 0, fault.At(fault.Unsupported, "weights", weightsStart, "version %d; this is version 1", h.Version)
	case h.CellHeight < 1 || h.CellWidth < 1 || h.CellHeight > spec.MaxWindow || h.CellWidth > spec.MaxWindow:
		return h, 0, badWeights(weightsStart, "cells of %d by %d pixels", h.CellHeight, h.CellWidth)
	case h.Rows < 0 || h.Rows > (size-sizes)/8:
		return h, 0, badWeights(weightsStart, "%d rows in %d bytes", h.Rows, size-sizes)
	}
	return h, sizes, nil
}

// badWeights returns the error about damage at an offset of a file of weights.
func badWeights(off int64, format string, args ...any) error {
	return fault.At(fault.Corrupt, "weights", off, format, args...)
}

// ParseWeights parses the bytes of a file of weights, which it keeps. A damaged file is
// fault.Corrupt, another version fault.Unsupported.
func ParseWeights(b []byte) (*Weights, error) {
	read := func(p []byte, off int64) error {
		copy(p, b[off:])
		return nil
	}
	header, start, err := readWeightsHeader(read, int64(len(b)))
	if err != nil {
		return nil, err
	}
	first := start + 8*header.Rows
	weights := &Weights{
		WeightsHeader: header, Hash: xxh3.Hash128(b).Bytes(), Sizes: b[start:first], Cells: b[first:],
		// A row has 8 bytes of sizes, so the check of the header bounds this memory by the size of the file.
		ends: make([]int64, 0, header.Rows),
	}
	end, total := int64(0), int64(len(weights.Cells)/4)
	for row := range header.Rows {
		height, width := weights.Size(row)
		if height > math.MaxInt32 || width > math.MaxInt32 {
			return nil, badWeights(start+8*row, "row %d has %d by %d pixels", row, height, width)
		}
		down := int64(RoundUp(height, header.CellHeight) / header.CellHeight)
		across := int64(RoundUp(width, header.CellWidth) / header.CellWidth)
		if down*across > total-end { // two numbers below 2^31
			return nil, badWeights(start+8*row, "row %d has cells past the end of the file", row)
		}
		end += down * across
		weights.ends = append(weights.ends, end)
	}
	if n := int64(len(weights.Cells)); 4*end != n {
		return nil, badWeights(fault.NoOffset, "%d bytes of cells, where there should be %d", n, 4*end)
	}
	return weights, nil
}

// Size returns the size in pixels that a row's asset had when it was counted, 0 by 0 if it could
// not be read.
func (w *Weights) Size(row int64) (height, width int) {
	return int(binary.LittleEndian.Uint32(w.Sizes[8*row:])), int(binary.LittleEndian.Uint32(w.Sizes[8*row+4:]))
}

// Of returns the weights of a row's asset, which has height by width pixels. It returns nil if the
// asset could not be read when it was counted. An asset of another size than then is fault.Corrupt.
func (w *Weights) Of(row int64, height, width int) (*shuffle.Weights, error) {
	switch h, x := w.Size(row); {
	case h == 0 || x == 0:
		return nil, nil
	case h != height || x != width:
		return nil, fault.New(fault.Corrupt, "window",
			"the asset has %d by %d pixels, and its weights are of one of %d by %d", height, width, h, x)
	}
	first := int64(0)
	if row > 0 {
		first = w.ends[row-1]
	}
	cells := make([]uint32, w.ends[row]-first)
	for i := range cells {
		cells[i] = binary.LittleEndian.Uint32(w.Cells[4*(first+int64(i)):])
	}
	out, err := shuffle.NewWeights(cells, w.CellHeight, w.CellWidth, height, width, nil)
	return &out, err
}
