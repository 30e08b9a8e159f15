package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/draw/markup"
)

// section is a part of a card: paragraphs, then a list, then a table.
type section struct {
	Title string
	Text  []string
	List  []string
	Head  []string
	Rows  [][]string
}

// sections returns the content of a card, for Markdown and for HTML.
func (c *Card) sections() (all []section) {
	facts := section{Title: "At a glance", Head: []string{"", ""}}
	add := func(name, value string) {
		if value != "" {
			facts.Rows = append(facts.Rows, []string{name, value})
		}
	}
	add("id", c.ID)
	add("version", c.DatasetVersion)
	add("samples", strconv.Itoa(c.Samples))
	add("tasks", strings.Join(c.Tasks, ", "))
	add("licences", strings.Join(c.Licenses, ", "))
	add("keywords", strings.Join(c.Keywords, ", "))
	if extent := c.Extent; extent != nil && len(extent.Spatial) == 4 {
		add("west, south, east, north", fmt.Sprintf("%v, %v, %v, %v", extent.Spatial[0], extent.Spatial[1],
			extent.Spatial[2],
			extent.Spatial[3]))
		add("time", strings.Join(extent.Temporal, " to "))
	}
	add("address", c.Options.URL)
	for _, n := range c.Notes {
		add(n.Name, n.Text)
	}
	all = append(all, facts)
	for _, part := range []struct {
		title string
		list  []map[string]any
	}{{"Providers", c.Providers}, {"Curators", c.Curators}} {
		s := section{Title: part.title}
		for _, p := range People(part.list) {
			s.List = append(s.List, p.String())
		}
		all = append(all, s)
	}
	s := section{Title: "Classes", Head: []string{"value", "class", "description"}}
	for _, class := range c.Labels {
		s.Rows = append(s.Rows, []string{fmt.Sprint(class.Category), class.Name, class.About})
	}
	all = append(all, s)
	s = section{Title: "Bands", Head: []string{"band", "common name", "centre", "description"}}
	for _, band := range c.Bands {
		centre := ""
		if band.Centre != nil {
			centre = strings.TrimSpace(fmt.Sprintf("%v %s", *band.Centre, band.Unit))
		}
		s.Rows = append(s.Rows, []string{band.Name, band.Common, centre, band.About})
	}
	all = append(all, s)
	for _, level := range c.Levels {
		s := section{Title: "Level " + level.Name, Head: []string{"column", "type", "description"},
			Text: []string{fmt.Sprintf("%d rows.", level.Rows)}}
		for _, column := range level.Columns {
			s.Rows = append(s.Rows, []string{column.Name, column.Type, column.About})
		}
		all = append(all, s)
	}
	s = section{Title: "Publications"}
	for _, paper := range c.Papers {
		text := paper.Citation
		if paper.DOI != "" {
			text += " https://doi.org/" + strings.TrimPrefix(paper.DOI, "https://doi.org/")
		}
		if paper.Summary != "" {
			text += " " + paper.Summary
		}
		s.List = append(s.List, text)
	}
	all = append(all, s, section{Title: "Read it",
		Text: []string{"With chaski, GDAL or the reader of its format, for example:"},
		List: []string{"chaski.taco.load(" + strconv.Quote(c.address()) + ").read(0)", "chaski ls " + c.address()}})
	return slices.DeleteFunc(all, func(s section) bool { return s.List == nil && s.Rows == nil })
}

// address returns where the container is read from.
func (c *Card) address() string {
	if c.Options.URL != "" {
		return c.Options.URL
	}
	return c.Options.Name
}

// link returns where a program finds the container that has read the card.
func (c *Card) link() string {
	if c.Options.URL != "" {
		return c.Options.URL
	}
	return c.Options.Link
}

