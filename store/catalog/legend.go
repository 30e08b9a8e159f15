package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/pictures"
	"github.com/chaski-eo/chaski/format/vrt/classes"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

// HasLegend reports whether Legend may say something of an array of one band.
func (a *Asset) HasLegend() bool {
	return a.Index.Classes || virtualOf(a.Index) != nil || a.hasBeside(pamExt)
}

// Legend returns the colours and the names that the raster in r gives its classes, and NAME.aux.xml beside it, which
// counts before. A legend is for people: what cannot be read says nothing.
func (a *Asset) Legend(ctx context.Context, o source.Opener, r source.Reader) chunk.Legend {
	if v := virtualOf(a.Index); v != nil {
		return v.Legend()
	}
	var legend chunk.Legend
	switch format, err := FormatOf(ctx, r); {
	case err != nil:
	case format.Class == magic.Picture:
		legend.Palette = pictures.Palette(ctx, r)
	case format.Class == magic.Raster:
		if file, err := rumis.Open(ctx, r, tiff.Limits{}.IFD()); err == nil {
			if a.Index.Classes {
				legend.Palette = tiff.Palette(ctx, file)
			}
			tags := file.Tags(ctx, &file.Dirs[0])
			legend.Names = classes.OfFile(ctx, tags.Value(ifd.TagGDALMetadata).Text()).Legend().Names
		}
	}
	if a.hasBeside(pamExt) {
		sidecar := a.classesBeside(ctx, o).Legend()
		if sidecar.Names != nil {
			legend.Names = sidecar.Names
		}
		if sidecar.Palette != nil {
			legend.Palette = sidecar.Palette
		}
	}
	return legend
}

// classesBeside returns what NAME.aux.xml says of the classes of band 1.
func (a *Asset) classesBeside(ctx context.Context, o source.Opener) *classes.Classes {
	if data, err := source.ReadAll(ctx, o, a.URI+pamExt, sidecar.MaxPAM); err == nil {
		if pam, err := sidecar.ParsePAM(ctx, data); err == nil {
			for i := range pam.Bands {
				if pam.Bands[i].Number() == 1 {
					return &pam.Bands[i].Classes
				}
			}
		}
	}
	return &classes.Classes{}
}
