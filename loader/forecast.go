package loader

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// forecastBlocks is how many ranges of steps stand for a whole epoch. They are spread evenly.
const forecastBlocks = 16

// Forecast returns the cost of an epoch. It uses headers, tables and the order alone, and reads no pixel. It reads the
// headers that the catalog lacks as a run would, but does not count them. Of rasters in cells of a table that is larger
// than its cache, the first stands for all, and the sizes of pages are counted. A sample on which a run would end gives
// the error of the run. Invalid options are errors without a kind.
func (e *Engine) Forecast(ctx context.Context, o dryrun.Options) (*dryrun.Forecast, error) {
	o.World = cmp.Or(o.World, 1)
	o.Prefetch = cmp.Or(o.Prefetch, e.Prefetch(o.World))
	o.Samples = cmp.Or(o.Samples, dryrun.DefaultSamples)
	if err := e.checkRun(o.Rank, o.World, o.Prefetch); err != nil {
		return nil, err
	}
	switch {
	case !e.remote():
		o.Cache = nil
	case o.Cache != nil: // which ranges it has depends on all samples before
		o.Samples = -1
	}
	run := e.newDryRun(o)
	defer func() { budget.Of(ctx).Shrink(run.allowance) }()
	run.out = dryrun.Forecast{Epoch: o.Epoch, Samples: e.samples, Steps: e.Steps(), Rank: o.Rank, World: o.World}
	for _, s := range e.Sources() {
		run.out.Sources = append(run.out.Sources, dryrun.SourceWork{Name: s.Name, Source: s.Source})
	}
	for _, d := range e.sets {
		run.out.Variance = max(run.out.Variance, d.variance)
		if run.out.LeftOut += d.badScenes.n; d.badScenes.n > 0 && run.out.FirstLeft == "" {
			run.out.FirstLeft = fault.Line(d.badScenes.first)
		}
	}
	if err := run.memory(); err != nil {
		return nil, err
	}
	ctx, err := run.pages.open(ctx, e.sets)
	if err != nil {
		return nil, err
	}
	if e.toPlan != nil {
		run.lastUse = map[pixels.TileKey]int64{}
	}
	foresees := false
	if o.Cache != nil {
		o.Cache.Begin(o.Epoch)
		hit, missed := o.Cache.Found()
		defer func() {
			allHit, allMissed := o.Cache.Found()
			run.out.Cached = dryrun.CachedEpoch{Epoch: o.Epoch, Cache: allHit - hit, Store: allMissed - missed}
		}()
		if foresees, err = e.foresees(ctx, len(o.Weights) > 0); err != nil {
			return nil, err
		}
		end := o.Cache.Place(e.samples, o.Epoch+1, 0)
		run.reads = func(position int64, a *dryrun.Asset, runs []dryrun.Range) {
			for o.Cache.Known(e.samples) && o.Cache.Next(end) { // as in a run, not all of the epoch is known before
			}
			simulate(o.Cache, o.Cache.Place(e.samples, o.Epoch, position), foresees, a, runs)
		}
	}
	for _, b := range run.blocks() {
		if err := run.block(ctx, b); err != nil {
			return nil, err
		}
	}
	run.finish()
	run.out.Memory.Recoded = e.recoded.Bound(run.out.Total.Bytes)
	run.out.RecodedEpochs = e.recoded.Epochs(run.out.Total.Bytes)
	if foresees {
		return &run.out, run.decide(ctx)
	}
	return &run.out, nil
}

// newDryRun returns a dry run of an epoch.
func (e *Engine) newDryRun(o dryrun.Options) *dryRun {
	run := &dryRun{engine: e, options: o, reader: pixels.NewDryReader(e.options)}
	if e.toPlan == nil && e.tiles != nil {
		run.cache = pixels.NewTileCounter(e.tiles.Bound)
	}
	if e.spans != nil && len(o.Weights) == 0 {
		run.spans = e.spansWithin(e.spans.bound)
		run.decoded, run.spans.decoded = run.spans.decoded, func(int) bool { return false }
	}
	return run
}

