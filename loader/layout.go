package loader

import (
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
)

const (
	// Estimated bytes of a row, of one value of a metadata column, and of a window beside the tensors. The layout
	// leaves as much room in front of the tensors, so they count too.
	rowBytes    = 48
	valueBytes  = 64
	windowBytes = 4 * 8 // y, x, height and width as int64
)

// maxLayouts bounds the layouts that are kept, for each group. A run has one or two: full batches, and the last one
// of an epoch. The bound is for servers, whose clients choose the rows of a ticket.
const maxLayouts = 64

// layout returns the layout of a batch, made once for each key. It fails with kind limit if the
// batch is over the memory.
func (e *Engine) layout(key layoutKey) (*batchLayout, error) {
	e.layouts.mu.Lock()
	defer e.layouts.mu.Unlock()
	if known := e.layouts.made[key]; known != nil {
		return known, nil
	}
	made := &batchLayout{}
	// The memory beside the tensors counts too: it alone bounds a spec without rasters. The layout
	// leaves that much room in front of the tensors to account for it.
	lead := key.group.lead()
	rowSize := rowBytes
	for _, kind := range key.group.columns {
		rowSize += kind.bytes
	}
	if made.bytes = key.rows * rowSize; pixels.BoundedBytes(e.options.MemoryBytes, key.rows, rowSize) < 0 {
		return nil, pixels.OverMemory("batch", key.rows, "", e.options.MemoryBytes)
	}
	made.bytes = pixels.Align64(made.bytes)
	for _, sized := range lead.ofSizes() {
		for i, r := range sized.rasters {
			checked := slices.ContainsFunc(key.group.sets, func(d *dataset) bool { return d.rasters[i].Checked() })
			if err := made.add(r.Tensor(), key, key.group.native[i], checked, e.options.MemoryBytes); err != nil {
				return nil, err
			}
		}
	}
	for _, sized := range lead.ofSizes() {
		if err := made.addVectors(sized, key.rows, e.options.MemoryBytes); err != nil {
			return nil, err
		}
	}
	// A layout is cheap to make again, so all are dropped rather than the oldest looked for.
	if len(e.layouts.made) >= maxLayouts*len(e.groups) {
		clear(e.layouts.made)
	}
	e.layouts.made[key] = made
	return made, nil
}

// add places a field's tensor, and its mask if it has one. It checks the bound first, so no
// later product can overflow.
func (l *batchLayout) add(r *pixels.Raster, key layoutKey, native, checked bool, bound int64) error {
	need := pixels.BoundedBytes(bound, key.rows, max(r.Views, 1), max(r.Steps, 1), len(r.Picked), r.H, r.W, r.To.Size())
	if need < 0 {
		each := fmt.Sprintf(" of (%d, %d, %d) %s", len(r.Picked), r.H, r.W, r.To)
		return pixels.OverMemory(fmt.Sprintf("field %q", r.Name), key.rows, each, bound)
	}
	plan, err := r.Plan(key.rows)
	if err != nil {
		return rows.InField(r.Name, err)
	}
	placed := rasterLayout{plan: plan, dtype: r.To, mask: -1}
	placed.native = key.native && native && r.WireNative(plan)
	if placed.native {
		placed.dtype = r.Native
	}
	placed.data = l.bytes
	placed.end = placed.data + plan.Len()*placed.dtype.Size()
	l.bytes = pixels.Align64(placed.end)
	if r.Validity != "" || placed.native || checked {
		placed.mask = l.bytes
		l.bytes = pixels.Align64(placed.mask + plan.Len())
	}
	if int64(l.bytes) > bound {
		return pixels.OverMemory("batch", key.rows, "", bound)
	}
	l.rasters = append(l.rasters, placed)
	return nil
}

// bytesOf returns the bytes of the largest batch of a number of rows.
func (e *Engine) bytesOf(rows int, native bool) (largest int64, _ error) {
	for _, g := range e.groups {
		layout, err := e.layout(layoutKey{g, rows, native})
		if err != nil {
			return 0, err
		}
		largest = max(largest, int64(layout.bytes))
	}
	return largest, nil
}

// BatchBytes returns the bytes of the largest batch, which has all rows of a step. It returns 0 if
// the memory cannot hold it.
func (e *Engine) BatchBytes() int64 {
	total := int64(0)
	// Both layouts must be compared, because a native one has smaller samples but always a mask.
	for _, native := range []bool{false, true} {
		largest, err := e.bytesOf(e.spec.BatchSize, native)
		if err != nil {
			return 0
		}
		total = max(total, largest)
	}
	return total
}

// BatchesFit returns how many batches of a number of rows fit into the memory, of the largest ones: at least one. If
// none fits it returns an error of kind limit.
func (e *Engine) BatchesFit(rows int) (int64, error) {
	largest, err := e.bytesOf(rows, false)
	return e.options.MemoryBytes / max(largest, 1), err
}

// addVectors places the tensors of shapes for the windows of a size.
func (l *batchLayout) addVectors(d *dataset, rows int, bound int64) error {
	for _, field := range d.vectors {
		if field.Ragged() { // counted when the batch is complete, as strings are
			l.vectors = append(l.vectors, l.bytes)
			continue
		}
		size := pixels.BoundedBytes(bound, rows, d.windows(), d.rasters[0].H, d.rasters[0].W, field.To.Size())
		if size < 0 || int64(l.bytes)+size > bound {
			return pixels.OverMemory(fmt.Sprintf("field %q", field.Name), rows, "", bound)
		}
		l.vectors = append(l.vectors, l.bytes)
		l.bytes = pixels.Align64(l.bytes + int(size))
	}
	return nil
}
