package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/draw/markup"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// document is a report as the page shows it.
type document struct {
	*Report
	Facts      []Fact
	Sections   []section
	Footprints *drawing
	MapNote    string
	Columns    int // pictures of a chip side by side
	ChipNote   string
}

// section is a field.
type section struct {
	*Field
	Lines      [][2]string
	Rows       []bandRow
	MoreBands  int
	Histograms []histogram
	MoreHists  int
	Bars       []Bar
	BarsNote   string
	Sizes      *drawing
}

type bandRow struct {
	Name, Count, NoData, NaN, Inf, Mean, Std, Min, Low, Median, High, Max string
}

func newDocument(r *Report) *document {
	d := &document{Report: r}
	var stored, decoded, bytes int64
	var total, valid uint64
	rasters := 0
	for i := range r.Fields {
		if r.Samples == 0 {
			break // an empty dataset has no fields to describe
		}
		field := &r.Fields[i]
		s := section{Field: field}
		if field.Kind == catalog.Raster {
			rasters++
			s.raster()
			stored, decoded, bytes = stored+field.Stored, decoded+field.Decoded, bytes+field.Bytes
			if field.Stats != nil {
				for _, b := range field.Stats.Bands {
					total += b.Count + b.NoData + b.NaN + b.Inf
					valid += b.Count
				}
			}
		} else {
			s.values()
		}
		d.Sections = append(d.Sections, s)
	}
	d.Columns = max(1, min(rasters, maxPictures))
	d.Facts = append(d.Facts, Fact{Name: "Samples", Value: thousands(r.Samples),
		Note: plural(int64(len(r.Fields)), "field each", "fields each")})
	if bytes > 0 {
		d.Facts = append(d.Facts, Fact{Name: "Size", Value: bytesText(bytes), Note: bytesText(decoded) + " decoded"})
	}
	if stored > 0 {
		ratio := strconv.FormatFloat(float64(decoded)/float64(stored), 'f', 2, 64)
		d.Facts = append(d.Facts, Fact{Name: "Compression", Value: ratio + " ×", Note: "decoded to stored pixels"})
	}
	if total > 0 {
		d.Facts = append(d.Facts, Fact{Name: "Valid pixels", Value: draw.Percent(valid, total),
			Note: "neither nodata, NaN nor infinite"})
	}
	d.footprints()
	d.ChipNote = d.chipNote()
	return d
}

func (d *document) chipNote() string {
	var parts []string
	seen := map[string]bool{}
	for _, c := range d.Chips {
		for _, picture := range c.Pictures {
			if picture.Bands != "" && !seen[picture.Field] {
				seen[picture.Field] = true
				parts = append(parts, fmt.Sprintf("%s: %s, each chip stretched by its own percentiles",
					markup.Clean(picture.Field), markup.Clean(picture.Bands)))
			} else if picture.Mask && !seen[picture.Field] {
				seen[picture.Field] = true
				parts = append(parts, markup.Clean(picture.Field)+": a colour a class")
			}
		}
	}
	return strings.Join(parts, "; ")
}

// maxHistograms is the largest number of histograms of one field on the page.
const maxHistograms = 32

func (s *section) raster() {
	field := s.Field
	line := func(name string, t *Tally) {
		if t.Kinds() > 0 {
			s.Lines = append(s.Lines, [2]string{name, list(t)})
		}
	}
	line("Shape (bands × height × width)", &field.Shapes)
	line("CRS", &field.CRS)
	line("nodata", &field.NoData)
	line("Compression", &field.Codecs)
	if field.Assets > 0 {
		ratio := ""
		if field.Stored > 0 {
			ratio = fmt.Sprintf(", ratio %.2f", float64(field.Decoded)/float64(field.Stored))
		}
		s.Lines = append(s.Lines, [2]string{"Size", fmt.Sprintf("%s in %s, %s decoded%s", bytesText(field.Bytes),
			plural(field.Assets, "asset", "assets"), bytesText(field.Decoded), ratio)})
		s.Lines = append(s.Lines,
			[2]string{"An asset", fmt.Sprintf("%s to %s, %s on average", bytesText(field.Sizes.Min),
				bytesText(field.Sizes.Max), bytesText(field.Sizes.Mean()))})
		s.Sizes = field.Sizes.draw()
	}
	if field.Stats == nil {
		return
	}
	for i, band := range field.Stats.Bands {
		if i >= MaxBands {
			s.MoreBands = len(field.Stats.Bands) - i
			break
		}
		s.Rows = append(s.Rows, newBandRow(field.BandName(i), &band))
	}
	if len(field.Classes) > 0 {
		s.classBars()
		return
	}
	s.MoreHists = max(0, len(field.Stats.Bands)-maxHistograms)
	for _, p := range field.Panels(maxHistograms) {
		s.Histograms = append(s.Histograms, newHistogram(p))
	}
}

