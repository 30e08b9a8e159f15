package survey

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// unmeasured stands in a list of places for a band that no accumulator is for.
const unmeasured = -1

// described tells which band of the first file each band of another file is, by their descriptions.
type described struct {
	field *spec.Field
	names []string // of the bands of the first file; nil if it has none
	first string   // the name of the first file
}

// places returns the band of the first file that each band of an asset is measured as, or nil if that is the same
// position. A field that asks for names has its bands matched by them. For one that does not, files must agree at each
// position: the mean of "B04" would otherwise be one of B04 and B08. A field that numbers its bands asks for positions.
func (d *described) places(ctx context.Context, o source.Opener, a catalog.Asset) ([]int, error) {
	if d.names == nil || d.field.Bands != nil || a.Name() == d.first {
		return nil, nil
	}
	names, err := pixels.BandNames(ctx, o, a)
	if err != nil || names == nil || slices.Equal(names, d.names) {
		return nil, nil // names are optional, and a fault of the file shows when its pixels are read
	}
	if d.field.BandNames == nil {
		return nil, d.disagree(a, names)
	}
	if _, err := pixels.PickBands(names, d.field.BandNames); err != nil {
		return nil, a.Fault(err)
	}
	places := make([]int, len(names))
	for i, name := range names {
		// What the field does not ask for may have one name in several bands.
		if places[i] = unmeasured; slices.Contains(d.field.BandNames, name) {
			places[i] = slices.Index(d.names, name)
		}
	}
	return places, nil
}

// disagree returns the error for the first band whose description differs from the first file's, or nil if none does.
// A band without a description agrees with any.
func (d *described) disagree(a catalog.Asset, names []string) error {
	for i := range min(len(names), len(d.names)) {
		if names[i] != d.names[i] && names[i] != "" && d.names[i] != "" {
			return a.Fault(fault.New(fault.Unsupported, "bands", fault.NoOffset,
				"band %d is %q, in %s it is %q: pick the bands of the field %q by name, or by number if only their "+
					"position counts", i, names[i], d.first, d.names[i], d.field.Name))
		}
	}
	return nil
}
