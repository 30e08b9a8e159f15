package convert

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// rasterMeta is what a raster holds besides the pixels of its full image.
type rasterMeta struct {
	meta      tiff.Meta
	extras    extras.Extras
	image     *chunk.Index   // with its mask; nil for a rumi file, which has none
	overviews []*chunk.Index // with their masks; only where the options ask for them
	steps     []int          // the picked steps of time
	trailer   *rumi.Trailer  // names of bands and times of the picked steps; nil without
	beside    []string       // paths of files beside the raster
}

// only returns the one step of a raster whose format has no time.
func (o *Options) only() ([]int, error) {
	if o.Steps.Slice || o.Steps.List != nil {
		return nil, fault.New(fault.Unsupported, "file", "--t picks steps of time of rumi3, and it has none")
	}
	return []int{0}, nil
}

// inspect reads what the raster at path holds, without its pixels.
func (o *Options) inspect(ctx context.Context, path string) (*rasterMeta, error) {
	file, err := o.Opener.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	held := &rasterMeta{beside: catalog.FilesBeside(ctx, o.Opener, path)}
	format, err := catalog.FormatOf(ctx, file)
	if err != nil {
		return nil, err
	}
	if format.Class == magic.Picture {
		if held.image, err = picture.Open(ctx, file, chunk.Axes{}, o.limits().MaxChunk); err == nil {
			held.meta = pictureMeta(held.image)
			held.steps, err = o.only()
		}
		return held, err
	}
	if is, err := catalog.IsENVI(ctx, o.Opener, path); is || err != nil {
		return nil, cmp.Or(err, error(fault.New(fault.Unsupported, "header",
			"it is an ENVI raster, which is read and not converted: 'gdal_translate' does")))
	}
	directory, err := rumi.Open(ctx, file, tiff.Limits{}.IFD())
	if err != nil {
		return nil, catalog.NotRaster(ctx, o.Opener, path, file, err)
	}
	if rumi.Is(ctx, directory) {
		return held, held.rumi(ctx, directory, o)
	}
	if held.steps, err = o.only(); err != nil {
		return nil, err
	}
	img, err := tiff.FromFile(ctx, directory, o.limits())
	if err != nil {
		return nil, err
	}
	held.meta, held.image = img.Meta, img.Index
	if held.image.Mask, err = tiff.OpenMask(ctx, directory, held.image, o.limits()); err != nil {
		return nil, err
	}
	if o.Overviews {
		if held.overviews, err = tiff.OpenOverviews(ctx, directory, held.image, o.limits()); err != nil {
			return nil, err
		}
	}
	found, err := extras.Read(ctx, directory)
	if err != nil {
		return nil, err
	}
	held.extras = *found
	return held, nil
}

// pictureMeta returns what the header of a PNG or JPEG file says besides the shape.
func pictureMeta(x *chunk.Index) (m tiff.Meta) {
	m.NoData = NoDataText(x)
	if x.Alpha {
		m.ExtraSamples = []uint16{2} // alpha
	}
	return m
}

// NoDataText returns the nodata value of x as GDAL writes it, "" for none.
func NoDataText(x *chunk.Index) string {
	switch {
	case x.NoDataBits != nil && x.DType == chunk.Uint64:
		return strconv.FormatUint(*x.NoDataBits, 10)
	case x.NoDataBits != nil:
		return strconv.FormatInt(int64(*x.NoDataBits), 10)
	case x.NoData == nil:
		return ""
	}
	return NumberText(*x.NoData)
}

