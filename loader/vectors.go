package loader

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// firstRaster returns the anchor of a draw, and its window there. A window on the ground is an asset of its own.
func (e *Engine) firstRaster(ctx context.Context, d *dataset, draw *shuffle.Draw) (catalog.Asset, shuffle.Box, error) {
	if d.ground != nil {
		a := d.windowAsset(e.plan, draw)
		return a, shuffle.Box{H: a.Index.Height, W: a.Index.Width}, nil
	}
	base, err := e.anchorOf(ctx, d, draw.Row)
	if err != nil {
		return base.Asset, shuffle.Box{}, err
	}
	number := slices.Index(d.rasters, base.raster)
	win, err := e.windowOf(ctx, d, draw, number, draw.Row, base.Asset)
	return base.Asset, win, base.Fault(err)
}

// vectorTensor is a field of shapes for the windows of a size. Its windows are numbered by row and then view.
type vectorTensor struct {
	name   string
	number int // of the field
	field  *shapes.Field
	sized  *dataset // the first view of the size
	first  int      // byte of a field that is drawn
	cuts   []shapes.Cut
}

// vectorTensors returns the tensors of all fields of shapes, by field and then size.
func (p *Pending) vectorTensors() (list []*vectorTensor) {
	lead := p.group.lead()
	for i, field := range lead.vectors {
		for _, sized := range lead.ofSizes() {
			tensor := &vectorTensor{name: sized.tensorName(field.Name), number: i, field: field, sized: sized}
			if field.Ragged() {
				tensor.cuts = make([]shapes.Cut, p.batch.Rows*sized.windows())
			} else if p.buf != nil {
				tensor.first = p.layout.vectors[sized.vectorOf(i)]
			}
			list = append(list, tensor)
		}
	}
	return list
}

// windowBytes returns the bytes of n windows of a tensor from one on. To describe a batch, it has none.
func (m *batchMemory) windowBytes(t *vectorTensor, window, n int) []byte {
	if m.buf == nil {
		return nil
	}
	lead := t.sized.rasters[0]
	size := lead.H * lead.W * t.field.To.Size()
	return m.buf[t.first+window*size:][: n*size : n*size]
}

// clearShapes clears row k of a tensor.
func (p *Pending) clearShapes(t *vectorTensor, k int) {
	n := t.sized.windows()
	if t.field.Ragged() {
		clear(t.cuts[k*n:][:n])
		return
	}
	clear(p.windowBytes(t, k*n, n))
}

// vectorsColumn returns the shapes of all fields: drawn into the memory of the batch, or cut to the windows.
func (e *Engine) vectorsColumn(p *Pending) batchColumn {
	set := p.group.lead()
	list := p.vectorTensors()
	number := len(set.rasters) + len(set.values) // of the first field of shapes
	clearRow := func(k int) {
		for _, t := range list {
			p.clearShapes(t, k)
		}
	}
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			clearRow(k) // a bad sample that this one replaces may have been drawn here
			windows := make([]shapeWindow, len(d.ofViews()))
			for i, view := range d.ofViews() {
				drawn := e.plan.View(draw, i)
				asset, win, err := e.firstRaster(p.ctx, view, &drawn)
				if err != nil {
					return err
				}
				windows[i] = shapeWindow{view, asset, win, drawn}
			}
			for i, field := range d.vectors {
				n := len(d.ofSizes())
				sizes := list[i*n:][:n]
				err := p.drawShapes(field, sizes, windows, k)
				if err == nil {
					p.noteRead(number+i, k, 0)
					continue
				}
				if err = p.lost(k, windows[0].asset.Fault(err)); err != nil {
					return err
				}
				for _, t := range sizes {
					p.clearShapes(t, k)
				}
			}
			return nil
		},
		clear: clearRow,
		size: func() (n int64) {
			for _, t := range list {
				for i := range t.cuts {
					n += t.cuts[i].Bytes()
				}
			}
			return n
		},
		members: func() (out []fieldTensor) {
			for _, t := range list {
				out = append(out, p.vectorMembers(t)...)
			}
			return out
		},
	}
}

// shapeWindow is a window of a sample that shapes are drawn into.
type shapeWindow struct {
	view  *dataset
	asset catalog.Asset
	win   shuffle.Box
	draw  shuffle.Draw
}

