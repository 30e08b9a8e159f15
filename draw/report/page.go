package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

//go:embed style.css
var style string

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	fields := r.Fields
	if r.Samples == 0 {
		fields = nil // an empty dataset has no fields to describe
	}
	return writePage(w, r.Title, style, el("main", r.head(),
		when(r.Samples == 0, el("p", class("empty"), text("The dataset has no samples."))),
		when(len(r.Warnings)+len(r.Notes) > 0, el("section", attr("id", "warnings"),
			remarks("warning", r.Warnings), remarks("warning mild", r.Notes))),
		r.samples(), each(fields, func(f Field) part { return f.section() }),
		el("footer", when(r.Generator != "", el("p", text("Made by "+r.Generator+"."))))))
}

func span(names, content string) part { return el("span", class(names), text(content)) }

// entry returns an entry of a list of terms (dl).
func entry(term string, meaning part) part {
	return el("div", el("dt", text(term)), el("dd", meaning))
}

// head returns what the dataset is, and its numbers.
func (r *Report) head() part {
	var stored, decoded, bytes int64
	var total, valid uint64
	for i := range r.Fields {
		field := &r.Fields[i]
		stored, decoded, bytes = stored+field.Stored, decoded+field.Decoded, bytes+field.Bytes
		if field.Stats == nil {
			continue
		}
		for _, b := range field.Stats.Bands {
			total += b.Count + b.NoData + b.NaN + b.Inf
			valid += b.Count
		}
	}
	fact := func(name, value, note string) part {
		return el("div", class("fact"), span("name", name), span("value", value), span("note", note))
	}
	return el("header",
		el("p", class("kicker"), text("Dataset report")), el("h1", text(r.Title)),
		el("dl", class("origin"),
			when(r.Title != r.Source, entry("Source", text(r.Source))),
			entry("Fingerprint", el("code", text(r.Fingerprint)))),
		el("div", class("facts"),
			fact("Samples", thousands(r.Samples), plural(int64(len(r.Fields)), "field each", "fields each")),
			when(bytes > 0, fact("Size", bytesText(bytes), bytesText(decoded)+" decoded")),
			when(stored > 0, fact("Compression", ratio(decoded, stored)+" ×", "decoded to stored pixels")),
			when(total > 0, fact("Valid pixels", percent(valid, total), "neither nodata, NaN nor infinite"))))
}

func remarks(names string, all []Warning) part {
	return each(all, func(w Warning) part {
		items := each(w.Items, func(item string) part { return el("li", text(item)) })
		return el("div", class(names), el("p", text(w.Text)), when(len(items) > 0, el("ul", items)))
	})
}

// samples returns the pictures of the first samples.
func (r *Report) samples() part {
	if len(r.Chips) == 0 {
		return nil
	}
	lead := fmt.Sprintf("The first %d of the order with seed %d. Pixels without data are chequered.", len(r.Chips),
		r.Seed)
	for i, picture := range r.Chips[0].Pictures {
		if i == 0 && picture.Bands != "" {
			lead += fmt.Sprintf(" %s: %s, each chip stretched by its own percentiles.", clean(picture.Field),
				clean(picture.Bands))
		}
	}
	side := "c" + strconv.Itoa(max(1, min(r.rasters(), maxPictures))) // pictures of a chip side by side
	return el("section", attr("id", "chips"), el("h2", text("Samples")), el("p", class("lead"), text(lead)),
		el("div", class("chips "+side), each(r.Chips, chip)))
}

// chip returns the pictures of a sample and its values.
func chip(c Chip) part {
	missing := "no raster"
	if c.Error != "" {
		missing = "unreadable"
	}
	return el("figure", class("chip"), attr("data-row", strconv.FormatInt(c.Row, 10)),
		el("div", class("pictures"), each(c.Pictures, framed),
			when(len(c.Pictures) == 0, span("frame blank", missing))),
		el("figcaption", span("id", c.ID),
			each(c.Values, func(v Value) part {
				return el("span", class("value"), text(v.Field+" "), el("b", text(v.Text)))
			}),
			each(c.Pictures, func(p Picture) part { return some("span", p.Window, class("value")) }),
			some("span", c.Error, class("error"))))
}

func framed(p Picture) part {
	names := "wide"
	if p.Height > p.Width {
		names = "tall"
	}
	if p.Mask {
		names += " mask"
	}
	return el("span", class("frame"), el("img", pngSource(p.PNG), attr("width", strconv.Itoa(p.Width)),
		attr("height", strconv.Itoa(p.Height)), attr("alt", p.Field), class(names),
		when(p.Window != "", attr("title", p.Window))))
}