// NumberText returns a value as GDAL writes nodata.
func NumberText(v float64) string {
	if math.IsNaN(v) {
		return "nan"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// rumi reads what a rumi file holds. A file of generation 2 has only tags of its georeferencing, so there are no
// extras to read. A file of generation 3 has times and names of bands.
func (h *rasterMeta) rumi(ctx context.Context, f *ifd.File, o *Options) (err error) {
	header, err := rumi.HeaderOf(ctx, f, o.limits().MaxChunk)
	if err != nil {
		return err
	}
	if header.Generation < 3 {
		h.steps, err = o.only()
	} else {
		h.steps, err = o.Steps.Indices("t", header.Times)
	}
	if err != nil {
		return err
	}
	if header.Generation == 3 {
		trailer, err := rumi.TrailerOf(ctx, f)
		if err != nil {
			return err
		}
		h.trailer = &rumi.Trailer{Bands: trailer.Bands, Kind: trailer.Kind}
		each := len(trailer.Times) / header.Times // 0 without times
		for _, k := range h.steps {
			h.trailer.Times = append(h.trailer.Times, trailer.Times[each*k:each*(k+1)]...)
		}
	}
	if h.meta, err = rumi.Meta(ctx, f); err != nil ||
		f.Dirs[0].Find(ifd.TagCompression) == nil { // of generation 2 and 3
		return err
	}
	found, err := extras.Read(ctx, f)
	if err == nil {
		h.extras = *found
	}
	return err
}

// geo returns the georeferencing for a writer that also gets the tags of the file. It is empty if these
// tags have it, because the writer would otherwise write it twice.
func (h *rasterMeta) geo() tiff.Geo {
	if len(h.extras.Tags) > 0 && slices.ContainsFunc(h.extras.Tags, isPlace) {
		return tiff.Geo{}
	}
	return h.meta.Geo
}

// tags returns the TIFF tags of a rumi file of generation 1: the tags of a TOG, without the ones about colours.
func (h *rasterMeta) tags() []ifdwrite.Field {
	tags := slices.Clone(h.extras.Tags)
	if len(h.extras.Items) > 0 {
		tags = append(tags, ifdwrite.Text(ifd.TagGDALMetadata, extras.GDALMetadata(h.extras.Items)))
	}
	if h.meta.NoData != "" {
		tags = append(tags, ifdwrite.Text(ifd.TagGDALNoData, h.meta.NoData))
	}
	return tags
}

func isPlace(f ifdwrite.Field) bool {
	return slices.Contains([]uint16{ifd.TagPixelScale, ifd.TagTiepoint, ifd.TagTransformation, ifd.TagGeoKeys,
		ifd.TagGeoDoubles, ifd.TagGeoASCII}, f.Tag)
}

// losses returns the names of what the format cannot hold. Their order does not depend on the file, so
// rasters with the same losses share a line of warnings.
func (o *Options) losses(h *rasterMeta) []string {
	var names []string
	add := func(holds bool, name string) {
		if holds && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	meta, other := &h.meta, &h.extras
	if h.image != nil && h.image.Mask != nil {
		add(o.Format != TOG, "mask")
		add(h.image.Mask.Bands > 1, "masks of single bands")
	}
	if o.Format == TOG {
		add(meta.Overviews > 0 && !o.Overviews, "overviews (--overviews keeps them)")
	} else {
		add(meta.Overviews > 0, "overviews")
		add(other.Photometric > 1 || other.WhiteIsZero || slices.ContainsFunc(other.ExtraSamples,
			func(v uint16) bool {
				return v != 0
			}),
			"meaning of the bands (colours, alpha)")
	}
	if o.Format != TOG && o.Format != Rumi {
		o.leftTags(h, add)
	}
	if o.Format == Rumi3 {
		_, kept := rumi.BandNames(meta.BandNames, len(meta.BandNames))
		add(!kept && o.Trailer.Bands == nil, "band names")
	} else {
		add(h.trailer != nil && h.trailer.Times != nil, "times")
		add(o.Format != TOG && len(meta.Bands) == 0 && meta.BandNames != nil, "band names")
	}
	add(len(h.beside) > 0, "what files beside it say (gdal_translate writes that into a raster)")
	return append(names, other.Unknown...)
}

// leftTags adds the names of what only a TOG and rumi of generation 1 can hold, as tags.
func (o *Options) leftTags(h *rasterMeta, add func(bool, string)) {
	meta := &h.meta
	add(meta.NoData != "", "nodata value")
	// The loop names these items of GDAL metadata one by one: "metadata" means the rest.
	named := 0
	for _, band := range meta.Bands {
		add(band.Description != "" && o.Format != Rumi3, "band names")
		add(band.Scale != nil && *band.Scale != 1, "scale")
		add(band.Offset != nil && *band.Offset != 0, "offset")
		add(band.Unit != "", "units")
		for _, is := range []bool{band.Description != "", band.Scale != nil, band.Offset != nil, band.Unit != ""} {
			if is {
				named++
			}
		}
	}
	add(len(h.extras.Items) > named, "metadata")
	placed := meta.HasTransform || meta.EPSG != 0
	for _, f := range h.extras.Tags {
		switch f.Tag {
		case ifd.TagColorMap:
			add(true, "colour table")
		case ifd.TagICCProfile:
			add(true, "colour profile")
		case ifd.TagRPC:
			add(true, "RPCs")
		case ifd.TagTiepoint:
			add(!meta.HasTransform, "ground control points")
		case ifd.TagPixelScale, ifd.TagTransformation, ifd.TagGeoDoubles, ifd.TagGeoASCII:
		case ifd.TagGeoKeys:
			add(!placed, "georeferencing")
			add(h.meta.Geo.IsVertical(), "vertical CRS")
		default:
			add(true, "TIFF tags")
		}
	}
}

// keep returns the names of what would be left out, or an error if Strict is set and there is any.
func (o *Options) keep(h *rasterMeta) ([]string, error) {
	names := o.losses(h)
	if o.Strict && len(names) > 0 {
		return nil, fault.New(fault.Unsupported, "conversion", "%s would leave out: %s", o.Format,
			strings.Join(names, ", "))
	}
	return names, nil
}

// readOverviews decodes the overviews of the file at path. MaxBytes bounds them together with the image, which
// takes used bytes, because all are in memory at once.
func (o *Options) readOverviews(ctx context.Context, path string, overviews []*chunk.Index,
	used int) ([]tog.Overview, error) {
	var out []tog.Overview
	for _, index := range overviews {
		plain := *index
		plain.Mask = nil
		array, err := o.load(ctx, path, &plain, raster.ReadOptions{MaxBytes: max(1, o.MaxBytes-int64(used))})
		if err != nil {
			return nil, err
		}
		mask, err := o.readMask(ctx, path, index)
		if err != nil {
			return nil, err
		}
		out = append(out, tog.Overview{Height: index.Height, Width: index.Width, Pixels: array.Data, Mask: mask})
		used += len(array.Data) + len(mask)
	}
	return out, nil
}

// readMask decodes the mask of an image: one byte a pixel, 0 where there is no data. It returns nil without a
// mask, or if each band has its own, which a TOG cannot hold.
func (o *Options) readMask(ctx context.Context, path string, x *chunk.Index) ([]byte, error) {
	if x == nil || x.Mask == nil || x.Mask.Bands > 1 {
		return nil, nil
	}
	mask := *x
	// Without its nodata value, since validity would otherwise combine both and the new mask would exclude more.
	mask.SetNoData(nil)
	array, err := o.load(ctx, path, &mask, raster.ReadOptions{B: raster.Selection{List: []int{0}}, Validity: true})
	if err != nil {
		return nil, err
	}
	return array.Valid, nil
}

// load reads an image of the file whose index is x, such as an overview.
func (o *Options) load(ctx context.Context, path string, x *chunk.Index, r raster.ReadOptions) (*raster.Array, error) {
	r.Headers, r.Layout, r.Threads = [][]byte{blob.Append(nil, x)}, "b y x", o.Workers
	r.MaxBytes = cmp.Or(r.MaxBytes, o.MaxBytes)
	r.Options = o.loader()
	return raster.Read(ctx, []string{path}, r)
}

// ReadMeta reads the georeferencing and the bands of the raster file at path, without its pixels. A PNG or JPEG file
// has at most nodata.
func ReadMeta(ctx context.Context, path string, opener source.Opener) (tiff.Meta, error) {
	h, err := describe(ctx, path, opener)
	return h.meta, err
}

// ReadPlace reads where the raster file at path lies, for a TOG of the same pixels: Geo and Tags of tog.Options.
// The tags are the rational polynomial coefficients and, of a raster without a transform, its ground control points.
func ReadPlace(ctx context.Context, path string, opener source.Opener) (tiff.Geo, []ifdwrite.Field, error) {
	h, err := describe(ctx, path, opener)
	tags := slices.DeleteFunc(h.extras.Tags, func(t ifdwrite.Field) bool { return !isPlace(t) && t.Tag != ifd.TagRPC })
	if !h.meta.HasTransform && slices.ContainsFunc(tags, isPlace) {
		return tiff.Geo{}, tags, err // the tags have its CRS, too
	}
	return h.meta.Geo, slices.DeleteFunc(tags, isPlace), err
}

// describe reads what the raster file at path holds, whatever its chunks are.
func describe(ctx context.Context, path string, opener source.Opener) (*rasterMeta, error) {
	o := Options{Opener: opener, MaxChunk: math.MaxInt}
	h, err := o.inspect(ctx, path)
	if err != nil {
		return &rasterMeta{}, err
	}
	return h, nil
}
