package pixels

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Legend returns the colours and the names of the classes that the file of asset a has in its one band. It opens the
// file again, but only if the file has a palette or GDAL's metadata beside it.
func Legend(ctx context.Context, o source.Opener, a catalog.Asset) (legend chunk.Legend) {
	if a.Parts != nil || a.Index.DataBands() != 1 || !a.Index.DType.Integer() || !a.HasLegend() {
		return legend
	}
	if catalog.IsVirtual(a.Index) {
		return a.Legend(ctx, o, nil)
	}
	if file, err := rows.OpenFile(ctx, o, a); err == nil {
		defer func() { _ = file.Close() }()
		legend = a.Legend(ctx, o, file)
	}
	return legend
}

// PickBands returns the numbers of the bands with the names want, compared exactly, in the order of
// want. names holds the name of every band. The error lists them, and has kind not found if a name is
// missing, corrupt if two bands have it.
func PickBands(names, want []string) ([]int, error) {
	out := make([]int, len(want))
	for i, name := range want {
		out[i] = slices.Index(names, name)
		switch {
		case len(names) == 0:
			return nil, fault.New(fault.NotFound, "bands",
				"no band %q: the file has no band names; use numbers from 0", fault.Short(name))
		case out[i] < 0:
			return nil, fault.New(fault.NotFound, "bands", "no band %q; there are %s", fault.Short(name), listed(names))
		case slices.Contains(names[out[i]+1:], name):
			// Taking the first one would train on a band that the user may not mean.
			return nil, fault.New(fault.Corrupt, "bands",
				"two bands are called %q; there are %s", fault.Short(name), listed(names))
		}
	}
	return out, nil
}

// PickBandsIn is PickBands for the names of an image's bands, which must have all that are wanted.
func PickBandsIn(x *chunk.Index, names, want []string) ([]int, error) {
	bands, err := PickBands(names, want)
	if err == nil && slices.Max(bands) >= x.StepBands() {
		err = fault.New(fault.Corrupt, "bands", "%d names of %d bands", len(names), x.StepBands())
	}
	return bands, err
}

// sayBands ends errors about names that disagree.
const sayBands = `give bands by name, by number, or as "position" if only their order counts`

// Disagreement says which band of a raster has another name than in the raster first, whose bands are called want, or
// is "". A band without a name agrees with any.
func Disagreement(names []string, first string, want []string) string {
	for i := range min(len(names), len(want)) {
		if names[i] != want[i] && names[i] != "" && want[i] != "" {
			return fmt.Sprintf("band %d is %q, in %s it is %q: %s", i, fault.Short(names[i]), first,
				fault.Short(want[i]), sayBands)
		}
	}
	return ""
}

// SameNames fails with kind unsupported if there is a Disagreement.
func SameNames(names []string, first string, want []string) error {
	if text := Disagreement(names, first, want); text != "" {
		return fault.New(fault.Unsupported, "bands", "%s", text)
	}
	return nil
}

// listed quotes the first 64 names, for an error.
func listed(names []string) string {
	first := make([]string, min(len(names), 64)) // a file may have thousands of bands, and the error must stay readable
	for i := range first {
		first[i] = fault.Short(names[i])
	}
	text := fmt.Sprintf("%q", first)
	if len(names) > len(first) {
		return strings.TrimSuffix(text, "]") + " …]"
	}
	return text
}
