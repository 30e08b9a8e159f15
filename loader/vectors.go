package loader

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// shown returns the first raster of a draw, and its window there. A window on the ground is an asset of its own.
func (e *Engine) shown(ctx context.Context, d *dataset, draw *shuffle.Draw) (catalog.Asset, shuffle.Box, error) {
	if d.ground != nil {
		a := d.windowAsset(e.plan, draw)
		return a, shuffle.Box{H: a.Index.Height, W: a.Index.Width}, nil
	}
	asset, err := d.table.Asset(ctx, d.rasters[0].TableColumn, draw.Row)
	if err != nil {
		return asset, shuffle.Box{}, err
	}
	win, err := e.windowOf(ctx, d, draw, 0, draw.Row, asset)
	return asset, win, asset.Fault(err)
}

// vectors draws the shapes of a row, of all fields.
func (u unit) vectors(d *dataset, draw *shuffle.Draw) error {
	if len(d.vectors) == 0 {
		return nil
	}
	pending, engine := u.p, u.p.engine
	asset, win, err := engine.shown(pending.ctx, d, draw)
	if err != nil {
		return err
	}
	for i, field := range d.vectors {
		pic, err := field.Picture(&asset, win, d.rasters[0].H, d.rasters[0].W, draw.Transform)
		if err != nil {
			return asset.Fault(err)
		}
		if field.Ragged() {
			if pending.cut[i][u.row], err = field.Cut(pending.ctx, pic, engine.options.MemoryBytes); err != nil {
				return asset.Fault(rows.InField(field.Name, err))
			}
			continue
		}
		dst := pending.vector(i, u.row)
		clear(dst) // a bad sample that this one replaces may have been drawn here
		if err := field.Draw(pending.ctx, pic, dst); err != nil {
			return asset.Fault(rows.InField(field.Name, err))
		}
	}
	return nil
}

// checkVectors reads all shapes on an asset of the first raster field.
func (d *dataset) checkVectors(ctx context.Context, a *catalog.Asset) error {
	for _, v := range d.vectors {
		if err := v.Check(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// vector returns the memory of a row of a field of shapes.
func (p *Pending) vector(i, row int) []byte {
	pos := p.layout.vectors[i]
	n := p.engine.sets[0].vectorBytes(i)
	return p.buf[pos+row*n:][:n:n]
}

// vectorBytes returns the bytes of a row of a field of shapes.
func (d *dataset) vectorBytes(i int) int {
	return d.rasters[0].H * d.rasters[0].W * d.vectors[i].To.Size()
}

// clearVectors makes background of the shapes of a row.
func (p *Pending) clearVectors(k int) {
	for i, v := range p.engine.sets[0].vectors {
		if v.Ragged() {
			p.cut[i][k] = shapes.Cut{}
			continue
		}
		clear(p.vector(i, k))
	}
}

// vectorAxes are the axes of the tensor of a field of shapes.
var vectorAxes = []string{"n", "y", "x"}

// vectorTensors returns the tensors of the fields of shapes.
func (p *Pending) vectorTensors() (out []Tensor) {
	set, n := p.engine.sets[0], p.batch.Rows
	for i, field := range set.vectors {
		if field.Ragged() {
			out = append(out, cutTensors(field, p.cut[i])...)
			continue
		}
		pos := p.layout.vectors[i]
		end := pos + n*set.vectorBytes(i)
		out = append(out, Tensor{Name: field.Name, DType: field.To, Axes: vectorAxes, Data: p.buf[pos:end:end],
			Shape: []int64{int64(n), int64(set.rasters[0].H), int64(set.rasters[0].W)}})
	}
	return out
}

// vectorInfos describes the tensors of vectorTensors, for a batch of one row.
func (e *Engine) vectorInfos() (out []FieldInfo) {
	set := e.sets[0]
	for _, field := range set.vectors {
		if field.Ragged() {
			for _, t := range cutTensors(field, make([]shapes.Cut, 1)) {
				out = append(out, FieldInfo{t.Name, field.Vector.Kind, t.DType, t.Shape, t.Axes, nil})
			}
			continue
		}
		shape := []int64{1, int64(set.rasters[0].H), int64(set.rasters[0].W)}
		out = append(out, FieldInfo{field.Name, vectorKind, field.To, shape, vectorAxes, nil})
	}
	return out
}

// vectorKind is FieldInfo.Kind of a field of shapes.
const vectorKind = "vector"

// addVectors places the tensors of shapes.
func (l *layout) addVectors(d *dataset, rows int, bound int64) error {
	for _, field := range d.vectors {
		if field.Ragged() { // counted when the batch is complete, as strings are
			l.vectors = append(l.vectors, l.bytes)
			continue
		}
		n := pixels.BoundedBytes(bound, rows, d.rasters[0].H, d.rasters[0].W, field.To.Size())
		if n < 0 || int64(l.bytes)+n > bound {
			return pixels.OverMemory(fmt.Sprintf("field %q", field.Name), rows, "", bound)
		}
		l.vectors = append(l.vectors, l.bytes)
		l.bytes = pixels.Align64(l.bytes + int(n))
	}
	return nil
}

// cutTensors returns the tensors of a field of boxes or polygons.
func cutTensors(v *shapes.Field, list []shapes.Cut) []Tensor {
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
	if v.Vector.Kind == spec.BoxVector {
		return []Tensor{coords, values}
	}
	return []Tensor{coords, rings, values}
}

// newRagged returns one of the tensors of a field of boxes or polygons, for n rows.
func newRagged(v *shapes.Field, suffix string, n int64) Tensor {
	tensor := Tensor{Name: v.Name + suffix, Kind: Ragged, DType: chunk.Float32, Offsets: make([]byte, 8, 8*(n+1))}
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
