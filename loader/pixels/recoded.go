package pixels

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

const (
	// recodedMost and recodedLeast bound what a chunk takes against its stored bytes: 13/10.
	recodedMost, recodedLeast = 13, 10
	// recodedCost is the time of encoding a chunk, with the first use of memory, as a part of the time that an epoch
	// takes for one. recodedGain is the part of that time which a chunk that is held saves.
	recodedCost, recodedGain = 1.0, 0.7
	// recodedEntry is what the cache knows of one chunk beside its bytes: a key, a place, and their part of a map.
	recodedEntry = 128
	// recodedPause is how long nothing is kept after memory ran out.
	recodedPause = time.Minute
	// recodedFile is the size in bytes of the smallest decoded chunk that goes to disk. Opening a file takes about as
	// long as decoding zstd to half of that.
	recodedFile = 64 << 10
	// recodedAhead bounds the bytes of chunks that wait for an idle worker.
	recodedAhead = 32 << 20
	// recodedLook is how often an encoder looks whether it may encode: decoding a chunk takes about as long.
	recodedLook = time.Millisecond
	// recodedSpare bounds the bytes of buffers that wait for further chunks: 128 tiles of 128 by 128 uint16.
	recodedSpare = 4 << 20
)

// Recoded keeps chunks of files in a form that decodes fast, from the second time on that they are needed: in memory,
// and beyond that in the cache on disk, if there is one. Idle workers encode them, and busy ones as far as
// resources.Options.RecodeShare allows. It keeps the chunks that come first
// and drops none of them for others: in a random order each epoch needs all of them once, so the ones that are kept are
// as good as any. It is safe for concurrent use, and a nil *Recoded keeps nothing.
type Recoded struct {
	most      int64
	reserve   int64        // bytes of the machine that stay free
	available func() int64 // returns how many bytes of the machine are free
	budget    *budget.Budget
	leave     func() // ends the membership in the budget

	mu       sync.Mutex
	chunks   map[recodedKey]recodedChunk
	segments []*segment
	memory   int64 // bytes of segments and entries, charged to the budget
	counts   RecodedCounts
	paused   time.Time // until when memory keeps nothing
	full     time.Time // until when the disk keeps nothing

	disk     source.DiskCache    // where chunks go that memory has no room for; nil: nowhere
	decoders *resources.Decoders // of the workers
	share    float64             // of their time that encoding may take
	workers  sync.WaitGroup      // that encode
	recodingQueue
}

// recodingQueue is the chunks that wait to be encoded.
type recodingQueue struct {
	ctx     context.Context // over once it is closed
	close   context.CancelFunc
	work    sync.Mutex // guards what follows, and is never held together with Recoded.mu
	change  *sync.Cond // of waiting and pending
	waiting []recoding
	bytes   int64                   // of waiting
	spare   [][]byte                // buffers of chunks that are done
	spared  int                     // bytes of spare
	pending map[recodedKey]struct{} // of waiting, and of those that are encoded now
}

// RecodedCounts say what a Recoded did.
type RecodedCounts struct {
	Bytes   int64 // that it takes
	Chunks  int64 // that it has
	OnDisk  int64 // chunks that went to disk
	Used    int64 // times that a chunk was decoded from it
	Missed  int64 // times that a chunk was decoded from its file that it may keep
	Refused int64 // chunks that would take too many bytes
}

// newPages is pages.New. Tests have a system without memory.
var newPages = pages.New

// recodedKey is a hash of the file, its version, the place of the chunk and all that its decoding depends on.
type recodedKey = xxh3.Uint128

// recodedChunk is an encoded chunk. It lacks a segment if it is not worth keeping.
type recodedChunk struct {
	in    *segment
	frame []byte
}

// segment is memory for several chunks, which is freed as a whole.
type segment struct {
	memory  *pages.Memory
	used    int
	readers int // that decode from it
	keys    []recodedKey
}

// recoding is a chunk that waits to be encoded.
type recoding struct {
	key     recodedKey
	object  any  // that the cache on disk has of a remote file
	lasting bool // the disk may keep it
	x       *chunk.Index
	i       int
	stored  int    // bytes in the file
	content []byte // its samples or, if decoded is false, its stored bytes
	decoded bool
}

// NewRecoded returns an empty cache for at most most bytes, which it charges to the budget as long as nobody waits for
// them. It encodes while the decoders of the options are not all busy, and else within RecodeShare. The caller must
// call Close.
func NewRecoded(most int64, o *resources.Options) *Recoded {
	if chunk.NewRecoder() == nil {
		return nil // this program could not decode what it encodes
	}
	r := &Recoded{most: most, reserve: procs.Memory() / keptReserve, available: procs.Available,
		budget: o.Budget, chunks: map[recodedKey]recodedChunk{}, disk: o.Disk, decoders: o.Decoders,
		share: o.RecodeShare, recodingQueue: recodingQueue{pending: map[recodedKey]struct{}{}}}
	r.ctx, r.close = context.WithCancel(context.Background())
	r.change = sync.NewCond(&r.work)
	r.leave = o.Budget.Join(r)
	for range o.Workers {
		r.workers.Go(r.encodeAll)
	}
	return r
}

