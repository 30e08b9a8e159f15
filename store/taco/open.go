package taco

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// Options configure Open. The zero value is ready to use.
type Options struct {
	// BasePath is the directory of the source files of a catalog (__TACOCAT__, .tacocat,
	// TACOLLECTION.json), if they are not beside it.
	BasePath string
	// Mode decides about columns that some of several containers lack. Default tables.Intersection.
	Mode tables.Mode
	// Chosen says that the caller selects rows of level 0 for each container, or for groups of
	// them, and joins their columns itself. Columns of level 0 that some containers lack are then
	// neither reported nor an error; with tables.Strict the levels below must still agree.
	Chosen bool
	// Filters are filters that the caller will all apply to the dataset. Files of a
	// TACOLLECTION.json are not opened if their extents prove that none of their rows matches one
	// of the filters. Open does not apply the filters to rows.
	Filters []Filter
	// Warn, if it is not nil, is called with a message for columns that were left out or filled
	// because containers differ.
	Warn func(message string)
}

// Kind says whether a sample holds bytes or other samples.
type Kind = model.Kind

// The kinds of samples.
const (
	File   = model.File
	Folder = model.Folder
)

// Whole is the offset and the size of an entry that is a whole file.
const Whole = model.Whole

// Entry is one sample: its name, and where its bytes are.
type Entry = model.Entry

// Report counts what Dataset.Verify checked.
type Report = model.Report

// Form is the form of a container.
type Form = model.Form

// Tacollection is the form of a TACOLLECTION.json, and TacocatFile the form of __TACOCAT__.
const (
	Tacollection = model.Tacollection
	TacocatFile  = model.TacocatFile
)

// headBytes is the number of bytes that are read to identify a format. The headers of all formats
// fit into it, except a tar file's.
const headBytes = 256

// identify returns the form of a path, according to its first bytes or to the entries of its directory, or Auto. If it
// is a file, it also returns an open reader and its first bytes. A file of TACO 0.2 counts as a Tortilla.
func identify(ctx context.Context, o source.Opener, uri string) (f Form, r source.Reader, head []byte, err error) {
	r, err = o.Open(ctx, uri)
	if err == nil {
		head = make([]byte, min(headBytes, r.Size()))
		if err := r.ReadAt(ctx, head, 0); err != nil {
			return model.Auto, nil, nil, errors.Join(fault.WithFile(err, uri), r.Close())
		}
		if !isHTMLPage(uri, head) {
			if f = tellBytes(head); f == model.Auto && isTar(ctx, uri, r) {
				f = model.WebDataset
			}
			return f, r, head, nil
		}
		err = errors.Join(fault.New(fault.Unsupported, "file", 0,
			"is not a container: it begins like an HTML page"), r.Close())
	}
	// A server that does not answer would let every further name wait as long.
	if source.Unreachable(err) {
		return model.Auto, nil, nil, err
	}
	if isTars(ctx, o, uri) {
		return model.WebDataset, nil, nil, nil
	}
	f, ferr := identifyDirectory(ctx, o, uri)
	if f == model.Auto {
		return model.Auto, nil, nil, errors.Join(ferr, err)
	}
	return f, nil, nil, nil
}

