package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/digest"
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

// Engine serves the tickets of one spec. It holds the dataset, the compiled fields, and the workers
// and memory that all tickets share. It is safe for concurrent use.
type Engine struct {
	spec    Spec
	hash    string
	run     steps.Parts
	options Options
	sets    []*dataset // one for each source that is not a mixture, in the order of the spec
	leaves  []*dataset // for each dataset of the plan, its source: a source with strata has several
	groups  []*group   // of sets, by what may stand in one batch
	opening *group     // to which the next source belongs; nil if it begins another
	plan    *shuffle.Plan
	samples int64 // N, the samples of an epoch
	memory  *memory
	tiles   *pixels.TileCache // nil if windows share no decoded chunks
	plans   chan planned      // tickets whose chunks tiles is told about; nil for windows that are drawn tile by tile
	ahead   *lookahead        // says to Options.Disk what is read next; nil if that would change nothing
	// layoutMu guards layouts. The dispatcher and callers of BatchesFit and BatchBytes ask for
	// layouts at the same time.
	layoutMu sync.Mutex
	layouts  map[layoutKey]*layout
	queue    *queue
	units    chan unit
	fewest   int          // workers at least
	readers  atomic.Int64 // workers
	peak     atomic.Int64 // the most bytes that a worker held after a unit; 0: none is done
	slow     slow
	stop     context.CancelFunc
	done     sync.WaitGroup
	account  *budget.Account // memory that the engine holds of the budget, without batches
	closing  sync.Once
	closeErr error
}

// group is the sources whose samples may stand in one batch, so that their tensors have one shape. A spec has one
// group; with batches of one source each of these is a group, a mixture among them with all of its sources. Where
// batches have windows of several sizes, each has a group for every size.
type group struct {
	sets   []*dataset // at least one
	perRow int        // units of one row of a batch
	native []bool     // for each raster field: it may be sent in its native dtype
	infos  []batch.FieldInfo
}

// lead returns the first source of the group. Its fields stand for the fields of the others.
func (g *group) lead() *dataset { return g.sets[0] }

// compile checks the sources of the group, which are open, and counts the units of a row.
func (g *group) compile(e *Engine) error {
	lead := g.lead()
	if err := e.checkValidity(g); err != nil {
		return err
	}
	if e.spec.Windows && len(lead.rasters) == 0 {
		return errors.New("spec: windows is true, and no field is a raster")
	}
	if e.spec.Geo && len(lead.rasters) == 0 {
		return errors.New("spec: geo is true, and no field is a raster")
	}
	if e.hasMetadataUnit(g) {
		g.perRow++
	}
	g.native = make([]bool, len(lead.rasters))
	for i, field := range lead.rasters {
		g.perRow += max(field.Steps, 1)
		// A native tensor carries one arithmetic for all its rows, so every source must share it. Resampled windows are
		// never native, because their pixels are computed, not copied; nor are stacks whose parts may be resampled.
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
			g.native[i] = g.native[i] && d.rasters[i].SameArithmetic(field) && !d.resamples() &&
				d.rasters[i].CopiesParts()
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
	if e.spec.BatchSize == 1 {
		return nil
	}
	for _, r := range g.lead().rasters { // a layout without n holds one sample only
		raster := r.Tensor()
		if _, err := raster.LayoutPattern.Plan(raster.Axes(2), raster.Sizes); err != nil {
			return rows.InField(raster.Name, err)
		}
	}
	return nil
}

// openEngine compiles a spec and opens its tables. If it fails it still returns the engine, so that
// the caller can close the tables that were opened.
func openEngine(ctx context.Context, spec Spec, o Options, open rows.Opener) (*Engine, error) {
	engine := &Engine{spec: spec, options: o, layouts: map[layoutKey]*layout{}, units: make(chan unit, unitsAhead)}
	// A panic becomes an error here, so that the caller still closes the tables.
	if err := crash.Call(func() error { return engine.compile(ctx, open) }); err != nil {
		return engine, err
	}
	engine.account = budget.Of(ctx)
	engine.setMemory()
	if err := engine.makeTiles(ctx); err != nil {
		return engine, err
	}
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
	engine.queue = newQueue(engine.options.MemoryBytes, engine.spec.BatchSize)
	engine.memory = newMemory(engine.options.MemoryBytes, o.Alloc, o.Budget, floor, engine.queue.poke)
	engine.queue.memory, engine.queue.now = engine.memory, engine.memory.now
	if engine.queue.stages = o.Stages; o.Stages != nil {
		engine.slow.sources = make([]sourceTime, len(engine.sets))
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
		if d.byTile() {
			need += 2 * d.poolBytes()
		}
	}
	return need
}

// makeTiles sets aside memory for decoded tiles. It takes at most half of the memory, so that
// batches keep the other half.
func (e *Engine) makeTiles(ctx context.Context) error {
	need := e.poolBytes()
	if need == 0 {
		e.makePlannedTiles()
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
// stays for the batches of one client.
func (e *Engine) makePlannedTiles() {
	if !slices.ContainsFunc(e.sets, (*dataset).sharesChunks) {
		return
	}
	memory := e.options.MemoryBytes
	batches := min(memory/busyBatches, e.BatchBytes()) * busyBatches
	if bound := min(memory/plannedShare, memory-batches); bound > 0 {
		e.tiles = pixels.NewPlannedTiles(bound, e.options.Budget)
		e.plans = make(chan planned, plansAhead)
		e.options.MemoryBytes -= bound
	}
}

const (
	// plannedShare is the part of the memory that decoded chunks take at most. With 32 windows of 6 x 256 x 256
	// as float32, eight batches fill 384 MiB, of which this is 96 MiB.
	plannedShare = 4
	// plansAhead is how many tickets wait until their chunks are known: more than a client prefetches.
	plansAhead = 16
)

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
		Take: e.spec.Take, Batch: int64(e.spec.BatchSize)})
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	e.samples = e.plan.Len()
	if err := e.setClasses(ctx); err != nil {
		return err
	}
	if err := e.addSizes(); err != nil {
		return err
	}
	for _, g := range e.groups {
		if err := g.compile(e); err != nil {
			return err
		}
	}
	return nil
}

