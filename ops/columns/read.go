package columns

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// name is the name of a file while it is read. rowOpener and opened ignore it.
const name = "raster"

// rowOpener opens the bytes of a row, under any name.
type rowOpener struct {
	opener source.Opener
	row    *build.Row
}

// Open implements source.Opener.
func (o rowOpener) Open(ctx context.Context, _ string) (source.Reader, error) {
	return o.row.Open(ctx, o.opener)
}

// opened opens a file that is open already, under any name.
type opened struct{ r source.Reader }

// Open implements source.Opener.
func (o opened) Open(context.Context, string) (source.Reader, error) { return unclosed{o.r}, nil }

// unclosed is a reader whose owner closes it.
type unclosed struct{ source.Reader }

// Close implements source.Reader.
func (unclosed) Close() error { return nil }

// Gap implements source.Gapped, ETag source.Tagged. Both ask the file.
func (u unclosed) Gap() int64   { return source.Gap(u.Reader) }
func (u unclosed) ETag() string { return source.ETag(u.Reader) }

// bare returns an error without the name of rowOpener.
func bare(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.File != name {
		return err
	}
	f := *e
	f.File = ""
	return &f
}

// maxRasterBytes bounds the pixels of a raster whose statistics are computed. Percentiles are exact, so all of them are
// in memory: 256 MiB hold 8 bands of 4,096 by 4,096 pixels of uint16. A worker holds at most as much, and 8 bytes for
// each pixel of one band beside.
const maxRasterBytes = 256 << 20

// readBands reads a raster of bands, y and x.
func readBands(ctx context.Context, o source.Opener, how loaded.ReadOptions) (*loaded.Array, error) {
	array, err := readAll(ctx, o, how)
	if err == nil && len(array.Shape) != 3 {
		array.Release()
		err = fault.New(fault.Unsupported, "image", fault.NoOffset,
			"has axes %v: statistics are of bands, y and x", array.Axes)
	}
	return array, err
}

// readAll reads a raster of any axes.
func readAll(ctx context.Context, o source.Opener, how loaded.ReadOptions) (*loaded.Array, error) {
	how.MaxBytes, how.Options.Opener = maxRasterBytes, o
	return loaded.Read(ctx, []string{name}, how)
}

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
