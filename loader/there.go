package loader

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Fields are numbered as in Spec.Fields, but by their kind: rasters, metadata columns, shapes.

// stepsOf returns the steps of a field by its number; 0 of one without time.
func (d *dataset) stepsOf(number int) int {
	switch n := len(d.rasters); {
	case number < n:
		return d.rasters[number].Steps
	case number < n+len(d.values):
		return d.valueSteps(d.values[number-n])
	}
	return 0
}

// nameOf returns the name of a field by its number.
func (d *dataset) nameOf(number int) string {
	switch n, values := len(d.rasters), len(d.values); {
	case number < n:
		return d.rasters[number].Name
	case number < n+values:
		return d.values[number-n].name
	default:
		return d.vectors[number-n-values].Name
	}
}

// expect prepares what noteRead notes: nothing is there yet.
func (p *Pending) expect() {
	if !p.engine.spec.SaysWhatIsThere() {
		return
	}
	lead := p.group.lead()
	p.there = make([][]byte, len(lead.rasters)+len(lead.values)+len(lead.vectors))
	for i := range p.there {
		p.there[i] = make([]byte, p.batch.Rows*max(lead.stepsOf(i), 1)) // by row and then step
	}
}

// noteRead notes that a field has been read, by its number, for row k or a step of it. Workers call it at the same time
// for different fields, rows and steps, which are different bytes.
func (p *Pending) noteRead(number, k, step int) {
	if p.there != nil {
		p.there[number][k*max(p.group.lead().stepsOf(number), 1)+step] = 1
	}
}

// forget notes that nothing of row k is there.
func (p *Pending) forget(k int) {
	for i, flags := range p.there {
		steps := max(p.group.lead().stepsOf(i), 1)
		clear(flags[k*steps:][:steps])
	}
}

// isThere reports whether noteRead has noted a field.
func (p *Pending) isThere(number, k, step int) bool {
	return p.there != nil && p.there[number][k*max(p.group.lead().stepsOf(number), 1)+step] == 1
}

// someThere reports whether a step of row k has a raster.
func (p *Pending) someThere(k, step int) bool {
	for i, r := range p.group.lead().rasters {
		if step < r.Steps && p.isThere(i, k, step) {
			return true
		}
	}
	return false
}

// lost notes that a part of row k that is not a raster cannot be read. If the policy keeps the other parts it returns
// nil, and the caller clears the part.
func (p *Pending) lost(k int, err error) error {
	if p.there == nil || !p.engine.fills(err) {
		return err
	}
	p.fail(workUnit{p: p, row: k, field: -1}, err)
	return nil
}

// thereColumn returns for each field where it is there.
func (e *Engine) thereColumn(p *Pending) batchColumn {
	return batchColumn{members: func() (out []fieldTensor) {
		lead := p.group.lead()
		if p.there == nil { // to describe a batch
			p.expect()
		}
		for i, flags := range p.there {
			tensor := batch.Tensor{Name: spec.ThereMember(lead.nameOf(i)), DType: chunk.Uint8, Data: flags}
			tensor.Shape, tensor.Axes = stepShape(p.batch.Rows, lead.stepsOf(i))
			out = append(out, fieldTensor{tensor, "mask"})
		}
		return out
	}}
}
