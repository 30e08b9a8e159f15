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

// sessionKey is the key of the session in the context of a command that 'chaski ask' runs.
type sessionKey struct{}

// session keeps containers open between questions.
type session struct {
	files *source.Mux
	sets  *refcache.Cache[string, *openSet]
}

// openSet is a dataset and the flags that opened it, which hold its warnings.
type openSet struct {
	*taco.Dataset
	flags containerFlags
}

// Limits of what a session keeps open.
const (
	// A program asks about a few datasets in turn. Without this limit, one that goes through a directory of
	// containers would keep all of their files open.
	maxSets = 8
	// The columns of some millions of rows need to fit, otherwise each question would read them again.
	maxSetBytes = 2 << 30
)

func newSession() *session {
	return &session{files: open.NewOpener(true), sets: refcache.New[string](refcache.Options[*openSet]{
		MaxEntries: maxSets, MaxBytes: maxSetBytes, Close: (*openSet).Close, SizeOf: (*openSet).Bytes,
		Stale: func(ctx context.Context, s *openSet) bool { return s.Changed(ctx) },
	})}
}

func (h *session) close() {
	_ = h.sets.Close() // the files were only read, so that closing loses nothing
	h.files.Close()
}

// dataset opens containers, or borrows them from the session if 'chaski ask' runs the command. Its
// caller calls done with the error of the command: a dataset that failed is not reused.
func (f *containerFlags) dataset(ctx context.Context, paths []string) (d *taco.Dataset, done func(error), err error) {
	h, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		files := open.NewOpener(true)
		if d, err = f.open(ctx, files, paths); err != nil {
			files.Close()
			return nil, nil, err
		}
		return d, func(error) {
			_ = d.Close() // the files were only read
			files.Close()
		}, nil
	}
	key := fmt.Sprintf("%q", append([]string{f.base, f.mode, fmt.Sprint(f.chosen)}, paths...))
	l, err := h.sets.Acquire(ctx, key, func(ctx context.Context) (*openSet, error) {
		s := &openSet{flags: containerFlags{base: f.base, mode: f.mode, chosen: f.chosen}}
		var err error
		s.Dataset, err = s.flags.open(ctx, h.files, paths)
		return s, err
	})
	if err != nil {
		return nil, nil, err
	}
	return l.Value.Dataset, func(err error) {
		// Warnings of earlier questions too, because columns are joined when the dataset is opened.
		f.warnings = slices.Clone(l.Value.flags.warnings)
		_ = l.Release(refcache.Reusable(err)) // the files were only read
	}, nil
}
