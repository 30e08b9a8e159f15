package loader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/taco"
)

// Members keeps containers open that names of Read lead into ("data.taco::roi_1/lrf::2"), with the tables and headers
// that were read of them: the next name costs what it names. Its zero value is ready, and it is safe for concurrent
// use. Close it.
type Members struct {
	mu     sync.Mutex
	open   []*heldContainer // used last at the end; none is in use
	closed bool
}

// heldContainer is a container in the state of its file.
type heldContainer struct {
	*container
	uri, state string
}

// maxMembers bounds the containers that are kept open.
const maxMembers = 4

// Close closes what is kept open.
func (m *Members) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, c := range m.open {
		_ = c.Close() // it was only read
	}
	m.open = nil
}

// take takes a container out of those that are kept, if its file is as it was.
func (m *Members) take(uri, state string) *heldContainer {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.open {
		if c.uri != uri {
			continue
		}
		m.open = append(m.open[:i], m.open[i+1:]...)
		if c.state == state {
			return c
		}
		_ = c.Close()
		return nil
	}
	return nil
}

// give gives a container back. One that failed is closed, as its file may be another one.
func (m *Members) give(c *heldContainer, err error) {
	k := fault.KindOf(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || err != nil && k != fault.NotFound && k != fault.Unsupported {
		_ = c.Close()
		return
	}
	if m.open = append(m.open, c); len(m.open) > maxMembers {
		_ = m.open[0].Close()
		m.open = m.open[1:]
	}
}

// inContainerOf calls use with the container of a URI, opened for it or kept open.
func (o *Options) inContainerOf(ctx context.Context, uri string, use func(c *container) error) (err error) {
	c := newMemberContainer(*o)
	state := ""
	if o.Members != nil && o.files == nil { // else the opener is closed soon
		state = stateOf(ctx, c.opener, uri)
	}
	if state != "" {
		held := o.Members.take(uri, state)
		switch {
		case held == nil:
		case held.set.Changed(ctx): // such as a file that a catalog leads to
			_ = held.Close()
		default:
			c = held.container
		}
	}
	if c.set == nil {
		if c.set, err = taco.Open(ctx, c.opener, []string{uri}, taco.Options{}); err != nil {
			return err
		}
	}
	defer func() {
		if state == "" {
			_ = c.Close() // it was only read
			return
		}
		o.Members.give(&heldContainer{c, uri, state}, err)
	}()
	return use(c)
}

// newMemberContainer returns a container of which single samples are looked for.
func newMemberContainer(o Options) *container {
	return &container{src: &Source{}, options: o, opener: rooted(o), files: map[string]*containerFile{}}
}

// stateOf returns what tells one version of a file from another; "" for what is no file, which is not kept.
func stateOf(ctx context.Context, o source.Opener, uri string) string {
	r, err := o.Open(ctx, uri)
	if err != nil {
		return ""
	}
	defer func() { _ = r.Close() }()
	at := ""
	if t, ok := r.(source.Timed); ok {
		at = t.ModTime().UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(r.Size(), at, source.ETag(r))
}
