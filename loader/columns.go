package loader

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// columnsOf returns the kinds of the columns of a group: first the metadata columns, in the order of the spec, then the
// others in the order of batches.
func (e *Engine) columnsOf(g *group) (list []columnKind) {
	lead := g.lead()
	times, views := max(lead.timeSteps(), 1), len(lead.ofViews())
	for i, v := range lead.values {
		list = append(list, columnKind{reads: true, bytes: (valueBytes + v.listBytes()) * max(lead.valueSteps(v), 1),
			of: func(p *Pending) batchColumn { return e.valueColumn(p, i) }})
	}
	if len(e.spec.Only) > 0 {
		if slices.Contains(e.spec.Only, spec.IDMember) {
			list = append(list, columnKind{reads: true, bytes: valueBytes, of: e.idColumn})
		}
		return list
	}
	if len(lead.vectors) > 0 {
		list = append(list, columnKind{reads: true, of: e.vectorsColumn}) // the layout has room for them
	}
	if len(e.spec.Sources) > 0 {
		list = append(list, columnKind{of: e.sourceColumn})
	}
	if e.spec.Windows {
		list = append(list, columnKind{reads: true, bytes: windowBytes * views, of: e.windowColumn})
	}
	if e.spec.Geo {
		list = append(list, columnKind{reads: true, bytes: geoBytes*views + timeBytes*times, of: e.geoColumn})
	}
	if name, steps := e.validity(g); steps > 0 {
		bytes := steps // with a byte for each, and for each of a field
		for _, r := range lead.rasters {
			if r.PicksSteps() {
				bytes += r.TimeSteps
			}
		}
		list = append(list, columnKind{bytes: bytes,
			of: func(p *Pending) batchColumn { return e.stepsColumn(p, name, steps) }})
	}
	if e.spec.SaysWhatIsThere() {
		count := 0
		for i := range e.spec.Fields {
			count += max(lead.stepsOf(i), 1)
		}
		list = append(list, columnKind{bytes: 2 * count, of: e.thereColumn})
	}
	return list
}

// columnsOfBatch returns the columns of a batch, in the order of its group's.
func (p *Pending) columnsOfBatch() []batchColumn {
	list := make([]batchColumn, len(p.group.columns))
	for i, kind := range p.group.columns {
		list[i] = kind.of(p)
	}
	return list
}

// valueColumn returns metadata column i.
func (e *Engine) valueColumn(p *Pending, i int) batchColumn {
	field := p.group.lead().values[i]
	length := p.group.lead().valueSteps(field)
	steps := max(length, 1)
	values := make([]catalog.Value, p.batch.Rows*steps) // by row and then step
	clearStep := func(k, step int) { values[k*steps+step] = catalog.Value{Null: true} }
	number := len(p.group.lead().rasters) + i
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			for step := range steps {
				clearStep(k, step)
				row := e.rowOf(draw, step)
				if row < 0 {
					continue
				}
				value, err := d.values[i].read(p.ctx, d.table, row)
				if err != nil {
					if err = p.lost(k, err); err != nil {
						return err
					}
					continue
				}
				values[k*steps+step] = value
				if !value.Null && value.Float == value.Float {
					p.noteRead(number, k, step)
				}
			}
			return nil
		},
		clear: func(k int) {
			for step := range steps {
				clearStep(k, step)
			}
		},
		size: func() int64 {
			if field.kind != catalog.Text {
				return int64(len(values) * field.to.Size() * field.width())
			}
			n := int64(0)
			for _, v := range values {
				n += int64(len(v.Text))
			}
			return n
		},
		members: func() []fieldTensor {
			tensor := field.tensor(values, p.batch.Valid)
			tensor.Shape, tensor.Axes = stepShape(p.batch.Rows, length)
			if field.holds.IsList() {
				tensor.Shape, tensor.Axes = append(tensor.Shape, int64(field.width())), append(tensor.Axes, "k")
			}
			return []fieldTensor{{tensor, field.kind.String()}}
		},
	}
}

// valueSteps returns how many values of a column a sequence has; 0 without an axis t.
func (t *timing) valueSteps(v valueField) int {
	if v.timeless {
		return 0
	}
	return t.steps
}

// idColumn returns what the samples are called.
func (e *Engine) idColumn(p *Pending) batchColumn {
	field := valueField{name: spec.IDMember, kind: catalog.Text}
	names := slices.Repeat([]catalog.Value{{Null: true}}, p.batch.Rows)
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			name, err := d.table.NameOf(p.ctx, draw.Row)
			names[k] = catalog.Value{Text: []byte(name)}
			return err
		},
		clear: func(k int) { names[k] = catalog.Value{Null: true} },
		size: func() (n int64) {
			for _, name := range names {
				n += int64(len(name.Text))
			}
			return n
		},
		members: func() []fieldTensor {
			return []fieldTensor{{field.tensor(names, p.batch.Valid), catalog.Text.String()}}
		},
	}
}

