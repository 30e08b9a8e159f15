package containers

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chaski-eo/chaski/loader/resources"
)

// Info describes a container. Fields that the container does not state are left out.
type Info struct {
	Path    string      `json:"path"`
	Kind    string      `json:"kind"`
	Files   []string    `json:"files,omitempty"` // the containers that a TACOLLECTION.json joins
	ID      string      `json:"id,omitempty"`
	Version string      `json:"taco_version,omitempty"`
	Title   string      `json:"title,omitempty"`
	Tasks   []string    `json:"tasks,omitempty"`
	Extent  *ExtentInfo `json:"extent,omitempty"`
	// Structure is the files of each sample of TACO 3, of a sequence with how many a sample has.
	Structure []string `json:"structure,omitempty"`
	// Partitions is the number of files into which a Tortilla says that it is divided.
	Partitions int         `json:"partitions,omitempty"`
	Classes    []string    `json:"classes,omitempty"` // of level 0
	Sensor     string      `json:"sensor,omitempty"`
	Bands      []string    `json:"bands,omitempty"`
	Chunks     int         `json:"chunks,omitempty"` // that have a row of their own
	Levels     []LevelInfo `json:"levels"`
}

// ExtentInfo is the place and time of all samples, as the collection document states them.
type ExtentInfo struct {
	Spatial  []float64 `json:"spatial"`
	Temporal []any     `json:"temporal"`
}

// LevelInfo describes a level of a container.
type LevelInfo struct {
	Rows    int `json:"rows"`
	Padding int `json:"padding"`
	// Histograms is the number of rows that hold the histograms of a streaming TACO. They are not
	// samples.
	Histograms int          `json:"histograms,omitempty"`
	Classes    []string     `json:"classes,omitempty"`
	Columns    []ColumnInfo `json:"columns"`
}

// ColumnInfo is the name and type of a column of a level.
type ColumnInfo struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Describe implements survey.Describer (*Info).
func (kind) Describe(ctx context.Context, path string, o resources.Options) (any, error) {
	dataset, err := Open(ctx, o.Opener, path, "")
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	i := &Info{Path: path, Kind: dataset.Form().String()}
	if parts := dataset.Parts(); len(parts) > 1 {
		i.Files = parts
	}
	i.collection(dataset.Collection())
	i.Partitions = dataset.Partitions()
	if sensor, ok, err := dataset.Sensor(); err != nil {
		return nil, err
	} else if ok {
		i.Sensor = sensor.Name
		for _, b := range sensor.Bands {
			i.Bands = append(i.Bands, b.Name)
		}
	}
	if slices.Contains(dataset.SQLTables(), "chunks") { // a streaming TACO
		table, err := dataset.SQLTable(ctx, "chunks")
		if err != nil {
			return nil, err
		}
		i.Chunks = table.Len()
	}
	// Reading a level of a nested Tortilla may add levels, so Levels must be called anew each time.
	for k := 0; k < dataset.Levels(); k++ {
		table, err := dataset.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		visible, err := dataset.Visible(ctx, k)
		if err != nil {
			return nil, err
		}
		histograms, err := dataset.Histograms(ctx, k)
		if err != nil {
			return nil, err
		}
		level := LevelInfo{
			Rows: table.Len(), Padding: table.Len() - len(visible) - histograms, Histograms: histograms,
		}
		if level.Classes, err = dataset.Classes(ctx, k); err != nil {
			return nil, err
		}
		if k == 0 {
			i.Classes = level.Classes
		}
		for _, c := range table.Columns() {
			level.Columns = append(level.Columns, ColumnInfo{c.Name, c.Type.String()})
		}
		i.Levels = append(i.Levels, level)
	}
	return i, nil
}

// collection takes fields from a collection document. It skips fields of an unexpected type.
func (i *Info) collection(doc json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(doc, &fields) != nil {
		return
	}
	for name, target := range map[string]any{
		"id": &i.ID, "taco_version": &i.Version, "title": &i.Title, "tasks": &i.Tasks, "extent": &i.Extent,
		"taco:version": &i.Version, "taco:structure": &i.Structure,
	} {
		if raw, ok := fields[name]; ok {
			// A wrong type is not an error, because the document only informs people.
			_ = json.Unmarshal(raw, target)
		}
	}
	var task string // TACO 0.2 has "task", a string, in place of "tasks"
	if raw, ok := fields["task"]; ok && json.Unmarshal(raw, &task) == nil && task != "" {
		i.Tasks = append(i.Tasks, task)
	}
}
