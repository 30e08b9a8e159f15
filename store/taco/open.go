package taco

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tiff"
)

// Options configure Open. The zero value is ready to use.
type Options struct {
	// BasePath is the directory of the source files of a catalog (__TACOCAT__, .tacocat,
	// TACOLLECTION.json), if they are not beside it.
	BasePath string
	// Mode decides about columns that some of several containers lack. Default column.Intersection.
	Mode column.Mode
	// Chosen says that the caller selects rows of level 0 for each container, or for groups of
	// them, and joins their columns itself. Columns of level 0 that some containers lack are then
	// neither reported nor an error; with column.Strict the levels below must still agree.
	Chosen bool
	// Filters are filters that the caller will all apply to the dataset. Files of a TACOLLECTION.json are not opened if
	// their extents prove that none of their rows matches one of the filters. Open does not apply the filters to rows.
	Filters []spacetime.Filter
	// Warn, if it is not nil, is called with a message for columns that were left out or filled
	// because containers differ.
	Warn func(message string)
}

// Report counts what Dataset.Verify checked.
type Report = model.Report

// Form is the form of a container.
type Form = model.Form

// Tacollection is the form of a TACOLLECTION.json, and TacocatFile the form of __TACOCAT__.
const (
	Tacollection = model.Tacollection
	TacocatFile  = model.TacocatFile
)

// containerFormat is how a form of containers is recognised and opened.
type containerFormat struct {
	form Form
	// is reports whether an open file is one, by its first bytes, or nil for directories.
	is func(head []byte) bool
	// inside is a file that tells a directory, or "".
	inside string
	open   func(ctx context.Context, c *model.Container) error
}

// formats are the formats of containers. The first that recognises a file or a directory counts.
var formats = []containerFormat{
	{model.Cozip, taco3.IsCozip, "", taco3.OpenZIP},
	{model.ZIP, begins("PK\x03\x04"), "", taco2.OpenZIP},
	{model.TacocatFile, begins("TACOCAT\x00"), "", taco2.OpenTacocat},
	{model.TortillaFile, begins(tortilla.MagicTortilla), "", tortilla.Open}, // or a TACO 0.2: the file says which
	{model.PlainTaco, begins(tortilla.MagicTACO), "", tortilla.Open},
	{model.TacoFolder, nil, "METADATA/level0.parquet", taco2.OpenFolder},
	{model.Tacocat, nil, "level0.parquet", taco2.OpenFolder},
	{model.CozipFolder, nil, "METADATA/sample.parquet", taco3.OpenDirectory},
	{model.CozipCatalog, nil, "sample.parquet", taco3.OpenDirectory},
	{model.TacoFolder, nil, "COLLECTION.json", taco2.OpenFolder},
	{model.Tacollection, isJSON, "", nil}, // its files are opened, one by one
}

// headBytes is the number of bytes that are read to identify a format. The headers of all formats
// fit into it.
const headBytes = 256

func begins(magic string) func(head []byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

func isJSON(head []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) }

// identify returns the format of a path, according to its first bytes or to the entries of its directory, or nil. If it
// is a file, it is open in from.
func identify(ctx context.Context, o source.Opener, uri string) (f *containerFormat, from model.Source, err error) {
	from = model.Source{Opener: o, URI: uri}
	from.File, err = o.Open(ctx, uri)
	if err == nil {
		from.Head = make([]byte, min(headBytes, from.File.Size()))
		if err := from.File.ReadAt(ctx, from.Head, 0); err != nil {
			return nil, from, errors.Join(fault.WithFile(err, uri), from.File.Close())
		}
		if !isHTMLPage(uri, from.Head) {
			noun := magic.OfName(uri)
			if noun != "" && noun != magic.ZIP && begins("PK\x03\x04")(from.Head) {
				return nil, from, errors.Join(fault.WithFile(fault.At(fault.Unsupported, "file", 0, "%s",
					cmp.Or(magic.Refusal(uri), "is not a container: it is "+noun)), uri), from.File.Close())
			}
			for i := range formats {
				if is := formats[i].is; is != nil && is(from.Head) {
					return &formats[i], from, nil
				}
			}
			return nil, from, nil
		}
		err = errors.Join(fault.At(fault.Unsupported, "file", 0,
			"is not a container: it begins like an HTML page"), from.File.Close())
	}
	from.File = nil
	// A server that does not answer would let every further name wait as long.
	if source.Unreachable(err) {
		return nil, from, err
	}
	f, ferr := identifyDirectory(ctx, o, uri)
	if f == nil {
		err = errors.Join(ferr, err)
		return nil, from, err
	}
	return f, from, nil
}