// Close frees all memory. No reader may use the cache any more.
func (r *Recoded) Close() {
	if r == nil {
		return
	}
	r.work.Lock()
	r.close()
	r.waiting = nil
	r.change.Broadcast()
	r.work.Unlock()
	r.workers.Wait()
	r.leave()
	r.free(0)
}

// Bound returns how many bytes of memory it takes at most for chunks of stored bytes.
func (r *Recoded) Bound(stored int64) int64 {
	if r == nil {
		return 0
	}
	return min(r.most, stored*recodedMost/recodedLeast)
}

// Epochs returns after how many epochs all chunks of stored bytes are held if workers are always busy, and 0 if memory
// cannot hold all of them.
func (r *Recoded) Epochs(stored int64) (n int) {
	if r == nil || stored*recodedMost/recodedLeast > r.most {
		return 0
	}
	for held := 0.0; held < 1; n++ {
		held += r.share * (1 - held*recodedGain) / recodedCost
	}
	return n
}

// Counts returns the counts so far.
func (r *Recoded) Counts() RecodedCounts {
	if r == nil {
		return RecodedCounts{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	counts.Bytes = r.memory
	return counts
}

// Settle waits until all chunks that wait are encoded, for tests and measurements.
func (q *recodingQueue) Settle() {
	q.work.Lock()
	defer q.work.Unlock()
	for len(q.pending) > 0 && q.ctx.Err() == nil {
		q.change.Wait()
	}
}

// versionOf returns the version of a local file, which is not 0: another one once the file was rewritten. It returns 0
// for remote files, whose tags openers check.
func versionOf(f source.Reader) uint64 {
	if timed, ok := f.(source.Timed); ok {
		return (uint64(timed.ModTime().UnixNano()) ^ uint64(f.Size())<<1) | 1
	}
	return 0
}

// objectOf returns the hash of a file and its version, or 0 if the version is not known. version is of a local file.
func objectOf(a *catalog.Asset, f source.Reader, version uint64) uint64 {
	if version != 0 {
		return xxh3.HashStringSeed(a.URI, version) | 1
	}
	tag := a.ETag
	if tag == "" {
		tag = source.ETag(f)
	}
	if tag == "" || a.Bytes != nil {
		return 0
	}
	return xxh3.HashStringSeed(a.URI, xxh3.HashString(tag)^uint64(f.Size())<<1) | 1
}

// slowToDecode are the codecs whose chunks are encoded anew. Others decode as fast, or their pixels would take many
// times their bytes.
var slowToDecode = []chunk.Codec{chunk.Zstd, chunk.Deflate, chunk.LZW, chunk.LZMA, chunk.LERC, chunk.WebP, chunk.PNG}

// keyOf returns the key of a chunk of an index. object is not 0.
func keyOf(object uint64, x *chunk.Index, i int) recodedKey {
	bands, height, width := x.DecodedShape(i)
	b := make([]byte, 0, 128)
	for _, n := range [...]int64{int64(object), x.Ranges[i].Off, x.Ranges[i].Len, int64(bands), int64(height),
		int64(width), int64(x.ChunkH), int64(x.Packed), int64(len(x.Params))} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, byte(x.Codec), byte(x.Predictor), byte(x.Inner), byte(x.DType))
	for _, flag := range [...]bool{x.BigEndian, x.Reversed, x.LowBits, x.Bits} {
		b = append(b, 0)
		if flag {
			b[len(b)-1] = 1
		}
	}
	return xxh3.Hash128Seed(b, xxh3.Hash(x.Params))
}

// frameIndex returns an index by which a Decoder decodes what x's chunks are encoded to.
func frameIndex(x *chunk.Index) chunk.Index {
	frames := *x
	frames.Codec, frames.Predictor, frames.Params = chunk.OpenZL, chunk.NoPredictor, nil
	frames.BigEndian, frames.Reversed, frames.LowBits, frames.Bits, frames.Packed = false, false, false, false, 0
	return frames
}

// isFrames reports whether x's chunks are stored as frames that a Decoder decodes by frameIndex.
func isFrames(x *chunk.Index) bool {
	changed := x.BigEndian || x.Reversed || x.LowBits || x.Bits || x.Packed != 0
	return x.Codec == chunk.OpenZL && x.Predictor == chunk.NoPredictor && !changed
}

// keyOfStored returns the key of a stored chunk of an array. Other open arrays have other numbers.
func keyOfStored(of chunk.ChunkID) recodedKey {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), of.Array)
	return xxh3.Hash128(binary.LittleEndian.AppendUint64(b, uint64(of.Number)))
}

