package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Engine serves the tickets of one spec: a dataset, compiled fields, and the workers and memory
// that all its tickets share. It is safe for concurrent use.
type Engine struct {
	spec     Spec
	hash     string
	run      shuffle.Parts
	options  Options
	sets     []*dataset // of the spec's sources, in order
	leaves   []*dataset // of the plan's datasets: a set is several of them where it has strata
	plan     *shuffle.Plan
	samples  int64            // N
	perRow   int              // units of a row
	native   []bool           // by raster field: it may be sent in its native dtype
	rasters  []*pixels.Raster // of the first set: what tensors look like, which is the same in all
	values   []valueField
	infos    []FieldInfo
	memory   *memory
	tiles    *pixels.TileCache // where windows come tile by tile, else nil
	layoutMu sync.Mutex
	layouts  map[layoutKey]*layout
	queue    queue
	units    chan unit
	stop     context.CancelFunc
	done     sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// FieldInfo says what a tensor of a batch looks like for a batch of one row.
type FieldInfo struct {
	Name  string      `json:"name"`
	Kind  string      `json:"kind"`  // "raster", "int", "float", "text", "mask" or "points"
	DType chunk.DType `json:"dtype"` // of the final elements; Invalid for text
	Shape []int64     `json:"shape"` // lengths of Axes
	Axes  []string    `json:"axes"`  // "n", "b", "(h w)", ...
}

// Open opens the spec's dataset and compiles its fields. Errors about files are of package fault.
func Open(ctx context.Context, spec Spec, o Options) (*Engine, error) {
	spec.AllFields = spec.AllFields || len(spec.Fields) == 0
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	spec, err := rows.WithOwnFields(ctx, spec, o)
	if err != nil {
		o.CloseOpener()
		return nil, err
	}
	e, err := openEngine(ctx, spec, o, func(ctx context.Context, src Source, fields []Field) (Table, error) {
		return rows.Open(ctx, src, fields, o)
	})
	if err != nil {
		o.CloseOpener()
		return nil, errors.Join(err, e.closeTables())
	}
	return e, nil
}

// newEngine compiles a spec for a table, which it owns once it returns without an error.
func newEngine(ctx context.Context, spec Spec, o Options, t Table) (*Engine, error) {
	e, err := openEngine(ctx, spec, o, func(context.Context, Source, []Field) (Table, error) { return t, nil })
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openEngine compiles a spec, and opens its tables. With an error it returns what it had opened.
func openEngine(ctx context.Context, spec Spec, o Options, open rows.Opener) (*Engine, error) {
	e := &Engine{spec: spec, options: o, layouts: map[layoutKey]*layout{}, units: make(chan unit, unitsAhead)}
	if err := e.compile(ctx, open); err != nil {
		return e, err
	}
	e.setMemory()
	e.makeTiles()
	if err := e.setHash(); err != nil {
		return e, err
	}
	// One row must fit; whether a ticket's rows do is known when it comes.
	one, err := e.layout(layoutKey{rows: 1})
	if err != nil {
		return e, err
	}
	e.describe(one)
	if e.spec.BatchSize > 1 { // a layout without n holds one sample only
		for _, r := range e.rasters {
			if _, err := r.LayoutPattern.Plan(r.Axes(2), r.Sizes); err != nil {
				return e, rows.InField(r.Name, err)
			}
		}
	}
	e.memory = newMemory(e.options.MemoryBytes, o.Alloc) // less the tiles
	e.start()
	return e, nil
}

// autoBatches is the batches that the default memory has room for: two in the making, the one that the caller has, and
// one that is on its way to the caller.
const autoBatches = 4

// setMemory chooses the memory where the user has not. A file says how large its chips are, and so how large a batch is:
// the memory of the machine bounds what it can ask for.
func (e *Engine) setMemory() {
	if e.options.MemoryBytes != 0 {
		return
	}
	most := max(DefaultMemoryBytes, procs.Memory()/4)
	e.options.MemoryBytes = most
	batch := e.BatchBytes()
	if batch == 0 || batch > (most-min(e.poolBytes(), most))/autoBatches {
		return
	}
	e.options.MemoryBytes = max(DefaultMemoryBytes, autoBatches*batch+e.poolBytes())
}

// poolBytes returns the memory for decoded tiles of two pools of every dataset, since one ends while the next begins.
func (e *Engine) poolBytes() int64 {
	need := int64(0)
	for _, d := range e.sets {
		if d.sampler.Kind == TileWindow {
			need += 2 * d.poolBytes()
		}
	}
	return need
}

// makeTiles takes memory for decoded tiles out of that of batches, half of it at most.
func (e *Engine) makeTiles() {
	need := e.poolBytes()
	if need == 0 {
		return
	}
	most := e.options.MemoryBytes / 2
	if need > 2*most {
		e.options.Logger.Warn("a pool of tiles is over half of the memory: tiles will be decoded more than once", "pool bytes", need/2, "memory bytes", e.options.MemoryBytes)
	}
	e.tiles = pixels.NewTileCache(min(need, most))
	e.options.MemoryBytes -= e.tiles.Bound
}

// closeTables closes the tables of all sources.
func (e *Engine) closeTables() error {
	var errs []error
	for _, d := range e.sets {
		errs = append(errs, d.table.Close())
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
	e.plan, err = shuffle.NewPlan(shuffle.Spec{Seed: e.spec.Seed, Shuffle: e.spec.Shuffle, Source: top, Take: e.spec.Take})
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	e.samples = e.plan.Len()
	e.rasters, e.values = e.sets[0].rasters, e.sets[0].values
	if e.spec.Windows && len(e.rasters) == 0 {
		return errors.New("spec: windows is true, and no field is a raster")
	}
	if e.perRow = len(e.rasters) * max(e.sets[0].steps, 1); e.hasMetadataUnit() {
		e.perRow++
	}
	e.native = make([]bool, len(e.rasters))
	for i, r := range e.rasters {
		e.native[i] = true
		for _, d := range e.sets {
			e.native[i] = e.native[i] && d.rasters[i].SameArithmetic(r) && !d.resamples(i)
		}
	}
	return nil
}

// hasMetadataUnit reports whether anything but rasters comes with a row.
func (e *Engine) hasMetadataUnit() bool {
	return len(e.values) > 0 || len(e.sets[0].points) > 0 || e.spec.Windows
}

// unitsAhead is how many units wait for workers: enough that a worker, when it takes one, rarely has to
// wake the goroutine that hands them out.
const unitsAhead = 256

// setHash names the spec on this data: its JSON without the places of the data, and the fingerprints of
// all sources.
func (e *Engine) setHash() error {
	sp := e.spec.Placeless()
	for _, v := range e.values { // the others' kind is in the fingerprint
		if v.fromSpec {
			sp.Fields[v.column].Kind = spec.NumberField
		}
	}
	b, err := json.Marshal(struct {
		Order       int    `json:"order"`
		Fingerprint string `json:"fingerprint"`
		Spec        Spec   `json:"spec"`
		Data        string `json:"data,omitempty"`
		FillsFloats bool   `json:"fills_floats,omitempty"`
	}{shuffle.Version, e.Fingerprint(), sp, e.digest(), e.fillsFloats()})
	if err != nil {
		return err
	}
	h := xxh3.Hash128(b)
	e.hash = fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
	e.run, err = e.parts()
	return err
}

// fillsFloats reports whether a field's nodata was kept by versions of this package that filled it only with Fill or
// Normalize. Their states must not go on here, with other pixels: the spec hash differs.
func (e *Engine) fillsFloats() bool {
	return slices.ContainsFunc(e.sets, func(d *dataset) bool { return slices.ContainsFunc(d.rasters, (*pixels.Raster).FillsFloats) })
}

// digest names what of the data the order depends on beside the fingerprints, or is empty.
func (e *Engine) digest() string {
	var h xxh3.Hasher
	chosen := false
	for _, d := range e.sets {
		sum := d.digest.Sum128().Bytes()
		_, _ = h.Write(sum[:])
		chosen = chosen || d.hasDigest
	}
	if !chosen {
		return ""
	}
	sum := h.Sum128()
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo)
}

// Spec returns the spec with its defaults filled in.
func (e *Engine) Spec() Spec { return e.spec }

// Hash returns the spec hash: equal for equal specs on equal data.
func (e *Engine) Hash() string { return e.hash }

// State returns the state at the begin of a run.
func (e *Engine) State() shuffle.State {
	return shuffle.State{Version: shuffle.Version, Spec: e.hash, Seed: e.spec.Seed, Run: e.run}
}

// Fingerprint returns the dataset's fingerprint, or that of all fingerprints of a mixture's.
func (e *Engine) Fingerprint() string {
	if len(e.sets) == 1 {
		return e.sets[0].table.Fingerprint()
	}
	var h xxh3.Hasher
	for _, d := range e.sets {
		_, _ = h.WriteString(d.table.Fingerprint() + "\n")
	}
	sum := h.Sum128()
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo)
}

// Plan returns the plan of the order: what stands at a position. Its datasets are those of Sources.
func (e *Engine) Plan() *shuffle.Plan { return e.plan }

// Len returns N, the samples of an epoch.
func (e *Engine) Len() int64 { return e.samples }

// Steps returns the steps of an epoch.
func (e *Engine) Steps() int64 { return shuffle.Steps(e.samples, e.spec.BatchSize, e.spec.DropLast) }

// Fields returns what the tensors of a batch look like, in their order.
func (e *Engine) Fields() []FieldInfo { return e.infos }

// Trim frees the batch memory that is kept for the next batches: for an engine that is not used for a
// while.
func (e *Engine) Trim() {
	e.memory.trim()
	if e.tiles != nil {
		e.tiles.Trim()
	}
}

// Close stops the workers and closes the dataset. Batches that were not released stay valid;
// tickets that are not done end with an error.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.stop()
		e.done.Wait()
		e.memory.close()
		if e.tiles != nil {
			e.tiles.Trim()
		}
		e.closeErr = e.closeTables()
		e.options.CloseOpener()
	})
	return e.closeErr
}

