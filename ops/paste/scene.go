package paste

import (
	"context"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// Scene assembles the predictions for the windows of a scene and returns a function that writes the raster, a TOG with
// the scene's georeferencing, which may be ground control points. in is a NumPy file as NewWindows reads it; errors
// call it name. Its shape sets Bands, Height and Width of o. Errors of options have no kind.
func Scene(ctx context.Context, files source.Opener, scene string, in io.Reader, name string, o Options,
	workers int) (write func(io.Writer) error, err error) {
	// No limit of chunks, because only the header of the scene is read.
	asset, _, err := catalog.OpenAsset(ctx, files, scene, math.MaxInt)
	if err != nil {
		return nil, err
	}
	geo, tags, err := convert.ReadPlace(ctx, scene, files)
	if err != nil {
		return nil, fault.WithFile(err, scene)
	}
	windows, err := NewWindows(in)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	o.Bands, o.Height, o.Width = windows.Bands, asset.Index.Height, asset.Index.Width
	// Before the windows are counted: a stride of 0 would divide by it.
	if err := o.check(); err != nil {
		return nil, fault.WithFile(err, name)
	}
	if n := o.Grid.Count(o.Height, o.Width); n != int64(windows.N) || windows.H != o.Grid.H || windows.W != o.Grid.W {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "npy", fault.NoOffset,
			"it has %d windows of %d by %d pixels, but this grid has %d windows of %d by %d in the scene",
			windows.N, windows.H, windows.W, n, o.Grid.H, o.Grid.W), name)
	}
	if err := budget.Grow(ctx, int64(o.bytes())); err != nil {
		return nil, fault.WithFile(err, name)
	}
	image, err := Image(o, windows.Read)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	t := o.togOptions(geo, workers)
	t.Tags = tags
	return func(to io.Writer) error { return tiff.WriteTOG(to, image, t) }, nil
}
