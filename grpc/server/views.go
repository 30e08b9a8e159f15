package server

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/refcache"
)

// fileView is the part of the files that a client may read, with the files and datasets that are open in it. Clients
// with equal roots share a view.
type fileView struct {
	key    string // names the roots; "" of the server's own
	loader loader.Options

	// lease is one of this view, to share. The server's own has none, because it stays until the server ends.
	lease atomic.Pointer[refcache.Lease[string, *fileView]]
}

// membersShare is the part of the memory budget that the containers of Reads keep at most: a sixteenth.
const membersShare = 16

// newView makes a view, one of several, of the files below o.Roots. o.Opener must be openers.Below these.
func newView(key string, o loader.Options, several int64) *fileView {
	bound := int64(resources.DefaultMembersBytes)
	if limit := o.Budget.Limit(); limit > 0 {
		bound = min(bound, limit/membersShare)
	}
	// For all datasets, since several may use the same container.
	o.Members = &resources.Members{MaxBytes: max(1, bound/several)}
	return &fileView{key: key, loader: o}
}

// hold keeps a view that the caller has open until leave is called. v may be nil.
func (v *fileView) hold() (leave func()) {
	if v == nil || v.lease.Load() == nil {
		return func() {}
	}
	lease := v.lease.Load().Share()
	return func() { _ = lease.Release(true) } // its files were only read
}

func (v *fileView) close() {
	if files, ok := v.loader.Opener.(io.Closer); ok {
		_ = files.Close() // the files were only read
	}
	v.loader.Members.Close()
}

// keptViews is how many views are kept for the next call of their client. Each of them keeps as many times fewer bytes
// than the view of the server's own. Those in use count, and stay however many they are.
const keptViews = 8

// views has the views of a server.
type views struct {
	server *fileView     // for clients without roots of their own
	base   source.Opener // of all
	cache  *refcache.Cache[string, *fileView]
}

func newViews(o loader.Options) *views {
	base := o.Opener
	// One serves all requests, so files stay open between them.
	o.Opener = openers.Below(base, o.Roots)
	return &views{server: newView("", o, 1), base: base, cache: refcache.New[string](refcache.Options[*fileView]{
		MaxEntries: keptViews, Close: func(v *fileView) error { v.close(); return nil }})}
}

// viewKey names roots.
func viewKey(roots ...string) string {
	var key strings.Builder
	// Keys come behind paths, which have no such byte, so the two stay apart.
	key.WriteByte(0)
	for _, r := range roots {
		key.WriteString(strconv.Quote(r))
	}
	return key.String()
}

// of returns the view of a client with these roots, until leave is called. Only roots that lie below the server's
// allow files.
func (v *views) of(log *slog.Logger, roots []string) (one *fileView, leave func()) {
	if roots == nil {
		return v.server, func() {}
	}
	key := viewKey(roots...)
	// To make a view does not wait, nor fail.
	lease, _ := v.cache.Acquire(context.Background(), key, func(context.Context) (*fileView, error) {
		options := v.server.loader
		// The list is empty and not nil, since nil would allow everything.
		options.Roots = []string{}
		for _, given := range roots {
			root, err := openers.RootsOf(v.server.loader.Opener).Allow(given)
			if err != nil {
				log.Warn("the root of a client is not below a root of this server", "root", given)
				continue
			}
			options.Roots = append(options.Roots, root)
		}
		options.Opener = openers.Below(v.base, options.Roots)
		return newView(key, options, keptViews), nil
	})
	lease.Value.lease.CompareAndSwap(nil, lease)
	return lease.Value, func() { _ = lease.Release(true) } // its files were only read
}

func (v *views) close() {
	_ = v.cache.Close() // views have no errors
	v.server.close()
}
