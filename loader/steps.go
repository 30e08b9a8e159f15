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

// stepsInFiles returns the largest number of steps that a field picks of its files, 0 if no field does.
func (d *dataset) stepsInFiles() (most int) {
	for _, r := range d.rasters {
		if r.PicksSteps() && d.ground == nil {
			most = max(most, r.TimeSteps)
		}
	}
	return most
}

// expectSteps prepares what hasSteps notes.
func (p *Pending) expectSteps() {
	lead := p.group.lead()
	if p.engine.spec.SequenceOf(&lead.source) != nil || lead.files.some() || lead.stepsInFiles() == 0 {
		return
	}
	p.inFiles = make([][]byte, len(lead.rasters))
	for i, r := range lead.rasters {
		if r.PicksSteps() {
			p.inFiles[i] = make([]byte, p.batch.Rows*r.TimeSteps)
		}
	}
}

// hasSteps notes which steps of time the file of a raster field has, for stepsColumn. Workers call it at the same time
// for different fields and rows.
func (p *Pending) hasSteps(u workUnit, bands *pixels.PickedBands) {
	if p.inFiles == nil || !p.group.lead().rasters[u.field].PicksSteps() {
		return
	}
	steps := p.inFiles[u.field][u.row*bands.TimeSteps:][:bands.TimeSteps]
	for i := range steps {
		steps[i] = 1
	}
	for _, t := range bands.Lacking {
		steps[t] = 0
	}
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
