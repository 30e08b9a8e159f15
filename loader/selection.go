package loader

import (
	"iter"

	"github.com/chaski-eo/chaski/store/catalog"
)

// span returns the number of steps that rows have: of a sequence, or of the field with the most files; 0 without time.
func (d *dataset) span() int {
	n := d.steps
	for _, r := range d.rasters {
		n = max(n, r.Steps)
	}
	return n
}

// images yields the raster fields of a row by their numbers, each in all of its steps: step by step, as they are read.
func (d *dataset) images() iter.Seq2[int, int] {
	return func(yield func(field, step int) bool) {
		for step := range max(d.span(), 1) {
			for i, r := range d.rasters {
				if step < max(r.Steps, 1) && !yield(i, step) {
					return
				}
			}
		}
	}
}

// column returns the column of the table that has a step of a raster field.
func (d *dataset) column(field, step int) int { return d.files.column(field, step, d.rasters[field]) }

// available reports whether the sizes were measured.
func (z *assetSizes) available() bool { return z.each != nil || z.one != nil }

// of returns the size of the asset of a row.
func (z *assetSizes) of(row int64) catalog.Size {
	if z.one != nil {
		return *z.one
	}
	return z.each[row]
}