// plain escapes text for Markdown: strings in COLLECTION.json are text, not markup. A line break in it would end a row
// of a table.
func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|~&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// markdown returns a data card.
func markdown(c *Card) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n", plain(c.Heading()))
	for _, paragraph := range paragraphs(c.Description) {
		fmt.Fprintf(&b, "\n%s\n", plain(paragraph))
	}
	for _, section := range c.sections() {
		fmt.Fprintf(&b, "\n## %s\n", plain(section.Title))
		for _, text := range section.Text {
			fmt.Fprintf(&b, "\n%s\n", plain(text))
		}
		for i, item := range section.List {
			if i == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "- %s\n", plain(item))
		}
		if section.Rows == nil {
			continue
		}
		fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(section.Head, " | "), strings.Repeat("---|", len(section.Head)))
		for _, row := range section.Rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = plain(cell)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.Bytes(), nil
}

// paragraphs returns the paragraphs of a text.
func paragraphs(text string) (out []string) {
	for p := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// style is the style sheet of a card.
const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;font-size:.9em}td,th{text-align:left;padding:.25em .75em .25em 0;
border-bottom:1px solid #ddd;vertical-align:top}h1,h2{line-height:1.2}`

// page returns one page of HTML that needs no other file.
func page(c *Card) ([]byte, error) {
	paragraph := func(text string) markup.Part { return markup.El("p", markup.Text(text)) }
	body := []markup.Part{markup.El("h1", markup.Text(c.Heading())), markup.Each(paragraphs(c.Description), paragraph)}
	for _, s := range c.sections() {
		body = append(body, markup.El("h2", markup.Text(s.Title)), markup.Each(s.Text, paragraph),
			markup.If(s.List != nil, markup.El("ul", markup.Each(s.List, func(item string) markup.Part {
				return markup.El("li", markup.Text(item))
			}))),
			markup.If(s.Rows != nil, markup.El("table", markup.Row("th", s.Head...),
				markup.Each(s.Rows, func(cells []string) markup.Part { return markup.Row("td", cells...) }))))
	}
	var b bytes.Buffer
	err := (&markup.Page{Title: c.Heading(), Style: style, Body: body}).Write(&b)
	return b.Bytes(), err
}

// huggingTasks are Hugging Face's names of tasks.
var huggingTasks = map[string]string{"classification": "image-classification",
	"scene-classification": "image-classification", "segmentation": "image-segmentation",
	"semantic-segmentation": "image-segmentation", "instance-segmentation": "image-segmentation",
	"panoptic-segmentation": "image-segmentation", "detection": "object-detection",
	"object-detection": "object-detection", "image-to-image": "image-to-image", "super-resolution": "image-to-image",
	"denoising": "image-to-image", "inpainting": "image-to-image", "colorization": "image-to-image"}

// huggingLicenses are the licences that Hugging Face knows by their SPDX id in lower case; others are "other".
var huggingLicenses = []string{"apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0",
	"cc-by-nc-sa-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-4.0", "cc-by-3.0", "cc-by-sa-3.0", "odbl", "odc-by", "pddl",
	"gpl-3.0", "bsd-3-clause", "etalab-2.0"}

// huggingFace returns a dataset card: Markdown with a header of YAML, whose values are written as JSON, which is YAML.
func huggingFace(c *Card) ([]byte, error) {
	body, err := markdown(c)
	if err != nil {
		return nil, err
	}
	licenses, tasks := []string{}, []string{}
	for _, l := range c.Licenses {
		if l = strings.ToLower(l); !slices.Contains(huggingLicenses, l) {
			l = "other"
		}
		if !slices.Contains(licenses, l) {
			licenses = append(licenses, l)
		}
	}
	for _, t := range c.Tasks {
		if t = huggingTasks[t]; t == "" {
			t = "other"
		}
		if !slices.Contains(tasks, t) {
			tasks = append(tasks, t)
		}
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, m := range []struct {
		name  string
		value any
	}{{"pretty_name", c.Heading()}, {"license", licenses}, {"task_categories", tasks},
		{"tags", append([]string{"earth-observation", "taco"}, c.Keywords...)},
		{"size_categories", []string{sizeCategory(c.Samples)}}} {
		fmt.Fprintf(&b, "%s: ", m.name)
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteString("---\n\n")
	return append(b.Bytes(), body...), nil
}

// sizeCategory returns Hugging Face's name for a number of samples.
func sizeCategory(n int) string {
	names := []string{"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"}
	i := 0
	for limit := 1000; i < len(names)-1 && n >= limit; limit *= 10 {
		i++
	}
	return names[i]
}
