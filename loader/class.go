package loader

import (
	"context"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// newClassField compiles a field whose values are the numbers of the strings of a column. setClasses sets the classes.
func newClassField(f Field, column int) valueField {
	v := valueField{name: f.Name, column: column, kind: catalog.Int, to: chunk.Int64, classes: map[string]int64{}}
	if f.DType != "native" {
		v.to, _ = chunk.ParseDType(f.DType) // Validate has checked the name
	}
	return v
}

// class returns the number of a string.
func (v valueField) class(val catalog.Value) (catalog.Value, error) {
	n, ok := v.classes[val.Text]
	switch {
	case val.Null || val.Text == "":
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset, "no class")
	case !ok:
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset,
			"%.64q is not one of the %d classes", val.Text, len(v.classes))
	}
	return catalog.Value{Int: n}, nil
}

// setClasses sets the values of all classes, and the classes of the spec if it has none: one list for all sources, so
// that a string has one value in a batch.
func (e *Engine) setClasses(ctx context.Context) error {
	for i := range spec.RowFields(e.spec.Fields) {
		f := &e.spec.Fields[i]
		if f.Kind != spec.ClassField {
			continue
		}
		if f.Classes == nil {
			found, err := e.findClasses(ctx, i)
			if err != nil {
				return rows.InField(f.Name, err)
			}
			f.Classes = found
		}
		for _, d := range e.sets {
			at := slices.IndexFunc(d.values, func(v valueField) bool { return v.column == i })
			for n, c := range f.Classes {
				d.values[at].classes[c] = int64(n)
			}
		}
	}
	return nil
}

// findClasses returns the strings of the column of a field in all sources, in the order of their bytes.
func (e *Engine) findClasses(ctx context.Context, field int) ([]string, error) {
	seen := map[string]bool{}
	dtype := e.spec.Fields[field].DType
	most := spec.ClassLimit(dtype)
	for _, d := range e.sets {
		// The table has only selected rows then, and other rows would give other numbers to the same strings.
		if d.extras.Selected && (len(d.source.Where) > 0 || d.source.Split != nil) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "classes", fault.NoOffset,
				"only the selected rows of a container are known: give the classes"), d.source.Source)
		}
		for row := range d.table.Len() {
			v, err := d.table.Value(ctx, field, row)
			switch {
			case err != nil:
				return nil, err
			case v.Null || v.Text == "" || seen[v.Text]:
				continue
			}
			if seen[v.Text] = true; len(seen) > most {
				return nil, fault.WithFile(fault.New(fault.Limit, "classes", fault.NoOffset,
					"over %d strings, the most for dtype %q", most, dtype), d.source.Source)
			}
		}
	}
	if len(seen) == 0 {
		return nil, fault.New(fault.NotFound, "classes", fault.NoOffset, "no sample has one")
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
