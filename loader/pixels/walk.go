package pixels

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// walk takes a reader through the chunks of an index that meet a box. A chunk comes from runs of a file, from an array,
// or from another reader that shares it; a file's large chunk comes in pieces of rows. All go to the sink. A dry reader
// takes the same way: it notes reads and chunks where others read and decode.
type walk struct {
	*Reader
	file   source.Reader     // nil for an array
	array  chunk.BlockReader // nil for a file
	x      *chunk.Index
	pieces *chunk.Index // of chunks that are decoded in pieces; nil if chunks are decoded whole
	box    chunk.Box
	sink   Sink
}

// neededChunk is a chunk that a window needs, and its tile.
type neededChunk struct {
	i    int   // the chunk's number
	t    *tile // nil if the chunk is not shared
	open bool  // this reader decodes the chunk for all, and Finish is still to be called

	place chunk.Range // the bytes that are read of it: see settle
	alone bool        // they are its rows in the box, without the others
}

// chunks puts the chunks of index x that meet box into a sink. For arrays f is nil, because their readers open files
// themselves.
func (r *Reader) chunks(
	ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, bands []int, to Sink,
) error {
	w := walk{Reader: r, file: f, x: x, box: box, sink: to}
	unit := x // the index of what is decoded at once: of chunks, or of pieces
	if !x.ChunkFits(r.maxChunk) {
		if unit = x.InPieces(r.maxChunk); unit == nil {
			return x.OverLimit(r.maxChunk)
		}
		w.pieces = unit
	}
	large := resources.IsLarge(unit)
	if large {
		done, err := r.waitForMemory(ctx, unit)
		if err != nil {
			return err
		}
		defer done()
	}
	r.growSamples(unit)
	r.plan.Reset(x, box, bands)
	if w.pieces != nil {
		return w.inPieces(ctx)
	}
	if x.Blocks != nil {
		w.array = r.reader(x.Blocks.Array)
	}
	tiles := r.Share.Tiles
	// A shared chunk may be one that another worker decodes. That worker may itself wait for the room that this one
	// holds, so waiting for it would be a deadlock. Chunks of arrays are not announced.
	if large || x.Blocks != nil && r.Share.Order > 0 {
		tiles = nil
	}
	err := w.decodeAll(ctx, tiles)
	if tiles != nil && fault.KindOf(err) != 0 {
		// If a shared chunk is damaged, the reader reads the window again, without sharing. Otherwise the result would
		// depend on the number of workers: which damaged chunk is found first follows from which worker decodes it, and
		// shared chunks are decoded to their last row, where damage may lie below the rows of this window.
		return w.decodeAll(ctx, nil)
	}
	return err
}

// decodeAll puts the chunks of the plan into the sink: first those that this reader decodes, then those that others
// decode. In the other order two readers could each wait for a chunk of the other, forever.
func (w *walk) decodeAll(ctx context.Context, tiles *TileCache) error {
	own, others := w.divide(tiles)
	defer w.putBack(tiles)
	if err := w.decode(ctx, own); err != nil {
		return err
	}
	for _, other := range others {
		if err := w.await(ctx, other); err != nil {
			return err
		}
	}
	return w.sparse(ctx)
}

// divide returns the chunks of the plan that this reader decodes, and those that others decode. The caller must call
// putBack.
func (w *walk) divide(tiles *TileCache) (own, others []neededChunk) {
	// Grown once, because the dry reader of a window serves no other.
	w.ownChunks, w.otherChunks = slices.Grow(w.ownChunks[:0], len(w.plan.Chunks)), w.otherChunks[:0]
	key, order := w.Share.Key, w.Share.Order
	for _, i := range w.plan.Chunks {
		if tiles == nil {
			w.ownChunks = append(w.ownChunks, neededChunk{i: i})
			continue
		}
		key.Chunk = i
		part := w.x.Box(i)
		rows := part.Y1 - part.Y0
		if order > 0 { // windows of a pool need all rows sooner or later
			rows = min(w.box.Y1, part.Y1) - part.Y0
		}
		if t, decode := tiles.Get(key, w.version, w.x.DecodedBytes(i), order, rows); t == nil || decode {
			w.ownChunks = append(w.ownChunks, neededChunk{i: i, t: t, open: decode})
		} else {
			w.otherChunks = append(w.otherChunks, neededChunk{i: i, t: t})
		}
	}
	return w.ownChunks, w.otherChunks
}

