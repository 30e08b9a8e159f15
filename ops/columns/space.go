package columns

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
)

// spaces bounds how many rasters are decoded at a time, and holds the memory of each for the next one.
type spaces chan *space

// newSpaces returns room for some rasters at a time, by default as many as there are processors.
func newSpaces(workers int) spaces {
	if workers <= 0 {
		workers = procs.Workers()
	}
	s := make(spaces, workers)
	for range workers {
		s <- &space{}
	}
	return s
}

// take waits for an unused space.
func (s spaces) take(ctx context.Context) (*space, error) {
	select {
	case free := <-s:
		return free, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s spaces) give(one *space) { s <- one }

// keptBytes is the largest raster whose memory a space keeps. Larger ones are rare in a container, and left to the
// garbage collector. 16 MiB hold 8 bands of 1,024 by 1,024 pixels of uint16.
const keptBytes = 16 << 20

// space is the memory in which one raster at a time is measured.
type space struct {
	pixels resources.Buffer // kept for the next raster; nil before the first
	bands  Summarizer
}

// read reads a raster of bands, y and x, whose index is x and header blob header. All of its pixels are valid if the
// array has no Valid: integers without nodata and mask, since they have no NaN. It is used before the next read.
func (s *space) read(ctx context.Context, o opened, x *chunk.Index, header []byte) (*loaded.Array, error) {
	if x.NoData != nil || x.NoDataBits != nil || x.Mask != nil || !x.DType.Integer() {
		return readBands(ctx, o, loaded.ReadOptions{Headers: [][]byte{header}, Validity: true})
	}
	return readBands(ctx, o, loaded.ReadOptions{Headers: [][]byte{header}, Alloc: s.alloc})
}

// pooled returns the statistics of the valid pixels of all bands and steps of time of a raster, whose index is x and
// header blob header: minimum, maximum, mean, standard deviation, and the percentiles 2 and 98. It returns nil if no
// pixel is valid.
func (s *space) pooled(ctx context.Context, o opened, x *chunk.Index, header []byte) ([]float64, error) {
	array, err := readAll(ctx, o, loaded.ReadOptions{Headers: [][]byte{header}, Validity: true})
	if err != nil {
		return nil, err
	}
	defer array.Release()
	data := array.Data
	if array.Valid != nil {
		data = s.bands.Valid(data, array.Valid, array.DType.Size())
	}
	out := s.bands.summary(data, x.DType, len(array.Data)/array.DType.Size(), []float64{2, 98})
	switch {
	case out == nil:
		return nil, fault.New(fault.Unsupported, "image", fault.NoOffset, "%s has no statistics", array.DType)
	case math.IsNaN(out[0]):
		return nil, nil
	}
	out = slices.Delete(out, 4, 5) // the share of valid pixels
	if x.DType == chunk.Float32 {
		for i, v := range out[4:] {
			out[4+i] = float64(float32(v))
		}
	}
	return out, nil
}

// alloc implements loaded.ReadOptions.Alloc.
func (s *space) alloc(n int) resources.Buffer {
	if n > keptBytes {
		return nil
	}
	if s.pixels == nil || len(s.pixels.Bytes()) < n {
		s.pixels = resources.NewHeap(n)
	}
	return lent{s.pixels}
}

// lent is a Buffer that its space keeps.
type lent struct{ resources.Buffer }

// Free implements resources.Buffer.
func (lent) Free() {}