// setClasses sets the values of all classes, and the classes of the spec if it has none: one list for all sources, so
// that a string has one value in a batch.
func (e *Engine) setClasses(ctx context.Context) error {
	for i := range spec.RowFields(e.spec.Fields) {
		field := &e.spec.Fields[i]
		if field.Kind != spec.ClassField {
			continue
		}
		if field.Classes == nil {
			var sources []classSource
			for _, d := range e.sets {
				sources = append(sources, classSource{d.table, &d.source, d.extras.Selected})
			}
			found, err := findClasses(ctx, i, field.DType, sources)
			if err != nil {
				return rows.InField(field.Name, err)
			}
			field.Classes = found
		}
		for _, dataset := range e.sets {
			column := slices.IndexFunc(dataset.values, func(v valueField) bool { return v.column == i })
			for n, c := range field.Classes {
				dataset.values[column].classes[c] = int64(n)
			}
		}
	}
	return nil
}

// set returns the dataset of a draw.
func (e *Engine) set(draw *shuffle.Draw) *dataset {
	d := e.leaves[draw.Dataset]
	if sized := d.sized[draw.Side]; sized != nil {
		return sized
	}
	return d
}

// groupOf returns the group of a ticket whose positions exist. The group of a run is the group of its global batch,
// which all ranks see; positions that a ticket names must be of one group.
func (e *Engine) groupOf(t steps.Ticket) (*group, error) {
	if len(e.groups) == 1 || e.samples == 0 {
		return e.groups[0], nil
	}
	if len(t.Positions) == 0 {
		if size := int64(e.spec.BatchSize); t.First%size+int64(t.Count) > size {
			return nil, fault.New(fault.Unsupported, "ticket", fault.NoOffset,
				"positions %d to %d are of two batches, and each batch is of one source and size", t.First,
				t.First+int64(t.Count)-1)
		}
		draw := e.plan.At(t.Epoch, min(t.First, e.samples-1))
		return e.set(&draw).group, nil
	}
	var first *group
	for k, position := range t.Positions {
		draw := e.plan.Draw(t, k)
		drawn := e.set(&draw).group
		if k > 0 && drawn != first {
			return nil, fault.New(fault.Unsupported, "ticket", fault.NoOffset,
				"positions %d and %d are of sources that have no batch in common: ask for those of one source at a "+
					"time", t.Positions[0], position)
		}
		first = drawn
	}
	return first, nil
}

// Lend counts n bytes of a batch as held by a client for as long as it likes. It reports false if there must be no more
// of them: the other batches of this engine, and of others, need the memory.
func (e *Engine) Lend(n int64) bool { return e.memory.lend(n, e.BatchBytes()) }

// Returned says that a client holds n bytes of Lend no more.
func (e *Engine) Returned(n int64) { e.memory.returned(n, e.BatchBytes()) }

