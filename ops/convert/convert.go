// Package convert writes rasters as TOG or rumi files, and images of a TileDB array
// as raster files.
//
//   - File converts one raster, or several to one file with steps of time.
//   - Image converts one image of an array.
//   - Frames compresses samples as the frames of a rumi file.
//
// Pixels are kept bit for bit. The formats differ in what else they can hold; File returns the names of what
// a format lacks, and Options.Strict refuses such rasters. Files beside a raster (.msk, .aux.xml) are
// not read, and count as such a loss.
package convert

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/epsg"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// Formats for Options.Format.
const (
	TOG   = "tog"   // a TACO optimized GeoTIFF
	Rumi  = "rumi"  // rumi of generation 1, a BigTIFF of OpenZL frames
	Rumi2 = "rumi2" // rumi of generation 2
	Rumi3 = "rumi3" // rumi of generation 3
)

// Formats are the values of Options.Format.
var Formats = []string{TOG, Rumi, Rumi2, Rumi3}

// Options say what to write. Format, Tile, Level, Workers, MaxBytes and Opener must be set, and Graph for
// the generations of rumi. Check checks them. JSON has what the new file depends on, but for Steps.
type Options struct {
	Format string `json:"format"`
	Tile   int    `json:"tile"`            // side of a tile in pixels; a TOG needs a multiple of 16
	Level  int    `json:"level"`           // zstd level, 1 to 22
	Graph  string `json:"graph,omitempty"` // OpenZL graph of a rumi file: see openzl.NewEncoder
	// Geozl, of Rumi3 only: see openzl.EncodeOptions. Default openzl.Geozl18, which rumi-eo 0.26 comes with.
	Geozl int `json:"geozl,omitempty"`
	// MaxCost bounds the time that decoding the graphs auto and best takes: see openzl.EncodeOptions.
	MaxCost  float64 `json:"max_cost,omitempty"`
	Cells    bool    `json:"cells,omitempty"` // Rumi2 only: one frame holds a tile of all bands
	Unit     string  `json:"unit,omitempty"`  // Rumi3 only: see rumi.ParseUnit. Default "tile"
	Workers  int     `json:"-"`               // goroutines that decode and compress one image
	MaxBytes int64   `json:"max_bytes"`       // refuse images that are larger when decoded, in bytes
	// MaxChunk refuses chunks that are larger when decoded. Default resources.DefaultMaxChunkBytes.
	MaxChunk int `json:"-"`

	Overviews bool `json:"overviews,omitempty"` // TOG only: keep the overviews of the raster
	Strict    bool `json:"strict,omitempty"`    // refuse rasters that would lose anything

	// Steps picks steps of time of the raster. Formats other than Rumi3 need one.
	Steps raster.Selection `json:"-"`
	// Trailer, of Rumi3 only, has names of bands and times, in place of the raster's where they are not nil.
	Trailer rumi.Trailer `json:"trailer"`

	// Opener opens the rasters.
	Opener source.Opener `json:"-"`
	// Progress, if not nil, is called after every tile, from one goroutine at a time.
	Progress func(done, total int) `json:"-"`
}

// loader returns the options for reading rasters.
func (o *Options) loader() loader.Options {
	return loader.Options{Opener: o.Opener, MaxChunkBytes: o.limits().MaxChunk}
}

func (o *Options) limits() tiff.Limits {
	return tiff.Limits{MaxChunk: cmp.Or(o.MaxChunk, resources.DefaultMaxChunkBytes)}
}

// generations are the generations of rumi, by their formats, and which release of geozl their readers come with.
var generations = map[string]struct{ number, geozl int }{
	Rumi: {1, 0}, Rumi2: {2, openzl.Geozl14}, Rumi3: {3, openzl.Geozl18},
}

// geozl returns which release of geozl the readers have.
func (o *Options) geozl() int {
	if o.Format == Rumi3 && o.Geozl != 0 {
		return o.Geozl
	}
	return generations[o.Format].geozl
}

// encoder returns an encoder for one worker. A graph of generation 3 may need a later geozl than rumi-eo comes with.
func (o *Options) encoder() (*openzl.Encoder, error) {
	needs, err := openzl.Needs(o.Graph)
	if err != nil {
		return nil, err
	}
	if needs > o.geozl() {
		if o.Format != Rumi3 {
			return nil, fmt.Errorf("graph is %q: readers of generation %d cannot decode it", o.Graph,
				generations[o.Format].number)
		}
		return nil, fmt.Errorf("graph is %q: only geozl 0.%d and later reads it; allow that with geozl %d", o.Graph,
			needs, needs)
	}
	return openzl.NewEncoder(o.Graph, openzl.EncodeOptions{Level: o.Level, Geozl: o.geozl(), MaxCost: o.MaxCost})
}

