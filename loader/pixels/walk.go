package pixels

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// walk executes a plan: it takes a reader through the chunks of an index that meet a box. A chunk comes from runs of a
// file, from an array, or from another reader that shares it; a file's large chunk comes in pieces of rows. All go to
// the sink.
type walk struct {
	*Reader
	*plan
	file  source.Reader     // nil for an array
	array chunk.BlockReader // nil for a file
	sink  Sink
}

// pass reads a part of an asset whose file is open. For arrays the file is nil, because their readers open files
// themselves.
func (r *Reader) pass(ctx context.Context, file source.Reader, p *pass) (err error) {
	if p.file != nil {
		if file, err = r.open(ctx, p.file); err != nil {
			return err
		}
		defer file.Close()
	}
	r.Share.Key.Mask = p.mask
	if err := r.plan.set(p, r.maxChunk); err != nil {
		return err
	}
	unit := r.plan.unit()
	if resources.IsLarge(unit) {
		done, err := r.waitForMemory(ctx, unit)
		if err != nil {
			return err
		}
		defer done()
	}
	r.growSamples(unit)
	w := &r.walk // so that the walk of each pass needs no memory of its own
	*w = walk{Reader: r, plan: &r.plan, file: file, sink: p.sink}
	defer func() { *w = walk{} }()
	if p.x.Blocks != nil {
		w.array = r.arrays.get(p.x.Blocks.Array, r.openArray)
	}
	return w.run(ctx, &w.Share, w.version.local, w)
}

