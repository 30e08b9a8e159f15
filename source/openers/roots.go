package openers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// Roots are the directories, and prefixes of remote URIs, below which files may be opened. Its methods reach local
// files by os.Root, so a link that is exchanged between two steps is refused, not followed. On behalf of a path
// that begins below a root, they look at files in the root alone: an error must not reveal what exists elsewhere. A
// nil *Roots allows all files.
type Roots struct {
	dirs []string // local ones absolute and without links
	text string   // see String
	all  bool     // "/" is one
}

// NewRoots follows the links of the directories once. Missing ones allow nothing. It returns
// nil for nil.
func NewRoots(dirs []string) *Roots {
	if dirs == nil {
		return nil
	}
	roots := &Roots{dirs: []string{}}
	for _, d := range dirs {
		parsed, err := source.Parse(d)
		if err != nil {
			continue // nobody can open it
		}
		if parsed.Remote() {
			roots.dirs = append(roots.dirs, strings.TrimSuffix(parsed.Name, "/"))
			continue
		}
		abs, err := pathname.Abs(parsed.Local())
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err == nil {
			roots.dirs = append(roots.dirs, abs)
			roots.all = roots.all || abs == "/" || parsed.Name == "/" // of all volumes, where there are some
		}
	}
	roots.text = fmt.Sprintf("%q", roots.dirs)
	return roots
}

// String returns what the roots allow, for keys: equal ones allow the same. It is empty for nil.
func (r *Roots) String() string {
	if r == nil {
		return ""
	}
	return r.text
}

// Bounded reports whether some local files may not be opened.
func (r *Roots) Bounded() bool { return r != nil && !r.all }

// errOutside is the cause of the error about a path outside of the roots.
var errOutside = errors.New("outside of the served directories")

func outside(path string) error { return notFound(path, errOutside) }

// notFound returns the error about a path that leads to no file that may be opened.
func notFound(path string, cause error) error {
	return &fault.Error{Kind: fault.NotFound, File: path, Part: "file", Off: fault.NoOffset, Msg: cause.Error(),
		Err: cause}
}

// Outside reports whether an error says that a path leads out of the roots.
func Outside(err error) bool { return errors.Is(err, errOutside) }

// Allow returns the path to open for p: without roots p itself, otherwise p after following symbolic links. The error
// about a path outside of the roots does not reveal whether a file exists. A remote URI must start with one of the
// roots and contain neither ".." nor anything that a server could take for it. The returned path must be opened by
// these Roots, because links may change in between.
// For a part of a file the rules hold for that file.
func (r *Roots) Allow(name string) (string, error) {
	parsed, err := source.Parse(name)
	if err != nil {
		return "", err
	}
	return r.allow(parsed)
}

// allow is Allow of a parsed name.
func (r *Roots) allow(path source.Path) (string, error) {
	real, err := r.real(path)
	if err == errOutside || err == fs.ErrNotExist { // real does not wrap them
		err = notFound(path.Name, err)
	}
	return real, err
}

// real returns the path to open, or errOutside, or fs.ErrNotExist, or an error of the system.
func (r *Roots) real(path source.Path) (string, error) {
	switch {
	case path.Part != nil:
		file, err := r.allow(path.Part.File)
		if err != nil {
			return "", err
		}
		return path.Part.Name(file), nil
	case r == nil:
		return path.Name, nil
	case path.Remote():
		return path.Name, r.allowRemote(path)
	}
	abs, err := pathname.Abs(path.Local())
	if err != nil {
		return "", errOutside
	}
	if r.all {
		return abs, nil
	}
	real, err := r.realFile(abs)
	if file, inside, ok := source.Split(abs); ok && err != nil { // FILE.h5::ARRAY, STORE.zarr::ARRAY, …
		if real, err = r.realFile(file); err == nil {
			real += source.Separator + inside
		}
	}
	return real, err
}

// realFile is real for an absolute local path.
func (r *Roots) realFile(abs string) (string, error) {
	walk := walker{roots: r, at: top(abs), rest: pathname.Names(abs[len(filepath.VolumeName(abs)):])}
	err := walk.walk()
	switch {
	case err != nil && walk.blind, err == nil && r.of(walk.at) == "":
		return "", errOutside
	case err != nil && Missing(err): // without permission a file in a root may exist
		return "", fs.ErrNotExist
	case err != nil:
		return "", err
	}
	return walk.at, nil
}

