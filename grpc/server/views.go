package server

import (
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

// view is the part of the files that a client may read, and what is kept open of it. Clients with equal roots share
// one.
type view struct {
	key        string         // names the roots; "" of the server's own
	loader     loader.Options // of engines
	asked      loader.Options // of questions
	containers *containers.Cache
}

// newView makes a view of what lies below o.Roots. o.Opener must be source.Below these.
func newView(key string, o loader.Options) *view {
	o.Members = &resources.Members{} // for all datasets, since several may use the same container
	asked := o.WithDefaults()
	return &view{key: key, loader: o, asked: asked, containers: containers.NewCache(asked)}
}

func (v *view) close() {
	v.containers.Close()
	if files, ok := v.loader.Opener.(io.Closer); ok {
		_ = files.Close() // the files were only read
	}
	v.loader.Members.Close()
}

// maxViews bounds the views of a server. Each keeps containers and files open, and stays until the server ends. Lists
// of tokens have fewer roots; the bound is for issuers of JSON Web Tokens that give every user a root.
const maxViews = 1024

// views are those of a server.
type views struct {
	whole *view
	base  source.Opener // of all

	mu    sync.Mutex
	byKey map[string]*view
}

func newViews(o loader.Options) *views {
	base := o.Opener
	// One for all requests, which keeps files open between them.
	o.Opener = source.Below(base, o.Roots)
	return &views{whole: newView("", o), base: base, byKey: map[string]*view{}}
}

// of returns the view of a client with these roots. Roots that do not lie below the server's allow nothing.
func (v *views) of(log *slog.Logger, roots []string) (*view, error) {
	if roots == nil {
		return v.whole, nil
	}
	var key strings.Builder
	for _, r := range roots {
		key.WriteString(strconv.Quote(r))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if one := v.byKey[key.String()]; one != nil {
		return one, nil
	}
	if len(v.byKey) >= maxViews {
		return nil, fault.New(fault.Limit, "server", fault.NoOffset, "clients have more than %d sets of roots",
			maxViews)
	}
	o := v.whole.loader
	o.Roots = []string{} // nil would allow everything
	for _, r := range roots {
		at, err := source.RootsOf(v.whole.loader.Opener).Allow(r)
		if err != nil {
			log.Warn("the root of a client is not below a root of this server", "root", r)
			continue
		}
		o.Roots = append(o.Roots, at)
	}
	o.Opener = source.Below(v.base, o.Roots)
	one := newView("\x00"+key.String(), o)
	v.byKey[key.String()] = one
	return one, nil
}

func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.byKey {
		one.close()
	}
	v.whole.close()
}