// unitsAhead is how many units wait for workers. With fewer, a worker that takes a unit would often
// have to wake the dispatcher.
const unitsAhead = 256

// setHash computes the spec hash: the hash of the spec's JSON without the paths of the data, and of
// the fingerprints of all sources.
func (e *Engine) setHash() error {
	// A moved dataset must keep its hash, so paths are left out. The order's version is part of it,
	// because a state must not resume in another order.
	placeless := e.spec.Placeless()
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
	data := hashed{samples: e.samples, digest: e.digest()}
	for _, d := range e.sets {
		data.sources = append(data.sources, hashedSource{d.name, d.table.Fingerprint(), d.table.Len()})
	}
	e.run, err = partsOf(&e.spec, data)
	return err
}

// fillsFloats reports whether a raster field fills nodata that older versions kept unless Fill or
// Normalize was set. It changes the spec hash, so that a state of an older version is refused
// instead of resumed with other pixels.
func (e *Engine) fillsFloats() bool {
	return slices.ContainsFunc(e.sets, func(d *dataset) bool {
		return slices.ContainsFunc(d.rasters, (*pixels.Raster).FillsFloats)
	})
}

// digest returns a hash of the data, beyond the fingerprints, that the order depends on: selected
// rows, weights, sizes, boxes. It is empty if the order depends on nothing else.
func (e *Engine) digest() string {
	hasher, chosen := digest.New(), false
	for _, dataset := range e.sets {
		sum := dataset.digest.Sum()
		_, _ = hasher.Write(sum[:])
		chosen = chosen || dataset.hasDigest
	}
	if !chosen {
		return ""
	}
	return hasher.Hex()
}

// Spec returns the spec with its defaults filled in.
func (e *Engine) Spec() Spec { return e.spec }

// Hash returns the spec hash: equal for equal specs on equal data.
func (e *Engine) Hash() string { return e.hash }

// State returns the state at the start of a run.
func (e *Engine) State() steps.State {
	return steps.State{Version: steps.Version, Spec: e.hash, Seed: e.spec.Seed, Run: e.run}
}

// Fingerprint returns the dataset's fingerprint. For a mixture it is a hash of the fingerprints of
// all sources.
func (e *Engine) Fingerprint() string {
	if len(e.sets) == 1 {
		return e.sets[0].table.Fingerprint()
	}
	hasher := digest.New()
	for _, d := range e.sets {
		_, _ = hasher.WriteString(d.table.Fingerprint() + "\n")
	}
	return hasher.Hex()
}

// Plan returns the plan of the order, which says what stands at each position. SourceInfo.Datasets
// maps its datasets to sources.
func (e *Engine) Plan() *shuffle.Plan { return e.plan }

// Len returns N, the samples of an epoch.
func (e *Engine) Len() int64 { return e.samples }

// Steps returns the steps of an epoch.
func (e *Engine) Steps() int64 {
	return steps.Count(e.samples, e.spec.BatchSize, e.spec.Cut().Drops())
}

// Fields describes the tensors of a batch, in the order of the spec's fields. With batches of one source they are
// the fields of the first source, and SourceInfo has the fields of each. Windows of several sizes have the largest one
// here.
func (e *Engine) Fields() []batch.FieldInfo { return e.groups[0].infos }

// Trim frees the idle batch memory and the idle decoded tiles. Call it before an engine rests for a
// while.
func (e *Engine) Trim() {
	e.memory.trim()
	if e.tiles != nil {
		e.tiles.Trim()
	}
}

// Forget frees the idle batch memory of an owner that is gone: see resources.WithOwner.
func (e *Engine) Forget(o batch.Owner) { e.memory.forget(o) }

// Close stops the workers and closes the dataset. Batches that were not released stay valid.
// Unfinished tickets end with ErrClosed. Further calls return the same error.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		// Workers must end before the tables close, because they read from them.
		e.stop()
		e.ahead.close()
		e.done.Wait()
		e.memory.close()
		if e.tiles != nil {
			e.tiles.Close()
		}
		e.closeErr = e.closeTables()
		e.options.CloseOpener()
		e.account.Close()
	})
	return e.closeErr
}

// layoutKey has the values that the layout of a batch's memory depends on.
type layoutKey struct {
	group  *group
	rows   int
	native bool
}

// layout says where each tensor lies in the memory of a batch.
type layout struct {
	rasters []rasterLayout
	vectors []int // for each field of shapes the first byte of its tensor
	bytes   int
}

