package convert

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
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
	return err
}

func (o *Options) unit() string { return cmp.Or(o.Unit, "tile") }

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

// cube sets what only a file of generation 3 has.
func (o *Options) cube(im *image, layout *rumi.Layout) (err error) {
	if layout.Trailer, err = o.trailer(im.holding, im.shape[0], im.times); err != nil {
		return err
	}
	if layout.Unit, err = rumi.ParseUnit(o.unit(), im.shape[0], im.times); err != nil {
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%v", err)
	}
	layout.Times = im.times
	return nil
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
