package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func content(s string) func(*os.File) error {
	return func(w *os.File) error { _, err := io.WriteString(w, s); return err }
}

func read(t *testing.T, path string) string {
	t.Helper()
	b := testfile.Read(t, path)
	return string(b)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// disk records by hand what a crash may leave: contents are safe from the sync of their file on,
// and names from the sync of their directory on. A rename that was not synced may or may not be on
// disk, as in real file systems.
type disk struct {
	synced  map[string]string // by path at the time, the content that its last sync saw
	names   map[string]string // synced names, and the content that they lead to: lost if it was never synced
	pending map[string]string // names of renames that are not synced
}

const lost = "(zeros)"

// views returns the contents that name may have after a crash now, with "" for no file.
func (d *disk) views(name string) []string {
	views := []string{d.names[name]}
	if p, ok := d.pending[name]; ok {
		views = append(views, p)
	}
	return views
}

// record sends the package's syncs and renames through a disk, and calls after behind each of them.
func record(t *testing.T, after func(d *disk)) *disk {
	d := &disk{synced: map[string]string{}, names: map[string]string{}, pending: map[string]string{}}
	oldSync, oldRename := fsync, rename
	t.Cleanup(func() { fsync, rename = oldSync, oldRename })
	fsync = serial(func(f *os.File) error {
		if st, err := f.Stat(); err == nil && st.IsDir() {
			for to, c := range d.pending {
				if filepath.Dir(to) == f.Name() {
					d.names[to] = c
					delete(d.pending, to)
				}
			}
		} else if b, err := os.ReadFile(f.Name()); err == nil {
			d.synced[f.Name()] = string(b)
		}
		after(d)
		return nil
	})
	rename = func(from, to string) error {
		if err := os.Rename(from, to); err != nil {
			return err
		}
		if st, err := os.Stat(to); err == nil && st.IsDir() {
			moved := map[string]string{}
			for path, c := range d.synced {
				if rel, ok := strings.CutPrefix(path, from+"/"); ok {
					moved[to+"/"+rel] = c
				}
			}
			for _, name := range names(t, to) {
				if c, ok := moved[to+"/"+name]; ok {
					d.pending[to+"/"+name] = c
				} else {
					d.pending[to+"/"+name] = lost
				}
			}
			d.pending[to] = "folder"
		} else if c, ok := d.synced[from]; ok {
			d.pending[to] = c
		} else {
			d.pending[to] = lost
		}
		after(d)
		return nil
	}
	return d
}

// TestTheErrorNamesTheFile checks that the error about a file that cannot be created has its name, not the temporary
// one.
func TestTheErrorNamesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "missing", "x.txt")
	want := fmt.Sprintf("open %s: the folder %q: no such file or directory", name, filepath.Dir(name))
	if err := WriteFile(name, content("x")); err == nil || err.Error() != want {
		t.Errorf("WriteFile: %v, want %s", err, want)
	}
	if err := Writable(name); err == nil || err.Error() != want {
		t.Errorf("Writable: %v, want %s", err, want)
	}
}

// TestACrashLeavesTheOldFileOrTheNew: a replacement is stopped after every sync and rename, and
// what a crash would leave at that point is the old file or the new one.
func TestACrashLeavesTheOldFileOrTheNew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.bin")
	want := []string{"", "old"}
	points := 0
	d := record(t, func(d *disk) {
		points++
		for _, v := range d.views(name) {
			if !slices.Contains(want, v) {
				t.Errorf("point %d: a crash leaves %q, want one of %q", points, v, want)
			}
		}
	})
	if err := WriteFile(name, content("old")); err != nil {
		t.Fatal(err)
	}
	want = []string{"old", "new"}
	if err := WriteFile(name, content("new")); err != nil {
		t.Fatal(err)
	}
	if v := d.views(name); !slices.Equal(v, []string{"new"}) {
		t.Errorf("after WriteFile a crash leaves one of %q, want new", v)
	}
	if points != 6 { // two times: the file's sync, the rename, the folder's sync
		t.Errorf("%d syncs and renames, want 6", points)
	}
}

// TestACrashLeavesAWholeDirectoryOrNone: the same holds for a directory of files.
func TestACrashLeavesAWholeDirectoryOrNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "array")
	d := record(t, func(d *disk) {
		for i := range 3 {
			for _, v := range d.views(fmt.Sprintf("%s/%d", name, i)) {
				if v != "" && v != fmt.Sprint(i) {
					t.Errorf("a crash leaves %q in file %d of the folder", v, i)
				}
			}
		}
	})
	f, err := NewFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		testfile.Write(t, fmt.Sprintf("%s/%d", f.Path, i), fmt.Append(nil, i))
	}
	if err := f.Place(name); err != nil {
		t.Fatal(err)
	}
	if v := d.views(name); !slices.Equal(v, []string{"folder"}) {
		t.Errorf("after Place a crash leaves one of %q, want the folder", v)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, name); len(got) != 3 {
		t.Errorf("Remove after Place left %v, want the three files", got)
	}
}

