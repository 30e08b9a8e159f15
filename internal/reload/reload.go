// Package reload keeps the parsed content of small files, such as certificates and lists of tokens, and parses them
// again when their bytes change.
package reload

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Every is how old a value may be. Files are checked at most this often: a revoked token works for one second more, and
// a flood of calls reads the files once a second.
const Every = time.Second

// maxBytes bounds a file. 4 MiB hold 20,000 tokens of 200 bytes; certificates have some kilobytes.
const maxBytes = 4 << 20

// Files are some files and the value that they stand for. It is safe for concurrent use.
type Files[T any] struct {
	parse func([][]byte) (T, error)
	paths []string
	every time.Duration
	fail  func(error)

	mu       sync.Mutex
	lastLook time.Time // at the files
	bytes    [][]byte  // what value was parsed from
	value    T
	failed   string // the last reported error
}

// Open reads and parses files. parse gets their bytes in the order of paths. Later, if the files cannot be read or
// parsed, the last value stays, and fail gets the error, once: a writer may be half way, and a server that served stays
// up. every is how often files are looked at, Every by default; fail may be nil.
func Open[T any](parse func([][]byte) (T, error), every time.Duration, fail func(error), paths ...string) (
	*Files[T], error) {
	files := &Files[T]{parse: parse, paths: paths, every: cmp.Or(every, Every), fail: fail}
	contents, err := files.read()
	if err != nil {
		return nil, err
	}
	files.bytes, files.lastLook = contents, time.Now()
	files.value, err = files.parsed(contents)
	return files, err
}

// Get returns the value.
func (f *Files[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.lastLook) >= f.every {
		f.lastLook = now
		f.refresh()
	}
	return f.value
}

func (f *Files[T]) refresh() {
	contents, err := f.read()
	if err == nil {
		if slices.EqualFunc(contents, f.bytes, bytes.Equal) {
			f.failed = ""
			return
		}
		var v T
		if v, err = f.parsed(contents); err == nil {
			f.bytes, f.value, f.failed = contents, v, ""
			return
		}
	}
	if f.failed != err.Error() {
		f.failed = err.Error()
		if f.fail != nil {
			f.fail(err)
		}
	}
}

func (f *Files[T]) parsed(all [][]byte) (T, error) {
	v, err := f.parse(all)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.paths[0], err)
	}
	return v, err
}

// read returns the bytes of the files. Contents are compared, not times: a file that is written twice within one tick
// of the file system's clock, with equal size, would keep its first meaning.
func (f *Files[T]) read() ([][]byte, error) {
	contents := make([][]byte, len(f.paths))
	for i, p := range f.paths {
		file, err := os.Open(p)
		if err != nil {
			return nil, err
		}
		contents[i], err = io.ReadAll(io.LimitReader(file, maxBytes+1))
		file.Close()
		if err != nil {
			return nil, err
		}
		if len(contents[i]) > maxBytes {
			return nil, fmt.Errorf("%s: the file has more than %d bytes", p, maxBytes)
		}
	}
	return contents, nil
}
