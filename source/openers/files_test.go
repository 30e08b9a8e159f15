package openers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	testfile.Write(t, path, []byte(text))
}

func read(t *testing.T, s *Files, path string, off int64, n int) (string, error) {
	t.Helper()
	r, err := s.Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	err = r.ReadAt(context.Background(), b, off)
	if cerr := r.Close(); cerr != nil {
		t.Fatal(cerr)
	}
	return string(b), err
}

// openFiles counts the file descriptors of this process, on systems that list them.
func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(d)
}

func TestReadsRanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "0123456789")
	s := &Files{}
	defer s.Close()
	for _, uri := range []string{path, "file://" + path} {
		if got, err := read(t, s, uri, 3, 4); got != "3456" || err != nil {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
	}
	if got, err := read(t, s, path, 10, 0); got != "" || err != nil {
		t.Errorf("nothing at the end: %q, %v", got, err)
	}
	for _, c := range []struct {
		off int64
		n   int
	}{{-1, 1}, {0, 11}, {10, 1}, {11, 0}, {9, 2}, {1 << 62, 1}} {
		if _, err := read(t, s, path, c.off, c.n); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, err)
		}
	}
}

func TestRefusesNonFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip(err)
	}
	free, bounded := &Files{}, &Files{roots: NewRoots([]string{dir, "/dev"})}
	for path, kind := range map[string]fault.Kind{
		loop:                         fault.NotFound,
		filepath.Join(dir, "a\x00b"): fault.NotFound,
		filepath.Join(dir, strings.Repeat("a", 5000)): fault.NotFound,
		filepath.Join(dir, "none"):                    fault.NotFound,
		filepath.Join(dir, "file", "below"):           fault.NotFound,
		dir:                                           fault.Unsupported,
		pipe:                                          fault.Unsupported,
		"/dev/null":                                   fault.Unsupported,
	} {
		for _, s := range []*Files{free, bounded} {
			done := make(chan error, 1)
			go func() {
				_, err := read(t, s, path, 0, 1)
				done <- err
			}()
			select {
			case err := <-done:
				if fault.KindOf(err) != kind || strings.Count(err.Error(), path) != 1 {
					t.Errorf("%s: %v, want %v", path, err, kind)
				}
			case <-time.After(5 * time.Minute):
				t.Fatalf("%s: opening waits", path)
			}
		}
	}
	if err := errors.Join(free.Close(), bounded.Close()); err != nil {
		t.Error(err)
	}
}

// TestFileThatBecomesShorter: what is cut off while a file is open is no error of the system.
func TestFileThatBecomesShorter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "0123456789")
	s := &Files{}
	defer s.Close()
	r, err := s.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	err = r.ReadAt(t.Context(), make([]byte, 4), 2)
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "became shorter") {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestSystemErrorsHaveNoKind: an error such as "too many open files" says nothing about a file, and
// must not count as a bad sample.
func TestSystemErrorsHaveNoKind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no limit of open files")
	}
	for _, err := range []error{
		&os.PathError{Op: "open", Path: "a", Err: syscall.EMFILE},
		&os.PathError{Op: "open", Path: "a", Err: syscall.EACCES},
		&os.PathError{Op: "read", Path: "a", Err: syscall.EIO},
	} {
		if k := fault.KindOf(systemError(err)); k != 0 {
			t.Errorf("%v is %v", err, k)
		}
	}
}

func TestKeepsAFewFilesOpen(t *testing.T) {
	dir := t.TempDir()
	before := openFiles(t)
	s := &Files{Keep: 3}
	for round := range 3 {
		for i := range 10 {
			path := filepath.Join(dir, fmt.Sprint(i))
			if round == 0 {
				write(t, path, fmt.Sprint(i))
			}
			if got, err := read(t, s, path, 0, 1); got != fmt.Sprint(i) || err != nil {
				t.Fatalf("file %d: %q, %v", i, got, err)
			}
		}
		if n := openFiles(t) - before; n != 3 {
			t.Errorf("%d files are open, want 3", n)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t) - before; n != 0 {
		t.Errorf("%d files are open after Close", n)
	}
}

// TestReadersOfOneFile: of several concurrent opens of one file, one stays open.
func TestReadersOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "abc")
	before := openFiles(t)
	s := &Files{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				r, err := s.Open(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				b := make([]byte, 3)
				if err := r.ReadAt(context.Background(), b, 0); err != nil || !bytes.Equal(b, []byte("abc")) {
					t.Errorf("%q, %v", b, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := openFiles(t) - before; n != 1 {
		t.Errorf("%d files are open, want 1", n)
	}
	r, err := s.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 3)
	if err := r.ReadAt(context.Background(), b, 0); err != nil {
		t.Errorf("a reader opened before Close: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t) - before; n != 0 {
		t.Errorf("%d files are open after Close", n)
	}
}

// TestDirectories: a directory is no file, and its names are listed, those of directories with a slash.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"c": "b", "d": "none"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := &Files{}
	defer s.Close()
	if _, err := s.Open(t.Context(), "s3://b/a"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("opening an object: %v", err)
	}
	if _, err := s.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("opening a directory: %v", err)
	}
	names, err := Names(t.Context(), s, dir)
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"a", "b/", "c/", "d"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestClosedTwice: what was closed is not read, and an error of the system stays one.
func TestClosedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "abc")
	s := &Files{}
	defer s.Close()
	r, err := s.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	f := r.(*cachedFile)
	if err := f.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadAt(t.Context(), make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) || fault.KindOf(err) != 0 {
		t.Errorf("read after it was closed: %v", err)
	}
	if err := f.f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// TestNobodyKeepsClosedFiles: a Files that keeps nothing open is no longer among those that do.
func TestNobodyKeepsClosedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "abc")
	s := &Files{}
	before := idleFiles.n
	for _, want := range []bool{true, false} {
		if _, err := read(t, s, path, 0, 1); err != nil {
			t.Fatal(err)
		}
		if !want {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		idleFiles.mu.Lock()
		if n := idleFiles.n - before; n != map[bool]int{true: 1}[want] {
			t.Errorf("%d files are counted as open", n)
		}
		if 4*idleFiles.max > procs.Files() {
			t.Errorf("%d idle files are too many", idleFiles.max)
		}
		if _, is := idleFiles.of[s]; is != want {
			t.Errorf("among those with open files: %v, want %v", is, want)
		}
		idleFiles.mu.Unlock()
	}
}

// TestChangedFileIsOpenedAgain: an idle file that was written to has a new size.
func TestChangedFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "old")
	s := &Files{}
	defer s.Close()
	var opened [2]content
	for i := range opened {
		r, err := s.Open(t.Context(), path)
		if err != nil || r.Close() != nil {
			t.Fatal(err)
		}
		opened[i] = r.(*cachedFile).f
	}
	if opened[0] != opened[1] {
		t.Error("a file that did not change is opened again")
	}
	write(t, path, "newer")
	if got, err := read(t, s, path, 0, 5); got != "newer" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReplacedFileIsOpenedAgain: an idle open file is not used if its path now names another file.
func TestReplacedFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Files{}
	defer s.Close()
	for _, text := range []string{"old", "new"} {
		write(t, path+"2", text)
		if err := os.Chtimes(path+"2", at, at); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"2", path); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t, s, path, 0, 3); got != text || err != nil {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, s, path, 0, 3); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of one that is gone: %v", err)
	}
}
