package loader

import (
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
)

// fileSteps has for each raster field the steps of time that are files of a row, nil for a field without such steps.
type fileSteps []*rows.Steps

// some reports whether a field has such steps.
func (f fileSteps) some() bool {
	return slices.ContainsFunc(f, func(s *rows.Steps) bool { return s != nil })
}

// count returns how many files of a row a field may have.
func (f fileSteps) count(field int) int {
	if s := f[field]; s != nil {
		return len(s.Fields)
	}
	return 1
}

// column returns the column of the table that has a step of field number i.
func (f fileSteps) column(i, step int, field *pixels.Raster) int {
	if s := f[i]; s != nil {
		return s.Fields[step]
	}
	return field.TableColumn
}

// padding reports whether a field has no file for a step of a row, or the row is -1.
func (f fileSteps) padding(field, step int, row int64) bool {
	s := f[field]
	return row < 0 || s != nil && s.Padding(step, row)
}

// present reports whether a row has a file for a step of a field.
func (f fileSteps) present(step int, row int64) bool {
	for i, s := range f {
		if s != nil && step < len(s.Fields) && !f.padding(i, step, row) {
			return true
		}
	}
	return false
}

// stepShape returns the shape and the axes of a tensor with a value for each step of each row, (n t), or without steps
// for each row, (n).
func stepShape(rows, steps int) ([]int64, []string) {
	if steps > 0 {
		return []int64{int64(rows), int64(steps)}, []string{"n", "t"}
	}
	return []int64{int64(rows)}, []string{"n"}
}

// shapeText returns the shape and dtype of a row of a field, for errors.
func shapeText(r *pixels.Raster) string {
	s := fmt.Sprintf("(%d, %d, %d) %s", len(r.Picked), r.H, r.W, r.To)
	if r.Steps > 0 {
		s = fmt.Sprintf("%d steps of %s", r.Steps, s)
	}
	return s
}
