package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
)

const (
	// plannedShare is the part of the memory that decoded chunks take at most. With 32 windows of 6 x 256 x 256
	// as float32, eight batches fill 384 MiB; this is 96 MiB of them.
	plannedShare = 4
	// keptShare is the part of the machine's memory that decoded chunks of an engine take at most by default: a
	// sixteenth, where GDAL takes a twentieth for each process. Of a budget it is keptBudgetShare: a quarter.
	keptShare       = 16
	keptBudgetShare = 4
	// recodedShare is the part of the machine's memory for chunks that decode fast (Options.Recode): an eighth.
	recodedShare = 8
	// plansAhead is how many tickets wait until their chunks are known: more than a client prefetches.
	plansAhead = 16
)

// compile checks the sources of the group, which are open, and counts the units of a row.
func (g *group) compile(e *Engine) error {
	lead := g.lead()
	if err := e.checkValidity(g); err != nil {
		return err
	}
	if e.spec.Windows && len(lead.rasters) == 0 && len(e.spec.Only) == 0 {
		return errors.New("spec: windows is true, and no field is a raster")
	}
	if e.spec.Geo && len(lead.rasters) == 0 && len(e.spec.Only) == 0 {
		return errors.New("spec: geo is true, and no field is a raster")
	}
	g.columns = e.columnsOf(g)
	if g.readsColumns() {
		g.perRow++
	}
	g.native = make([]bool, len(lead.rasters))
	for i, field := range lead.rasters {
		g.perRow += max(field.Steps, 1)
		// A native tensor carries one arithmetic for all its rows, so every source must share it. Resampled windows are
		// never native, because their pixels are computed; the same holds for stacks with resampled parts.
		g.native[i] = true
		for _, d := range g.sets {
			bands := len(d.rasters[i].Tensor().Picked)
			if n := len(d.rasters[i].Wavelengths); n > 0 && n != bands {
				err := fmt.Errorf("field %q: wavelengths has %d numbers for %d bands", field.Name, n, bands)
				if d.name != "" {
					err = spec.InSource(d.name, err)
				}
				return fmt.Errorf("spec: %w", err)
			}
			g.native[i] = g.native[i] && d.rasters[i].SameArithmetic(field) &&
				!slices.ContainsFunc(d.ofViews(), (*dataset).resamples) && d.rasters[i].CopiesParts()
		}
	}
	return nil
}

// addSizes adds a group for each size of windows but the largest, which the groups that are there have.
func (e *Engine) addSizes() error {
	for _, g := range slices.Clone(e.groups) {
		sampler := g.lead().sampler
		for _, side := range slices.Compact(slices.Sorted(slices.Values(sampler.Sizes))) {
			if side == sampler.Height {
				continue
			}
			sized := &group{}
			for _, set := range g.sets {
				smaller, err := set.ofSize(side, sized)
				if err != nil {
					return err
				}
				if set.sized == nil {
					set.sized = map[int]*dataset{}
				}
				set.sized[side] = smaller
				sized.sets = append(sized.sets, smaller)
			}
			e.groups = append(e.groups, sized)
		}
	}
	return nil
}

// open describes the batches of the group. At least one row must fit into the memory. Whether all rows of a ticket fit
// is checked when the ticket comes, because its number of rows is not known before.
func (g *group) open(e *Engine) error {
	single, err := e.layout(layoutKey{group: g, rows: 1})
	if err != nil {
		return err
	}
	e.describe(g, single)
	names := map[string]bool{}
	for _, info := range g.infos {
		if names[info.Name] {
			return fmt.Errorf("spec: a batch would have two tensors %q: give the field or validity another name; with "+
				"windows of several sizes, names of tensors end with the size", info.Name)
		}
		names[info.Name] = true
	}
	if e.spec.BatchSize == 1 {
		return nil
	}
	for _, r := range g.lead().rasters { // a layout without n holds one sample only
		raster := r.Tensor()
		if _, err := raster.Plan(2); err != nil {
			return rows.InField(raster.Name, err)
		}
	}
	return nil
}