// storedIndex returns an index whose only chunk is one of an array, of size decoded bytes in rows of so many samples.
func storedIndex(d chunk.DType, size, row int) chunk.Index {
	samples := size / d.Size()
	if row < 1 || samples%row != 0 {
		row = samples
	}
	return chunk.Index{Bands: 1, Height: samples / row, Width: row, ChunkB: 1, ChunkH: samples / row, ChunkW: row,
		DType: d, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: int64(size)}}}
}

// find returns an encoded chunk, which the caller must release if it has a segment.
func (r *Recoded) find(key recodedKey) (found recodedChunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found = r.chunks[key]; found.in != nil {
		found.in.readers++
	}
	return found
}

// misses counts a chunk that was decoded from its file, and reports whether it is to be offered.
func (r *Recoded) misses(key recodedKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.chunks[key]; known { // it is not worth it, or was encoded meanwhile
		return false
	}
	r.counts.Missed++
	now := time.Now()
	return !now.Before(r.paused) || r.disk != nil && !now.Before(r.full)
}

// recall appends to dst the frame of a chunk that the disk has: object as in recoding, decoded as it is in bytes.
func (r *Recoded) recall(object any, lasting bool, key recodedKey, decoded int, dst []byte) []byte {
	if r.disk == nil || !lasting || decoded < recodedFile {
		return dst
	}
	return r.disk.Made(object, key.Bytes(), dst)
}

// toDisk lets the disk keep a frame that memory has no room for.
func (r *Recoded) toDisk(c *recoding, frame []byte) {
	if r.disk == nil || !c.lasting || len(frame) == 0 || c.x.DecodedBytes(c.i) < recodedFile {
		return
	}
	kept := r.disk.KeepMade(c.object, c.key.Bytes(), frame)
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept {
		r.counts.OnDisk++
	} else {
		r.full = time.Now().Add(recodedPause)
	}
}

// release ends the use of a frame in memory or of the disk. used says that the chunk was decoded from its frame.
func (r *Recoded) release(found recodedChunk, used bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found.in != nil {
		found.in.readers--
	}
	if used {
		r.counts.Used++
	}
}

// offer lets an encoder have a chunk, unless many wait. It copies the content.
func (q *recodingQueue) offer(c recoding) {
	buffer, ok := q.admit(&c)
	if !ok {
		return
	}
	c.content = append(buffer, c.content...)
	q.work.Lock()
	defer q.work.Unlock()
	q.waiting = append(q.waiting, c)
	q.change.Broadcast() // a Signal could wake Settle alone
}

// admit reports whether a chunk may wait. Then it counts it, and returns an empty buffer for its content, which may be
// nil.
func (q *recodingQueue) admit(c *recoding) (buffer []byte, ok bool) {
	n := int64(len(c.content))
	q.work.Lock()
	defer q.work.Unlock()
	if _, waits := q.pending[c.key]; waits || q.ctx.Err() != nil || q.bytes+n > recodedAhead {
		return nil, false
	}
	q.pending[c.key] = struct{}{}
	q.bytes += n
	if last := len(q.spare) - 1; last >= 0 {
		buffer, q.spare = q.spare[last], q.spare[:last]
		q.spared -= cap(buffer)
	}
	return buffer[:0], true
}

// next returns the next chunk to encode. ok is false once the queue is closed.
func (q *recodingQueue) next() (c recoding, ok bool) {
	q.work.Lock()
	defer q.work.Unlock()
	for len(q.waiting) == 0 && q.ctx.Err() == nil {
		q.change.Wait()
	}
	if q.ctx.Err() != nil {
		return c, false
	}
	c = q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return c, true
}

// encodeAll encodes chunks when it may.
func (r *Recoded) encodeAll() {
	decoder := chunk.NewDecoder(nil)
	encoder := chunk.NewRecoder()
	var samples, frame []byte
	for {
		next, ok := r.next()
		for ok && !r.decoders.MayAside(r.share) && r.ctx.Err() == nil {
			time.Sleep(recodedLook)
		}
		if !ok || r.ctx.Err() != nil {
			return
		}
		start := time.Now()
		err := crash.Call(func() error {
			frame = next.encode(decoder, encoder, frame[:0], &samples)
			return nil
		})
		if err != nil { // a panic, which may have left the decoder half changed
			decoder, encoder, frame = chunk.NewDecoder(nil), chunk.NewRecoder(), frame[:0]
		}
		if !r.keep(next.key, frame) {
			r.toDisk(&next, frame)
		}
		r.decoders.Aside(time.Since(start))
		r.finish(&next)
	}
}

