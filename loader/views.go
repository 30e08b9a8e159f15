package loader

import (
	"fmt"
	"slices"
)

// ofViews returns the dataset for each window of a sample.
func (d *dataset) ofViews() []*dataset {
	if d.views == nil {
		return []*dataset{d}
	}
	return d.views.all
}

// view returns the dataset for window number i of a sample.
func (d *dataset) view(i int) *dataset {
	if d.views == nil {
		return d
	}
	return d.views.all[i]
}

// viewShape returns the shape and the axes of a tensor with a value for each of n windows of each row.
func (v *viewing) viewShape(rows, n int) ([]int64, []string) {
	if v.views == nil {
		return []int64{int64(rows)}, []string{"n"}
	}
	return []int64{int64(rows), int64(n)}, []string{"n", "v"}
}

// windows returns how many windows of a sample have the size of d.
func (d *dataset) windows() int {
	if d.views == nil {
		return 1
	}
	return d.rasters[0].Views
}

// vectorOf returns the index in layout.vectors of the tensor of a field of shapes.
func (d *dataset) vectorOf(field int) int { return d.tensor*len(d.vectors) + field }

// ofSizes returns the first view of each size, which stands for the tensors of that size.
func (d *dataset) ofSizes() []*dataset {
	if d.views == nil {
		return []*dataset{d}
	}
	return d.views.sizes
}

// layoutOf returns the index in layout.rasters of the tensor of a field.
func (d *dataset) layoutOf(field int) int { return d.tensor*len(d.rasters) + field }

// tensorName returns the name of a tensor that a field, or its validity, has for the view: with several sizes it has
// the size.
func (d *dataset) tensorName(name string) string {
	switch {
	case name == "" || d.views == nil || len(d.views.sizes) < 2:
		return name
	case d.sampler.Height == d.sampler.Width:
		return fmt.Sprintf("%s.%d", name, d.sampler.Height)
	}
	return fmt.Sprintf("%s.%dx%d", name, d.sampler.Height, d.sampler.Width)
}

// sameViews fails if the views of a source differ from the first source's.
func (d *dataset) sameViews(first *dataset) error {
	same := func(a, b *dataset) bool {
		return a.sampler.Height == b.sampler.Height && a.sampler.Width == b.sampler.Width
	}
	if d.views == first.views || slices.EqualFunc(d.ofViews(), first.ofViews(), same) {
		return nil
	}
	return fmt.Errorf("samples have %d windows, and in the first source %d, or windows of other sizes: a mixture's "+
		"batches need the same", len(d.ofViews()), len(first.ofViews()))
}