type rasterLayout struct {
	plan      *einops.Plan
	dtype     chunk.DType
	data, end int // byte range of the tensor in the memory
	mask      int // first byte of the validity or of the receiver's mask, or -1
	native    bool
}

const (
	// Estimated bytes of a row, of one value of a metadata column, and of a window beside the tensors. The layout
	// leaves as much room in front of the tensors, so that they count too.
	rowBytes    = 48
	valueBytes  = 64
	windowBytes = 4 * 8 // y, x, height and width as int64
)

// maxLayouts bounds the layouts that are kept, for each group. A run has one or two: full batches, and the last one
// of an epoch. The bound is for servers, whose clients choose the rows of a ticket.
const maxLayouts = 64

// layout returns the layout of a batch, made once for each key. It fails with kind limit if the
// batch is over the memory.
func (e *Engine) layout(key layoutKey) (*layout, error) {
	e.layoutMu.Lock()
	defer e.layoutMu.Unlock()
	if known := e.layouts[key]; known != nil {
		return known, nil
	}
	made := &layout{}
	// The memory beside the tensors counts too, otherwise a spec without rasters would have no
	// bound. The layout leaves that much room in front of the tensors to account for it.
	lead := key.group.lead()
	_, steps := e.validity(key.group) // with a byte for each
	rowSize := rowBytes + steps
	for _, v := range lead.values {
		rowSize += (valueBytes + v.listBytes()) * max(lead.steps, 1)
	}
	if e.spec.Windows {
		rowSize += windowBytes
	}
	if e.spec.Geo {
		rowSize += geoBytes + timeBytes*max(lead.steps, 1)
	}
	if made.bytes = key.rows * rowSize; pixels.BoundedBytes(e.options.MemoryBytes, key.rows, rowSize) < 0 {
		return nil, pixels.OverMemory("batch", key.rows, "", e.options.MemoryBytes)
	}
	made.bytes = pixels.Align64(made.bytes)
	for i, r := range lead.rasters {
		checked := slices.ContainsFunc(key.group.sets, func(d *dataset) bool { return d.rasters[i].Checked() })
		if err := made.add(r.Tensor(), key, key.group.native[i], checked, e.options.MemoryBytes); err != nil {
			return nil, err
		}
	}
	if err := made.addVectors(lead, key.rows, e.options.MemoryBytes); err != nil {
		return nil, err
	}
	// A layout is cheap to make again, so all are dropped rather than the oldest looked for.
	if len(e.layouts) >= maxLayouts*len(e.groups) {
		clear(e.layouts)
	}
	e.layouts[key] = made
	return made, nil
}

// add places a field's tensor, and its mask if it has one. It checks the bound first, so that no
// later product can overflow.
func (l *layout) add(r *pixels.Raster, key layoutKey, native, checked bool, bound int64) error {
	if need := pixels.BoundedBytes(bound, key.rows, max(r.Steps, 1), len(r.Picked), r.H, r.W, r.To.Size()); need < 0 {
		each := fmt.Sprintf(" of (%d, %d, %d) %s", len(r.Picked), r.H, r.W, r.To)
		return pixels.OverMemory(fmt.Sprintf("field %q", r.Name), key.rows, each, bound)
	}
	plan, err := r.LayoutPattern.Plan(r.Axes(key.rows), r.Sizes)
	if err != nil {
		return rows.InField(r.Name, err)
	}
	placed := rasterLayout{plan: plan, dtype: r.To, mask: -1}
	placed.native = key.native && native && r.WireNative(plan)
	if placed.native {
		placed.dtype = r.Native
	}
	placed.data = l.bytes
	placed.end = placed.data + plan.Len()*placed.dtype.Size()
	l.bytes = pixels.Align64(placed.end)
	if r.Validity != "" || placed.native || checked {
		placed.mask = l.bytes
		l.bytes = pixels.Align64(placed.mask + plan.Len())
	}
	if int64(l.bytes) > bound {
		return pixels.OverMemory("batch", key.rows, "", bound)
	}
	l.rasters = append(l.rasters, placed)
	return nil
}

// MemoryBytes returns the bytes of memory for batches: Options.MemoryBytes or its default, less
// those for decoded tiles.
func (e *Engine) MemoryBytes() int64 { return e.options.MemoryBytes }

// Wanted reports whether tickets of other streams than t wait for memory.
func (e *Engine) Wanted(t resources.Turn) bool { return e.queue.othersWait(t) }