// finish ends the work on a chunk.
func (q *recodingQueue) finish(c *recoding) {
	q.work.Lock()
	defer q.work.Unlock()
	q.bytes -= int64(len(c.content))
	if q.spared+cap(c.content) <= recodedSpare {
		q.spare = append(q.spare, c.content)
		q.spared += cap(c.content)
	}
	delete(q.pending, c.key)
	q.change.Broadcast()
}

// encode appends the frame of a chunk to dst. It appends nothing if the chunk is damaged, which the readers of its
// pixels report, or the frame is too large.
func (c *recoding) encode(d *chunk.Decoder, e chunk.Recoder, dst []byte, samples *[]byte) []byte {
	decoded := c.content
	if !c.decoded {
		n := c.x.DecodedBytes(c.i)
		if cap(*samples) < n+chunk.Spare {
			*samples = cast.Aligned(n + chunk.Spare)
		}
		decoded = (*samples)[:n]
		if d.Decode(decoded, c.content, c.x, c.i) != nil {
			return dst
		}
	}
	bands, height, width := c.x.DecodedShape(c.i)
	number := c.x.DType.Size() / c.x.DType.Components()
	row := width * c.x.DType.Components()
	if c.x.Inner == chunk.YXB {
		row *= bands
	} else {
		height *= bands
	}
	frame, err := e.Encode(dst, decoded, number, height, row)
	if err != nil || len(frame)*recodedLeast > c.stored*recodedMost {
		return dst
	}
	return frame
}

// keep stores a frame as far as there is memory, and reports whether there was. An empty one is of a chunk that is not
// worth it.
func (r *Recoded) keep(key recodedKey, frame []byte) (kept bool) {
	unused := int64(0)
	r.mu.Lock()
	defer func() {
		r.mu.Unlock()
		r.budget.Release(unused) // without the lock, because the budget calls Freed and Reclaim
	}()
	if len(frame) == 0 {
		if r.charge(recodedEntry) {
			r.counts.Refused++
			r.chunks[key] = recodedChunk{}
		}
		return true
	}
	if time.Now().Before(r.paused) {
		return false
	}
	const align = 8
	need := (len(frame) + align - 1) / align * align
	var last *segment
	if n := len(r.segments); n > 0 {
		last = r.segments[n-1]
	}
	if last == nil || len(last.memory.Bytes())-last.used < need {
		size := max(need, pages.Worth)
		if r.available()-r.reserve < int64(size) || !r.charge(int64(size)) {
			r.paused = time.Now().Add(recodedPause)
			return false
		}
		memory, err := newPages(size)
		if err != nil {
			unused = int64(size)
			r.memory -= unused
			r.paused = time.Now().Add(recodedPause)
			return false
		}
		last = &segment{memory: memory}
		r.segments = append(r.segments, last)
	}
	place := last.memory.Bytes()[last.used:][:len(frame):len(frame)]
	if !r.charge(recodedEntry) {
		r.paused = time.Now().Add(recodedPause)
		return false
	}
	copy(place, frame)
	last.used += need
	last.keys = append(last.keys, key)
	r.chunks[key] = recodedChunk{last, place}
	r.counts.Chunks++
	return true
}

// charge takes n bytes of the bound and the budget. It needs the lock.
func (r *Recoded) charge(n int64) bool {
	if r.memory+n > r.most || !r.budget.TryAcquire(n) {
		return false
	}
	r.memory += n
	return true
}

// free frees segments that no reader uses until all take at most bound bytes, the last ones first.
func (r *Recoded) free(bound int64) (more bool) {
	r.mu.Lock()
	before := r.memory
	for i := len(r.segments) - 1; i >= 0 && r.memory > bound; i-- {
		old := r.segments[i]
		if old.readers > 0 {
			continue
		}
		for _, key := range old.keys {
			delete(r.chunks, key)
		}
		r.counts.Chunks -= int64(len(old.keys))
		r.memory -= int64(len(old.memory.Bytes()) + recodedEntry*len(old.keys))
		old.memory.Free()
		r.segments = slices.Delete(r.segments, i, i+1)
	}
	if len(r.segments) == 0 { // what is left are chunks that are not worth it
		clear(r.chunks)
		r.memory = 0
	}
	due, more := before-r.memory, len(r.segments) > 0
	r.mu.Unlock()
	r.budget.Release(due)
	return more
}

// Reclaim implements budget.Holder.
func (r *Recoded) Reclaim(budget.Level) (more bool) {
	taken := r.Counts().Bytes
	return r.free(taken - max(taken/keptGiven, keptGivenBytes))
}

// Freed implements budget.Holder.
func (r *Recoded) Freed() {}
