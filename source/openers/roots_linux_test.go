package openers

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestNoPermissionIsNotMissing: below a root, a file in a directory that may not be entered is not reported as one that
// does not exist: a chunk of Zarr that does not exist has the fill value. Errors name the path that was asked for.
func TestNoPermissionIsNotMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(closed, "0")
	testfile.Write(t, name, []byte("x"))
	unread := filepath.Join(dir, "unread") // may be entered
	if err := cmp.Or(os.Chmod(closed, 0), os.Mkdir(unread, 0o111)); err != nil {
		t.Fatal(err)
	}
	files := Files{}
	defer files.Close()
	files.roots = NewRoots([]string{dir})
	errs := make(chan error, 4)
	go func() {
		// The thread has another user for files, since permissions do not bind root. It ends with the goroutine.
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		_, err := files.Open(t.Context(), name)
		errs <- err
		for _, roots := range []*Roots{files.roots, NewRoots([]string{unread})} {
			_, err = roots.ReadDir(unread)
			errs <- err
		}
		_, err = NewRoots([]string{closed}).Stat(closed)
		errs <- err
	}()
	for i, path := range []string{name, unread, unread, closed} {
		err := <-errs
		if !errors.Is(err, fs.ErrPermission) || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), " "+path+":") {
			t.Errorf("%d, %s: %v", i, path, err)
		}
	}
	if err := os.Chmod(closed, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestRootsWithoutAFolder: where the current directory is gone, a relative path leads nowhere.
func TestRootsWithoutAFolder(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	if err := os.Mkdir(gone, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRoots([]string{dir}).Allow("a"); !Outside(err) {
		t.Error(err)
	}
	if roots := NewRoots([]string{"."}); roots.String() != "[]" {
		t.Error(roots)
	}
}

// TestOneDescriptor: a file below a root is open once.
func TestOneDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "a")
	files := Files{Keep: -1, roots: NewRoots([]string{filepath.Dir(path)})}
	before := openFiles(t)
	r, err := files.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t) - before; n != 1 {
		t.Errorf("%d files are open", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
