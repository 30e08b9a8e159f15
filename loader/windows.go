package loader

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tables"
)

// RasterWindow is the raster of a field, and the window of it that a sample is made of.
type RasterWindow struct {
	Field  string
	Asset  catalog.Asset
	Window shuffle.Box // in pixels of the asset, before the sample's transform
}

// RasterWindows returns the windows that a draw takes of the raster fields, in their order, without reading a pixel.
// Windows on the ground (spec.GroundWindow) are fault.Unsupported: they are made of several rasters.
func (e *Engine) RasterWindows(ctx context.Context, draw shuffle.Draw) ([]RasterWindow, error) {
	set := e.leaves[draw.Dataset]
	if set.ground != nil {
		return nil, fault.New(fault.Unsupported, "sampler", fault.NoOffset,
			"windows on the ground are made of several rasters, and are not windows of one")
	}
	assets, err := e.RowAssets(ctx, draw)
	if err != nil {
		return nil, err
	}
	out := make([]RasterWindow, len(set.rasters))
	for i, field := range set.rasters {
		window, err := e.windowOf(ctx, set, &draw, i, draw.Row, assets[i])
		if err != nil {
			return nil, assets[i].Fault(err)
		}
		out[i] = RasterWindow{Field: field.Name, Asset: assets[i], Window: window}
	}
	return out, nil
}

// RowAssets returns the rasters of the row of a draw, of the raster fields in their order. The row of a window on the
// ground is the row of the scene that comes first there. Fields whose steps of time are files are fault.Unsupported.
func (e *Engine) RowAssets(ctx context.Context, draw shuffle.Draw) ([]catalog.Asset, error) {
	set := e.leaves[draw.Dataset]
	if set.files.some() {
		return nil, errSteps
	}
	out := make([]catalog.Asset, len(set.rasters))
	for i, f := range set.rasters {
		var err error
		if out[i], err = set.table.Asset(ctx, f.TableColumn, draw.Row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Data returns all columns and rows of the only source of the spec. A row of the table is the Row of a draw. It is
// fault.Unsupported if the source has no columns, such as a directory.
func (e *Engine) Data(ctx context.Context) (*tables.Table, error) {
	if read := e.sets[0].extras.Data; read != nil {
		return read(ctx)
	}
	return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset, "it has no columns"),
		e.sets[0].source.Source)
}
