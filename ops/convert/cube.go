package convert

import (
	"context"
	"io"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/rumi"
)

// check3 checks what only files of generation 3 have. Whether a unit fits depends on the raster, so that any shape
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
	if err == nil && o.DType != chunk.Invalid {
		_, err = codesOf(o.DType)
	}
	return err
}

func (o *Options) unit() string {
	if o.Unit == "" {
		return "tile"
	}
	return o.Unit
}

// Stack writes the rasters at paths to w as one file of the format Rumi3: their steps of time, in the order of paths.
// All must have the same shape, dtype, georeferencing and names of bands. It returns what File does, of all.
func Stack(ctx context.Context, w io.Writer, paths []string, o Options) (left []string, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var whole *holding
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
	return left, o.cube(ctx, w, paths, whole)
}

// stack adds what a further raster holds. Either all have times, or none counts.
func (h *holding) stack(next *holding) error {
	differs := func(what string) error {
		return fault.New(fault.Unsupported, "stack", fault.NoOffset, "it has other %s than the first raster", what)
	}
	meta, b := &h.meta, &next.meta
	switch {
	case meta.EPSG != b.EPSG || meta.HasTransform != b.HasTransform || meta.Transform != b.Transform ||
		meta.Parameters != "" && b.Parameters != "" && !crs.SameParameters(meta.Parameters, b.Parameters):
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

// cube writes rasters as one file of generation 3. h is what all of them hold.
func (o *Options) cube(ctx context.Context, w io.Writer, paths []string, h *holding) error {
	array, err := raster.Read(ctx, paths, raster.ReadOptions{
		Layout: "(n t) b y x", T: o.Steps, Threads: o.Workers, MaxBytes: o.MaxBytes, Options: o.loader(),
	})
	if err != nil {
		return err
	}
	return o.cube3(ctx, w, array.Data, array.Shape[0], [3]int(array.Shape[1:]), array.DType, h)
}

// cube3 writes an image, with its axes in the order t b y x, as a file of generation 3.
func (o *Options) cube3(ctx context.Context, w io.Writer, pixels []byte, times int, shape [3]int, d chunk.DType,
	h *holding) error {
	trailer, err := o.trailer(h, shape[0], times)
	if err != nil {
		return err
	}
	if o.DType != chunk.Invalid && o.DType != d {
		if pixels, err = exactly(pixels, d, o.DType); err != nil {
			return err
		}
		d = o.DType
	}
	if err := o.fits(d, shape, &h.meta); err != nil {
		return err
	}
	unit, err := rumi.ParseUnit(o.unit(), shape[0], times)
	if err != nil {
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%v", err)
	}
	return o.compress(ctx, w, pixels, rumi.Layout{
		Shape: shape, DType: d, TileH: o.Tile, TileW: o.Tile, Geo: &h.meta.Geo, Generation: 3, Times: times, Unit: unit,
		Trailer: trailer,
	})
}

// trailer returns the names and times of a file of generation 3: of the options, else of the rasters.
func (o *Options) trailer(h *holding, bands, times int) (*rumi.Trailer, error) {
	refuse := func(format string, args ...any) (*rumi.Trailer, error) {
		return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset, format, args...)
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
