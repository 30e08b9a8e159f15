// Package card describes a container for people: as Markdown, and as a dataset card of Hugging Face.
package card

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// Forms are the names of the forms of a card.
var Forms = []string{"markdown", "huggingface"}

// Make returns the card of a dataset in one of Forms. address is where readers of the card find the container. A member
// of an extension that has another form than the extension says is left out.
func Make(ctx context.Context, d *taco.Dataset, form, address string) ([]byte, error) {
	if !slices.Contains(Forms, form) {
		return nil, fmt.Errorf("form is %q: it must be one of %s", form, strings.Join(Forms, ", "))
	}
	collection, err := build.CollectionOf(d)
	if err != nil {
		return nil, err
	}
	if collection.ID == "" {
		return nil, fault.New(fault.Unsupported, "COLLECTION.json", fault.NoOffset,
			"has no id: a container without a description has no card")
	}
	samples, err := d.Visible(ctx, 0)
	if err != nil {
		return nil, err
	}
	levels, err := levelsOf(ctx, d)
	if err != nil {
		return nil, err
	}
	body := &page{}
	if err := body.describe(collection, len(samples), levels, address); err != nil {
		return nil, err
	}
	if form == "markdown" {
		return body.Bytes(), nil
	}
	head, err := header(collection, len(samples))
	return slices.Concat(head, body.Bytes()), err
}

// section is a part of a card: a text, and a list or a table.
type section struct {
	title string
	text  string
	list  []string
	head  []string
	rows  [][]string
}

// levelsOf returns a section about each level of the tree, of TACO 3 about each table.
func levelsOf(ctx context.Context, d *taco.Dataset) (levels []section, err error) {
	told := descriptions(d.Collection())
	names := d.LevelNames() // TACO 3 has a table for each folder, by its name
	for k := 0; names == nil && k < d.Levels() || k < len(names); k++ {
		title, name := strconv.Itoa(k), fmt.Sprintf("level%d", k)
		if names != nil {
			title, name = names[k], names[k]
		}
		table, err := d.StoredTable(ctx, name)
		if err != nil {
			return nil, err
		}
		level := section{title: "Level " + title, text: fmt.Sprintf("%d rows.", table.Len()),
			head: []string{"column", "type", "description"}}
		for _, column := range table.Columns() {
			if !strings.HasPrefix(column.Name, "internal:") {
				level.rows = append(level.rows, []string{column.Name, column.Type.String(), told[name][column.Name]})
			}
		}
		levels = append(levels, level)
	}
	return levels, nil
}

// descriptions returns what a document says of columns, by table and column: taco:field_schema of TACO 2 and
// taco:metadata of TACO 3. They are an extra, so that others say nothing.
func descriptions(doc json.RawMessage) map[string]map[string]string {
	var schema struct {
		Fields map[string][][3]string                             `json:"taco:field_schema"`
		Tables map[string]map[string]struct{ Description string } `json:"taco:metadata"`
	}
	_ = json.Unmarshal(doc, &schema)
	told := map[string]map[string]string{}
	for table, fields := range schema.Fields {
		told[table] = map[string]string{}
		for _, f := range fields {
			told[table][f[0]] = f[2]
		}
	}
	for table, fields := range schema.Tables {
		told[table] = map[string]string{}
		for name, f := range fields {
			told[table][name] = f.Description
		}
	}
	return told
}

// page is a page of Markdown.
type page struct{ bytes.Buffer }

