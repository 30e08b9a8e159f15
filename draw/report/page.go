package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/store/catalog"
)

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	fields := r.Fields
	if r.Samples == 0 {
		fields = nil // an empty dataset has no fields to describe
	}
	return writePage(w, r.Title, style, el("main", r.head(),
		when(r.Samples == 0, el("p", class("empty"), text("The dataset has no samples."))),
		r.warnings(), r.samples(), each(fields, func(f Field) part { return f.section() }), r.foot()))
}

func span(names, content string, attrs ...part) part {
	return el("span", append([]part{class(names), text(content)}, attrs...)...)
}

// entry returns an entry of a list of terms (dl).
func entry(term string, meaning part) part {
	return el("div", el("dt", text(term)), el("dd", meaning))
}

// lead returns a paragraph, or nothing without a sentence.
func lead(sentence string) part { return some("p", sentence, class("lead")) }

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
	var facts parts
	fact := func(name, value, note string) {
		facts = append(facts, el("div", class("fact"), span("name", name), span("value", value),
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
	return el("header",
		el("p", class("kicker"), text("Dataset report")), el("h1", text(r.Title)),
		el("dl", class("origin"),
			when(r.Title != r.Source, entry("Source", text(r.Source))),
			entry("Fingerprint", el("code", text(r.Fingerprint)))),
		el("div", class("facts"), facts))
}

func (r *Report) warnings() part {
	list := func(names string, all []Warning) part {
		return each(all, func(w Warning) part {
			return el("div", class(names), el("p", text(w.Text)),
				when(len(w.Items) > 0, el("ul", each(w.Items, func(item string) part {
					return el("li", text(item))
				}))))
		})
	}
	return when(len(r.Warnings)+len(r.Notes) > 0,
		el("section", attr("id", "warnings"),
			attr("aria-label", "Warnings"),
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
	return el("section", attr("id", "chips"), el("h2", text("Samples")),
		el("p", class("lead"), text(fmt.Sprintf("The first %d of the order with seed %d.%s Pixels without data are "+
			"chequered.", len(r.Chips), r.Seed, r.drawn()))),
		el("div", class("chips "+side), each(r.Chips, chip)))
}

// drawn says how the pictures of each field are drawn.
func (r *Report) drawn() string {
	var parts []string
	seen := map[string]bool{}
	for _, c := range r.Chips {
		for _, picture := range c.Pictures {
			name := clean(picture.Field)
			switch {
			case seen[picture.Field] || picture.Bands == "" && !picture.Mask:
				continue
			case picture.Bands != "":
				parts = append(parts, fmt.Sprintf("%s: %s, each chip stretched by its own percentiles", name,
					clean(picture.Bands)))
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
	return el("figure", class("chip"), attr("data-row", strconv.FormatInt(c.Row, 10)),
		el("div", class("pictures"), each(c.Pictures, framed),
			when(len(c.Pictures) == 0, span("frame blank", missing))),
		el("figcaption", span("id", base(c.ID), attr("title", c.ID)),
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
	return el("span", class("frame"), el("img", pngSource(p.PNG),
		attr("width", strconv.Itoa(p.Width)),
		attr("height", strconv.Itoa(p.Height)),
		attr("alt", p.Field), class(names),
		when(p.Window != "", attr("title", p.Window))))
}

func (r *Report) foot() part {
	sentence := ""
	if r.Samples > 0 {
		sentence = "Statistics are of every pixel that is not nodata, NaN or infinite."
	}
	if r.Generator != "" {
		sentence += " Made by " + r.Generator + "."
	}
	return el("footer", el("p", text(sentence)))
}
