package refcache

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/source"
)

// Version identifies a version of an object. Fields that the source does not provide are zero.
type Version struct {
	Size int64 // bytes
	Time time.Time
	ETag string
}

// VersionOf returns the version of the object that r reads.
func VersionOf(r source.Reader) Version {
	return Version{Size: r.Size(), ETag: source.ETag(r), Time: source.ModTime(r)}
}

// Same reports whether two versions are equal in all fields that both have.
func (v Version) Same(w Version) bool {
	if v.ETag != "" && w.ETag != "" && v.ETag != w.ETag {
		return false
	}
	return v.Size == w.Size && (v.Time.IsZero() || w.Time.IsZero() || v.Time.Equal(w.Time))
}

// CheckInterval is the time between two checks of remote objects if there are fewer than 16.
//
// A check costs one request per object. At 2 s a cached container is at most 2 s out of date, and a user who asks many
// questions in a row pays for one check in 2 s, not for one per question.
const CheckInterval = 2 * time.Second

const (
	// maxWatched limits the objects whose versions are stored, because a container may link to millions of files.
	// Beyond it Changed always reports true.
	maxWatched = 1 << 14
	// concurrentChecks limits the open requests of one check.
	concurrentChecks = 8
	// objectsPerInterval makes the interval grow with the objects, so a cache sends at most 16 requests in 2 s on
	// average, however many objects it watches.
	objectsPerInterval = 16
)

// Watch stores the versions of objects when they were opened, and detects whether any of them changed. It is safe for
// concurrent use.
type Watch struct {
	opener source.Opener
	now    func() time.Time
	// checking holds a token while one caller checks remote objects. The others wait for it and use its result, because
	// each of them would otherwise send the same requests.
	checking chan struct{}

	mu            sync.Mutex // guards the fields below
	recorded      map[string]recorded
	overflow      bool // an object was not recorded, because there were maxWatched
	remoteChanged bool // sticky: a changed object does not become the old one again
	remote        int  // remote objects in recorded
	checked       time.Time
}

// recorded is the state of an object when it was first opened.
type recorded struct {
	Version
	absent bool
}

// NewWatch returns a watch that opens objects through o.
func NewWatch(o source.Opener) *Watch {
	return &Watch{opener: o, now: time.Now, checking: make(chan struct{}, 1), recorded: map[string]recorded{}}
}

// Record stores the version of the object that r reads, unless one is stored already. It reports whether r has the
// stored version.
func (w *Watch) Record(uri string, r source.Reader) bool {
	v := VersionOf(r)
	before, ok := w.record(uri, recorded{Version: v})
	return !ok || before.absent || before.Same(v)
}

// RecordAbsent stores that a local file did not exist, so Changed notices when it appears. Remote objects are
// ignored, because looking for them again would cost a request each time.
func (w *Watch) RecordAbsent(uri string) {
	if !source.IsRemote(uri) {
		w.record(uri, recorded{absent: true})
	}
}

// record stores a state unless there is one; ok is true if there is, and before is that one.
func (w *Watch) record(uri string, state recorded) (before recorded, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok = w.recorded[uri]; ok {
		return before, true
	}
	if len(w.recorded) == maxWatched {
		w.overflow = true
		return before, false
	}
	w.recorded[uri] = state
	if source.IsRemote(uri) {
		if w.remote++; w.remote == 1 {
			// Opening it was a check, so the next one is not due at once.
			w.checked = w.now()
		}
	}
	return before, false
}

// Changed reports whether any recorded object changed. It also reports true if an object cannot be reached, or if there
// are more objects than a watch can record.
//
// Local files are checked each time. Remote objects are checked if the last check is older than CheckInterval: one byte
// of each is requested, on the condition that its entity tag still matches. Without an entity tag the size is compared.
func (w *Watch) Changed(ctx context.Context) bool {
	checkRemote := w.due()
	if checkRemote {
		select {
		case w.checking <- struct{}{}:
			defer func() { <-w.checking }()
		case <-ctx.Done():
			return true
		}
		checkRemote = w.due() // another caller may have checked while this one waited
	}
	w.mu.Lock()
	changed := w.overflow || w.remoteChanged
	toCheck := make(map[string]recorded, len(w.recorded))
	for uri, state := range w.recorded {
		if checkRemote || !source.IsRemote(uri) {
			toCheck[uri] = state
		}
	}
	w.mu.Unlock()
	if changed {
		return true
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentChecks)
	for uri, state := range toCheck {
		if source.IsRemote(uri) {
			group.Go(crash.Guard(func() error { return w.checkRemote(gctx, uri, state) }))
		} else if !w.localUnchanged(ctx, uri, state) {
			_ = group.Wait()
			return true
		}
	}
	err := group.Wait()
	if checkRemote {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.checked = w.now()
		} else if ctx.Err() == nil {
			// A check that its caller canceled must not mark the objects as changed for everybody else.
			w.remoteChanged = true
		}
	}
	return err != nil
}

// due reports whether the last check of remote objects is too old.
func (w *Watch) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	interval := CheckInterval * time.Duration(1+w.remote/objectsPerInterval)
	return w.remote > 0 && w.now().Sub(w.checked) >= interval
}

// localUnchanged reports whether a local file is in its recorded state.
func (w *Watch) localUnchanged(ctx context.Context, uri string, before recorded) bool {
	file, err := w.opener.Open(ctx, uri)
	if err != nil {
		return before.absent
	}
	now := VersionOf(file)
	return file.Close() == nil && !before.absent && before.Same(now)
}

// checkRemote reads one byte of a remote object, which fails if the object has another entity tag or size.
func (w *Watch) checkRemote(ctx context.Context, uri string, before recorded) error {
	file, err := source.OpenKnown(ctx, w.opener, uri, source.Known{Size: before.Size, ETag: before.ETag})
	if err != nil {
		return err
	}
	var b [1]byte
	err = file.ReadAt(ctx, b[:min(before.Size, 1)], 0)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}