// simulate gives a simulated cache the reads of an asset. With foresees they come when what is read next is known.
func simulate(cache dryrun.Cache, at int64, foresees bool, a *dryrun.Asset, runs []dryrun.Range) {
	for _, run := range runs {
		cache.Add(at, cmp.Or(run.File, a.URI), source.Range{Off: run.Off, Len: run.Len}, a.Kept, foresees)
	}
}

// decide lets a simulated cache decide about all reads of an epoch that were announced. For that it announces the reads
// of the next epoch as far as a run does: at most to its end.
func (p *dryRun) decide(ctx context.Context) error {
	engine, options, cache := p.engine, p.options, p.options.Cache
	end := cache.Place(engine.samples, options.Epoch+1, 0)
	cache.Announced(end)
	batch := int64(engine.spec.BatchSize)
	options.Epoch, options.Progress = options.Epoch+1, nil
	next := engine.newDryRun(options)
	next.reads = func(position int64, a *dryrun.Asset, runs []dryrun.Range) {
		simulate(cache, cache.Place(engine.samples, options.Epoch, position), true, a, runs)
	}
	for step := range engine.Steps() {
		for cache.Known(engine.samples) {
			if !cache.Next(end) {
				return nil
			}
		}
		if err := next.announce(ctx, step); err != nil {
			return err
		}
		if err := p.charge(ctx); err != nil {
			return err
		}
		limit := min((step+1)*batch, engine.samples)
		cache.Announced(cache.Place(engine.samples, options.Epoch, limit))
	}
	for cache.Next(end) { // all of it is known now
	}
	return nil
}

// dryRun passes over the plan of an epoch and counts the work, without reading pixels.
type dryRun struct {
	engine  *Engine
	options dryrun.Options
	out     dryrun.Forecast
	cache   *pixels.TileCache   // nil if windows share no tiles
	spans   *blockSpans         // nil unless blocks of remote files are read
	decoded func(leaf int) bool // as of blockSpans: spans have the chunks, too
	reader  *pixels.DryReader   // stands for the one worker that reads all steps in their order
	done    int64
	total   int64
	// lastUse has for each chunk that windows may share the last row that needs it, by number.
	lastUse   map[pixels.TileKey]int64
	pages     pageWork
	same      readOnce
	rows      int64 // that were counted
	planned   int64 // rows at a time
	allowance int64 // bytes of memory that are charged
	// reads is told what the worker reads of each asset of a store, for a sample at a position of the epoch; or nil.
	reads func(position int64, a *dryrun.Asset, runs []dryrun.Range)
	// The most bytes that a worker holds of a run of chunks, of a decoded chunk, and of a window to
	// resample.
	maxRun, maxChunk, maxResampled, maxColours int64

	// The work of the first three quarters of the examined steps. The last quarter adds the work of a run whose
	// tiles are already in memory.
	early        dryrun.Work
	earlySources []dryrun.SourceWork
}

// stepRange is a range of steps, without end.
type stepRange struct{ from, end int64 }

// blocks returns the steps to examine: all, or evenly spread ranges of at least two pools each.
func (p *dryRun) blocks() []stepRange {
	engine, steps := p.engine, p.out.Steps
	batch := int64(engine.spec.BatchSize)
	out := []stepRange{{0, steps}}
	if p.options.Samples >= 0 && (p.options.Samples-1)/batch+1 < steps {
		count := max(p.options.Samples/batch, 1)
		blocks := int64(forecastBlocks)
		for _, d := range engine.sets {
			if d.kind.Tiles {
				pool := (int64(d.sampler.Pool)*int64(d.sampler.PerVisit) + batch - 1) / batch
				blocks = min(blocks, count/(2*pool))
			}
		}
		blocks = min(max(blocks, 1), count)
		out = out[:0]
		for i := range blocks {
			first := i * (steps / blocks)
			out = append(out, stepRange{first, min(first+count/blocks, steps)})
		}
	}
	for _, b := range out {
		p.total += b.end - b.from
	}
	return out
}

