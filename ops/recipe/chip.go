package recipe

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// Why a window becomes no chip.
const (
	kept       = iota
	bad        // it cannot be read
	misplaced  // its rasters do not lie together
	empty      // too much of it is nodata
	unlabelled // it has too few pixels of the classes
)

// chip is the result of one window. Its exported fields are in parts.
type chip struct {
	Left   int    // kept, or why it is left out
	why    error  // of a bad or misplaced sample
	Why    string // in a part, why for people: of the first window of the part that has a reason
	Source string // its id in the source, without secrets
	Row    int64  // of the source
	Split  string
	LonLat [2]float64 // of the centre of the first field; NaN if it is not known
	Files  []file
}

// image is the pixels of a field, with axes of bands, rows and columns, and which samples are valid.
type image struct {
	pixels *loader.Tensor
	valid  []byte
}

// file is the encoded raster of a field.
type file struct {
	columns.Raster
	Bytes  []byte   // nil once it is written
	Window [4]int64 // y, x, height, width
	Moved  int64    // how many valid samples had the nodata value and got the next one
}

// chip makes the chip of position i.
func (m *Maker) chip(ctx context.Context, i int64) (*chip, error) {
	batch, err := m.engine.Start(ctx, shuffle.StepTicket(0, i, 1, 0, 1), false).Wait(ctx)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	c := &chip{}
	if len(batch.Bad) > 0 {
		c.why = errBad(&batch.Bad[0])
		switch {
		case fault.KindOf(c.why) == fault.Misplaced && m.recipe.Quality.Pairs == "drop":
			c.Left = misplaced
		case m.recipe.BadSamples == "skip":
			c.Left = bad
		default:
			return nil, c.why
		}
		return c, nil
	}
	draw := m.engine.Plan().At(0, i)
	c.Row = draw.Row
	id, err := m.engine.ID(ctx, draw.Dataset, draw.Row)
	if err != nil {
		return nil, err
	}
	// Without secrets, because a container is published.
	c.Source = fault.WithoutSecrets(id)
	windows, err := m.origins(ctx, batch, draw)
	if err != nil {
		return nil, err
	}
	place := batch.Tensor("geo.lonlat").Float64()
	c.LonLat = [2]float64{place[0], place[1]}
	if c.Split, err = m.partOf(c); err != nil {
		return nil, err
	}
	if m.isEmpty(batch) {
		c.Left = empty
		return c, nil
	}
	images := make([]image, len(windows))
	for k := range images {
		if images[k], err = m.image(batch, k); err != nil {
			return nil, fault.WithFile(err, windows[k].Asset.URI)
		}
	}
	if labels := m.recipe.Quality.Labels; labels != nil {
		k := m.recipe.field(labels.Field)
		if enough, err := labels.in(images[k].pixels, images[k].valid); err != nil || !enough {
			c.Left = unlabelled
			return c, fault.WithFile(err, windows[k].Asset.URI)
		}
	}
	return c, m.encode(ctx, batch, c, images, windows)
}

// encode makes the files of a chip.
func (m *Maker) encode(ctx context.Context, b *loader.Batch, c *chip, images []image, windows []*origin) error {
	space := m.spaces.Get().(*columns.Summarizer)
	defer m.spaces.Put(space)
	for k, im := range images {
		file, err := m.file(ctx, b, k, im, windows[k], space)
		if err != nil {
			return fault.WithFile(err, windows[k].Asset.URI)
		}
		if k == 0 {
			file.LonLat = c.LonLat
		}
		c.Files = append(c.Files, *file)
	}
	return nil
}

// isEmpty reports whether a field has more nodata than the recipe allows.
func (m *Maker) isEmpty(b *loader.Batch) bool {
	quality := &m.recipe.Quality
	if quality.MaxNoData == nil {
		return false
	}
	for i := range m.recipe.Fields {
		name := m.recipe.Fields[i].Name
		if !quality.about(name) || m.recipe.Fields[i].Vector != nil {
			continue
		}
		valid := b.Tensor(name + validity).Data
		missing := bytes.Count(valid, []byte{0})
		// Divided, because a product may round: see Labels.in.
		if missing > 0 && float64(missing)/float64(len(valid)) > *quality.MaxNoData {
			return true
		}
	}
	return false
}

