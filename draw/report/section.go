package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/catalog"
)

// section returns the part of the page about a field.
func (f *Field) section() part {
	lines, body := f.values, f.valueBars
	if f.Kind == catalog.Raster {
		lines, body = f.properties, f.measures
	}
	facts := lines()
	return el("section", class("field"), attr("data-field", f.Name),
		el("h2", text(f.Name+" "), span("kind", f.Kind.String())),
		when(len(facts) > 0, el("dl", class("lines"), facts)), body())
}

// properties returns what the headers of a field of rasters say.
func (f *Field) properties() (lines parts) {
	line := func(name, value string) { lines = append(lines, entry(name, text(value))) }
	for _, fact := range []struct {
		name  string
		tally *Tally
	}{
		{"Shape (bands × height × width)", &f.Shapes}, {"CRS", &f.CRS}, {"nodata", &f.NoData},
		{"Compression", &f.Codecs},
	} {
		if fact.tally.Kinds() > 0 {
			line(fact.name, list(fact.tally))
		}
	}
	if f.Assets == 0 {
		return lines
	}
	ratio := ""
	if f.Stored > 0 {
		ratio = fmt.Sprintf(", ratio %.2f", float64(f.Decoded)/float64(f.Stored))
	}
	line("Size", fmt.Sprintf("%s in %s, %s decoded%s", bytesText(f.Bytes), plural(f.Assets, "asset", "assets"),
		bytesText(f.Decoded), ratio))
	line("An asset", fmt.Sprintf("%s to %s, %s on average", bytesText(f.Smallest), bytesText(f.Largest),
		bytesText(f.Bytes/f.Assets)))
	return lines
}

const (
	// maxHistograms is the largest number of histograms of one field on the page.
	maxHistograms = 32
	// maxBars is the largest number of values of a field that are drawn.
	maxBars = 24
)

// bandColumns are the columns of the table of bands.
var bandColumns = []string{"Band", "Valid", "nodata", "NaN", "Inf", "Mean", "Std", "Min", "2.5 %", "Median", "98.5 %",
	"Max"}

// measures returns what the pixels of a field of rasters are.
func (f *Field) measures() part {
	if f.Stats == nil {
		return nil
	}
	bands := f.Stats.Bands
	pictures := f.histograms
	if len(f.Classes) > 0 {
		pictures = f.classBars
	}
	rows := parts{}
	for i := range bands[:min(len(bands), MaxBands)] {
		rows = append(rows, bandRow(f.BandName(i), &bands[i]))
	}
	head := each(bandColumns, func(name string) part { return el("th", text(name)) })
	return parts{pictures(), el("div", class("scroll"), el("table", class("bands"),
		el("thead", el("tr", head)), el("tbody", rows))),
		more(len(bands)-MaxBands, "are not shown")}
}

// more says how many bands are not there, or nothing if all are.
func more(bands int, what string) part {
	return when(bands > 0, lead(fmt.Sprintf("%d more bands %s.", bands, what)))
}

// bandRow returns the row of a band in the table.
func bandRow(name string, b *stats.Band) part {
	total := b.Count + b.NoData + b.NaN + b.Inf
	cells := []string{"–", "–", "–", "–", "–", "–", "–"}
	if p := b.Percentiles; b.Mean != nil {
		cells = []string{exact(*b.Mean), exact(*b.Std), whole(b.Min.String()), exact(p["2.5"]), exact(p["50"]),
			exact(p["98.5"]), whole(b.Max.String())}
	}
	cells = append([]string{count(b.Count), draw.Percent(b.NoData, total), count(b.NaN), count(b.Inf)}, cells...)
	return el("tr", el("th", text(name)), each(cells, func(cell string) part { return el("td", text(cell)) }))
}

