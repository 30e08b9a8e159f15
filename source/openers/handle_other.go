//go:build !linux

package openers

import (
	"os"
	"syscall"
	"time"
)

// handle is an open local file.
type handle struct{ *os.File }

// openHandle opens a file for reading, without waiting for the writer of a named pipe.
func openHandle(path string) (*handle, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &handle{f}, nil
}

func (h *handle) stat() (state, error) { return stateOfFile(h.File) }

// state is what a file was at a moment.
type state struct{ info os.FileInfo }

// stateOfFile returns the state of a file that was opened below a root.
func stateOfFile(f *os.File) (state, error) {
	info, err := f.Stat()
	return state{info}, err
}

// stateNow returns the state of the file that a path names.
func stateNow(path string) (state, error) {
	info, err := os.Stat(path)
	return state{info}, err
}

func (s *state) same(other *state) bool {
	return os.SameFile(s.info, other.info) && s.bytes() == other.bytes() && s.modified().Equal(other.modified())
}
func (s *state) bytes() int64        { return s.info.Size() }
func (s *state) modified() time.Time { return s.info.ModTime() }
func (s *state) regular() bool       { return s.info.Mode().IsRegular() }
func (s *state) directory() bool     { return s.info.IsDir() }
