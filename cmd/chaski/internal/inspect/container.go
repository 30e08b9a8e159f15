package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/survey"
)

// asJSON returns a value of a document as JSON, as the document had it.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func printContainer(w io.Writer, c *survey.ContainerInfo) error {
	var s sheet
	fmt.Fprintf(&s.b, "%s: %s\n", console.OneLine(c.Path), c.Kind)
	s.line("id", "%s", console.Printable(c.ID))
	s.line("title", "%s", console.Printable(c.Title))
	s.line("taco version", "%s", console.Printable(c.Version))
	for _, t := range c.Tasks {
		s.line("task", "%s", console.Printable(t))
	}
	if extentInfo := c.Extent; extentInfo != nil {
		s.line("extent", "%s", asJSON(extentInfo.Spatial))
		if extentInfo.Temporal != nil {
			s.line("times", "%s", console.Printable(asJSON(extentInfo.Temporal)))
		}
	}
	if c.Partitions > 1 {
		s.line("parts", "%d files", c.Partitions)
	}
	s.line("class", "%s", strings.Join(c.Classes, ", "))
	s.line("sensor", "%s", console.Printable(c.Sensor))
	s.line("bands", "%s", console.Printable(strings.Join(c.Bands, ", ")))
	if c.Chunks > 0 {
		s.line("chunks", "%d", c.Chunks)
	}
	for _, f := range c.Files {
		s.line("file", "%s", console.OneLine(f))
	}
	for _, path := range c.Structure {
		s.line("in samples", "%s", console.Printable(path))
	}
	for k, levelInfo := range c.Levels {
		histograms := ""
		if levelInfo.Histograms > 0 {
			histograms = fmt.Sprintf(", %d histograms", levelInfo.Histograms)
		}
		s.line(fmt.Sprintf("level %d", k), "%d rows, %d of them placeholders%s", levelInfo.Rows, levelInfo.Padding,
			histograms)
		for _, col := range levelInfo.Columns {
			s.line("column", "%s: %s", console.Printable(col.Name), col.Type)
		}
	}
	_, err := io.WriteString(w, s.b.String())
	return err
}
