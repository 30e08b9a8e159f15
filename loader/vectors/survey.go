package vectors

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/spec"
)

// survey is what the values of all files of a field are.
type survey struct {
	columnSurvey
	more   []columnSurvey // of Vector.Columns
	shapes int            // in the files
	plain  bool           // a file has no values, as the field names no column and its format has no classes

	mu sync.Mutex // files are read several at a time
}

// columnSurvey is what the values of a column are.
type columnSurvey struct {
	any, strings, floats bool
	names                map[string]bool
}

// add adds the values of a file.
func (s *survey) add(layer *vector.Layer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shapes += layer.Len()
	s.plain = s.plain || layer.Values == nil && layer.Len() > 0
	s.columnSurvey.add(layer.Values)
	if s.names != nil { // classes that the file lists keep their numbers where no shape has them
		for _, name := range layer.Listed {
			s.names[name] = true
		}
	}
	for i, values := range layer.Columns {
		if i == len(s.more) {
			s.more = append(s.more, columnSurvey{})
		}
		if s.more[i].add(values); s.more[i].strings {
			return fault.New(fault.Unsupported, "columns", "column %d of them has strings: take it as "+
				"column of another field, which numbers them", i)
		}
	}
	if len(s.names) > spec.MaxClasses {
		return fault.New(fault.Limit, "column", "over %d different strings: give classes", spec.MaxClasses)
	}
	return nil
}

// done reports whether more files tell nothing new about a field.
func (s *survey) done(v *field) bool {
	return len(v.Columns) == 0 && (s.plain || s.any && (!s.strings || v.Classes != nil))
}

func (f *columnSurvey) add(values *tables.Vector) {
	if values == nil || values.AllNull() {
		return
	}
	f.any, f.strings = true, f.strings || values.Kind() == tables.String
	f.floats = f.floats || values.Kind() == tables.Float64
	if f.names == nil {
		f.names = map[string]bool{}
	}
	_, names := values.Distinct()
	for _, name := range names {
		f.names[name] = true
	}
}

// classes returns the strings in their order, with the one of shapes that have none.
func (f *columnSurvey) classes(missing string) []string {
	if missing != "" {
		f.names[missing] = true
	}
	return slices.Sorted(maps.Keys(f.names))
}

// survey reads the files of a field as far as its classes and dtypes depend on them: all of them if their strings are
// to be found or there are more columns, otherwise until one has a value of the column. It leaves out files that are
// damaged, whose samples are bad.
func (v *field) survey(ctx context.Context) (*survey, error) {
	all := &survey{more: make([]columnSurvey, len(v.Columns))}
	files := v.each
	look := func(ctx context.Context, row int64) error {
		reader, path, err := files.openRow(ctx, row)
		if fault.KindOf(err) != 0 && path != "" {
			return nil // the sample is bad when it is read
		}
		if err != nil || reader == nil {
			return err
		}
		defer func() { _ = reader.Close() }() // it is only read
		layer, _, err := v.read(ctx, reader, path)
		if err == nil {
			err = all.add(layer)
		}
		if layer == nil && fault.KindOf(err) != 0 {
			return nil // likewise
		}
		return fault.WithFile(err, path)
	}
	if v.Vector.Kind == spec.InstanceVector || v.Classes != nil && len(v.Columns) == 0 {
		return all, nil
	}
	// Each block of files is read as a whole: the same files are read on all machines.
	n, block := files.table.N, int64(1)
	for row := int64(0); row < n && !all.done(v); row, block = row+block, min(2*block, 1<<10) {
		err := each.Of(ctx, min(block, n-row), 4*runtime.GOMAXPROCS(0), func(ctx context.Context, i int64) error {
			return look(ctx, row+i)
		})
		if err != nil {
			return nil, err
		}
	}
	if all.shapes == 0 && n > 0 {
		v.log(v.Pattern, vector.Remarks{noShapes: {}})
	}
	if !all.any && v.Column != "" && all.shapes > 0 {
		return nil, fault.New(fault.NotFound, "column "+v.Column, "no shape of %d files has it", n)
	}
	var err error
	for i := range all.more {
		if err == nil && !all.more[i].any && all.shapes > 0 {
			err = fmt.Errorf("vector: columns has %q: no shape of %d files has it", v.Columns[i], n)
		}
	}
	return all, err
}