// allowRemote returns errOutside, or an error about the scheme that wraps it, for a URI that begins with none of the
// roots, or may lead out of them.
func (r *Roots) allowRemote(path source.Path) error {
	uri, scheme := path.Name, path.Scheme
	if slices.Contains(r.dirs, scheme+":/") { // the whole scheme
		return nil
	}
	if strings.Contains(uri, "/..") || strings.Contains(uri, "\\") || !straight(scheme, uri) {
		return errOutside
	}
	served := false
	for _, root := range r.dirs {
		if uri == root || strings.HasPrefix(uri, root+"/") {
			return nil
		}
		served = served || strings.HasPrefix(root, scheme+":/")
	}
	if !served {
		return notFound(uri, fmt.Errorf("%w, none of which begins with %s://", errOutside, scheme))
	}
	return errOutside
}

// straight reports whether the escapes in a URI cannot lead out of a directory. Only HTTP servers decode a path part by
// part; there no part may hide a separator or dots. The query after "?" is not part of the path.
func straight(scheme, uri string) bool {
	if scheme != "http" && scheme != "https" {
		return !strings.Contains(uri, "%")
	}
	path, _, _ := strings.Cut(uri, "?")
	path, _, _ = strings.Cut(path, "#")
	for part := range strings.SplitSeq(path, "/") {
		if !strings.Contains(part, "%") {
			continue
		}
		name, err := url.PathUnescape(part)
		if err != nil || strings.ContainsAny(name, "/\\%\x00") || strings.HasPrefix(name, "..") || name == "." {
			return false
		}
	}
	return true
}

// of returns the outermost root that a path without links lies in, or "". The outermost one matters: a program that can
// write below it may replace an inner root by a link.
func (r *Roots) of(p string) string {
	root := ""
	for _, d := range r.dirs {
		if (root == "" || len(d) < len(root)) && within(p, d) {
			root = d
		}
	}
	return root
}

// leadsTo reports whether a root lies in p or is p: p is then known to be a directory and no link.
func (r *Roots) leadsTo(p string) bool {
	return slices.ContainsFunc(r.dirs, func(d string) bool { return within(d, p) })
}

// within reports whether p is dir or lies below it, by their text.
func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) &&
		(len(p) == len(dir) || dir == top(dir) || os.IsPathSeparator(p[len(dir)]))
}

// top returns the directory above all others: of the same volume, where there are volumes.
func top(abs string) string { return filepath.VolumeName(abs) + string(filepath.Separator) }

// walker resolves a path name by name, as the kernel does.
type walker struct {
	roots *Roots
	at    string   // the directory so far, without links
	rest  []string // the names after it
	// blind is set by the first name outside that no root lies below. Whether it exists must not show: ".."
	// could lead from it back to a root, so it is refused from then on.
	blind bool
	links int
}

// maxLinks is how many links a path may lead through. Linux allows 40, Go's filepath.EvalSymlinks 255.
const maxLinks = 255

func (w *walker) walk() error {
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		switch name {
		case ".":
			continue
		case "..":
			if w.blind {
				return errOutside
			}
			if err := w.directory(); err != nil {
				return err
			}
			w.at = filepath.Dir(w.at)
			continue
		}
		next := filepath.Join(w.at, name)
		if w.roots.leadsTo(next) && w.roots.of(next) == "" {
			w.at = next
			continue
		}
		if err := w.step(next); err != nil {
			return err
		}
	}
	return nil
}

// step goes to next, a name in the current directory, or to where it leads.
func (w *walker) step(next string) error {
	w.blind = w.blind || w.roots.of(next) == ""
	// A parent may have been exchanged for a link out of the roots just now. That reveals only whether next is a link,
	// because files are opened by os.Root.
	info, err := os.Lstat(next)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		w.at = next
		return nil
	}
	if w.links++; w.links > maxLinks {
		return syscall.ELOOP
	}
	target, err := os.Readlink(next)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		w.at = top(target)
		target = target[len(filepath.VolumeName(target)):]
	}
	w.rest = append(pathname.Names(target), w.rest...)
	return nil
}