// openEngine compiles a spec and opens its tables. If it fails it still returns the engine, so
// the caller can close the tables that were opened.
func openEngine(ctx context.Context, spec Spec, o Options, open rows.Opener) (*Engine, error) {
	engine := &Engine{spec: spec, options: o, layouts: layouts{made: map[layoutKey]*batchLayout{}}}
	engine.close = sync.OnceValue(engine.shutdown)
	// A panic becomes an error here: the caller still closes the tables.
	if err := crash.Call(func() error { return engine.compile(ctx, open) }); err != nil {
		return engine, err
	}
	engine.account = budget.Of(ctx)
	keep := engine.options.MemoryBytes == 0
	engine.setMemory()
	if err := engine.makeTiles(ctx, keep); err != nil {
		return engine, err
	}
	engine.spans = engine.newBlockSpans(keep)
	engine.tellOrder()
	recoded := engine.recodedBytes(keep)
	if err := engine.setHash(); err != nil {
		return engine, err
	}
	for _, g := range engine.groups {
		if err := g.open(engine); err != nil {
			return engine, err
		}
	}
	floor, err := chargeFloor(ctx, engine.account, &engine.options, engine.BatchBytes())
	if err != nil {
		return engine, err
	}
	// makeTiles has already subtracted the decoded tiles.
	engine.queue = newQueue(engine.options.MemoryBytes)
	engine.memory = newMemory(engine.options.MemoryBytes, o.Alloc, o.Budget, floor, engine.queue.poke)
	engine.queue.memory, engine.queue.now = engine.memory, engine.memory.now
	if engine.queue.stages = o.Stages; o.Stages != nil {
		engine.slow.sources = make([]sourceTime, len(engine.sets))
	}
	if engine.fetchers(); engine.options.Recode { // fetchers sets the decoders of remote files
		if engine.options.Decoders == nil { // without them nobody knows which workers are idle
			engine.options.Decoders = resources.NewDecoders(engine.options.Workers)
		}
		engine.recoded = pixels.NewRecoded(recoded, &engine.options)
	}
	engine.start()
	return engine, nil
}

// setMemory chooses the memory if the user did not. A file declares the size of its chips and so
// the size of a batch, so a quarter of the machine's memory is the most that it can claim (or
// DefaultMemoryBytes, if that is more).
func (e *Engine) setMemory() {
	if e.options.MemoryBytes != 0 {
		return
	}
	limit := max(resources.DefaultMemoryBytes, procs.Memory()/4)
	if total := e.options.Budget.Limit(); total > 0 {
		// Otherwise one engine could keep the others at their floors.
		limit = min(limit, total/2)
	}
	e.options.MemoryBytes = limit
	batch := e.BatchBytes()
	// The comparison divides instead of multiplying, because autoBatches*batch could overflow.
	// Batches that do not fit keep the upper bound.
	if batch == 0 || batch > (limit-min(e.poolBytes(), limit))/autoBatches {
		return
	}
	e.options.MemoryBytes = min(limit, max(resources.DefaultMemoryBytes, autoBatches*batch+e.poolBytes()))
}

// poolBytes returns the bytes of decoded tiles that two pools of every dataset need. It counts two
// because the next pool begins while workers still read from the last one.
func (e *Engine) poolBytes() int64 {
	need := int64(0)
	for _, d := range e.sets {
		if d.kind.Tiles {
			need += 2 * d.poolBytes()
		}
	}
	return need
}

