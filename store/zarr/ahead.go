package zarr

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/source"
)

// Limits of reading ahead in shards. Arrays of TileDB have the same.
const (
	maxRun       = 4 << 20   // bytes that one read of a remote object fetches
	maxLocalRun  = 256 << 10 // the same of a local file, where another read costs less than the processor's cache
	maxHeldRuns  = 8 << 20   // bytes of runs that a reader holds
	maxAheadTile = 1 << 16   // chunks of one window that are looked up ahead
	maxAheadRank = 8         // dimensions of an array that is read ahead in
)

// ahead knows which ranges of shards hold the chunks that are read next. Neighbours share a read.
type ahead struct {
	runs  []run
	at    map[cellKey]inRun
	held  int64
	order []int // the runs that hold bytes, the oldest first
}

// cellKey is the coordinates of a chunk, of a fixed size to be a key.
type cellKey [maxAheadRank]int64

// inRun is the place of a chunk: a run, and a range of its object. A run of -1 says that it was not written.
type inRun struct {
	run int
	at  chunk.Range
}

// run is a range of an object that is read at once.
type run struct {
	uri   string
	known source.Known
	at    chunk.Range
	buf   []byte
	there bool
}

// wanted is a chunk that is read next.
type wanted struct {
	key cellKey
	p   place
}

func keyOf(at []int64) (k cellKey) {
	copy(k[:], at)
	return k
}

// Ahead announces the boxes that are read next. It reads the indexes of shards that are not in memory, and joins the
// ranges of neighbours. Without shards it does nothing.
func (r *Reader) Ahead(ctx context.Context, boxes []Box) error {
	r.forget()
	if len(r.a.shards) == 0 || len(r.a.Shape) > maxAheadRank || r.a.ready() != nil {
		return nil
	}
	if r.ahead.at == nil {
		r.ahead.at = map[cellKey]inRun{}
	}
	var list []wanted
	for _, b := range boxes {
		next, err := r.want(ctx, list, b)
		if err != nil {
			return err
		}
		if list = next; len(r.ahead.at) > maxAheadTile {
			r.forget()
			return nil
		}
	}
	return r.join(ctx, list)
}

// forget forgets the boxes, but keeps the memory of runs.
func (r *Reader) forget() {
	clear(r.ahead.at)
	r.ahead.runs, r.ahead.order, r.ahead.held = r.ahead.runs[:0], r.ahead.order[:0], 0
}

// want appends the chunks of a box, until they are too many.
func (r *Reader) want(ctx context.Context, list []wanted, b Box) ([]wanted, error) {
	err := eachIn(r.a.chunksOf(b.Lo, b.Hi), func(at []int64) error {
		key := keyOf(at)
		if _, ok := r.ahead.at[key]; ok || len(r.ahead.at) > maxAheadTile { // chunks that were not written count too
			return ctx.Err()
		}
		place, err := r.a.find(ctx, at)
		if err != nil {
			return err
		}
		r.ahead.at[key] = inRun{run: -1}
		if !place.gone {
			list = append(list, wanted{key, place})
		}
		return nil
	})
	return list, err
}

// join makes the runs.
func (r *Reader) join(ctx context.Context, list []wanted) error {
	slices.SortFunc(list, func(a, b wanted) int {
		return cmp.Or(cmp.Compare(a.p.uri, b.p.uri), cmp.Compare(a.p.at.Off, b.p.at.Off))
	})
	ahead := &r.ahead
	gap, limit := int64(0), int64(maxLocalRun)
	for i := range list {
		wanted := &list[i]
		if i == 0 || list[i-1].p.uri != wanted.p.uri {
			file, err := source.OpenKnown(ctx, r.a.open, wanted.p.uri, wanted.p.known)
			if err != nil {
				return err
			}
			gap = source.Gap(file)
			if err := file.Close(); err != nil {
				return err
			}
			if source.IsRemote(wanted.p.uri) {
				limit = maxRun
			}
		}
		if k := len(ahead.runs) - 1; k >= 0 && ahead.runs[k].uri == wanted.p.uri {
			join := chunk.Join{Span: ahead.runs[k].at, MaxGap: gap, MaxLen: limit}
			if join.Take(wanted.p.at) {
				ahead.runs[k].at = join.Span
				ahead.at[wanted.key] = inRun{k, wanted.p.at}
				continue
			}
		}
		ahead.add(run{uri: wanted.p.uri, known: wanted.p.known, at: wanted.p.at})
		ahead.at[wanted.key] = inRun{len(ahead.runs) - 1, wanted.p.at}
	}
	return nil
}

// add appends a run, with the memory that an earlier one left.
func (h *ahead) add(n run) {
	if k := len(h.runs); k < cap(h.runs) {
		n.buf = h.runs[:k+1][k].buf
		if cap(n.buf) > maxRun {
			n.buf = nil
		}
	}
	h.runs = append(h.runs, n)
}

// aheadBytes returns the bytes of a chunk that was announced. It reports false if it was not announced, or if its run
// has no bytes: then the chunk was not written, and gone is the answer of find, which costs no request.
func (r *Reader) aheadBytes(ctx context.Context, at []int64) ([]byte, bool, error) {
	if len(r.ahead.at) == 0 {
		return nil, false, nil
	}
	inRun, ok := r.ahead.at[keyOf(at)]
	if !ok || inRun.run < 0 {
		return nil, false, nil
	}
	ahead := &r.ahead
	run := &ahead.runs[inRun.run]
	if !run.there {
		for len(ahead.order) > 0 && ahead.held+run.at.Len > maxHeldRuns {
			old := &ahead.runs[ahead.order[0]]
			ahead.held -= old.at.Len
			old.there, ahead.order = false, ahead.order[1:]
			if run.buf == nil {
				run.buf, old.buf = old.buf, nil
			}
		}
		var err error
		if run.buf, err = readRange(ctx, r.a.open, run.buf, run.uri, run.known, run.at); err != nil {
			return nil, false, err
		}
		run.there, ahead.held, ahead.order = true, ahead.held+run.at.Len, append(ahead.order, inRun.run)
	}
	off := inRun.at.Off - run.at.Off
	return run.buf[off : off+inRun.at.Len], true, nil
}
