package containers

import (
	"context"
	"io"
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
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
		container.set, err = Open(ctx, container.opener, uri, "")
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
	return &Container{src: &spec.Source{}, options: o, opener: o.Opener}
}

// Subfile parses the name that store.Entry.VSI gives a byte range of a file,
// "/vsisubfile/OFFSET_SIZE,FILE". Offset and size are in bytes. ok is false for any other name.
func Subfile(name string) (e store.Entry, ok bool) {
	e.URI, e.Offset, e.Size, ok = source.Subfile(name)
	e.Path = "at " + strconv.FormatInt(e.Offset, 10)
	return e, ok
}

// Member implements rows.Members: a raster in a container or a byte range. A path that the container does not have is
// fault.NotFound.
func (kind) Member(ctx context.Context, o resources.Options, name string) (a catalog.Asset, err error) {
	if e, ok := Subfile(name); ok {
		return NewMemberContainer(o).place(ctx, e, nil, chunk.Axes{})
	}
	uri, path, _ := source.Split(name)
	err = inContainerOf(ctx, &o, uri, func(c *Container) error {
		entry, err := c.set.Resolve(ctx, path)
		if err != nil {
			return err
		}
		if entry.Of != nil {
			a, err = c.chunk(ctx, entry)
			return err
		}
		a, err = c.place(ctx, entry, nil, chunk.Axes{})
		return err
	})
	return a, err
}