// describes reports whether options are given that only rumi files of generation 3 store.
func (o *Options) describes() bool {
	return o.Unit != "" || o.Trailer.Bands != nil || o.Trailer.Times != nil
}

// Check checks the options. Its errors are about the options, and therefore have no kind.
func (o *Options) Check() error {
	switch {
	case !slices.Contains(Formats, o.Format):
		return fmt.Errorf("format is %q: it must be one of %s", o.Format, strings.Join(Formats, ", "))
	case o.Tile < 1 || o.Tile > math.MaxUint16:
		return fmt.Errorf("tile is %d: it must be from 1 to 65535 pixels", o.Tile)
	case o.Format == TOG && o.Tile%16 != 0:
		return fmt.Errorf("tile is %d: a TOG needs a multiple of 16", o.Tile)
	case o.Level < 1 || o.Level > 22:
		return fmt.Errorf("level is %d: it must be from 1 to 22", o.Level)
	case o.Overviews && o.Format != TOG:
		return fmt.Errorf("overviews need the format %s: it is %s", TOG, o.Format)
	case o.Cells && o.Format != Rumi2:
		return fmt.Errorf("cells need the format %s: it is %s", Rumi2, o.Format)
	case o.MaxCost < 0 || math.IsNaN(o.MaxCost):
		return fmt.Errorf("max-cost is %g: it must be more than 0", o.MaxCost)
	case o.Geozl != 0 && o.Format != Rumi3:
		return fmt.Errorf("geozl is %d: it needs the format %s, and the format is %s", o.Geozl, Rumi3, o.Format)
	case o.Geozl != 0 && (o.Geozl < openzl.Geozl18 || o.Geozl > openzl.Geozl19):
		return fmt.Errorf("geozl is %d: it must be %d or %d", o.Geozl, openzl.Geozl18, openzl.Geozl19)
	case o.Format != Rumi3 && o.describes():
		return fmt.Errorf("units, names and times need the format %s: it is %s", Rumi3, o.Format)
	case o.Workers < 1:
		return fmt.Errorf("workers is %d: it must be at least 1", o.Workers)
	case o.MaxBytes < 1:
		return fmt.Errorf("max-bytes is %d: it must be at least 1", o.MaxBytes)
	case o.Format != TOG:
		if _, err := o.encoder(); err != nil {
			return err
		}
		return o.check3()
	}
	return nil
}

// File reads the rasters at paths and writes them to w as one file in the format o.Format, with everything besides the
// pixels that the format can hold. Several are the steps of time of a Rumi3, in the order of paths: all must have the
// same shape, dtype, georeferencing and names of bands. It returns the names of what it left out. With Options.Strict
// it refuses a raster if it would leave out anything of it, with the kind fault.Unsupported. Errors about a raster have
// a kind; errors about o or w have none.
func File(ctx context.Context, w io.Writer, paths []string, o Options) (left []string, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var whole *rasterMeta
	for _, path := range paths {
		holding, err := o.inspect(ctx, path)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		names, err := o.keep(holding)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		for _, n := range names {
			if !slices.Contains(left, n) {
				left = append(left, n)
			}
		}
		if whole == nil {
			whole = holding
		} else if err := whole.stack(holding); err != nil {
			return nil, fault.WithFile(err, path)
		}
	}
	if n := len(whole.steps); n > 1 && o.Format != Rumi3 {
		return nil, fault.New(fault.Unsupported, "conversion",
			"it has %d steps of time, and %s holds one: --t picks one", n, o.Format)
	}
	array, err := raster.Read(ctx, paths, raster.ReadOptions{
		Layout: "(n t) b y x", T: o.Steps, Threads: o.Workers, MaxBytes: o.MaxBytes, Options: o.loader(),
	})
	if err != nil {
		return nil, err
	}
	image := &outputImage{rasterMeta: whole, pixels: array.Data, times: array.Shape[0], shape: [3]int(array.Shape[1:]),
		dtype: array.DType}
	if o.Format == TOG {
		if err := o.fits(image); err != nil { // before the mask and the overviews are read
			return nil, err
		}
		if image.mask, err = o.readMask(ctx, paths[0], whole.image); err != nil {
			return nil, err
		}
		if image.reduced, err = o.readOverviews(ctx, paths[0], whole.overviews, len(array.Data)); err != nil {
			return nil, err
		}
	}
	return left, o.write(ctx, w, image)
}

// outputImage is what is written as a file.
type outputImage struct {
	*rasterMeta
	pixels  []byte // with the axes t, b, y and x
	times   int
	shape   [3]int // bands, height, width
	dtype   chunk.DType
	mask    []byte         // of a TOG, as tog.Options.Mask
	reduced []tog.Overview // of a TOG
}