// memory computes the memory of the run.
func (p *dryRun) memory() error {
	engine, memory := p.engine, &p.out.Memory
	batch, err := engine.bytesOf(steps.LocalRows(engine.spec.BatchSize, p.options.World), false)
	if err != nil {
		return err
	}
	fit := engine.options.MemoryBytes / max(batch, 1)
	// As NewLoader has it: those that are prefetched, and the caller's.
	memory.Batch, memory.Batches = batch, int(max(min(int64(p.options.Prefetch)+1, fit), 1))
	last := engine.spec.Cut().Ticket(0, engine.Steps()-1, engine.samples, p.options.Rank, p.options.World)
	short, err := engine.bytesOf(last.Rows(), false)
	if err != nil {
		return err
	}
	if short < batch {
		memory.Short = min(short, engine.options.MemoryBytes-batch*int64(memory.Batches))
	}
	if engine.tiles != nil {
		memory.Tiles = engine.tiles.Bound
	}
	if engine.spans != nil {
		memory.Blocks = engine.spans.bound
	}
	memory.Catalog = engine.options.CacheBytes * int64(len(engine.sets))
	return nil
}

const (
	// plannedSteps is how many steps each goroutine plans before they are counted.
	plannedSteps = 8
	// plannedRows bounds the rows that are planned before they are counted. One step may have more.
	plannedRows = 1 << 16
	// plannedBytes is about what a planned row of one raster takes.
	plannedBytes = 1 << 10
)

// block examines some steps. It plans them in parallel and counts them in their order, because the chunks to
// decode depend on the tiles that earlier steps left in memory.
func (p *dryRun) block(ctx context.Context, b stepRange) error {
	workers := p.engine.options.Workers
	rows := steps.LocalRows(p.engine.spec.BatchSize, p.options.World)
	plans := make([][]dryrun.Row, min(plannedSteps*workers, max(plannedRows/rows, 1)))
	p.planned = int64(len(plans) * rows)
	if err := p.charge(ctx); err != nil {
		return err
	}
	errs := make([]error, len(plans))
	for first := b.from; first < b.end; first += int64(len(plans)) {
		count := min(int64(len(plans)), b.end-first)
		plan := func(ctx context.Context, _ int, steps iter.Seq[int64]) error {
			for i := range steps {
				plans[i], errs[i] = p.planStep(ctx, first+i)
			}
			return nil
		}
		err := each.Share(ctx, each.Numbers(count), min(workers, int(count)), plan)
		if err != nil {
			return err
		}
		for i, rows := range plans[:count] {
			if errs[i] != nil { // of the first step, not the first in time
				return errs[i]
			}
			p.pages.begin(p.engine, &p.options, first+int64(i), max(p.out.Memory.Batches-1, 1))
			if err := p.step(ctx, rows); err != nil {
				return err
			}
			p.pages.end(first + int64(i))
		}
	}
	return nil
}

// announce tells reads what the worker reads for a step.
func (p *dryRun) announce(ctx context.Context, step int64) error {
	rows, err := p.planStep(ctx, step)
	p.same = readOnce{}
	for i := range rows {
		if err == nil && rows[i].Position >= 0 {
			_, err = p.row(ctx, &rows[i])
		}
	}
	return err
}