// decode reads and decodes chunks: of the file in runs.
func (w *walk) decode(ctx context.Context, wants []neededChunk) error {
	switch {
	case w.array != nil:
		return w.blocks(ctx, wants)
	case w.x.Grid != nil:
		return w.decodeStored(ctx, wants)
	}
	if w.recodes() {
		rest, err := w.recall(ctx, wants)
		if err != nil {
			return err
		}
		wants = rest
	}
	for queue, rest := w.join(wants, w.file.Size(), source.Gap(w.file)), wants; len(queue) > 0; {
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
	// A reader that waits for bytes keeps no other from decoding. Bytes in the cache on disk come at once: more readers
	// than decode would only fill the processor's caches with bytes that wait.
	near := w.waits && w.isNear(list[0])
	if near {
		w.begin()
		defer w.end()
	}
	if err := w.fetch(ctx, list); err != nil {
		return count, err
	}
	if !near {
		w.begin()
		defer w.end()
	}
	begin := int64(0) // of the run in Stored
	for _, run := range list {
		for end := count + len(run.Chunks); count < end; {
			if err := ctx.Err(); err != nil {
				return count, err
			}
			c := &wants[count]
			stored := w.Stored[begin+c.place.Off-run.Off:]
			if n := w.strips(stored, wants[count:end]); n > 0 {
				count += n
				continue
			}
			if err := w.chunk(stored[:c.place.Len], c); err != nil {
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
		total += run.Len
	}
	w.Stored = slices.Grow(w.Stored[:0], int(total))[:total]
	w.Clock.Lap(resources.StageOther)
	defer w.Clock.Lap(resources.StageRead)
	if len(list) == 1 {
		return w.file.ReadAt(ctx, w.Stored, list[0].Off)
	}
	return each.Of(ctx, int64(len(list)), len(list), func(ctx context.Context, i int64) error {
		begin := int64(0)
		for _, run := range list[:i] {
			begin += run.Len
		}
		return w.file.ReadAt(ctx, w.Stored[begin:][:list[i].Len], list[i].Off)
	})
}

// stripsBytes bounds strips that are put into the sink as one chunk: a part of a second-level cache.
const stripsBytes = 64 << 10

// strips puts uncompressed strips that follow each other in the file, the first of wants, into the sink as one chunk. A
// strip of one row would cost as much as a chunk of many. stored begins with the first one's bytes. It returns how many
// strips it has put there: 0 if they are not such strips.
func (w *walk) strips(stored []byte, wants []neededChunk) int {
	x, first := w.x, &wants[0]
	groups, size := x.Groups(), int(first.place.Len)
	most := min(stripsBytes/max(size, 1), x.Down())
	if x.Codec != chunk.Raw || !x.RowsFirst() || most < 2 || x.Across() > 1 || first.t != nil || x.OfArray() {
		return 0
	}
	row := first.i / groups
	count := min(most, x.Down()-row)
	if row%most != 0 || count > len(wants) || count < most && !x.CutEdge || size != x.DecodedBytes(first.i) {
		return 0
	}
	next := first.place.Off
	for k := range wants[:count] {
		c := &wants[k]
		if c.t != nil || c.i != first.i+k*groups || c.place.Off != next {
			return 0
		}
		next += c.place.Len
	}
	if w.joinedOf != x || w.strip.ChunkH != most*x.ChunkH {
		w.joinedOf, w.strip = x, *x
		w.strip.ChunkH, w.strip.Ranges, w.strip.Mask = most*x.ChunkH, nil, nil
	}
	i := row/most*groups + first.i%groups
	samples := w.strip.AsStored(stored[:next-first.place.Off], i)
	if samples == nil {
		return 0
	}
	w.Clock.Decoded(len(samples))
	w.sink.Put(&w.strip, i, samples)
	w.Clock.Lap(resources.StageScatter)
	return count
}

// chunk decodes a chunk of the file and puts it into the sink. stored is nil for a sparse chunk.
func (w *walk) chunk(stored []byte, c *neededChunk) error {
	x := w.x
	if samples := x.AsStored(stored, c.i); samples != nil && c.t == nil {
		w.finish(c, samples)
		return nil
	}
	if isFrames(x) && len(stored) > 0 && w.rowByRow(stored, c) {
		return nil
	}
	samples, pixels := w.memory(c), w.pixels(c)
	if c.alone {
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

// memory returns where the samples of a chunk go.
func (w *walk) memory(c *neededChunk) []byte {
	if c.t != nil {
		return c.t.Samples
	}
	return w.Samples[:w.x.DecodedBytes(c.i)]
}

// finish puts a chunk that this reader has decoded into the sink, and lets others have it.
func (w *walk) finish(c *neededChunk, samples []byte) {
	if c.open {
		w.Share.Tiles.Finish(c.t, false)
		c.open = false
	}
	w.Clock.Decoded(len(samples))
	w.sink.Put(w.x, c.i, samples[c.stored.begin:])
	w.Clock.Lap(resources.StageScatter)
}

// await waits for a chunk that another reader decodes, the first of list. If that failed, it decodes the chunk here,
// because the other reader may have failed for a reason of its own, such as a cancelled context.
func (w *walk) await(ctx context.Context, list []neededChunk) error {
	tile := list[0].t
	select {
	case <-tile.Ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.Clock.Lap(resources.StageTurn)
	if tile.Failed {
		again := slices.Clone(list)
		again[0].t = nil
		return w.decode(ctx, again)
	}
	w.sink.Put(w.x, list[0].i, tile.Samples[list[0].stored.begin:])
	w.putFollowing(tile.Samples, list)
	return nil
}

// sparse makes the chunks that the file leaves out.
func (w *walk) sparse(ctx context.Context, list []int) error {
	if len(list) == 0 {
		return nil
	}
	w.begin()
	defer w.end()
	for _, i := range list {
		if err := ctx.Err(); err != nil {
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

// allowed checks a run.
func (w *walk) allowed(run runs.Run) error {
	if err := present(w.file, run); err != nil {
		return err
	}
	return tooLong(run, w.maxChunk)
}

// recodes reports whether chunks of the walk are kept encoded.
func (w *walk) recodes() bool {
	return w.recoded != nil && w.version.object != 0 && slices.Contains(slowToDecode, w.x.Codec)
}

// recall puts the chunks of wants into the sink that are kept encoded. It puts them first in wants, and returns the
// others.
func (w *walk) recall(ctx context.Context, wants []neededChunk) (rest []neededChunk, err error) {
	w.frames = frameIndex(w.x)
	object, lasting := w.onDisk()
	count := 0
	for i := range wants {
		key := keyOf(w.version.object, w.x, wants[i].i)
		found := w.recoded.find(key)
		if found.in == nil {
			w.Clock.Lap(resources.StageOther)
			w.Stored = w.recoded.recall(object, lasting, key, w.x.DecodedBytes(wants[i].i), w.Stored[:0])
			w.Clock.Lap(resources.StageRead)
			if found.frame = w.Stored; len(found.frame) == 0 {
				continue
			}
		}
		w.begin()
		used := w.fromFrame(found.frame, &wants[i])
		w.end()
		w.recoded.release(found, used)
		if err := ctx.Err(); err != nil {
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
	return object, object != nil || w.version.local != 0
}

// fromFrame decodes a chunk from its frame. It reports false if that fails: memory does not keep everything for ever.
func (w *walk) fromFrame(frame []byte, c *neededChunk) bool {
	if w.rowByRow(frame, c) {
		return true
	}
	samples := w.memory(c)
	if w.Decoder.DecodeFirst(samples, frame, &w.frames, c.i, w.pixels(c)) != nil {
		return false
	}
	w.Clock.Lap(resources.StagePredictor)
	w.finish(c, samples)
	return true
}

// planarBytes is how many bytes of residuals are unpacked at a time: eight blocks of 256 numbers of two bytes. They
// stay in a first-level cache of 32 KiB.
const planarBytes = 4 << 10

// rowByRow puts a chunk of one band that goes to one place only into the sink, from its frame: rows become elements as
// soon as they are decoded, while those before them are on their way to memory. It reports false for other chunks, and
// damaged ones.
func (w *walk) rowByRow(frame []byte, c *neededChunk) bool {
	sink, ok := w.sink.(planarSink)
	if !ok || c.t != nil {
		return false
	}
	planar, rows := sink.planar(w.x, c.i)
	residuals := w.Decoder.Residuals()
	if rows == 0 || residuals == nil {
		return false
	}
	left, width := w.x.DecodedBytes(c.i), w.x.DType.Size()
	_, _, columns := w.x.DecodedShape(c.i)
	line := columns * width
	// The row above comes first, then residuals: less than a row of them may be left from the last time.
	memory := w.Samples[:cap(w.Samples)]
	if row, ok := residuals.Open(frame, left/width, width); !ok || row != columns || len(memory) < 2*line+planarBytes {
		return false
	}
	defer planar.End()
	above, waiting := memory[:line], memory[line:]
	clear(above)
	for held := 0; rows > 0; {
		n := min(planarBytes, left)
		if n == 0 || !residuals.Read(waiting[held:held+n]) {
			return false
		}
		held, left = held+n, left-n
		whole := min(held/line, rows) * line
		planar.Put(above, waiting[:whole])
		rows -= whole / line
		held = copy(waiting, waiting[whole:held])
	}
	if left == 0 && !residuals.Done() {
		return false
	}
	w.Clock.Decoded(w.x.DecodedBytes(c.i))
	w.Clock.Lap(resources.StageDecode)
	return true
}

// remember lets an encoder have a chunk whose first pixels were decoded from its stored bytes.
func (w *walk) remember(stored []byte, c *neededChunk, samples []byte, pixels int) {
	if !w.recodes() || len(stored) == 0 || w.x.DecodedBytes(c.i) < keptTile || resources.IsLarge(w.x) {
		return
	}
	key := keyOf(w.version.object, w.x, c.i)
	if !w.recoded.misses(key) {
		return
	}
	job := recoding{key: key, x: w.x, i: c.i, stored: len(stored), content: stored}
	job.object, job.lasting = w.onDisk()
	if _, height, width := w.x.DecodedShape(c.i); pixels == height*width {
		job.content, job.decoded = samples, true
	}
	w.recoded.offer(job)
}

// recallStored is recall for chunks of an array, which stand in groups: see groupEnd.
func (w *walk) recallStored(ctx context.Context, wants []neededChunk) (rest []neededChunk, err error) {
	if w.recoded == nil || len(wants) == 0 {
		return wants, nil
	}
	count := 0
	for k := 0; k < len(wants); {
		group := wants[k:][:groupEnd(wants[k:])]
		row := w.x.Grid.Array.Row(group[0].stored.of)
		if row > 0 && w.recallGroup(group, row) {
			if count < k {
				moved := slices.Clone(group)
				copy(wants[count+len(group):], wants[count:k])
				copy(wants[count:], moved)
			}
			count += len(group)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k += len(group)
	}
	return wants[count:], nil
}

// recallGroup puts the chunks of a group into the sink, if their stored chunk is kept encoded.
func (w *walk) recallGroup(group []neededChunk, row int) bool {
	first := &group[0]
	found := w.recoded.find(keyOfStored(first.stored.of))
	if found.in == nil {
		return false
	}
	x := storedIndex(w.x.DType, w.x.Grid.Array.Size(first.stored.of), row)
	frames := frameIndex(&x)
	samples := w.storedMemory(first)
	w.begin()
	defer w.end()
	used := w.Decoder.DecodeFirst(samples, found.frame, &frames, 0, x.Height*x.Width) == nil
	w.recoded.release(found, used)
	if used {
		w.Clock.Lap(resources.StageDecode)
		w.finish(first, samples)
		w.putFollowing(samples, group)
	}
	return used
}

// rememberStored lets an encoder have a stored chunk of an array, which was decoded.
func (w *walk) rememberStored(stored []byte, c *neededChunk, samples []byte) {
	array := w.x.Grid.Array
	size := len(samples)
	if w.recoded == nil || len(stored) == 0 || size < keptTile || size > resources.DefaultMaxChunkBytes {
		return
	}
	row := array.Row(c.stored.of)
	if row == 0 {
		return
	}
	key := keyOfStored(c.stored.of)
	if w.recoded.misses(key) {
		x := storedIndex(w.x.DType, size, row)
		w.recoded.offer(recoding{key: key, x: &x, stored: len(stored), content: samples, decoded: true})
	}
}
