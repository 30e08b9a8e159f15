// Package draw draws small pictures of rasters: bands with a percentile stretch, masks with one colour for
// each class, and contact sheets. It is for a quick look, not for maps: it neither
// reprojects nor manages colours.
package draw

import (
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/stats"
)

// Raster is an image of (bands, height, width) samples, little-endian in C order. Data and Valid have all of them.
type Raster struct {
	DType                chunk.DType
	Bands, Height, Width int
	Data                 []byte
	NoData               *float64 // drawn transparent, like NaN; nil for none
	Valid                []byte   // one byte a value, 0 is drawn transparent; nil for none
}

// Palette says when to draw a raster of one band with one colour for each value.
type Palette uint8

// Palettes.
const (
	Auto  Palette = iota // if it is of integers with at most MaxCategories values
	Never                // stretch it instead
	Always
)

// MaxCategories is the number of different values up to which Auto takes an integer raster of one band for a
// mask.
const MaxCategories = 24

// black and white are the percentiles of a band that are drawn so.
const black, white = 2, 98

// Options of Render. The zero value is ready.
type Options struct {
	// Bands to draw, zero-based: one (grey) or three (red, green, blue). Default: the first three, or the
	// first.
	Bands []int
	// MaxSide is the longest side of the picture in pixels. Larger rasters are averaged down. Default 1024.
	MaxSide int
	// Palette for rasters of one band.
	Palette Palette
	// Colours of the values from 0 on of integers of one band, as chunk.Legend has them, in place of Palette: nil for
	// none. Other values are black.
	Colours []string
}

func (o Options) withDefaults(bands int) Options {
	if len(o.Bands) == 0 {
		o.Bands = Visible(nil, bands)
	}
	if o.MaxSide == 0 {
		o.MaxSide = 1024
	}
	return o
}

// colourNames are what bands of red, green and blue are called: also by Sentinel-2, and by Landsat 8 and 9.
var colourNames = [3][]string{{"red", "r", "b04", "b4"}, {"green", "g", "b03", "b3"}, {"blue", "b", "b02", "b2"}}

// Visible returns the bands to draw of a raster of so many, with names or nil: red, green and blue if their names say
// which these are, else the first three, or the first of fewer.
func Visible(names []string, bands int) []int {
	if bands < 3 {
		return []int{0}
	}
	out := []int{0, 1, 2}
	for colour, known := range colourNames {
		out[colour] = slices.IndexFunc(names, func(name string) bool {
			name, _, _ = strings.Cut(strings.ToLower(name), " ") // "B04 (665 nm)"
			return slices.Contains(known, name)
		})
	}
	if slices.Min(out) < 0 || slices.Max(out) >= bands {
		return []int{0, 1, 2}
	}
	return out
}

// Render draws a raster. Complex numbers are drawn by their magnitude.
func Render(r Raster, o Options) (*image.NRGBA, error) {
	o = o.withDefaults(r.Bands)
	for _, b := range o.Bands {
		if b < 0 || b >= r.Bands {
			return nil, fmt.Errorf("draw: there is no band %d: the raster has the bands 0 to %d", b, r.Bands-1)
		}
	}
	step := (max(r.Height, r.Width) + o.MaxSide - 1) / o.MaxSide
	whole := r.DType.Integer()
	if len(o.Bands) == 1 && whole && o.Colours != nil {
		p := r.sample(o.Bands[0], step, nearest)
		return p.colour(painted(o.Colours)), nil
	}
	if len(o.Bands) == 1 && o.Palette != Never {
		// Nearest, because the mean of two classes would be a third one.
		p := r.sample(o.Bands[0], step, nearest)
		if o.Palette == Always || r.DType.Components() == 1 && whole && categories(p.v) <= MaxCategories {
			return p.colour(Category), nil
		}
	}
	planes := make([]plane, len(o.Bands))
	for i, b := range o.Bands {
		planes[i] = r.sample(b, step, mean)
		planes[i].stretch(black, white)
	}
	return compose(planes), nil
}

// plane is one band at the size of the picture. NaN stands for no data.
type plane struct {
	h, w int
	v    []float64
}

// sample scales a band down by the whole factor step.
func (r *Raster) sample(band, step int, reduce func([]float64) float64) plane {
	p := plane{h: (r.Height + step - 1) / step, w: (r.Width + step - 1) / step}
	p.v = make([]float64, 0, p.h*p.w)
	block := make([]float64, 0, step*step)
	base := band * r.Height * r.Width
	for y := 0; y < r.Height; y += step {
		for x := 0; x < r.Width; x += step {
			block = block[:0]
			for yy := y; yy < min(y+step, r.Height); yy++ {
				for xx := x; xx < min(x+step, r.Width); xx++ {
					block = append(block, r.value(base+yy*r.Width+xx))
				}
			}
			p.v = append(p.v, reduce(block))
		}
	}
	return p
}

func nearest(block []float64) float64 { return block[0] }

// mean returns the mean of the values that are there, NaN without any.
func mean(block []float64) float64 { return stat.Mean(slices.DeleteFunc(block, math.IsNaN), nil) }