// makeTiles sets aside memory for decoded tiles. It takes at most half of the memory, so
// batches keep the other half. keep is as of makePlannedTiles.
func (e *Engine) makeTiles(ctx context.Context, keep bool) error {
	need := e.poolBytes()
	if need == 0 {
		e.makePlannedTiles(keep)
		return nil
	}
	limit := e.options.MemoryBytes / 2
	if need > 2*limit {
		e.options.Logger.Warn("a pool of tiles is over half of the memory: tiles will be decoded more than once",
			"pool bytes", need/2, "memory bytes", e.options.MemoryBytes)
	}
	bound, err := chargeTiles(ctx, e.account, e.options.Budget, min(need, limit))
	if err != nil {
		return err
	}
	e.tiles = pixels.NewTileCache(bound)
	// Tiles and batches share one bound, so the tiles must be subtracted before newMemory is
	// called.
	e.options.MemoryBytes -= e.tiles.Bound
	return nil
}

// makePlannedTiles sets aside memory for chunks that several windows of the next batches need. Enough of the memory
// stays for the batches of one client. With keep, which is for users who bound no memory, chunks stay for all windows
// that may come, as far as the machine and the budget have memory.
func (e *Engine) makePlannedTiles(keep bool) {
	if !slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.sharesChunks(true) }) {
		return
	}
	memory := e.options.MemoryBytes
	batches := min(memory/busyBatches, e.BatchBytes()) * busyBatches
	if bound := min(memory/plannedShare, memory-batches); bound > 0 {
		share := e.mayKeep(procs.Memory() / keptShare)
		if keep && share > bound {
			e.tiles = pixels.NewKeptTiles(share, bound, e.options.Budget)
		} else {
			e.tiles = pixels.NewPlannedTiles(bound, e.options.Budget)
		}
		e.toPlan = make(chan plannedTicket, plansAhead)
		e.options.MemoryBytes -= bound
	}
}

// recodedBytes sets aside memory for chunks that decode fast, and returns how many bytes they take at most. keep is as
// of makePlannedTiles.
func (e *Engine) recodedBytes(keep bool) (most int64) {
	if !e.options.Recode {
		return 0
	}
	if !keep {
		most = e.options.MemoryBytes / plannedShare
		e.options.MemoryBytes -= most
		return most
	}
	return e.mayKeep(procs.Memory() / recodedShare)
}

// mayKeep returns how many of n bytes an engine may keep of the budget.
func (e *Engine) mayKeep(n int64) int64 {
	if total := e.options.Budget.Limit(); total > 0 {
		return min(n, total/keptBudgetShare)
	}
	return n
}

// closeTables closes the tables of all sources.
func (e *Engine) closeTables() error {
	var errs []error
	for _, d := range e.sets {
		errs = append(errs, d.table.Close())
		for _, v := range d.vectors {
			errs = append(errs, v.Close())
		}
	}
	return errors.Join(errs...)
}

// compile opens all sources and makes the plan of the order.
func (e *Engine) compile(ctx context.Context, open rows.Opener) error {
	src := e.spec.Root()
	top, err := e.addSource(ctx, &src, "", open, int64(e.spec.BatchSize))
	if err != nil {
		return err
	}
	e.plan, err = shuffle.NewPlan(shuffle.Spec{Seed: e.spec.Seed, Shuffle: e.spec.Shuffle, Source: top,
		Take: e.spec.Take, Batch: int64(e.spec.BatchSize), Drops: e.spec.Cut().Drops()})
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	e.samples = e.plan.Len()
	if err := e.setClasses(ctx); err != nil {
		return err
	}
	if len(e.spec.Only) > 0 {
		err = e.keepOnly(e.spec.Only)
	} else {
		err = e.addSizes()
	}
	if err != nil {
		return err
	}
	for _, g := range e.groups {
		if err := g.compile(e); err != nil {
			return err
		}
	}
	return nil
}

