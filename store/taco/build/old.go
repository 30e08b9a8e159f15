package build

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
)

// oldVersion is the version of the TACO specification of StreamingTaco and PlainTaco.
const oldVersion = "0.2.0"

// oldTasks are the values of task in TACO 0.2.0 ("Task Extension").
var oldTasks = []string{"Regression", "Classification", "Scene Classification", "Object Detection", "Segmentation",
	"Semantic Segmentation", "Instance Segmentation", "Panoptic Segmentation", "Similarity Search", "Generative",
	"Image Captioning", "Super Resolution", "Denoising", "Inpainting", "Colorization", "Style Transfer", "Deblurring",
	"Dehazing", "General"}

// age turns the levels and the description into the forms of TACO 0.2.
func (w *writer) age(ctx context.Context) (err error) {
	if err := w.located(ctx, nil); err != nil {
		return err
	}
	for k, l := range w.levels {
		if l.Table, err = older(ctx, l.Table); err != nil {
			return fault.WithPart(err, levelName(k), fault.NoOffset)
		}
	}
	if w.o.Form == StreamingTaco {
		return w.addHistograms(ctx)
	}
	return nil
}

// oldDocument returns the COLLECTION of a TACO 0.2. tasks that task cannot name stay in a member of their own.
func (c *Collection) oldDocument() ([]byte, error) {
	extent := c.Extent
	if extent == nil {
		extent = world()
	}
	temporal := []int64{}
	for i, text := range extent.Temporal {
		times, err := taco.ParseTimes(text)
		if err != nil || strings.Contains(text, "/") {
			return nil, unsupported(collName,
				"extent.temporal has %q: it must be a date or a timestamp such as 2024-05-01T10:00:00Z", text)
		}
		us := []int64{times.First, times.Last}[i] // a date is its first instant as a start, and its last as an end
		temporal = append(temporal, (us-(us%1000+1000)%1000)/1000)
	}
	if len(temporal) == 0 {
		temporal = allTime[:]
	}
	task := "General"
	for _, name := range oldTasks {
		if taskName(name) == taskName(c.Tasks[0]) {
			task = name
		}
	}
	members := []member{{"id", c.ID}, {"taco_version", oldVersion}, {"dataset_version", c.DatasetVersion},
		{"description", c.Description}, {"licenses", c.Licenses},
		{"extent", object{{"spatial", extent.Spatial}, {"temporal", temporal}}},
		{"providers", c.Providers}, {"curators", c.Curators}, {"task", task}}
	if c.Title != "" {
		members = append(members, member{"title", c.Title})
	}
	if c.Keywords != nil {
		members = append(members, member{"keywords", c.Keywords})
	}
	if len(c.Tasks) > 1 || taskName(task) != c.Tasks[0] {
		members = append(members, member{"tasks", c.Tasks})
	}
	extra, err := filled(c.More)
	if err != nil {
		return nil, err
	}
	delete(extra, "task") // it is written above
	members = append(members, oldExtensions(extra)...)
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			members = append(members, member{name, extra[name]})
		}
	}
	return object(members).MarshalJSON()
}

// addHistograms adds the folder of histograms that the options make, which is the last sample of level 0.
func (w *writer) addHistograms(ctx context.Context) error {
	top := w.levels[0]
	for i := range top.Rows {
		if top.Rows[i].ID == tortilla.HistogramID && top.Rows[i].Folder {
			return unsupported("sample "+strconv.Quote(tortilla.HistogramID),
				"is a folder: that of this name has the histograms of a streaming TACO")
		}
	}
	if w.o.Histograms == nil || len(w.levels) < 2 {
		return nil
	}
	made, err := w.o.Histograms(ctx, shown(w.levels))
	if err != nil || len(made) == 0 {
		return err
	}
	tree := newTree()
	for _, h := range made {
		tree.add(h.Path, Sample{Bytes: h.Bytes})
	}
	w.histograms = true
	folder := &Sample{ID: tortilla.HistogramID, Children: tree.top}
	if _, err := (&grower{form: w.o.Form, levels: w.levels}).grow(0, 0, folder); err != nil {
		return err
	}
	w.levels[len(w.levels)-1].first = nil
	for k, level := range w.levels {
		missing := tables.New(len(level.Rows)-level.Table.Len(), nil, nil)
		if missing.Len() == 0 {
			continue
		}
		if level.Table, err = tables.Concat([]*tables.Table{level.Table, missing}, tables.Mixed); err != nil {
			return fault.WithPart(err, levelName(k), fault.NoOffset)
		}
	}
	return nil
}
