package tiff

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// OpenOverviews reads the structure of the overviews of a file's first image, whose index is x, from the
// largest to the smallest, with their masks. An overview with other bands or samples than the image is
// Unsupported.
func OpenOverviews(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits) ([]*chunk.Index, error) {
	return openReduced(ctx, f, x, l, 1)
}

// OpenOverviewFile is OpenOverviews for a file of overviews that lies beside the image's (.ovr). There the first
// image is one of them, too. An overview whose sides are not the image's divided by the same number is
// Unsupported: the file belongs to another image.
func OpenOverviewFile(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits) ([]*chunk.Index, error) {
	overviews, err := openReduced(ctx, f, x, l, 0)
	for _, index := range overviews {
		if !reduces(index, x) {
			return nil, fault.New(fault.Unsupported, "overview", "%d by %d pixels, of an image of %d by %d: the sides "+
				"have another ratio", index.Height, index.Width, x.Height, x.Width)
		}
	}
	return overviews, err
}

// reduces reports whether one number divides the sides of image x into the sides of overview o. Writers round up or
// down, so a side of n pixels is one of more than n-1 and less than n+1 exactly.
func reduces(o, x *chunk.Index) bool {
	return (o.Width-1)*x.Height < (o.Height+1)*x.Width && (o.Height-1)*x.Width < (o.Width+1)*x.Height
}

// openReduced returns the reduced images of a file from directory first on. Directory 0 needs no tag that says so.
func openReduced(ctx context.Context, f *ifd.File, x *chunk.Index, l Limits, first int) ([]*chunk.Index, error) {
	l.MaxChunk = cmp.Or(l.MaxChunk, chunk.DefaultMaxBytes)
	var overviews []*chunk.Index
	for i := first; i < len(f.Dirs); i++ {
		directory := &f.Dirs[i]
		if i > 0 && directory.Kind&(SubfileReduced|SubfileMask) != SubfileReduced {
			continue
		}
		index, err := openOverview(ctx, f, directory, x, l)
		if err != nil {
			return nil, err
		}
		if index.Mask == nil && i == 0 {
			if index.Mask, err = openMask(ctx, f, index, l, SubfileMask); err != nil {
				return nil, err
			}
		}
		overviews = append(overviews, index)
	}
	slices.SortStableFunc(overviews, func(a, b *chunk.Index) int { return b.Height*b.Width - a.Height*a.Width })
	return overviews, nil
}

// openOverview reads the structure of the overview of image x that a directory describes, with its mask.
func openOverview(ctx context.Context, f *ifd.File, d *ifd.Directory, x *chunk.Index, l Limits) (*chunk.Index, error) {
	index, err := read(ctx, f, d, (*parser).index)
	if err != nil {
		return nil, err
	}
	part := fmt.Sprintf("ifd %d", d.Index)
	if index.Bands != x.Bands || index.DType != x.DType || index.Height > x.Height || index.Width > x.Width {
		return nil, fault.At(fault.Unsupported, part, d.Off,
			"an overview of (%d, %d, %d) %s of an image of (%d, %d, %d) %s",
			index.Bands, index.Height, index.Width, index.DType, x.Bands, x.Height, x.Width, x.DType)
	}
	index.NoData, index.NoDataBits, index.BandNoData = x.NoData, x.NoDataBits, x.BandNoData
	index.Alpha, index.Classes = x.Alpha, x.Classes
	index.Physical = x.Physical
	if index.Mask, err = openMask(ctx, f, index, l, SubfileMask|SubfileReduced); err != nil {
		return nil, err
	}
	if err := index.Validate(f.Size(), l.MaxChunk); err != nil {
		return nil, fault.WithPart(err, part, d.Off)
	}
	return index, nil
}

// Palette returns the colours of a colour table, as chunk.Colours has them, or nil without a table. Colours have 16
// bits in files (TIFF 6.0, section 5); the upper eight matter.
func Palette(ctx context.Context, f *ifd.File) []string {
	tags := f.Tags(ctx, &f.Dirs[0])
	table := tags.Value(ifd.TagColorMap)
	if !table.IsInt() {
		return nil
	}
	n := table.Len() / 3
	var colours []color.NRGBA
	for i := range min(n, chunk.MaxClasses) {
		colours = append(colours, color.NRGBA{
			uint8(table.Uint(i) >> 8), uint8(table.Uint(n+i) >> 8), uint8(table.Uint(2*n+i) >> 8), 0xff})
	}
	return chunk.Colours(colours)
}
