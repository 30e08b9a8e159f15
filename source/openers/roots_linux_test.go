package openers

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestNoPermissionIsNotMissing: below a root, a file in a directory that may not be entered is not reported as one that
// does not exist: a chunk of Zarr that does not exist has the fill value.
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
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	files := Files{}
	defer files.Close()
	files.roots = NewRoots([]string{dir})
	errs := make(chan error)
	go func() {
		// The thread has another user for files, since permissions do not bind root. It ends with the goroutine.
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		_, err := files.Open(t.Context(), name)
		errs <- err
	}()
	if err := <-errs; err == nil || fault.KindOf(err) != 0 {
		t.Errorf("a file in a closed directory: %v", err)
	}
	if err := os.Chmod(closed, 0o755); err != nil {
		t.Fatal(err)
	}
}