// planStep returns the reads of a step, with the reads of substitutes for bad samples.
func (p *dryRun) planStep(ctx context.Context, step int64) ([]dryrun.Row, error) {
	engine, o := p.engine, p.options
	if err := ctx.Err(); err != nil { // also for a step without rows of this rank, which reads nothing
		return nil, err
	}
	ticket := engine.spec.Cut().Ticket(o.Epoch, step, engine.samples, o.Rank, o.World)
	ticket.Weights = steps.State{Weights: o.Weights}.WeightsAt(o.Epoch, ticket.First)
	rows, err := engine.Explain(ctx, ticket)
	if err != nil || engine.spec.BadSamples != spec.BadReplace {
		return rows, err
	}
	for _, r := range rows {
		for attempt := 1; r.Err != nil && attempt <= shuffle.MaxAttempts; attempt++ {
			row, err := engine.ExplainDraw(ctx, engine.plan.Substitute(r.Draw, attempt))
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			if row.Err == nil {
				break
			}
		}
	}
	return rows, nil
}

const (
	// useBytes is the memory of an entry of dryRun.lastUse: a key of 56 bytes and a number, in a map that is half full.
	useBytes = 2 * (56 + 8)
	// chargedAtOnce keeps charges rare.
	chargedAtOnce = 1 << 20
)

// charge charges the memory that grows with the epoch to the account of ctx.
func (p *dryRun) charge(ctx context.Context) error {
	need := useBytes*int64(len(p.lastUse)) + plannedBytes*p.planned
	if p.options.Cache != nil {
		need += p.options.Cache.Bytes()
	}
	if need <= p.allowance {
		return nil
	}
	need += chargedAtOnce - need%chargedAtOnce
	err := budget.Grow(ctx, need-p.allowance)
	if err == nil {
		p.allowance = need
	}
	return err
}

// step counts a step.
func (p *dryRun) step(ctx context.Context, rows []dryrun.Row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var total dryrun.Work
	p.same = readOnce{}
	for i := range rows {
		row := &rows[i]
		if row.Position < 0 {
			continue
		}
		if row.Err != nil && p.engine.spec.BadSamples == spec.BadError { // a run would end here
			return p.engine.atSample(ctx, row.Draw, p.options.Epoch, row.Position, row.Err)
		}
		work, err := p.row(ctx, row)
		if err != nil {
			return err
		}
		total.Add(work)
		if row.Err != nil && p.out.FirstBad == "" {
			p.out.FirstBad = row.Error
		}
		p.out.Sources[p.engine.leaves[row.Draw.Dataset].number].Add(work)
	}
	if err := p.charge(ctx); err != nil {
		return err
	}
	p.done++
	p.out.Examined++
	p.out.Total.Add(total)
	p.out.Most.Max(total)
	if p.done == p.total-p.total/4 {
		p.early = p.out.Total
		p.earlySources = slices.Clone(p.out.Sources)
	}
	if p.options.Progress != nil {
		p.options.Progress(p.done, p.total)
	}
	return nil
}

// row counts a row.
func (p *dryRun) row(ctx context.Context, r *dryrun.Row) (w dryrun.Work, err error) {
	if r.Draw.Attempt == 0 {
		w.Rows = 1
		if r.Err != nil {
			w.Bad = 1
		}
	}
	set := p.engine.set(&r.Draw)
	if p.lastUse != nil && set.sharesChunks(false) {
		p.noteShared(r)
	}
	p.spans.prepare(ctx, &r.Draw)
	views := announced(r.Assets, set)
	for i := range r.Assets {
		asset := &r.Assets[i]
		if asset.Row < 0 {
			continue
		}
		view := set.view(asset.View)
		if p.engine.spans == nil && r.Draw.Attempt == 0 && set.copies(false) {
			again, loose := p.same.note(p.engine.plan, r, asset)
			if p.out.Loose = p.out.Loose || loose; again {
				continue
			}
		}
		w.Opens++
		p.out.Gap = max(p.out.Gap, asset.Gap)
		w.Needed += int64(len(asset.Chunks))
		p.noteWorkerMemory(asset, view, len(r.Assets))
		p.reader.Share, p.reader.Wholly = pixels.Shared{}, p.engine.toPlan != nil && set.sharesChunks(false)
		switch {
		case p.cache != nil && view.pooled():
			p.reader.Share = pixels.Shared{Tiles: p.cache, Key: asset.Key}
		case views != nil:
			p.reader.Share = pixels.Shared{Tiles: views, Key: asset.Key, Order: viewOrder(asset.View)}
		}
		requests, bytes := w.Requests, w.Bytes
		if err := p.count(ctx, r.Draw.Dataset, asset, &w); err != nil {
			return w, err
		}
		if pages := p.pages.counters[set]; pages != nil && pages.Counts(asset.Key.Column) {
			n, read, err := pages.Read(ctx, asset.Key.Column, asset.Row)
			if err != nil {
				return w, err
			}
			if spanRequests, spanBytes, ok := p.pageSpan(ctx, set, asset); ok {
				n, read = spanRequests, spanBytes
			}
			w.Requests, w.Bytes, p.out.Loose = requests+n, bytes+read, true
		}
		if asset.Remote && p.reads != nil {
			p.reads(r.Position, asset, p.reader.Runs)
		}
	}
	return w, nil
}