// section returns the part of the page about a field.
func (f *Field) section() part {
	facts, body := f.facts(), part(nil)
	if f.Stats != nil {
		body = f.measures()
	}
	return el("section", class("field"), attr("data-field", f.Name), el("h2", text(f.Name+" "),
		span("kind", f.Kind.String())), when(len(facts) > 0, el("dl", class("lines"), facts)), body)
}

// facts returns what the headers of a field of rasters say, or what the values of another field are.
func (f *Field) facts() (lines parts) {
	line := func(name, value string) { lines = append(lines, entry(name, text(value))) }
	tally := func(name string, t *Tally) {
		if len(t.counts) > 0 {
			line(name, list(t))
		}
	}
	if f.Kind != catalog.Raster {
		n := f.Values.Other
		for _, count := range f.Values.counts {
			n += count
		}
		line("Values", fmt.Sprintf("%s, %s missing", thousands(n), thousands(f.Missing)))
		if f.Min <= f.Max && f.Kind != catalog.Text {
			line("Range", exact(f.Min)+" to "+exact(f.Max))
		}
		tally("Most frequent", &f.Values)
		return lines
	}
	tally("Shape (bands × height × width)", &f.Shapes)
	tally("CRS", &f.CRS)
	tally("nodata", &f.NoData)
	tally("Compression", &f.Codecs)
	if f.Assets > 0 {
		line("Size", fmt.Sprintf("%s in %s, %s decoded", bytesText(f.Bytes), plural(f.Assets, "asset", "assets"),
			bytesText(f.Decoded)))
	}
	return lines
}

// maxHistograms is the largest number of histograms of one field on the page.
const maxHistograms = 32

// bandColumns are the columns of the table of bands.
var bandColumns = []string{"Band", "Valid", "nodata", "NaN", "Inf", "Mean", "Std", "Min", "2.5 %", "Median", "98.5 %",
	"Max"}

// measures returns what the pixels of a field of rasters are.
func (f *Field) measures() part {
	bands := f.Stats.Bands
	rows, histograms := parts{}, parts{}
	for i := range bands[:min(len(bands), MaxBands)] {
		rows = append(rows, bandRow(f.BandName(i), &bands[i]))
	}
	pictures := f.classBars()
	if pictures == nil {
		for i := range bands[:min(len(bands), maxHistograms)] {
			histograms = append(histograms, el("figure", el("figcaption", text(f.BandName(i))), histogram(&bands[i])))
		}
		pictures = el("div", class("histograms"), histograms)
	}
	head := each(bandColumns, func(name string) part { return el("th", text(name)) })
	hidden := len(bands) - MaxBands
	return parts{pictures, el("div", class("scroll"), el("table", class("bands"), el("thead", el("tr", head)),
		el("tbody", rows))),
		when(hidden > 0, el("p", class("lead"), text(fmt.Sprintf("%d more bands are not shown.", hidden))))}
}

// bandRow returns the row of a band in the table.
func bandRow(name string, b *stats.Band) part {
	total := b.Count + b.NoData + b.NaN + b.Inf
	cells := []string{count(b.Count), percent(b.NoData, total), count(b.NaN), count(b.Inf)}
	if p := b.Percentiles; b.Mean != nil {
		cells = append(cells, exact(*b.Mean), exact(*b.Std), extreme(*b.Min), exact(p["2.5"]), exact(p["50"]),
			exact(p["98.5"]), extreme(*b.Max))
	} else {
		cells = append(cells, slices.Repeat([]string{"–"}, len(bandColumns)-1-len(cells))...)
	}
	return el("tr", el("th", text(name)), each(cells, func(cell string) part { return el("td", text(cell)) }))
}