// value returns value i, or NaN if there is no data.
func (r *Raster) value(i int) float64 {
	if r.Valid != nil && r.Valid[i] == 0 {
		return math.NaN()
	}
	n := r.DType.Size()
	v := load(r.DType, r.Data[i*n:])
	if r.NoData != nil && v == *r.NoData || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// load reads one value; of a complex number, its magnitude.
func load(d chunk.DType, b []byte) float64 {
	part := map[chunk.DType]chunk.DType{
		chunk.Complex64: chunk.Float32, chunk.Complex128: chunk.Float64, chunk.ComplexInt16: chunk.Int16,
		chunk.ComplexInt32: chunk.Int32, chunk.ComplexFloat16: chunk.Float16,
	}[d]
	if part == chunk.Invalid { // with one component
		return d.Number(b)
	}
	return math.Hypot(load(part, b), load(part, b[part.Size():]))
}

// categories counts the different values. It stops at MaxCategories + 1, since more make no difference.
func categories(v []float64) int {
	seen := map[float64]bool{}
	for _, x := range v {
		if math.IsNaN(x) {
			continue
		}
		if seen[x] = true; len(seen) > MaxCategories {
			break
		}
	}
	return len(seen)
}

// stretch maps the percentiles low and high to 0 and 1.
func (p *plane) stretch(low, high float64) {
	sorted := make([]float64, 0, len(p.v))
	for _, v := range p.v {
		if !math.IsNaN(v) {
			sorted = append(sorted, v)
		}
	}
	if len(sorted) == 0 {
		return
	}
	slices.Sort(sorted)
	lo, hi := stats.Quantile(low/100, sorted), stats.Quantile(high/100, sorted)
	if hi <= lo { // a band of one value is drawn mid grey, and avoids a division by 0
		lo, hi = lo-1, hi+1
	}
	for i, v := range p.v {
		p.v[i] = min(max((v-lo)/(hi-lo), 0), 1)
	}
}

// painted returns the function from values to colours.
func painted(colours []string) func(int64) color.NRGBA {
	table := make([]color.NRGBA, len(colours))
	for i, text := range colours {
		c := [4]byte{3: 0xff}
		parts, _ := hex.DecodeString(strings.TrimPrefix(text, "#"))
		copy(c[:], parts)
		table[i] = color.NRGBA{c[0], c[1], c[2], c[3]}
	}
	return func(v int64) color.NRGBA {
		if v < 0 || v >= int64(len(table)) {
			return color.NRGBA{A: 0xff}
		}
		return table[v]
	}
}

// colour draws every value in the colour that it has.
func (p *plane) colour(of func(int64) color.NRGBA) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	for i, v := range p.v {
		if !math.IsNaN(v) {
			img.SetNRGBA(i%p.w, i/p.w, of(int64(v)))
		}
	}
	return img
}

// compose draws one or three stretched planes. A pixel without data in any plane is transparent, because its
// colour would be wrong.
func compose(planes []plane) *image.NRGBA {
	p := planes[0]
	img := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	for i := range p.v {
		var c [3]uint8
		valid := true
		for k := range c {
			v := planes[min(k, len(planes)-1)].v[i]
			if math.IsNaN(v) {
				valid = false
				break
			}
			c[k] = uint8(math.Round(255 * v))
		}
		if valid {
			img.SetNRGBA(i%p.w, i/p.w, color.NRGBA{c[0], c[1], c[2], 255})
		}
	}
	return img
}

// palette has twelve colours that differ on dark and light backgrounds and, as well as twelve can, for
// colour-blind readers. The first one is for the value 0, mostly the background.
var palette = [...]color.NRGBA{
	{0x20, 0x20, 0x28, 255}, {0x00, 0x77, 0xBB, 255}, {0xEE, 0x77, 0x33, 255}, {0x00, 0x99, 0x88, 255},
	{0xCC, 0x33, 0x11, 255}, {0x33, 0xBB, 0xEE, 255}, {0xEE, 0x33, 0x77, 255}, {0xDD, 0xCC, 0x77, 255},
	{0x88, 0x22, 0x55, 255}, {0x99, 0x99, 0x33, 255}, {0x44, 0xAA, 0x99, 255}, {0xBB, 0xBB, 0xBB, 255},
}

// Category returns the colour of a value. 0 has its own colour; colours of other values repeat after eleven.
func Category(v int64) color.NRGBA {
	if v == 0 {
		return palette[0]
	}
	n := int64(len(palette) - 1)
	return palette[1+((v-1)%n+n)%n]
}

// Sheet puts pictures in rows of columns pictures (0: about as many as rows). Each cell has the size of the
// largest picture, and cells are a few pixels apart.
func Sheet(pictures []*image.NRGBA, columns int) *image.NRGBA {
	const gap = 4
	if len(pictures) == 0 {
		return image.NewNRGBA(image.Rect(0, 0, 1, 1))
	}
	if columns <= 0 {
		columns = int(math.Ceil(math.Sqrt(float64(len(pictures)))))
	}
	columns = min(columns, len(pictures))
	width, height := 0, 0
	for _, p := range pictures {
		width, height = max(width, p.Rect.Dx()), max(height, p.Rect.Dy())
	}
	rows := (len(pictures) + columns - 1) / columns
	sheet := image.NewNRGBA(image.Rect(0, 0, columns*(width+gap)-gap, rows*(height+gap)-gap))
	for i, nrgba := range pictures {
		x0, y0 := i%columns*(width+gap), i/columns*(height+gap)
		for y := range nrgba.Rect.Dy() {
			copy(sheet.Pix[sheet.PixOffset(x0, y0+y):][:4*nrgba.Rect.Dx()],
				nrgba.Pix[y*nrgba.Stride:][:4*nrgba.Rect.Dx()])
		}
	}
	return sheet
}