// announced returns tiles that count what several views of a sample need, as workUnit.views does; nil for one view.
func announced(assets []dryrun.Asset, d *dataset) *pixels.TileCache {
	if d.views == nil {
		return nil
	}
	tiles := pixels.NewViewTiles(true)
	for i := range assets {
		if d.view(assets[i].View).pooled() {
			continue
		}
		tiles.Plan(viewOrder(assets[i].View), needs(assets[i:i+1]))
	}
	return tiles
}

// noteShared finds out whether a row may share chunks with rows before it: a run reads less then.
func (p *dryRun) noteShared(r *dryrun.Row) {
	p.rows++
	keeps := p.engine.tiles != nil && p.engine.tiles.Keeps()
	far := keeps || p.engine.plansAhead()
	p.out.Loose = p.out.Loose || keeps && p.options.Epoch > 0 // chunks of the epoch before are there
	together := int64(p.out.Memory.Batches * steps.LocalRows(p.engine.spec.BatchSize, p.options.World))
	for _, need := range needs(r.Assets) {
		last, used := p.lastUse[need.Key]
		p.out.Loose = p.out.Loose || used && (far || p.rows-last < together)
		p.lastUse[need.Key] = p.rows
	}
}

// count counts what the worker reads and decodes of an asset.
func (p *dryRun) count(ctx context.Context, leaf int, asset *dryrun.Asset, w *dryrun.Work) error {
	p.reader.Reads = pixels.Reads{}
	err := asset.Again(ctx, p.reader)
	p.join(asset.URI, p.decoded != nil && p.decoded(leaf))
	w.Count(&p.reader.Reads)
	p.out.Loose = p.out.Loose || p.reader.Loose
	return err
}

// join replaces the first run in a span by the span, and drops later runs in it. With decoded it also drops the chunks
// in such a run if they belong to an array, where each chunk has a run of its own.
func (p *dryRun) join(uri string, decoded bool) {
	if p.spans == nil {
		return
	}
	list := p.reader.Runs
	p.reader.Runs = list[:0]
	for _, run := range list {
		joined := p.spans.of(cmp.Or(run.File, uri), run.Off, run.Len)
		if joined == nil {
			p.reader.Runs = append(p.reader.Runs, run)
		} else if !joined.counted {
			joined.counted = true
			p.reader.Runs = append(p.reader.Runs,
				dryrun.Range{File: run.File, Off: joined.Off, Len: joined.Len, Requests: 1})
		} else if decoded {
			p.reader.Chunks = slices.DeleteFunc(p.reader.Chunks, func(c pixels.ReadChunk) bool {
				return c.Source != 0 && c.Off >= run.Off && c.Off+c.Len <= run.Off+run.Len
			})
		}
	}
}

