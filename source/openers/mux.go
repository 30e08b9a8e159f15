// Package openers opens files by name: local files, below roots if there are any (Files, Below), parts of files and
// members of ZIPs, and all others by the opener of their scheme (Mux). It also lists directories.
package openers

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// router is an Opener that knows which opener has a path that is of no part of a file.
type router interface {
	source.Opener
	route(ctx context.Context, p source.Path) (context.Context, source.Opener, error)
}

// openName opens a name.
func openName(ctx context.Context, r router, name string, k source.Known) (source.Reader, error) {
	parsed, err := source.Parse(name)
	if err != nil {
		return nil, err
	}
	return openPath(ctx, r, parsed, k)
}

// openPath opens a path.
func openPath(ctx context.Context, r router, p source.Path, k source.Known) (source.Reader, error) {
	if p.Part != nil {
		return openPart(ctx, r, p.Part, k)
	}
	ctx, opener, err := r.route(ctx, p)
	if err != nil {
		return nil, err
	}
	switch next := opener.(type) { // types that embed these have methods of their own
	case *Files:
		return next.open(ctx, p)
	case *Mux:
		return openPath(ctx, next, p, k)
	}
	if k == (source.Known{}) {
		return opener.Open(ctx, p.Name)
	}
	return source.OpenKnown(ctx, opener, p.Name, k)
}

// listName calls each for the objects below a folder.
func listName(ctx context.Context, r router, folder string, each func(source.Entry) error) error {
	ctx, opener, parsed, err := folderOf(ctx, r, folder)
	switch {
	case err != nil:
		return err
	case parsed.Part != nil:
		return listPart(ctx, r, parsed.Part, each)
	}
	return List(ctx, opener, parsed.Name, each)
}

// namesOf returns the names of the entries of a directory.
func namesOf(ctx context.Context, r router, folder string) ([]string, error) {
	ctx, opener, parsed, err := folderOf(ctx, r, folder)
	switch {
	case err != nil:
		return nil, err
	case parsed.Part != nil:
		return entriesOf(func(each func(source.Entry) error) error { return listPart(ctx, r, parsed.Part, each) })
	}
	return Names(ctx, opener, parsed.Name)
}

// folderOf parses the name of a folder, and returns its opener unless it is in a ZIP.
func folderOf(ctx context.Context, r router, name string) (context.Context, source.Opener, source.Path, error) {
	parsed, err := source.Parse(name)
	if err != nil || parsed.Part != nil {
		return ctx, nil, parsed, err
	}
	ctx, opener, err := r.route(ctx, parsed)
	return ctx, opener, parsed, err
}

// Mux opens each URI with the opener of its scheme.
type Mux struct {
	// Files opens paths and file:// URIs.
	Files source.Opener
	// Schemes has the openers of the other URIs, by scheme in lower case.
	Schemes map[string]source.Opener
}

// route implements router. A scheme without an opener is fault.Unsupported.
func (m *Mux) route(ctx context.Context, p source.Path) (context.Context, source.Opener, error) {
	opener := m.Files
	if p.Remote() {
		opener = m.Schemes[p.Scheme]
	}
	if opener == nil {
		return nil, nil, noDriver(p)
	}
	return ctx, opener, nil
}

func noDriver(p source.Path) error {
	return fault.WithFile(fault.New(fault.Unsupported, "URI",
		"no store is known for the scheme %s://", p.Scheme), p.Name)
}

// Open implements Opener.
func (m *Mux) Open(ctx context.Context, uri string) (source.Reader, error) {
	return openName(ctx, m, uri, source.Known{})
}

// OpenKnown implements KnownOpener.
func (m *Mux) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return openName(ctx, m, uri, k)
}

// List implements Lister.
func (m *Mux) List(ctx context.Context, folder string, each func(source.Entry) error) error {
	return listName(ctx, m, folder, each)
}

// Names implements Namer.
func (m *Mux) Names(ctx context.Context, folder string) ([]string, error) {
	return namesOf(ctx, m, folder)
}

// Put implements source.Putter. Local files are not written here.
func (m *Mux) Put(ctx context.Context, uri string, body io.ReadSeeker, fresh bool) error {
	ctx, putter, name, err := m.putter(ctx, uri)
	if err != nil {
		return err
	}
	return putter.Put(ctx, name, body, fresh)
}

// Remove implements source.Putter. Local files are not removed here.
func (m *Mux) Remove(ctx context.Context, uri string) error {
	ctx, putter, name, err := m.putter(ctx, uri)
	if err != nil {
		return err
	}
	return putter.Remove(ctx, name)
}

// putter returns what writes an object, and its name there.
func (m *Mux) putter(ctx context.Context, uri string) (context.Context, source.Putter, string, error) {
	parsed, err := source.Parse(uri)
	if err != nil {
		return nil, nil, "", err
	}
	ctx, opener, err := m.route(ctx, parsed)
	if err != nil {
		return nil, nil, "", err
	}
	putter, ok := opener.(source.Putter)
	if !ok || parsed.Part != nil || !parsed.Remote() {
		return nil, nil, "", fault.WithFile(fault.New(fault.Unsupported, "URI", "what it names is only read"), uri)
	}
	return ctx, putter, parsed.Name, nil
}

// Close closes the openers that have a Close method.
func (m *Mux) Close() error {
	openers := []source.Opener{m.Files}
	for _, o := range m.Schemes {
		if !slices.Contains(openers, o) { // one opener may serve several schemes
			openers = append(openers, o)
		}
	}
	var errs []error
	for _, o := range openers {
		if c, ok := o.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
