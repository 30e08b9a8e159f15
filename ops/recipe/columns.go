package recipe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// Columns that are computed, beside the columns of package columns.
const (
	columnSource = "chaski:source" // the id of the chip's sample in the source
	columnWindow = "chaski:window" // y, x, height, width in pixels of the first field's raster
	columnSplit  = "split"
)

// ofHeaders are the columns with a copy of the headers of files.
var ofHeaders = []string{columns.ChunkIndex, columns.RumiHeader, catalog.NamesColumn}

var computed = append([]string{columnSource, columnWindow, columnSplit, columns.CRS, columns.Shape, columns.Transform,
	columns.Centroid, columns.Stats}, ofHeaders...)

// table holds the values of the columns, one row per chip.
type table struct {
	sources []string
	rows    []int
	splits  []string
	files   [][]file // of each field, without their bytes
}

func (t *table) len() int { return len(t.sources) }

// add adds a chip.
func (t *table) add(c *chip) {
	t.sources, t.rows, t.splits = append(t.sources, c.Source), append(t.rows, int(c.Row)), append(t.splits, c.Split)
	if t.files == nil {
		t.files = make([][]file, len(c.Files))
	}
	for k, file := range c.Files {
		file.Bytes = nil
		if n := len(t.files[k]); n > 0 && t.files[k][n-1].Names == file.Names {
			// The string of the chip before, so that one is in memory for all chips.
			file.Names = t.files[k][n-1].Names
		}
		t.files[k] = append(t.files[k], file)
	}
}

// carried is a column of the source that the container gets.
type carried struct{ from, to string }

// choose leaves the columns of the source that the recipe names.
func (m *Maker) choose(container bool) error {
	var names []string
	for _, name := range m.recipe.Columns {
		switch {
		case name == "*":
			for _, c := range m.data.Columns() {
				if !slices.Contains(names, c.Name) && !m.own(c.Name, container) {
					names = append(names, c.Name)
				}
			}
		case m.data.Index(name) < 0:
			return fault.WithFile(fault.New(fault.NotFound, "column "+name, fault.NoOffset,
				"the source has no such column"), m.recipe.Source)
		case m.own(name, container):
			return fmt.Errorf("recipe: columns has %q, which the container has itself", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	for _, name := range names {
		c := carried{name, columns.Rename(name)}
		if c.to != name && slices.Contains(names, c.to) {
			return fmt.Errorf("recipe: columns has %q, which %q becomes in a container", c.to, name)
		}
		m.names = append(m.names, c)
	}
	return nil
}

// own reports whether a column of the source is one that the container computes, or that describes the source's files.
// container says that the source is a container, whose ids and types are not a user's.
func (m *Maker) own(name string, container bool) bool {
	switch name {
	case "id", "type":
		return container
	case "path", "uri", "tortilla:id", "tortilla:offset", "tortilla:length", "taco:header":
		return true
	case columnSplit:
		return m.recipe.Split != nil
	}
	return strings.HasPrefix(name, "internal:") || slices.Contains(computed, name)
}

// columns returns the columns of the levels.
func (m *Maker) columns(ctx context.Context) ([]*tables.Table, error) {
	table := &m.table
	single := len(table.files) == 1
	top := &columns.Set{}
	if err := m.carried(ctx, top); err != nil {
		return nil, err
	}
	top.Add(columnSource, tables.NewStrings(table.sources, nil))
	if m.recipe.Windows.inPixels() {
		top.Add(columnWindow, build.Integers(table.len(), func(i int) []int64 { return table.files[0][i].Window[:] }))
	}
	if m.recipe.Split != nil {
		top.Add(columnSplit, tables.NewStrings(table.splits, nil))
	}
	// The files of each chip, one after the other, and the first one of each.
	var files, first []*columns.Raster
	for i := range table.len() {
		for k := range table.files {
			files = append(files, &table.files[k][i].Raster)
		}
		first = append(first, &table.files[0][i].Raster)
	}
	place := []string{columns.CRS, columns.Shape, columns.Transform}
	ofFiles := append(slices.Clone(place), ofHeaders...)
	if *m.recipe.Statistics {
		ofFiles = append(ofFiles, columns.Stats)
	}
	place = append(place, columns.Centroid)
	if single {
		place = append(place, ofFiles...)
	}
	top.Rasters(first, place)
	levels := []*columns.Set{top}
	if !single {
		below := &columns.Set{}
		below.Rasters(files, ofFiles)
		levels = append(levels, below)
	}
	var out []*tables.Table
	for _, set := range levels {
		set.DropNulls(ofHeaders...)
		out = append(out, set.Table())
	}
	return out, nil
}

// carried adds the columns of the source.
func (m *Maker) carried(ctx context.Context, to *columns.Set) error {
	for _, carried := range m.names {
		values, err := m.data.Take(m.table.rows).Column(ctx, carried.from)
		if err != nil {
			return err
		}
		// Without secrets, because a container is published.
		to.Add(carried.to, values.MapStrings(fault.WithoutSecrets))
	}
	return nil
}
