package rows

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

// maxMembers bounds how many containers stay open. Their memory is bounded by Members.MaxBytes.
const maxMembers = 4

// membersCache returns the cache of the containers that m keeps open. A container whose files have
// changed is stale and is opened again.
func membersCache(m *resources.Members) *refcache.Cache[string, *Container] {
	return m.Cache(func(bytes int64) io.Closer {
		return refcache.New[string](refcache.Options[*Container]{
			MaxEntries: maxMembers, MaxBytes: bytes, Close: (*Container).Close,
			SizeOf: func(c *Container) int64 { return c.set.Bytes() },
			Stale:  func(ctx context.Context, c *Container) bool { return c.set.Changed(ctx) },
		})
	}).(*refcache.Cache[string, *Container])
}

// inContainerOf calls use with the container at uri, which it opens or takes from o.Members.
func inContainerOf(ctx context.Context, o *resources.Options, uri string, use func(c *Container) error) (err error) {
	open := func(ctx context.Context) (*Container, error) {
		container := NewMemberContainer(*o)
		var err error
		container.set, err = taco.Open(ctx, container.opener, []string{uri}, taco.Options{})
		return container, err
	}
	// A container must not outlive its opener: the default one is closed soon after this
	// call.
	if o.Members == nil || o.OwnOpener() {
		container, err := open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = container.Close() }() // it was only read, so an error loses nothing
		return use(container)
	}
	lease, err := membersCache(o.Members).Acquire(ctx, uri, open)
	if err != nil {
		return err
	}
	// After an error that may come from a closed or changed file, the container is opened again.
	defer func() { _ = lease.Release(refcache.Reusable(err)) }()
	return use(lease.Value)
}

// NewMemberContainer returns a container without samples or fields, for looking up single assets.
func NewMemberContainer(o resources.Options) *Container {
	return &Container{src: &spec.Source{}, options: o, opener: o.Opener, Files: newContainerFiles()}
}
