package loader

import (
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// mask returns the mask of one of layout.rasters. The mask of a native tensor is set to ones before its first
// use: complete rows leave it as it is.
func (m *batchMemory) mask(number int) []byte {
	layout := m.layout.rasters[number]
	mask := m.buf[layout.mask : layout.mask+layout.plan.Len()]
	if layout.native {
		m.masks[number].Do(func() {
			for i := range mask {
				mask[i] = 1
			}
			m.masked[number].Store(true)
		})
	}
	return mask
}

// tensors adds the tensors to the filled batch, in the order of the spec's fields. It fails with
// kind limit if what the layout cannot count is over the batch memory.
func (p *Pending) tensors() error {
	engine, batch := p.engine, p.batch
	size := int64(0)
	for _, part := range p.parts {
		if part.size != nil {
			size += part.size()
		}
	}
	if size > engine.options.MemoryBytes {
		return fault.New(fault.Limit, "batch", "values of %d bytes, over the %d bytes of batch memory",
			size, engine.options.MemoryBytes)
	}
	add := func(part batchColumn) {
		for _, m := range part.members() {
			batch.Tensors = append(batch.Tensors, m.Tensor)
		}
	}
	p.group.inOrder(engine, func(i int) {
		for _, sized := range p.group.lead().ofSizes() {
			batch.Tensors = append(batch.Tensors, p.raster(sized, i)...)
		}
	}, func(i int) { add(p.parts[i]) })
	for _, part := range p.parts[len(p.group.lead().values):] {
		add(part)
	}
	return nil
}

// raster returns the tensor of a raster field for a size of windows, and its validity if it has one.
func (p *Pending) raster(sized *dataset, i int) []batch.Tensor {
	number := sized.layoutOf(i)
	field, layout := sized.rasters[i].Tensor(), p.layout.rasters[number]
	tensor := batch.Tensor{Name: sized.tensorName(field.Name), DType: layout.dtype, Axes: layout.plan.Axes,
		Shape: num.As[int64](layout.plan.Shape), Data: p.buf[layout.data:layout.end:layout.end]}
	if layout.native {
		tensor.Convert = convertOf(field, layout.plan)
		if p.masked[number].Load() {
			tensor.Convert.Mask = p.mask(number)
		}
		return []batch.Tensor{tensor}
	}
	if field.Validity == "" {
		return []batch.Tensor{tensor}
	}
	validity := tensor
	validity.Name, validity.DType, validity.Data = sized.tensorName(field.Validity), chunk.Uint8, p.mask(number)
	return []batch.Tensor{tensor, validity}
}

// convertOf returns the arithmetic that a native tensor leaves to the receiver.
func convertOf(r *pixels.Raster, p *einops.Plan) *batch.Convert {
	base := r.Final.Base
	convert := &batch.Convert{To: r.To, Scale: base.Scale, Offset: base.Offset, BandAxis: -1, Clip: base.Clip,
		Lo: base.Lo, Hi: base.Hi, Fill: base.Fill}
	if len(base.Scale) > 1 {
		convert.BandAxis = p.BandAxis()
	}
	return convert
}