// isHTMLPage reports whether an HTTP response is an HTML page, which many servers return for a
// directory.
func isHTMLPage(uri string, head []byte) bool {
	s := source.Scheme(uri)
	return (s == "http" || s == "https") && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// readsHTMLPage reports whether an opened URI is an HTML page, since some servers return one for
// every name. It costs no request.
func readsHTMLPage(ctx context.Context, uri string, r source.Reader) bool {
	head := make([]byte, min(headBytes, r.Size()))
	return isHTMLPage(uri, []byte("<")) && r.ReadAt(ctx, head, 0) == nil && isHTMLPage(uri, head)
}

func tellBytes(head []byte) Form {
	switch {
	case taco3.IsCozip(head):
		return model.Cozip
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return model.ZIP
	case bytes.HasPrefix(head, []byte("TACOCAT\x00")):
		return TacocatFile
	case bytes.HasPrefix(head, []byte("#y")), bytes.HasPrefix(head, []byte("WX")):
		return model.TortillaFile
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return Tacollection
	}
	return model.Auto
}

// isTar reports whether an open file is a tar file. Only one with that extension is looked at, because its header is
// longer than headBytes, and a request more.
func isTar(ctx context.Context, uri string, r source.Reader) bool {
	head := make([]byte, min(shards.TarBlock, r.Size()))
	return path.Ext(uri) == ".tar" && r.ReadAt(ctx, head, 0) == nil && shards.IsTar(head)
}

// identifyDirectory looks for the files that containers have in their directory.
func identifyDirectory(ctx context.Context, o source.Opener, uri string) (Form, error) {
	for _, c := range [...]struct {
		name string
		f    Form
	}{{"METADATA/level0.parquet", model.TacoFolder}, {"level0.parquet", model.Tacocat},
		{"METADATA/sample.parquet", model.CozipFolder}, {"sample.parquet", model.CozipCatalog},
		{"COLLECTION.json", model.TacoFolder}, {shards.IndexName, model.MDS}} {
		file, err := o.Open(ctx, taco2.Join(uri, c.name))
		if err == nil && readsHTMLPage(ctx, uri, file) {
			err = file.Close()
		} else if err == nil && c.f == model.MDS && !shards.IsMDS(ctx, file) { // others have files of this name, too
			err = file.Close()
		} else if err == nil {
			return c.f, file.Close()
		}
		if ctx.Err() != nil {
			return model.Auto, ctx.Err()
		}
		if source.Unreachable(err) {
			return model.Auto, err
		}
	}
	return model.Auto, nil
}

// Named reports whether a path is a container by its name alone.
func Named(uri string) bool {
	name := path.Base(strings.TrimRight(uri, "/"))
	switch strings.ToLower(path.Ext(name)) {
	case ".tacozip", ".taco", ".tortilla", ".tacocat":
		return true
	}
	return name == "__TACOCAT__" || name == "TACOLLECTION.json" || isTarPattern(uri)
}

// Is reports whether a path is a container, or is Named like one.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	if Named(uri) {
		return true
	}
	form, file, _, err := identify(ctx, o, uri)
	if file != nil {
		isMDS := path.Base(uri) == shards.IndexName && shards.IsMDS(ctx, file)
		is := form != model.Auto && (form != Tacollection || isMDS)
		return errors.Join(err, file.Close()) == nil && is
	}
	if err != nil {
		return ctx.Err() == nil && !source.Unreachable(err) && catalogIn(ctx, o, uri) != ""
	}
	return form != model.Auto
}

// Open opens containers as one dataset, whose rows are theirs one after the other. If a directory
// has a catalog, the catalog is opened. Paths that are not containers, and containers with
// different hierarchies, are fault.Unsupported.
//
// Open reads the header and the collection document of each container. It reads tables when they
// are needed, or at once if Options.Mode is strict about the columns of several containers. The
// dataset keeps files open until Close.
func Open(ctx context.Context, opener source.Opener, paths []string, o Options) (*Dataset, error) {
	dataset := &Dataset{
		opener: newPooledOpener(opener), mode: o.Mode, chosen: o.Chosen, warn: o.Warn, unpadded: map[int]bool{},
		images: lru.New[node, *tiff.Image](imageBytes), groups: map[group]*Dataset{},
	}
	if dataset.warn == nil {
		dataset.warn = func(string) {}
	}
	byPath, err := dataset.open(ctx, paths, o, false)
	if err != nil {
		return nil, errors.Join(err, dataset.Close())
	}
	dataset.parts = slices.Concat(byPath...)
	dataset.ends = make([]int, len(paths)+1)
	for i, parts := range byPath {
		dataset.ends[i+1] = dataset.ends[i] + len(parts)
	}
	if err = dataset.sameHierarchy(ctx); err == nil {
		err = dataset.wholeSets()
	}
	if err == nil {
		err = dataset.strict(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, dataset.Close())
	}
	return dataset, nil
}

