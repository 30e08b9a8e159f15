package loader

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

// blockSpans read what the samples of a block need of remote files: neighbours are one range, which stays in memory as
// far as there is room until the pool is over. It implements source.Spans and budget.Holder. A nil *blockSpans reads
// nothing.
type blockSpans struct {
	plan   *shuffle.Plan
	ranges func(ctx context.Context, draw *shuffle.Draw) []source.Extent // that a sample needs
	// loads says whether spans of a dataset of the plan are read before they are needed, decoded whether decoded chunks
	// stay for the other samples in them.
	loads, decoded func(dataset int) bool
	opener         source.Opener
	bound          int64
	budget         *budget.Budget
	leave          func() // ends the membership in the budget

	mu     sync.Mutex
	bytes  int64 // bytes of the spans, charged to the budget
	due    int64 // bytes that are to be released
	blocks map[shuffle.Block]*heldBlock
	active map[shuffle.Block]int // tickets in work, by poolOf
	used   list.List             // of blocks, the one longest unused first
	spans  map[string][]*span    // of each object, by their offsets
}

// heldBlock is a block whose spans are known.
type heldBlock struct {
	shuffle.Block
	place *list.Element
	ready chan struct{} // closed once spans is set
	spans []*span       // none if there was no room for them
	bytes int64         // of spans
}

// span is a range that is read at once.
type span struct {
	source.Extent
	turn  chan struct{} // holds an element while a reader fills data
	ready chan struct{} // closed once data is filled
	data  []byte

	counted bool // by a dry run
}

// prepare finds the spans of the block of a draw, the first time. Others wait for that.
func (s *blockSpans) prepare(ctx context.Context, draw *shuffle.Draw) {
	if s == nil || draw.Attempt > 0 {
		return
	}
	key, ok := s.plan.Block(draw)
	if !ok {
		return
	}
	s.mu.Lock()
	block, known := s.blocks[key]
	if !known {
		block = &heldBlock{Block: key, ready: make(chan struct{})}
		s.blocks[key], block.place = block, s.used.PushBack(block)
	}
	s.used.MoveToBack(block.place)
	s.mu.Unlock()
	if known {
		select {
		case <-block.ready:
		case <-ctx.Done():
		}
		return
	}
	defer close(block.ready)
	spans := s.find(ctx, key)
	s.mu.Lock()
	if ctx.Err() != nil { // the next one finds them
		if s.blocks[key] == block {
			s.drop(block)
		}
	} else {
		s.keep(block, spans)
	}
	s.unlock()
	s.load(ctx, block)
}

// load reads the spans of a block whose objects are open: what came with their headers does not stay in memory.
func (s *blockSpans) load(ctx context.Context, block *heldBlock) {
	if !s.loads(block.Dataset) {
		return
	}
	s.mu.Lock()
	spans := block.spans
	s.mu.Unlock()
	for _, joined := range spans {
		file, err := s.opener.Open(ctx, joined.URI)
		if err != nil { // whoever reads a part of it gets the error
			return
		}
		_ = file.ReadAt(ctx, make([]byte, 1), joined.Off)
		_ = file.Close()
	}
}

// maxSpan bounds a range of a table or an array that several samples need.
const maxSpan = 64 << 20

// find returns the spans of a block: ranges that several samples need, and neighbours.
func (s *blockSpans) find(ctx context.Context, key shuffle.Block) (spans []*span) {
	var ranges []source.Extent
	for draw := range s.plan.InBlock(key) {
		ranges = append(ranges, s.ranges(ctx, &draw)...)
		if ctx.Err() != nil {
			return nil
		}
	}
	slices.SortFunc(ranges, func(a, b source.Extent) int {
		return cmp.Or(cmp.Compare(a.URI, b.URI), cmp.Compare(a.Off, b.Off))
	})
	if s.decoded(key.Dataset) {
		ranges = slices.Compact(ranges)
	}
	var join runs.Join
	uri, count := "", 0
	end := func() {
		if count > 1 {
			extent := source.Extent{URI: uri, Range: source.Range{Off: join.Span.Off, Len: join.Span.Len}}
			spans = append(spans, &span{Extent: extent, turn: make(chan struct{}, 1), ready: make(chan struct{})})
		}
	}
	for _, r := range ranges {
		piece := chunk.Range{Off: r.Off, Len: r.Len}
		if r.Off < 0 || r.Len < 1 || r.Len > maxSpan {
			continue
		}
		inside := r.Off >= join.Span.Off && r.Off+r.Len <= join.Span.Off+join.Span.Len
		if count > 0 && r.URI == uri && (inside || join.Take(piece)) {
			count++
			continue
		}
		end()
		uri, count = r.URI, 1
		join = runs.Join{Span: piece, MaxGap: source.MinGap, MaxLen: pixels.MaxRun}
	}
	end()
	return spans
}

