package report

import (
	"io"
	"strconv"

	"github.com/chaski-eo/chaski/draw/markup"
)

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	d := newDocument(r)
	page := &markup.Page{Title: r.Title, Style: style, Body: []markup.Part{markup.El("main", d.head(),
		markup.If(r.Samples == 0, markup.El("p", class("empty"), text("The dataset has no samples."))),
		d.warnings(), d.chips(), d.places(),
		markup.Each(d.Sections, func(s section) part { return s.part() }),
		d.foot())}}
	return page.Write(w)
}

type part = markup.Part

var text, class = markup.Text, markup.Class

func span(names, content string, attrs ...part) part {
	return markup.El("span", append([]part{class(names), text(content)}, attrs...)...)
}

// Entry returns an entry of a list of terms (dl).
func Entry(term string, meaning markup.Part) markup.Part {
	return markup.El("div", markup.El("dt", text(term)), markup.El("dd", meaning))
}

// Fact is a number in the head of a page. ID may be empty.
type Fact struct{ ID, Name, Value, Note string }

// Facts returns the numbers in the head of a page.
func Facts(facts []Fact) markup.Part {
	return markup.El("div", class("facts"), markup.Each(facts, func(f Fact) part {
		return markup.El("div", class("fact"), markup.If(f.ID != "", markup.Attr("id", "fact-"+f.ID)),
			span("name", f.Name), span("value", f.Value), span("note", f.Note))
	}))
}

// Bar is a class, a value or a state: a count with its share of all.
type Bar struct {
	Name, Count, Share string
	Width              float64 // percent of the longest bar
	Colour             string  // CSS, or "" for the colour of the page
}

// Bars draws bars.
func Bars(bars []Bar) markup.Part {
	return markup.El("div", class("bars"), markup.Each(bars, func(b Bar) part {
		style, swatch := "width:"+strconv.FormatFloat(b.Width, 'f', 2, 64)+"%", part(nil)
		if b.Colour != "" {
			colour := "background-color:" + b.Colour
			style += ";" + colour
			swatch = markup.El("i", markup.Attr("style", colour))
		}
		return markup.El("div", class("bar"), markup.Attr("data-name", b.Name),
			markup.El("span", class("name"), swatch, text(b.Name)),
			markup.El("span", class("track"),
				markup.El("span", class("fill"), markup.Attr("style", style))),
			span("count", b.Count), span("share", b.Share))
	}))
}

// Table returns a table with a head, that scrolls where it is wider than the page.
func Table(names string, head []string, rows markup.Parts) markup.Part {
	return markup.El("div", class("scroll"), markup.El("table", markup.If(names != "", class(names)),
		markup.El("thead", markup.Row("th", head...)), markup.El("tbody", rows)))
}

func lead(sentence string) part { return markup.Some("p", sentence, class("lead")) }

func (d *document) head() part {
	return markup.El("header",
		markup.El("p", class("kicker"), text("Dataset report")), markup.El("h1", text(d.Title)),
		markup.El("dl", class("origin"),
			markup.If(d.Title != d.Source, Entry("Source", text(d.Source))),
			Entry("Fingerprint", markup.El("code", text(d.Fingerprint)))),
		Facts(d.Facts))
}

func (d *document) warnings() part {
	list := func(names string, all []Warning) part {
		return markup.Each(all, func(w Warning) part {
			return markup.El("div", class(names), markup.El("p", text(w.Text)),
				markup.If(len(w.Items) > 0, markup.El("ul", markup.Each(w.Items, func(item string) part {
					return markup.El("li", text(item))
				}))))
		})
	}
	return markup.If(len(d.Warnings)+len(d.Notes) > 0,
		markup.El("section", markup.Attr("id", "warnings"),
			markup.Attr("aria-label", "Warnings"),
			list("warning", d.Warnings), list("warning mild", d.Notes)))
}

func (d *document) chips() part {
	if len(d.Chips) == 0 {
		return nil
	}
	note := ""
	if d.ChipNote != "" {
		note = " " + d.ChipNote + "."
	}
	return markup.El("section", markup.Attr("id", "chips"), markup.El("h2", text("Samples")),
		markup.El("p", class("lead"), markup.Textf("The first %d of the order with seed %d.%s Pixels without data are "+
			"chequered.", len(d.Chips), d.Seed, note)),
		markup.El("div", class("chips c"+strconv.Itoa(d.Columns)), markup.Each(d.Chips, chip)))
}