// write writes an image in the format o.Format.
func (o *Options) write(ctx context.Context, w io.Writer, im *outputImage) error {
	layout := rumi.Layout{Generation: generations[o.Format].number, TileH: o.Tile, TileW: o.Tile, Geo: &im.meta.Geo}
	if o.Format == Rumi3 {
		if err := o.cube(im, &layout); err != nil {
			return err
		}
	}
	if err := o.fits(im); err != nil {
		return err
	}
	switch o.Format {
	case TOG:
		return tog.Write(w, im.pixels, o.togOptions(ctx, im))
	case Rumi:
		geo := im.geo()
		layout.Geo, layout.Tags = &geo, im.tags()
	case Rumi2:
		layout.Cells = o.Cells
	}
	layout.Shape, layout.DType = im.shape, im.dtype
	return o.compress(ctx, w, im.pixels, layout)
}

// fits refuses a raster that the format cannot hold. It runs before compression, which may take minutes.
func (o *Options) fits(im *outputImage) error {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "conversion", format, args...)
	}
	generation, bands, dtype, place := generations[o.Format].number, im.shape[0], im.dtype, &im.meta.Geo
	switch {
	case bands > math.MaxUint16:
		return refuse("it has %d bands: at most %d can be written", bands, math.MaxUint16)
	case o.Format == TOG:
		if format, _ := tiff.FormatOf(dtype); format == 0 {
			return refuse("a TIFF cannot hold dtype %s", dtype)
		}
	case dtype == chunk.Complex128 && o.Format != Rumi3 || !rumi.Stores(generation, dtype):
		return refuse("rumi of generation %d cannot hold dtype %s", generation, dtype)
	case generation > 1 && (place.HasTransform || place.EPSG != 0 || len(place.GeoKeys) > 0):
		// The headers of generations 2 and 3 have only these two numbers, and none of the GeoTIFF keys. EPSG codes
		// of GeoTIFF go from 1024 to 32766.
		if !place.HasTransform || place.EPSG < 1024 || place.EPSG > 32766 {
			return refuse("rumi of generation %d needs a transform and an EPSG code from 1024 to 32766: the raster "+
				"has EPSG %d, transform %t", generation, place.EPSG, place.HasTransform)
		}
	}
	return nil
}

// togOptions returns the options of a TOG for an image.
func (o *Options) togOptions(ctx context.Context, im *outputImage) tog.Options {
	options := tog.Options{
		Shape: im.shape, DType: im.dtype, Tile: o.Tile, Level: o.Level, Geo: im.geo(), NoData: im.meta.NoData,
		BandNames: im.meta.BandNames, Workers: o.Workers, Mask: im.mask, Overviews: im.reduced,
		Photometric: im.extras.Photometric, WhiteIsZero: im.extras.WhiteIsZero, ExtraSamples: im.extras.ExtraSamples,
		Tags: im.extras.Tags,
		Progress: func(done, total int) error {
			if o.Progress != nil {
				o.Progress(done, total)
			}
			return ctx.Err()
		},
	}
	if len(im.extras.Items) > 0 {
		options.GDALMetadata = extras.GDALMetadata(im.extras.Items)
	}
	return options
}

// compress compresses the tiles of an image in parallel and writes them as a rumi file. It holds all frames, because
// the header, which comes first, needs their sizes.
func (o *Options) compress(ctx context.Context, w io.Writer, pixels []byte, l rumi.Layout) error {
	tiler, err := rumi.NewTiler(pixels, l)
	if err != nil {
		return err
	}
	frames := make([][]byte, tiler.Len())
	var mu sync.Mutex
	done := 0
	compressed := func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Progress != nil {
			o.Progress(done, len(frames))
		}
	}
	work := func(_ context.Context, _ int, numbers iter.Seq[int64]) error {
		enc, err := o.encoder()
		if err != nil {
			return err
		}
		var tile []byte
		for n := range numbers {
			i := int(n)
			tile = tiler.AppendTile(tile[:0], i)
			if frames[i], err = encode(enc, tile, l.DType, &tiler.Cuts, i); err != nil {
				return err
			}
			compressed()
		}
		return nil
	}
	frameNumbers := each.Numbers(int64(len(frames)))
	if err := each.Share(ctx, frameNumbers, min(o.Workers, len(frames)), work); err != nil {
		return err
	}
	_, err = rumi.Write(w, frames, l)
	return err
}

// encode compresses frame i of an image.
func encode(enc *openzl.Encoder, tile []byte, d chunk.DType, c *rumi.Cuts, i int) ([]byte, error) {
	height, w := c.Rows(i)
	width := d.Size()
	// Components are compressed, because OpenZL has no numbers of 16 bytes: only generation 3 has such frames.
	if d == chunk.Complex128 {
		width, w = width/2, 2*w
	}
	frame, err := enc.Encode(nil, tile, width, height, w)
	return slices.Clip(frame), err
}

