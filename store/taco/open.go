package taco

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// Options of Open. The zero value is ready.
type Options struct {
	// BasePath is the folder of the source files of a catalog (__TACOCAT__, .tacocat, TACOLLECTION.json),
	// where they are not beside it.
	BasePath string
	// Mode says what becomes of columns that not all of several containers have. Default
	// tables.Intersection.
	Mode tables.Mode
	// Chosen: who opens the dataset chooses among the rows of level 0 for each container or some of them, and joins their
	// columns. Of those that not all have nothing is said then; Mode tables.Strict is that of the levels below.
	Chosen bool
	// Only are filters that all will be applied to the dataset. Files of a TACOLLECTION.json whose extents prove that no
	// row of theirs matches one of these filters are not opened. Open does not apply the filters to the rows of the others.
	Only []Filter
	// Limits bound what one container may cost.
	Limits Limits
	// Warn is told what was left out or filled where containers differ. Default: nobody.
	Warn func(message string)
}

// Limits bound what one container may cost.
type Limits = model.Limits

// Kind says whether a sample holds bytes or other samples.
type Kind = model.Kind

// The kinds of samples.
const (
	File   = model.File
	Folder = model.Folder
)

// Whole is the offset and the size of an entry that is a file of its own.
const Whole = model.Whole

// Entry is one sample: what it is called, and where its bytes are.
type Entry = model.Entry

// Report counts what Dataset.Verify checked.
type Report = model.Report

// format is what the first bytes of a path, or what lies in a folder, say that it is.
type format uint8

const (
	none format = iota
	zipFormat
	tacocatFile
	tacocatFolder
	folderFormat
	tacollection
	tortillaFormat
)

// headBytes is what is read to tell formats apart, and what their headers fit in.
const headBytes = 256

// tell says what a path is. Of a file it returns an open reader and its first bytes.
func tell(ctx context.Context, o source.Opener, uri string) (f format, r source.Reader, head []byte, err error) {
	r, err = o.Open(ctx, uri)
	if err == nil {
		head = make([]byte, min(headBytes, r.Size()))
		if err := r.ReadAt(ctx, head, 0); err != nil {
			return none, nil, nil, errors.Join(fault.WithFile(err, uri), r.Close())
		}
		if !isPage(uri, head) {
			return tellBytes(head), r, head, nil
		}
		err = errors.Join(fault.New(fault.Unsupported, "file", 0, "is no container: its first bytes are of HTML"), r.Close())
	}
	if unreachable(err) {
		return none, nil, nil, err
	}
	f, ferr := tellFolder(ctx, o, uri)
	if f == none {
		return none, nil, nil, errors.Join(ferr, err)
	}
	return f, nil, nil, nil
}

// isPage reports whether an answer of HTTP is a page, as servers give it for a folder.
func isPage(uri string, head []byte) bool {
	s := source.Scheme(uri)
	return (s == "http" || s == "https") && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// readsPage reports whether what was opened is one: some servers have a page for every name. It costs no
// request.
func readsPage(ctx context.Context, uri string, r source.Reader) bool {
	head := make([]byte, min(headBytes, r.Size()))
	return isPage(uri, []byte("<")) && r.ReadAt(ctx, head, 0) == nil && isPage(uri, head)
}

// unreachable reports whether a request failed again and again: no other one is made to find out what is
// there, each would take as long.
func unreachable(err error) bool {
	var re *source.RequestError
	return errors.As(err, &re) && re.Attempts > 1
}

func tellBytes(head []byte) format {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return zipFormat
	case bytes.HasPrefix(head, []byte("TACOCAT\x00")):
		return tacocatFile
	case bytes.HasPrefix(head, []byte("#y")), bytes.HasPrefix(head, []byte("WX")):
		return tortillaFormat
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return tacollection
	}
	return none
}