// TestAFailureKeepsTheOldFile: the old file stays if the writer, the sync or the rename fails.
func TestAFailureKeepsTheOldFile(t *testing.T) {
	oldSync, oldRename := fsync, rename
	t.Cleanup(func() { fsync, rename = oldSync, oldRename })
	failed := errors.New("failed")
	for _, step := range []string{"write", "sync", "rename"} {
		t.Run(step, func(t *testing.T) {
			fsync, rename = oldSync, oldRename
			name := filepath.Join(t.TempDir(), "a.bin")
			if err := WriteFile(name, content("old")); err != nil {
				t.Fatal(err)
			}
			write := content("new")
			switch step {
			case "write":
				write = func(w *os.File) error { _, _ = io.WriteString(w, "ne"); return failed }
			case "sync": // a disk that reports a failed write late reports it here
				fsync = func(*os.File) error { return failed }
			case "rename":
				rename = func(string, string) error { return failed }
			}
			if err := WriteFile(name, write); !errors.Is(err, failed) {
				t.Errorf("WriteFile returned %v", err)
			}
			if got := read(t, name); got != "old" {
				t.Errorf("the file holds %q, want old", got)
			}
			if got := names(t, filepath.Dir(name)); len(got) != 1 {
				t.Errorf("the folder holds %v, want the file alone", got)
			}
		})
	}
}

// TestMissingSyncOfDirectoriesIsNoFailure: some network file systems answer EINVAL when a directory
// is synced.
func TestMissingSyncOfDirectoriesIsNoFailure(t *testing.T) {
	old := fsync
	t.Cleanup(func() { fsync = old })
	answer := syscall.EINVAL
	fsync = func(f *os.File) error {
		if st, err := f.Stat(); err == nil && st.IsDir() {
			return &os.PathError{Op: "sync", Path: f.Name(), Err: answer}
		}
		return f.Sync()
	}
	name := filepath.Join(t.TempDir(), "a.bin")
	if err := WriteFile(name, content("new")); err != nil {
		t.Error(err)
	}
	answer = syscall.EIO
	if err := WriteFile(name, content("newer")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a folder whose sync fails: %v, want EIO", err)
	}
}

// asNetwork has a test see all file systems as such that may not show locks to other hosts.
func asNetwork(t *testing.T) {
	t.Helper()
	old := isLocal
	t.Cleanup(func() { isLocal = old })
	isLocal = func(*os.File) bool { return false }
}

// TestLeftoversAreRemovedAtOnce: on a local file system, the lock alone says whether the owner of a temporary file or
// folder lives, however young it is.
func TestLeftoversAreRemovedAtOnce(t *testing.T) {
	old := isLocal
	t.Cleanup(func() { isLocal = old })
	isLocal = func(*os.File) bool { return true }
	dir := t.TempDir()
	for _, name := range []string{".dead.chaski-0123456789abcdef.tmp", ".live.chaski-1123456789abcdef.tmp"} {
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, ".folder"+name, "below")} {
			testfile.Write(t, path, []byte("x"))
		}
	}
	want := []string{".folder.live.chaski-1123456789abcdef.tmp", ".live.chaski-1123456789abcdef.tmp"}
	for _, name := range want {
		lock, err := Lock(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
	}
	clean(dir)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}

// TestARunThatLooksForLeftoversAtTheWrongMoment: a file or folder that another run removes between its creation and its
// lock is made again.
func TestARunThatLooksForLeftoversAtTheWrongMoment(t *testing.T) {
	old := beforeLock
	t.Cleanup(func() { beforeLock = old })
	times := 0
	beforeLock = func(path string) {
		if times++; times%3 == 0 {
			return
		}
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "a"), content("a")); err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Place(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the folder holds %v", got)
	}
}