// keep keeps the spans of a block, if blocks of pools before it leave room for them. It needs the lock.
func (s *blockSpans) keep(block *heldBlock, spans []*span) {
	bytes := int64(0)
	for _, joined := range spans {
		bytes += joined.Len
	}
	for element := s.used.Front(); element != nil; {
		old := element.Value.(*heldBlock)
		if element = element.Next(); s.expired(old, block) || old.before(block) && s.bytes+bytes > s.bound {
			s.drop(old)
		}
	}
	if s.blocks[block.Block] != block || bytes == 0 || s.bytes+bytes > s.bound || !s.budget.TryAcquire(bytes) {
		return
	}
	s.bytes += bytes
	block.spans, block.bytes = spans, bytes
	for _, joined := range spans {
		list := s.spans[joined.URI]
		place, _ := slices.BinarySearchFunc(list, joined.Off, spanAt)
		s.spans[joined.URI] = slices.Insert(list, place, joined)
	}
}

// before reports whether a block is of another epoch of the dataset of a later block, or of another pool of its lane.
func (b *heldBlock) before(later *heldBlock) bool {
	return b.Dataset == later.Dataset && (b.Epoch != later.Epoch || b.Lane == later.Lane && b.Pool != later.Pool)
}

// expired reports whether no ticket needs block b any more, now that a later one is read. Blocks of the pool just
// before the later one are kept, because clients may be at different steps. It needs the lock.
func (s *blockSpans) expired(b, later *heldBlock) bool {
	last := b.Epoch == later.Epoch && b.Pool == later.Pool-1 || later.Pool == 0
	return b.before(later) && !last && s.active[poolOf(b.Block)] == 0
}

// poolOf returns the pool of a block, as its first block.
func poolOf(b shuffle.Block) shuffle.Block {
	b.Number = 0
	return b
}

// begin notes the pools of the samples of a ticket, until the caller calls end.
func (s *blockSpans) begin(draws []shuffle.Draw, valid []bool) (end func()) {
	var pools []shuffle.Block
	for k := range draws {
		if !valid[k] {
			continue
		}
		if b, ok := s.plan.Block(&draws[k]); ok && !slices.Contains(pools, poolOf(b)) {
			pools = append(pools, poolOf(b))
		}
	}
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, pool := range pools {
			if s.active[pool] += n; s.active[pool] == 0 {
				delete(s.active, pool)
			}
		}
	}
	count(1)
	return func() { count(-1) }
}

// spanAt compares the offset of a span with another.
func spanAt(one *span, off int64) int { return cmp.Compare(one.Off, off) }

// drop forgets a block. Readers that have a span of it keep that. It needs the lock, which unlock ends.
func (s *blockSpans) drop(block *heldBlock) {
	s.used.Remove(block.place)
	delete(s.blocks, block.Block)
	for _, joined := range block.spans {
		list := s.spans[joined.URI]
		if place := slices.Index(list, joined); place >= 0 {
			list = slices.Delete(list, place, place+1)
		}
		if s.spans[joined.URI] = list; len(list) == 0 {
			delete(s.spans, joined.URI)
		}
	}
	s.bytes -= block.bytes
	s.due += block.bytes
	block.spans, block.bytes = nil, 0
}

// unlock ends the lock and gives back what drop has freed.
func (s *blockSpans) unlock() {
	due := s.due
	s.due = 0
	s.mu.Unlock()
	s.budget.Release(due)
}

// of returns the span that holds n bytes from an offset of an object on, or nil.
func (s *blockSpans) of(uri string, off, n int64) *span {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.spans[uri]
	place, exact := slices.BinarySearchFunc(list, off, spanAt)
	if !exact {
		place--
	}
	for ; place >= 0; place-- { // spans of two pools may overlap
		if joined := list[place]; off-joined.Off+n <= joined.Len {
			return joined
		}
	}
	return nil
}

// Read implements source.Spans.
func (s *blockSpans) Read(ctx context.Context, uri string, p []byte, off int64,
	read func(ctx context.Context, p []byte, off int64) error) (ok bool) {
	joined := s.of(uri, off, int64(len(p)))
	if joined == nil {
		return false
	}
	select {
	case <-joined.ready:
	default:
		select {
		case joined.turn <- struct{}{}:
			defer func() { <-joined.turn }()
		case <-joined.ready:
		case <-ctx.Done():
			return false
		}
		if !joined.fill(ctx, read) {
			return false
		}
	}
	copy(p, joined.data[off-joined.Off:])
	return true
}

// fill reads the bytes of the span, unless another reader has.
func (one *span) fill(ctx context.Context, read func(ctx context.Context, p []byte, off int64) error) bool {
	select {
	case <-one.ready:
		return true
	default:
	}
	data := make([]byte, one.Len)
	if read(ctx, data, one.Off) != nil { // reading the part alone gives its error
		return false
	}
	one.data = data
	close(one.ready)
	return true
}

// Reclaim implements budget.Holder.
func (s *blockSpans) Reclaim(budget.Level) (more bool) {
	s.mu.Lock()
	defer s.unlock()
	if first := s.used.Front(); first != nil {
		s.drop(first.Value.(*heldBlock))
	}
	return s.used.Len() > 0
}

// Freed implements budget.Holder.
func (s *blockSpans) Freed() {}

// close forgets all.
func (s *blockSpans) close() {
	if s == nil {
		return
	}
	s.leave()
	s.mu.Lock()
	defer s.unlock()
	for s.used.Len() > 0 {
		s.drop(s.used.Front().Value.(*heldBlock))
	}
}