// intTensor returns the tensor (n) of some numbers.
func intTensor(name string, numbers []int64, rows int) batch.Tensor {
	tensor := batch.Tensor{Name: name, DType: chunk.Int64, Axes: []string{"n"}, Shape: []int64{int64(rows)},
		Data: make([]byte, 0, 8*len(numbers))}
	for _, n := range numbers {
		tensor.Data = binary.LittleEndian.AppendUint64(tensor.Data, uint64(n))
	}
	return tensor
}

// sourceColumn returns the number of the source of each row of a mixture, -1 for padding. With batches of one source
// padding has its number, too: a rank may get no other rows.
func (e *Engine) sourceColumn(p *Pending) batchColumn {
	return batchColumn{members: func() []fieldTensor {
		padding := int64(-1)
		if e.spec.Batches == spec.OneSource {
			padding = int64(p.group.lead().number)
		}
		sources := slices.Repeat([]int64{padding}, p.batch.Rows)
		for k, pos := range p.batch.Positions {
			if pos >= 0 {
				sources[k] = int64(p.set(k).number)
			}
		}
		return []fieldTensor{{intTensor(spec.SourceColumn, sources, p.batch.Rows), catalog.Int.String()}}
	}}
}

// windowColumn returns the windows of the rows' assets: y, x, height, width. Windows of padding are -1.
func (e *Engine) windowColumn(p *Pending) batchColumn {
	views := len(p.group.lead().ofViews())
	each := 4 * views
	windows := slices.Repeat([]int64{-1}, each*p.batch.Rows)
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			for i, view := range d.ofViews() {
				drawn := e.plan.View(draw, i)
				_, window, err := e.beginWindow(p.ctx, view, &drawn)
				if err != nil {
					return err
				}
				for j, v := range [...]int{window.Y, window.X, window.H, window.W} {
					windows[each*k+4*i+j] = int64(v)
				}
			}
			return nil
		},
		clear: func(k int) {
			for i := range each {
				windows[each*k+i] = -1
			}
		},
		members: func() []fieldTensor {
			tensor := intTensor(spec.WindowMember, windows, p.batch.Rows)
			tensor.Shape, tensor.Axes = p.group.lead().viewShape(p.batch.Rows, views)
			tensor.Axes, tensor.Shape = append(tensor.Axes, "yxhw"), append(tensor.Shape, 4)
			return []fieldTensor{{tensor, catalog.Int.String()}}
		},
	}
}

// beginWindow returns the anchor of Engine.begin, and the window in pixels of the first raster field.
func (e *Engine) beginWindow(ctx context.Context, d *dataset, draw *shuffle.Draw) (anchor, shuffle.Box, error) {
	base, err := e.begin(ctx, d, draw)
	if err != nil {
		return base, shuffle.Box{}, err
	}
	window, err := d.window(e.plan, draw, base.height, base.width, d.rasters[0].Pad)
	return base, window, base.Fault(err)
}

