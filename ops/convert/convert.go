// Package convert writes any raster that is read as a TOG or as a rumi file, and arrays as rasters and back.
package convert

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
)

// Formats that are written.
const (
	TOG   = "tog"
	Rumi  = "rumi"  // generation 1
	Rumi2 = "rumi2" // generation 2
)

// Options say what is written. All must be set; Check says whether they make sense.
type Options struct {
	Format   string
	Tile     int    // edge of a tile in pixels
	Level    int    // zstd level, 1 to 22
	Graph    string // of OpenZL, as openzl.NewEncoder names them; not of a TOG
	Cells    bool   // of Rumi2: a frame holds all bands of a grid position
	Workers  int    // that decode and compress one image
	MaxBytes int64  // of an image, decoded
	MaxChunk int    // decoded bytes of a chunk. Default loader.DefaultMaxChunkBytes

	Overviews bool // of TOG: keep those of the raster
	Strict    bool // refuse rasters of which something would be left out

	Opener source.Opener
	// Progress, if not nil, is called after every tile, from one goroutine at a time.
	Progress func(done, total int)
}

// loader are the options for reading rasters.
func (o *Options) loader() loader.Options {
	return loader.Options{Opener: o.Opener, MaxChunkBytes: o.limits().MaxChunk}
}

func (o *Options) limits() tiff.Limits {
	return tiff.Limits{MaxChunk: cmp.Or(o.MaxChunk, loader.DefaultMaxChunkBytes)}
}

// encoder returns an encoder for one worker. Generation 1 has readers that know no codecs of geozl.
func (o *Options) encoder() (*openzl.Encoder, error) {
	if o.Format == Rumi && strings.HasPrefix(o.Graph, "planar>") {
		return nil, fmt.Errorf("graph %q: readers of generation 1 know no codecs of geozl", o.Graph)
	}
	return openzl.NewEncoder(o.Graph, openzl.EncodeOptions{Level: o.Level, Geozl: o.Format == Rumi2})
}

// Check checks the options; its errors are those of a caller, not of a file.
func (o *Options) Check() error {
	switch {
	case o.Format != TOG && o.Format != Rumi && o.Format != Rumi2 && o.Format != TileDB:
		return fmt.Errorf("format %q", o.Format)
	case o.Tile < 1 || o.Tile > math.MaxUint16:
		return fmt.Errorf("tiles of %d pixels, not 1 to 65535", o.Tile)
	case o.Format == TOG && o.Tile%16 != 0:
		return fmt.Errorf("tiles of %d pixels, not a multiple of 16 as a TOG has", o.Tile)
	case o.Level < 1 || o.Level > 22:
		return fmt.Errorf("level %d, not 1 to 22", o.Level)
	case o.Overviews && o.Format != TOG:
		return fmt.Errorf("overviews in a %s file", o.Format)
	case o.Cells && o.Format != Rumi2:
		return fmt.Errorf("cells in a %s file", o.Format)
	case o.Workers < 1 || o.MaxBytes < 1:
		return fmt.Errorf("%d workers, %d bytes", o.Workers, o.MaxBytes)
	case o.Format != TOG && o.Format != TileDB:
		_, err := o.encoder()
		return err
	}
	return nil
}

// File reads the raster at path and writes it to w, with what the format has a place for besides the
// samples. It returns the names of what is left out; with Strict a raster of which anything would be is
// Unsupported. Errors about the raster have a kind.
func File(ctx context.Context, w io.Writer, path string, o Options) (left []string, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	h, err := o.inspect(ctx, path)
	if err != nil {
		return nil, err
	}
	if left, err = o.keep(h); err != nil {
		return nil, err
	}
	a, err := loader.Read(ctx, []string{path}, loader.ReadOptions{
		Layout: "b y x", Threads: o.Workers, MaxBytes: o.MaxBytes, Options: o.loader(),
	})
	if err != nil {
		return nil, err
	}
	shape := [3]int(a.Shape)
	if err := o.fits(a.DType, shape, &h.meta); err != nil {
		return nil, err
	}
	if o.Format != TOG {
		return left, o.rumi(ctx, w, a.Data, shape, a.DType, h)
	}
	t := o.togOptions(ctx, shape, a.DType, h)
	if t.Mask, err = o.readMask(ctx, path, h.image); err != nil {
		return nil, err
	}
	if t.Overviews, err = o.readOverviews(ctx, path, h.overviews, len(a.Data)); err != nil {
		return nil, err
	}
	return left, tiff.WriteTOG(w, a.Data, t)
}

