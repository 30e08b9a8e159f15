package loader

import (
	"fmt"
	"slices"
)

// A sample may have several windows, its views. Each is a dataset of its own with another sampler, as windows of
// another size are. All views of a field are one unit of work, which decodes the chunks that several of them need once.

// ofViews returns the dataset for each window of a sample.
func (d *dataset) ofViews() []*dataset {
	if d.views == nil {
		return []*dataset{d}
	}
	return d.views
}

// view returns the dataset for window number i of a sample.
func (d *dataset) view(i int) *dataset {
	if d.views == nil {
		return d
	}
	return d.views[i]
}

// viewShape returns the shape and the axes of a tensor with a value for each of n windows of each row.
func (d *dataset) viewShape(rows, n int) ([]int64, []string) {
	if d.views == nil {
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
	if d.tensors == nil {
		return []*dataset{d}
	}
	return d.tensors
}

// layoutOf returns the index in layout.rasters of the tensor of a field.
func (d *dataset) layoutOf(field int) int { return d.tensor*len(d.rasters) + field }

// tensorName returns the name of a tensor that a field, or its validity, has for the view: with several sizes it has
// the size.
func (d *dataset) tensorName(name string) string {
	switch {
	case name == "" || len(d.tensors) < 2:
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
	if slices.EqualFunc(d.views, first.views, same) {
		return nil
	}
	return fmt.Errorf("samples have %d windows, and in the first source %d, or windows of other sizes: a mixture's "+
		"batches need the same", max(len(d.views), 1), max(len(first.views), 1))
}
