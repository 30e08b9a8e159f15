package refcache

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/source"
)

// Version tells one version of an object from another. What a reader does not know of it is zero.
type Version struct {
	Size int64 // bytes
	Time time.Time
	ETag string
}

// VersionOf returns the version that a reader is of.
func VersionOf(r source.Reader) Version {
	v := Version{Size: r.Size(), ETag: source.ETag(r)}
	if t, ok := r.(source.Timed); ok {
		v.Time = t.ModTime()
	}
	return v
}

// Same reports whether two versions are one, as far as both are known.
func (v Version) Same(w Version) bool {
	return v.Size == w.Size && (v.ETag == "" || w.ETag == "" || v.ETag == w.ETag) &&
		(v.Time.IsZero() || w.Time.IsZero() || v.Time.Equal(w.Time))
}

// LookEvery is how long a look at remote objects stands for the next ones, where there are few of them.
const LookEvery = 2 * time.Second

// maxWatched bounds the objects whose versions are remembered, atOnce those looked at a time; and fewRemote is how many
// remote ones make the time between two looks longer by LookEvery.
const (
	maxWatched = 1 << 14
	atOnce     = 8
	fewRemote  = 16
)

// Watch remembers the versions in which objects were opened, and finds out whether they are there as they were. It is
// safe for concurrent use.
type Watch struct {
	opener source.Opener
	now    func() time.Time
	turn   chan struct{} // holds a token while one looks at remote ones: the others take what it finds

	mu     sync.Mutex
	seen   map[string]seen
	many   bool // more than are remembered
	gone   bool // a remote one was found to be another
	remote int
	looked time.Time // at remote ones
}

// seen is what was found at a URI when it was first opened.
type seen struct {
	Version
	absent bool
}

// NewWatch returns a watch that looks at objects through an opener.
func NewWatch(o source.Opener) *Watch {
	return &Watch{opener: o, now: time.Now, turn: make(chan struct{}, 1), seen: map[string]seen{}}
}

// Note remembers the version that a reader is of, unless another one was noted, and reports whether it is that one.
func (w *Watch) Note(uri string, r source.Reader) bool {
	v := VersionOf(r)
	was, ok := w.note(uri, seen{Version: v})
	return !ok || was.absent || was.Same(v)
}

// NoteAbsent remembers that a local URI could not be opened; of a remote one nothing, as looking costs a request.
func (w *Watch) NoteAbsent(uri string) {
	if !source.IsRemote(uri) {
		w.note(uri, seen{absent: true})
	}
}

func (w *Watch) note(uri string, now seen) (was seen, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok = w.seen[uri]; ok {
		return was, true
	}
	if len(w.seen) == maxWatched {
		w.many = true
		return was, false
	}
	w.seen[uri] = now
	if source.IsRemote(uri) {
		if w.remote++; w.remote == 1 {
			w.looked = w.now() // it was just opened
		}
	}
	return was, false
}

// Changed reports whether one of the objects is another one now, or may be one: since it cannot be reached, or since
// there are more than are remembered. Remote ones are asked, of one byte and on condition that they have their tag, if
// LookEvery has passed since; of those without entity tag the size is compared.
func (w *Watch) Changed(ctx context.Context) bool {
	remote := w.due()
	if remote {
		select {
		case w.turn <- struct{}{}:
			defer func() { <-w.turn }()
		case <-ctx.Done():
			return true
		}
		remote = w.due() // another one has looked meanwhile
	}
	w.mu.Lock()
	changed := w.many || w.gone
	all := make(map[string]seen, len(w.seen))
	for uri, s := range w.seen {
		if remote || !source.IsRemote(uri) {
			all[uri] = s
		}
	}
	w.mu.Unlock()
	if changed {
		return true
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for uri, s := range all {
		if source.IsRemote(uri) {
			g.Go(func() error { return w.ask(gctx, uri, s) })
		} else if !w.unchanged(ctx, uri, s) {
			_ = g.Wait()
			return true
		}
	}
	err := g.Wait()
	if remote {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.looked = w.now()
		} else if ctx.Err() == nil { // who gave up has found nothing
			w.gone = true
		}
	}
	return err != nil
}

// due reports whether remote objects are to be looked at again.
func (w *Watch) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remote > 0 && w.now().Sub(w.looked) >= LookEvery*time.Duration(1+w.remote/fewRemote)
}

// unchanged looks at a local object.
func (w *Watch) unchanged(ctx context.Context, uri string, s seen) bool {
	r, err := w.opener.Open(ctx, uri)
	if err != nil {
		return s.absent
	}
	now := VersionOf(r)
	return r.Close() == nil && !s.absent && s.Same(now)
}

// ask asks for a byte of a remote object as it was.
func (w *Watch) ask(ctx context.Context, uri string, s seen) error {
	r, err := source.OpenKnown(ctx, w.opener, uri, source.Known{Size: s.Size, ETag: s.ETag})
	if err != nil {
		return err
	}
	var b [1]byte
	err = r.ReadAt(ctx, b[:min(s.Size, 1)], 0)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}
