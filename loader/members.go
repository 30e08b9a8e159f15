package loader

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

// Members keeps containers open that names of Read lead into ("data.taco::roi_1/lrf::2"), with the tables and headers
// that were read of them: the next name costs what it names. A container whose files are others by now is opened anew;
// remote ones are asked every few seconds. Its zero value is ready, and it is safe for concurrent use. Close it.
type Members struct {
	// MaxBytes bounds the memory of what is kept. Default DefaultMembersBytes.
	MaxBytes int64

	once sync.Once
	kept *refcache.Cache[string, *container]
}

// DefaultMembersBytes is the default of Members.MaxBytes.
const DefaultMembersBytes = 256 << 20

// maxMembers bounds the containers that are kept open.
const maxMembers = 4

func (m *Members) cache() *refcache.Cache[string, *container] {
	m.once.Do(func() {
		bytes := m.MaxBytes
		if bytes == 0 {
			bytes = DefaultMembersBytes
		}
		m.kept = refcache.New[string](refcache.Options[*container]{
			MaxEntries: maxMembers, MaxBytes: bytes, Close: (*container).Close,
			SizeOf: func(c *container) int64 { return c.set.Bytes() },
			Stale:  func(ctx context.Context, c *container) bool { return c.set.Changed(ctx) },
		})
	})
	return m.kept
}

// Close closes what is kept open.
func (m *Members) Close() { _ = m.cache().Close() } // it was only read

// inContainerOf calls use with the container of a URI, opened for it or kept open.
func (o *Options) inContainerOf(ctx context.Context, uri string, use func(c *container) error) (err error) {
	open := func(ctx context.Context) (*container, error) {
		c := newMemberContainer(*o)
		var err error
		c.set, err = taco.Open(ctx, c.opener, []string{uri}, taco.Options{})
		return c, err
	}
	if o.Members == nil || o.files != nil { // the opener is closed soon
		c, err := open(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // it was only read
		return use(c)
	}
	l, err := o.Members.cache().Acquire(ctx, uri, open)
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(refcache.Reusable(err)) }() // it was only read
	return use(l.Value)
}

// newMemberContainer returns a container of which single samples are looked for.
func newMemberContainer(o Options) *container {
	return &container{src: &Source{}, options: o, opener: rooted(o), files: newContainerFiles()}
}
