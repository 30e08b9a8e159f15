package source

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// router is an Opener that knows which opener has a path that is of no part of a file.
type router interface {
	Opener
	route(ctx context.Context, p Path) (context.Context, Opener, error)
}

// openName opens a name.
func openName(ctx context.Context, r router, name string, k Known) (Reader, error) {
	parsed, err := Parse(name)
	if err != nil {
		return nil, err
	}
	return openPath(ctx, r, parsed, k)
}

// openPath opens a path.
func openPath(ctx context.Context, r router, p Path, k Known) (Reader, error) {
	if p.part != nil {
		return openPart(ctx, r, p.part, k)
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
	if k == (Known{}) {
		return opener.Open(ctx, p.Name)
	}
	return OpenKnown(ctx, opener, p.Name, k)
}

// listName calls each for the objects below a folder.
func listName(ctx context.Context, r router, folder string, each func(Entry) error) error {
	ctx, opener, parsed, err := folderOf(ctx, r, folder)
	switch {
	case err != nil:
		return err
	case parsed.part != nil:
		return listPart(ctx, r, parsed.part, each)
	}
	return List(ctx, opener, parsed.Name, each)
}

// namesOf returns the names of the entries of a directory.
func namesOf(ctx context.Context, r router, folder string) ([]string, error) {
	ctx, opener, parsed, err := folderOf(ctx, r, folder)
	switch {
	case err != nil:
		return nil, err
	case parsed.part != nil:
		return entriesOf(func(each func(Entry) error) error { return listPart(ctx, r, parsed.part, each) })
	}
	return Names(ctx, opener, parsed.Name)
}

// folderOf parses the name of a folder, and returns its opener unless it is in a ZIP.
func folderOf(ctx context.Context, r router, name string) (context.Context, Opener, Path, error) {
	parsed, err := Parse(name)
	if err != nil || parsed.part != nil {
		return ctx, nil, parsed, err
	}
	ctx, opener, err := r.route(ctx, parsed)
	return ctx, opener, parsed, err
}

// Mux opens each URI with the opener of its scheme.
type Mux struct {
	// Files opens paths and file:// URIs.
	Files Opener
	// Schemes has the openers of the other URIs, by scheme in lower case.
	Schemes map[string]Opener
}

// route implements router. A scheme without an opener is fault.Unsupported.
func (m *Mux) route(ctx context.Context, p Path) (context.Context, Opener, error) {
	opener := m.Files
	if p.Remote() {
		opener = m.Schemes[p.Scheme]
	}
	if opener == nil {
		return nil, nil, noDriver(p)
	}
	return ctx, opener, nil
}

func noDriver(p Path) error {
	return fault.WithFile(fault.New(fault.Unsupported, "URI", fault.NoOffset,
		"no store is known for the scheme %s://", p.Scheme), p.Name)
}

// Open implements Opener.
func (m *Mux) Open(ctx context.Context, uri string) (Reader, error) {
	return openName(ctx, m, uri, Known{})
}

// OpenKnown implements KnownOpener.
func (m *Mux) OpenKnown(ctx context.Context, uri string, k Known) (Reader, error) {
	return openName(ctx, m, uri, k)
}

// List implements Lister.
func (m *Mux) List(ctx context.Context, folder string, each func(Entry) error) error {
	return listName(ctx, m, folder, each)
}

// Names implements Namer.
func (m *Mux) Names(ctx context.Context, folder string) ([]string, error) {
	return namesOf(ctx, m, folder)
}

// Close closes the openers that have a Close method.
func (m *Mux) Close() error {
	openers := []Opener{m.Files}
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
