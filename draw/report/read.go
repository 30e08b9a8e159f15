package report

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image/png"
	"math"
	"math/bits"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// none is the kind of assets without nodata value or without CRS.
const none = "none"

// headers reads every sample without its pixels: the chunk indexes of its assets and its values.
func (m *maker) headers(ctx context.Context) error {
	n := m.Report.Samples
	for row := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		var lead *catalog.Asset // the first raster of the sample
		for i := range m.Report.Fields {
			field := &m.Report.Fields[i]
			var err error
			if field.Kind == catalog.Raster {
				var a catalog.Asset
				if a, err = m.asset(ctx, i, row); err == nil && lead == nil {
					lead = &a
				} else if err == nil && m.Options.Fields[i].Ground != spec.IgnoreGround {
					m.pair(row, lead, &a)
				}
			} else {
				var v catalog.Value
				if v, err = m.table.Value(ctx, i, row); err == nil {
					field.count(v)
				}
			}
			if err := m.isBad(row, err); err != nil {
				return err
			}
		}
		m.Progress("headers", row+1, n)
	}
	return nil
}

// count counts a value of a field without pixels.
func (f *Field) count(v catalog.Value) {
	if v.Null {
		f.Missing++
		return
	}
	f.Values.add(valueText(f.Kind, v))
	number := v.Float
	if f.Kind == catalog.Int {
		number = float64(v.Int)
	}
	if !math.IsNaN(number) { // which min and max would keep
		f.Min, f.Max = min(f.Min, number), max(f.Max, number)
	}
}

// pair compares the place of a raster with the place of the first one of its sample.
func (m *maker) pair(row int64, lead, other *catalog.Asset) {
	if lead.Place == nil || other.Place == nil {
		m.unplaced++
	}
	err := catalog.SameGround(lead, other)
	if err == nil {
		return
	}
	if m.misplaced++; len(m.elsewhere) < maxNamed {
		m.elsewhere = append(m.elsewhere, fmt.Sprintf("sample %d: %s", row, fault.Line(other.Fault(err))))
	}
}

// asset returns a raster of a row, and adds what its header says to the report.
func (m *maker) asset(ctx context.Context, i int, row int64) (catalog.Asset, error) {
	asset, err := m.table.Asset(ctx, i, row)
	if err != nil {
		return asset, err
	}
	field, index := &m.Report.Fields[i], asset.Index
	if field.first == nil {
		field.first = index
		// They are optional, and a fault of the file must show when its pixels are read.
		field.BandNames, _ = pixels.BandNames(ctx, m.Loader.Opener, asset)
	}
	field.Assets++
	crs := none
	if place := asset.Place; place != nil && place.EPSG != 0 {
		crs = fmt.Sprintf("EPSG:%d", place.EPSG)
	} else if place != nil {
		crs = "a CRS without EPSG code"
	}
	field.CRS.add(crs)
	field.Shapes.add(fmt.Sprintf("%d × %d × %d %s", index.Bands, index.Height, index.Width, index.DType))
	field.Codecs.add(index.Codec.String())
	field.NoData.add(noData(index))
	size, stored := bytesOf(&asset)
	field.Stored += stored
	field.Bytes += size
	// A header may claim more bytes than an int64 holds.
	if hi, decoded := bits.Mul64(uint64(index.Height)*uint64(index.Width),
		uint64(index.Bands)*uint64(index.DType.Size())); hi == 0 && decoded < 1<<62 {
		field.Decoded += int64(decoded)
	}
	return asset, nil
}

// noData returns the nodata value as text.
func noData(x *chunk.Index) string {
	switch {
	case x.NoDataBits != nil && x.DType == chunk.Int64:
		return strconv.FormatInt(int64(*x.NoDataBits), 10)
	case x.NoDataBits != nil:
		return strconv.FormatUint(*x.NoDataBits, 10)
	case x.NoData != nil:
		return strconv.FormatFloat(*x.NoData, 'g', -1, 64)
	}
	return none
}

// bytesOf returns the bytes of a raster, and of its chunks. A member of a container is smaller than the file, and
// a stack has the bytes of its parts.
func bytesOf(a *catalog.Asset) (size, stored int64) {
	for i := range a.Parts {
		n, m := bytesOf(&a.Parts[i])
		size, stored = size+n, stored+m
	}
	for _, r := range a.Index.Ranges {
		stored += max(r.Len, 0)
	}
	switch {
	case a.Parts != nil:
		return size, stored
	case a.Member != "":
		return a.Length, stored
	}
	return cmp.Or(a.Size, stored), stored
}

// Chip is one sample that is shown.
type Chip struct {
	ID       string
	Row      int64
	Pictures []Picture // of the first raster fields
	Values   []Value   // of the other fields
	Error    string    // why it cannot be shown
}

// Value is the value of a field without pixels, as text.
type Value struct{ Field, Text string }

// Picture is a raster of a chip.
type Picture struct {
	Field         string
	PNG           []byte
	Width, Height int // of the PNG
	Mask          bool
	Window        string // "" or the part of the asset that is shown
	Bands         string
}

// maxPictures is how many rasters of a sample are shown side by side.
const maxPictures = 4

// rasters returns how many fields are rasters.
func (r *Report) rasters() (n int) {
	for _, f := range r.Fields {
		if f.Kind == catalog.Raster {
			n++
		}
	}
	return n
}

// chips reads the first samples of the seeded order.
func (m *maker) chips(ctx context.Context) error {
	order := shuffle.NewOrder(m.Options.Seed, 0, m.Report.Samples, true)
	// 18 chips of one raster, or 16 of several, fill the rows of a wide page.
	show := 18
	if m.rasters() > 1 {
		show = 16
	}
	n := min(int64(cmp.Or(m.Options.Samples, show)), m.Report.Samples)
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
	if r := []rune(v.Text); len(r) > 60 { // a longer one is no label, and would fill the page
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
	p.Field, p.Mask = field.Name, field.Mask
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
	options := raster.ReadOptions{B: raster.Selection{List: bands}, Threads: procs.Workers(), MaxBytes: m.MaxBytes,
		Validity: index.Mask != nil, Options: m.Loader}
	options.Y, options.X, p.Window = m.window(index, len(bands))
	name := asset.URI
	if asset.Member != "" { // it is opened alone, since the tables of a container may be large
		name, options.Options.Opener = asset.Member, rows.Alone(m.Loader.Opener, asset)
	}
	read, err := raster.Read(ctx, []string{name}, options)
	if err != nil {
		return p, err
	}
	render := draw.Options{MaxSide: m.Side, Palette: draw.Never}
	if p.Mask {
		render.Palette = draw.Always
	}
	img, err := draw.Render(draw.Raster{DType: read.DType, Bands: read.Shape[0], Height: read.Shape[1],
		Width: read.Shape[2], Data: read.Data, Valid: read.Valid, NoData: index.NoData}, render)
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