// geoColumn returns the places of the rows' windows, as they lie in the tensor, and the times of all their steps.
func (e *Engine) geoColumn(p *Pending) batchColumn {
	timeSteps := p.group.lead().timeSteps()
	steps := max(timeSteps, 1)
	views := len(p.group.lead().ofViews())
	places := slices.Repeat([]rowPlace{nowhere()}, p.batch.Rows*views) // by row and then view
	times := slices.Repeat([]int64{rows.NoTime}, p.batch.Rows*steps)   // by row and then step
	clear := func(k int) {
		for i := range views {
			places[k*views+i] = nowhere()
		}
		for step := range steps {
			times[k*steps+step] = rows.NoTime
		}
	}
	return batchColumn{
		fill: func(_ *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error {
			clear(k) // a bad sample before this substitute may have had a place
			if err := e.timesOf(p.ctx, d, draw, times[k*steps:][:steps]); err != nil {
				return err
			}
			for i, view := range d.ofViews() {
				drawn := e.plan.View(draw, i)
				place, err := e.placeOf(p.ctx, view, &drawn)
				if err != nil {
					return err
				}
				places[k*views+i] = place
			}
			return nil
		},
		clear: clear,
		members: func() (out []fieldTensor) {
			timeTensor := intTensor(spec.GeoTime, times, p.batch.Rows)
			timeTensor.Shape, timeTensor.Axes = stepShape(p.batch.Rows, timeSteps)
			shape, axes := p.group.lead().viewShape(p.batch.Rows, views)
			for _, tensor := range append(geoMembers(places, shape, axes), timeTensor) {
				kind := catalog.Float
				if tensor.DType == chunk.Int64 {
					kind = catalog.Int
				}
				out = append(out, fieldTensor{tensor, kind.String()})
			}
			return out
		},
	}
}

// timeSteps returns how many times a row has: of the steps of a sequence, or of the array of the first raster; 0 for
// one time.
func (t *timing) timeSteps() int {
	if t.steps == 0 {
		return t.moments
	}
	return t.steps
}

// timesOf sets the times of a row, or of its steps: by the columns of the table, and else by the coordinates of the
// array of the first raster. The coordinates of steps of an array go before a column, which has one time for all.
func (e *Engine) timesOf(ctx context.Context, d *dataset, draw *shuffle.Draw, times []int64) error {
	for step := range times {
		times[step] = d.clock.at(e.rowOf(draw, step))
	}
	if !d.timed {
		return nil
	}
	if d.steps == 0 && len(times) > 1 {
		values, err := e.arrayTimes(ctx, d, draw.Row)
		for i, step := range d.rasters[0].StepList() {
			if step < len(values) && !values[step].Null {
				times[i] = values[step].Int
			}
		}
		return err
	}
	for step := range times {
		row := e.rowOf(draw, step)
		if row < 0 || times[step] != rows.NoTime {
			continue
		}
		values, err := e.arrayTimes(ctx, d, row)
		if err != nil {
			return err
		}
		if len(values) == 1 && !values[0].Null {
			times[step] = values[0].Int
		}
	}
	return nil
}

// arrayTimes returns the times that the array of the first raster has for a row; nil of one without them, and of a
// raster that the policy for bad samples fills.
func (e *Engine) arrayTimes(ctx context.Context, d *dataset, row int64) ([]catalog.Value, error) {
	asset, err := d.table.Fields[d.rasters[0].TableColumn].Asset(ctx, row)
	if err == nil {
		if array, ok := clockOf(&asset); ok {
			var times []catalog.Value
			if times, err = array.Times(ctx, asset.Index.Grid.Image); err == nil {
				return times, nil
			}
		}
	}
	if err != nil && e.fills(err) {
		err = nil
	}
	return nil, err
}

// clockOf returns the array of an asset if it may have times.
func clockOf(a *catalog.Asset) (clock store.Timed, ok bool) {
	if a.Index.Grid != nil {
		clock, ok = a.Index.Grid.Array.(store.Timed)
	}
	return clock, ok
}

// placeOf returns where the window of a draw lies on the ground.
func (e *Engine) placeOf(ctx context.Context, d *dataset, draw *shuffle.Draw) (rowPlace, error) {
	if d.ground != nil {
		a := d.windowAsset(e.plan, draw)
		h, w := a.Index.Height, a.Index.Width
		return placeOf(&a, shuffle.Box{H: h, W: w}, h, w, draw.Transform), nil
	}
	base, window, err := e.beginWindow(ctx, d, draw)
	if err != nil || base.Place == nil {
		return nowhere(), err
	}
	window = d.scaled(draw, window, base.raster, base.Index)
	return placeOf(&base.Asset, window, d.rasters[0].H, d.rasters[0].W, draw.Transform), nil
}

// stepsColumn returns the validity of steps, uint8 (n t): 1 for a step that exists and could be read.
func (e *Engine) stepsColumn(p *Pending, name string, steps int) batchColumn {
	return batchColumn{members: func() []fieldTensor {
		tensor := batch.Tensor{Name: name, DType: chunk.Uint8, Data: make([]byte, p.batch.Rows*steps)}
		tensor.Shape, tensor.Axes = stepShape(p.batch.Rows, steps)
		for place, pos := range p.batch.Positions {
			if p.inFiles != nil {
				p.stepsInFiles(place, tensor.Data[place*steps:][:steps])
				continue
			}
			files := p.set(place).files
			for step := range steps {
				bad := p.errs[place].step(step) != nil && p.draws[place].Attempt == 0
				if pos < 0 || bad && !p.someThere(place, step) {
					continue
				}
				row := e.rowOf(&p.draws[place], step)
				if row >= 0 && (!files.some() || files.present(step, row)) {
					tensor.Data[place*steps+step] = 1
				}
			}
		}
		return []fieldTensor{{tensor, "mask"}}
	}}
}

// stepsInFiles sets the steps that some file of row k has.
func (p *Pending) stepsInFiles(k int, out []byte) {
	for i, noted := range p.inFiles {
		n := p.group.lead().rasters[i].TimeSteps
		if noted == nil || !p.batch.Valid[k] || p.batch.Positions[k] < 0 {
			continue
		}
		for step, present := range noted[k*n:][:n] {
			out[step] |= present
		}
	}
}

// validity returns the name and the number of steps of the tensor that says which steps exist, or no steps.
func (e *Engine) validity(g *group) (name string, steps int) {
	lead := g.lead()
	if t := e.spec.SequenceOf(&lead.source); t != nil {
		return t.Validity, t.Length
	}
	if lead.files.some() {
		return spec.DefaultValidity, lead.span()
	}
	return spec.DefaultValidity, lead.stepsInFiles()
}
