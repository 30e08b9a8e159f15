package convert

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// holding is what a raster holds besides the samples of its full image.
type holding struct {
	meta      tiff.Meta
	extras    tiff.Extras
	image     *chunk.Index   // with its mask; nil for a rumi file, which has none
	overviews []*chunk.Index // with their masks; only where the options ask for them
}

// inspect reads what the raster at path holds, without reading pixels.
func (o *Options) inspect(ctx context.Context, path string) (*holding, error) {
	r, err := o.Opener.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := ifd.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil {
		return nil, err
	}
	h := &holding{}
	if rumi.Is(ctx, f) {
		return h, h.rumi(ctx, f)
	}
	img, err := tiff.FromFile(ctx, f, o.limits())
	if err != nil {
		return nil, err
	}
	h.meta, h.image = img.Meta, img.Index
	if h.image.Mask, err = tiff.OpenMask(ctx, f, h.image, o.limits()); err != nil {
		return nil, err
	}
	if o.Overviews {
		if h.overviews, err = tiff.OpenOverviews(ctx, f, h.image, o.limits()); err != nil {
			return nil, err
		}
	}
	extras, err := tiff.ReadExtras(ctx, f)
	if err != nil {
		return nil, err
	}
	h.extras = *extras
	return h, nil
}

// rumi reads what a rumi file holds. One of generation 2 has tags of its own for its place, and no others.
func (h *holding) rumi(ctx context.Context, f *ifd.File) (err error) {
	if h.meta, err = rumi.Meta(ctx, f); err != nil || f.Dirs[0].Find(compressionTag) == nil {
		return err
	}
	extras, err := tiff.ReadExtras(ctx, f)
	if err == nil {
		h.extras = *extras
	}
	return err
}

// compressionTag is the Compression tag, which files of generation 2 lack.
const compressionTag = 259

// geo returns where the image lies for a writer that is given the file's tags too, which say it already.
func (h *holding) geo() tiff.Geo {
	if len(h.extras.Tags) > 0 && slices.ContainsFunc(h.extras.Tags, isPlace) {
		return tiff.Geo{}
	}
	return h.meta.Geo
}

// tags are those of a file of generation 1 of rumi: what a TOG has, as far as it does not depend on the image's
// colours.
func (h *holding) tags() []ifd.Field {
	tags := slices.Clone(h.extras.Tags)
	if len(h.extras.Items) > 0 {
		tags = append(tags, ifd.Text(metadataTag, tiff.FormatGDALMetadata(h.extras.Items)))
	}
	if h.meta.NoData != "" {
		tags = append(tags, ifd.Text(noDataTag, h.meta.NoData))
	}
	return tags
}

// Tags of GeoTIFF, and what else lies among those that are kept and has a name of its own.
const (
	colorMapTag  = 320
	scaleTag     = 33550
	tiepointTag  = 33922
	matrixTag    = 34264
	profileTag   = 34675
	geoKeysTag   = 34735
	geoDoubleTag = 34736
	geoTextTag   = 34737
	metadataTag  = 42112
	noDataTag    = 42113
	rpcTag       = 50844
)

func isPlace(f ifd.Field) bool {
	return slices.Contains([]uint16{scaleTag, tiepointTag, matrixTag, geoKeysTag, geoDoubleTag, geoTextTag}, f.Tag)
}