// strict reads the tables of all levels if all containers must have the same columns.
func (d *Dataset) strict(ctx context.Context) error {
	for k := 0; d.mode == tables.Strict && len(d.parts) > 1 && k < d.Levels(); k++ {
		if _, err := d.Level(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// openAtOnce limits the containers that are opened at a time, because opening a remote one takes
// several requests.
const openAtOnce = 8

// open opens paths and returns the containers of each. Files that a TACOLLECTION.json lists
// (listed) cannot be TACOLLECTION.json files themselves: they could list each other without end.
func (d *Dataset) open(ctx context.Context, paths []string, o Options, listed bool) ([][]*model.Container, error) {
	parts := make([][]*model.Container, len(paths))
	err := each.Of(ctx, int64(len(paths)), openAtOnce, func(ctx context.Context, i int64) (err error) {
		parts[i], err = d.openOne(ctx, paths[i], o, listed)
		return err
	})
	if err == nil {
		return parts, nil
	}
	for _, c := range slices.Concat(parts...) {
		_ = c.Close() // it was only read, and err says more
	}
	return nil, err
}

// flat joins the containers of several paths.
func flat(parts [][]*model.Container, err error) ([]*model.Container, error) {
	return slices.Concat(parts...), err
}

// openOne opens one path, which may stand for several containers.
func (d *Dataset) openOne(ctx context.Context, uri string, o Options, listed bool) ([]*model.Container, error) {
	form, file, head, err := identify(ctx, d.opener, uri)
	if source.Unreachable(err) {
		return nil, fault.WithFile(err, uri)
	}
	if err != nil {
		// Catalogs and parts are tried only after the path itself failed, since each name costs a
		// request to a remote store.
		if in := catalogIn(ctx, d.opener, uri); in != "" {
			return d.openOne(ctx, in, o, listed)
		}
		if set := partsOf(ctx, d.opener, uri); set != nil {
			// A name without a file may stand for a split container, so that users need not list
			// its parts.
			return flat(d.open(ctx, set, o, listed))
		}
		if err = notFound(err); fault.KindOf(err) == fault.Unsupported && !source.IsRemote(uri) {
			// A local directory exists, so the message must name the missing files in it.
			err = fault.New(fault.Unsupported, "folder", fault.NoOffset,
				"is not a container: it has neither COLLECTION.json nor METADATA")
		}
		return nil, fault.WithFile(err, uri)
	}
	base := o.BasePath
	if base == "" {
		base = parent(uri)
	}
	var c *model.Container
	switch form {
	case model.ZIP:
		c, err = taco2.OpenZIP(ctx, d.opener, uri, file, head)
	case model.Cozip:
		c, err = taco3.OpenZIP(ctx, d.opener, taco2.Join, uri, file, head)
	case model.CozipFolder:
		c, err = taco3.OpenFolder(ctx, d.opener, taco2.Join, uri)
	case model.CozipCatalog:
		c, err = taco3.OpenCatalog(ctx, d.opener, taco2.Join, uri, base)
	case TacocatFile:
		c, err = taco2.OpenTacocat(ctx, d.opener, uri, base, file, head)
	case model.TacoFolder:
		c, err = taco2.OpenFolder(ctx, d.opener, uri)
	case model.Tacocat:
		c, err = taco2.OpenTacocatFolder(ctx, d.opener, uri, base)
	case Tacollection:
		if path.Base(uri) == shards.IndexName && shards.IsMDS(ctx, file) {
			if err = file.Close(); err == nil {
				c, err = shards.OpenMDS(ctx, d.opener, base, taco2.Join)
			}
			break
		}
		if !listed {
			return d.openCollection(ctx, uri, base, file, o)
		}
		err = fault.New(fault.Corrupt, "TACOLLECTION.json", fault.NoOffset, "is listed by another TACOLLECTION.json")
		err = errors.Join(fault.WithFile(err, uri), file.Close())
	case model.WebDataset:
		c, err = openTars(ctx, d.opener, uri, file)
	case model.MDS:
		c, err = shards.OpenMDS(ctx, d.opener, uri, taco2.Join)
	case model.TortillaFile:
		c, err = tortilla.Open(ctx, uri, file, head)
	default:
		err = errors.Join(fault.WithFile(fault.New(fault.Unsupported, "file", 0,
			"is not a container: its first bytes are of no known format"), uri), file.Close())
	}
	if err != nil {
		return nil, err
	}
	return []*model.Container{c}, nil
}

// catalogIn returns the catalog in a directory, or "".
func catalogIn(ctx context.Context, o source.Opener, uri string) string {
	for _, name := range [...]string{".tacocat/COLLECTION.json", "__TACOCAT__", "TACOLLECTION.json"} {
		file, err := o.Open(ctx, taco2.Join(uri, name))
		if err != nil {
			continue
		}
		page := readsHTMLPage(ctx, uri, file)
		if file.Close() == nil && !page {
			return taco2.Join(uri, strings.TrimSuffix(name, "/COLLECTION.json"))
		}
	}
	return ""
}

// notFound gives an error of the system its kind if the file does not exist.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) && fault.KindOf(err) == 0 {
		return fault.Wrap(fault.NotFound, "file", fault.NoOffset, err)
	}
	return err
}

// parent returns the directory of a path. For an HTTP URL it keeps the query; see taco2.Join.
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

// openCollection opens the files of a TACOLLECTION.json, except those that Options.Filters rule
// out.
func (d *Dataset) openCollection(ctx context.Context, uri, base string, r source.Reader,
	o Options) ([]*model.Container, error) {
	collection, err := taco2.ReadTacollection(ctx, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fault.WithFile(err, uri)
	}
	d.mu.Lock()
	d.collection = collection
	d.mu.Unlock()
	var files []string
	for i, file := range collection.Sources.Files {
		if !slices.ContainsFunc(o.Filters, func(f Filter) bool { return !f.mayMatch(collection, i) }) {
			files = append(files, taco2.Join(base, file))
		}
	}
	return flat(d.open(ctx, files, o, true))
}