// keepOnly leaves the fields of Spec.Only, once the samples are found.
func (e *Engine) keepOnly(names []string) error {
	for _, d := range e.sets {
		d.rasters, d.vectors, d.views = nil, nil, nil
		d.values = slices.DeleteFunc(d.values, func(v valueField) bool {
			return v.name == spec.IDMember || !slices.Contains(names, v.name)
		})
		for _, name := range names {
			found := slices.ContainsFunc(d.values, func(v valueField) bool { return v.name == name })
			if !found && name != spec.IDMember {
				return fmt.Errorf("spec: only: %q is neither %q nor a field that is a metadata column", name,
					spec.IDMember)
			}
		}
	}
	return nil
}

// setClasses sets the values of all classes, and the classes of the spec if it has none: one list for all sources, so
// a string has one value in a batch.
func (e *Engine) setClasses(ctx context.Context) error {
	for i := range spec.RowFields(e.spec.Fields) {
		field := &e.spec.Fields[i]
		if field.Kind != spec.ClassField {
			continue
		}
		if field.Classes == nil {
			var sources []classSource
			for _, d := range e.sets {
				sources = append(sources, classSource{d.table, &d.source})
			}
			found, err := findClasses(ctx, i, field.DType, sources)
			if err != nil {
				return rows.InField(field.Name, err)
			}
			field.Classes = found
		}
		for _, set := range e.sets {
			column := slices.IndexFunc(set.values, func(v valueField) bool { return v.column == i })
			for n, c := range field.Classes {
				set.values[column].classes[c] = int64(n)
			}
		}
	}
	return e.setShapeClasses()
}

// setShapeClasses sets the classes of fields of shapes for which the spec has none: those in the files of all sources,
// so a string has one value in a batch.
func (e *Engine) setShapeClasses() error {
	first := len(spec.RowFields(e.spec.Fields))
	for i := first; i < len(e.spec.Fields); i++ {
		field := &e.spec.Fields[i]
		var names []string
		for _, d := range e.sets {
			names = append(names, d.vectors[i-first].Names()...)
		}
		if names == nil {
			continue
		}
		slices.Sort(names)
		names = slices.Compact(names)
		described := *field.Vector // others may hold the same one
		described.Classes = names
		field.Vector = &described
		for _, d := range e.sets {
			if d.vectors[i-first].Names() == nil {
				continue
			}
			if err := d.vectors[i-first].Number(names); err != nil {
				return rows.InField(field.Name, err)
			}
		}
	}
	return nil
}

// setHash computes the spec hash: the hash of the spec's JSON without the paths of the data, and of
// the fingerprints of all sources.
func (e *Engine) setHash() error {
	// A moved dataset must keep its hash, so paths are left out. The order's version is part of it,
	// because a state must not resume in another order.
	written := e.withLayouts()
	placeless := written.Placeless()
	for _, v := range e.sets[0].values { // the kinds of the other fields are in the fingerprint
		if v.fromSpec {
			placeless.Fields[v.column].Kind = spec.NumberField
		}
	}
	for i := range placeless.Fields {
		if field := &placeless.Fields[i]; field.DType == spec.Auto {
			field.DType = "float32" // without palettes, whose files are in the fingerprint
		}
	}
	text, err := json.Marshal(struct {
		Order       int    `json:"order"`
		Fingerprint string `json:"fingerprint"`
		Spec        Spec   `json:"spec"`
		Data        string `json:"data,omitempty"`
		FillsFloats bool   `json:"fills_floats,omitempty"`
	}{steps.Version, e.Fingerprint(), placeless, e.digest(), e.fillsFloats()})
	if err != nil {
		return err
	}
	hasher := digest.New()
	_, _ = hasher.Write(text)
	e.hash = hasher.Hex()
	data := dataIdentity{samples: e.samples, digest: e.digest()}
	for _, d := range e.sets {
		data.sources = append(data.sources, hashedSource{d.name, d.table.Fingerprint, d.table.N})
	}
	e.run, err = partsOf(&written, data)
	return err
}

// withLayouts returns the spec with the layouts that its raster fields have by default, which the data decide.
func (e *Engine) withLayouts() Spec {
	out := e.spec
	out.Fields = slices.Clone(out.Fields)
	for _, r := range e.groups[0].lead().rasters {
		out.Fields[r.TableColumn].Layout = r.Layout
	}
	return out
}