// layoutKey is what the memory of a batch depends on.
type layoutKey struct {
	rows   int
	native bool
}

// layout is where everything stands in the memory of a batch of some rows.
type layout struct {
	rasters []rasterLayout
	bytes   int
}

type rasterLayout struct {
	plan      *einops.Plan
	dtype     chunk.DType
	data, end int // bytes of the tensor
	mask      int // first byte of the mask (validity, or where the receiver fills), or -1
	native    bool
}

// rowBytes and valueBytes are about what a row, and a number or text of it, take beside the tensors of a batch,
// windowBytes what its window takes. They are accounted for by leaving as much room in front of the tensors.
const (
	rowBytes    = 48
	valueBytes  = 64
	windowBytes = 4 * 8
)

// maxLayouts bounds the layouts kept; a run has one or two.
const maxLayouts = 64

func (e *Engine) layout(key layoutKey) (*layout, error) {
	e.layoutMu.Lock()
	defer e.layoutMu.Unlock()
	if l := e.layouts[key]; l != nil {
		return l, nil
	}
	l := &layout{}
	// What a batch has beside its tensors counts too, or a spec without rasters would have no bound.
	beside := rowBytes + valueBytes*len(e.values)*max(e.sets[0].steps, 1) + e.pointBytes()
	if e.spec.Windows {
		beside += windowBytes
	}
	if l.bytes = key.rows * beside; pixels.BoundedBytes(e.options.MemoryBytes, key.rows, beside) < 0 {
		return nil, overMemory("batch", key.rows, "", e.options.MemoryBytes)
	}
	l.bytes = pixels.Align64(l.bytes)
	for i, r := range e.rasters {
		if err := l.add(r, key, e.native[i], e.options.MemoryBytes); err != nil {
			return nil, err
		}
	}
	if len(e.layouts) >= maxLayouts {
		clear(e.layouts)
	}
	e.layouts[key] = l
	return l, nil
}