// pageSpan counts the span that has the page of an asset, the first time. ok is false if none has.
func (p *dryRun) pageSpan(ctx context.Context, d *dataset, a *dryrun.Asset) (requests, bytes int64, ok bool) {
	extent := d.table.Fields[a.Key.Column].Extent()
	if p.spans == nil || extent == nil {
		return 0, 0, false
	}
	page, ok := extent(ctx, a.Row)
	if !ok {
		return 0, 0, false
	}
	joined := p.spans.of(page.URI, page.Off, page.Len)
	if joined == nil || joined.counted {
		return 0, 0, joined != nil
	}
	joined.counted = true
	return 1, joined.Len, true
}

// noteWorkerMemory records the memory of a worker for an asset. Buffers grow to the largest use and are kept, so
// the maximum of each counts. scenes is at least how many scenes a window on the ground has.
func (p *dryRun) noteWorkerMemory(a *dryrun.Asset, d *dataset, scenes int) {
	for _, r := range a.Runs {
		if r.Held { // readers of arrays, and of pieces, have memory of their own
			p.maxRun = max(p.maxRun, r.Len)
		}
	}
	for _, c := range a.Chunks {
		p.maxChunk = max(p.maxChunk, c.Held)
	}
	for _, raster := range d.rasters {
		p.maxColours = max(p.maxColours, raster.ColourBytes())
	}
	in, limit, held := chunk.Box{Y1: a.Window.H, X1: a.Window.W}, p.engine.options.MaxChunkBytes, int64(0)
	switch {
	case d.ground != nil:
		held = a.Raster.MosaicBytes(in, limit, d.sampler.Mosaic, scenes)
	case a.Part != "" && a.Resampled:
		held = a.Raster.WarpedBytes(in, limit)
	case a.Part == "" && d.resamples():
		held = a.Raster.ResampledBytes(a.Window, limit)
	}
	p.maxResampled = max(p.maxResampled, held)
}

// finish scales the sums up to the epoch.
func (p *dryRun) finish() {
	forecast := &p.out
	if p.cache != nil {
		forecast.Evicted = p.cache.Evicted
	}
	memory := &forecast.Memory
	memory.Worker = p.maxRun + p.maxChunk + p.maxResampled + p.maxColours + p.reader.Held
	memory.Workers = p.engine.workersFor(memory.Worker + pixels.ReaderBytes)
	if forecast.Examined < forecast.Steps {
		spec := &p.engine.spec
		rows := steps.RankRows(forecast.Samples, spec.BatchSize, forecast.Rank, forecast.World, spec.Cut().Drops())
		factor := float64(rows) / float64(max(forecast.Total.Rows, 1))
		for i := range forecast.Sources {
			forecast.Sources[i].Work = p.scaled(forecast.Sources[i].Work, p.earlySources[i].Work, factor)
		}
		forecast.Total = p.scaled(forecast.Total, p.early, factor)
	}
	forecast.Mean = forecast.Total.Times(1 / float64(forecast.Steps))
	forecast.InFlight = p.inFlight(memory.Worker + pixels.ReaderBytes)
}

// inFlight returns how many requests workers that hold so many bytes send at a time: one each, and no more than the
// samples of the batches that are being filled ask for.
func (p *dryRun) inFlight(held int64) int {
	options := p.engine.options
	workers := max(options.Fetchers, options.Workers)
	if limit := options.MostFetchers(); limit > 0 {
		workers = min(max(int(p.engine.readers/held), workers), limit)
	}
	requests := p.out.Mean.Requests * int64(max(p.options.Prefetch, p.engine.remotePrefetch(p.options.World)))
	return min(workers, max(int(requests), 1))
}