// Chip is an image in memory.
type Chip struct {
	Shape  [3]int // bands, height, width
	DType  chunk.DType
	Pixels []byte // little-endian samples in C order
	Geo    tiff.Geo
	NoData string   // GDAL_NODATA, as a string; empty for none
	Bands  []string // names of the bands; nil for none
	// Mask has one byte a pixel, 0 for pixels without data; nil for none. Only a TOG can hold it.
	Mask []byte
}

// Write writes the chip to w in the format o.Format. Of o, what is about reading and what is kept
// has no effect. The bytes do not depend on o.Workers. With o.Strict, what the format cannot hold is fault.Unsupported;
// otherwise it is left out.
func (c *Chip) Write(ctx context.Context, w io.Writer, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	held := &rasterMeta{meta: tiff.Meta{NoData: c.NoData, BandNames: c.Bands, Geo: c.Geo}, image: &chunk.Index{}}
	for _, name := range c.Bands {
		held.meta.Bands = append(held.meta.Bands, tiff.Band{Description: name})
	}
	if c.Mask != nil {
		held.image.Mask = &chunk.Index{Bands: 1}
	}
	if _, err := o.keep(held); err != nil {
		return err
	}
	if o.Format == Rumi {
		held.extras.Items = extras.Descriptions(c.Bands)
	}
	return o.write(ctx, w, &outputImage{rasterMeta: held, pixels: c.Pixels, times: 1, shape: c.Shape, dtype: c.DType,
		mask: c.Mask})
}

// check3 checks what only files of generation 3 have. Whether a unit fits depends on the raster, so any shape
// may have it here.
func (o *Options) check3() error {
	if o.Format != Rumi3 {
		return nil
	}
	var err error
	for _, shape := range [][2]int{{2, 2}, {1, 2}, {2, 1}} {
		if _, err = rumi.ParseUnit(o.unit(), shape[0], shape[1]); err == nil {
			break
		}
	}
	return err
}

func (o *Options) unit() string { return cmp.Or(o.Unit, "tile") }

// stack adds what a further raster holds. Either all have times, or none counts.
func (h *rasterMeta) stack(next *rasterMeta) error {
	differs := func(what string) error {
		return fault.New(fault.Unsupported, "stack", "it has other %s than the first raster", what)
	}
	meta, b := &h.meta, &next.meta
	switch {
	case meta.EPSG != b.EPSG || meta.HasTransform != b.HasTransform || meta.Transform != b.Transform ||
		meta.Parameters != "" && b.Parameters != "" && !epsg.SameParameters(meta.Parameters, b.Parameters):
		return differs("georeferencing")
	case !slices.Equal(meta.BandNames, b.BandNames):
		return differs("names of bands")
	case h.trailer == nil || next.trailer == nil || h.trailer.Kind != next.trailer.Kind:
		h.trailer = nil
	default:
		h.trailer.Times = append(h.trailer.Times, next.trailer.Times...)
	}
	return nil
}

// cube sets what only a file of generation 3 has.
func (o *Options) cube(im *outputImage, layout *rumi.Layout) (err error) {
	if layout.Trailer, err = o.trailer(im.rasterMeta, im.shape[0], im.times); err != nil {
		return err
	}
	if layout.Unit, err = rumi.ParseUnit(o.unit(), im.shape[0], im.times); err != nil {
		return fault.New(fault.Unsupported, "conversion", "%v", err)
	}
	layout.Times = im.times
	return nil
}

// trailer returns the names and times of a file of generation 3: of the options, else of the rasters.
func (o *Options) trailer(h *rasterMeta, bands, times int) (*rumi.Trailer, error) {
	refuse := func(format string, args ...any) (*rumi.Trailer, error) {
		return nil, fault.New(fault.Unsupported, "conversion", format, args...)
	}
	trailer := o.Trailer
	if trailer.Bands == nil {
		trailer.Bands, _ = rumi.BandNames(h.meta.BandNames, bands)
	}
	if trailer.Times == nil && h.trailer != nil {
		trailer.Kind, trailer.Times = h.trailer.Kind, h.trailer.Times
	}
	per := map[rumi.TimeKind]int{rumi.Instant: 1, rumi.Interval: 2}[trailer.Kind]
	switch {
	case len(trailer.Bands) != bands:
		return refuse("there are %d names for its %d bands", len(trailer.Bands), bands)
	case per == 0:
		return refuse("it has no times, which rumi of generation 3 needs: --time gives them")
	case len(trailer.Times) != per*times:
		return refuse("there are %d times for its %d steps of time", len(trailer.Times)/per, times)
	}
	return &trailer, nil
}