// tellFolder looks for what containers have in their folder.
func tellFolder(ctx context.Context, o source.Opener, uri string) (format, error) {
	for _, c := range [...]struct {
		name string
		f    format
	}{{"METADATA/level0.parquet", folderFormat}, {"level0.parquet", tacocatFolder}, {"COLLECTION.json", folderFormat}} {
		r, err := o.Open(ctx, taco2.Join(uri, c.name))
		if err == nil && readsPage(ctx, uri, r) {
			err = r.Close()
		} else if err == nil {
			return c.f, r.Close()
		}
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		if unreachable(err) {
			return none, err
		}
	}
	return none, nil
}

// Is reports whether a path is a container, or claims to be one by its name.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	name := path.Base(strings.TrimRight(uri, "/"))
	switch strings.ToLower(path.Ext(name)) {
	case ".tacozip", ".taco", ".tortilla", ".tacocat":
		return true
	}
	if name == "__TACOCAT__" || name == "TACOLLECTION.json" {
		return true
	}
	f, r, _, err := tell(ctx, o, uri)
	if r != nil {
		return errors.Join(err, r.Close()) == nil && f != none && f != tacollection
	}
	if err != nil {
		return ctx.Err() == nil && !unreachable(err) && catalogIn(ctx, o, uri) != ""
	}
	return f != none
}

