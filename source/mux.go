package source

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Scheme returns the scheme of the URI that a name resolves to (see Resolve) in lower case, or "" for a path. The name
// of a part of a file, and a name that cannot be resolved, has the name of its file system, such as "vsizip".
func Scheme(uri string) string {
	if hasAlias(uri) {
		resolved, err := Resolve(uri)
		if prefix := vsiPrefix(cmp.Or(resolved, uri)); prefix != "" {
			return strings.Trim(prefix, "/?")
		}
		if err == nil {
			uri = resolved
		}
	}
	return plainScheme(uri)
}

// plainScheme returns the scheme that a URI begins with, in lower case, or "".
func plainScheme(uri string) string {
	i := strings.Index(uri, "://")
	if i < 1 {
		return ""
	}
	for _, c := range []byte(uri[:i]) {
		letter, digit := 'a' <= c|32 && c|32 <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("+-.", c) < 0 {
			return ""
		}
	}
	return strings.ToLower(uri[:i])
}

// IsRemote reports whether uri names an object that is not a local file. Parts of files are such objects too, also
// parts of local files.
func IsRemote(uri string) bool {
	s := Scheme(uri)
	return s != "" && s != "file"
}

// Name returns the last part of a path or URI, without the query of one of HTTP: that may have secrets.
func Name(uri string) string {
	if file, _, _, ok := Subfile(uri); ok {
		return Name(file)
	}
	if s := Scheme(uri); s == "http" || s == "https" {
		uri, _, _ = strings.Cut(uri, "?")
	}
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// LocalPath returns the path in a file:// URI, whose escapes (%20) it undoes: Python's Path.as_uri writes them. A path
// with a "%" that begins no escape is taken as it is. Other strings are returned as they are.
func LocalPath(uri string) string {
	if Scheme(uri) != "file" {
		return uri
	}
	path := strings.TrimPrefix(uri[len("file://"):], "localhost")
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// Mux opens each URI with the opener of its scheme.
type Mux struct {
	// Files opens paths and file:// URIs.
	Files Opener
	// Schemes has the openers of the other URIs, by scheme in lower case.
	Schemes map[string]Opener
}

// opener returns the opener of a resolved URI. A scheme without one is fault.Unsupported.
func (m *Mux) opener(uri string) (Opener, error) {
	if !IsRemote(uri) {
		return m.Files, nil
	}
	if o := m.Schemes[Scheme(uri)]; o != nil {
		return o, nil
	}
	return nil, noDriver(uri)
}

func noDriver(uri string) error {
	return fault.WithFile(fault.New(fault.Unsupported, "URI", fault.NoOffset,
		"no store is known for the scheme %s://", Scheme(uri)), uri)
}

// Open implements Opener.
func (m *Mux) Open(ctx context.Context, uri string) (Reader, error) {
	return m.OpenKnown(ctx, uri, Known{})
}

// OpenKnown implements KnownOpener.
func (m *Mux) OpenKnown(ctx context.Context, uri string, k Known) (Reader, error) {
	uri, p, err := named(uri)
	if err != nil || p != nil {
		return openPart(ctx, m, p, k, err)
	}
	opener, err := m.opener(uri)
	if err != nil {
		return nil, err
	}
	if k == (Known{}) {
		return opener.Open(ctx, uri)
	}
	return OpenKnown(ctx, opener, uri, k)
}

// List implements Lister.
func (m *Mux) List(ctx context.Context, folder string, each func(Entry) error) error {
	folder, p, err := named(folder)
	if err != nil || p != nil {
		return listPart(ctx, m, p, each, err)
	}
	opener, err := m.opener(folder)
	if err != nil {
		return err
	}
	return List(ctx, opener, folder, each)
}

// Names implements Namer.
func (m *Mux) Names(ctx context.Context, folder string) ([]string, error) {
	folder, p, err := named(folder)
	if err != nil || p != nil {
		return namesOf(ctx, m, p, err)
	}
	opener, err := m.opener(folder)
	if err != nil {
		return nil, err
	}
	return Names(ctx, opener, folder)
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