// origin is where the raster of a field comes from.
type origin struct {
	loader.RasterWindow
	// place is where a window on the ground lies. Asset is then the first scene of the window, and Window has no place
	// in it. Otherwise it is nil.
	place *tiff.Geo
}

// origins returns where the fields of a draw come from. Shapes are drawn into the window of the first raster.
func (m *Maker) origins(ctx context.Context, b *loader.Batch, draw shuffle.Draw) ([]*origin, error) {
	var rasters []*origin
	if m.recipe.Windows.Kind == Ground {
		assets, err := m.engine.RowAssets(ctx, draw)
		if err != nil {
			return nil, err
		}
		place := &tiff.Geo{EPSG: int(b.Tensor("geo.epsg").Int64()[0]), HasTransform: true,
			Transform: [6]float64(b.Tensor("geo.transform").Float64())}
		for _, a := range assets {
			rasters = append(rasters, &origin{loader.RasterWindow{Asset: a}, place})
		}
	} else {
		windows, err := m.engine.RasterWindows(ctx, draw)
		if err != nil {
			return nil, err
		}
		for i := range windows {
			rasters = append(rasters, &origin{windows[i], nil})
		}
	}
	out := make([]*origin, len(m.recipe.Fields))
	next := 0
	for k := range m.recipe.Fields {
		if m.recipe.Fields[k].Vector != nil {
			out[k] = rasters[0]
			continue
		}
		out[k] = rasters[next]
		next++
	}
	return out, nil
}

// image returns the pixels of field k. All of a mask of shapes are valid.
func (m *Maker) image(b *loader.Batch, k int) (im image, _ error) {
	field := &m.recipe.Fields[k]
	pixels := b.Tensor(field.Name)
	if field.Vector != nil {
		tensor := *pixels
		tensor.Shape = append([]int64{1}, pixels.Shape...)
		size := pixels.Shape[1] * pixels.Shape[2]
		return image{&tensor, bytes.Repeat([]byte{1}, int(size))}, nil
	}
	if len(pixels.Shape) != 4 {
		return im, fault.New(fault.Unsupported, "field "+field.Name, fault.NoOffset,
			"it has axes %q: chips have bands, y and x", pixels.Axes)
	}
	return image{pixels, b.Tensor(field.Name + validity).Data}, nil
}

// file encodes the raster of field k.
func (m *Maker) file(ctx context.Context, b *loader.Batch, k int, im image, w *origin,
	space *columns.Summarizer) (*file, error) {
	field, pixels := &m.recipe.Fields[k], im.pixels
	meta, err := m.meta(ctx, &w.RasterWindow)
	if err != nil {
		return nil, err
	}
	shape := [3]int{int(pixels.Shape[1]), int(pixels.Shape[2]), int(pixels.Shape[3])}
	chip := convert.Chip{Shape: shape, DType: pixels.DType, Pixels: pixels.Data}
	if chip.Geo = meta.Geo; w.place != nil {
		chip.Geo = *w.place
	} else {
		chip.Geo.Transform = windowTransform(&meta.Transform, w.Window, shape)
	}
	window := w.Window
	out := &file{Window: [4]int64{int64(window.Y), int64(window.X), int64(window.H), int64(window.W)},
		Raster: columns.Raster{Shape: shape, EPSG: chip.Geo.EPSG, Placed: chip.Geo.HasTransform,
			Transform: chip.Geo.Transform}}
	if field.Vector == nil {
		chip.Bands = bandsOf(field, meta, shape[0])
		if out.Moved, err = missing(&chip, field, meta, w, im.valid); err != nil {
			return nil, err
		}
		lose(&chip, field.Codec.Format, im.valid)
	}
	if *m.recipe.Statistics {
		if out.Stats, err = space.Image(pixels.Data, im.valid, pixels.DType, shape[0], nil); err != nil {
			return nil, err
		}
	}
	var encoded bytes.Buffer
	options, err := field.options(shape[1], shape[2])
	if err == nil {
		err = timed(&options, field, b)
	}
	if err != nil {
		return nil, err
	}
	if err := chip.Write(ctx, &encoded, options); err != nil {
		return nil, err
	}
	out.Bytes = encoded.Bytes()
	if *m.recipe.Index {
		// Read back, so that the copy of the header equals what any reader makes.
		written := source.OpenOne(func(context.Context) (source.Reader, error) { return source.Memory(out.Bytes), nil })
		asset, read, err := catalog.OpenAsset(ctx, written, "chip", 0)
		if err != nil {
			return nil, err
		}
		out.Index, out.Names = read.Kept(asset.Index), catalog.NamesText(asset.Names)
	}
	return out, nil
}

