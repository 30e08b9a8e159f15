package openers

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// DefaultKeep is the default of Files.Keep.
const DefaultKeep = 128

// Files opens local files, by path or file:// URI, and keeps some of them open between uses,
// because opening a file on a network file system takes round trips. The zero value is ready to
// use. Close it after use.
type Files struct {
	// Keep is the number of unused files that stay open, at most a quarter of RLIMIT_NOFILE in all
	// Files of the process. Default DefaultKeep.
	Keep int

	roots *Roots // nil opens every file

	mu     sync.Mutex
	idle   map[string]*list.Element // by path; the values are *cachedFile
	lru    list.List                // the least recently used file first
	closed bool
}

// cachedFile is an open file, either unused or in use by one reader.
type cachedFile struct {
	f     content
	size  int64
	mtime time.Time
	was   state // when it was opened
	owner *Files
	path  string
}

// content is the bytes of an open file.
type content interface {
	io.ReaderAt
	io.Closer
}

// Open implements Opener. It also opens parts of local files (/vsizip/, /vsisubfile/). A path that is not a regular
// file, and a URI of another scheme, are fault.Unsupported. A failure of the system (a missing permission) is an error
// without a kind: it says nothing about the file. If no file descriptor is free, Open waits: see WithDescriptor.
func (s *Files) Open(ctx context.Context, uri string) (source.Reader, error) {
	return openName(ctx, s, uri, source.Known{})
}

// route implements router.
func (s *Files) route(ctx context.Context, p source.Path) (context.Context, source.Opener, error) {
	if p.Remote() {
		return nil, nil, noDriver(p)
	}
	return ctx, s, nil
}

// open opens a local file.
func (s *Files) open(ctx context.Context, p source.Path) (source.Reader, error) {
	uri, path := p.Name, p.Local()
	if file := s.take(path); file != nil {
		if file.unchanged() {
			return file, nil
		}
		_ = file.f.Close() // nothing was written
	}
	var f content
	var now state
	var failed error
	err := WithDescriptor(ctx, func() (err error) {
		f, now, failed, err = s.roots.openContent(path)
		return err
	})
	if err != nil {
		return nil, fault.WithFile(systemError(err), uri)
	}
	if err = failed; err == nil && !now.regular() {
		what := "not a regular file"
		if now.directory() {
			what = "it is a directory"
		}
		err = fault.WithFile(fault.New(fault.Unsupported, "file", "%s", what), uri)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &cachedFile{f: f, size: now.bytes(), mtime: now.modified(), was: now, owner: s, path: path}, nil
}

// Missing reports whether a system call failed because no file has the name. Names that are too
// long, that lead round a loop of links, or that no file system accepts count too.
func Missing(err error) bool {
	var pe *fs.PathError
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) ||
		errors.Is(err, syscall.ELOOP) || errors.As(err, &pe) && strings.Contains(pe.Path, "\x00")
}

// systemError gives an error of a system call a kind, if the name or the file is the reason.
func systemError(err error) error {
	if !Missing(err) {
		return err
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return &fault.Error{Kind: fault.NotFound, Part: "file", Off: fault.NoOffset, Msg: pe.Err.Error(), Err: err}
	}
	return fault.Wrap(fault.NotFound, "file", err)
}

// take returns the unused open file of a path, or nil.
func (s *Files) take(path string) *cachedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	elem := s.idle[path]
	if elem == nil {
		return nil
	}
	return s.remove(elem)
}

// remove takes a file out of the unused ones. The caller holds mu.
func (s *Files) remove(e *list.Element) *cachedFile {
	f := s.lru.Remove(e).(*cachedFile)
	delete(s.idle, f.path)
	s.countIdle(-1, s.lru.Len())
	return f
}

// dropIdle closes the unused files and returns how many there were. last closes s, too.
func (s *Files) dropIdle(last bool) (closed int, err error) {
	s.mu.Lock()
	s.closed = s.closed || last
	var idle []*cachedFile
	for e := s.lru.Front(); e != nil; e = s.lru.Front() {
		idle = append(idle, s.remove(e))
	}
	s.mu.Unlock()
	var errs []error
	for _, f := range idle { // without the lock: a network file system may hang
		errs = append(errs, f.f.Close())
	}
	return len(idle), errors.Join(errs...)
}

// keep returns the file to close: f itself if another reader of its path was faster or if Files is
// closed.
func (s *Files) keep(f *cachedFile) *cachedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.idle[f.path] != nil {
		return f
	}
	if s.idle == nil {
		s.idle = map[string]*list.Element{}
	}
	s.idle[f.path] = s.lru.PushBack(f)
	keep := cmp.Or(s.Keep, DefaultKeep)
	if tooMany := s.countIdle(1, s.lru.Len()); !tooMany && s.lru.Len() <= keep {
		return nil
	}
	return s.remove(s.lru.Front())
}

// Close closes the unused files. Readers that are still open stay valid and close their files
// later.
func (s *Files) Close() error {
	_, err := s.dropIdle(true)
	return err
}

// unchanged reports whether an unused file is still the one that its path names, with the same size
// and time. It needs no roots: the answer is about a file that was opened below them.
func (f *cachedFile) unchanged() bool {
	now, err := stateNow(f.path)
	return err == nil && now.same(&f.was)
}

func (f *cachedFile) Size() int64 { return f.size }

// ModTime implements Timed.
func (f *cachedFile) ModTime() time.Time { return f.mtime }

func (f *cachedFile) ReadAt(ctx context.Context, p []byte, off int64) error {
	if !source.Fits(off, int64(len(p)), f.size) {
		return fault.WithFile(fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the file's %d",
			len(p), f.size), f.path)
	}
	_, err := f.f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return fault.WithFile(fault.At(fault.Corrupt, "byte range", off,
			"the file became shorter while it was read"), f.path)
	}
	if err != nil {
		return fmt.Errorf("byte range at %d: %w", off, err) // an error of the system, which names the file itself
	}
	return nil
}

// Drop implements source.Dropper: the file is not kept open.
func (f *cachedFile) Drop() error { return f.f.Close() }

// Close makes the file available again, and closes the least recently used one if there are too many.
func (f *cachedFile) Close() error {
	if old := f.owner.keep(f); old != nil {
		return old.f.Close()
	}
	return nil
}
