// Package listing lists the rasters below directories and globs, local or remote, and matches the
// patterns of paired fields.
package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Listing holds files below a directory, in the order of the bytes of their paths.
type Listing struct {
	Base  string // the directory, as the user wrote it
	Roots *openers.Roots
	Paths []string
	Sizes []int64
	Etags []string // nil for local files
	times uint64   // a hash of the names of local files and of when they were changed
	File  bool     // the source is one local file
	// Beside are the names of files that may say more of rasters (sidecar.Is), by the directory of the rasters,
	// which may have none.
	Beside map[string]sidecar.Names
	// Shards are the Parquet files, which count where there are no rasters: then they are one table.
	Shards []string
	// Metadata are the tables of a directory of images, as Hugging Face has it, or of folders in it. OnlyPictures says
	// that there are no rasters but pictures, which then count.
	Metadata     []string
	OnlyPictures bool
	Picture      string // the first picture that was left out, or ""

	unread          string // a file of rasters that are not read, or ""
	files           Files
	tars            []*Pattern    // of the tars of a directory that are read, nil: all
	skippedPictures int           // pictures that were left out
	stores          int           // stores that were left out
	budgetPaths     int           // paths that are charged to the budget
	prefix          string        // of the path of the file that was seen last
	names           sidecar.Names // of Beside, for the folder of that file
}

// MaxShards bounds the Parquet files of one table, each of whose footers stays in memory.
const MaxShards = 1 << 14

// Files are the files that count.
type Files uint8

// The zero Files are rasters that are no pictures. Others are flags. A Zarr store is one path, also if it is a
// directory.
const (
	Rasters  Files = 0
	Pictures Files = 1
	Stores   Files = 2
	AllFiles Files = 4
	Members  Files = 8 // of tars, which count as directories
	// Unnamed are files whose names say no format, which their first bytes or a file beside them tells.
	Unnamed Files = 16
)

// FilesOf returns the files that a path, a glob or a pattern names.
func FilesOf(path string) Files {
	files := Rasters
	if _, _, ok := source.CutTar(path); ok {
		files = Members
	}
	if source.InDatabase(path) {
		files |= Unnamed
	}
	switch format := magic.Named(path); {
	case format.Class == magic.Picture:
		return files | Pictures
	case format.Class == magic.Store:
		return files | Stores
	case format.Class == 0 && isUnnamed(path) && strings.ContainsAny(path, "{*?["):
		return files | Unnamed
	}
	return files
}

// isUnnamed reports whether the extension of a name does not tell the format: it is unknown, or several formats share
// it, as Erdas and ENVI share .img.
func isUnnamed(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == erdasEnd || len(ext) > 1 && !strings.ContainsAny(ext, "{}*?[/") && magic.OfName(name) == ""
}

// List lists the files that count of a directory, a glob or one file. Pictures and stores count, too, where the glob or
// the file is one by its name, or a directory has nothing else. Of the tars of a directory it reads those whose members
// patterns name, all without such patterns: each member costs a read.
func List(ctx context.Context, src string, r *openers.Roots, o source.Opener, wanted Files, patterns ...string) (
	*Listing, error) {
	wanted |= FilesOf(src)
	patterns = slices.DeleteFunc(patterns, func(p string) bool {
		_, _, ok := source.CutTar(p)
		return !ok
	})
	listings, _ := ctx.Value(sharedKey{}).(*shared)
	if listings == nil {
		return list(ctx, src, r, o, wanted, patterns...)
	}
	key := sharedListing{src, wanted, strings.Join(patterns, "\n")}
	return listings.Get(ctx, key, func() (*Listing, error) { return list(ctx, src, r, o, wanted, patterns...) })
}

// sharedListing names a listing of an opening.
type sharedListing struct {
	src      string
	files    Files
	patterns string
}

type sharedKey struct{}

// shared are the listings of one opening, by source.
type shared = keylock.Values[sharedListing, *Listing]