// scaled returns the work of an epoch that has factor times the rows. A run starts without tiles in
// memory, so its begin costs more; reads and decoded chunks are extended at the rate of the last
// quarter instead of the mean.
func (p *dryRun) scaled(all, early dryrun.Work, factor float64) dryrun.Work {
	out := all.Times(factor)
	if p.cache == nil || all.Rows == early.Rows {
		return out
	}
	growth := float64(all.Rows) * (factor - 1) / float64(all.Rows-early.Rows)
	on := func(all, early int64) int64 { return all + int64(growth*float64(all-early)+0.5) }
	out.Requests, out.Bytes = on(all.Requests, early.Requests), on(all.Bytes, early.Bytes)
	out.Chunks, out.Decoded = on(all.Chunks, early.Chunks), on(all.Decoded, early.Decoded)
	return out
}

// announcing returns what announces the reads of a step, or nil.
func (e *Engine) announcing(ctx context.Context, of steps.Ticket, expect expect) (announceStep, error) {
	dry := e.newDryRun(dryrun.Options{Rank: of.RowStart, World: of.RowStride})
	if foresees, err := e.foresees(ctx, of.Weights != nil); !foresees || err != nil {
		return nil, err
	}
	if w := of.Weights; w != nil {
		dry.options.Weights = []steps.Change{{Path: w.Path, Hash: w.Hash, Once: w.Once}}
	}
	dry.reads = func(position int64, a *dryrun.Asset, runs []dryrun.Range) {
		due := place(e.samples, dry.options.Epoch, position)
		for _, run := range runs {
			expect(due, a.Object, source.Range{Off: a.Start + run.Off, Len: run.Len})
		}
	}
	return func(ctx context.Context, epoch uint64, step int64) {
		dry.options.Epoch = epoch
		_ = dry.announce(ctx, step) // what cannot be explained is for a worker to report
	}, nil
}

// repeats reports whether an epoch may read a range several times, whose samples come in order or are drawn by weights.
// Otherwise the first ranges that a cache has are as good as any others.
func (e *Engine) repeats(drawn bool) bool {
	different := int64(0)
	for i := range e.leaves {
		different += e.plan.DatasetLen(i)
	}
	return slices.ContainsFunc(e.sets, func(d *dataset) bool {
		once := d.sampler.PerAsset == 1 && !d.kind.Tiles
		again := drawn || d.steps > 0 || d.weights != nil || e.samples > different
		return d.remote && (again || !once)
	})
}

// foresees reports whether a cache on disk is told what is read next: if ranges are read several times in an epoch, and
// a catalog knows the files, so looking ahead takes no requests. The first samples stand for all.
func (e *Engine) foresees(ctx context.Context, drawn bool) (bool, error) {
	if !e.repeats(drawn) {
		return false, nil
	}
	known := true
	run := e.newDryRun(dryrun.Options{World: 1})
	run.reads = func(_ int64, a *dryrun.Asset, _ []dryrun.Range) { known = known && a.Known }
	for step := range min(e.Steps(), 4) {
		if err := run.announce(ctx, step); err != nil {
			return false, err
		}
	}
	return known, nil
}

// readOnce has, for the forecast of a step, how many rows have each window of each raster that several rows may have.
type readOnce map[pixels.TileKey]map[readWindow]int

// readWindow is a window of a raster in a tensor.
type readWindow struct {
	field      string
	step, view int
	window     turnedWindow
}

// note notes a read. again says that a row of the step has the same window, so it is copied. loose says that the count
// may be wrong: one has another window of the raster, so fewer chunks may be read, or the rows are so many that several
// workers read the raster.
func (n readOnce) note(p *shuffle.Plan, r *dryrun.Row, a *dryrun.Asset) (again, loose bool) {
	drawn := p.View(&r.Draw, a.View)
	window := readWindow{a.Field, a.Step, a.View, turnedWindow{a.Window, drawn.Transform}}
	if n[a.Key] == nil {
		n[a.Key] = map[readWindow]int{}
	}
	rows := n[a.Key][window]
	n[a.Key][window]++
	return rows > 0, rows >= sameRowsAlways || rows == 0 && len(n[a.Key]) > 1
}
