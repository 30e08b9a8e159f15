package survey

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
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

// namesOf returns the names of the bands of an asset, or those that its container has for all assets.
func (p *pass) namesOf(ctx context.Context, a catalog.Asset) ([]string, error) {
	names, err := pixels.BandNames(ctx, p.options.Opener, a)
	if shared := p.table.Extras().BandNames; shared != nil && names == nil && err == nil {
		names = shared()
	}
	return names, err
}

// places returns the band of the first file that each band of an asset is measured as, or nil if that is the same
// position. A field that asks for names has its bands matched by them. For one that does not, files must agree at each
// position: the mean of "B04" would otherwise be one of B04 and B08. A field that numbers its bands asks for positions.
func (p *pass) places(ctx context.Context, d *described, a catalog.Asset) ([]int, error) {
	byName := d.field.BandNames != nil
	if d.names == nil || d.field.Bands != nil || d.field.ByPosition || a.Name() == d.first {
		return nil, nil
	}
	names, err := p.namesOf(ctx, a)
	switch {
	case slices.Equal(names, d.names):
		return nil, nil
	case !byName && (err != nil || names == nil):
		return nil, nil // names are optional, and a fault of the file shows when its pixels are read
	case !byName:
		return nil, a.Fault(pixels.SameNames(names, d.first, d.names))
	case err == nil:
		_, err = pixels.PickBands(names, d.field.BandNames)
	}
	if err == nil && len(names) != a.Index.StepBands() {
		err = fault.New(fault.Corrupt, "bands", fault.NoOffset, "%d names of %d bands", len(names), a.Index.StepBands())
	}
	if err != nil {
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
