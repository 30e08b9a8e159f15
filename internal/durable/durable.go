// Package durable writes files and folders that are complete or absent under their names, also after a kill or a crash
// of the machine.
//
// Each is written under a temporary name beside its own. It is synced, then renamed, and then the folder that holds the
// name is synced: without the first sync, a file system may keep the name and lose the content; without the second, it
// may forget the name of a file that was reported as written. Temporary names are random, since process numbers repeat
// (every container has a process 1), and their owners hold locks, so a later run can recognise the leftovers of a
// killed one.
package durable

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/internal/pathname"
)

// Tests replace these, to fail or to record the state that a crash would leave.
var (
	fsync      = (*os.File).Sync
	rename     = os.Rename
	exchange   = Exchange
	lockFolder = Lock
)

// Inject replaces how files are synced and renamed until restore is called: for tests that every failure of a write is
// handled. It is not safe beside other writers.
func Inject(flush func(*os.File) error, move func(from, to string) error) (restore func()) {
	oldSync, oldRename := fsync, rename
	fsync = serial(flush)
	rename = move
	return func() { fsync, rename = oldSync, oldRename }
}

// InjectExchange is Inject for how Folder.Replace exchanges two folders.
func InjectExchange(swap func(a, b string) error) (restore func()) {
	old := exchange
	exchange = swap
	return func() { exchange = old }
}

// serial returns a function that Sync may call from several goroutines: one of them calls flush at a time. Only tests
// have it: the lock is for what their flush records. Writers call File.Sync without a lock.
func serial(flush func(*os.File) error) func(*os.File) error {
	var once sync.Mutex
	return func(f *os.File) error {
		once.Lock()
		defer once.Unlock()
		return flush(f)
	}
}

// Temporary names are .NAME.chaski-RANDOM.tmp. They are hidden, so patterns such as *.tif skip them, and others are
// unlikely to choose such a name.
const (
	mark   = ".chaski-"
	suffix = ".tmp"
)

// longestBase is how much of NAME a temporary name repeats. File systems allow 255 bytes; mark, suffix, the leading dot
// and 16 digits take 29 of them.
const longestBase = 200

// staleAge is the time since the last write after which clean removes a temporary file or folder that is not on a local
// file system. A lock shows that its writer lives, but some network file systems do not show locks to other hosts.
// There, recent writes show it.
const staleAge = 10 * time.Minute

