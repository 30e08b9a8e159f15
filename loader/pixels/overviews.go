package pixels

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

const (
	// looser is by how much a pixel of an overview may be larger than one of the window. The maps of a window and of a
	// scene stretch distances by up to 1 or 2 % against each other: windows of 20 m have the overview of 20 m
	// everywhere.
	looser = 1.02
	// worthLooking is the least Scale at which overviews are looked for. One with pixels less than a quarter larger
	// would save less than a third of them, and looking costs a read of the header.
	worthLooking = 1.25
)

// Levels are the overviews of an asset.
type Levels struct {
	// Indexes are their indexes, from the largest to the smallest. Offsets count from the start of the file.
	Indexes []*chunk.Index
	// File is the file beside the asset's (.ovr) that holds them, nil if the asset's own file does.
	File *catalog.Asset
}

// Overviews returns the overviews of an asset, from its own file or, if that has none, from the file beside it.
// Members of containers have no file beside them.
func Overviews(ctx context.Context, o resources.Options, a catalog.Asset) (Levels, error) {
	if a.Index.OfArray() || a.Axes.Pages != "" { // an array, or pages, whose overviews are of one page each
		return Levels{}, nil
	}
	levels, err := ownOverviews(ctx, o, a)
	if err != nil || len(levels) > 0 || a.Member != "" {
		return Levels{Indexes: levels}, err
	}
	file, levels, err := catalog.OverviewFile(ctx, o.Opener, a.URI, a.Index, o.MaxChunkBytes)
	if err != nil || len(levels) == 0 {
		return Levels{}, err
	}
	return Levels{levels, &file}, nil
}

// ownOverviews returns the indexes of the overviews in the file of an asset.
func ownOverviews(ctx context.Context, o resources.Options, a catalog.Asset) (levels []*chunk.Index, err error) {
	file := a.Reader()
	if a.Bytes == nil {
		if file, err = source.OpenKnown(ctx, o.Opener, a.URI, a.Known()); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	now, err := otherTime(&a, file)
	if err == nil && !now.IsZero() {
		err = hasIndex(ctx, &a, file, o.MaxChunkBytes)
	}
	if err != nil {
		return nil, err
	}
	index, reader := a.Index, file
	// Offsets of a member's index count from the start of the container, offsets of its directories from its own.
	if a.Member != "" {
		if reader, err = source.SectionOf(file, a.Offset, a.Length); err != nil {
			return nil, err
		}
		index = index.Shift(-a.Offset)
	}
	levels, err = catalog.Overviews(ctx, reader, index, o.MaxChunkBytes)
	if a.Member != "" {
		for i := range levels {
			levels[i] = levels[i].Shift(a.Offset)
		}
	}
	return levels, err
}

// AtOverview returns an overview of an asset as an asset. It has the place of the asset, and larger pixels.
// An asset of the file beside it has the name, the size and the time of that file.
func AtOverview(a catalog.Asset, levels Levels, level int) catalog.Asset {
	if levels.File != nil {
		place := a.Place
		a = *levels.File
		a.Place = place
	}
	a.Raster, a.Overview, a.Index, a.MaskFile = a.Index, level, levels.Indexes[level], nil
	return a
}

// WantsOverview reports whether the field reads overviews by a rule (spec.AutoOverviews) for a window with this mapping
// to the raster.
func (r *Raster) WantsOverview(rule string, m *warp.Mapping) bool {
	y, x := m.Scale()
	return (rule == spec.AllOverviews || rule == spec.AutoOverviews && r.Blends) && min(y, x) >= worthLooking
}

// Coarsest returns the number of the coarsest overview of a raster whose pixels are no larger than the pixels of the
// window with this mapping to the raster, or -1.
func Coarsest(levels []*chunk.Index, m *warp.Mapping) int {
	y, x := m.Scale()
	height, width := m.Raster()
	coarsest := -1
	for i, o := range levels {
		if float64(height)/float64(o.Height) <= y*looser && float64(width)/float64(o.Width) <= x*looser {
			coarsest = i
		}
	}
	return coarsest
}
