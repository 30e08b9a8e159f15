package openers

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// handle is an open local file. os.File would ask the poller of the runtime to watch each file, which it refuses for
// files on disk: a system call and several allocations more for each small sample.
type handle struct {
	path string
	// mu is held for reading while fd is in use, so no number that was closed, and perhaps is another file's, is read.
	mu sync.RWMutex
	fd int // or closed
}

// closed is no file descriptor.
const closed = -1

// retry makes a system call until no signal interrupts it.
func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// openHandle opens a file for reading, without waiting for the writer of a named pipe.
func openHandle(path string) (*handle, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &handle{path: path, fd: fd}, nil
}

func (h *handle) stat() (state, error) {
	var st syscall.Stat_t
	if err := retry(func() error { return syscall.Fstat(h.fd, &st) }); err != nil {
		return state{}, &fs.PathError{Op: "stat", Path: h.path, Err: err}
	}
	return stateOf(&st), nil
}

// ReadAt implements io.ReaderAt.
func (h *handle) ReadAt(p []byte, off int64) (n int, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.fd == closed {
		return 0, &fs.PathError{Op: "read", Path: h.path, Err: fs.ErrClosed}
	}
	for n < len(p) {
		count, err := syscall.Pread(h.fd, p[n:], off+int64(n))
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: h.path, Err: err}
		case count == 0:
			return n, io.EOF
		default:
			n += count
		}
	}
	return n, nil
}

// Close implements io.Closer.
func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd == closed {
		return &fs.PathError{Op: "close", Path: h.path, Err: fs.ErrClosed}
	}
	fd := h.fd
	h.fd = closed
	if err := syscall.Close(fd); err != nil && err != syscall.EINTR { // after which Linux has closed it
		return &fs.PathError{Op: "close", Path: h.path, Err: err}
	}
	return nil
}

// state is what a file was at a moment.
type state struct {
	size          int64
	mtime         syscall.Timespec
	mode          uint32
	device, inode uint64
}

func stateOf(st *syscall.Stat_t) state {
	return state{st.Size, st.Mtim, st.Mode, uint64(st.Dev), st.Ino}
}

// stateOfFile returns the state of a file that was opened below a root.
func stateOfFile(f *os.File) (state, error) {
	info, err := f.Stat()
	if err != nil {
		return state{}, err
	}
	return stateOf(info.Sys().(*syscall.Stat_t)), nil
}

// stateNow returns the state of the file that a path names.
func stateNow(path string) (state, error) {
	var st syscall.Stat_t
	err := retry(func() error { return syscall.Stat(path, &st) })
	return stateOf(&st), err
}

func (s *state) same(other *state) bool { return *s == *other }
func (s *state) bytes() int64           { return s.size }
func (s *state) modified() time.Time    { return time.Unix(s.mtime.Unix()) }
func (s *state) regular() bool          { return s.mode&syscall.S_IFMT == syscall.S_IFREG }
func (s *state) directory() bool        { return s.mode&syscall.S_IFMT == syscall.S_IFDIR }