// directory returns an error unless the current path is a directory, below which ".." is.
func (w *walker) directory() error {
	st, err := os.Lstat(w.at)
	if err == nil && !st.IsDir() {
		err = syscall.ENOTDIR
	}
	return err
}

// openFile opens a file or directory below the roots for reading, without waiting for the writer of a named pipe.
func (r *Roots) openFile(path string) (*os.File, error) {
	// Most paths come from Allow. For others, os.Root refuses all paths that lead out, and some that do not.
	if filepath.IsAbs(path) && !pathname.HasParent(path) {
		if f, err := r.openBelow(path); err == nil {
			return f, nil
		}
	}
	real, err := r.allow(source.Path{Name: path})
	if err != nil {
		return nil, err
	}
	f, err := r.openBelow(real)
	return f, rootError(err, path)
}

// openContent opens a local file or directory for reading, without waiting for the writer of a named pipe. failed is
// why its state is not known.
func (r *Roots) openContent(path string) (f content, now state, failed, err error) {
	if r.Bounded() {
		file, err := r.openFile(path)
		if err != nil {
			return nil, now, nil, err
		}
		now, failed = stateOfFile(file)
		return file, now, failed, nil
	}
	file, err := openHandle(path)
	if err != nil {
		return nil, now, nil, err
	}
	now, failed = file.stat()
	return file, now, failed, nil
}

// openBelow opens an absolute path by os.Root.
func (r *Roots) openBelow(path string) (*os.File, error) {
	root, name, err := r.root(path)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return f, cmp.Or(err, root.Close())
}

// root opens the root that an absolute path without ".." lies in, and returns the path's name in it.
func (r *Roots) root(path string) (*os.Root, string, error) {
	dir := r.of(path)
	if dir == "" {
		return nil, "", outside(path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	name := strings.TrimLeft(path[len(dir):], string(filepath.Separator))
	return root, cmp.Or(name, "."), nil
}

// inRoot calls use with the root that a path leads into, and the name below that root.
func (r *Roots) inRoot(path string, use func(root *os.Root, name string) error) error {
	real, err := r.allow(source.Path{Name: path})
	if err != nil {
		return err
	}
	root, name, err := r.root(real)
	if err != nil {
		return err
	}
	return rootError(cmp.Or(use(root, name), root.Close()), path)
}

// rootError puts the original path into errors of os.Root. os.Root refuses links that were exchanged after Allow by an
// error of its own, which is not an errno.
func rootError(err error, path string) error {
	var pe *fs.PathError
	var errno syscall.Errno
	switch {
	case !errors.As(err, &pe):
		return err
	case !errors.As(err, &errno):
		return outside(path)
	}
	return &fs.PathError{Op: "open", Path: path, Err: errno}
}

// Stat is os.Stat below the roots.
func (r *Roots) Stat(path string) (fs.FileInfo, error) {
	if !r.Bounded() {
		return os.Stat(path)
	}
	var st fs.FileInfo
	err := r.inRoot(path, func(root *os.Root, name string) (err error) {
		st, err = root.Stat(name)
		return err
	})
	return st, err
}

// ReadDir is os.ReadDir below the roots.
func (r *Roots) ReadDir(path string) ([]fs.DirEntry, error) {
	if !r.Bounded() {
		return os.ReadDir(path)
	}
	var list []fs.DirEntry
	err := r.inRoot(path, func(root *os.Root, name string) error {
		// OpenRoot has an error of its own for a file, as it has for what leads out of the root.
		if st, err := root.Stat(name); err == nil && !st.IsDir() {
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		}
		dir, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		list, err = entries(dir)
		return cmp.Or(err, dir.Close())
	})
	return list, err
}

// Names returns the names of the entries of a directory if it is local, or the opener is a Namer or a Lister.
// Otherwise the error is fault.Unsupported.
func Names(ctx context.Context, o source.Opener, folder string) ([]string, error) {
	if n, ok := o.(source.Namer); ok {
		return n.Names(ctx, folder)
	}
	if p, _ := source.Parse(folder); !p.Remote() {
		return RootsOf(o).names(p)
	}
	return entriesOf(func(each func(source.Entry) error) error { return List(ctx, o, folder, each) })
}

// names implements Names of a local directory. Links to directories count as such.
func (r *Roots) names(p source.Path) ([]string, error) {
	folder, dir := p.Name, p.Local()
	list, err := r.ReadDir(dir)
	if err != nil {
		kind := fault.Unsupported
		if errors.Is(err, fs.ErrNotExist) {
			kind = fault.NotFound
		}
		return nil, fault.WithFile(fault.Wrap(kind, "folder", err), folder)
	}
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = entry.Name()
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			st, err := r.Stat(pathname.Join(dir, entry.Name()))
			isDir = err == nil && st.IsDir()
		}
		if isDir {
			names[i] += "/"
		}
	}
	return names, nil
}

