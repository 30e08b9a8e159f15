// Package card describes a container for people and for catalogs of data sets: as Markdown, HTML and a dataset card of
// Hugging Face, and in the forms of Croissant 1.0, DataCite 4.5 and STAC 1.0.
package card

import (
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

// Options has the text of a card that is not in the container.
type Options struct {
	// Name is the container's file or folder, as it is called where the card is read.
	Name string
	// URL is where the data set is published, "" if that is not known.
	URL string
	// Link is the path from the folder of the card to the container, or from the root if the card has no folder.
	// Documents for programs have it where URL is not known.
	Link string
	// Year is the year of its publication, which DataCite wants.
	Year int
	// SHA256 returns the sum of File, in hex, for Croissant.
	SHA256 func() (string, error)
	// File is the file that Croissant describes: the container, or of a folder the table of its samples. It is a path
	// from the folder of the card.
	File string
	// ZIP says that File is a ZIP, with the table of samples in METADATA/level0.parquet.
	ZIP bool
}

// Card is a description of a container.
type Card struct {
	build.Collection
	Options Options
	Samples int
	Levels  []Level
	Labels  []Class
	Bands   []Band
	Papers  []Paper
	Notes   []Note // further members that are text
}

// Level is a level of the tree.
type Level struct {
	Name    string // such as "0"; of TACO 3 "children/before"
	Rows    int
	Columns []Column
}

// Column is a column of a level in taco:field_schema.
type Column struct{ Name, Type, About string }

// Class is a member of labels:classes.
type Class struct {
	Name     string `json:"name"`
	Category any    `json:"category"`
	About    string `json:"description"`
}

// Band is a member of optical:bands.
type Band struct {
	Name   string   `json:"name"`
	Common string   `json:"common_name"`
	About  string   `json:"description"`
	Centre *float64 `json:"center_wavelength"`
	Unit   string   `json:"unit"`
}

// Paper is a member of publications.
type Paper struct {
	DOI      string `json:"doi"`
	Citation string `json:"citation"`
	Summary  string `json:"summary"`
}

// Note is a string member of COLLECTION.json.
type Note struct{ Name, Text string }

// forms are the writers of cards.
var forms = map[string]func(c *Card) ([]byte, error){"markdown": markdown, "html": page, "huggingface": huggingFace,
	"croissant": croissant, "datacite": dataCite, "stac": stac}

// Forms are the names of the forms.
var Forms = []string{"markdown", "html", "huggingface", "croissant", "datacite", "stac"}

// Write returns a card in one of Forms.
func (c *Card) Write(form string) ([]byte, error) {
	write := forms[form]
	if write == nil {
		return nil, fmt.Errorf("form is %q: it must be one of %s", form, strings.Join(Forms, ", "))
	}
	return write(c)
}

// New describes a dataset. A member of an extension that has another form than the extension says is left out.
func New(ctx context.Context, d *taco.Dataset, o Options) (*Card, error) {
	collection, err := build.CollectionOf(d)
	if err != nil {
		return nil, err
	}
	if collection.ID == "" {
		return nil, fault.New(fault.Unsupported, "COLLECTION.json", fault.NoOffset,
			"has no id: a container without a description has no card")
	}
	card := &Card{Collection: *collection, Options: o}
	rows, err := d.Visible(ctx, 0)
	if err != nil {
		return nil, err
	}
	card.Samples = len(rows)
	if err := card.tables(ctx, d); err != nil {
		return nil, err
	}
	card.extensions()
	return card, nil
}

// tables reads the columns of all levels.
func (c *Card) tables(ctx context.Context, d *taco.Dataset) error {
	told := descriptions(d.Collection())
	names := d.LevelNames() // TACO 3 has a table for each folder, by its name
	for k := 0; names == nil && k < d.Levels() || k < len(names); k++ {
		level, name := Level{Name: strconv.Itoa(k)}, fmt.Sprintf("level%d", k)
		if names != nil {
			level.Name, name = names[k], names[k]
		}
		table, err := d.StoredTable(ctx, name)
		if err != nil {
			return err
		}
		level.Rows = table.Len()
		for _, column := range table.Columns() {
			if !strings.HasPrefix(column.Name, "internal:") {
				level.Columns = append(level.Columns, Column{column.Name, column.Type.String(),
					told[name][column.Name]})
			}
		}
		c.Levels = append(c.Levels, level)
	}
	return nil
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

// extensions reads the members of the extensions.
func (c *Card) extensions() {
	_ = json.Unmarshal(c.More["labels:classes"], &c.Labels)
	_ = json.Unmarshal(c.More["optical:bands"], &c.Bands)
	for _, name := range []string{"publications", "publications:publications"} { // of TACO 2, of TACO 3
		_ = json.Unmarshal(c.More[name], &c.Papers)
	}
	for _, name := range slices.Sorted(maps.Keys(c.More)) {
		var text string
		if json.Unmarshal(c.More[name], &text) == nil && text != "" {
			c.Notes = append(c.Notes, Note{name, text})
		}
	}
}

// Heading returns the title, or the id without one.
func (c *Card) Heading() string {
	if c.Title != "" {
		return c.Title
	}
	return c.ID
}

// Person is a provider or curator.
type Person struct{ Name, Organization, Role string }

// People returns providers or curators. A member without a name has its organization's.
func People(list []map[string]any) (out []Person) {
	text := func(m map[string]any, name string) string {
		s, _ := m[name].(string)
		return s
	}
	for _, m := range list {
		person := Person{text(m, "name"), text(m, "organization"), text(m, "role")}
		if person.Name == "" {
			person.Name, person.Organization = person.Organization, ""
		}
		if person.Name != "" {
			out = append(out, person)
		}
	}
	return out
}

// String returns the person in words.
func (p Person) String() string {
	s := p.Name
	if p.Organization != "" {
		s += ", " + p.Organization
	}
	if p.Role != "" {
		s += " (" + p.Role + ")"
	}
	return s
}