// Share returns a context in which each source is listed once. It is for one opening, with one opener and its roots: a
// mixture may name a directory many times. Callers must not change the listings.
func Share(ctx context.Context) context.Context {
	return context.WithValue(ctx, sharedKey{}, &shared{})
}

// pathBytes is the memory of a file in a listing beside its path, which a table holds as a second string: twice a
// string of 16 bytes, a size of 8, and the entry of the directory while it is read, about 100.
const pathBytes = 140

// chargeStep is how many files are charged at a time.
const chargeStep = 1024

// charge charges the paths from the number of those that were charged before.
func (l *Listing) charge(ctx context.Context, all bool) error {
	if !all && len(l.Paths)-l.budgetPaths < chargeStep {
		return nil
	}
	n := int64(0)
	for _, p := range l.Paths[l.budgetPaths:] {
		n += pathBytes + 2*int64(len(p))
	}
	l.budgetPaths = len(l.Paths)
	return budget.Grow(ctx, n)
}

func list(ctx context.Context, src string, r *openers.Roots, o source.Opener, wanted Files, patterns ...string) (
	*Listing, error) {
	if source.IsRemote(src) {
		return listRemote(ctx, src, r, o, wanted)
	}
	src = source.LocalPath(src)
	dir := src
	if IsGlob(src) {
		if err := checkLength(src); err != nil {
			return nil, err
		}
		dir, _ = splitLocal(src)
	}
	// Checked before anything else, so a refusal does not reveal which files exist outside the roots.
	if _, err := r.Allow(dir); err != nil && !openers.Missing(err) {
		return nil, err
	}
	st, err := r.Stat(src)
	var l *Listing
	switch {
	case err == nil && st.IsDir():
		// Links are resolved, so the path of a sample does not depend on the link by which the user names the
		// directory.
		if src, err = r.Allow(src); err == nil {
			src, err = filepath.EvalSymlinks(src) // of a path from roots, which has no links, it makes no other
		}
		if err == nil {
			l = &Listing{Base: src, Roots: r, files: wanted}
			l.tars = tarsOf(patterns)
			err = l.walk(ctx, src, r, o, nil)
			if again := l.instead(); again != Rasters && err == nil {
				return again.only(list(ctx, src, r, o, again, patterns...))
			}
		}
	case err == nil && source.EndsTar(src):
		return listRemote(ctx, source.TarName(src), r, o, wanted)
	case err == nil:
		l = &Listing{Base: pathname.Dir(src), Roots: r, Paths: []string{filepath.Base(src)},
			Sizes: []int64{st.Size()}, File: true}
		l.addTime(l.Paths[0], st)
	case openers.Missing(err) && IsGlob(src): // Missing includes names that are too long: a long pattern is not a name
		l, err = glob(ctx, src, r, o, wanted)
	}
	if err != nil {
		return nil, fault.WithFile(notFound(err), src)
	}
	return l.done(ctx, src)
}

// done returns a listing to which all files of src were added.
func (l *Listing) done(ctx context.Context, src string) (*Listing, error) {
	if err := cmp.Or(l.charge(ctx, true), l.notRead()); err != nil {
		return nil, fault.WithFile(err, src)
	}
	l.sort()
	return l, nil
}

// metadataNames are the names of the table of a directory of images.
var metadataNames = []string{"metadata.csv", "metadata.jsonl", "metadata.parquet"}