// timed gives a rumi of generation 3 the time of the row, unless the recipe has one.
func timed(o *convert.Options, f *Field, b *loader.Batch) error {
	if o.Format != convert.Rumi3 || o.Trailer.Times != nil {
		return nil
	}
	pos := int64(rows.NoTime)
	if t := b.Tensor(spec.GeoTime); t != nil {
		pos = t.Int64()[0]
	}
	if pos == rows.NoTime {
		return fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset,
			"its row has no time, which rumi of generation 3 needs: codec.time gives one")
	}
	o.Trailer.Kind, o.Trailer.Times = rumi.Instant, []int64{time.UnixMicro(pos).Unix()}
	return nil
}

// missing gives a chip its nodata value, and a mask where no value says which pixels are missing. It returns how many
// valid samples had the nodata value and were moved to the next value.
func missing(c *convert.Chip, f *Field, meta *tiff.Meta, w *origin, valid []byte) (moved int64, err error) {
	index := w.Asset.Index
	native := f.DType == "" || f.DType == "native"
	var sample []byte // the nodata value; nil if the chip has none
	switch {
	case f.NoData != nil:
		v := float64(*f.NoData)
		c.NoData, sample = convert.NumberText(v), sampleOf(&chunk.Index{DType: c.DType, NoData: &v})
		return avoid(c.Pixels, valid, sample, c.DType), nil
	case native:
		c.NoData, sample = noDataOf(index, meta), sampleOf(index)
	}
	// Where no scene of a window on the ground has a pixel, it is as past the edge.
	box := &w.Window
	outside := w.place != nil || min(box.Y, box.X) < 0 || box.Y+box.H > index.Height || box.X+box.W > index.Width
	if w.place != nil && c.NoData != "" && sample != nil && has(c.Pixels, valid, sample) {
		// A mask, because in another scene of the window the nodata value of the first one is a value like others.
		none := c.NoData
		c.NoData, c.Mask = "", maskOf(valid, c.Shape)
		if whole(c.Mask, valid) {
			return 0, nil
		}
		return 0, fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset, "scenes have other nodata values: %s "+
			"is that of one and a value of another, and bands miss other pixels: the field's nodata gives one", none)
	}
	switch {
	case outside && native && sample != nil && index.Mask == nil && c.NoData != "":
		// The padding is 0 so far. A mask would hide the nodata of single bands from GDAL, and not fit into a rumi.
		fillMissing(c.Pixels, valid, sample)
	case index.Mask != nil || outside || c.NoData == "":
		c.Mask = maskOf(valid, c.Shape)
	}
	if c.NoData == "" && !whole(c.Mask, valid) {
		return byValue(c, f, noDataOf(index, meta), valid)
	}
	if c.NoData != "" && sample != nil {
		moved = avoid(c.Pixels, valid, sample, c.DType)
	}
	return moved, nil
}

// has reports whether a valid pixel has the value of sample.
func has(pixels, valid, sample []byte) bool {
	n := len(sample)
	for i, v := range valid {
		if v != 0 && bytes.Equal(pixels[i*n:(i+1)*n], sample) {
			return true
		}
	}
	return false
}

// whole reports whether a mask says of all bands what valid does. A nil mask says that all pixels are valid.
func whole(mask, valid []byte) bool {
	if mask == nil {
		return bytes.IndexByte(valid, 0) < 0
	}
	for band := range slices.Chunk(valid, len(mask)) {
		if !bytes.Equal(band, mask) {
			return false
		}
	}
	return true
}