// Open opens containers as one dataset: their rows one after the other. Of a folder that holds a
// catalog, that is opened. Containers of different hierarchies are fault.Unsupported; what is none is too.
//
// Of each, the header and the document about the collection are read; tables when they are asked for, or
// at once where Options.Mode is strict about the columns of several.
// The dataset keeps readers open until Close.
func Open(ctx context.Context, opener source.Opener, paths []string, o Options) (*Dataset, error) {
	d := &Dataset{
		opener: newPooledOpener(opener), mode: o.Mode, chosen: o.Chosen, warn: o.Warn, unpadded: map[int]bool{},
		images: lru.New[node, *tiff.Image](imageBytes), groups: map[group]*Dataset{},
	}
	if d.warn == nil {
		d.warn = func(string) {}
	}
	byPath, err := d.open(ctx, paths, o, false)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.parts = slices.Concat(byPath...)
	d.ends = make([]int, len(paths)+1)
	for i, parts := range byPath {
		d.ends[i+1] = d.ends[i] + len(parts)
	}
	if err = d.sameHierarchy(ctx); err == nil {
		err = d.wholeSets()
	}
	if err == nil {
		err = d.strict(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// strict reads the tables of all levels where all are to have the same columns.
func (d *Dataset) strict(ctx context.Context) error {
	for k := 0; d.mode == tables.Strict && len(d.parts) > 1 && k < d.Levels(); k++ {
		if _, err := d.Level(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// openAtOnce is the number of containers that are opened at the same time.
const openAtOnce = 8

// open opens paths, and returns the containers of each. Those that a TACOLLECTION.json names
// (listed) cannot be one themselves.
func (d *Dataset) open(ctx context.Context, paths []string, o Options, listed bool) ([][]model.Container, error) {
	parts, errs := make([][]model.Container, len(paths)), make([]error, len(paths))
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i, p := range paths {
		g.Go(func() error {
			parts[i], errs[i] = d.openOne(ctx, p, o, listed)
			return errs[i]
		})
	}
	failed := g.Wait() != nil
	if !failed {
		return parts, nil
	}
	for _, c := range slices.Concat(parts...) {
		errs = append(errs, c.Close())
	}
	return nil, firstOf(errs)
}

// flat returns the containers of several paths as those of one.
func flat(parts [][]model.Container, err error) ([]model.Container, error) {
	return slices.Concat(parts...), err
}

// firstOf returns the first error, whichever came first in time.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// openOne opens one path, which may stand for several containers.
func (d *Dataset) openOne(ctx context.Context, uri string, o Options, listed bool) ([]model.Container, error) {
	f, r, head, err := tell(ctx, d.opener, uri)
	if unreachable(err) {
		return nil, fault.WithFile(err, uri)
	}
	if err != nil {
		if in := catalogIn(ctx, d.opener, uri); in != "" {
			return d.openOne(ctx, in, o, listed)
		}
		if set := partsOf(ctx, d.opener, uri); set != nil {
			return flat(d.open(ctx, set, o, listed))
		}
		if err = notFound(err); fault.KindOf(err) == fault.Unsupported && !source.IsRemote(uri) {
			err = fault.New(fault.Unsupported, "folder", fault.NoOffset, "is no container: neither COLLECTION.json nor METADATA is in it")
		}
		return nil, fault.WithFile(err, uri)
	}
	base := o.BasePath
	if base == "" {
		base = parent(uri)
	}
	var c model.Container
	switch f {
	case zipFormat:
		c, err = take(taco2.OpenZIP(ctx, d.opener, uri, r, head, o.Limits))
	case tacocatFile:
		c, err = take(taco2.OpenTacocat(ctx, d.opener, uri, base, r, head, o.Limits))
	case folderFormat:
		c, err = take(taco2.OpenFolder(ctx, d.opener, uri, o.Limits))
	case tacocatFolder:
		c, err = take(taco2.OpenTacocatFolder(ctx, d.opener, uri, base, o.Limits))
	case tacollection:
		if !listed {
			return d.openCollection(ctx, uri, base, r, o)
		}
		err = fault.New(fault.Corrupt, "TACOLLECTION.json", fault.NoOffset, "is named by another one")
		err = errors.Join(fault.WithFile(err, uri), r.Close())
	case tortillaFormat:
		c, err = tortilla.Open(ctx, uri, r, head, o.Limits)
	default:
		err = errors.Join(fault.WithFile(fault.New(fault.Unsupported, "file", 0, "is no container: its first bytes are of none"), uri), r.Close())
	}
	if err != nil {
		return nil, err
	}
	return []model.Container{c}, nil
}

// catalogIn returns the catalog in a folder, or "".
func catalogIn(ctx context.Context, o source.Opener, uri string) string {
	for _, name := range [...]string{".tacocat/COLLECTION.json", "__TACOCAT__", "TACOLLECTION.json"} {
		r, err := o.Open(ctx, taco2.Join(uri, name))
		if err != nil {
			continue
		}
		page := readsPage(ctx, uri, r)
		if r.Close() == nil && !page {
			return taco2.Join(uri, strings.TrimSuffix(name, "/COLLECTION.json"))
		}
	}
	return ""
}

// take makes a nil interface of a nil pointer.
func take[C model.Container](c C, err error) (model.Container, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// notFound gives an error of the system that says so its kind.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) && fault.KindOf(err) == 0 {
		return fault.Wrap(fault.NotFound, "file", fault.NoOffset, err)
	}
	return err
}

// parent returns the folder that a path lies in. That of a URL of HTTP has its query; see taco2.Join.
func parent(uri string) string {
	query := ""
	if s := source.Scheme(uri); s == "http" || s == "https" {
		if i := strings.IndexByte(uri, '?'); i >= 0 {
			uri, query = uri[:i], uri[i:]
		}
	}
	uri = strings.TrimRight(uri, "/")
	if i := strings.LastIndexByte(uri, '/'); i >= 0 {
		return uri[:i+1] + query
	}
	return ""
}

// openCollection opens the files of a TACOLLECTION.json, except those that Options.Only cannot match.
func (d *Dataset) openCollection(ctx context.Context, uri, base string, r source.Reader, o Options) ([]model.Container, error) {
	c, err := taco2.ReadTacollection(ctx, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fault.WithFile(err, uri)
	}
	d.mu.Lock()
	d.collection = c
	d.mu.Unlock()
	var files []string
	for i, file := range c.Sources.Files {
		if !slices.ContainsFunc(o.Only, func(f Filter) bool { return !f.mayMatch(c, i) }) {
			files = append(files, taco2.Join(base, file))
		}
	}
	return flat(d.open(ctx, files, o, true))
}
