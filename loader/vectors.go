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

// vectorsColumn returns the shapes of all fields: drawn into the memory of the batch, or cut to the windows.
func (e *Engine) vectorsColumn(p *Pending) batchColumn {
	set := p.group.lead()
	number := len(set.rasters) + len(set.values)   // of the first field of shapes
	cuts := make([][]shapes.Cut, len(set.vectors)) // for each field of boxes or polygons by row
	for i := range cuts {
		cuts[i] = make([]shapes.Cut, p.batch.Rows)
	}
	// memory returns the bytes of n rows of a field that is drawn. To describe a batch, it has none.
	memory := func(i, row, n int) []byte {
		if p.buf == nil {
			return nil
		}
		size := set.rasters[0].H * set.rasters[0].W * set.vectors[i].To.Size()
		pos := p.layout.vectors[i] + row*size
		return p.buf[pos:][: n*size : n*size]
	}
	clearField := func(i, k int) {
		cuts[i][k] = shapes.Cut{}
		if !set.vectors[i].Ragged() {
			clear(memory(i, k, 1))
		}
	}
	clearRow := func(k int) {
		for i := range set.vectors {
			clearField(i, k)
		}
	}
	drawField := func(i, k int, field *shapes.Field, pic shapes.Picture) (err error) {
		if field.Ragged() {
			cuts[i][k], err = pic.Cut(p.ctx, e.options.MemoryBytes)
		} else {
			err = pic.Draw(p.ctx, memory(i, k, 1))
		}
		if err != nil {
			err = rows.InField(field.Name, err)
		}
		return err
	}
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			clearRow(k) // a bad sample that this one replaces may have been drawn here
			asset, win, err := e.firstRaster(p.ctx, d, draw)
			if err != nil {
				return err
			}
			for i, field := range d.vectors {
				pic, err := field.Picture(p.ctx, draw.Row, &asset, win, d.rasters[0].H, d.rasters[0].W, draw.Transform)
				if err == nil {
					err = drawField(i, k, field, pic)
				}
				if err == nil {
					p.noteRead(number+i, k, 0)
					continue
				}
				if err = p.lost(k, asset.Fault(err)); err != nil {
					return err
				}
				clearField(i, k)
			}
			return nil
		},
		clear: clearRow,
		size: func() (n int64) {
			for _, list := range cuts {
				for i := range list {
					n += list[i].Bytes()
				}
			}
			return n
		},
		members: func() []fieldTensor { return p.vectorMembers(cuts, memory) },
	}
}

// vectorMembers returns the tensors of all fields of shapes: what was cut, or what was drawn into memory.
func (p *Pending) vectorMembers(cuts [][]shapes.Cut, memory func(i, row, n int) []byte) (out []fieldTensor) {
	set := p.group.lead()
	for i, field := range set.vectors {
		if field.Ragged() {
			for _, t := range cutTensors(field, cuts[i]) {
				out = append(out, fieldTensor{t, field.Vector.Kind})
			}
			continue
		}
		n, lead := p.batch.Rows, set.rasters[0]
		out = append(out, fieldTensor{batch.Tensor{Name: field.Name, DType: field.To, Axes: []string{"n", "y", "x"},
			Data: memory(i, 0, n), Shape: []int64{int64(n), int64(lead.H), int64(lead.W)}}, "vector"})
	}
	return out
}

// cutTensors returns the tensors of a field of boxes or polygons.
func cutTensors(v *shapes.Field, list []shapes.Cut) []batch.Tensor {
	n, size := int64(len(list)), v.To.Size()
	coords, rings := newRagged(v, "", n), newRagged(v, spec.RingsMember, n)
	values := newRagged(v, spec.VectorValues, n)
	for i := range list {
		cut := &list[i]
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
		dtype := v.More[i]
		more := batch.Tensor{Name: spec.ColumnMember(v.Name, column), Kind: batch.Ragged, DType: dtype,
			Axes: []string{"n"}, Shape: []int64{n}, Offsets: make([]byte, 8, 8*(n+1))}
		for row := range list {
			if list[row].More != nil {
				more.Data = append(more.Data, list[row].More[i]...)
			}
			more.Offsets = binary.LittleEndian.AppendUint64(more.Offsets, uint64(len(more.Data)/dtype.Size()))
		}
		out = append(out, more)
	}
	return out
}

// newRagged returns one of the tensors of a field of boxes or polygons, for n rows.
func newRagged(v *shapes.Field, suffix string, n int64) batch.Tensor {
	tensor := batch.Tensor{Name: v.Name + suffix, Kind: batch.Ragged, DType: chunk.Float32,
		Offsets: make([]byte, 8, 8*(n+1))}
	switch {
	case suffix == spec.VectorValues:
		tensor.DType, tensor.Axes, tensor.Shape = v.To, []string{"n"}, []int64{n}
	case suffix == spec.RingsMember:
		tensor.DType, tensor.Axes, tensor.Shape = chunk.Int32, []string{"n", "ring"}, []int64{n, shapes.RingWidth}
	case v.Vector.Kind == spec.BoxVector:
		tensor.Axes, tensor.Shape = []string{"n", "xyxy"}, []int64{n, shapes.BoxWidth}
	default:
		tensor.Axes, tensor.Shape = []string{"n", "xy"}, []int64{n, shapes.VertexWidth}
	}
	return tensor
}