// drawShapes draws the shapes of a field into all windows of row k. sizes are its tensors.
func (p *Pending) drawShapes(field *shapes.Field, sizes []*vectorTensor, windows []shapeWindow, k int) error {
	for i := range windows {
		w := &windows[i]
		lead, t := w.view.rasters[0], sizes[w.view.tensor]
		window := k*t.sized.windows() + w.view.place
		pic, err := field.Picture(p.ctx, w.draw.Row, &w.asset, w.win, lead.H, lead.W, w.draw.Transform)
		switch {
		case err != nil:
			return err
		case field.Ragged():
			t.cuts[window], err = pic.Cut(p.ctx, p.engine.options.MemoryBytes)
		default:
			err = pic.Draw(p.ctx, p.windowBytes(t, window, 1))
		}
		if err != nil {
			return rows.InField(field.Name, err)
		}
	}
	return nil
}

// vectorMembers returns the tensors of a field of shapes: what was cut, or what was drawn into memory.
func (p *Pending) vectorMembers(t *vectorTensor) (out []fieldTensor) {
	if t.field.Ragged() {
		for _, tensor := range t.cutTensors() {
			out = append(out, fieldTensor{tensor, t.field.Vector.Kind})
		}
		return out
	}
	lead := t.sized.rasters[0]
	shape, axes := t.sized.viewShape(p.batch.Rows, t.sized.windows())
	return []fieldTensor{{batch.Tensor{Name: t.name, DType: t.field.To, Axes: append(axes, "y", "x"),
		Data: p.windowBytes(t, 0, p.batch.Rows*t.sized.windows()), Shape: append(shape, int64(lead.H), int64(lead.W))},
		"vector"}}
}

// cutTensors returns the tensors of a field of boxes or polygons.
func (t *vectorTensor) cutTensors() []batch.Tensor {
	v, size := t.field, t.field.To.Size()
	coords, rings, values := t.newRagged(""), t.newRagged(spec.RingsMember), t.newRagged(spec.VectorValues)
	for i := range t.cuts {
		cut := &t.cuts[i]
		for _, x := range cut.Coords {
			coords.Data = binary.LittleEndian.AppendUint32(coords.Data, math.Float32bits(x))
		}
		for _, x := range cut.Rings {
			rings.Data = binary.LittleEndian.AppendUint32(rings.Data, uint32(x))
		}
		values.Data = append(values.Data, cut.Values...)
		coords.Offsets = binary.LittleEndian.AppendUint64(coords.Offsets, uint64(len(coords.Data)/4))
		rings.Offsets = binary.LittleEndian.AppendUint64(rings.Offsets, uint64(len(rings.Data)/4))
		values.Offsets = binary.LittleEndian.AppendUint64(values.Offsets, uint64(len(values.Data)/size))
	}
	out := []batch.Tensor{coords, values}
	if v.Vector.Kind == spec.PolygonVector {
		out = []batch.Tensor{coords, rings, values}
	}
	for i, column := range v.Columns {
		extra := t.newRagged(spec.VectorValues)
		extra.Name, extra.DType = spec.ColumnMember(t.name, column), v.More[i]
		for k := range t.cuts {
			if t.cuts[k].More != nil {
				extra.Data = append(extra.Data, t.cuts[k].More[i]...)
			}
			extra.Offsets = binary.LittleEndian.AppendUint64(extra.Offsets, uint64(len(extra.Data)/extra.DType.Size()))
		}
		out = append(out, extra)
	}
	return out
}

// newRagged returns one of the tensors of a field of boxes or polygons, with room for the offsets of all windows.
func (t *vectorTensor) newRagged(suffix string) batch.Tensor {
	tensor := batch.Tensor{Name: t.name + suffix, Kind: batch.Ragged, DType: chunk.Float32,
		Offsets: make([]byte, 8, 8*(len(t.cuts)+1))}
	n := t.sized.windows()
	tensor.Shape, tensor.Axes = t.sized.viewShape(len(t.cuts)/n, n)
	axis, width := "", 0
	switch {
	case suffix == spec.VectorValues:
		tensor.DType = t.field.To
		return tensor
	case suffix == spec.RingsMember:
		tensor.DType, axis, width = chunk.Int32, "ring", shapes.RingWidth
	case t.field.Vector.Kind == spec.BoxVector:
		axis, width = "xyxy", shapes.BoxWidth
	default:
		axis, width = "xy", shapes.VertexWidth
	}
	tensor.Axes, tensor.Shape = append(tensor.Axes, axis), append(tensor.Shape, int64(width))
	return tensor
}