func newBandRow(name string, b *stats.Band) bandRow {
	total := b.Count + b.NoData + b.NaN + b.Inf
	r := bandRow{Name: markup.Clean(name), Count: thousands(int64(min(b.Count, math.MaxInt64))),
		NoData: draw.Percent(b.NoData, total), NaN: count(b.NaN), Inf: count(b.Inf)}
	for _, p := range []*string{&r.Mean, &r.Std, &r.Min, &r.Low, &r.Median, &r.High, &r.Max} {
		*p = "–"
	}
	if b.Mean != nil {
		r.Mean, r.Std, r.Min, r.Max = exact(*b.Mean), exact(*b.Std), whole(b.Min.String()), whole(b.Max.String())
		r.Low, r.Median, r.High = exact(b.Percentiles["2.5"]), exact(b.Percentiles["50"]), exact(b.Percentiles["98.5"])
	}
	return r
}

func (s *section) classBars() {
	top, total := uint64(1), uint64(0)
	for _, c := range s.Classes {
		top, total = max(top, c.Count), total+c.Count
	}
	for _, class := range s.Classes {
		colour := s.colours[class.Value]
		s.Bars = append(s.Bars, Bar{
			Name: minus(strconv.FormatInt(class.Value, 10)), Count: count(class.Count), Share: draw.Percent(class.Count,
				total),
			Width:  float64(class.Count) / float64(top) * 100,
			Colour: fmt.Sprintf("#%02x%02x%02x", colour.R, colour.G, colour.B),
		})
	}
	s.BarsNote = fmt.Sprintf("%s and how many pixels have each.", plural(int64(len(s.Classes)), "class", "classes"))
}

// maxBars is the largest number of values of a field that are drawn.
const maxBars = 24

func (s *section) values() {
	values := &s.Field.Values
	line := func(name, text string) { s.Lines = append(s.Lines, [2]string{name, text}) }
	line("Type", s.Kind.String())
	line("Values", fmt.Sprintf("%s, %s missing", thousands(values.N-values.Null), thousands(values.Null)))
	if values.Numbers > 0 {
		line("Range", fmt.Sprintf("%s to %s, mean %s", exact(values.Min), exact(values.Max),
			exact(values.Sum/float64(values.Numbers))))
	}
	kinds := values.Kinds.Counts()
	if len(kinds) == 0 {
		return
	}
	if values.Kinds.Other > 0 || values.Long > 0 {
		line("Different", fmt.Sprintf("more than %d", len(kinds)))
	} else {
		line("Different", thousands(int64(len(kinds))))
	}
	if values.Kinds.Other > 0 || values.Long > 0 || len(kinds) > 1 && kinds[0].N == 1 {
		return // values that never repeat are names, and bars of them would show nothing
	}
	for _, c := range kinds[:min(len(kinds), maxBars)] {
		name := markup.Clean(c.Name)
		if strings.TrimSpace(name) == "" {
			name = "(empty)"
		}
		s.Bars = append(s.Bars, Bar{
			Name: name, Count: thousands(c.N), Share: draw.Percent(uint64(c.N), uint64(values.N-values.Null)),
			Width: float64(c.N) / float64(kinds[0].N) * 100,
		})
	}
	if hidden := len(kinds) - len(s.Bars); hidden > 0 {
		s.BarsNote = fmt.Sprintf("The %d most frequent; %d more are not shown.", maxBars, hidden)
	}
}

// list formats a tally as one line.
func list(t *Tally) string {
	counts := t.Counts()
	if len(counts) == 1 && t.Other == 0 {
		return markup.Clean(counts[0].Name)
	}
	var parts []string
	for i, c := range counts {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("%d more kinds", len(counts)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", markup.Clean(c.Name), thousands(c.N)))
	}
	return strings.Join(parts, "; ")
}