// WriteFile replaces the file name by a new one with the content that write gives it; write must not
// close it. On an error the old file stays as it was, or absent. It has the mode of a new file under
// the umask.
func WriteFile(name string, write func(*os.File) error) error {
	file, locked, err := create(name)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = fsync(file)
	}
	// Unlocked it is closed first, since such a system may not rename an open file.
	if !locked {
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		err = place(file.Name(), name)
	}
	// The lock ends once the file has its name, since until then it keeps others from removing it.
	if locked {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// Scratch creates a temporary file, and returns what closes and removes it. Where the system can remove open files, the
// file loses its name at once: a program that is killed leaves nothing behind.
func Scratch() (file *os.File, release func(), err error) {
	file, err = os.CreateTemp("", "chaski-*"+suffix)
	if err != nil {
		return nil, nil, err
	}
	unnamed := os.Remove(file.Name()) == nil
	return file, func() {
		_ = file.Close()
		if !unnamed {
			_ = os.Remove(file.Name())
		}
	}, nil
}

// Writable returns an error if WriteFile could not create the file name, so a program can say so before it has
// worked for the content.
func Writable(name string) error {
	file, locked, err := create(name)
	if err != nil {
		return err
	}
	// It is removed under the lock, since without it another run takes the file for a leftover and removes it.
	if locked {
		err = errors.Join(os.Remove(file.Name()), file.Close())
	} else {
		err = errors.Join(file.Close(), os.Remove(file.Name()))
	}
	if st, serr := os.Stat(name); serr == nil && st.IsDir() {
		err = errors.Join(err, &fs.PathError{Op: "write", Path: name, Err: errors.New("it is a directory")})
	}
	return err
}

// create creates and locks a file under a temporary name for name. Where there are no locks, the file's age alone keeps
// others from removing it: see staleAge.
func create(name string) (f *os.File, locked bool, err error) {
	for range attempts {
		f, err = os.OpenFile(temporary(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, false, about(name, err)
		}
		beforeLock(f.Name())
		err = lockOpen(f)
		if err == nil && isNamed(f, f.Name()) {
			return f, true, nil
		}
		if err != nil && !errors.Is(err, ErrLocked) {
			return f, false, nil
		}
		// Another run has looked for leftovers before the lock, and removes the file.
		_ = f.Close()
	}
	return nil, false, &fs.PathError{Op: "create", Path: name, Err: ErrLocked}
}

// about returns an error of creating a temporary file or folder for name as one about name, which the user knows, and
// about the folder of name if that is missing.
func about(name string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = name
		if errors.Is(failed.Err, fs.ErrNotExist) {
			failed.Err = fmt.Errorf("the folder %q: %w", parent(name), failed.Err)
		}
	}
	return err
}

// attempts bounds how often a temporary name is made anew because another run took it for a leftover. Each run looks
// through a folder once, so a second run in the same microsecond is needed for each.
const attempts = 16

// beforeLock is called between the creation and the lock of a temporary file or folder: tests remove it there.
var beforeLock = func(string) {}

// Rename syncs the file or folder from with all that is below it, and renames it to to. Both are on one file system.
func Rename(from, to string) error {
	if err := Sync(from); err != nil {
		return err
	}
	return place(from, to)
}

// RenameNew renames a file unless there is one with the new name, which is fs.ErrExist. It says nothing of whether the
// name is on disk. On some systems and file systems the file has both names for a moment, and keeps them if the process
// is killed then.
func RenameNew(from, to string) error {
	if err := renameNew(from, to); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// syncs is how many files Sync waits for at a time. A journaling file system writes them together: 40,000 files of 10
// KB on ext4 took 48 s one by one. Each takes a file descriptor, and a process may have 1,024.
const syncs = 64

// Sync waits until the files and folders at and below path are on the disk. It opens them, hence the caller closes
// those that it wrote before it calls. The folders follow, once each: their names are useless without the files.
func Sync(path string) error {
	path, err := withoutParents(path)
	if err != nil {
		return err
	}
	var folders []string
	files := newPool(syncFile)
	err = filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			folders = append(folders, path)
		case e.Type().IsRegular():
			return files.add(path)
		}
		return nil
	})
	if err = errors.Join(err, files.wait()); err != nil {
		return err
	}
	return syncAll(slices.Values(folders), SyncNames)
}

// pool syncs paths at the same time.
type pool struct {
	group  errgroup.Group
	sync   func(path string) error
	failed atomic.Bool
}

func newPool(sync func(path string) error) *pool {
	p := &pool{sync: sync}
	p.group.SetLimit(syncs)
	return p
}

// add syncs a path. After a failure it returns filepath.SkipAll, and wait has the error.
func (p *pool) add(path string) error {
	if p.failed.Load() {
		return filepath.SkipAll
	}
	p.group.Go(func() error {
		err := p.sync(path)
		if err != nil {
			p.failed.Store(true)
		}
		return err
	})
	return nil
}

func (p *pool) wait() error { return p.group.Wait() }

// syncAll syncs paths until one fails.
func syncAll(paths iter.Seq[string], sync func(path string) error) error {
	p := newPool(sync)
	for path := range paths {
		if p.add(path) != nil {
			break
		}
	}
	return p.wait()
}

// syncFile waits until the content of a file is on the disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(fsync(file), file.Close())
}

// SyncNames waits until the names in a folder are on the disk.
func SyncNames(folder string) error {
	file, err := os.Open(folder)
	if err != nil {
		return err
	}
	err = fsync(file)
	if unsupported(err) {
		// It is no failure: some systems and network file systems lack a sync of folders.
		err = nil
	}
	return errors.Join(err, file.Close())
}

// MkdirAll creates a folder and those above it that are missing, and waits until their names are on the disk.
func MkdirAll(path string) error {
	path = pathname.Join(path)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := parent(path)
	if above != path {
		if err := MkdirAll(above); err != nil {
			return err
		}
	}
	// Another run may create it at the same time, as one does that converts into the same folder.
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncNames(above)
}