// decode reads and decodes chunks: of the file in runs.
func (w *walk) decode(ctx context.Context, wants []neededChunk) error {
	if w.array != nil {
		return w.blocks(ctx, wants)
	}
	if w.recodes() {
		rest, err := w.recall(ctx, wants)
		if err != nil {
			return err
		}
		wants = rest
	}
	w.numbers = slices.Grow(w.numbers[:0], len(wants))
	for i := range wants {
		w.numbers = append(w.numbers, wants[i].i)
		w.settle(&wants[i])
	}
	gap, place := source.Gap(w.file), func(k int) chunk.Range { return wants[k].place }
	if w.dry != nil {
		w.dry.compare(w.numbers, place)
		gap = w.dry.Gap
	}
	for queue, rest := w.plan.Join(w.numbers, place, gap, MaxRun), wants; len(queue) > 0; {
		n := w.together(queue)
		count, err := w.read(ctx, queue[:n], rest)
		if err != nil {
			return err
		}
		queue, rest = queue[n:], rest[count:]
	}
	return nil
}

// runsTogether bounds the runs that are requested together.
const runsTogether = 32

// together returns how many of the next runs are read together: of remote files as many as fit into MaxRun, so
// their answers come in one round trip; else one, and one that the cache on disk has.
func (w *walk) together(list []runs.Run) int {
	n, total := 0, int64(0)
	for w.waits && n < min(len(list), runsTogether) && list[n].Len <= MaxRun-total && !w.isNear(list[n]) {
		total += list[n].Len
		n++
	}
	return max(n, 1)
}

// read reads runs and decodes their chunks, which are the first of wants. It returns how many it has decoded.
func (w *walk) read(ctx context.Context, list []runs.Run, wants []neededChunk) (count int, _ error) {
	// The turn is taken after the read, so a reader that waits for bytes keeps no other from decoding. Where the
	// bytes are in the cache on disk, it is taken before: more readers than decode would only fill the processor's
	// caches with bytes that wait.
	near, reading := w.waits && w.isNear(list[0]), ctx
	if near {
		defer w.takeTurn()()
		reading = turns.With(ctx, w.Slot) // which rests if the range is gone meanwhile
	}
	if err := w.fetch(reading, list); err != nil {
		return count, err
	}
	if !near {
		defer w.takeTurn()()
	}
	begin := int64(0) // of the run in Stored
	for _, run := range list {
		for range run.Chunks {
			if err := w.Slot.Tick(ctx); err != nil {
				return count, err
			}
			c := &wants[count]
			var stored []byte // a dry reader has none
			if w.dry == nil {
				stored = w.Stored[begin+c.place.Off-run.Off:][:c.place.Len]
			}
			if err := w.chunk(stored, c); err != nil {
				return count, err
			}
			count++
		}
		begin += run.Len
	}
	return count, nil
}

// fetch reads the bytes of runs into Stored, one behind the other, all at the same time.
func (w *walk) fetch(ctx context.Context, list []runs.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	total := int64(0)
	for _, run := range list {
		if err := w.allowed(run); err != nil {
			return err
		}
		if total += run.Len; w.dry != nil {
			w.dry.fetched(run)
		}
	}
	if w.dry != nil {
		return nil
	}
	w.Stored = slices.Grow(w.Stored[:0], int(total))[:total]
	w.Clock.Lap(resources.StageOther)
	defer w.Clock.Lap(resources.StageRead)
	if len(list) == 1 {
		return w.file.ReadAt(ctx, w.Stored, list[0].Off)
	}
	file, stored := w.file, w.Stored // so that the walk stays off the heap
	return each.Of(ctx, int64(len(list)), len(list), func(ctx context.Context, i int64) error {
		begin := int64(0)
		for _, run := range list[:i] {
			begin += run.Len
		}
		return file.ReadAt(ctx, stored[begin:][:list[i].Len], list[i].Off)
	})
}

// settle decides which bytes are read of a chunk: of an uncompressed one that no other window shares, the rows that the
// box needs. A chunk that reaches past the file is read whole, which fails whatever rows are needed.
func (w *walk) settle(c *neededChunk) {
	c.place = w.x.Place(c.i)
	if c.t != nil || w.dry != nil && w.dry.Wholly || w.dry == nil && c.place.Len > w.file.Size()-c.place.Off {
		return
	}
	top, bottom := w.rowsOf(c.i)
	c.place, c.alone = w.x.Rows(c.i, top, bottom)
}