// TestWritableBesideALookForLeftovers promises that the file that Writable tries is not taken for a leftover.
func TestWritableBesideALookForLeftovers(t *testing.T) {
	dir := t.TempDir()
	over := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				clean(dir)
			}
		}
	})
	for range 1000 {
		// A look for every attempt is more than create expects of other runs: see attempts.
		if err := Writable(filepath.Join(dir, "a")); err != nil && !errors.Is(err, ErrLocked) {
			t.Error(err)
			break
		}
	}
	close(over)
	looks.Wait()
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestLeftoversOfKilledRunsAreRemoved: on a network file system, temporary files are removed unless they are locked,
// young or of another program.
func TestLeftoversOfKilledRunsAreRemoved(t *testing.T) {
	asNetwork(t)
	dir := t.TempDir()
	long := time.Now().Add(-2 * staleAge)
	make := func(name string, old bool) string {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, nil)
		if old {
			if err := os.Chtimes(path, long, long); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	make(".a.tif.chaski-0123456789abcdef.tmp", true)
	make(".a.tif.chaski-1123456789abcdef.tmp", false)
	locked := make(".a.tif.chaski-2123456789abcdef.tmp", true)
	make(".a.tif.chaski-21234.tmp", true)
	make("a.tif.chaski-0123456789abcdef.tmp", true)
	lock, err := Lock(locked)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, ".array.chaski-3123456789abcdef.tmp")
	if err := os.MkdirAll(folder+"/below", 0o777); err != nil {
		t.Fatal(err)
	}
	// In another folder somebody writes a file; the folder's own time is old.
	alive := filepath.Join(dir, ".array.chaski-4123456789abcdef.tmp")
	if err := os.MkdirAll(alive, 0o777); err != nil {
		t.Fatal(err)
	}
	make(filepath.Base(alive)+"/tiles", false)
	for _, path := range []string{folder + "/below", folder, alive} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(filepath.Join(dir, "b"), content("b")); err != nil {
		t.Fatal(err)
	}
	want := []string{".a.tif.chaski-1123456789abcdef.tmp", ".a.tif.chaski-21234.tmp",
		".a.tif.chaski-2123456789abcdef.tmp", ".array.chaski-4123456789abcdef.tmp",
		"a.tif.chaski-0123456789abcdef.tmp", "b"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder holds\n%v, want\n%v", got, want)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	clean(dir)
	if got := names(t, dir); slices.Contains(got, filepath.Base(locked)) {
		t.Error("a file that is no longer locked is still there")
	}
}

// TestTwoWritersOfOneNameDoNotMeet: of two writers of one name the last to finish wins, with its
// complete contents.
func TestTwoWritersOfOneNameDoNotMeet(t *testing.T) {
	name := filepath.Join(t.TempDir(), strings.Repeat("n", 250)) // a temporary name must not get too long either
	err := WriteFile(name, func(w *os.File) error {
		if err := WriteFile(name, content("inner")); err != nil {
			return err
		}
		return content("outer")(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got != "outer" {
		t.Errorf("the file holds %q", got)
	}
}

// TestALockIsHeldUntilItIsClosed: a directory cannot be locked twice until the first lock is
// closed.
func TestALockIsHeldUntilItIsClosed(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no locks here")
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("the second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// TestAFolderThatCannotBeLockedIsRemoved: nothing stays of a folder that the caller does not get. Where the file system
// has no locks, the caller gets it all the same.
func TestAFolderThatCannotBeLockedIsRemoved(t *testing.T) {
	old := lockFolder
	t.Cleanup(func() { lockFolder = old })
	for _, failed := range []error{syscall.EMFILE, errors.ErrUnsupported} {
		dir := t.TempDir()
		lockFolder = func(string) (*os.File, error) { return nil, failed }
		f, err := NewFolder(filepath.Join(dir, "x"))
		if failed == errors.ErrUnsupported {
			if err != nil || f.Remove() != nil {
				t.Errorf("without locks: %v", err)
			}
		} else if !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		if left := names(t, dir); len(left) > 0 {
			t.Errorf("%v leaves %q", failed, left)
		}
	}
}

// TestFoldersAboveAreOnDisk: a file in folders that did not exist is there after a crash only if their names are.
func TestFoldersAboveAreOnDisk(t *testing.T) {
	root := t.TempDir()
	old := fsync
	t.Cleanup(func() { fsync = old })
	var synced []string
	fsync = func(f *os.File) error { synced = append(synced, f.Name()); return old(f) }
	if err := MkdirAll(filepath.Join(root, "a/b/c")); err != nil {
		t.Fatal(err)
	}
	if want := []string{root, root + "/a", root + "/a/b"}; !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
	synced = nil
	if err := MkdirAll(filepath.Join(root, "a/b/c")); err != nil || synced != nil {
		t.Errorf("folders that are there: %v, synced %q", err, synced)
	}
}

// TestLeftoversAreRemovedWhereTheFileIs: link/../x is beside what the link leads to, not beside the link.
func TestLeftoversAreRemovedWhereTheFileIs(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a", "b/deep"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../b/deep", filepath.Join(root, "a", "link")); err != nil {
		t.Fatal(err)
	}
	const stale = ".x.chaski-0123456789abcdef.tmp"
	long := time.Now().Add(-2 * staleAge)
	for _, dir := range []string{"a", "b"} {
		path := filepath.Join(root, dir, stale)
		if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(root+"/a/link/../x", content("x")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(root, "b")); !slices.Equal(got, []string{"deep", "x"}) {
		t.Errorf("beside the file are %v", got)
	}
	if got := names(t, filepath.Join(root, "a")); !slices.Equal(got, []string{stale, "link"}) {
		t.Errorf("beside the link are %v", got)
	}
}

// TestRenameNew promises that a file takes a new name, with no other one left, and no name that is another file's.
func TestRenameNew(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for k, want := range []error{nil, fs.ErrExist} {
		testfile.Write(t, from, []byte{byte(k)})
		if err := RenameNew(from, to); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", k, err, want)
		}
		if got := read(t, to); got != "\x00" {
			t.Errorf("%d: %q has the name", k, got)
		}
		if _, err := os.Lstat(from); (err == nil) != (want != nil) {
			t.Errorf("%d: the old name: %v", k, err)
		}
	}
	if err := RenameNew(filepath.Join(dir, "c"), filepath.Join(dir, "d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
}

// TestScratch: a temporary file holds what is written, and nothing is left of it.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	file, release, err := Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("tile"), 1<<20); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := file.ReadAt(got, 1<<20); err != nil || string(got) != "tile" {
		t.Errorf("%q, %v", got, err)
	}
	release()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
