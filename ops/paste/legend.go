package paste

import (
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// legend writes the colours of classes as the colour table of the file, and their names as an attribute table in
// GDAL_METADATA, as GDAL does since 3.12. Numbers without a colour are black.
func (o *Options) legend(t *tog.Options) {
	if colours := o.Classes.Palette; len(colours) > 0 {
		var table [3][1 << 8]uint16
		for i, text := range colours {
			c, _ := colour(text) // check has parsed it
			for k, part := range c {
				table[k][i] = uint16(part) * 0x101 // 16 bits, of which 255 is 65,535
			}
		}
		t.Photometric = 3
		t.Tags = append(t.Tags, ifdwrite.Shorts(ifd.TagColorMap, slices.Concat(table[0][:], table[1][:],
			table[2][:])...))
	}
	if len(o.Classes.Names) > 0 {
		t.GDALMetadata = extras.GDALMetadata([]string{attributeTable(o.Classes)})
	}
}

// attributeTable returns the item of GDAL_METADATA with the names of the classes of the first band.
func attributeTable(l chunk.Legend) string {
	var b strings.Builder
	b.WriteString(`<Item name="DEFAULT_RASTER_ATTRIBUTE_TABLE" sample="0" role="rat">` +
		`<GDALRasterAttributeTable tableType="thematic">` +
		// The value is a number (type 0) of the usage GFU_MinMax (5), the name a text (2) of GFU_Name (2).
		`<FieldDefn index="0"><Name>Value</Name><Type>0</Type><Usage>5</Usage></FieldDefn>` +
		`<FieldDefn index="1"><Name>Class</Name><Type>2</Type><Usage>2</Usage></FieldDefn>`)
	row := 0
	for value, name := range l.Names {
		if name == "" {
			continue
		}
		fmt.Fprintf(&b, `<Row index="%d"><F>%d</F><F>`, row, value)
		_ = xml.EscapeText(&b, []byte(name)) // a Builder has no errors
		b.WriteString("</F></Row>")
		row++
	}
	b.WriteString("</GDALRasterAttributeTable></Item>")
	return b.String()
}

// colour parses #rrggbb.
func colour(text string) (rgb [3]byte, err error) {
	digits, marked := strings.CutPrefix(text, "#")
	parsed, err := hex.DecodeString(digits)
	if err != nil || !marked || len(parsed) != len(rgb) {
		return rgb, fmt.Errorf("palette has %q: a colour must be #rrggbb", text)
	}
	return [3]byte(parsed), nil
}

// checkLegend checks Classes.
func (o *Options) checkLegend() error {
	names, colours := len(o.Classes.Names), len(o.Classes.Palette)
	switch {
	case max(names, colours) == 0:
		return nil
	case !o.Argmax:
		return errors.New("classes and palette are of numbers of classes, which argmax writes")
	case max(names, colours) > noClass:
		return fmt.Errorf("classes has %d names and palette %d colours: at most %d", names, colours, noClass)
	}
	for _, text := range o.Classes.Palette {
		if _, err := colour(text); text != "" && err != nil {
			return err
		}
	}
	return nil
}