// BatchesFit returns how many batches of a number of rows fit into the memory, of the largest ones: at least one. If
// none fits it returns an error of kind limit.
func (e *Engine) BatchesFit(rows int) (int64, error) {
	largest, err := e.bytesOf(rows, false)
	return e.options.MemoryBytes / max(largest, 1), err
}

// bytesOf returns the bytes of the largest batch of a number of rows.
func (e *Engine) bytesOf(rows int, native bool) (largest int64, _ error) {
	for _, g := range e.groups {
		layout, err := e.layout(layoutKey{g, rows, native})
		if err != nil {
			return 0, err
		}
		largest = max(largest, int64(layout.bytes))
	}
	return largest, nil
}

// BatchBytes returns the bytes of the largest batch, which has all rows of a step. It returns 0 if
// the memory cannot hold it.
func (e *Engine) BatchBytes() int64 {
	total := int64(0)
	// Both layouts must be compared, because a native one has smaller samples but always a mask.
	for _, native := range []bool{false, true} {
		largest, err := e.bytesOf(e.spec.BatchSize, native)
		if err != nil {
			return 0
		}
		total = max(total, largest)
	}
	return total
}

// describe fills the infos of a group with the tensors of a batch of one row, in the order of the fields.
func (e *Engine) describe(g *group, one *layout) {
	padding := &Pending{engine: e, group: g, layout: one, draws: make([]shuffle.Draw, 1), errs: make([]rowErrors, 1),
		batch: &batch.Batch{Rows: 1, Valid: make([]bool, 1), Positions: []int64{-1}}}
	parts := e.columns(padding)
	add := func(c column) {
		for _, m := range c.members() {
			info := batch.FieldInfo{Name: m.Name, Kind: m.kind, DType: m.DType, Shape: m.Shape, Axes: m.Axes}
			g.infos = append(g.infos, info)
		}
	}
	g.inOrder(e, func(i int) {
		field, plan := g.lead().rasters[i].Tensor(), one.rasters[i].plan
		info := batch.FieldInfo{Name: field.Name, Kind: catalog.Raster.String(), DType: field.To,
			Shape: pixels.Int64s(plan.Shape), Axes: plan.Axes, Bands: field.Shown, Wavelengths: field.Wavelengths,
			GSD: field.GSD, Classes: field.Legend.Names, Palette: field.Legend.Palette}
		g.infos = append(g.infos, info)
		if field.Validity != "" {
			g.infos = append(g.infos, batch.FieldInfo{Name: field.Validity, Kind: "mask", DType: chunk.Uint8,
				Shape: info.Shape, Axes: info.Axes})
		}
	}, func(i int) { add(parts[i]) })
	for _, c := range parts[len(g.lead().values):] {
		add(c)
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
	return "", 0
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

// valueShape returns the shape and axes of a metadata column of a batch: (n), or (n, t) for sequences.
func (p *Pending) valueShape() ([]int64, []string) {
	return stepShape(p.batch.Rows, p.group.lead().steps)
}

// inOrder visits raster fields and metadata columns in the order of the spec.
func (g *group) inOrder(e *Engine, raster, value func(i int)) {
	r, v, values := 0, 0, g.lead().values
	for i := range spec.RowFields(e.spec.Fields) {
		if v < len(values) && values[v].column == i {
			value(v)
			v++
			continue
		}
		raster(r)
		r++
	}
}

// ID returns the name of a row of the table behind a dataset of the plan: see catalog.Table.ID,
// also for its errors. dataset is less than shuffle.Plan.Datasets, row less than the length of its
// table.
func (e *Engine) ID(ctx context.Context, dataset int, row int64) (string, error) {
	return e.leaves[dataset].table.ID(ctx, row)
}

// smallReaders bounds the memory of workers beyond Options.Fetchers, in bytes: 320 workers may hold 200 KiB each.
const smallReaders = 64 << 20

// workersFor returns how many workers the engine may have if each holds so many bytes: for remote files with small
// samples more than Options.Fetchers, since only many requests fill a link with them. It returns the fewest for 0,
// which stands for unknown.
func (e *Engine) workersFor(held int64) int {
	fewest := e.fewest
	if most := e.options.MostFetchers(); held > 0 && e.options.Waits() {
		return min(max(int(smallReaders/held), fewest), max(most, fewest))
	}
	return fewest
}

// fetchers returns how many goroutines run units at least: more than Workers if files are remote, since most
// of them then wait for bytes.
func (e *Engine) fetchers() int { return e.options.Readers(e.options.Workers, e.remote()) }

// remote reports whether some files are not local.
func (e *Engine) remote() bool {
	return slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.remote })
}