// overMemory is the error for rows of a batch, which are what each says, that are over the memory of batches.
func overMemory(part string, rows int, each string, bound int64) error {
	return fault.New(fault.Limit, part, fault.NoOffset,
		"%d rows%s are over the %d bytes of batch memory: raise the memory, or take smaller batches", rows, each, bound)
}

// add places a field's tensor, and its mask if it has one. It refuses what passes the bound before
// any product can overflow.
func (l *layout) add(r *pixels.Raster, key layoutKey, native bool, bound int64) error {
	if need := pixels.BoundedBytes(bound, key.rows, max(r.Steps, 1), len(r.Picked), r.H, r.W, r.To.Size()); need < 0 {
		each := fmt.Sprintf(" of (%d, %d, %d) %s", len(r.Picked), r.H, r.W, r.To)
		return overMemory(fmt.Sprintf("field %q", r.Name), key.rows, each, bound)
	}
	p, err := r.LayoutPattern.Plan(r.Axes(key.rows), r.Sizes)
	if err != nil {
		return rows.InField(r.Name, err)
	}
	rl := rasterLayout{plan: p, dtype: r.To, mask: -1}
	rl.native = key.native && native && r.WireNative(p)
	if rl.native {
		rl.dtype = r.Native
	}
	rl.data = l.bytes
	rl.end = rl.data + p.Len()*rl.dtype.Size()
	l.bytes = pixels.Align64(rl.end)
	if r.Validity != "" || rl.native {
		rl.mask = l.bytes
		l.bytes = pixels.Align64(rl.mask + p.Len())
	}
	if int64(l.bytes) > bound {
		return overMemory("batch", key.rows, "", bound)
	}
	l.rasters = append(l.rasters, rl)
	return nil
}

