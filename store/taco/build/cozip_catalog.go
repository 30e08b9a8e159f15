package build

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// cozips are the joined tables of several ZIPs of TACO 3.
type cozips struct {
	names   []string
	parts   [][]*tables.Table
	members map[string]json.RawMessage // of the first ZIP
	extent  *Extent
	bases   []int // rows of each level in the ZIPs so far
	sources []partition
	ids     map[string]string // samples, with the ZIP of each
	result  Result
}

// partition is what taco:sources says of a ZIP.
type partition struct {
	File     string          `json:"file"`
	Samples  int             `json:"samples"`
	Spatial  json.RawMessage `json:"spatial,omitempty"`
	Temporal json.RawMessage `json:"temporal,omitempty"`
}

// add implements contents.
func (x *cozips) add(ctx context.Context, dataset *taco.Dataset, name string) error {
	if dataset.Form() != Cozip || len(dataset.Parts()) != 1 {
		return unsupported("file", "is a %s: an index of TACO 3 is of ZIPs of TACO 3", dataset.Form())
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(dataset.Collection(), &doc); err != nil {
		return fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	metadata, err := x.same(doc)
	if err != nil {
		return err
	}
	names := dataset.LevelNames()
	x.names = names
	if x.bases == nil {
		x.bases, x.parts = make([]int, len(names)), make([][]*tables.Table, len(names))
	}
	rows := make([]int, len(names))
	for i, level := range names {
		table, err := dataset.LevelTable(ctx, level)
		if err != nil {
			return err
		}
		rows[i] = table.Len()
		if err := x.level(ctx, i, table, name, metadata[level]); err != nil {
			return fault.WithPart(err, level, fault.NoOffset)
		}
	}
	for i, n := range rows {
		x.bases[i] += n
	}
	return x.source(doc, name, rows[0])
}

// same checks that a ZIP is described as the first one, but for the extent. It returns taco:metadata.
func (x *cozips) same(doc map[string]json.RawMessage) (metadata map[string]map[string]taco3.Declared, err error) {
	if err := json.Unmarshal(doc["taco:metadata"], &metadata); err != nil {
		return nil, fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	if x.members == nil {
		x.members = doc
		return metadata, nil
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if !ofOne(name) && !sameValue(doc[name], x.members[name]) {
			return nil, unsupported(collName, "%s differs from %[1]s of %q", name, x.sources[0].File)
		}
	}
	for name := range x.members {
		if doc[name] == nil && !ofOne(name) {
			return nil, unsupported(collName, "has no %s, which %q has", name, x.sources[0].File)
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
func (x *cozips) level(ctx context.Context, i int, t *tables.Table, name string,
	declared map[string]taco3.Declared) error {
	columns := &columns{}
	above := 0
	if i > 0 {
		above = x.bases[slices.Index(x.names, taco3.Above(x.names[i]))]
	}
	for k, column := range t.Columns() {
		values, err := t.At(ctx, k)
		if err != nil {
			return err
		}
		typ := portable(column.Type)
		switch column.Name {
		case model.ColumnCurrent, model.ColumnParent:
			base := x.bases[i]
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
				if err := unique(x.ids, values.Str(row), name); err != nil {
					return err
				}
			}
		default:
			if d, ok := declared[column.Name]; ok {
				typ = d.Form(typ)
			}
		}
		columns.addAs(column.Name, typ, values)
	}
	columns.addAs(taco.SourceColumn, nameType, Texts(t.Len(), func(int) string { return name }))
	x.parts[i] = append(x.parts[i], columns.table(t.Len()))
	return x.count(ctx, t)
}

// count counts the files of a table.
func (x *cozips) count(ctx context.Context, t *tables.Table) error {
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
func (x *cozips) source(doc map[string]json.RawMessage, name string, samples int) error {
	part := partition{File: name, Samples: samples}
	x.result.Samples += samples
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
		case x.extent == nil:
			x.extent = &e
		default:
			x.extent.cover(&e)
		}
	}
	x.sources = append(x.sources, part)
	return nil
}

// counts implements contents.
func (x *cozips) counts() *Result { return &x.result }

// encoded implements contents: there is one form.
func (x *cozips) encoded(ctx context.Context, _ Form) (out []entry, err error) {
	for i, level := range x.names {
		table, err := tables.Concat(x.parts[i], tables.Strict)
		if err != nil {
			return nil, fault.WithPart(err, level, fault.NoOffset)
		}
		// Concat leaves out what taco:metadata says of the types, so that they are set again.
		first := x.parts[i][0].Columns()
		table = table.Retype(func(k int, _ tables.Column) tables.Type { return first[k].Type })
		data, err := encodedNamed(ctx, level, table)
		if err != nil {
			return nil, fault.WithPart(err, level, fault.NoOffset)
		}
		out = append(out, entry{taco3.TableName(level), data})
	}
	members := []member{}
	for _, name := range slices.Sorted(maps.Keys(x.members)) {
		if !ofOne(name) && name != sourcesMember {
			members = append(members, member{name, x.members[name]})
		}
	}
	if x.extent != nil {
		members = append(members, member{"extent", x.extent})
	}
	members = append(members, member{sourcesMember,
		object{{"samples", x.result.Samples}, {"partitions", x.sources}}})
	doc, err := object(members).lines()
	return append(out, entry{collName, doc}), err
}