// counts reports whether a file belongs to the listing, by its name. It notes the tables beside rasters, and how many
// pictures and stores it leaves out.
func (l *Listing) counts(name string) bool {
	if l.files&AllFiles != 0 {
		return true
	}
	if slices.Contains(metadataNames, name[strings.LastIndexByte(name, '/')+1:]) && len(l.Metadata) <= MaxShards {
		l.Metadata = append(l.Metadata, name)
		return false
	}
	class := magic.Named(name).Class
	if len(l.Shards) <= MaxShards && class == magic.Parquet {
		l.Shards = append(l.Shards, name)
	}
	switch {
	case class == magic.Picture && l.files&Pictures == 0:
		l.Picture = cmp.Or(l.Picture, name)
		l.skippedPictures++
		return false
	case class == magic.Store && l.files&Stores == 0:
		l.stores++
		return false
	}
	if class == 0 && l.files&Unnamed != 0 && isUnnamed(name) && (path.Ext(name) != erdasEnd || l.hasHeader(name)) {
		return true
	}
	if l.files&Unnamed != 0 && source.InDatabase(name) {
		return true
	}
	if l.unread == "" && magic.Way(name) != "" {
		l.unread = name
	}
	return class.Pixels() || class == magic.Store
}

// erdasEnd is an ending of rasters of Erdas, which are not read, and of ENVI, which have a header beside them.
const erdasEnd = ".img"

// hasHeader reports whether there is a header of an ENVI raster beside a local file.
func (l *Listing) hasHeader(name string) bool {
	for _, stem := range [...]string{strings.TrimSuffix(name, path.Ext(name)), name} {
		if _, err := l.Roots.Stat(pathname.Join(l.Base, stem+".hdr")); err == nil {
			return true
		}
	}
	return false
}

// instead returns what to list of a directory that lacks rasters: stores, or pictures if there are no tables.
func (l *Listing) instead() Files {
	switch {
	case len(l.Paths) > 0:
	case l.stores > 0:
		return Stores
	case l.skippedPictures > 0 && len(l.Shards) == 0:
		return Pictures
	}
	return Rasters
}

// notRead returns an error if the only files found are rasters of formats that chaski does not read.
func (l *Listing) notRead() error {
	if len(l.Paths)+len(l.Shards)+len(l.Metadata) > 0 || l.unread == "" {
		return nil
	}
	return NotRead(l.unread)
}

// NotRead returns the error for rasters of a format that is not read, by the name of one.
func NotRead(name string) error {
	return fault.New(fault.Unsupported, "dataset", "%s, such as %q, is not read: %s",
		magic.OfName(name), name, magic.Way(name))
}

// HasOwnMetadata reports whether a table of the images lies in the directory itself.
func (l *Listing) HasOwnMetadata() bool {
	return slices.ContainsFunc(l.Metadata, func(path string) bool { return !strings.Contains(path, "/") })
}

// only marks the listing of a directory that has nothing else.
func (f Files) only(l *Listing, err error) (*Listing, error) {
	if err == nil {
		l.OnlyPictures = f == Pictures
	}
	return l, err
}

func notFound(err error) error {
	if failure, ok := errors.AsType[*fault.Error](err); ok && (failure.File != "" || failure.Kind == fault.Limit) {
		return err
	}
	if openers.Missing(err) {
		return fault.Wrap(fault.NotFound, "dataset", errors.New("no such file or directory"))
	}
	return fault.Wrap(fault.Unsupported, "dataset", err)
}

// walk adds the files below dir that count and match a glob (nil: all), by their paths relative to dir. It follows
// links; every path is a sample, even if several lead to one file. A link out of the roots is an error: leaving it out
// would change the dataset silently.
func (l *Listing) walk(ctx context.Context, dir string, r *openers.Roots, o source.Opener,
	pattern *globMatcher) error {
	return r.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := cmp.Or(ctx.Err(), l.charge(ctx, false)); err != nil {
			return err
		}
		if p == dir {
			return nil
		}
		if strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		whole, below := true, true
		if pattern != nil {
			whole, below = pattern.match(rel)
		}
		if d.IsDir() {
			if whole && l.files&AllFiles == 0 && magic.Named(rel).Folder {
				if l.counts(rel) {
					l.Paths, l.Sizes = append(l.Paths, rel), append(l.Sizes, 0)
				}
				return fs.SkipDir
			}
			if !below {
				return fs.SkipDir
			}
			return nil
		}
		if below && l.files&Members != 0 && source.EndsTar(rel) && l.reads(rel) {
			return l.objects(ctx, o, source.TarName(p), rel+"/", pattern)
		}
		l.seeBeside(p, d.Name())
		keep := whole && l.counts(rel)
		if !keep && !below { // a link to a directory does not matter either
			return nil
		}
		return l.add(p, rel, d, keep, r)
	})
}

