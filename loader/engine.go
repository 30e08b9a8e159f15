package loader

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
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
	opening *group     // while sources are opened, of the next one; nil if that begins another group
	plan    *shuffle.Plan
	samples int64 // N, the samples of an epoch
	memory  *batchPool
	tiles   *pixels.TileCache // nil if windows share no decoded chunks
	recoded *pixels.Recoded   // nil without Options.Recode
	marking sync.Mutex        // guards marks, of Options.VerifyContents
	marks   string
	layouts layouts
	queue   *queue
	weighed weighed
	account *budget.Account // memory that the engine holds of the budget, without batches
	close   func() error    // closes once
	notices
	workforce
}

// notices are whom the engine tells what its tickets read, before they do.
type notices struct {
	spans     *blockSpans        // nil unless blocks of remote files are read
	toPlan    chan plannedTicket // tickets whose chunks tiles are told about; nil for windows drawn tile by tile
	ahead     *lookahead         // says to Options.Disk what is read next; nil if that would change nothing
	announces bool               // a field of a table has Announce
}

// workforce is the workers of an engine.
type workforce struct {
	units   chan workUnit
	least   int          // workers that the engine always has
	readers int64        // bytes that more of them may hold: readerBytes
	workers atomic.Int64 // workers that it has now
	peak    atomic.Int64 // the most bytes that a worker held after a unit, or will hold of a first sample; 0: unknown
	slow    slow
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// layouts are those that batches had so far. The dispatcher and callers of BatchesFit and BatchBytes ask for layouts at
// the same time.
type layouts struct {
	mu   sync.Mutex
	made map[layoutKey]*batchLayout
}

// columnKind is what is known of a column before there is a batch. A new one is a function that returns a column, and
// its entry in Engine.columnsOf; if a member of the spec adds it to batches, Spec.extras reserves its name.
type columnKind struct {
	reads bool // its rows are read, by batchColumn.fill
	bytes int  // of a row; batchColumn.size counts texts, and the layout its own tensors
	of    func(p *Pending) batchColumn
}

// batchColumn is a part of one batch that is not a raster field: a metadata column, shapes, or what Spec adds to
// batches. Functions that a column does not need are nil.
type batchColumn struct {
	// fill reads row k, which is a draw from d.
	fill func(r *pixels.Reader, d *dataset, draw *shuffle.Draw, k int) error
	// clear makes row k padding: its sample is missing.
	clear func(k int)
	// size returns the bytes of the column that the layout cannot count, because they have no length before they are
	// read.
	size func() int64
	// members returns the tensors of all rows.
	members func() []fieldTensor
}

// fieldTensor is a tensor of a batch, with FieldInfo.Kind.
type fieldTensor struct {
	batch.Tensor
	kind string
}

// layoutKey has the values that the layout of a batch's memory depends on.
type layoutKey struct {
	group  *group
	rows   int
	native bool
}

// batchLayout says where each tensor lies in the memory of a batch.
type batchLayout struct {
	rasters []rasterLayout // of all fields, for each size of views: see dataset.layoutOf
	vectors []int          // the first bytes of tensors of shapes: see dataset.vectorOf
	bytes   int
}

type rasterLayout struct {
	plan      *einops.Plan
	dtype     chunk.DType
	data, end int // byte range of the tensor in the memory
	mask      int // first byte of the validity or of the receiver's mask, or -1
	native    bool
}

// queue holds the tickets that wait for memory. Tickets of one stream are worked on in the order in which they came.
// Clients get one ticket after the other, and so do the streams of a client: one with many tickets does not hold up
// another.
//
// A client has a quota: bytes of batches, which count from the time when memory is chosen for them until they are
// released or kept. It is an equal part of the memory for each active client, and at least one batch, so a client
// that does not take its batches holds its own part alone. The streams of a client divide its quota.
//
// While other engines wait for the budget, the engine gets no more memory than it has, which may be two
// batches. A ticket that finds no room then waits in the queue of the budget itself: see ask. Otherwise it would wait
// until other clients of this engine take their batches.
type queue struct {
	bound int64        // bytes of memory
	now   func() int64 // how many of these bytes the engine can have now; nil: all. It is called with mu
	// memory has the buffers for tickets; nil: as much as quotas allow. It has a lock of its own, locked under mu.
	memory *batchPool
	stages *resources.Stages // counts the time without memory; nil: nobody asks
	more   chan struct{}     // holds one element when take may find a ticket

	coming atomic.Int64 // batches that giveBack is about to give back

	// mu guards the fields below and all shares.
	mu      sync.Mutex
	all     queueShare
	closed  bool     // then no ticket waits
	blocked bool     // tickets wait, and have no room
	head    *Pending // the ticket whose turn it is and for which bound has no room: none overtakes it; nil: none
}

// queueShare is the share of one client in an engine, or of one stream in its client. It exists as long as tickets wait
// for it, or it has memory.
type queueShare struct {
	key        any
	of         *queueShare // of a stream its client, of a client the engine
	members    map[any]*queueShare
	turns      list.List     // of members whose tickets wait, the next one first
	place      *list.Element // in of.turns, or nil
	bytesInUse int64         // of the quota
	asks       bool          // of a client: a ticket of it waits in the queue of the budget

	first, last *Pending // of a stream: the tickets that wait
}

// quotaClaim is the memory that one ticket has of a quota.
type quotaClaim struct {
	queue *queue
	share *queueShare
	bytes int64
}

// Pending is a ticket in work. The caller must call Wait or Cancel, and must not call Cancel after
// Wait has returned a batch.
type Pending struct {
	engine *Engine
	group  *group // of the ticket's positions
	ticket steps.Ticket
	native bool
	ctx    context.Context
	cancel context.CancelFunc
	queued
	batchMemory

	batch   *batch.Batch
	draws   []shuffle.Draw // for each row, the sample that stands there
	parts   []batchColumn  // all of the batch that is not a raster field
	errs    []rowErrors    // for each row
	inFiles [][]byte       // for each raster field that picks steps of files, which there are: see Pending.hasSteps
	there   [][]byte       // for each field, where it is there: see Pending.noteRead; nil if batches do not say it
	todo    atomic.Int64   // units that are not done
	plan    tilePlan
	same    map[workUnit]*sameRaster // of units whose rows have the same raster
	run     *runAhead                // nil unless its reads were announced
	// announced end what was said about the rasters that the ticket reads: to tables by Start, and to Engine.spans.
	announced []func()
	done      chan struct{}
	err       error

	state atomic.Int32
}

// queued is what the queue knows of a ticket.
type queued struct {
	client      any         // for whom it is: see resources.Caller
	next        *Pending    // behind it in the queue
	claim       *quotaClaim // on the quota of its client; nil before its turn
	budgetBytes int64       // bytes of the budget for memory, from queue.ask until it has the memory
	// drawing says that weights still draw the samples of the ticket, so that the queue keeps it; dequeued, that it has
	// left the queue; undrawn, why weights gave no samples. The queue's mu guards all three.
	drawing, dequeued bool
	undrawn           error
}

// batchMemory is the memory of a batch and its layout.
type batchMemory struct {
	layout *batchLayout
	// converted is the layout without native tensors; nil if layout is. mixed is set by the first raster whose dtype a
	// native tensor does not have: then the batch is decoded again into converted.
	converted *batchLayout
	mixed     atomic.Bool
	memory    batch.Buffer
	buf       []byte        // bytes of memory
	masks     []sync.Once   // for each of layout.rasters: sets the mask to ones
	masked    []atomic.Bool // for each of layout.rasters: the mask is in use
}

const (
	// States of a Pending. They decide who releases the batch: the caller of Wait, or Cancel, if the
	// work finished first; finish itself if Cancel came first. Both use compare-and-swap, so
	// exactly one of them releases it.
	working int32 = iota
	finished
	abandoned
)

// workUnit is the smallest piece of work: one raster field of one row, or of one step of it in a
// sequence. Field -1 stands for the metadata columns of the row (of all steps), its window
// and its shapes.
type workUnit struct {
	p                *Pending
	row, field, step int
	view             int   // of a field: the window that is read next
	order            int64 // of that window in Reader.ForViews; 0: it shares no chunks
}

// sameRaster is the units of a batch whose rows have the same raster of a field, in the order of the rows: several
// captions of one image, for example. One worker does them one after the other. Windows that are equal are copied, and
// of others each chunk is decoded once.
type sameRaster struct {
	units []workUnit
	// What follows is for the worker, once it has begun.
	twins []int    // of each unit the first one with its windows, which may be itself; -1 if they are not known
	done  []bool   // the units whose pixels are in the batch
	ends  []func() // end what was announced
}

// turnedWindow is what decides the pixels that a row has of a raster.
type turnedWindow struct {
	box       shuffle.Box
	transform shuffle.Element
}

// rowErrors holds the errors of one row.
type rowErrors struct {
	all   error   // concerns the whole row; of several, the one that outranks the others
	steps []error // of a sequence, the error of each single step, or nil
}

// worst returns the error that outranks all others of the row.
func (r *rowErrors) worst() error {
	err := r.all
	for _, e := range r.steps {
		if e != nil && outranks(e, err) {
			err = e
		}
	}
	return err
}

// step returns the error of a step.
func (r *rowErrors) step(i int) error {
	if r.all != nil || len(r.steps) == 0 {
		return r.all
	}
	return r.steps[i]
}

// outranks reports whether err is reported instead of other, whichever came first. Errors that no
// policy covers (of the network, for example) come before faults of a sample; among equals the text
// decides, so a run reports the same error in any order of the workers.
func outranks(err, other error) bool {
	if other == nil {
		return true
	}
	if system := fault.KindOf(err) == 0; system != (fault.KindOf(other) == 0) {
		return system
	}
	return err.Error() < other.Error()
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
			return nil, fault.New(fault.Unsupported, "ticket", "positions %d to %d are of two batches, and each batch "+
				"is of one source and size", t.First, t.First+int64(t.Count)-1)
		}
		draw := e.plan.At(t.Epoch, min(t.First, e.samples-1))
		return e.set(&draw).group, nil
	}
	var first *group
	for k, position := range t.Positions {
		draw := e.plan.Draw(t, k)
		drawn := e.set(&draw).group
		if k > 0 && drawn != first {
			return nil, fault.New(fault.Unsupported, "ticket", "positions %d and %d are of sources that have no batch "+
				"in common: ask for those of one source at a time", t.Positions[0], position)
		}
		first = drawn
	}
	return first, nil
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
		return e.sets[0].table.Fingerprint
	}
	hasher := digest.New()
	for _, d := range e.sets {
		_, _ = hasher.WriteString(d.table.Fingerprint + "\n")
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

// Rest closes the files of weights that no ticket draws by. Call it when nobody takes batches any more; the next ticket
// with weights opens them again.
func (e *Engine) Rest() { e.weighed.rest() }

// ID returns the name of a row of the table behind a dataset of the plan: see catalog.Table.ID,
// also for its errors. dataset is less than shuffle.Plan.Datasets, row less than the length of its
// table.
func (e *Engine) ID(ctx context.Context, dataset int, row int64) (string, error) {
	return e.leaves[dataset].table.ID(ctx, row)
}

// readerBytes returns the most memory of workers beyond Options.Fetchers, in bytes: a 64th of the machine's, but at
// least 64 MiB, where 1,280 workers may hold 50 KiB each, and at most 512 MiB.
func readerBytes() int64 { return min(max(procs.Memory()/64, 64<<20), 512<<20) }

// workersFor returns how many workers the engine may have if each holds so many bytes: for remote files with small
// samples more than Options.Fetchers, since only many requests fill a link with them. 0 stands for
// unknown, and gives Engine.least.
func (e *Engine) workersFor(held int64) int {
	if limit := e.options.MostFetchers(); held > 0 && e.options.Waits() {
		return min(max(int(e.readers/held), e.least), max(limit, e.least))
	}
	return e.least
}

// Recoded returns the cache of chunks that decode fast, nil without Options.Recode.
func (e *Engine) Recoded() *pixels.Recoded { return e.recoded }

// fetchers returns how many goroutines run units at least: more than Workers if files are remote, since most
// of them then wait for bytes.
func (e *Engine) fetchers() int { return e.options.Readers(e.options.Workers, e.remote()) }

// remote reports whether some files are not local.
func (e *Engine) remote() bool {
	return slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.remote })
}

// set returns the dataset of a row. For padding it is the first one of the group.
func (p *Pending) set(k int) *dataset {
	if p.batch.Positions[k] < 0 {
		return p.group.lead()
	}
	return p.engine.set(&p.draws[k])
}
