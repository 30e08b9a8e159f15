package pixels

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// find finds the chunks of an array.
func (w *walk) find(ctx context.Context, wants []neededChunk) error {
	array := w.x.Grid.Array
	w.numbers = w.numbers[:0] // of those that take requests
	for k := range wants {
		at, exact := array.Known(wants[k].stored.of)
		if wants[k].stored.at = at; !exact && !wants[k].stored.repeat {
			w.numbers = append(w.numbers, k)
		}
	}
	if len(w.numbers) == 0 {
		return nil
	}
	w.Clock.Lap(resources.StageOther)
	defer w.Clock.Lap(resources.StageRead)
	numbers, together := w.numbers, 1
	if w.waits {
		together = min(len(numbers), runsTogether)
	}
	return each.Of(ctx, int64(len(numbers)), together, func(ctx context.Context, i int64) (err error) {
		c := &wants[numbers[i]].stored
		c.at, err = array.Find(ctx, c.of)
		return err
	})
}

// decodeStored reads and decodes chunks of an array.
func (w *walk) decodeStored(ctx context.Context, wants []neededChunk) error {
	wants, err := w.recallStored(ctx, wants)
	if err != nil {
		return err
	}
	if err := w.find(ctx, wants); err != nil {
		return err
	}
	gap := int64(0)
	for k := range wants {
		if at := &wants[k].stored.at; !at.Absent && at.Inline == nil && !at.Object {
			file, err := w.last.open(ctx, w.opener, at)
			if err != nil {
				return err
			}
			gap = source.Gap(file)
			break
		}
	}
	// Before the runs, which find more chunks absent and decode these themselves.
	for k := range wants {
		c := &wants[k].stored
		if !c.repeat && (c.at.Absent || c.at.Inline != nil) {
			if err := w.storedChunk(ctx, c.at.Inline, wants[k:]); err != nil {
				return err
			}
		}
	}
	for list := w.storedRuns(wants, gap); len(list) > 0; {
		n := w.storedTogether(list)
		if err := w.fetchStored(ctx, list[:n]); err != nil {
			return err
		}
		if err := w.decodeRuns(ctx, wants, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// storedTogether is together for runs of arrays.
func (w *walk) storedTogether(list []storedRun) int {
	n, total := 0, int64(0)
	for w.waits && n < min(len(list), runsTogether) {
		length := list[n].at.At.Len
		if list[n].at.Object {
			length = int64(w.x.MaxDecodedBytes())
		}
		if total += length; total > MaxRun {
			break
		}
		n++
	}
	return max(n, 1)
}

// maxWhole bounds the file of a chunk that is read as it is opened: a larger one takes far longer than a request.
const maxWhole = 4 * MaxRun

// fetchStored reads the bytes of runs, all at the same time.
func (w *walk) fetchStored(ctx context.Context, list []storedRun) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.Clock.Lap(resources.StageOther)
	defer w.Clock.Lap(resources.StageRead)
	for len(w.last.runs) < len(list) {
		w.last.runs = append(w.last.runs, nil)
	}
	if run := &list[0]; len(list) == 1 && !run.at.Object {
		file, err := w.last.open(ctx, w.opener, &run.at)
		if err != nil {
			return err
		}
		return w.readStored(ctx, file, run, &w.last.runs[0])
	}
	return each.Of(ctx, int64(len(list)), len(list), func(ctx context.Context, i int64) error {
		at := &list[i].at
		if at.Object && list[i].most <= maxWhole {
			ctx = source.WithWhole(ctx, list[i].most)
		}
		file, err := source.OpenKnown(ctx, w.opener, at.URI, source.Known{Size: at.Size, ETag: at.ETag})
		if list[i].absent = at.Object && err != nil && w.x.Grid.Array.Missing(err); list[i].absent {
			return nil
		}
		if err != nil {
			return fault.WithFile(err, at.URI)
		}
		defer file.Close()
		return w.readStored(ctx, file, &list[i], &w.last.runs[i])
	})
}

// readStored reads the bytes of a run into memory, which it grows.
func (r *Reader) readStored(ctx context.Context, file source.Reader, run *storedRun, memory *[]byte) (err error) {
	place := run.at.At
	if run.at.Object {
		place = chunk.Range{Len: file.Size()}
	}
	// The file may be another one by now. The length comes from its index, which may lie.
	if !source.Fits(place.Off, place.Len, file.Size()) {
		err = fault.At(fault.Corrupt, "chunk", place.Off, "%d bytes reach past the file's %d", place.Len, file.Size())
	} else if most := int64(max(2*r.maxChunk+64<<10, MaxRun)); place.Len > most {
		err = fault.At(fault.Limit, "chunk", place.Off, "%d bytes stored, at most %d", place.Len, most)
	}
	if err == nil {
		*memory = slices.Grow((*memory)[:0], int(place.Len))[:place.Len]
		run.bytes = *memory
		err = file.ReadAt(ctx, run.bytes, place.Off)
	}
	return fault.WithFile(err, run.at.URI)
}

// lastArray is what a reader keeps of the array that it read last.
type lastArray struct {
	uri     string // of file
	file    source.Reader
	runs    [][]byte // that were read last
	array   chunk.Array
	decoder chunk.ArrayDecoder // of array
}

// open opens a file of an array, which stays open until another one is.
func (l *lastArray) open(ctx context.Context, o source.Opener, at *chunk.Stored) (source.Reader, error) {
	if l.file != nil && l.uri == at.URI {
		return l.file, nil
	}
	file, err := source.OpenKnown(ctx, o, at.URI, source.Known{Size: at.Size, ETag: at.ETag})
	if err != nil {
		return nil, fault.WithFile(err, at.URI)
	}
	l.close()
	l.uri, l.file = at.URI, file
	return file, nil
}

// close closes the file.
func (l *lastArray) close() {
	if l.file != nil {
		_ = l.file.Close() // it was only read
	}
	l.uri, l.file = "", nil
}

// Close closes the file that the reader keeps open. The reader may be used again.
func (r *Reader) Close() { r.last.close() }

// decodeRuns decodes the chunks of runs.
func (w *walk) decodeRuns(ctx context.Context, wants []neededChunk, list []storedRun) error {
	w.begin()
	defer w.end()
	for i := range list {
		run := &list[i]
		for _, k := range run.chunks {
			at, stored := &wants[k].stored.at, run.bytes
			if at.Absent = run.absent; !at.Object {
				stored = run.bytes[at.At.Off-run.at.At.Off:][:at.At.Len]
			}
			if err := w.storedChunk(ctx, stored, wants[k:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// storedChunk decodes the stored chunk of the first of list, and puts all that lie in it into the sink. Without bytes
// it was not written.
func (w *walk) storedChunk(ctx context.Context, stored []byte, list []neededChunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	first, array := &list[0], w.x.Grid.Array
	if at := &first.stored.at; w.Strict && at.Absent && at.Object {
		return fault.WithFile(fault.New(fault.NotFound, "chunk", "its file does not exist, and strict takes no fill "+
			"value for it"), at.URI)
	}
	if last := &w.last; last.array != array {
		last.array, last.decoder = array, array.Decoder(last.decoder)
	}
	samples := w.storedMemory(first)
	decoded, err := w.last.decoder.Decode(samples, stored, &first.stored.at, first.stored.of)
	w.Clock.Lap(resources.StageDecode)
	if err != nil {
		return array.Fault(err, first.stored.of, &first.stored.at)
	}
	if first.t != nil && &decoded[0] != &samples[0] {
		copy(samples, decoded)
		decoded = samples
	}
	w.finish(first, decoded)
	w.putFollowing(decoded, list)
	w.rememberStored(stored, first, decoded)
	return nil
}

// putFollowing puts the chunks behind the first of list into the sink that lie in its stored chunk.
func (w *walk) putFollowing(samples []byte, list []neededChunk) {
	for k := 1; k < groupEnd(list); k++ {
		w.sink.Put(w.x, list[k].i, samples[list[k].stored.begin:])
	}
	w.Clock.Lap(resources.StageScatter)
}

// storedMemory returns where the samples of a stored chunk go.
func (w *walk) storedMemory(c *neededChunk) []byte {
	if c.t != nil {
		return c.t.Samples
	}
	return w.Samples[:w.x.Grid.Array.Size(c.stored.of)]
}
