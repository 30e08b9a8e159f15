package loader

import (
	"container/list"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// DefaultForecastSamples is how many samples a forecast examines by default.
const DefaultForecastSamples = 1 << 17

// forecastBlocks is how many ranges of steps stand for a whole epoch. They are spread evenly.
const forecastBlocks = 16

// ForecastOptions say for which run a forecast is.
type ForecastOptions struct {
	// Epoch is the epoch to examine.
	Epoch uint64
	// Rank and World: the engine serves this rank alone. Default: the engine serves all rows of
	// every step, in the order in which a single rank asks for them.
	Rank, World int
	// Prefetch is LoaderOptions.Prefetch. Default DefaultPrefetch.
	Prefetch int
	// Samples bounds the samples to examine. In a longer epoch some steps stand for all. Default
	// DefaultForecastSamples; below 0 there is no bound.
	Samples int64
	// Progress is called after every step, from one goroutine, with numbers of steps.
	Progress func(done, total int64)
}

// Work is what batches cost.
type Work struct {
	// Rows counts samples, without padding. Bad counts those among them that cannot be read, as far
	// as headers and tables show it. The work of their substitutes is included, and their own as
	// far as they can be read.
	Rows int64 `json:"rows"`
	Bad  int64 `json:"bad"`
	// Opens counts assets opened, once for every window. Requests counts reads of pixels after
	// adjacent chunks are joined, and Bytes what they read, with the gaps between them.
	Opens    int64 `json:"opens"`
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	// Needed counts the chunks that windows touch, each for every window. Chunks counts those that
	// are decoded: fewer if windows share decoded tiles. Decoded is their size in bytes; some
	// codecs skip the last rows of a chunk that no window needs.
	Needed  int64 `json:"needed"`
	Chunks  int64 `json:"chunks"`
	Decoded int64 `json:"decoded"`
}

// add adds the work of o.
func (w *Work) add(o Work) {
	w.Rows += o.Rows
	w.Bad += o.Bad
	w.Opens += o.Opens
	w.Requests += o.Requests
	w.Bytes += o.Bytes
	w.Needed += o.Needed
	w.Chunks += o.Chunks
	w.Decoded += o.Decoded
}

// max keeps the larger of every figure.
func (w *Work) max(o Work) {
	w.Rows, w.Bad, w.Opens = max(w.Rows, o.Rows), max(w.Bad, o.Bad), max(w.Opens, o.Opens)
	w.Requests, w.Bytes = max(w.Requests, o.Requests), max(w.Bytes, o.Bytes)
	w.Needed, w.Chunks, w.Decoded = max(w.Needed, o.Needed), max(w.Chunks, o.Chunks), max(w.Decoded, o.Decoded)
}

// times returns the work multiplied by a factor, rounded.
func (w Work) times(f float64) Work {
	by := func(n int64) int64 { return int64(float64(n)*f + 0.5) }
	return Work{by(w.Rows), by(w.Bad), by(w.Opens), by(w.Requests), by(w.Bytes), by(w.Needed), by(w.Chunks),
		by(w.Decoded)}
}

// SourceWork is the work for the samples of one source.
type SourceWork struct {
	Name   string `json:"name,omitempty"`
	Source string `json:"source"`
	Work
}

// MemoryNeed is the memory of a run in bytes.
type MemoryNeed struct {
	// Batch is one batch. Batches is how many exist at the same time: those that workers fill, as
	// many as fit, and the one that the caller holds.
	Batch   int64 `json:"batch"`
	Batches int   `json:"batches"`
	// Tiles bounds the decoded tiles that windows share.
	Tiles int64 `json:"tiles"`
	// Worker is the most that one worker holds: the bytes of a run of chunks, a decoded chunk, the
	// pixels of a resampled window before and after, and what its readers of arrays hold. There are
	// Workers of them; for remote files Options.Fetchers.
	Worker  int64 `json:"worker"`
	Workers int   `json:"workers"`
	// Catalog bounds the parsed headers and pages of tables.
	Catalog int64 `json:"catalog"`
}

// Total returns the sum in bytes.
func (m MemoryNeed) Total() int64 {
	return m.Batch*int64(m.Batches) + m.Tiles + m.Worker*int64(m.Workers) + m.Catalog
}

// Forecast is what an epoch will cost.
type Forecast struct {
	Epoch   uint64 `json:"epoch"`
	Samples int64  `json:"samples"` // of an epoch
	Steps   int64  `json:"steps"`
	Rank    int    `json:"rank"`
	World   int    `json:"world"`
	// Examined is how many steps were examined. If they are not all, Total is scaled up.
	Examined int64 `json:"examined"`
	// Evicted counts the tiles that made room for others. If there are any, what is decoded again
	// depends on the order of the workers, and the figures are those of one worker.
	Evicted int64 `json:"evicted"`
	// Total is the work of the epoch, Mean that of an average step. Most has the largest of each
	// figure among the examined steps.
	Total   Work         `json:"total"`
	Mean    Work         `json:"mean"`
	Most    Work         `json:"most"`
	Sources []SourceWork `json:"sources"`
	Memory  MemoryNeed   `json:"memory"`
	// Loose is true if reads depend on coordinates that no header has: of points, and of the sparse
	// fragments of dense arrays. Requests is an estimate then, and Bytes counts all tiles that may
	// be read.
	Loose bool `json:"loose,omitempty"`
	// FirstBad is the error of the first bad sample.
	FirstBad string `json:"first_bad,omitempty"`
}

// Exact reports whether a run has exactly the requests, bytes and chunks of the forecast. That
// needs all steps examined and no bad sample. For arrays, whose readers keep the last tile, and for
// samples that share decoded tiles, the chunks are exact if Evicted is 0, the other figures only
// with one worker. It holds for the first epoch of an engine, because the next one begins with
// tiles in memory.
func (f *Forecast) Exact() bool { return f.Examined == f.Steps && f.Total.Bad == 0 && !f.Loose }

// Forecast returns what an epoch costs, from headers, tables and the order alone: it reads no
// pixel. It reads the headers that the catalog lacks as a run would, but does not count them.
// Invalid options are errors without a kind.
func (e *Engine) Forecast(ctx context.Context, o ForecastOptions) (*Forecast, error) {
	if o.World == 0 {
		o.World = 1
	}
	if o.Prefetch == 0 {
		o.Prefetch = DefaultPrefetch
	}
	if o.Samples == 0 {
		o.Samples = DefaultForecastSamples
	}
	if o.World < 1 || o.Rank < 0 || o.Rank >= o.World || o.Prefetch < 1 {
		return nil, fmt.Errorf("loader: rank %d of %d with %d batches ahead", o.Rank, o.World, o.Prefetch)
	}
	p := &dryRun{engine: e, options: o, arrays: newArrayDryRun()}
	p.out = Forecast{Epoch: o.Epoch, Samples: e.samples, Steps: e.Steps(), Rank: o.Rank, World: o.World}
	for _, s := range e.Sources() {
		p.out.Sources = append(p.out.Sources, SourceWork{Name: s.Name, Source: s.Source})
	}
	if p.out.Steps == 0 {
		return nil, fmt.Errorf("loader: an epoch of %d samples has no whole batch of %d", e.samples, e.spec.BatchSize)
	}
	if err := p.memory(); err != nil {
		return nil, err
	}
	if e.tiles != nil {
		p.cache = newTileDryRun(e.tiles.Bound)
	}
	for _, b := range p.blocks() {
		if err := p.block(ctx, b); err != nil {
			return nil, err
		}
	}
	p.finish()
	return &p.out, nil
}

// dryRun passes over the plan of an epoch and counts the work, without reading pixels.
type dryRun struct {
	engine  *Engine
	options ForecastOptions
	out     Forecast
	cache   *tileDryRun // nil if windows share no tiles
	arrays  *arrayDryRun
	done    int64
	total   int64
	// The most bytes that a worker holds of a run of chunks, of a decoded chunk, and of a window to
	// resample.
	maxRun, maxChunk, maxResampled int64

	// The work of the first three quarters of the examined steps. What the last quarter adds is the
	// work of a run whose tiles are already in memory.
	early        Work
	earlySources []SourceWork
}

// stepRange is a range of steps, without end.
type stepRange struct{ from, end int64 }

// blocks returns the steps to examine: all, or evenly spread ranges of at least two pools each.
func (p *dryRun) blocks() []stepRange {
	e, steps := p.engine, p.out.Steps
	g := int64(e.spec.BatchSize)
	out := []stepRange{{0, steps}}
	if p.options.Samples >= 0 && (p.options.Samples-1)/g+1 < steps {
		n := max(p.options.Samples/g, 1)
		blocks := int64(forecastBlocks)
		for _, d := range e.sets {
			if d.sampler.Kind == spec.TileWindow {
				pool := (int64(d.sampler.Pool)*int64(d.sampler.PerVisit) + g - 1) / g
				blocks = min(blocks, n/(2*pool))
			}
		}
		blocks = min(max(blocks, 1), n)
		out = out[:0]
		for i := range blocks {
			at := i * (steps / blocks)
			out = append(out, stepRange{at, min(at+n/blocks, steps)})
		}
	}
	for _, b := range out {
		p.total += b.end - b.from
	}
	return out
}

// memory computes the memory of the run.
func (p *dryRun) memory() error {
	e, m := p.engine, &p.out.Memory
	one, err := e.layout(layoutKey{rows: shuffle.LocalRows(e.spec.BatchSize, p.options.World)})
	if err != nil {
		return err
	}
	fit := e.options.MemoryBytes/max(int64(one.bytes), 1) - 1 // as NewLoader has it
	m.Batch, m.Batches = int64(one.bytes), int(min(int64(p.options.Prefetch), max(fit, 1)))+1
	if most := e.options.MemoryBytes / max(m.Batch, 1); int64(m.Batches) > most {
		m.Batches = int(max(most, 1))
	}
	if e.tiles != nil {
		m.Tiles = e.tiles.Bound
	}
	m.Workers = e.options.Workers
	if slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.remote }) {
		m.Workers = max(m.Workers, e.options.Fetchers)
	}
	m.Catalog = e.options.CacheBytes * int64(len(e.sets))
	return nil
}