// isHTMLPage reports whether an HTTP response is an HTML page, which many servers return for a directory.
func isHTMLPage(uri string, head []byte) bool {
	return source.IsWeb(uri) && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// readsHTMLPage reports whether an opened URI is an HTML page, since some servers return one for
// every name. It costs no request.
func readsHTMLPage(ctx context.Context, uri string, r source.Reader) bool {
	head := make([]byte, min(headBytes, r.Size()))
	return isHTMLPage(uri, []byte("<")) && r.ReadAt(ctx, head, 0) == nil && isHTMLPage(uri, head)
}

// identifyDirectory looks for the files that containers have in their directory.
func identifyDirectory(ctx context.Context, o source.Opener, uri string) (*containerFormat, error) {
	for i := range formats {
		f := &formats[i]
		if f.inside == "" {
			continue
		}
		file, err := o.Open(ctx, source.Join(uri, f.inside))
		if err == nil {
			page := readsHTMLPage(ctx, uri, file)
			if err = file.Close(); !page {
				return f, err
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if source.Unreachable(err) {
			return nil, err
		}
	}
	return nil, nil
}

// Named implements store.Named.
func (Kind) Named(p source.Path) bool {
	name := path.Base(strings.TrimRight(p.Name, "/"))
	return magic.Named(name).Class == magic.Container || name == "__TACOCAT__" || name == "TACOLLECTION.json"
}

// Is implements store.Kind: it reports whether a path is a container, or is Named like one.
func (k Kind) Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	if k.Named(p) {
		return true, nil
	}
	format, opened, err := identify(ctx, o, p.Name)
	if err != nil {
		if ctx.Err() != nil || source.Unreachable(err) {
			return false, source.Outage(err)
		}
		in, err := catalogIn(ctx, o, p.Name)
		return in != "", err
	}
	if opened.File != nil && opened.File.Close() != nil {
		return false, nil
	}
	// Many files are JSON, so the first bytes must not make one a container.
	return format != nil && format.form != Tacollection, nil
}

// Open opens containers as one dataset, whose rows are theirs one after the other. If a directory has a catalog, the
// catalog is opened. Paths that are not containers, and containers with different hierarchies, are fault.Unsupported.
//
// Open reads the header and the collection document of each container. It reads tables when they are needed, or at once
// if Options.Mode is strict about the columns of several containers. The dataset keeps files open until Close.
func Open(ctx context.Context, opener source.Opener, paths []string, o Options) (*Dataset, error) {
	dataset := &Dataset{
		opener: newPooledOpener(opener), mode: o.Mode, chosen: o.Chosen, warn: o.Warn, unpadded: map[int]bool{},
		images: lru.New[levelRow, *tiff.Image](imageBytes), groups: map[group]*Dataset{},
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
	dataset.all, dataset.joined = join(dataset.parts, o.Mode, o.Chosen, dataset.warn)
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
	for k := 0; d.mode == column.Strict && len(d.parts) > 1 && k < d.Levels(); k++ {
		if _, err := d.Level(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

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
	not := "is not a container"
	if o.BasePath != "" {
		not += ", which base_path is for"
	}
	format, opened, err := identify(ctx, d.opener, uri)
	if source.Unreachable(err) {
		return nil, fault.WithFile(err, uri)
	}
	if err != nil {
		// Catalogs and parts are tried only after the path itself failed, since each name costs a
		// request to a remote store.
		var set []string
		in, lost := catalogIn(ctx, d.opener, uri)
		if in == "" && lost == nil {
			// A name without a file may stand for a split container: users may leave it to chaski to find the parts.
			set, lost = partsOf(ctx, d.opener, uri)
		}
		switch {
		case lost != nil:
			return nil, fault.WithFile(lost, uri)
		case in != "":
			return d.openOne(ctx, in, o, listed)
		case set != nil:
			return flat(d.open(ctx, set, o, listed))
		}
		if err = notFound(err); fault.KindOf(err) == fault.Unsupported && !source.IsRemote(uri) {
			// A local directory exists, so the message must name the missing files in it.
			err = fault.New(fault.Unsupported, "folder", "%s: it has neither COLLECTION.json nor METADATA", not)
		}
		return nil, fault.WithFile(err, uri)
	}
	opened.Base = cmp.Or(o.BasePath, parent(uri))
	switch {
	case format == nil:
		return nil, errors.Join(fault.WithFile(fault.At(fault.Unsupported, "file", 0,
			"%s: its first bytes are of no known format", not), uri), opened.File.Close())
	case format.form == Tacollection && listed:
		err = fault.New(fault.Corrupt, "TACOLLECTION.json", "is listed by another TACOLLECTION.json")
		return nil, errors.Join(fault.WithFile(err, uri), opened.File.Close())
	case o.BasePath != "" && !listed && !format.form.Indexes():
		err = fault.New(fault.Unsupported, "container", "base_path is %q, which is for indexes of containers "+
			"(.tacocat, __TACOCAT__, TACOLLECTION.json), and this is none", o.BasePath)
		return nil, errors.Join(fault.WithFile(err, uri), opened.File.Close())
	case format.form == Tacollection:
		return d.openCollection(ctx, opened, o)
	}
	c, err := model.Open(ctx, opened, format.form, format.open)
	if err != nil {
		return nil, err
	}
	return []*model.Container{c}, nil
}

// catalogIn returns the catalog in a directory, or "". An error says that this cannot be found out.
func catalogIn(ctx context.Context, o source.Opener, uri string) (string, error) {
	for _, name := range [...]string{".tacocat/COLLECTION.json", "__TACOCAT__", "TACOLLECTION.json"} {
		file, err := o.Open(ctx, source.Join(uri, name))
		if source.Unreachable(err) {
			return "", err
		}
		if err != nil {
			continue
		}
		page := readsHTMLPage(ctx, uri, file)
		if file.Close() == nil && !page {
			return source.Join(uri, strings.TrimSuffix(name, "/COLLECTION.json")), nil
		}
	}
	return "", nil
}

// notFound gives an error of the system its kind if the file does not exist.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) && fault.KindOf(err) == 0 {
		return fault.Wrap(fault.NotFound, "file", err)
	}
	return err
}

// parent returns the directory of a path. For an HTTP URL it keeps the query; see source.Join.
func parent(uri string) string {
	query := ""
	if source.IsWeb(uri) {
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

// openCollection opens the files of a TACOLLECTION.json, except those that Options.Filters rule out.
func (d *Dataset) openCollection(ctx context.Context, from model.Source, o Options) ([]*model.Container, error) {
	collection, err := taco2.ReadTacollection(ctx, from.File)
	if err = errors.Join(err, from.File.Close()); err != nil {
		return nil, fault.WithFile(err, from.URI)
	}
	d.mu.Lock()
	d.collection = collection
	d.mu.Unlock()
	var files []string
	for i, file := range collection.Sources.Files {
		if !slices.ContainsFunc(o.Filters, func(f spacetime.Filter) bool { return !mayMatch(&f, collection, i) }) {
			files = append(files, source.Join(from.Base, file))
		}
	}
	return flat(d.open(ctx, files, o, true))
}
