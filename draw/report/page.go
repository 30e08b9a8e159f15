package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/draw/markup"
	"github.com/chaski-eo/chaski/store/catalog"
)

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	fields := r.Fields
	if r.Samples == 0 {
		fields = nil // an empty dataset has no fields to describe
	}
	page := &markup.Page{Title: r.Title, Style: style, Body: []part{markup.El("main", r.head(),
		markup.If(r.Samples == 0, markup.El("p", class("empty"), text("The dataset has no samples."))),
		r.warnings(), r.samples(), r.places(),
		markup.Each(fields, func(f Field) part { return f.section() }),
		r.foot())}}
	return page.Write(w)
}

type part = markup.Part

var text, class = markup.Text, markup.Class

func span(names, content string, attrs ...part) part {
	return markup.El("span", append([]part{class(names), text(content)}, attrs...)...)
}

// entry returns an entry of a list of terms (dl).
func entry(term string, meaning part) part {
	return markup.El("div", markup.El("dt", text(term)), markup.El("dd", meaning))
}

// lead returns a paragraph, or nothing without a sentence.
func lead(sentence string) part { return markup.Some("p", sentence, class("lead")) }

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
	var facts markup.Parts
	fact := func(name, value, note string) {
		facts = append(facts, markup.El("div", class("fact"), span("name", name), span("value", value),
			span("note", note)))
	}
	fact("Samples", thousands(r.Samples), plural(int64(len(r.Fields)), "field each", "fields each"))
	if bytes > 0 {
		fact("Size", bytesText(bytes), bytesText(decoded)+" decoded")
	}
	if stored > 0 {
		fact("Compression", fmt.Sprintf("%.2f ×", float64(decoded)/float64(stored)), "decoded to stored pixels")
	}
	if total > 0 {
		fact("Valid pixels", draw.Percent(valid, total), "neither nodata, NaN nor infinite")
	}
	return markup.El("header",
		markup.El("p", class("kicker"), text("Dataset report")), markup.El("h1", text(r.Title)),
		markup.El("dl", class("origin"),
			markup.If(r.Title != r.Source, entry("Source", text(r.Source))),
			entry("Fingerprint", markup.El("code", text(r.Fingerprint)))),
		markup.El("div", class("facts"), facts))
}

func (r *Report) warnings() part {
	list := func(names string, all []Warning) part {
		return markup.Each(all, func(w Warning) part {
			return markup.El("div", class(names), markup.El("p", text(w.Text)),
				markup.If(len(w.Items) > 0, markup.El("ul", markup.Each(w.Items, func(item string) part {
					return markup.El("li", text(item))
				}))))
		})
	}
	return markup.If(len(r.Warnings)+len(r.Notes) > 0,
		markup.El("section", markup.Attr("id", "warnings"),
			markup.Attr("aria-label", "Warnings"),
			list("warning", r.Warnings), list("warning mild", r.Notes)))
}

func (r *Report) samples() part {
	if len(r.Chips) == 0 {
		return nil
	}
	rasters := 0
	for i := range r.Fields {
		if r.Fields[i].Kind == catalog.Raster {
			rasters++
		}
	}
	side := "c" + strconv.Itoa(max(1, min(rasters, maxPictures))) // pictures of a chip side by side
	return markup.El("section", markup.Attr("id", "chips"), markup.El("h2", text("Samples")),
		markup.El("p", class("lead"), markup.Textf("The first %d of the order with seed %d.%s Pixels without data are "+
			"chequered.", len(r.Chips), r.Seed, r.drawn())),
		markup.El("div", class("chips "+side), markup.Each(r.Chips, chip)))
}

// drawn says how the pictures of each field are drawn.
func (r *Report) drawn() string {
	var parts []string
	seen := map[string]bool{}
	for _, c := range r.Chips {
		for _, picture := range c.Pictures {
			name := markup.Clean(picture.Field)
			switch {
			case seen[picture.Field] || picture.Bands == "" && !picture.Mask:
				continue
			case picture.Bands != "":
				parts = append(parts, fmt.Sprintf("%s: %s, each chip stretched by its own percentiles", name,
					markup.Clean(picture.Bands)))
			default:
				parts = append(parts, name+": a colour a class")
			}
			seen[picture.Field] = true
		}
	}
	if parts == nil {
		return ""
	}
	return " " + strings.Join(parts, "; ") + "."
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

func (r *Report) places() part {
	drawing, note := r.Map.footprints()
	if drawing == nil {
		return nil
	}
	return markup.El("section", markup.Attr("id", "map"), markup.El("h2", text("Footprints")),
		lead(note), markup.El("div", class("scroll"), drawing.part()))
}

func (r *Report) foot() part {
	sentence := ""
	if r.Samples > 0 {
		sentence = "Statistics are of every pixel that is not nodata, NaN or infinite."
	}
	if r.Generator != "" {
		sentence += " Made by " + r.Generator + "."
	}
	return markup.El("footer", markup.El("p", text(sentence)))
}
