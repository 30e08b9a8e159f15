package report

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxPictures is how many rasters of a sample are shown side by side.
const maxPictures = 4

// chips reads the first samples of the seeded order.
func (m *maker) chips(ctx context.Context) error {
	order := shuffle.NewOrder(m.Options.Seed, 0, m.Report.Samples, true)
	show := int64(m.Options.Samples)
	// 18 chips of one raster, or 16 of several, fill the rows of a wide page.
	if show == 0 {
		show = 18
		if m.rasters() > 1 {
			show = 16
		}
	}
	n := min(show, m.Report.Samples)
	for p := range n {
		chip, err := m.chip(ctx, order.At(p))
		if err != nil {
			return err
		}
		m.Chips = append(m.Chips, chip)
		m.Progress("chips", p+1, n)
	}
	return nil
}

func (m *maker) rasters() (n int) {
	for _, f := range m.Report.Fields {
		if f.Kind == catalog.Raster {
			n++
		}
	}
	return n
}

func (m *maker) chip(ctx context.Context, row int64) (c Chip, err error) {
	c.Row = row
	if c.ID, err = m.table.ID(ctx, row); err != nil {
		if fault.KindOf(err) == 0 {
			return c, err
		}
		c.ID = "row " + strconv.FormatInt(row, 10)
	}
	for i := range m.Report.Fields {
		field := &m.Report.Fields[i]
		if field.Kind != catalog.Raster {
			if v, err := m.table.Value(ctx, i, row); err == nil {
				c.Values = append(c.Values, Value{field.Name, valueText(field.Kind, v)})
			}
			continue
		}
		if len(c.Pictures) >= maxPictures {
			continue
		}
		picture, err := m.picture(ctx, i, row)
		switch {
		case fault.KindOf(err) != 0:
			c.Error = fault.Line(err)
		case err != nil:
			return c, err
		default:
			c.Pictures = append(c.Pictures, picture)
		}
	}
	return c, nil
}

