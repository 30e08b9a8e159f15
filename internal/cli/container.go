package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/taco"
)

// containerInfo is what info tells of a container.
type containerInfo struct {
	Path    string      `json:"path"`
	Kind    string      `json:"kind"`
	Files   []string    `json:"files,omitempty"` // of a TACOLLECTION.json
	ID      string      `json:"id,omitempty"`
	Version string      `json:"taco_version,omitempty"`
	Title   string      `json:"title,omitempty"`
	Tasks   []string    `json:"tasks,omitempty"`
	Extent  *extentInfo `json:"extent,omitempty"`
	// Partitions is the number of files that a Tortilla says it is split into.
	Partitions int         `json:"partitions,omitempty"`
	Classes    []string    `json:"classes,omitempty"` // of level 0
	Sensor     string      `json:"sensor,omitempty"`
	Bands      []string    `json:"bands,omitempty"`
	Chunks     int         `json:"chunks,omitempty"` // that have a row of their own
	Levels     []levelInfo `json:"levels"`
}

type extentInfo struct {
	Spatial  []float64 `json:"spatial"`
	Temporal []any     `json:"temporal"`
}

type levelInfo struct {
	Rows    int `json:"rows"`
	Padding int `json:"padding"`
	// Histograms is the number of rows that hold the histograms of a streaming TACO, which are no samples.
	Histograms int          `json:"histograms,omitempty"`
	Classes    []string     `json:"classes,omitempty"`
	Columns    []columnInfo `json:"columns"`
}

type columnInfo struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// inspectContainer describes the container at a path.
func inspectContainer(ctx context.Context, files source.Opener, path string) (*containerInfo, error) {
	d, err := taco.Open(ctx, files, []string{path}, taco.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	i := &containerInfo{Path: path, Kind: d.Format()}
	if parts := d.Parts(); len(parts) > 1 {
		i.Files = parts
	}
	i.collection(d.Collection())
	i.Partitions = d.Partitions()
	if sensor, ok, err := d.Sensor(); err != nil {
		return nil, err
	} else if ok {
		i.Sensor = sensor.Name
		for _, b := range sensor.Bands {
			i.Bands = append(i.Bands, b.Name)
		}
	}
	if slices.Contains(d.SQLTables(), "chunks") {
		t, err := d.SQLTable(ctx, "chunks")
		if err != nil {
			return nil, err
		}
		i.Chunks = t.Len()
	}
	for k := 0; k < d.Levels(); k++ { // the levels of a nested Tortilla may turn out to be more
		t, err := d.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		visible, err := d.Visible(ctx, k)
		if err != nil {
			return nil, err
		}
		histograms, err := d.Histograms(ctx, k)
		if err != nil {
			return nil, err
		}
		l := levelInfo{Rows: t.Len(), Padding: t.Len() - len(visible) - histograms, Histograms: histograms, Classes: taco.Classes(t)}
		if k == 0 {
			i.Classes = l.Classes
		}
		for _, c := range t.Columns() {
			l.Columns = append(l.Columns, columnInfo{c.Name, c.Type.String()})
		}
		i.Levels = append(i.Levels, l)
	}
	return i, nil
}

// collection takes what a document about a dataset says; parts of other types than expected are left out.
func (i *containerInfo) collection(doc json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(doc, &fields) != nil {
		return
	}
	for name, to := range map[string]any{"id": &i.ID, "taco_version": &i.Version, "title": &i.Title, "tasks": &i.Tasks, "extent": &i.Extent} {
		if raw, ok := fields[name]; ok {
			_ = json.Unmarshal(raw, to) // a hint for people
		}
	}
	var task string // TACO 0.2 has one
	if raw, ok := fields["task"]; ok && json.Unmarshal(raw, &task) == nil && task != "" {
		i.Tasks = append(i.Tasks, task)
	}
}

// asJSON returns what a document said, as it said it.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func printContainer(w io.Writer, c *containerInfo) error {
	var s sheet
	fmt.Fprintf(&s.b, "%s: %s\n", clean(c.Path), c.Kind)
	s.line("id", "%s", clean(c.ID))
	s.line("title", "%s", clean(c.Title))
	s.line("taco version", "%s", clean(c.Version))
	for _, t := range c.Tasks {
		s.line("task", "%s", clean(t))
	}
	if x := c.Extent; x != nil {
		s.line("extent", "%s", asJSON(x.Spatial))
		if x.Temporal != nil {
			s.line("times", "%s", clean(asJSON(x.Temporal)))
		}
	}
	if c.Partitions > 1 {
		s.line("parts", "%d files", c.Partitions)
	}
	s.line("class", "%s", strings.Join(c.Classes, ", "))
	s.line("sensor", "%s", clean(c.Sensor))
	s.line("bands", "%s", clean(strings.Join(c.Bands, ", ")))
	if c.Chunks > 0 {
		s.line("chunks", "%d", c.Chunks)
	}
	for _, f := range c.Files {
		s.line("file", "%s", clean(f))
	}
	for k, l := range c.Levels {
		histograms := ""
		if l.Histograms > 0 {
			histograms = fmt.Sprintf(", %d histograms", l.Histograms)
		}
		s.line(fmt.Sprintf("level %d", k), "%d rows, %d of them placeholders%s", l.Rows, l.Padding, histograms)
		for _, col := range l.Columns {
			s.line("column", "%s: %s", clean(col.Name), col.Type)
		}
	}
	_, err := io.WriteString(w, s.b.String())
	return err
}