// MemoryBytes returns the memory of batches, in bytes: Options.MemoryBytes or its default, less that of decoded tiles.
func (e *Engine) MemoryBytes() int64 { return e.options.MemoryBytes }

// BatchesFit returns how many batches of so many rows the memory holds, at least one. If it holds none, that is an error of
// kind limit.
func (e *Engine) BatchesFit(rows int) (int64, error) {
	l, err := e.layout(layoutKey{rows: rows})
	if err != nil {
		return 0, err
	}
	return e.options.MemoryBytes / max(int64(l.bytes), 1), nil
}

// BatchBytes returns the memory that the largest batch takes: one of all rows of a step, in bytes; or
// 0 if the memory of the engine has no room for that.
func (e *Engine) BatchBytes() int64 {
	n := 0
	for _, native := range []bool{false, true} {
		l, err := e.layout(layoutKey{e.spec.BatchSize, native})
		if err != nil {
			return 0
		}
		n = max(n, l.bytes)
	}
	return int64(n)
}

// describe notes what the tensors of a batch of one row look like, in the order of the fields.
func (e *Engine) describe(one *layout) {
	e.inOrder(func(i int) {
		r, p := e.rasters[i], one.rasters[i].plan
		info := FieldInfo{Name: r.Name, Kind: catalog.Raster.String(), DType: r.To, Shape: pixels.Int64s(p.Shape), Axes: p.Axes}
		e.infos = append(e.infos, info)
		if r.Validity != "" {
			info.Name, info.Kind, info.DType = r.Validity, "mask", chunk.Uint8
			e.infos = append(e.infos, info)
		}
	}, func(i int) {
		v := e.values[i]
		shape, axes := e.valueShape(1)
		e.infos = append(e.infos, FieldInfo{Name: v.name, Kind: v.kind.String(), DType: v.to, Shape: shape, Axes: axes})
	})
	e.infos = append(e.infos, e.pointInfos()...)
	if len(e.spec.Sources) > 0 {
		e.infos = append(e.infos, FieldInfo{Name: spec.SourceColumn, Kind: catalog.Int.String(), DType: chunk.Int64, Shape: []int64{1}, Axes: []string{"n"}})
	}
	if e.spec.Windows {
		e.infos = append(e.infos, FieldInfo{Name: spec.WindowMember, Kind: catalog.Int.String(), DType: chunk.Int64, Shape: []int64{1, 4}, Axes: windowAxes})
	}
	if t := e.spec.Sequence(); t != nil {
		shape, axes := e.valueShape(1)
		e.infos = append(e.infos, FieldInfo{Name: t.Validity, Kind: "mask", DType: chunk.Uint8, Shape: shape, Axes: axes})
	}
}

// valueShape returns the shape and axes of what rides along with rows.
func (e *Engine) valueShape(rows int) ([]int64, []string) {
	if n := e.sets[0].steps; n > 0 {
		return []int64{int64(rows), int64(n)}, []string{"n", "t"}
	}
	return []int64{int64(rows)}, []string{"n"}
}

// inOrder visits raster and value fields in the order of the spec.
func (e *Engine) inOrder(raster, value func(i int)) {
	r, v := 0, 0
	for i := range spec.RowFields(e.spec.Fields) {
		if v < len(e.values) && e.values[v].column == i {
			value(v)
			v++
			continue
		}
		raster(r)
		r++
	}
}

// ID returns what names a row of the table that a dataset of the plan is made of, and its errors: see
// catalog.Table.ID. dataset is below shuffle.Plan.Datasets, row below the length of its table.
func (e *Engine) ID(ctx context.Context, dataset int, row int64) (string, error) {
	return e.leaves[dataset].table.ID(ctx, row)
}

// fetchers returns how many goroutines do units.
func (e *Engine) fetchers() int {
	remote := slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.remote })
	return e.options.Readers(e.options.Workers, remote)
}