func valueText(k catalog.Kind, v catalog.Value) string {
	switch {
	case v.Null:
		return "–"
	case k == catalog.Int:
		return strconv.FormatInt(v.Int, 10)
	case k == catalog.Float:
		return strconv.FormatFloat(v.Float, 'g', 6, 64)
	}
	if r := []rune(v.Text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return v.Text
}

// picture reads and draws one asset.
func (m *maker) picture(ctx context.Context, i int, row int64) (p Picture, err error) {
	field := &m.Report.Fields[i]
	asset, err := m.table.Asset(ctx, i, row)
	if err != nil {
		return p, err
	}
	index := asset.Index
	p.Field = field.Name
	bands := draw.Visible(field.BandNames, index.Bands)
	if i == 0 && len(m.Bands) > 0 {
		bands = m.Bands
	}
	for _, b := range bands {
		if b >= index.Bands {
			return p, fault.WithFile(fault.New(fault.NotFound, "band", fault.NoOffset,
				"there is no band %d: the asset has the bands 0 to %d", b, index.Bands-1), asset.URI)
		}
	}
	readOptions := raster.ReadOptions{B: raster.Selection{List: bands}, Threads: procs.Workers(), MaxBytes: m.MaxBytes,
		Validity: index.Mask != nil}
	readOptions.Y, readOptions.X, p.Window = m.window(index, len(bands))
	read, err := m.read(ctx, asset, readOptions)
	if err != nil {
		return p, err
	}
	pixels := draw.Raster{DType: read.DType, Bands: read.Shape[0], Height: read.Shape[1], Width: read.Shape[2],
		Data: read.Data, Valid: read.Valid, NoData: index.NoData}
	render := draw.Options{Low: m.Low, High: m.High, MaxSide: m.Side, Palette: draw.Never}
	if len(field.Classes) > 0 {
		render.Palette, render.Colours, p.Mask = draw.Always, field.colours, true
	}
	img, err := draw.Render(pixels, render)
	if err != nil {
		return p, err
	}
	if !p.Mask {
		p.Bands = field.BandName(bands[0])
		if len(bands) == 3 {
			p.Bands = fmt.Sprintf("%s, %s, %s as red, green, blue", field.BandName(bands[0]), field.BandName(bands[1]),
				field.BandName(bands[2]))
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img); err != nil {
		return p, err
	}
	p.PNG, p.Width, p.Height = b.Bytes(), img.Rect.Dx(), img.Rect.Dy()
	return p, nil
}

// read reads an asset. A member of a container is opened alone, as the tables of a container may be large.
func (m *maker) read(ctx context.Context, a catalog.Asset, o raster.ReadOptions) (*raster.Array, error) {
	name := a.URI
	if o.Options = m.Loader; a.Member != "" {
		name, o.Options.Opener = a.Member, rows.Alone(m.Loader.Opener, a)
	}
	return raster.Read(ctx, []string{name}, o)
}

// window selects the whole image or, if its bands decode to more than MaxBytes, a square in its middle.
func (m *maker) window(x *chunk.Index, bands int) (ys, xs raster.Selection, text string) {
	size := x.DType.Size()
	if x.Mask != nil {
		size++ // see loader.ReadOptions.Validity
	}
	pixel := int64(bands * size)
	if int64(x.Height) <= m.MaxBytes/pixel/int64(x.Width) {
		return ys, xs, ""
	}
	side := max(min(int(math.Sqrt(float64(m.MaxBytes/pixel))), 2048), 1)
	height, width := min(side, x.Height), min(side, x.Width)
	ys = raster.Selection{Slice: true, Start: (x.Height - height) / 2, Stop: (x.Height-height)/2 + height}
	xs = raster.Selection{Slice: true, Start: (x.Width - width) / 2, Stop: (x.Width-width)/2 + width}
	return ys, xs, fmt.Sprintf("%d × %d pixels from the middle of %d × %d", height, width, x.Height, x.Width)
}

// classes counts the values of masks: integer fields of one band with at most draw.MaxCategories values. If their
// range is below 100, the 100 bins of the histogram hold at most one integer each, so that they are the counts.
// Otherwise it reads the masks again.
func (m *maker) classes(ctx context.Context) error {
	for i := range m.Report.Fields {
		field := &m.Report.Fields[i]
		if field.Stats == nil || len(field.Stats.Bands) != 1 || field.Stats.Bands[0].Histogram == nil ||
			!field.Stats.DType.Integer() {
			continue
		}
		histogram := field.Stats.Bands[0].Histogram
		classes := binned(histogram)
		switch wide := histogram.Edges[len(histogram.Edges)-1]-histogram.Edges[0] >= 100; {
		case len(classes) > draw.MaxCategories:
		case !wide:
			field.Classes = classes
		default:
			if err := m.count(ctx, i); err != nil {
				return err
			}
		}
		var values []int64
		for _, c := range field.Classes {
			values = append(values, c.Value)
		}
		field.colours = draw.Colours(values)
	}
	return nil
}

// binned returns the one integer of each bin as a class.
func binned(h *stats.Histogram) (c []Class) {
	for i, n := range h.Counts {
		if n > 0 {
			c = append(c, Class{int64(math.Ceil(h.Edges[i])), n})
		}
	}
	return c
}

// count counts the values of all masks of a field. It ignores masks that cannot be read, like the statistics.
func (m *maker) count(ctx context.Context, i int) error {
	field := &m.Report.Fields[i]
	total := map[int64]uint64{}
	for row := range m.Report.Samples {
		asset, err := m.table.Asset(ctx, i, row)
		if err == nil && (asset.Index.DType != field.first.DType || asset.Index.Bands != 1) {
			continue
		}
		var read *raster.Array
		if err == nil {
			read, err = m.read(ctx, asset, raster.ReadOptions{Threads: procs.Workers(), MaxBytes: m.MaxBytes,
				Validity: asset.Index.Mask != nil})
		}
		switch {
		case fault.KindOf(err) == fault.Limit:
			return nil // no classes, because the mask is too large to read at once
		case fault.KindOf(err) != 0:
			continue
		case err != nil:
			return err
		}
		r := draw.Raster{DType: read.DType, Bands: 1, Height: read.Shape[1], Width: read.Shape[2], Data: read.Data,
			Valid: read.Valid, NoData: asset.Index.NoData}
		if !r.Count(total) {
			return nil
		}
		m.Progress("classes", row+1, m.Report.Samples)
	}
	for _, v := range slices.Sorted(maps.Keys(total)) {
		field.Classes = append(field.Classes, Class{v, total[v]})
	}
	return nil
}