// left names what the format has no place for, in an order that does not depend on the file's.
func (o *Options) left(h *holding) []string {
	var names []string
	add := func(holds bool, name string) {
		if holds && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	m, e := &h.meta, &h.extras
	if h.image != nil && h.image.Mask != nil {
		add(o.Format != TOG, "mask")
		add(h.image.Mask.Bands > 1, "masks of single bands")
	}
	if o.Format == TOG {
		add(m.Overviews > 0 && !o.Overviews, "overviews (--overviews keeps them)")
	} else {
		add(m.Overviews > 0, "overviews")
		add(e.Photometric > 1 || e.WhiteIsZero || slices.ContainsFunc(e.ExtraSamples, func(v uint16) bool { return v != 0 }),
			"meaning of the bands (colours, alpha)")
	}
	if o.Format == Rumi2 || o.Format == TileDB {
		o.leftTags(h, add)
	}
	add(o.Format == TileDB && m.HasTransform, "georeferencing")
	return append(names, e.Unknown...)
}

// leftTags names what a TOG and generation 1 of rumi keep as tags.
func (o *Options) leftTags(h *holding, add func(bool, string)) {
	m := &h.meta
	add(m.NoData != "", "nodata value")
	said := 0 // items of GDAL_METADATA that have a name here
	for _, b := range m.Bands {
		add(b.Description != "", "band names")
		add(b.Scale != nil && *b.Scale != 1, "scale")
		add(b.Offset != nil && *b.Offset != 0, "offset")
		add(b.Unit != "", "units")
		for _, is := range []bool{b.Description != "", b.Scale != nil, b.Offset != nil, b.Unit != ""} {
			if is {
				said++
			}
		}
	}
	add(len(h.extras.Items) > said, "metadata")
	placed := m.HasTransform || m.EPSG != 0
	for _, f := range h.extras.Tags {
		switch f.Tag {
		case colorMapTag:
			add(true, "colour table")
		case profileTag:
			add(true, "colour profile")
		case rpcTag:
			add(true, "RPCs")
		case tiepointTag:
			add(!m.HasTransform, "ground control points")
		case scaleTag, matrixTag, geoDoubleTag, geoTextTag:
		case geoKeysTag:
			add(!placed || o.Format == TileDB, "georeferencing")
			add(o.Format == Rumi2 && h.meta.Geo.IsVertical(), "vertical CRS")
		default:
			add(true, "TIFF tags")
		}
	}
}

// keep holds what is left out to the options: refused, or handed on.
func (o *Options) keep(h *holding) ([]string, error) {
	names := o.left(h)
	if o.Strict && len(names) > 0 {
		return nil, fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%s would leave out: %s", o.Format, strings.Join(names, ", "))
	}
	return names, nil
}

// readOverviews decodes the overviews of the file at path. What they take is bounded together with the image,
// of which used bytes are held.
func (o *Options) readOverviews(ctx context.Context, path string, overviews []*chunk.Index, used int) ([]tiff.Overview, error) {
	var out []tiff.Overview
	for _, x := range overviews {
		image := *x
		image.Mask = nil
		a, err := o.load(ctx, path, &image, loader.ReadOptions{MaxBytes: max(1, o.MaxBytes-int64(used))})
		if err != nil {
			return nil, err
		}
		mask, err := o.readMask(ctx, path, x)
		if err != nil {
			return nil, err
		}
		out = append(out, tiff.Overview{Height: x.Height, Width: x.Width, Pixels: a.Data, Mask: mask})
		used += len(a.Data) + len(mask)
	}
	return out, nil
}

// readMask decodes the mask of an image, nil if it has none for all bands: one byte a pixel, 0 where there is no data.
func (o *Options) readMask(ctx context.Context, path string, x *chunk.Index) ([]byte, error) {
	if x == nil || x.Mask == nil || x.Mask.Bands > 1 {
		return nil, nil
	}
	image := *x
	image.NoData, image.NoDataBits = nil, nil // what is nodata is not masked by that
	a, err := o.load(ctx, path, &image, loader.ReadOptions{B: loader.Selection{List: []int{0}}, Validity: true})
	if err != nil {
		return nil, err
	}
	return a.Valid, nil
}

func (o *Options) load(ctx context.Context, path string, x *chunk.Index, r loader.ReadOptions) (*loader.Array, error) {
	r.Headers, r.Layout, r.Threads = [][]byte{x.AppendBlob(nil)}, "b y x", o.Workers
	r.MaxBytes = cmp.Or(r.MaxBytes, o.MaxBytes)
	r.Options = o.loader()
	return loader.Read(ctx, []string{path}, r)
}

// ReadMeta reads what a raster says about its image: where it lies, its bands.
func ReadMeta(ctx context.Context, path string, opener source.Opener) (tiff.Meta, error) {
	r, err := opener.Open(ctx, path)
	if err != nil {
		return tiff.Meta{}, err
	}
	defer r.Close()
	f, err := ifd.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil {
		return tiff.Meta{}, err
	}
	return rumi.Meta(ctx, f)
}
