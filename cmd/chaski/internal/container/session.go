package container

import (
	"context"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

type sessionKey struct{}

// session holds containers open between questions.
type session struct {
	files *source.Mux
	sets  *refcache.Cache[string, *heldSet]
}

// heldSet is a dataset, and the flags that it was opened by, which have what it warned of.
type heldSet struct {
	*taco.Dataset
	by containerFlags
}

// maxSets and maxSetBytes bound the datasets that a session holds open, and the memory of their tables: the columns of
// some millions of rows.
const (
	maxSets     = 8
	maxSetBytes = 2 << 30
)

func newSession() *session {
	return &session{files: open.NewOpener(true), sets: refcache.New[string](refcache.Options[*heldSet]{
		MaxEntries: maxSets, MaxBytes: maxSetBytes, Close: (*heldSet).Close, SizeOf: (*heldSet).Bytes,
		Stale: func(ctx context.Context, s *heldSet) bool { return s.Changed(ctx) },
	})}
}

func (h *session) close() {
	_ = h.sets.Close() // they were only read
	h.files.Close()
}

// dataset opens containers, or takes them from the session of a command that answers questions. done gives them back;
// it is called with the command's error.
func (f *containerFlags) dataset(ctx context.Context, paths []string) (d *taco.Dataset, done func(error), err error) {
	h, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		files := open.NewOpener(true)
		if d, err = f.open(ctx, files, paths); err != nil {
			files.Close()
			return nil, nil, err
		}
		return d, func(error) {
			_ = d.Close() // it was only read
			files.Close()
		}, nil
	}
	key := fmt.Sprintf("%q", append([]string{f.base, f.mode, fmt.Sprint(f.chosen)}, paths...))
	l, err := h.sets.Acquire(ctx, key, func(ctx context.Context) (*heldSet, error) {
		s := &heldSet{by: containerFlags{base: f.base, mode: f.mode, chosen: f.chosen}}
		var err error
		s.Dataset, err = s.by.open(ctx, h.files, paths)
		return s, err
	})
	if err != nil {
		return nil, nil, err
	}
	return l.Value.Dataset, func(err error) {
		f.warnings = slices.Clone(l.Value.by.warnings) // also those of earlier questions: columns are joined once
		_ = l.Release(refcache.Reusable(err))          // it was only read
	}, nil
}
