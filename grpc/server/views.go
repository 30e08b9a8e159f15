package server

import (
	"container/list"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// view is the part of the files that a client may read, with the files and datasets that are open in it. Clients with
// equal roots share a view.
type view struct {
	key        string         // names the roots; "" of the server's own
	loader     loader.Options // of engines
	asked      loader.Options // of questions
	containers *containers.Cache

	of    *views        // nil of the server's own, which stays until the server ends
	users int           // calls, openings and datasets; guarded by views.mu
	idle  *list.Element // in views.idle, or nil; guarded by views.mu
}

// membersShare is the part of the memory budget that the containers of Reads keep at most: a sixteenth, as much
// as containers.Cache has for the containers of questions.
const membersShare = 16

// newView makes a view, one of several, of the files below o.Roots. o.Opener must be source.Below these.
func newView(key string, o loader.Options, several int64) *view {
	bound := int64(resources.DefaultMembersBytes)
	if limit := o.Budget.Limit(); limit > 0 {
		bound = min(bound, limit/membersShare)
	}
	// For all datasets, since several may use the same container.
	o.Members = &resources.Members{MaxBytes: max(1, bound/several)}
	options := o.WithDefaults()
	return &view{key: key, loader: o, asked: options, containers: containers.NewCache(options, several)}
}

// hold adds a user, who must leave. The caller is one already. v may be nil.
func (v *view) hold() {
	if v == nil || v.of == nil {
		return
	}
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.users++
}

// leave ends one use. v may be nil.
func (v *view) leave() {
	if v == nil || v.of == nil {
		return
	}
	if old := v.of.unused(v); old != nil {
		old.close()
	}
}

func (v *view) close() {
	v.containers.Close()
	if files, ok := v.loader.Opener.(io.Closer); ok {
		_ = files.Close() // the files were only read
	}
	v.loader.Members.Close()
}

const (
	// maxViews bounds the views that are in use at a time. Each keeps containers and files open. Lists of tokens have
	// fewer roots; the bound is for issuers of JSON Web Tokens that give every user a root.
	maxViews = 1024
	// keptViews is how many views without a user are kept, for the next call of their client. Each of them keeps as
	// many times fewer bytes than the view of the server's own.
	keptViews = 8
)

// views has the views of a server.
type views struct {
	whole *view
	base  source.Opener // of all

	mu     sync.Mutex
	byKey  map[string]*view
	idle   list.List // of *view: those without a user, the longest unused first
	closed bool
}

func newViews(o loader.Options) *views {
	base := o.Opener
	// One for all requests, which keeps files open between them.
	o.Opener = source.Below(base, o.Roots)
	return &views{whole: newView("", o, 1), base: base, byKey: map[string]*view{}}
}

// unused ends one use of v, and returns the view that is to be closed for it, or nil.
func (v *views) unused(one *view) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	one.users--
	if one.users > 0 || v.closed {
		return nil
	}
	one.idle = v.idle.PushBack(one)
	if v.idle.Len() <= keptViews {
		return nil
	}
	old := v.idle.Remove(v.idle.Front()).(*view)
	delete(v.byKey, old.key)
	return old
}

// viewKey names roots.
func viewKey(roots ...string) string {
	var key strings.Builder
	key.WriteByte(0) // keys come behind paths, which have no such byte
	for _, r := range roots {
		key.WriteString(strconv.Quote(r))
	}
	return key.String()
}

// of returns the view of a client with these roots, which must leave it. Roots that do not lie below the server's allow
// nothing.
func (v *views) of(log *slog.Logger, roots []string) (*view, error) {
	if roots == nil {
		return v.whole, nil
	}
	key := viewKey(roots...)
	v.mu.Lock()
	defer v.mu.Unlock()
	if found := v.byKey[key]; found != nil {
		if found.users++; found.idle != nil {
			v.idle.Remove(found.idle)
			found.idle = nil
		}
		return found, nil
	}
	if len(v.byKey)-v.idle.Len() >= maxViews {
		return nil, fault.New(fault.Limit, "server", fault.NoOffset, "clients use more than %d sets of roots",
			maxViews)
	}
	options := v.whole.loader
	options.Roots = []string{} // nil would allow everything
	for _, r := range roots {
		root, err := source.RootsOf(v.whole.loader.Opener).Allow(r)
		if err != nil {
			log.Warn("the root of a client is not below a root of this server", "root", r)
			continue
		}
		options.Roots = append(options.Roots, root)
	}
	options.Opener = source.Below(v.base, options.Roots)
	made := newView(key, options, keptViews)
	made.of, made.users = v, 1
	v.byKey[key] = made
	return made, nil
}

func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, view := range v.byKey {
		view.close()
	}
	v.whole.close()
}
