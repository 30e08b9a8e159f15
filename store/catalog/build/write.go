// Package build writes catalogs: it indexes files and joins tables. It is apart from package catalog:
// readers do not import a Parquet writer.
package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Options configure Write. The zero value selects the defaults.
type Options struct {
	// Base is the directory of the catalog file. URIs of files on the same file system are written
	// relative to it, with "/", so catalog and data can move together. The default is the
	// current directory.
	Base string
	// Absolute writes absolute paths instead.
	Absolute bool
	// Workers is how many files are read in parallel. The default is the number of processors, at
	// least 4, and at least 32 if some files are remote.
	Workers int
	// MaxChunk limits a decoded chunk in bytes. The default is chunk.DefaultMaxBytes.
	MaxChunk int
	// Opener opens the files. The default opens local files.
	Opener source.Opener
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
	// Previous are catalogs in Base whose rows are reused for unchanged files: those with the same
	// URI, size and modification time, and a sound index (of a TIFF, one with masks). For listed
	// objects the ETag replaces the time; remote files that are named one by one are always read.
	// Catalogs that do not exist are skipped. Earlier catalogs win.
	Previous []string
	// Skipped, if not nil, is called for each file that cannot be indexed, in order, and the file
	// is left out. An error without a kind, such as one of the system, still ends the writing.
	Skipped func(path string, err error)
	// Members, if set, returns the rasters inside a container, and nil for a path that is something else.
	Members func(ctx context.Context, path string) ([]Member, error)
	// Join adds the columns of a table.
	Join *Join
	// Fields makes a catalog of pairs: a row for every id that the Patterns of the fields find
	// below the one path, or for every row of the table that the one path names, with the paths of the
	// fields' files in the columns that Column names (default: of the field's name; an asset of STAC items by
	// its name). The other columns of the table are columns of the catalog. The plain columns belong to the
	// first field; the columns of another field NAME are called NAME and NAME:COLUMN. Previous, Members and Join do
	// not apply to such a catalog.
	Fields []catalog.Source
	// DropIncomplete leaves out ids, or rows, for which a field has no file. Otherwise they are NotFound.
	DropIncomplete bool
	// LeftOut, if not nil, is called for each column of a table that a catalog cannot have, such as lists.
	LeftOut func(column string)
	// Partial finishes a catalog of the rows so far if an error, or the end of the context, comes
	// after the first rows. Write returns the number of its rows with the error.
	Partial bool
	// Counts, if not nil, receives the counts of files and rows.
	Counts *Counts

	beside map[string]sidecar.Names // of files beside rasters, by directory
}

// Member is a raster inside a container.
type Member struct {
	// File is the file that holds it, Path its path inside the container.
	File, Path string
	// Offset and Length are its byte range in the file; both are -1 if it is a file of its own.
	Offset, Length int64
	// Known has the size and tag of the file, if known.
	Known source.Known
	// Open opens its byte range.
	Open func(ctx context.Context) (source.Reader, error)
}

// Counts says what became of the files of a catalog.
type Counts struct {
	Rows    int // written
	Reused  int // rows taken from a previous catalog
	Skipped int // files left out
	// Incomplete counts ids left out because a field of a catalog of pairs has no file for them.
	Incomplete int
	// Unmatched counts files that lack a row in the joined table, Unused its rows that lack a file.
	Unmatched, Unused int
}