// tarsOf returns the patterns of the tars of patterns of members.
func tarsOf(patterns []string) (tars []*Pattern) {
	for _, pattern := range patterns {
		tar, _, _ := source.CutTar(pattern)
		if parsed, err := ParsePatterns([]string{tar, pattern}); err == nil {
			tars = append(tars, parsed[0])
		}
	}
	return tars
}

// reads reports whether members of a tar may match a pattern.
func (l *Listing) reads(tar string) bool {
	return l.tars == nil || slices.ContainsFunc(l.tars, func(p *Pattern) bool {
		_, ok, err := p.Match(tar, nil)
		return ok || err != nil
	})
}

// seeBeside notes a file that may say more of rasters.
func (l *Listing) seeBeside(p, name string) {
	if prefix := p[:len(p)-len(name)]; l.names == nil || prefix != l.prefix {
		folder := pathname.Dir(p)
		if source.IsRemote(p) {
			folder = strings.TrimSuffix(prefix, "/")
		}
		if l.Beside == nil {
			l.Beside = map[string]sidecar.Names{}
		}
		if l.Beside[folder] == nil {
			l.Beside[folder] = sidecar.Names{}
		}
		l.prefix, l.names = prefix, l.Beside[folder]
	}
	l.names.Add(name)
}

// add adds a file or a link, if keep is set and it is a file.
func (l *Listing) add(p, rel string, d fs.DirEntry, keep bool, r *openers.Roots) error {
	linked := d.Type()&fs.ModeSymlink != 0
	if !keep && !linked {
		return nil
	}
	var st fs.FileInfo
	var err error
	if linked {
		// A link that cannot be followed may lead to a directory of samples: it is an error. A
		// dangling link cannot.
		if st, err = r.Stat(p); !keep && (err == nil || openers.Missing(err)) {
			return nil
		}
		if openers.Missing(err) { // the error is of the sample, if a pattern makes it one
			l.Paths, l.Sizes = append(l.Paths, rel), append(l.Sizes, 0)
			return nil
		}
	} else {
		st, err = d.Info()
	}
	if err != nil {
		return fault.WithFile(fault.Wrap(fault.NotFound, "file", err), p)
	}
	if st.Mode().IsRegular() {
		l.Paths, l.Sizes = append(l.Paths, rel), append(l.Sizes, st.Size())
		l.addTime(rel, st)
	}
	return nil
}

// addTime adds a local file to the hash, in any order.
func (l *Listing) addTime(rel string, st fs.FileInfo) {
	l.times += xxh3.HashStringSeed(rel, uint64(st.ModTime().UnixNano()))
}

// Marks returns a hash of what marks the contents of the files: "etag:" and their entity tags, "mtime:" and when they
// were changed, or "" if not all are marked.
func (l *Listing) Marks() string {
	if l.Etags == nil {
		return fmt.Sprintf("mtime:%016x", l.times)
	}
	sum := digest.New()
	for _, tag := range l.Etags {
		if tag == "" {
			return ""
		}
		sum.Record([]byte(tag))
	}
	return "etag:" + sum.Hex()
}

// Path returns the path or URI of file i.
func (l *Listing) Path(i int) string {
	if source.IsRemote(l.Base) {
		return Resolve(l.Roots, l.Base, l.Paths[i])
	}
	return source.InTar(pathname.Join(l.Base, filepath.FromSlash(l.Paths[i])), l.Roots.Stat)
}