// fillsFloats reports whether a raster field fills nodata that older versions kept unless Fill or
// Normalize was set. It changes the spec hash, so a state of an older version is refused
// instead of resumed with other pixels.
func (e *Engine) fillsFloats() bool {
	return slices.ContainsFunc(e.sets, func(d *dataset) bool {
		return slices.ContainsFunc(d.rasters, (*pixels.Raster).FillsFloats)
	})
}

// digest returns a hash of the data, beyond the fingerprints, that the order depends on: selected
// rows, weights, sizes, boxes. It is empty if the order depends on nothing else.
func (e *Engine) digest() string {
	hasher, chosen, none := digest.New(), false, digest.New().Sum()
	for _, set := range e.sets {
		sum := set.digest.Sum()
		_, _ = hasher.Write(sum[:])
		chosen = chosen || sum != none
	}
	if !chosen {
		return ""
	}
	return hasher.Hex()
}

// describe fills the infos of a group with the tensors of a batch of one row, in the order of the fields.
func (e *Engine) describe(g *group, one *batchLayout) {
	padding := &Pending{engine: e, group: g, batchMemory: batchMemory{layout: one},
		draws: make([]shuffle.Draw, 1), errs: make([]rowErrors, 1),
		batch: &batch.Batch{Rows: 1, Valid: make([]bool, 1), Positions: []int64{-1}}}
	parts := padding.columnsOfBatch()
	add := func(c batchColumn) {
		for _, m := range c.members() {
			info := batch.FieldInfo{Name: m.Name, Kind: m.kind, DType: m.DType, Shape: m.Shape, Axes: m.Axes}
			g.infos = append(g.infos, info)
		}
	}
	g.inOrder(e, func(i int) {
		for _, sized := range g.lead().ofSizes() {
			field, plan := sized.rasters[i].Tensor(), one.rasters[sized.layoutOf(i)].plan
			info := batch.FieldInfo{Name: sized.tensorName(field.Name), Kind: catalog.Raster.String(), DType: field.To,
				Shape: num.As[int64](plan.Shape), Axes: plan.Axes, Bands: field.Shown, Wavelengths: field.Wavelengths,
				GSD: field.GSD, Classes: field.Legend.Names, Palette: field.Legend.Palette}
			g.infos = append(g.infos, info)
			if field.Validity != "" {
				g.infos = append(g.infos, batch.FieldInfo{Name: sized.tensorName(field.Validity), Kind: "mask",
					DType: chunk.Uint8, Shape: info.Shape, Axes: info.Axes})
			}
		}
	}, func(i int) { add(parts[i]) })
	for _, c := range parts[len(g.lead().values):] {
		add(c)
	}
}

// checkValidity checks that no field has the name of the tensor of validity.
func (e *Engine) checkValidity(g *group) error {
	name, steps := e.validity(g)
	if steps == 0 {
		return nil
	}
	for i := range e.spec.Fields {
		if f := &e.spec.Fields[i]; f.Name == name || f.Validity == name {
			return fmt.Errorf("spec: %q is the tensor that says which steps of time exist: give the field, or its "+
				"validity, another name", name)
		}
	}
	return nil
}

// Close stops the workers and closes the dataset. Batches that were not released stay valid.
// Unfinished tickets end with ErrClosed. Further calls return the same error.
func (e *Engine) Close() error { return e.close() }

func (e *Engine) shutdown() error {
	// Workers must end before the tables close, because they read from them.
	e.stop()
	e.ahead.close()
	e.done.Wait()
	e.memory.close()
	if e.tiles != nil {
		e.tiles.Close()
	}
	e.weighed.close()
	e.recoded.Close()
	e.spans.close()
	err := e.closeTables()
	e.options.CloseOpener()
	e.account.Close()
	return err
}