// describe writes all of a card. Members of COLLECTION.json that are text, numbers or lists of these are facts, and
// lists of objects, such as providers, classes, bands and publications, are tables.
func (p *page) describe(c *build.Collection, samples int, levels []section, address string) error {
	document, err := json.Marshal(c)
	if err != nil {
		return err
	}
	members := map[string]any{}
	if err := json.Unmarshal(document, &members); err != nil {
		return err
	}
	for name, text := range c.More {
		var value any
		_ = json.Unmarshal(text, &value) // it was read from JSON
		members[name] = value
	}
	fmt.Fprintf(p, "# %s\n", plain(cmp.Or(c.Title, c.ID)))
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(c.Description, "\r\n", "\n"), "\n\n") {
		if paragraph = plain(paragraph); paragraph != "" {
			fmt.Fprintf(p, "\n%s\n", paragraph)
		}
	}
	delete(members, "title")
	delete(members, "description")
	facts := section{title: "At a glance", head: []string{"", ""},
		rows: [][]string{{"samples", strconv.Itoa(samples)}}}
	if strings.Contains(address, "://") {
		facts.rows = append(facts.rows, []string{"address", address})
	}
	if extent := c.Extent; extent != nil && len(extent.Spatial) == 4 {
		box := strings.Trim(strings.ReplaceAll(fmt.Sprint(extent.Spatial), " ", ", "), "[]")
		facts.rows = append(facts.rows, []string{"west, south, east, north", box},
			[]string{"time", strings.Join(extent.Temporal, " to ")})
	}
	var tables []section
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if table := tableOf(name, members[name]); table.rows != nil {
			tables = append(tables, table)
		} else if text := textOf(members[name]); text != "" {
			facts.rows = append(facts.rows, []string{name, text})
		}
	}
	for _, s := range slices.Concat([]section{facts}, tables, levels) {
		p.section(s)
	}
	p.section(section{title: "Read it", text: "With chaski, GDAL or the reader of its format, for example:",
		list: []string{"chaski.taco.load(" + strconv.Quote(address) + ").read(0)", "chaski ls " + address}})
	return nil
}

// tableOf returns a list of objects as a table with a column for each of their members.
func tableOf(name string, value any) section {
	table := section{title: name}
	list, _ := value.([]any)
	columns := map[string]bool{}
	for _, item := range list {
		object, _ := item.(map[string]any)
		for member := range object {
			columns[member] = true
		}
	}
	table.head = slices.Sorted(maps.Keys(columns))
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			continue
		}
		row := make([]string, len(table.head))
		for i, member := range table.head {
			row[i] = textOf(object[member])
		}
		table.rows = append(table.rows, row)
	}
	return table
}

// textOf returns a text, a number or a list of these in words, and "" for other values.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64, bool:
		return fmt.Sprint(v)
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, textOf(item))
		}
		return strings.Join(texts, ", ")
	}
	return ""
}

// section writes a section, if there is something in it.
func (p *page) section(s section) {
	if s.list == nil && s.rows == nil {
		return
	}
	fmt.Fprintf(p, "\n## %s\n", plain(s.title))
	if s.text != "" {
		fmt.Fprintf(p, "\n%s\n", plain(s.text))
	}
	for i, item := range s.list {
		if i == 0 {
			p.WriteByte('\n')
		}
		fmt.Fprintf(p, "- %s\n", plain(item))
	}
	if s.rows == nil {
		return
	}
	fmt.Fprintf(p, "\n| %s |\n|%s\n", strings.Join(s.head, " | "), strings.Repeat("---|", len(s.head)))
	for _, row := range s.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
		}
		fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | "))
	}
}

// plain escapes text for Markdown: strings in COLLECTION.json are text, not markup.
func plain(text string) string {
	var b strings.Builder
	// On one line, because a line break would end a row of a table.
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|~&!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
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

// header returns the header of Hugging Face's dataset card: YAML, whose values are written as JSON, which is YAML.
func header(c *build.Collection, samples int) ([]byte, error) {
	licenses, tasks := []string{}, []string{}
	for _, license := range c.Licenses {
		if license = strings.ToLower(license); !slices.Contains(huggingLicenses, license) {
			license = "other"
		}
		if !slices.Contains(licenses, license) {
			licenses = append(licenses, license)
		}
	}
	for _, task := range c.Tasks {
		if task = cmp.Or(huggingTasks[task], "other"); !slices.Contains(tasks, task) {
			tasks = append(tasks, task)
		}
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	values := json.NewEncoder(&b)
	values.SetEscapeHTML(false)
	for _, member := range []struct {
		name  string
		value any
	}{{"pretty_name", cmp.Or(c.Title, c.ID)}, {"license", licenses}, {"task_categories", tasks},
		{"tags", append([]string{"earth-observation", "taco"}, c.Keywords...)},
		{"size_categories", []string{sizeCategory(samples)}}} {
		fmt.Fprintf(&b, "%s: ", member.name)
		if err := values.Encode(member.value); err != nil {
			return nil, err
		}
	}
	b.WriteString("---\n\n")
	return b.Bytes(), nil
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