func (f *Field) histograms() part {
	bands := f.Stats.Bands
	var panels []draw.Panel
	for i, b := range bands[:min(len(bands), maxHistograms)] {
		panels = append(panels, draw.Panel{Name: f.BandName(i), Integer: f.Stats.DType.Integer(), Band: b})
	}
	key := func(names, meaning string) part {
		return el("span", el("i", class(names)), text(meaning))
	}
	return parts{
		el("p", class("legend"), key("k-p", "percentiles 2.5 and 98.5"), key("k-p50", "median"),
			key("k-mean", "mean")),
		el("div", class("histograms"), each(panels, func(p draw.Panel) part {
			drawing, caption := histogram(&p)
			return el("figure", el("figcaption", text(p.Name)), drawing,
				some("p", caption, class("beyond")))
		})), more(len(bands)-maxHistograms, "are in the table only")}
}

// bar returns a bar of a class or value: of n, with the share of all, beside one of longest. colour is of CSS, or ""
// for the colour of the page.
func bar(name string, n, all, longest uint64, colour string) part {
	style, swatch := fmt.Sprintf("width:%.2f%%", float64(n)/float64(longest)*100), part(nil)
	if colour != "" {
		colour = "background-color:" + colour
		style += ";" + colour
		swatch = el("i", attr("style", colour))
	}
	return el("div", class("bar"), attr("data-name", name),
		el("span", class("name"), swatch, text(name)),
		el("span", class("track"), el("span", class("fill"), attr("style", style))),
		span("count", count(n)), span("share", draw.Percent(n, all)))
}

// classBars draws the classes of a field of masks.
func (f *Field) classBars() part {
	longest, total := uint64(1), uint64(0)
	for _, c := range f.Classes {
		longest, total = max(longest, c.Count), total+c.Count
	}
	bars := each(f.Classes, func(c Class) part {
		colour := f.colours[c.Value]
		return bar(minus(strconv.FormatInt(c.Value, 10)), c.Count, total, longest,
			fmt.Sprintf("#%02x%02x%02x", colour.R, colour.G, colour.B))
	})
	return parts{el("div", class("bars"), bars),
		lead(plural(int64(len(f.Classes)), "class", "classes") + " and how many pixels have each.")}
}

// values returns what the values of a field without pixels are.
func (f *Field) values() (lines parts) {
	line := func(name, value string) { lines = append(lines, entry(name, text(value))) }
	values := &f.Values
	line("Type", f.Kind.String())
	line("Values", fmt.Sprintf("%s, %s missing", thousands(values.N-values.Null), thousands(values.Null)))
	if values.Numbers > 0 {
		line("Range", fmt.Sprintf("%s to %s, mean %s", exact(values.Min), exact(values.Max),
			exact(values.Sum/float64(values.Numbers))))
	}
	switch kinds := values.Kinds.Kinds(); {
	case kinds == 0:
	case values.Kinds.Other > 0 || values.Long > 0:
		line("Different", fmt.Sprintf("more than %d", kinds))
	default:
		line("Different", thousands(int64(kinds)))
	}
	return lines
}

// valueBars draws the values of a field without pixels. Values that never repeat are names: bars of them would show
// nothing.
func (f *Field) valueBars() part {
	values := &f.Values
	kinds := values.Kinds.Counts()
	names := len(kinds) > 1 && kinds[0].N == 1
	if len(kinds) == 0 || names || values.Kinds.Other+values.Long > 0 {
		return nil
	}
	bars := each(kinds[:min(len(kinds), maxBars)], func(c Count) part {
		name := clean(c.Name)
		if strings.TrimSpace(name) == "" {
			name = "(empty)"
		}
		return bar(name, uint64(c.N), uint64(values.N-values.Null), uint64(kinds[0].N), "")
	})
	note := ""
	if hidden := len(kinds) - len(bars); hidden > 0 {
		note = fmt.Sprintf("The %d most frequent; %d more are not shown.", maxBars, hidden)
	}
	return parts{el("div", class("bars"), bars), lead(note)}
}

// list formats a tally as one line.
func list(t *Tally) string {
	counts := t.Counts()
	if len(counts) == 1 && t.Other == 0 {
		return clean(counts[0].Name)
	}
	var parts []string
	for i, c := range counts {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("%d more kinds", len(counts)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", clean(c.Name), thousands(c.N)))
	}
	return strings.Join(parts, "; ")
}
