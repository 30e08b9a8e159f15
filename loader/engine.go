package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
)

// Engine serves the tickets of one spec: a dataset, compiled fields, and the workers and memory
// that all its tickets share. It is safe for concurrent use.
type Engine struct {
	spec     Spec
	hash     string
	options  Options
	table    table
	samples  int64 // N
	sampler  sampler
	rasters  []*rasterField
	values   []valueField
	infos    []FieldInfo
	memory   *memory
	layoutMu sync.Mutex
	layouts  map[layoutKey]*layout
	queue    queue
	units    chan unit
	stop     context.CancelFunc
	done     sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// table is what the engine needs of a dataset. *catalog.Table is one.
type table interface {
	Len() int64
	Kind(field int) catalog.Kind
	Asset(ctx context.Context, field int, row int64) (catalog.Asset, error)
	Value(ctx context.Context, field int, row int64) (catalog.Value, error)
	ID(ctx context.Context, row int64) (string, error)
	Fingerprint() string
	Close() error
}

// FieldInfo says what a tensor of a batch looks like for a batch of one row.
type FieldInfo struct {
	Name  string      `json:"name"`
	Kind  string      `json:"kind"` // "raster", "int", "float", "text" or "mask"
	DType chunk.DType `json:"dtype"`
	Shape []int64     `json:"shape"`
	Axes  []string    `json:"axes"`
}

// Open opens the spec's dataset and compiles its fields. Errors about files are of package fault.
func Open(ctx context.Context, spec Spec, o Options) (*Engine, error) {
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	t, err := openTable(ctx, spec, o)
	if err != nil {
		o.closeOpener()
		return nil, err
	}
	e, err := newEngine(ctx, spec, o, t)
	if err != nil {
		o.closeOpener()
		return nil, errors.Join(err, t.Close())
	}
	return e, nil
}

// openTable opens the spec's dataset.
func openTable(ctx context.Context, spec Spec, o Options) (*catalog.Table, error) {
	fields := make([]catalog.Source, len(spec.Fields))
	for i, f := range spec.Fields {
		fields[i] = catalog.Source{Field: f.Name, Column: f.Column, Blob: f.Blob, Pattern: f.Pattern}
	}
	return catalog.Open(ctx, spec.Source, fields, catalog.Options{
		Opener: o.Opener, MaxChunk: o.MaxChunkBytes, CacheBytes: o.CacheBytes, Roots: o.Roots,
	})
}

// newEngine compiles a spec for a table, which it owns once it returns without an error.
func newEngine(ctx context.Context, spec Spec, o Options, t table) (*Engine, error) {
	e := &Engine{spec: spec, options: o, table: t, layouts: map[layoutKey]*layout{}, units: make(chan unit, unitsAhead)}
	if t.Len() == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), spec.Source)
	}
	if t.Len() > maxSamples/int64(spec.Sampler.PerAsset) {
		return nil, fmt.Errorf("spec: %d assets with %d windows each are more than %d samples", t.Len(), spec.Sampler.PerAsset, int64(maxSamples))
	}
	e.samples = t.Len() * int64(spec.Sampler.PerAsset)
	if err := e.compile(ctx); err != nil {
		return nil, err
	}
	if err := e.setHash(); err != nil {
		return nil, err
	}
	// One row must fit; whether a ticket's rows do is known when it comes.
	one, err := e.layout(layoutKey{rows: 1})
	if err != nil {
		return nil, err
	}
	e.describe(one)
	if e.spec.BatchSize > 1 { // a layout without n holds one sample only
		for _, r := range e.rasters {
			if _, err := r.pattern.Plan(r.axes(2), r.Sizes); err != nil {
				return nil, inField(r.Name, err)
			}
		}
	}
	e.memory = newMemory(o.MemoryBytes, o.Alloc)
	e.start()
	return e, nil
}

// unitsAhead is how many units wait for workers: enough that a worker, when it takes one, rarely has to
// wake the goroutine that hands them out.
const unitsAhead = 256

// maxSamples bounds N, so that positions of any ticket stay in int64.
const maxSamples = 1 << 62

// firstTries bounds how many samples are tried until one can be read, where bad ones are skipped.
const firstTries = 1000