// Write writes a catalog of files, and of the rasters below the directories and globs among the paths, each file once,
// in the order of the bytes of their URIs. It returns the number of rows. Unless Options.Skipped is set, the first file
// that cannot be indexed ends it with an error that names the file. It is an error if there is nothing to write.
//
// Columns: uri; chaski:index (chunk index blob) of TIFFs, rumi:header of rumi files; bands, height, width; dtype
// (numpy's name); nodata, and nodata_exact (decimal) of 64-bit integers; epsg; chaski:crs, the parameters of a CRS
// without a code; chaski:bands, the names of the bands as a JSON array; chaski:beside, the extensions of the files
// beside a raster that its row is made of; transform (6 numbers in GDAL's order); minx, miny, maxx, maxy in the CRS;
// size in bytes; mtime (RFC 3339, UTC) of local files; etag of objects in stores that have one; chaski:offset and
// chaski:length of a member of a container, whose uri is CONTAINER::PATH, and whose size, mtime and etag are the
// container's; and the columns of a joined table. Values that a file does not have are null, or an empty transform.
// It takes the memory of the list of paths and one row group, and with Join of the table's keys (of a CSV file, all of
// it).
func Write(ctx context.Context, w io.Writer, paths []string, o Options) (n int, err error) {
	l, err := List(ctx, paths, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.write(ctx, w, nil)
}

// workers returns how many files are read in parallel.
func (o *Options) workers(files []namedFile) int {
	switch {
	case o.Workers > 0:
		return o.Workers
	case slices.ContainsFunc(files, func(f namedFile) bool { return source.IsRemote(f.path) }):
		return max(4, runtime.GOMAXPROCS(0), remoteWorkers)
	}
	return max(4, runtime.GOMAXPROCS(0))
}

// remoteWorkers is how many remote files are indexed in parallel: the workers mostly wait.
const remoteWorkers = 32

func noRasters(paths []string) error {
	return fault.WithFile(fault.New(fault.NotFound, "dataset", "no rasters"), strings.Join(paths, ", "))
}

// rowOf reads a file, and makes its row.
func rowOf(ctx context.Context, file *namedFile, o Options) (rowio.Row, error) {
	if file.member == nil && !catalog.IsStore(file.path) {
		return readRow(ctx, *file, o) // has the time of the opened file
	}
	// Before the file is read, so a file that changes meanwhile differs from its row.
	mtime := mtimeOf(file.path)
	r, err := readRow(ctx, *file, o)
	r.MTime = mtime
	return r, err
}

// unchanged reports whether a previous row describes the file as it is now, by its size and time, or its tag.
func (f *namedFile) unchanged(r *rowio.Row, mtime *string) bool {
	equal := func(stored *int64, now int64) bool { return stored != nil && *stored == now }
	if m := f.member; m != nil && !(equal(r.Offset, m.Offset) && equal(r.Length, m.Length)) {
		return false
	}
	if f.etag != "" {
		return r.ETag != nil && *r.ETag == f.etag && r.Size == f.size
	}
	if mtime == nil || r.MTime == nil || *r.MTime != *mtime {
		return false
	}
	st, err := os.Stat(source.LocalPath(f.path))
	return err == nil && st.Size() == r.Size
}

// beside reports whether a previous row knows the files that lie beside the file now. Their content is not compared.
func (f *namedFile) beside(ctx context.Context, r *rowio.Row, o source.Opener) bool {
	known := ""
	if r.Beside != nil {
		known = *r.Beside
	}
	return known == catalog.BesideOf(ctx, o, f.path)
}

// sound reports whether a previous row has a usable index.
func (l *Listing) sound(r *rowio.Row) bool {
	blob := r.Index
	if len(blob) == 0 {
		blob = r.Header
	}
	ix, err := catalog.ParseIndex(blob, l.o.MaxChunk)
	if err != nil {
		return false
	}
	shape := [3]int{int(r.Bands), int(r.Height), int(r.Width)}
	return shape == [3]int{ix.StepBands(), ix.Height, ix.Width} && r.DType == ix.DType.String()
}

// mtimeOf returns when a local file was modified, or nil.
func mtimeOf(path string) *string {
	if s := source.Scheme(path); s != "" && s != "file" {
		return nil
	}
	st, err := os.Stat(source.LocalPath(path))
	if err != nil {
		return nil
	}
	return timeOf(st.ModTime())
}

// timeOf returns a time as a row has it.
func timeOf(t time.Time) *string {
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}

// namedFile is a file and its URI in the catalog.
type namedFile struct {
	uri, path string
	size      int64  // of an object that was listed
	etag      string // of an object that was listed
	member    *Member
	bytes     int64  // of a file that was listed
	listed    string // the directory that it was listed in: of a glob the one that the glob begins at
	field     string // of a catalog of pairs
}

// expand lists the files, with their URIs in the catalog, in order.
func expand(ctx context.Context, paths []string, o Options) (files []namedFile, err error) {
	err = eachFile(ctx, paths, o, func(f namedFile) error {
		files = append(files, f)
		return nil
	})
	slices.SortFunc(files, func(a, b namedFile) int { return strings.Compare(a.uri, b.uri) })
	return slices.CompactFunc(files, func(a, b namedFile) bool { return a.uri == b.uri }), err
}

// eachFile calls add for every file, in any order, and for some twice.
func eachFile(ctx context.Context, paths []string, o Options, add func(namedFile) error) error {
	dir, err := homeOf(o.Base)
	if err != nil {
		return err
	}
	addNamed := func(file namedFile) error {
		if err := file.name(dir, o.Absolute); err != nil {
			return err
		}
		return add(file)
	}
	for _, path := range paths {
		var members []Member
		if o.Members != nil {
			members, err = o.Members(ctx, path)
		}
		switch {
		case err != nil:
			return err
		case members != nil:
			for i := range members {
				if err = addNamed(members[i].file()); err != nil {
					break
				}
			}
		case source.IsRemote(path) && !listing.MayGlob(source.FileOf(path)) &&
			magic.Named(source.Name(path)).Class.Pixels():
			err = addNamed(namedFile{path: path})
		default:
			err = eachListed(ctx, path, o, addNamed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachListed calls add for the files of a directory or glob, or for a file.
func eachListed(ctx context.Context, path string, o Options, add func(namedFile) error) error {
	file, array, ok := source.SplitArray(path)
	if ok {
		path = file
	}
	files, err := listing.List(ctx, path, nil, o.Opener, listing.Rasters)
	if err != nil {
		return err
	}
	if o.beside != nil {
		maps.Copy(o.beside, files.Beside)
	}
	if files.OnlyPictures { // who makes a catalog says by a glob which files it is of
		return fault.WithFile(fault.New(fault.NotFound, "directory", "no TIFF and no rumi file, but %d PNG, JPEG, "+
			"NumPy or VRT files: a glob such as **/*.png reads them", len(files.Paths)), path)
	}
	for i, size := range files.Sizes {
		file := namedFile{path: files.Path(i), bytes: size, listed: files.Base}
		if files.Etags != nil {
			file.bytes, file.size, file.etag = 0, size, files.Etags[i]
		}
		if ok {
			file.path, file.bytes, file.size = source.ArrayName(file.path, array), 0, 0
		}
		if err := add(file); err != nil {
			return err
		}
	}
	return nil
}

// file returns a member as a file of the catalog, without its URI.
func (m *Member) file() namedFile {
	file := namedFile{path: m.File, size: m.Known.Size, etag: m.Known.ETag}
	if m.Offset >= 0 {
		file.member = m
	}
	return file
}

// home is the directory of a catalog, which is absolute, and where its links lead.
type home struct {
	path string
	real func() (string, error)
}

func homeOf(base string) (home, error) {
	path, err := pathname.Abs(base)
	return home{path, sync.OnceValues(func() (string, error) { return filepath.EvalSymlinks(path) })}, err
}

// name sets the URI of a file. If the path stands for a part of a file, it has the URI of that file.
func (f *namedFile) name(dir home, absolute bool) (err error) {
	f.uri = source.ResolveFrom(f.path, func(name string) string {
		if !source.IsRemote(name) {
			name, err = dir.uri(name, absolute)
		}
		return name
	})
	if f.member != nil {
		f.uri += layout.MemberSeparator + f.member.Path
	}
	return err
}

// uri returns the URI of a local file.
func (h home) uri(path string, absolute bool) (string, error) {
	abs, err := pathname.Abs(path)
	if err != nil {
		return "", err
	}
	if absolute {
		return filepath.ToSlash(abs), nil
	}
	if rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(h.path, "/")+"/"); ok && !pathname.HasParent(rel) {
		return filepath.ToSlash(rel), nil
	}
	// Links need to be resolved, because ".." in a path and the way up from the home go from where they lead.
	base := h.path
	if real, err := h.real(); err == nil {
		base = real
	}
	if pathname.HasParent(abs) {
		dir, err := filepath.EvalSymlinks(pathname.Dir(abs))
		if err != nil {
			return "", err
		}
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	if rel, err := filepath.Rel(base, abs); err == nil {
		return filepath.ToSlash(rel), nil
	}
	return filepath.ToSlash(abs), nil
}

// optional returns a text for a column that may be null, nil for "".
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// readRow makes the row of one file, without its time.
func readRow(ctx context.Context, f namedFile, o Options) (rowio.Row, error) {
	open, name := o.Opener, f.path
	if catalog.IsStore(name) {
		return storeRow(ctx, f, o)
	}
	if f.member != nil {
		open, name = source.OpenOne(f.member.Open), f.path+layout.MemberSeparator+f.member.Path
	}
	asset, meta, err := catalog.OpenAsset(ctx, open, name, o.MaxChunk)
	if err != nil {
		return rowio.Row{}, err
	}
	index := asset.Index
	if f.member != nil {
		if err := index.Validate(meta.Size, cmp.Or(o.MaxChunk, chunk.DefaultMaxBytes)); err != nil {
			return rowio.Row{}, fault.WithFile(err, name)
		}
		meta.Size, asset.ETag = f.member.Known.Size, f.member.Known.ETag
	}
	row := rowio.Row{
		URI: f.uri, Bands: int32(index.StepBands()), Height: int32(index.Height), Width: int32(index.Width),
		DType: index.DType.String(), NoData: oneNoData(index), Size: meta.Size,
	}
	if !asset.MTime.IsZero() { // of a local file
		row.MTime = timeOf(asset.MTime)
	}
	if f.member != nil {
		row.Offset, row.Length = &f.member.Offset, &f.member.Length
	}
	if meta.Format == magic.Rumi {
		row.Header = meta.Blob
	}
	if kept := meta.Kept(index); row.Header == nil || !bytes.Equal(kept, row.Header) {
		row.Index = kept
	}
	if index.NoDataBits != nil {
		s := strconv.FormatUint(*index.NoDataBits, 10)
		v := float64(*index.NoDataBits)
		if index.DType == chunk.Int64 {
			s, v = strconv.FormatInt(int64(*index.NoDataBits), 10), float64(int64(*index.NoDataBits))
		}
		row.NoDataExact = &s
		row.NoData = cmp.Or(row.NoData, &v)
	}
	if meta.EPSG > 0 && meta.EPSG <= math.MaxInt32 {
		e := int32(meta.EPSG)
		row.EPSG = &e
	}
	row.Beside = optional(asset.Beside)
	row.ETag, row.CRS, row.Names = optional(asset.ETag), optional(meta.CRS), optional(catalog.NamesText(asset.Names))
	if b, ok := meta.Bounds(index.Height, index.Width); ok {
		row.Transform = meta.Transform[:]
		row.MinX, row.MinY, row.MaxX, row.MaxY = &b[0], &b[1], &b[2], &b[3]
	}
	return row, nil
}

// oneNoData returns the nodata value that all bands have, nil where they differ or have several.
func oneNoData(x *chunk.Index) *float64 {
	if x.BandNoData != nil {
		return nil
	}
	return x.NoData
}

// storeRow makes the row of a Zarr store, whose arrays have no index to keep.
func storeRow(ctx context.Context, f namedFile, o Options) (rowio.Row, error) {
	_, array, named := source.Split(f.uri)
	asset, err := catalog.OpenStore(ctx, o.Opener, f.path, f.field, array, "", o.MaxChunk)
	if fault.KindOf(err) == fault.Unsupported && !named { // the field of a dataset will choose among the arrays
		return rowio.Row{URI: f.uri}, nil
	}
	if err != nil {
		return rowio.Row{}, err
	}
	index := asset.Index
	return rowio.Row{URI: f.uri, Bands: int32(index.StepBands()), Height: int32(index.Height),
		Width: int32(index.Width), DType: index.DType.String(), NoData: oneNoData(index),
		Names: optional(catalog.NamesText(asset.Names))}, nil
}
