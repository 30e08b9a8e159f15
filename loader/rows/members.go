package rows

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

// maxMembers bounds the containers that are kept open.
const maxMembers = 4

// membersCache returns the containers that m keeps open.
func membersCache(m *resources.Members) *refcache.Cache[string, *Container] {
	return m.Cache(func(bytes int64) io.Closer {
		return refcache.New[string](refcache.Options[*Container]{
			MaxEntries: maxMembers, MaxBytes: bytes, Close: (*Container).Close,
			SizeOf: func(c *Container) int64 { return c.set.Bytes() },
			Stale:  func(ctx context.Context, c *Container) bool { return c.set.Changed(ctx) },
		})
	}).(*refcache.Cache[string, *Container])
}

// inContainerOf calls use with the container of a URI, opened for it or kept open.
func inContainerOf(ctx context.Context, o *resources.Options, uri string, use func(c *Container) error) (err error) {
	open := func(ctx context.Context) (*Container, error) {
		c := NewMemberContainer(*o)
		var err error
		c.set, err = taco.Open(ctx, c.opener, []string{uri}, taco.Options{})
		return c, err
	}
	if o.Members == nil || o.OwnFiles != nil { // the opener is closed soon
		c, err := open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // it was only read
		return use(c)
	}
	l, err := membersCache(o.Members).Acquire(ctx, uri, open)
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(refcache.Reusable(err)) }() // it was only read
	return use(l.Value)
}

// NewMemberContainer returns a container of which single samples are looked for.
func NewMemberContainer(o resources.Options) *Container {
	return &Container{src: &spec.Source{}, options: o, opener: Rooted(o), Files: newContainerFiles()}
}