// rowsOf returns the rows of chunk i, from top up to bottom, that the box needs.
func (w *walk) rowsOf(i int) (top, bottom int) {
	part := w.x.Box(i)
	return max(w.box.Y0, part.Y0) - part.Y0, min(w.box.Y1, part.Y1) - part.Y0
}

// chunk decodes a chunk of the file and puts it into the sink. stored is nil for a sparse chunk.
func (w *walk) chunk(stored []byte, c *neededChunk) error {
	x := w.x
	if samples := x.AsStored(stored, c.i); samples != nil && c.t == nil {
		w.finish(c, samples)
		return nil
	}
	samples, pixels := w.memory(c), w.pixels(c)
	if w.dry != nil {
		w.dry.decoded(x, c.i, c.place, pixels)
	} else if c.alone {
		top, bottom := w.rowsOf(c.i)
		w.Decoder.DecodeRows(samples, stored, x, c.i, top, bottom)
	} else if err := w.Decoder.DecodeFirst(samples, stored, x, c.i, pixels); err != nil {
		return fault.AtOffset(err, x.Ranges[c.i].Off)
	}
	w.Clock.Lap(resources.StagePredictor)
	w.finish(c, samples)
	w.remember(stored, c, samples, pixels)
	return nil
}

// pixels returns how many of the first pixels of a chunk are decoded.
func (w *walk) pixels(c *neededChunk) int {
	if c.t == nil {
		return needed(w.x, c.i, w.box)
	}
	// Whole rows, because the next window may lie anywhere in them.
	part := w.x.Box(c.i)
	_, _, width := w.x.DecodedShape(c.i)
	return min(c.t.rows, part.Y1-part.Y0) * width
}

// memory returns where the samples of a chunk go. A dry reader has none.
func (w *walk) memory(c *neededChunk) []byte {
	switch {
	case c.t != nil:
		return c.t.Samples
	case w.dry != nil:
		return nil
	}
	return w.Samples[:w.x.DecodedBytes(c.i)]
}

// needed returns how many of the first pixels of chunk i, row by row, a box needs that ends in the chunk or behind it.
// Of a row whose last pixel in the image it needs, it needs the padding, too, and with it the end of a whole chunk.
func needed(x *chunk.Index, i int, box chunk.Box) int {
	part := x.Box(i)
	_, _, width := x.DecodedShape(i)
	last := width
	if box.X1 < part.X1 {
		last = box.X1 - part.X0
	}
	return (min(box.Y1, part.Y1)-part.Y0-1)*width + last
}

// finish puts a chunk that this reader has decoded into the sink, and lets others have it.
func (w *walk) finish(c *neededChunk, samples []byte) {
	if c.open {
		w.Share.Tiles.Finish(c.t, false)
		c.open = false
	}
	w.Clock.Decoded(len(samples))
	w.sink.Put(w.x, c.i, samples)
	w.Clock.Lap(resources.StageScatter)
}

// putBack puts back the tiles that divide got. It marks the others as failed, for which other readers would wait
// forever.
func (w *walk) putBack(tiles *TileCache) {
	for _, list := range [...][]neededChunk{w.ownChunks, w.otherChunks} {
		for _, c := range list {
			if c.open {
				tiles.Finish(c.t, true)
			}
			if c.t != nil {
				tiles.Put(c.t)
			}
		}
		clear(list) // the reader keeps the slice, which would otherwise keep evicted tiles alive
	}
}