// fillMissing writes sample to the pixels that are not valid.
func fillMissing(pixels, valid, sample []byte) {
	for i, v := range valid {
		if v == 0 {
			copy(pixels[i*len(sample):], sample)
		}
	}
}

// maskOf returns the mask of an image: 0 where no band is valid. It is nil if all pixels are.
func maskOf(valid []byte, shape [3]int) []byte {
	if bytes.IndexByte(valid, 0) < 0 {
		return nil
	}
	n := shape[1] * shape[2]
	mask := make([]byte, n)
	for b := range shape[0] {
		for i, v := range valid[b*n : (b+1)*n] {
			mask[i] |= v
		}
	}
	if bytes.IndexByte(mask, 0) < 0 {
		return nil
	}
	return mask
}

// windowTransform returns the transform of a window that became an image of another size.
func windowTransform(t *[6]float64, w shuffle.Box, shape [3]int) [6]float64 {
	first := crs.At(t, float64(w.X), float64(w.Y))
	sx, sy := float64(w.W)/float64(shape[2]), float64(w.H)/float64(shape[1])
	return [6]float64{first[0], t[1] * sx, t[2] * sy, first[1], t[4] * sx, t[5] * sy}
}

// meta returns the georeferencing and the names of bands of an asset.
func (m *Maker) meta(ctx context.Context, w *loader.RasterWindow) (*tiff.Meta, error) {
	asset := &w.Asset
	if asset.Parts != nil || asset.Index.Blocks != nil {
		meta := &tiff.Meta{}
		if asset.Place != nil {
			meta.EPSG, meta.HasTransform = asset.Place.EPSG, true
			meta.Transform = asset.Place.Transform(asset.Index.Height, asset.Index.Width)
		}
		return meta, nil
	}
	key := asset.Name()
	if meta, ok := m.metas.Get(key); ok {
		return meta, nil
	}
	meta, err := convert.ReadMeta(ctx, asset.URI, rows.Alone(m.options.Loader.Opener, *asset))
	if err != nil {
		return nil, asset.Fault(err)
	}
	m.metas.Add(key, &meta, metaCost+int64(len(meta.GDALMetadata)))
	return &meta, nil
}

// bandsOf returns the names of the bands of a field, nil if they have none.
func bandsOf(f *Field, meta *tiff.Meta, n int) []string {
	switch {
	case f.BandNames != nil:
		return f.BandNames
	case len(f.Columns) == n:
		return f.Columns
	case meta.BandNames == nil:
		return nil
	case f.Bands == nil && len(meta.BandNames) == n:
		return meta.BandNames
	}
	var names []string
	for _, b := range f.Bands {
		if b >= len(meta.BandNames) {
			return nil
		}
		names = append(names, meta.BandNames[b])
	}
	if len(names) != n {
		return nil
	}
	return names
}

// noDataOf returns the nodata value of an asset as a string, "" for none.
func noDataOf(x *chunk.Index, meta *tiff.Meta) string {
	return cmp.Or(meta.NoData, convert.NoDataText(x))
}

func (q *Quality) about(field string) bool {
	return len(q.Fields) == 0 || slices.Contains(q.Fields, field)
}

// partOf returns the part of the split that a chip belongs to.
func (m *Maker) partOf(c *chip) (string, error) {
	split := m.recipe.Split
	if split == nil {
		return "", nil
	}
	pos := -1
	switch split.By {
	case "hash":
		pos = m.split.OfText(c.Source)
	case "column":
		if !m.groups.Null(int(c.Row)) {
			pos = m.split.OfText(string(m.groups.AppendJSON(nil, int(c.Row))))
		}
	case "place":
		pos = m.split.OfCell([4]float64{c.LonLat[0], c.LonLat[1], c.LonLat[0], c.LonLat[1]}, split.Cell)
	}
	if pos < 0 {
		what := "place"
		if split.By == "column" {
			what = "column " + strconv.Quote(split.Column)
		}
		return "", fault.New(fault.Unsupported, "sample "+c.Source, fault.NoOffset,
			"belongs to no part of the split by %s: its %s is not known", split.By, what)
	}
	return m.split.Shares[pos].Name, nil
}