// withoutParents returns a path without "..": filepath.WalkDir drops it by its text, and then walks elsewhere if the
// name before it is a link.
func withoutParents(path string) (string, error) {
	if !pathname.HasParent(path) {
		return path, nil
	}
	dir, err := filepath.EvalSymlinks(parent(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// parent returns the folder that the last name of a path is in. Unlike filepath.Dir it keeps "..", since the
// name before may be a link.
func parent(path string) string {
	dir, _ := filepath.Split(pathname.Join(path))
	return cmp.Or(pathname.Join(dir), ".")
}

// place renames from to to and syncs the folder of to.
func place(from, to string) error {
	if err := rename(from, to); err != nil {
		return err
	}
	return SyncNames(parent(to))
}

// Folder is a folder that is written under a temporary name.
type Folder struct {
	// Path is the temporary name, in which the owner creates files.
	Path string

	lock *os.File // nil where folders cannot be locked
}

// NewFolder creates a folder that Place or Remove ends. Its temporary name repeats the base of name, in name's folder.
func NewFolder(name string) (*Folder, error) {
	for range attempts {
		path := temporary(name)
		if err := os.Mkdir(path, 0o777); err != nil {
			return nil, about(name, err)
		}
		beforeLock(path)
		lock, err := lockFolder(path)
		switch {
		case err == nil || errors.Is(err, errors.ErrUnsupported):
			return &Folder{Path: path, lock: lock}, nil
		case !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist): // such as too many open files
			return nil, errors.Join(err, os.Remove(path))
		}
		// Another run has looked for leftovers before the lock, and removes the folder.
	}
	return nil, &fs.PathError{Op: "create", Path: name, Err: ErrLocked}
}

// Place gives the folder its name, which must not be there unless it is an empty folder. All files must be closed.
func (f *Folder) Place(name string) error {
	defer f.unlock()
	return Rename(f.Path, name)
}

// Remove removes the folder and its content. After Place has succeeded it does nothing.
func (f *Folder) Remove() error {
	defer f.unlock()
	return os.RemoveAll(f.Path)
}

func (f *Folder) unlock() {
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

// temporary returns a temporary name for name, after it removed what killed runs left in the same folder.
func temporary(name string) string {
	dir, base := filepath.Split(pathname.Join(name))
	cleanOnce(dir)
	var digits [8]byte
	_, _ = rand.Read(digits[:]) // never fails: see crypto/rand
	return pathname.Join(dir, "."+base[:min(len(base), longestBase)]+mark+hex.EncodeToString(digits[:])+suffix)
}

// cleaned holds the folders that this process has looked through. Looking again for each file would
// make writing n files into one folder cost n² names.
var cleaned sync.Map

func cleanOnce(dir string) {
	key, err := pathname.Abs(dir)
	if err != nil {
		return
	}
	if _, seen := cleaned.LoadOrStore(key, true); !seen {
		clean(key)
	}
}

// clean removes leftovers of killed runs from a folder. It ignores errors, since the leftovers only take space.
func clean(dir string) {
	file, err := os.Open(dir)
	if err != nil {
		return
	}
	defer file.Close()
	local := isLocal(file)
	for {
		// In pieces, since a folder may hold millions of chips.
		names, err := file.ReadDir(1024)
		for _, e := range names {
			if isTemporary(e.Name()) {
				removeStale(pathname.Join(dir, e.Name()), local)
			}
		}
		if err != nil {
			return
		}
	}
}

// isTemporary reports whether this package made the name.
func isTemporary(name string) bool {
	rest, ok := strings.CutSuffix(name, suffix)
	if !ok || !strings.HasPrefix(name, ".") {
		return false
	}
	i := strings.LastIndex(rest, mark)
	if i < 0 {
		return false
	}
	digits, err := hex.DecodeString(rest[i+len(mark):])
	return err == nil && len(digits) == 8
}

// lastWrite returns the time of the last write to a file, or to a folder and everything below it, because a folder's
// own time does not change while its files grow. Anything that cannot be examined counts as written now.
func lastWrite(path string) (last time.Time) {
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	if err != nil {
		return time.Now()
	}
	return last
}

// removeStale removes a file or folder whose owner is gone. On a local file system, it is if nobody holds the lock.
func removeStale(path string, local bool) {
	// Only files and folders: to open a named pipe waits for a writer.
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() && !st.IsDir() ||
		!local && time.Since(lastWrite(path)) < staleAge {
		return
	}
	lock, err := Lock(path)
	if err != nil {
		// It stays, since somebody writes it, or this file system cannot tell.
		return
	}
	_ = os.RemoveAll(path)
	_ = lock.Close()
}