// entries lists a directory with what its entries are now: fs.DirEntry.Info would look by name later.
func entries(dir *os.Root) ([]fs.DirEntry, error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	list, err := file.ReadDir(-1)
	for i, e := range list {
		known := &dirEntry{DirEntry: e}
		known.info, known.err = dir.Lstat(e.Name())
		list[i] = known
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, cmp.Or(err, file.Close())
}

// dirEntry is an entry of a directory with its information, or the error about it.
type dirEntry struct {
	fs.DirEntry
	info fs.FileInfo
	err  error
}

// Info implements fs.DirEntry.
func (e *dirEntry) Info() (fs.FileInfo, error) { return e.info, e.err }

// Below returns an opener for files and objects below the roots. Remote objects are opened by o, local files by its own
// Files unless "/" is a root. If o is nil it opens no remote objects. For nil roots, and if o is already the opener of
// these roots, it returns o. Close closes the files, not o.
func Below(o source.Opener, roots []string) source.Opener {
	if roots == nil {
		return o
	}
	if b, ok := o.(*below); ok && slices.Equal(b.rootNames, roots) {
		return o
	}
	r := NewRoots(roots)
	return &below{base: o, rootNames: slices.Clone(roots), roots: r, files: Files{roots: r}}
}

// RootsOf returns the roots of an opener from Below, nil of any other one.
func RootsOf(o source.Opener) *Roots {
	switch o := o.(type) {
	case *below:
		return o.roots
	case *Files:
		return o.roots
	}
	return nil
}

type rootsKey struct{}

// WithRoots returns a context whose requests follow redirects only to what roots allow.
func WithRoots(ctx context.Context, roots *Roots) context.Context {
	return context.WithValue(ctx, rootsKey{}, roots)
}

// RootsIn returns the roots of WithRoots, or nil. A reader of remote objects keeps the roots that its Open had, and
// openers do not share what they cache between roots.
func RootsIn(ctx context.Context) *Roots {
	roots, _ := ctx.Value(rootsKey{}).(*Roots)
	return roots
}

// below is the opener of Below.
type below struct {
	base      source.Opener
	rootNames []string // as the caller wrote them
	roots     *Roots
	files     Files
}

// Open implements Opener.
func (b *below) Open(ctx context.Context, uri string) (source.Reader, error) {
	return openName(ctx, b, uri, source.Known{})
}

// OpenKnown implements KnownOpener.
func (b *below) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return openName(ctx, b, uri, k)
}

// route implements router.
func (b *below) route(ctx context.Context, p source.Path) (context.Context, source.Opener, error) {
	switch {
	case !p.Remote() && (b.roots.Bounded() || b.base == nil):
		return ctx, &b.files, nil
	case !p.Remote():
		return ctx, b.base, nil
	case b.base == nil:
		return nil, nil, noDriver(p)
	}
	_, err := b.roots.allow(p)
	return WithRoots(ctx, b.roots), b.base, err
}

// List implements Lister.
func (b *below) List(ctx context.Context, folder string, each func(source.Entry) error) error {
	return listName(ctx, b, folder, each)
}

// Names implements Namer.
func (b *below) Names(ctx context.Context, folder string) ([]string, error) {
	return namesOf(ctx, b, folder)
}

// Close closes the files that are kept open.
func (b *below) Close() error { return b.files.Close() }