// stepPlan carries a step from the goroutines that plan it to the one that counts.
type stepPlan struct {
	step int64
	rows []RowPlan
	done chan struct{}
}

// block examines some steps. It plans them in parallel and counts them in their order, because what
// is decoded depends on the tiles that earlier steps left in memory.
func (p *dryRun) block(ctx context.Context, b stepRange) error {
	g, ctx := errgroup.WithContext(ctx)
	workers := p.engine.options.Workers
	ordered := make(chan *stepPlan, 2*workers)
	jobs := make(chan *stepPlan)
	g.Go(func() error {
		defer close(jobs)
		defer close(ordered)
		for s := b.from; s < b.end; s++ {
			sp := &stepPlan{step: s, done: make(chan struct{})}
			for _, to := range []chan *stepPlan{ordered, jobs} {
				select {
				case to <- sp:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			for sp := range jobs {
				var err error
				if sp.rows, err = p.planStep(ctx, sp.step); err != nil {
					return err
				}
				close(sp.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		for sp := range ordered {
			select {
			case <-sp.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := p.step(ctx, sp); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// planStep returns what is read for a step, with the substitutes of bad samples.
func (p *dryRun) planStep(ctx context.Context, step int64) ([]RowPlan, error) {
	e, o := p.engine, p.options
	rows, err := e.Explain(ctx, shuffle.StepTicket(o.Epoch, step, e.spec.BatchSize, o.Rank, o.World))
	if err != nil || e.spec.BadSamples != spec.BadReplace {
		return rows, err
	}
	for _, r := range rows {
		for attempt := 1; r.Err != nil && attempt <= shuffle.MaxAttempts; attempt++ {
			s, err := e.ExplainDraw(ctx, e.plan.Substitute(r.Draw, attempt))
			if err != nil {
				return nil, err
			}
			rows = append(rows, s)
			if s.Err == nil {
				break
			}
		}
	}
	return rows, nil
}

// step counts a step.
func (p *dryRun) step(ctx context.Context, s *stepPlan) error {
	var all Work
	for i := range s.rows {
		r := &s.rows[i]
		if r.Position < 0 {
			continue
		}
		w, err := p.row(ctx, r)
		if err != nil {
			return err
		}
		all.add(w)
		if r.Err != nil && p.out.FirstBad == "" {
			p.out.FirstBad = r.Error
		}
		p.out.Sources[p.engine.leaves[r.Draw.Dataset].number].add(w)
	}
	p.done++
	p.out.Examined++
	p.out.Total.add(all)
	p.out.Most.max(all)
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
func (p *dryRun) row(ctx context.Context, r *RowPlan) (w Work, err error) {
	if r.Draw.Attempt == 0 {
		w.Rows = 1
		if r.Err != nil {
			w.Bad = 1
		}
	}
	d := p.engine.leaves[r.Draw.Dataset]
	for i := range r.Assets {
		a := &r.Assets[i]
		if a.Row < 0 {
			continue
		}
		w.Opens++
		w.Needed += int64(len(a.Chunks))
		f := d.raster(a.Field)
		p.noteWorkerMemory(a, d, f)
		if p.cache != nil && d.sampler.Kind == spec.TileWindow {
			key := pixels.TileKey{Set: d.number, Column: f.TableColumn, Row: a.Row}
			mine := p.cache.asset(a, key, &w)
			p.out.Evicted = p.cache.evicted
			if err := p.arrayReads(ctx, a, mine, &w); err != nil {
				return w, err
			}
			continue
		}
		if err := p.arrayReads(ctx, a, a.Chunks, &w); err != nil {
			return w, err
		}
		for _, run := range a.Runs {
			if a.blocks == nil {
				w.Requests++
				w.Bytes += run.Len
			}
		}
		for _, c := range a.Chunks {
			w.Chunks++
			w.Decoded += int64(c.Decoded)
		}
	}
	for i := range r.Points {
		q := r.Points[i]
		if err := p.arrays.points(ctx, &q, w.read); err != nil {
			return w, err
		}
		p.out.Loose = p.out.Loose || !q.Exact
	}
	return w, nil
}

// read counts one read.
func (w *Work) read(_ string, _, n int64) {
	w.Requests++
	w.Bytes += n
}

// arrayReads counts the reads for some chunks of an array.
func (p *dryRun) arrayReads(ctx context.Context, a *AssetPlan, chunks []ChunkPlan, w *Work) error {
	if a.blocks == nil {
		return nil
	}
	exact, err := p.arrays.blocks(ctx, a.blocks, chunks, w.read)
	p.out.Loose = p.out.Loose || !exact
	return err
}

// noteWorkerMemory notes what a worker holds for an asset. Its buffers grow to the largest use and
// are kept, so the maximum of each counts.
func (p *dryRun) noteWorkerMemory(a *AssetPlan, d *dataset, f *pixels.Raster) {
	for _, r := range a.Runs {
		if a.blocks == nil { // readers of arrays have memory of their own
			p.maxRun = max(p.maxRun, r.Len)
		}
	}
	for _, c := range a.Chunks {
		p.maxChunk = max(p.maxChunk, int64(c.Decoded)+chunk.Spare)
	}
	if d.sampler.Kind == spec.ResizedWindow {
		p.maxResampled = max(p.maxResampled, f.ResampledBytes(shuffle.Box{H: a.Window.H, W: a.Window.W},
			p.engine.options.MaxChunkBytes))
	}
}

// finish scales the sums up to the epoch.
func (p *dryRun) finish() {
	f := &p.out
	f.Memory.Worker = p.maxRun + p.maxChunk + p.maxResampled + p.arrays.held
	if f.Examined < f.Steps {
		spec := &p.engine.spec
		rows := shuffle.RankRows(f.Samples, spec.BatchSize, f.Rank, f.World, spec.DropLast)
		factor := float64(rows) / float64(max(f.Total.Rows, 1))
		for i := range f.Sources {
			f.Sources[i].Work = p.scaled(f.Sources[i].Work, p.earlySources[i].Work, factor)
		}
		f.Total = p.scaled(f.Total, p.early, factor)
	}
	f.Mean = f.Total.times(1 / float64(f.Steps))
}

// scaled returns the work of an epoch that has factor times the rows. A run starts without tiles in
// memory, so its begin costs more; reads and decoded chunks are extended at the rate of the last
// quarter instead of the mean.
func (p *dryRun) scaled(all, early Work, factor float64) Work {
	out := all.times(factor)
	if p.cache == nil || all.Rows == early.Rows {
		return out
	}
	more := float64(all.Rows) * (factor - 1) / float64(all.Rows-early.Rows)
	on := func(all, early int64) int64 { return all + int64(more*float64(all-early)+0.5) }
	out.Requests, out.Bytes = on(all.Requests, early.Requests), on(all.Bytes, early.Bytes)
	out.Chunks, out.Decoded = on(all.Chunks, early.Chunks), on(all.Decoded, early.Decoded)
	return out
}

// tileDryRun does what pixels.TileCache does for one worker, without the tiles.
type tileDryRun struct {
	bound, held, evicted int64
	by                   map[pixels.TileKey]*plannedTile
	used                 list.List // of *plannedTile
}

// plannedTile is a tile that a run would hold.
type plannedTile struct {
	key     pixels.TileKey
	bytes   int64
	holders int
	place   *list.Element
}

func newTileDryRun(bound int64) *tileDryRun {
	return &tileDryRun{bound: bound, by: map[pixels.TileKey]*plannedTile{}}
}

// asset counts the reads of an asset, and then of its mask, by a pixels.Reader that shares tiles.
// It returns the chunks that are decoded.
func (c *tileDryRun) asset(a *AssetPlan, key pixels.TileKey, w *Work) (mine []ChunkPlan) {
	from := 0
	for from < len(a.Chunks) {
		end := from
		for end < len(a.Chunks) && a.Chunks[end].Mask == a.Chunks[from].Mask {
			end++
		}
		key.Mask = a.Chunks[from].Mask
		mine = append(mine, c.plane(a.Chunks[from:end], key, a.gap, w)...)
		from = end
	}
	return mine
}

// plane counts the reads of the chunks of an asset or of its mask, and returns the chunks that are
// decoded.
func (c *tileDryRun) plane(chunks []ChunkPlan, key pixels.TileKey, gap int64, w *Work) []ChunkPlan {
	var got []*plannedTile
	var mine []ChunkPlan
	for _, p := range chunks {
		if p.sparse {
			w.Chunks++
			w.Decoded += int64(p.Decoded)
			continue
		}
		key.Chunk = p.Chunk
		t, there := c.get(key, int64(p.Decoded))
		if t != nil {
			got = append(got, t)
		}
		if !there {
			mine = append(mine, p)
			w.Chunks++
			w.Decoded += int64(p.Decoded)
		}
	}
	for _, t := range got {
		if t.holders--; t.holders == 0 {
			t.place = c.used.PushFront(t)
		}
	}
	// This loop must join chunks as nextRun of package pixels does, otherwise the forecast would
	// not be exact.
	for i := 0; i < len(mine); {
		if mine[i].Len == 0 { // a chunk of an array, whose reads arrayReads counts
			i++
			continue
		}
		off, end := mine[i].Off, mine[i].Off+mine[i].Len
		for i++; i < len(mine); i++ {
			last := max(end, mine[i].Off+mine[i].Len)
			if mine[i].Off < off || mine[i].Off-end > gap || last-off > pixels.MaxRun {
				break
			}
			end = last
		}
		w.Requests++
		w.Bytes += end - off
	}
	return mine
}

// get is TileCache's get: it returns nil if there is no room.
func (c *tileDryRun) get(key pixels.TileKey, n int64) (t *plannedTile, there bool) {
	if t = c.by[key]; t != nil {
		if t.holders++; t.place != nil {
			c.used.Remove(t.place)
			t.place = nil
		}
		return t, true
	}
	for c.held+n > c.bound {
		last := c.used.Back()
		if last == nil {
			c.evicted++
			return nil, false
		}
		old := c.used.Remove(last).(*plannedTile)
		delete(c.by, old.key)
		c.held -= old.bytes
		c.evicted++
	}
	t = &plannedTile{key: key, bytes: n, holders: 1}
	c.by[key] = t
	c.held += n
	return t, false
}
