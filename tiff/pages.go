package tiff

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// MaxPages bounds the directories of a file whose pages are one image: 4,096 are a page for every day of 11 years.
const MaxPages = 4096

// OpenPages is FromFile for a file whose pages are one image, as pages says: the bands of the second page follow the
// bands of the first. Pages must be alike, and none may have a mask. Nodata, scales and the place of the first page
// hold for pages without them. Alpha is a band like the others. The caller has opened f with MaxPages directories.
func OpenPages(ctx context.Context, f *ifd.File, pages string, l Limits) (*Image, error) {
	image, err := FromFile(ctx, f, l)
	if err != nil || pages == chunk.FirstPage {
		return image, err
	}
	if f.ChainErr != nil { // the pages behind the break would be missing
		return nil, f.ChainErr
	}
	count := image.Meta.Pages
	unread := ""
	switch tags := f.Tags(ctx, &f.Dirs[0]); {
	case count == 1 && isStack(tags.Value(ifd.TagImageDescription).Text()):
		unread = "its description says that more images follow in the same page: tifffile.imread reads them, and " +
			"tifffile.imwrite(..., metadata=None) writes them as pages"
	case count == 1:
		return image, nil
	case image.Meta.HasMask:
		unread = "pages with masks are not read as one image: write each page to a file of its own " +
			"(gdal_translate GTIFF_DIR:1:in.tif)"
	case image.Index.Classes && pages == chunk.BandsPages:
		unread = "pages with palettes are no bands of one image: take them as steps"
	}
	if unread != "" {
		return nil, fault.New(fault.Unsupported, "pages", "%s", unread)
	}
	images := []*Image{image}
	budget := uint64(cmp.Or(l.MaxTagBytes, ifd.DefaultMaxBytes))
	for i := range f.Dirs[1:] {
		directory := &f.Dirs[1+i]
		if directory.Kind&(SubfileReduced|SubfileMask) != 0 {
			continue
		}
		// Pages may share their tags, which are read once and then count for nothing.
		size := directory.ValueBytes()
		if size > budget {
			return nil, fault.At(fault.Limit, "pages", directory.Off, "tags of more than %d bytes in all pages",
				cmp.Or(l.MaxTagBytes, ifd.DefaultMaxBytes))
		}
		budget -= size
		page, err := fromDirectory(ctx, f, directory, l)
		if err != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("page %d", len(images)), 0)
		}
		if what := unlike(image, page); what != "" {
			return nil, fault.At(fault.Unsupported, fmt.Sprintf("page %d", len(images)), directory.Off,
				"%s: pages of one image must be alike, as pages=%q says", what, pages)
		}
		images = append(images, page)
	}
	return join(images, pages, f.Size(), cmp.Or(l.MaxChunk, chunk.DefaultMaxBytes))
}

// isStack reports whether the description of the only page, by ImageJ or tifffile, says that more images follow its
// samples.
func isStack(description string) bool {
	imageJ := strings.HasPrefix(description, "ImageJ=") && strings.Contains(description, "\nimages=") &&
		!strings.Contains(description+"\n", "\nimages=1\n")
	return imageJ || strings.HasPrefix(description, "{") && strings.Contains(description, `"truncated": true`)
}

// unlike says in what a page differs from the first one, or is "".
func unlike(first, page *Image) string {
	a, b := first.Index, page.Index
	firstMeta, pageMeta := &first.Meta, &page.Meta
	orAbsent := func(known bool, value, absent any) any {
		if known {
			return value
		}
		return absent
	}
	for _, part := range []struct {
		name        string
		first, page any
	}{
		{"number of bands", a.Bands, b.Bands},
		{"height", a.Height, b.Height},
		{"width", a.Width, b.Width},
		{"dtype", a.DType, b.DType},
		{"number of bits", a.Packed, b.Packed},
		{"compression", a.Codec, b.Codec},
		{"predictor", a.Predictor, b.Predictor},
		{"chunk", [3]int{a.ChunkB, a.ChunkH, a.ChunkW}, [3]int{b.ChunkB, b.ChunkH, b.ChunkW}},
		{"cut of chunks at the edges", [2]bool{a.CutEdge, a.CutRight}, [2]bool{b.CutEdge, b.CutRight}},
		{"reversal of bits", a.Reversed, b.Reversed},
		{"parameters of the compression", fmt.Sprintf("%x", a.Params), fmt.Sprintf("%x", b.Params)},
		{"palette", a.Classes, b.Classes},
		{"nodata", firstMeta.NoData, orAbsent(pageMeta.NoData != "", pageMeta.NoData, firstMeta.NoData)},
		{"scales and offsets", fmt.Sprint(a.Physical), orAbsent(pageMeta.Bands != nil, fmt.Sprint(b.Physical),
			fmt.Sprint(a.Physical))},
		{"EPSG code", firstMeta.EPSG, orAbsent(pageMeta.EPSG != 0, pageMeta.EPSG, firstMeta.EPSG)},
		{"place", firstMeta.Transform, orAbsent(pageMeta.HasTransform, pageMeta.Transform, firstMeta.Transform)},
	} {
		if part.first != part.page {
			return fmt.Sprintf("its %s is %s, and %s in the first page", part.name, fault.Short(fmt.Sprint(part.page)),
				fault.Short(fmt.Sprint(part.first)))
		}
	}
	return ""
}

// join makes one image of pages that are alike.
func join(pages []*Image, as string, size int64, maxChunk int) (*Image, error) {
	first, count := pages[0], len(pages)
	index, meta := *first.Index, first.Meta
	index.Alpha, index.Bands = false, index.Bands*count
	groups := first.Index.Groups()
	index.Ranges = make([]chunk.Range, 0, len(first.Index.Ranges)*count)
	for start := 0; start < len(first.Index.Ranges); start += groups {
		for _, page := range pages {
			index.Ranges = append(index.Ranges, page.Index.Ranges[start:start+groups]...)
		}
	}
	if as == chunk.StepsPages {
		index.Times = count
	} else {
		if len(index.Physical) > 1 {
			index.Physical = slices.Repeat(index.Physical, count)
		}
		index.Joint, meta.BandNames = "", bandNames(pages)
	}
	if err := index.Validate(size, maxChunk); err != nil {
		return nil, err
	}
	return &Image{Index: &index, Meta: meta}, nil
}

// bandNames returns the names of the bands of all pages, nil if no page has one.
func bandNames(pages []*Image) []string {
	var names []string
	for i, page := range pages {
		if page.Meta.BandNames == nil {
			continue
		}
		bands := page.Index.Bands
		if names == nil {
			names = make([]string, bands*len(pages))
		}
		copy(names[i*bands:], page.Meta.BandNames)
	}
	return names
}