func (l *Listing) sort() {
	slices.Sort(l.Shards)
	slices.Sort(l.Metadata)
	if slices.IsSorted(l.Paths) {
		return
	}
	order := num.Range[int32](0, len(l.Paths))
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(l.Paths[a], l.Paths[b]) })
	l.Paths, l.Sizes = num.Pick(l.Paths, order), num.Pick(l.Sizes, order)
	if l.Etags != nil {
		l.Etags = num.Pick(l.Etags, order)
	}
}

// Outside reports whether a path or pattern of files leads out of the folder that is listed.
func Outside(name string) bool {
	return strings.HasPrefix(name, "../") || source.Scheme(name) != "" || filepath.IsAbs(name)
}

// Absolute returns the URI of a path or pattern that is relative to a remote folder.
func Absolute(base, name string) string {
	if !strings.HasPrefix(name, "../") {
		return name
	}
	scheme, below, _ := strings.Cut(base, "://")
	host, folder, _ := strings.Cut(below, "/")
	return scheme + "://" + host + path.Join("/", folder, name)
}

// With returns the listing with the files of another folder at the end, whose paths begin with prefix. It has no Etags.
func (l *Listing) With(prefix string, other *Listing) *Listing {
	out := *l
	out.Paths, out.Sizes, out.Etags = slices.Clone(l.Paths), append(slices.Clone(l.Sizes), other.Sizes...), nil
	for _, name := range other.Paths {
		out.Paths = append(out.Paths, prefix+name)
	}
	if other.Beside != nil {
		out.Beside = maps.Clone(other.Beside)
		maps.Copy(out.Beside, l.Beside)
	}
	return &out
}

// WithInner returns a listing that has what is inside of files, too: inner has a list for each path.
func (l *Listing) WithInner(ctx context.Context, inner [][]string) (*Listing, error) {
	out := *l
	out.Paths, out.Sizes, out.Etags = slices.Clone(l.Paths), slices.Clone(l.Sizes), nil
	out.budgetPaths = len(l.Paths)
	for i, names := range inner {
		for _, name := range names {
			out.Paths, out.Sizes = append(out.Paths, l.Paths[i]+source.Separator+name), append(out.Sizes, l.Sizes[i])
		}
	}
	err := out.charge(ctx, true)
	out.sort()
	return &out, err
}

// Folder returns the directory of a URI or path.
func Folder(uri string) string {
	if s := source.Scheme(uri); s != "" && s != "file" {
		if source.IsWeb(uri) {
			uri, _, _ = strings.Cut(uri, "?")
		}
		if i := strings.LastIndexByte(uri, '/'); i > len(s)+2 {
			return uri[:i]
		}
		return uri
	}
	return pathname.Dir(source.LocalPath(uri))
}

// Resolve resolves a name of a table, as other programs may write it (see source.Resolve), against the directory base.
// It looks at files below the roots only: what a name becomes must not reveal what exists elsewhere.
func Resolve(r *openers.Roots, base, name string) string {
	return source.ResolveFrom(name, func(uri string) string { return source.InTar(resolve(r, base, uri), r.Stat) })
}

// resolve resolves a URI of a table against the directory base. Where "a\b.tif" is no file, it is "a/b.tif", as Windows
// writes it.
func resolve(r *openers.Roots, base, uri string) string {
	switch s := source.Scheme(uri); {
	case s == "file":
		return source.LocalPath(uri)
	case s != "" || filepath.IsAbs(uri):
		return uri
	case source.Scheme(base) != "":
		return base + "/" + uri
	}
	name := pathname.Join(base, filepath.FromSlash(uri))
	if strings.Contains(uri, `\`) {
		if _, err := r.Stat(name); err != nil {
			return pathname.Join(base, strings.ReplaceAll(uri, `\`, "/"))
		}
	}
	return name
}