// await waits for a chunk that another reader decodes. If that failed, it decodes the chunk here, because the other
// reader may have failed for a reason of its own, such as a cancelled context.
func (w *walk) await(ctx context.Context, other neededChunk) error {
	select {
	case <-other.t.Ready:
	default:
		w.Slot.Rest() // the other reader may need the turn
		select {
		case <-other.t.Ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.Clock.Lap(resources.StageTurn)
	if other.t.Failed {
		return w.decode(ctx, []neededChunk{{i: other.i}})
	}
	w.sink.Put(w.x, other.i, other.t.Samples)
	w.Clock.Lap(resources.StageScatter)
	return nil
}

// sparse makes the chunks that the file leaves out.
func (w *walk) sparse(ctx context.Context) error {
	if len(w.plan.Sparse) == 0 {
		return nil
	}
	defer w.takeTurn()()
	for _, i := range w.plan.Sparse {
		if err := w.Slot.Tick(ctx); err != nil {
			return err
		}
		if err := w.chunk(nil, &neededChunk{i: i, place: w.x.Place(i)}); err != nil {
			return err
		}
	}
	return nil
}

// isNear reports whether the cache on disk has a run of the file.
func (w *walk) isNear(run runs.Run) bool {
	// A forbidden run is not looked for: the cache would search a range of any length.
	if w.disk == nil || w.allowed(run) != nil {
		return false
	}
	object, start := source.Place(w.file)
	return w.disk.Has(object, source.Range{Off: start + run.Off, Len: run.Len})
}

// allowed checks a run. Offset and length come from the file's header, which may lie. They are checked before memory is
// allocated, so a small hostile file cannot claim gigabytes.
func (w *walk) allowed(run runs.Run) error {
	if w.dry == nil { // which has no file
		if err := present(w.file, run); err != nil {
			return err
		}
	}
	if run.Len > int64(max(w.maxChunk, MaxRun)) {
		return fault.At(fault.Limit, partOf(run), run.Off,
			"%d stored bytes, over max_chunk, which is %d", run.Len, w.maxChunk)
	}
	return nil
}

// present checks that a run lies in file f.
func present(f source.Reader, run runs.Run) error {
	if !source.Fits(run.Off, run.Len, f.Size()) {
		return fault.At(fault.Corrupt, partOf(run), run.Off, "%d bytes reach past the file's %d", run.Len, f.Size())
	}
	return nil
}

// partOf names the chunks of a run in errors.
func partOf(run runs.Run) string {
	if len(run.Chunks) == 1 {
		return "chunk " + strconv.Itoa(run.Chunks[0])
	}
	return "chunks " + strconv.Itoa(run.Chunks[0]) + " and following"
}

// recodes reports whether chunks of the walk are kept encoded.
func (w *walk) recodes() bool {
	return w.recoded != nil && w.object != 0 && w.dry == nil && slices.Contains(slowToDecode, w.x.Codec)
}

// recall puts the chunks of wants into the sink that are kept encoded. It puts them first in wants, and returns the
// others.
func (w *walk) recall(ctx context.Context, wants []neededChunk) (rest []neededChunk, err error) {
	w.frames = frameIndex(w.x)
	object, lasting := w.onDisk()
	count := 0
	for i := range wants {
		key := keyOf(w.object, w.x, wants[i].i)
		found, _ := w.recoded.find(key)
		if found.in == nil {
			w.Clock.Lap(resources.StageOther)
			w.Stored = w.recoded.recall(object, lasting, key, w.x.DecodedBytes(wants[i].i), w.Stored[:0])
			w.Clock.Lap(resources.StageRead)
			if found.frame = w.Stored; len(found.frame) == 0 {
				continue
			}
		}
		if count == 0 {
			defer w.takeTurn()()
		}
		err := w.Slot.Tick(ctx)
		used := err == nil && w.fromFrame(found.frame, &wants[i])
		w.recoded.release(found, used)
		if err != nil {
			return nil, err
		}
		if used {
			c := wants[i]
			copy(wants[count+1:i+1], wants[count:i])
			wants[count] = c
			count++
		}
	}
	return wants[count:], nil
}

// onDisk returns the name that the cache on disk has for a remote file, nil for a local one, and whether it may keep
// what is made of the file: of a remote one only with the rights by which that is read.
func (w *walk) onDisk() (object any, lasting bool) {
	object, _ = source.Place(w.file)
	return object, object != nil || w.version != 0
}

// fromFrame decodes a chunk from its frame. It reports false if that fails: memory does not keep everything for ever.
func (w *walk) fromFrame(frame []byte, c *neededChunk) bool {
	samples := w.memory(c)
	if w.Decoder.DecodeFirst(samples, frame, &w.frames, c.i, w.pixels(c)) != nil {
		return false
	}
	w.Clock.Lap(resources.StagePredictor)
	w.finish(c, samples)
	return true
}

// remember lets an idle worker encode a chunk whose first pixels were decoded from its stored bytes.
func (w *walk) remember(stored []byte, c *neededChunk, samples []byte, pixels int) {
	if !w.recodes() || len(stored) == 0 || w.x.DecodedBytes(c.i) < keptTile || resources.IsLarge(w.x) {
		return
	}
	key := keyOf(w.object, w.x, c.i)
	if found, known := w.recoded.find(key); !known {
		job := recoding{key: key, x: w.x, i: c.i, stored: len(stored), content: stored}
		job.object, job.lasting = w.onDisk()
		if _, height, width := w.x.DecodedShape(c.i); pixels == height*width {
			job.content, job.decoded = samples, true
		}
		w.recoded.offer(job)
	} else if found.in != nil {
		w.recoded.release(found, false)
	}
}