// fits refuses what the format has no place for, before it is compressed.
func (o *Options) fits(d chunk.DType, shape [3]int, m *tiff.Meta) error {
	no := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, format, args...)
	}
	generation := map[string]int{Rumi: 1, Rumi2: 2}[o.Format]
	switch {
	case shape[0] > math.MaxUint16:
		return no("%d bands", shape[0])
	case o.Format == TOG:
		if format, _ := tiff.FormatOf(d); format == 0 {
			return no("TIFF has no %s samples", d)
		}
	case d == chunk.Complex128 || !rumi.Stores(generation, d):
		return no("rumi of generation %d has no %s samples", generation, d)
	case o.Format == Rumi2 && (m.HasTransform || m.EPSG != 0 || len(m.GeoKeys) > 0):
		if !m.HasTransform || m.EPSG < 1024 || m.EPSG > 32766 {
			return no("rumi of generation 2 places an image by a transform together with an EPSG code of 1024 to 32766 only; EPSG %d, transform %t here",
				m.EPSG, m.HasTransform)
		}
	}
	return nil
}

// togOptions are those of a TOG of what a raster holds, but for its mask and overviews.
func (o *Options) togOptions(ctx context.Context, shape [3]int, d chunk.DType, h *holding) tiff.TOGOptions {
	t := tiff.TOGOptions{
		Shape: shape, DType: d, Tile: o.Tile, Level: o.Level, Geo: h.geo(), NoData: h.meta.NoData, BandNames: h.meta.BandNames, Workers: o.Workers,
		Photometric: h.extras.Photometric, WhiteIsZero: h.extras.WhiteIsZero, ExtraSamples: h.extras.ExtraSamples, Tags: h.extras.Tags,
		Progress: func(done, total int) error {
			if o.Progress != nil {
				o.Progress(done, total)
			}
			return ctx.Err()
		},
	}
	if len(h.extras.Items) > 0 {
		t.GDALMetadata = tiff.FormatGDALMetadata(h.extras.Items)
	}
	return t
}

func (o *Options) rumi(ctx context.Context, w io.Writer, pixels []byte, shape [3]int, d chunk.DType, h *holding) error {
	l := rumi.Layout{Shape: shape, DType: d, TileH: o.Tile, TileW: o.Tile, Geo: &h.meta.Geo}
	if o.Format == Rumi2 {
		l.Generation, l.Cells = 2, o.Cells
	} else {
		geo := h.geo()
		l.Geo, l.Tags = &geo, h.tags()
	}
	t, err := rumi.NewTiler(pixels, l)
	if err != nil {
		return err
	}
	frames := make([][]byte, t.Len())
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	var mu sync.Mutex
	done := 0
	for range min(o.Workers, len(frames)) {
		g.Go(func() error {
			enc, err := o.encoder()
			if err != nil {
				return err
			}
			var tile []byte
			for {
				i := int(next.Add(1)) - 1
				if i >= len(frames) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				tile = t.AppendTile(tile[:0], i)
				h, w := t.Rows(i)
				frame, err := enc.Encode(nil, tile, d.Size(), h, w)
				if err != nil {
					return err
				}
				frames[i] = slices.Clip(frame)
				if o.Progress != nil {
					mu.Lock()
					done++
					o.Progress(done, len(frames))
					mu.Unlock()
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err = rumi.Write(w, frames, l)
	return err
}
