package classes_test

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vrt/classes"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// table returns an attribute table with columns of a name and a usage, and rows.
func table(columns [][2]string, rows ...[]string) string {
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "<FieldDefn><Name>%s</Name><Usage>%s</Usage></FieldDefn>", c[0], c[1])
	}
	for _, row := range rows {
		b.WriteString("<Row><F>" + strings.Join(row, "</F><F>") + "</F></Row>")
	}
	return "<GDALRasterAttributeTable>" + b.String() + "</GDALRasterAttributeTable>"
}

// TestLegendOfHostileFiles: values that are no class number are left out, and no text makes a legend without bounds.
func TestLegendOfHostileFiles(t *testing.T) {
	named := [][2]string{{"Value", "0"}, {"Red", "6"}, {"Name", "0"}}
	usual := []string{"2", "1", "wood"}
	long := strings.Repeat("x", 1<<20)
	for text, want := range map[string][]string{
		"":                 nil,
		"<CategoryNames/>": nil,
		"<CategoryNames><Category/><Other>a</Other></CategoryNames>":                  nil,
		"<CategoryNames><Category>a<b>c</b></Category></CategoryNames>":               {"a"},
		"<CategoryNames><Category>" + long + "</Category></CategoryNames>":            {long},
		"<CategoryNames><Category>" + long + "y</Category></CategoryNames>":           nil,
		"<CategoryNames><Category>a</Category></CategoryNames>" + table(named, usual): {"a"},
		table(named, usual): {"", "", "wood"},
		table([][2]string{{"id", " 5 "}, {"what", "2"}}, []string{"1.0", "b"}):                      {"", "b"},
		table(named, []string{"65536", "", "a"}, []string{"-1", "", "b"}, []string{"NaN", "", "c"}): nil,
		table(named, []string{"1e300", "", "a"}, []string{"0.5", "", "b"}, []string{"1"}):           nil,
		table(nil, usual): nil,
	} {
		var c classes.Classes
		if err := xml.Unmarshal([]byte("<a>"+text+"</a>"), &c); err != nil {
			t.Fatalf("%.80s: %v", text, err)
		}
		if got := c.Legend().Names; !slices.Equal(got, want) {
			t.Errorf("%.200s: %.200q, want %.200q", text, got, want)
		}
	}
	var c classes.Classes
	entries := strings.Repeat(`<Entry c1="300" c2="-4" c3="x"/>`, chunk.MaxClasses+9)
	names := strings.Repeat("<Category>a</Category>", chunk.MaxClasses+9)
	text := "<a><ColorTable>" + entries + "</ColorTable><CategoryNames>" + names + "</CategoryNames></a>"
	if err := xml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	legend := c.Legend()
	if len(legend.Palette) != chunk.MaxClasses || len(legend.Names) != len(legend.Palette) ||
		legend.Palette[9] != "#ff0000" {
		t.Errorf("%d colours, %d names", len(legend.Palette), len(legend.Names))
	}
	for _, broken := range []string{"<ColorTable><Entry>", "<CategoryNames><Category>",
		"<GDALRasterAttributeTable><Row>"} {
		if err := xml.Unmarshal([]byte("<a>"+broken), &c); err == nil {
			t.Errorf("%s is read", broken)
		}
	}
}

// written returns GDAL_METADATA as GDAL 3.12.2 writes it, with an attribute table of band 2 before that of band 1.
func written(table string) string {
	item := `<Item name="DEFAULT_RASTER_ATTRIBUTE_TABLE" sample="%d" role="rat">%s</Item>`
	return "<GDALMetadata>\n  <Item name=\"A\">b &amp; c</Item>\n  " +
		fmt.Sprintf(item, 1, strings.ReplaceAll(table, "wood", "stone")) + fmt.Sprintf(item, 0, table) +
		"\n</GDALMetadata>\n"
}

// TestFileClasses: the names are those of the first band's attribute table in GDAL_METADATA, and of nothing else.
func TestFileClasses(t *testing.T) {
	rows := table([][2]string{{"Count", "1"}, {"Value", "5"}, {"Class_Name", "2"}}, []string{"0", "2", "wood &lt;"})
	other := strings.ReplaceAll(written(rows), `sample="0"`, `sample="2"`)
	for text, want := range map[string][]string{
		written(rows):                          {"", "", "wood <"},
		written("<Other>" + rows + "</Other>"): nil,
		written(""):                            nil,
		other:                                  nil,
		written(rows)[:300]:                    nil,
		rows:                                   nil,
		"":                                     nil,
		written(rows + strings.Repeat(" ", 4<<20)): nil,
	} {
		if got := classes.OfFile(t.Context(), text).Legend().Names; !slices.Equal(got, want) {
			t.Errorf("%.600s: %q, want %q", text, got, want)
		}
	}
}

// FuzzFileClasses: no text makes the parser panic, or a legend without bounds.
func TestClassesTaken(t *testing.T) {
	for _, element := range []string{"<GDALMetadata>", "<GDALMetadata><GDALRasterAttributeTable>"} {
		for _, text := range taken.XML(element) {
			taken.Check(t, len(text), taken.FactorXML, func() { classes.OfFile(t.Context(), text) })
		}
	}
}

func FuzzFileClasses(f *testing.F) {
	f.Add(written(table([][2]string{{"Value", "5"}, {"Class", "2"}}, []string{"2", "wood"}, []string{"9", "field"})))
	f.Fuzz(func(t *testing.T, text string) {
		taken.Check(t, len(text), taken.FactorXML, func() {
			if names := classes.OfFile(t.Context(), text).Legend().Names; len(names) > chunk.MaxClasses {
				t.Fatalf("%d names", len(names))
			}
		})
	})
}
