package source

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Scheme returns the scheme of a URI in lower case, or "" for a path. A name in one of GDAL's file systems has the
// scheme of what it stands for.
func Scheme(uri string) string {
	if scheme, ok := vsiScheme(uri); ok {
		return scheme
	}
	i := strings.Index(uri, "://")
	if i < 1 {
		return ""
	}
	for _, c := range []byte(uri[:i]) {
		if !('a' <= c|32 && c|32 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.') {
			return ""
		}
	}
	return strings.ToLower(uri[:i])
}

// IsRemote reports whether uri names an object that is not a local file.
func IsRemote(uri string) bool {
	s := Scheme(uri)
	return s != "" && s != "file"
}

// Name returns the last part of a path or URI, without the query of one of HTTP: that may have secrets.
func Name(uri string) string {
	if s := Scheme(uri); s == "http" || s == "https" {
		uri, _, _ = strings.Cut(uri, "?")
	}
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// LocalPath returns the path in a file:// URI. Other strings are returned as they are.
func LocalPath(uri string) string {
	if Scheme(uri) == "file" {
		return uri[len("file://"):]
	}
	return uri
}

// Mux opens each URI with the opener of its scheme.
type Mux struct {
	// Files opens paths and file:// URIs.
	Files Opener
	// Schemes has the openers of the other URIs, by scheme in lower case.
	Schemes map[string]Opener
}

// opener returns the opener of a URI, and the name by which that opens it. A scheme without one is fault.Unsupported.
func (m *Mux) opener(name string) (o Opener, uri string, err error) {
	uri = Canonical(name)
	if !IsRemote(uri) {
		return m.Files, uri, nil
	}
	if o := m.Schemes[Scheme(uri)]; o != nil {
		return o, uri, nil
	}
	return nil, "", noDriver(name)
}

// noDriver returns the error about a name that no opener opens.
func noDriver(name string) error {
	if system, _, ok := fileSystem(name); ok {
		return fault.WithFile(fault.New(fault.Unsupported, "name", fault.NoOffset,
			"GDAL's file system /%s/ is not read in this form", system), name)
	}
	return fault.WithFile(fault.New(fault.Unsupported, "URI", fault.NoOffset,
		"no store is known for the scheme %s://", Scheme(name)), name)
}

// Open implements Opener.
func (m *Mux) Open(ctx context.Context, uri string) (Reader, error) {
	o, uri, err := m.opener(uri)
	if err != nil {
		return nil, err
	}
	return o.Open(ctx, uri)
}

// OpenKnown implements KnownOpener.
func (m *Mux) OpenKnown(ctx context.Context, uri string, k Known) (Reader, error) {
	o, uri, err := m.opener(uri)
	if err != nil {
		return nil, err
	}
	return OpenKnown(ctx, o, uri, k)
}

// List implements Lister.
func (m *Mux) List(ctx context.Context, folder string, each func(Entry) error) error {
	o, folder, err := m.opener(folder)
	if err != nil {
		return err
	}
	return List(ctx, o, folder, each)
}

// Names implements Namer.
func (m *Mux) Names(ctx context.Context, folder string) ([]string, error) {
	o, folder, err := m.opener(folder)
	if err != nil {
		return nil, err
	}
	return Names(ctx, o, folder)
}

// Close closes the openers that have a Close method.
func (m *Mux) Close() error {
	all := []Opener{m.Files}
	for _, o := range m.Schemes {
		if !slices.Contains(all, o) { // one opener may serve several schemes
			all = append(all, o)
		}
	}
	var errs []error
	for _, o := range all {
		if c, ok := o.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