// firstAssets returns the assets of some fields of the first sample: the one that shows what all
// others must be like. Where bad samples are skipped, it is the first that can be read.
func firstAssets(ctx context.Context, t table, columns []int, policy string) ([]catalog.Asset, error) {
	tries := int64(1)
	if policy == BadSkip {
		tries = min(t.Len(), firstTries)
	}
	var failed error
	for row := range tries {
		assets := make([]catalog.Asset, 0, len(columns))
		var err error
		for _, c := range columns {
			var a catalog.Asset
			if a, err = t.Asset(ctx, c, row); err != nil {
				break
			}
			assets = append(assets, a)
		}
		if err == nil {
			return assets, nil
		}
		if failed == nil {
			failed = err
		}
		if fault.KindOf(err) == 0 {
			break
		}
	}
	return nil, failed
}

// compile opens the first sample's assets and resolves fields and sampler with them.
func (e *Engine) compile(ctx context.Context) error {
	var columns []int
	for i, f := range e.spec.Fields {
		kind := e.table.Kind(i)
		if kind != catalog.Raster {
			e.values = append(e.values, valueField{name: f.Name, column: i, kind: kind})
			continue
		}
		columns = append(columns, i)
	}
	assets, err := firstAssets(ctx, e.table, columns, e.spec.BadSamples)
	if err != nil {
		return err
	}
	var first *chunk.Index
	for k, i := range columns {
		f, a := e.spec.Fields[i], assets[k]
		r, err := newRasterField(f, i, a.Index)
		if err != nil {
			return fault.WithFile(inField(f.Name, err), a.URI)
		}
		if first == nil {
			first = a.Index
		}
		if r.ratio, err = newRatio(first, a.Index); err != nil {
			return fault.WithFile(inField(f.Name, err), a.URI)
		}
		e.rasters = append(e.rasters, r)
	}
	return e.compileSampler(first)
}

// inField says in which field of the spec an error came up.
func inField(name string, err error) error {
	if fault.KindOf(err) != 0 {
		return fault.WithPart(err, "field "+name, fault.NoOffset)
	}
	return fmt.Errorf("field %q: %w", name, err)
}

func (e *Engine) compileSampler(first *chunk.Index) error {
	e.sampler = sampler{Sampler: e.spec.Sampler, seed: e.spec.Seed, alignY: 1, alignX: 1}
	if first == nil {
		return nil
	}
	s := &e.sampler
	if s.Height == 0 {
		s.Height, s.Width = first.Height, first.Width
	}
	for _, r := range e.rasters {
		s.alignY, s.alignX = lcm(s.alignY, r.ratio.denY), lcm(s.alignX, r.ratio.denX)
	}
	if s.Height%s.alignY != 0 || s.Width%s.alignX != 0 {
		return fmt.Errorf("spec: sampler: a window of %d by %d pixels has no whole size in every field: it must be a multiple of %d by %d",
			s.Height, s.Width, s.alignY, s.alignX)
	}
	for _, r := range e.rasters {
		w := r.ratio.scale(window{h: s.Height, w: s.Width})
		r.h, r.w = w.h, w.w
	}
	return nil
}

// setHash names the spec on this data: its JSON without the source, and the dataset's fingerprint.
func (e *Engine) setHash() error {
	s := e.spec
	s.Source = ""
	b, err := json.Marshal(struct {
		Order       int    `json:"order"`
		Fingerprint string `json:"fingerprint"`
		Spec        Spec   `json:"spec"`
	}{shuffle.Version, e.table.Fingerprint(), s})
	if err != nil {
		return err
	}
	h := xxh3.Hash128(b)
	e.hash = fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
	return nil
}

// Spec returns the spec with its defaults filled in.
func (e *Engine) Spec() Spec { return e.spec }

// Hash returns the spec hash: equal for equal specs on equal data.
func (e *Engine) Hash() string { return e.hash }

// Fingerprint returns the dataset's fingerprint.
func (e *Engine) Fingerprint() string { return e.table.Fingerprint() }

// Len returns N, the samples of an epoch.
func (e *Engine) Len() int64 { return e.samples }

// Steps returns the steps of an epoch.
func (e *Engine) Steps() int64 { return shuffle.Steps(e.samples, e.spec.BatchSize, e.spec.DropLast) }

