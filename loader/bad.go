package loader

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// SampleError is the error of a ticket that ends because of one sample: by the policy "error", or
// because no policy covers the error.
type SampleError struct {
	Source   string // the name of the sample's source; empty if there is one source
	Draw     shuffle.Draw
	Epoch    uint64
	Position int64
	Sample   batch.SampleRef
	Err      error

	text string
}

// Error returns the error with the sample that it is about.
func (e *SampleError) Error() string { return e.text }

// Unwrap returns Err.
func (e *SampleError) Unwrap() error { return e.Err }

// failMu guards Pending.errs of all tickets. One lock is enough since errors are rare. settle reads
// errs without it, after the last unit has called complete.
var failMu sync.Mutex

// maxID bounds the id of a bad sample in a batch, in bytes, because ids come from tables, which are
// hostile.
const maxID = 4096

// fail records the error of a unit.
func (p *Pending) fail(u workUnit, err error) {
	failMu.Lock()
	defer failMu.Unlock()
	row := &p.errs[u.row]
	target := &row.all
	lead := p.group.lead()
	if n := lead.span(); n > 0 && u.field >= 0 && lead.rasters[u.field].Steps > 0 {
		if row.steps == nil {
			row.steps = make([]error, n)
		}
		target = &row.steps[u.step]
	}
	if outranks(err, *target) {
		*target = err
	}
}

// settle applies the bad-sample policy to the rows with errors.
func (p *Pending) settle(r *pixels.Reader) error {
	policy := p.engine.spec.BadSamples
	for place := range p.errs {
		err := p.errs[place].worst()
		if err == nil {
			continue
		}
		if policy == spec.BadError || fault.KindOf(err) == 0 {
			return p.atRow(place, err)
		}
		if policy == spec.BadFill {
			p.fill(place)
			continue
		}
		p.addBad(place, err, p.draws[place].Row)
		if policy == spec.BadReplace {
			if r == nil {
				// The dispatcher finishes a batch if the workers were faster. It needs a clock of
				// its own, otherwise the chunks of the substitute would be missing from Stages.
				r = p.engine.newReader()
				r.Client = p.client
				defer endReader(r)
			}
			good, err := p.replace(r, place)
			if err != nil {
				return p.atRow(place, err)
			}
			if good {
				p.batch.Bad[len(p.batch.Bad)-1].Instead = p.ref(place)
				continue
			}
		}
		// Now the error is of all steps, so extras marks them as missing.
		p.errs[place].all = err
		p.batch.Valid[place] = false
		p.clearRow(place)
	}
	return nil
}

// fill clears what could not be read of a row, and keeps the rest. The row is valid if any field is there.
func (p *Pending) fill(k int) {
	errs := &p.errs[k]
	if errs.all != nil {
		p.addBad(k, errs.all, p.draws[k].Row)
	}
	for step, err := range errs.steps {
		if err != nil {
			p.addBad(k, err, p.engine.rowOf(&p.draws[k], step))
		}
	}
	for i, r := range p.group.lead().rasters { // columns have cleared what they lost
		for step := range max(r.Steps, 1) {
			if !p.isThere(i, k, step) {
				p.clearStep(i, k, step)
			}
		}
	}
	p.batch.Valid[k] = false
	for i, field := range p.there {
		steps := max(p.group.lead().stepsOf(i), 1)
		if slices.Contains(field[k*steps:][:steps], 1) {
			p.batch.Valid[k] = true
		}
	}
	if !p.batch.Valid[k] && len(p.engine.spec.Only) > 0 { // "id" is not a field
		p.clearRow(k)
	}
}

// addBad lists row k of the batch as bad because of a row of the table.
func (p *Pending) addBad(k int, err error, row int64) {
	p.batch.Bad = append(p.batch.Bad, batch.Bad{Row: k, Position: p.batch.Positions[k], Err: err,
		Source: p.set(k).name, Sample: p.engine.refOf(p.ctx, &p.draws[k], row)})
}

// ref names the sample that stands in a row.
func (p *Pending) ref(k int) *batch.SampleRef {
	return p.engine.refOf(p.ctx, &p.draws[k], p.draws[k].Row)
}

// refOf names a row of the table that belongs to the sample of a draw, such as a step of a sequence.
func (e *Engine) refOf(ctx context.Context, draw *shuffle.Draw, row int64) *batch.SampleRef {
	id, err := e.ID(ctx, draw.Dataset, row)
	if err != nil {
		id = "" // the number of the row still names it
	}
	return &batch.SampleRef{Index: draw.Sample, Row: row, ID: id[:min(len(id), maxID)]}
}

// atRow wraps the error of a row with its sample. If no substitute could be read, that is the last
// substitute.
func (p *Pending) atRow(k int, err error) error {
	return p.engine.atSample(p.ctx, p.draws[k], p.ticket.Epoch, p.batch.Positions[k], err)
}

// atSample wraps the error about the sample of a draw.
func (e *Engine) atSample(ctx context.Context, draw shuffle.Draw, epoch uint64, position int64, err error) error {
	name := e.leaves[draw.Dataset].name
	text := fmt.Sprintf("sample %d at position %d of epoch %d: %v", draw.Sample, position, epoch, err)
	if name != "" {
		text = fmt.Sprintf("source %q: %s", name, text)
	}
	return &SampleError{Source: name, Draw: draw, Epoch: epoch, Position: position,
		Sample: *e.refOf(ctx, &draw, draw.Row), Err: err, text: text}
}

// attempt does a unit of work. A reader that panics over a file makes its sample bad, unless bad samples are errors.
func (p *Pending) attempt(u workUnit, r *pixels.Reader) error {
	err := crash.Call(func() error { return u.do(r) })
	if crash.Is(err) {
		crash.Report(p.engine.options.Logger, err)
		if p.engine.spec.BadSamples != spec.BadError {
			err = fault.Wrap(fault.Corrupt, "reader", err)
		}
	}
	return err
}

// replace puts a substitute in the place of a bad sample, and reports whether one was good. It
// writes the whole row again, because the fields of a row must come from one sample. It returns
// only errors that no policy covers.
func (p *Pending) replace(r *pixels.Reader, k int) (good bool, err error) {
	bad := p.draws[k]
	for attempt := 1; attempt <= shuffle.MaxAttempts; attempt++ {
		if p.draws[k], err = p.engine.Substitute(p.ctx, p.ticket, bad, attempt); err != nil {
			return false, err
		}
		p.forget(k)
		err = nil
		for u := range p.units(k) {
			if err = p.ctx.Err(); err == nil {
				// Not left to complete: the error must name the substitute.
				err = p.attempt(u, r)
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			p.batch.Samples[k] = p.draws[k].Sample
			return true, nil
		}
		if fault.KindOf(err) == 0 {
			return false, err
		}
	}
	p.draws[k] = bad
	return false, nil
}

// clearRow fills a row of padding or of a bad sample.
func (p *Pending) clearRow(k int) {
	p.forget(k)
	for i, r := range p.group.lead().rasters {
		for step := range max(r.Steps, 1) {
			p.clearStep(i, k, step)
		}
	}
	for _, c := range p.parts {
		if c.clear != nil {
			c.clear(k)
		}
	}
}