// histogram draws the histogram of a band as SVG, with lines at its percentiles. The style sheet colours the shapes by
// their classes, so that they follow the page from light to dark.
func histogram(b *stats.Band) part {
	if b.Histogram == nil {
		return el("p", class("beyond"), text("no valid pixel"))
	}
	const width, height = 300, 90
	first, last := focus(b.Histogram.Counts)
	counts, edges := b.Histogram.Counts[first:last], b.Histogram.Edges[first:last+1]
	low, high := edges[0], edges[len(edges)-1]
	highest := max(slices.Max(counts), 1)
	var area strings.Builder
	fmt.Fprintf(&area, "M0 %d", height)
	for i, n := range counts {
		y := height * (1 - float64(n)/float64(highest))
		fmt.Fprintf(&area, "L%.2f %.2fL%.2f %.2f", width*share(edges[i], low, high), y,
			width*share(edges[i+1], low, high), y)
	}
	fmt.Fprintf(&area, "L%d %dz", width, height)
	shape := func(name, d string) part { return el("path", class(name), attr("d", d)) }
	shapes := parts{shape("area", area.String())}
	for _, name := range []string{"2.5", "50", "98.5"} {
		if v := b.Percentiles[name]; low <= v && v <= high {
			x := width * share(v, low, high)
			shapes = append(shapes, shape("p"+strings.ReplaceAll(name, ".", "-"),
				fmt.Sprintf("M%.2f 0L%.2f %d", x, x, height)))
		}
	}
	return parts{el("svg", attr("xmlns", "http://www.w3.org/2000/svg"), class("hist"),
		attr("viewBox", fmt.Sprintf("0 0 %d %d", width, height)), attr("role", "img"), shapes),
		el("p", class("beyond"), text(fmt.Sprintf("%s to %s, lines at 2.5, 50 and 98.5 %%", exact(low), exact(high))))}
}

// focus returns the bins to draw, from first to last-1: without the bins at both ends that have a thousandth of the
// values each, because one outlier would squeeze all others into one bar.
func focus(counts []uint64) (first, last int) {
	var total uint64
	for _, n := range counts {
		total += n
	}
	last = len(counts)
	for low := counts[first]; low <= total/1000 && first < last-1; low += counts[first] {
		first++
	}
	for high := counts[last-1]; high <= total/1000 && first < last-1; high += counts[last-1] {
		last--
	}
	return first, last
}

// share returns the place of v between low (0) and high (1). It halves all numbers before it subtracts, because
// high - low may be infinite; an empty range gives 0.
func share(v, low, high float64) float64 {
	if s := (v/2 - low/2) / (high/2 - low/2); s >= 0 && s <= 1 {
		return s
	}
	return 0
}

// classBars draws how many pixels of a mask have each value. It is nil if that is not known.
func (f *Field) classBars() part {
	classes := f.classes()
	if classes == nil {
		return nil
	}
	longest, total := int64(1), int64(0)
	for _, c := range classes {
		longest, total = max(longest, c.N), total+c.N
	}
	return el("div", class("bars"), each(classes, func(c Count) part {
		value, _ := strconv.ParseInt(c.Name, 10, 64) // Field.classes wrote it
		rgb := draw.Category(value)
		colour := fmt.Sprintf("background-color:#%02x%02x%02x", rgb.R, rgb.G, rgb.B)
		fill := fmt.Sprintf("width:%.2f%%;%s", float64(c.N)/float64(longest)*100, colour)
		return el("div", class("bar"), el("span", class("name"), el("i", attr("style", colour)), text(c.Name)),
			el("span", class("track"), el("span", class("fill"), attr("style", fill))),
			span("count", thousands(c.N)), span("share", percent(uint64(c.N), uint64(total))))
	}))
}

// list formats a tally as one line.
func list(t *Tally) string {
	const shown = 8
	counts := t.Counts()
	if len(counts) == 1 && t.Other == 0 {
		return clean(counts[0].Name)
	}
	var names []string
	for _, c := range counts[:min(len(counts), shown)] {
		names = append(names, fmt.Sprintf("%s (%s)", clean(c.Name), thousands(c.N)))
	}
	if hidden := len(counts) - shown; hidden > 0 || t.Other > 0 {
		names = append(names, "and others")
	}
	return strings.Join(names, "; ")
}

// exact formats a number of a table with six digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// extreme formats a minimum or maximum: integers with all digits, floats with six.
func extreme(n json.Number) string {
	if v, err := n.Float64(); err == nil && strings.ContainsAny(n.String(), ".eE") {
		return exact(v)
	}
	return n.String()
}

func ratio(a, b int64) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

// percent formats n of all as a percentage. Only n = 0 gives 0 %, and only n = all gives 100 %: a single bad pixel must
// not disappear by rounding.
func percent(n, all uint64) string {
	if n == 0 || all == 0 {
		return "0 %"
	}
	switch p := float64(n) / float64(all) * 100; {
	case n == all:
		return "100 %"
	case p < 0.01:
		return "< 0.01 %"
	case p > 99.99:
		return "> 99.99 %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

func count(n uint64) string { return thousands(int64(min(n, math.MaxInt64))) }

// thousands formats a number that is not negative with a thin space before each three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func bytesText(n int64) string {
	v, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; v >= 1024; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(v, 'f', min(i, 1), 64) + " " + units[i]
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