// Fields returns what the tensors of a batch look like, in their order.
func (e *Engine) Fields() []FieldInfo { return e.infos }

// Trim frees the batch memory that is kept for the next batches: for an engine that is not used for a
// while.
func (e *Engine) Trim() { e.memory.trim() }

// Close stops the workers and closes the dataset. Batches that were not released stay valid;
// tickets that are not done end with an error.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.stop()
		e.done.Wait()
		e.memory.close()
		e.closeErr = e.table.Close()
		e.options.closeOpener()
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

// rowBytes and valueBytes are about what a row, and a value of it that rides along, take beside the
// tensors of a batch. They are accounted for by leaving as much room in front of the tensors.
const (
	rowBytes   = 48
	valueBytes = 64
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
	if l.bytes = key.rows * (rowBytes + valueBytes*len(e.values)); int64(l.bytes) > e.options.MemoryBytes {
		return nil, fault.New(fault.Limit, "batch", fault.NoOffset, "%d rows are over the %d bytes of batch memory", key.rows, e.options.MemoryBytes)
	}
	l.bytes = align64(l.bytes)
	for _, r := range e.rasters {
		if err := l.add(r, key, e.options.MemoryBytes); err != nil {
			return nil, err
		}
	}
	if len(e.layouts) >= maxLayouts {
		clear(e.layouts)
	}
	e.layouts[key] = l
	return l, nil
}

// add places a field's tensor, and its mask if it has one. It refuses what passes the bound before
// any product can overflow.
func (l *layout) add(r *rasterField, key layoutKey, bound int64) error {
	if need := bytesOf(bound, key.rows, len(r.bands), r.h, r.w, r.to.Size()); need < 0 {
		return fault.New(fault.Limit, fmt.Sprintf("field %q", r.Name), fault.NoOffset,
			"%d rows of (%d, %d, %d) %s are over the %d bytes of batch memory", key.rows, len(r.bands), r.h, r.w, r.to, bound)
	}
	p, err := r.pattern.Plan(r.axes(key.rows), r.Sizes)
	if err != nil {
		return inField(r.Name, err)
	}
	rl := rasterLayout{plan: p, dtype: r.to, mask: -1}
	rl.native = key.native && r.wireNative(p)
	if rl.native {
		rl.dtype = r.native
	}
	rl.data = l.bytes
	rl.end = rl.data + p.Len()*rl.dtype.Size()
	l.bytes = align64(rl.end)
	if r.Validity != "" || rl.native {
		rl.mask = l.bytes
		l.bytes = align64(rl.mask + p.Len())
	}
	if int64(l.bytes) > bound {
		return fault.New(fault.Limit, "batch", fault.NoOffset, "%d rows are over the %d bytes of batch memory", key.rows, bound)
	}
	l.rasters = append(l.rasters, rl)
	return nil
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
		info := FieldInfo{Name: r.Name, Kind: catalog.Raster.String(), DType: r.to, Shape: int64s(p.Shape), Axes: p.Axes}
		e.infos = append(e.infos, info)
		if r.Validity != "" {
			info.Name, info.Kind, info.DType = r.Validity, "mask", chunk.Uint8
			e.infos = append(e.infos, info)
		}
	}, func(i int) {
		v := e.values[i]
		e.infos = append(e.infos, FieldInfo{Name: v.name, Kind: v.kind.String(), DType: v.dtype(), Shape: []int64{1}, Axes: []string{"n"}})
	})
}

// inOrder visits raster and value fields in the order of the spec.
func (e *Engine) inOrder(raster, value func(i int)) {
	r, v := 0, 0
	for i := range e.spec.Fields {
		if v < len(e.values) && e.values[v].column == i {
			value(v)
			v++
			continue
		}
		raster(r)
		r++
	}
}

// bytesOf returns the product of factors, or -1 if it is over bound.
func bytesOf(bound int64, factors ...int) int64 {
	n := int64(1)
	for _, f := range factors {
		if int64(f) > bound/n {
			return -1
		}
		n *= max(int64(f), 1)
	}
	return n
}

func align64(n int) int { return (n + 63) &^ 63 }

func int64s(s []int) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}
