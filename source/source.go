// Package source reads byte ranges of files, by URI.
package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
)

// Reader reads ranges of one object. It is safe for concurrent use.
type Reader interface {
	// ReadAt fills p from offset off, or returns an error: there is no partial read. A range past
	// the end is fault.Corrupt.
	ReadAt(ctx context.Context, p []byte, off int64) error
	// Size returns the object's size in bytes.
	Size() int64
	// Close gives the reader back to its opener.
	Close() error
}

// Opener opens objects by URI. It is safe for concurrent use.
type Opener interface {
	// Open returns a reader for a URI. A URI that names nothing is fault.NotFound.
	Open(ctx context.Context, uri string) (Reader, error)
}

// Files opens local files, by path or file:// URI, and keeps up to Keep of them open between uses.
// The zero value is ready.
type Files struct {
	// Keep is the number of idle files kept open. Default 128.
	Keep int

	mu   sync.Mutex
	idle map[string]*file // by path
	lru  []string         // least recently given back first
}

type file struct {
	f     *os.File
	size  int64
	owner *Files
	path  string
}

// Open implements Opener.
func (s *Files) Open(_ context.Context, uri string) (Reader, error) {
	path := strings.TrimPrefix(uri, "file://")
	if f := s.take(path); f != nil {
		return f, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.WithFile(sysError("file", err), uri)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, fault.WithFile(fault.Wrap(fault.Unsupported, "file", fault.NoOffset, err), uri)
	}
	return &file{f: f, size: st.Size(), owner: s, path: path}, nil
}

func (s *Files) take(path string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.idle[path]
	if f != nil {
		delete(s.idle, path)
		s.drop(path)
	}
	return f
}

func (s *Files) drop(path string) {
	for i, p := range s.lru {
		if p == path {
			s.lru = append(s.lru[:i], s.lru[i+1:]...)
			return
		}
	}
}

func (s *Files) give(f *file) error {
	keep := s.Keep
	if keep == 0 {
		keep = 128
	}
	s.mu.Lock()
	if s.idle == nil {
		s.idle = map[string]*file{}
	}
	if s.idle[f.path] != nil || keep < 0 { // another worker gave its own back first
		s.mu.Unlock()
		return f.f.Close()
	}
	s.idle[f.path] = f
	s.lru = append(s.lru, f.path)
	var old *file
	if len(s.lru) > keep {
		old = s.idle[s.lru[0]]
		delete(s.idle, s.lru[0])
		s.lru = append(s.lru[:0], s.lru[1:]...)
	}
	s.mu.Unlock()
	if old != nil {
		return old.f.Close()
	}
	return nil
}

// Close closes the idle files. Readers that are still open close themselves later.
func (s *Files) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.idle {
		errs = append(errs, f.f.Close())
	}
	s.idle, s.lru, s.Keep = nil, nil, -1
	return errors.Join(errs...)
}

func (f *file) Size() int64 { return f.size }

func (f *file) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > f.size || int64(len(p)) > f.size-off {
		return fault.WithFile(fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the file's %d", len(p), f.size), f.path)
	}
	if _, err := f.f.ReadAt(p, off); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file became shorter while it was read")
		}
		return fault.WithFile(fault.Wrap(fault.Corrupt, "byte range", off, err), f.path)
	}
	return nil
}

func (f *file) Close() error { return f.owner.give(f) }

func sysError(part string, err error) error {
	kind := fault.Unsupported
	if errors.Is(err, fs.ErrNotExist) {
		kind = fault.NotFound
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fault.Error{Kind: kind, Part: part, Off: fault.NoOffset, Msg: pe.Err.Error(), Err: err}
	}
	return fault.Wrap(kind, part, fault.NoOffset, err)
}
