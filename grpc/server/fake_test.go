package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// fakeEngine is an engine whose every byte follows from (epoch, position). It counts the tickets that are started, held
// and released. Its batches have a tensor "image" of uint32 (n, RowElems) and a text "name".
type fakeEngine struct {
	spec    loader.Spec
	samples int64

	// RowElems is the number of elements of a row.
	RowElems int
	// Fail, if not nil, says which positions cannot be read.
	Fail func(pos int64) error
	// Gate, if not nil, is received from before a batch is made.
	Gate chan struct{}

	// Alloc, if not nil, makes the memory of "image".
	Alloc func(int) batch.Buffer

	// Started counts Start, Live the batches that are not released and the Pendings that are neither
	// waited for nor cancelled.
	Started, Live atomic.Int64
	Closed        atomic.Bool

	working  atomic.Int64 // Pendings that are neither waited for nor cancelled
	mu       sync.Mutex
	mistakes []string
}

// newFake returns an engine of n samples.
func newFake(spec loader.Spec, n int64, rowElems int) *fakeEngine {
	return &fakeEngine{spec: spec.WithDefaults(), samples: n, RowElems: rowElems}
}

// Mistakes returns the wrong uses of batches, such as a second release.
func (e *fakeEngine) Mistakes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mistakes
}

func (e *fakeEngine) mistake(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mistakes = append(e.mistakes, fmt.Sprintf(format, args...))
}

// Spec returns the spec.
func (e *fakeEngine) Spec() loader.Spec { return e.spec }

// Hash returns a hash that depends on spec and samples.
func (e *fakeEngine) Hash() string {
	return fmt.Sprintf("%d-%d-%d", e.spec.Seed, e.spec.BatchSize, e.samples)
}

// Fingerprint returns a fingerprint.
func (e *fakeEngine) Fingerprint() string { return fmt.Sprint(e.samples) }

// Len returns the samples of an epoch.
func (e *fakeEngine) Len() int64 { return e.samples }

// Fields returns the tensors.
func (e *fakeEngine) Fields() []batch.FieldInfo {
	return []batch.FieldInfo{
		{Name: "image", Kind: "raster", DType: chunk.Uint32, Shape: []int64{1, int64(e.RowElems)},
			Axes: []string{"n", "x"}},
		{Name: "name", Kind: "text", Shape: []int64{1}, Axes: []string{"n"}},
	}
}

// Close records that it was called.
func (e *fakeEngine) Close() error {
	if e.Closed.Swap(true) {
		e.mistake("closed twice")
	}
	if n := e.working.Load(); n != 0 {
		e.mistake("closed with %d batches in the making", n)
	}
	return nil
}

// fakePending is a ticket of a fakeEngine.
type fakePending struct {
	engine *fakeEngine
	ctx    context.Context
	ticket steps.Ticket
	used   atomic.Bool
}

// Start starts a ticket.
func (e *fakeEngine) Start(ctx context.Context, t steps.Ticket, _ bool) Pending {
	e.Started.Add(1)
	e.Live.Add(1)
	e.working.Add(1)
	if e.Closed.Load() {
		e.mistake("started after close")
	}
	return &fakePending{engine: e, ctx: ctx, ticket: t}
}

func (p *fakePending) use() {
	if p.used.Swap(true) {
		p.engine.mistake("Wait or Cancel called again")
	}
}

// Cancel gives it up.
func (p *fakePending) Cancel() {
	p.use()
	p.engine.working.Add(-1)
	p.engine.Live.Add(-1)
}

// Wait makes the batch.
func (p *fakePending) Wait(ctx context.Context) (*batch.Batch, error) {
	p.use()
	batch, err := p.wait(ctx)
	p.engine.working.Add(-1)
	if err != nil {
		p.engine.Live.Add(-1)
	}
	return batch, err
}

func (p *fakePending) wait(ctx context.Context) (*batch.Batch, error) {
	engine, ticket := p.engine, p.ticket
	if engine.Gate != nil {
		select {
		case <-engine.Gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case len(ticket.Positions) == 0 &&
		(ticket.First < 0 || ticket.First > engine.samples || ticket.Count < 1 || ticket.RowStride < 1):
		return nil, fault.New(fault.Unsupported, "ticket", "%+v", ticket)
	case ticket.Rows() > 1<<12:
		return nil, fault.New(fault.Limit, "ticket", "%d rows", ticket.Rows())
	}
	rows := ticket.Rows()
	b := &batch.Batch{Epoch: ticket.Epoch, First: ticket.First, Rows: rows, Valid: make([]bool, rows),
		Positions: make([]int64, rows), Samples: make([]int64, rows)}
	memory := batch.NewHeap(4 * rows * engine.RowElems)
	if engine.Alloc != nil {
		memory = engine.Alloc(4 * rows * engine.RowElems)
	}
	data := memory.Bytes()
	var names []byte
	offsets := make([]byte, 8)
	for k := range rows {
		pos := ticket.Position(k, engine.samples)
		b.Positions[k], b.Samples[k], b.Valid[k] = pos, pos, pos >= 0
		if pos >= 0 && engine.Fail != nil {
			if err := engine.Fail(pos); err != nil {
				memory.Free()
				return nil, err
			}
		}
		fakeRow(data[4*k*engine.RowElems:4*(k+1)*engine.RowElems], ticket.Epoch, pos)
		names = append(names, fakeName(pos)...)
		offsets = binary.LittleEndian.AppendUint64(offsets, uint64(len(names)))
	}
	b.Tensors = []batch.Tensor{
		{Name: "image", DType: chunk.Uint32, Axes: []string{"n", "x"},
			Shape: []int64{int64(rows), int64(engine.RowElems)}, Data: data},
		{Name: "name", Kind: batch.Text, Axes: []string{"n"}, Shape: []int64{int64(rows)},
			Data: names, Offsets: offsets},
	}
	b.SetMemory(memory, func(keep bool) {
		if keep {
			clear(data) // who still looks at it is found out
		}
		memory.Free()
		engine.Live.Add(-1)
	})
	return b, nil
}

// fakeRow fills dst with the elements of a position of an epoch; position -1 is padding, 0.
func fakeRow(dst []byte, epoch uint64, pos int64) {
	if pos < 0 {
		clear(dst)
		return
	}
	for i := 0; i < len(dst); i += 4 {
		binary.LittleEndian.PutUint32(dst[i:], uint32(pos)<<16^uint32(epoch)<<28^uint32(i))
	}
}

// fakeName returns the text of a position.
func fakeName(pos int64) string {
	if pos < 0 {
		return ""
	}
	return fmt.Sprintf("sample %d", pos)
}
