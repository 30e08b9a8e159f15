// Package classes reads what GDAL writes of the classes of a band: colours and names.
package classes

import (
	"cmp"
	"context"
	"encoding/xml"
	"image/color"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// Classes is what GDAL writes of the classes of a band, in virtual rasters and in NAME.aux.xml: its colour table, the
// names of its categories and its attribute table. Numbers from chunk.MaxClasses on are left out.
type Classes struct {
	Colours    colours    `xml:"ColorTable"` // nil without a table
	Categories categories `xml:"CategoryNames"`
	Attributes attributes `xml:"GDALRasterAttributeTable"`
}

// maxNames bounds the bytes of all names of a band, which go to clients in one message.
const maxNames = 1 << 20

// Legend returns the colours and the names. Categories count before the attribute table.
func (c *Classes) Legend() chunk.Legend {
	names := []string(c.Categories)
	if len(names) == 0 {
		names = c.Attributes
	}
	bytes := 0
	for _, name := range names {
		bytes += len(name)
	}
	if bytes == 0 || bytes > maxNames {
		names = nil
	}
	return chunk.Legend{Palette: chunk.Colours(c.Colours), Names: names}
}

// OfFile returns what the GDAL_METADATA of a TIFF says of the classes of its first band: since 3.12, GDAL writes
// the attribute table there instead of into NAME.aux.xml. The result is empty if metadata is not XML.
func OfFile(ctx context.Context, metadata string) *Classes {
	var in firstBand
	if len(metadata) > maxMetadata {
		return &Classes{}
	}
	parse := func(r io.Reader) error { return xml.NewDecoder(r).Decode(&in) }
	if textguard.ParseXML(ctx, "", []byte(metadata), nil, parse) != nil {
		return &Classes{}
	}
	return &in.Classes
}

// maxMetadata bounds the GDAL_METADATA that is parsed, as package tiff does: a table has 32,000 rows of 130 bytes.
const maxMetadata = 4 << 20

// firstBand is the attribute table of the first band in GDAL_METADATA.
type firstBand struct{ Classes Classes }

// UnmarshalXML implements xml.Unmarshaler.
func (b *firstBand) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	return children(d, func(e xml.StartElement) error {
		has := func(name, value string) bool {
			return slices.Contains(e.Attr, xml.Attr{Name: xml.Name{Local: name}, Value: value})
		}
		if has("role", "rat") && has("sample", "0") {
			return d.DecodeElement(&b.Classes, &e)
		}
		return d.Skip()
	})
}

// children calls f, which must read the element to its end, with each element inside the one that d has begun.
func children(d *xml.Decoder, f func(xml.StartElement) error) error {
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := f(token); err != nil {
				return err
			}
		}
	}
}

type colours []color.NRGBA

// UnmarshalXML implements xml.Unmarshaler.
func (c *colours) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	*c = colours{}
	return children(d, func(e xml.StartElement) error {
		if e.Name.Local == "Entry" && len(*c) < chunk.MaxClasses {
			parts := map[string]uint8{"c4": 0xff}
			for _, a := range e.Attr {
				n, _ := strconv.Atoi(a.Value)
				parts[a.Name.Local] = uint8(min(max(n, 0), 0xff))
			}
			*c = append(*c, color.NRGBA{parts["c1"], parts["c2"], parts["c3"], parts["c4"]})
		}
		return d.Skip()
	})
}

type categories []string

// UnmarshalXML implements xml.Unmarshaler.
func (c *categories) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	*c = nil
	return children(d, func(e xml.StartElement) error {
		if e.Name.Local != "Category" || len(*c) == chunk.MaxClasses {
			return d.Skip()
		}
		*c = append(*c, "")
		return d.DecodeElement(&(*c)[len(*c)-1], &e)
	})
}

// attributes are the names in an attribute table, by the values of its rows.
type attributes []string

// Usages of columns in attribute tables (GDALRATFieldUsage). Writers that say none call the columns so.
const (
	usageName  = "2"
	usageValue = "5" // GFU_MinMax
)

var nameColumns = []string{"class", "class_name", "classname", "label", "name"}

// UnmarshalXML implements xml.Unmarshaler.
func (a *attributes) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	*a = nil
	columns, value, name := 0, -1, -1
	return children(d, func(e xml.StartElement) error {
		switch e.Name.Local {
		case "FieldDefn":
			var column struct{ Name, Usage string }
			if err := d.DecodeElement(&column, &e); err != nil {
				return err
			}
			called, usage := strings.ToLower(strings.TrimSpace(column.Name)), strings.TrimSpace(column.Usage)
			switch {
			case value < 0 && (usage == usageValue || called == "value"):
				value = columns
			case name < 0 && (usage == usageName || slices.Contains(nameColumns, called)):
				name = columns
			}
			columns++
			return nil
		case "Row":
			return a.row(d, value, name)
		}
		return d.Skip()
	})
}

// row adds the name in a row; value and name are the numbers of two columns.
func (a *attributes) row(d *xml.Decoder, value, name int) error {
	var number, called string
	column := 0
	err := children(d, func(e xml.StartElement) error {
		column++
		switch column - 1 {
		case value:
			return d.DecodeElement(&number, &e)
		case name:
			return d.DecodeElement(&called, &e)
		}
		return d.Skip()
	})
	n, nerr := strconv.ParseFloat(strings.TrimSpace(number), 64)
	isClass := n >= 0 && n < chunk.MaxClasses && n == float64(int(n))
	if cmp.Or(err, nerr) != nil || called == "" || !isClass {
		return err
	}
	for len(*a) <= int(n) {
		*a = append(*a, "")
	}
	(*a)[int(n)] = called
	return nil
}
