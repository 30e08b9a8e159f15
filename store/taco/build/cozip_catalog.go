package build

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// namedIndex joins the descriptions of ZIPs of TACO 3.
type namedIndex struct {
	members map[string]json.RawMessage // of the first ZIP
	extent  *Extent
	bases   []int // rows of each level in the ZIPs so far
	sources []partition
	ids     map[string]string // samples, with the ZIP of each
}

// partition is what taco:sources says of a ZIP.
type partition struct {
	File     string          `json:"file"`
	Samples  int             `json:"samples"`
	Spatial  json.RawMessage `json:"spatial,omitempty"`
	Temporal json.RawMessage `json:"temporal,omitempty"`
}

// add implements generation.
func (g *namedIndex) add(ctx context.Context, x *joinedIndex, dataset *taco.Dataset, name string) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(dataset.Collection(), &doc); err != nil {
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	metadata, err := g.same(doc)
	if err != nil {
		return err
	}
	if x.names = dataset.LevelNames(); g.bases == nil {
		g.bases, x.parts = make([]int, len(x.names)), make([][]*tables.Table, len(x.names))
	}
	rows := make([]int, len(x.names))
	for i, level := range x.names {
		table, err := dataset.LevelTable(ctx, level)
		if err != nil {
			return err
		}
		rows[i] = table.Len()
		if err := g.level(ctx, x, i, table, name, metadata[level]); err != nil {
			return fault.WithPart(err, level, fault.NoOffset)
		}
	}
	for i, n := range rows {
		g.bases[i] += n
	}
	x.result.Samples += rows[0]
	return g.source(doc, name, rows[0])
}

// same checks that a ZIP is described as the first one, but for the extent. It returns taco:metadata.
func (g *namedIndex) same(doc map[string]json.RawMessage) (metadata map[string]map[string]taco3.Declared, err error) {
	if err := json.Unmarshal(doc["taco:metadata"], &metadata); err != nil {
		return nil, fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	if g.members == nil {
		g.members = doc
		return metadata, nil
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if !ofOne(name) && !sameValue(doc[name], g.members[name]) {
			return nil, unsupported(model.CollectionName, "%s differs from %[1]s of %q", name, g.sources[0].File)
		}
	}
	for name := range g.members {
		if doc[name] == nil && !ofOne(name) {
			return nil, unsupported(model.CollectionName, "has no %s, which %q has", name, g.sources[0].File)
		}
	}
	return metadata, nil
}

// ofOne reports whether a member is about the samples of one ZIP.
func ofOne(name string) bool {
	return name == "extent" || name == newMember("taco:subset_of") || name == newMember("taco:subset_date")
}

// sameValue reports whether two texts are one JSON value, whatever the order of members.
func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// level adds the table of a level. Numbers of rows are counted through all ZIPs; paths are those in the ZIP.
func (g *namedIndex) level(ctx context.Context, x *joinedIndex, i int, t *tables.Table, name string,
	declared map[string]taco3.Declared) error {
	columns := &Columns{}
	above := 0
	if i > 0 {
		above = g.bases[slices.Index(x.names, taco3.Above(x.names[i]))]
	}
	for k, column := range t.Columns() {
		values, err := t.At(ctx, k)
		if err != nil {
			return err
		}
		typ := portable(column.Type)
		switch column.Name {
		case model.ColumnCurrent, model.ColumnParent:
			base := g.bases[i]
			if column.Name == model.ColumnParent {
				base = above
			}
			numbers := slices.Clone(values.Ints())
			for row := range numbers {
				numbers[row] += int64(base)
			}
			typ, values = rowID, tables.NewInts(position, numbers, nil)
		case model.ColumnRelative:
			typ = nameType
		case model.ColumnID:
			typ = nameType
			for row := range values.Len() {
				id := values.Str(row)
				if in, found := g.ids[id]; found {
					return unsupported("sample "+strconv.Quote(id), "%q has one of this id", in)
				}
				g.ids[id] = name
			}
		default:
			if d, ok := declared[column.Name]; ok {
				typ = d.Form(typ)
			}
		}
		columns.addAs(column.Name, typ, values)
	}
	columns.addAs(taco.SourceColumn, nameType, Texts(t.Len(), func(int) string { return name }))
	x.parts[i] = append(x.parts[i], columns.Table(t.Len()))
	return x.count(ctx, t)
}

// count counts the files of a table.
func (x *joinedIndex) count(ctx context.Context, t *tables.Table) error {
	if t.Index(model.ColumnSize) < 0 {
		return nil // of samples
	}
	sizes, err := t.Column(ctx, model.ColumnSize)
	for i := 0; err == nil && i < sizes.Len(); i++ {
		if !sizes.Null(i) {
			x.result.Files++
			x.result.Bytes += sizes.Int(i)
		}
	}
	return err
}

// source adds what taco:sources says of a ZIP.
func (g *namedIndex) source(doc map[string]json.RawMessage, name string, samples int) error {
	part := partition{File: name, Samples: samples}
	if doc["extent"] != nil {
		var e Extent
		var texts struct{ Spatial, Temporal json.RawMessage }
		if json.Unmarshal(doc["extent"], &e) != nil || json.Unmarshal(doc["extent"], &texts) != nil {
			return badMember("extent is %.80s", doc["extent"])
		}
		if part.Spatial = texts.Spatial; e.Temporal != nil {
			part.Temporal = texts.Temporal
		}
		switch {
		case len(e.Spatial) != 4:
		case g.extent == nil:
			g.extent = &e
		default:
			g.extent.cover(&e)
		}
	}
	g.sources = append(g.sources, part)
	return nil
}

// document implements generation: there is one form.
func (g *namedIndex) document(x *joinedIndex, _ Form) ([]byte, error) {
	members := []jsonMember{}
	for _, name := range slices.Sorted(maps.Keys(g.members)) {
		if !ofOne(name) && name != sourcesMember {
			members = append(members, jsonMember{name, g.members[name]})
		}
	}
	if g.extent != nil {
		members = append(members, jsonMember{"extent", g.extent})
	}
	members = append(members, jsonMember{sourcesMember,
		object{{"samples", x.result.Samples}, {"partitions", g.sources}}})
	return object(members).lines()
}
