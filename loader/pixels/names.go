package pixels

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// BandNames returns what the bands of a file of samples are called, one a band: the descriptions that GDAL writes. It is nil
// where the file names none. It reads the file's directory; catalogs and indexes do not hold names.
func BandNames(ctx context.Context, o source.Opener, a catalog.Asset) (_ []string, err error) {
	if a.Index.Blocks != nil {
		return nil, a.Fault(fault.New(fault.Unsupported, "bands", fault.NoOffset, "the bands of an array have no names"))
	}
	e := taco.Entry{URI: a.URI, Path: a.Member, Offset: taco.Whole, Object: a.Known()}
	if a.Member != "" {
		e.Offset, e.Size = a.Offset, a.Length
	}
	r, err := taco.Section(ctx, o, e)
	if err != nil {
		return nil, a.Fault(rows.Bare(err))
	}
	defer func() { _ = r.Close() }() // it was only read
	f, err := ifd.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil {
		return nil, a.Fault(err)
	}
	read := tiff.ReadMeta
	if rumi.Is(ctx, f) {
		read = rumi.Meta
	}
	m, err := read(ctx, f)
	return m.BandNames, a.Fault(err)
}

// PickBands returns the indices of bands by their names, as they are written. The error lists the names that there are.
func PickBands(names, want []string) ([]int, error) {
	out := make([]int, len(want))
	for i, name := range want {
		out[i] = slices.Index(names, name)
		switch {
		case len(names) == 0:
			return nil, fault.New(fault.NotFound, "bands", fault.NoOffset, "no band %q: the file names none, give their numbers from 0", name)
		case out[i] < 0:
			return nil, fault.New(fault.NotFound, "bands", fault.NoOffset, "no band %q; there are %s", name, listed(names))
		case slices.Contains(names[out[i]+1:], name):
			return nil, fault.New(fault.Corrupt, "bands", fault.NoOffset, "two bands are called %q; there are %s", name, listed(names))
		}
	}
	return out, nil
}

// listed quotes names, the first 64 of them.
func listed(names []string) string {
	if len(names) > 64 {
		return strings.TrimSuffix(fmt.Sprintf("%q", names[:64]), "]") + " …]"
	}
	return fmt.Sprintf("%q", names)
}
