package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/zarr"
)

// zarr decodes every chunk of every array of a Zarr store. It counts each array as a file. Arrays of types that are
// not read are in the notes.
func (w *worker) zarr(ctx context.Context, file int, path string) error {
	w.v.zarr.Lock()
	defer w.v.zarr.Unlock()
	node, err := zarr.Open(ctx, w.v.files, path, zarr.Options{MaxChunk: int64(w.v.o.MaxChunk)})
	if err != nil {
		return err
	}
	list, err := node.Members(ctx)
	if err != nil {
		return err
	}
	var unread error
	read := 0
	for k, member := range list {
		err := member.Err
		if fault.KindOf(err) == fault.Unsupported {
			unread = cmp.Or(unread, err)
			w.note("not read: %s", fault.Line(err))
			continue
		}
		if read++; read > 1 {
			w.sum.Files++ // the first one is counted already
		}
		w.sum.Arrays++
		if err == nil {
			err = w.guarded(member.Array.URI, func() error { return w.zarrArray(ctx, member.Array) })
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.v.fault(file, int64(k), fault.WithFile(err, path))
		}
	}
	switch {
	case read == 0 && unread != nil:
		return unread
	case read == 0:
		return fault.New(fault.NotFound, "group", fault.NoOffset, "it has no arrays")
	}
	return nil
}

// zarrArray decodes every chunk of an array.
func (w *worker) zarrArray(ctx context.Context, a *zarr.Array) error {
	checked, err := a.Verify(ctx, w.v.o.Workers)
	w.sum.Chunks += checked.Chunks
	w.sum.Bytes += checked.Bytes
	w.sum.AbsentChunks += checked.Absent
	if checked.Bad > 1 {
		w.note("%s: %d chunks or shards cannot be read", a.URI, checked.Bad)
	}
	return err
}

func (w *worker) note(format string, args ...any) {
	w.sum.Notes = append(w.sum.Notes, fmt.Sprintf(format, args...))
}