// chip returns the pictures of a sample and its values.
func chip(c Chip) part {
	missing := "no raster"
	if c.Error != "" {
		missing = "unreadable"
	}
	return markup.El("figure", class("chip"), markup.Attr("data-row", strconv.FormatInt(c.Row, 10)),
		markup.El("div", class("pictures"), markup.Each(c.Pictures, framed),
			markup.If(len(c.Pictures) == 0, span("frame blank", missing))),
		markup.El("figcaption", span("id", base(c.ID), markup.Attr("title", c.ID)),
			markup.Each(c.Values, func(v Value) part {
				return markup.El("span", class("value"), text(v.Field+" "), markup.El("b", text(v.Text)))
			}),
			markup.Each(c.Pictures, func(p Picture) part { return markup.Some("span", p.Window, class("value")) }),
			markup.Some("span", c.Error, class("error"))))
}

func framed(p Picture) part {
	names := "wide"
	if p.Height > p.Width {
		names = "tall"
	}
	if p.Mask {
		names += " mask"
	}
	return markup.El("span", class("frame"), markup.El("img", markup.PNG(p.PNG),
		markup.Attr("width", strconv.Itoa(p.Width)),
		markup.Attr("height", strconv.Itoa(p.Height)),
		markup.Attr("alt", p.Field), class(names),
		markup.If(p.Window != "", markup.Attr("title", p.Window))))
}

func (d *document) places() part {
	if d.Footprints == nil {
		return nil
	}
	return markup.El("section", markup.Attr("id", "map"), markup.El("h2", text("Footprints")),
		lead(d.MapNote), markup.El("div", class("scroll"), d.Footprints.part()))
}

// bandColumns are the columns of the table of bands.
var bandColumns = []string{"Band", "Valid", "nodata", "NaN", "Inf", "Mean", "Std", "Min", "2.5 %", "Median", "98.5 %",
	"Max"}

func (s *section) part() part {
	rows := markup.Each(s.Rows, func(r bandRow) part {
		return markup.Headed(r.Name, r.Count, r.NoData, r.NaN, r.Inf, r.Mean, r.Std, r.Min, r.Low, r.Median, r.High,
			r.Max)
	})
	var more part
	if s.MoreBands > 0 {
		more = lead(strconv.Itoa(s.MoreBands) + " more bands are not shown.")
	}
	return markup.El("section", class("field"), markup.Attr("data-field", s.Name),
		markup.El("h2", text(s.Name+" "), span("kind", s.Kind.String())),
		markup.If(len(s.Lines) > 0, markup.El("dl", class("lines"), markup.Each(s.Lines, func(line [2]string) part {
			return Entry(line[0], text(line[1]))
		}))),
		markup.If(len(s.Bars) > 0, Bars(s.Bars), lead(s.BarsNote)),
		s.histograms(),
		markup.If(len(rows) > 0, Table("bands", bandColumns, rows), more),
		s.assetSizes())
}

func (s *section) histograms() part {
	if len(s.Histograms) == 0 {
		return nil
	}
	key := func(names, meaning string) part {
		return markup.El("span", markup.El("i", class(names)), text(meaning))
	}
	var more part
	if s.MoreHists > 0 {
		more = lead(strconv.Itoa(s.MoreHists) + " more bands are in the table only.")
	}
	return markup.Parts{
		markup.El("p", class("legend"), key("k-p", "percentiles 2.5 and 98.5"), key("k-p50", "median"),
			key("k-mean", "mean")),
		markup.El("div", class("histograms"), markup.Each(s.Histograms, func(h histogram) part {
			return markup.El("figure", markup.El("figcaption", text(h.Name)), h.Drawing.part(),
				markup.Some("p", h.Caption, class("beyond")))
		})), more}
}

func (s *section) assetSizes() part {
	if s.Sizes == nil {
		return nil
	}
	return markup.El("div", class("histograms sizes"),
		markup.El("figure", markup.El("figcaption", text("Sizes of assets")), s.Sizes.part()))
}

func (d *document) foot() part {
	sentence := ""
	if d.Samples > 0 {
		sentence = "Statistics are of every pixel that is not nodata, NaN or infinite."
	}
	if d.Generator != "" {
		sentence += " Made by " + d.Generator + "."
	}
	return markup.El("footer", markup.El("p", text(sentence)))
}

// part returns the drawing as SVG, or nothing without one.
func (d *drawing) part() part {
	if d == nil {
		return nil
	}
	attr := func(name, value string) part { return markup.If(value != "", markup.Attr(name, value)) }
	return markup.El("svg", attr("xmlns", "http://www.w3.org/2000/svg"), class(d.Class),
		attr("viewBox", "0 0 "+num(d.Width)+" "+num(d.Height)), attr("role", "img"), attr("aria-label", d.Label),
		markup.Each(d.Shapes, func(s shape) part {
			if s.Text != "" {
				return markup.El("text", class(s.Class), attr("x", s.X), attr("y", s.Y), attr("text-anchor", s.Anchor),
					text(s.Text))
			}
			return markup.El("path", class(s.Class), attr("d", s.D), attr("fill-opacity", s.Fade),
				markup.Some("title", s.Tip))
		}))
}
