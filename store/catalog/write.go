package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
)

// Names of a catalog's columns and metadata that readers look for.
const (
	colURI    = "uri"
	colIndex  = "chaski:index"
	colHeader = "rumi:header"
	colSize   = "size"
	colMTime  = "mtime"
	colETag   = "etag"
	colOffset = "chaski:offset"
	colLength = "chaski:length"

	metaVersion = "chaski:catalog"
	metaMasks   = "chaski:masks" // indexes of TIFFs have their masks; older catalogs lack it
	// names of the fields of a catalog of pairs, a JSON array; the columns are the first one's
	metaFields = "chaski:fields"
	version    = "1"
)

// row is one row of a catalog. The blob columns are not compressed, as their content hardly is
// compressible, and pages are small, so that reading one row at random is cheap.
type row struct {
	URI         string    `parquet:"uri,plain,zstd"`
	Index       []byte    `parquet:"chaski:index,optional,plain,uncompressed"`
	Header      []byte    `parquet:"rumi:header,optional,plain,uncompressed"`
	Bands       int32     `parquet:"bands,plain,zstd"`
	Height      int32     `parquet:"height,plain,zstd"`
	Width       int32     `parquet:"width,plain,zstd"`
	DType       string    `parquet:"dtype,dict,zstd"`
	NoData      *float64  `parquet:"nodata,optional,plain,zstd"`
	NoDataExact *string   `parquet:"nodata_exact,optional,plain,zstd"`
	EPSG        *int32    `parquet:"epsg,optional,plain,zstd"`
	Transform   []float64 `parquet:"transform,list,zstd"`
	MinX        *float64  `parquet:"minx,optional,plain,zstd"`
	MinY        *float64  `parquet:"miny,optional,plain,zstd"`
	MaxX        *float64  `parquet:"maxx,optional,plain,zstd"`
	MaxY        *float64  `parquet:"maxy,optional,plain,zstd"`
	Size        int64     `parquet:"size,plain,zstd"`
	MTime       *string   `parquet:"mtime,optional,plain,zstd"`
	ETag        *string   `parquet:"etag,optional,plain,zstd"`
	Offset      *int64    `parquet:"chaski:offset,optional,plain,zstd"`
	Length      *int64    `parquet:"chaski:length,optional,plain,zstd"`
}

// Page and row group sizes of a catalog.
const (
	pageBytes    = 16 << 10
	groupBytes   = 64 << 20
	maxGroupRows = 1 << 17
)

// WriteOptions of WriteParquet. The zero value is ready.
type WriteOptions struct {
	// Base is the folder of the catalog file. URIs of files below the same file system are written
	// relative to it, with "/", so that catalog and data can move together. Default: the current folder.
	Base string
	// Absolute writes absolute paths instead.
	Absolute bool
	// Workers read files at the same time. Default: the number of processors, at least 4, and 32 where some are
	// remote.
	Workers int
	// MaxChunk is the limit of a decoded chunk in bytes. Default tiff.DefaultMaxChunk.
	MaxChunk int
	// Opener opens the files. Default: local files.
	Opener source.Opener
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
	// Previous are catalogs in Base whose rows are used again for files that have not changed: a row
	// with the same URI, size and time of modification, and an index that is sound (of a TIFF, one made
	// since indexes have masks). Those that do not exist are passed over. Of an object that was listed the tag
	// counts in the place of the time; remote files that were named one by one are always read. Earlier ones come
	// first.
	Previous []string
	// Skipped, if not nil, is told of the files that cannot be indexed, in order, and they are left
	// out. An error without a kind, such as one of the system, still ends everything.
	Skipped func(path string, err error)
	// Members, if not nil, returns the rasters that lie in a container, and nil of a path that is none.
	Members func(ctx context.Context, path string) ([]Member, error)
	// Join adds the columns of a table.
	Join *Join
	// Fields make a catalog of pairs: a row for every id for which the files below the one path
	// have one in each field, by its Pattern. The columns are those of the first field; the files
	// of another field NAME are in columns NAME and NAME:COLUMN. Such a catalog takes no Previous,
	// Members and Join.
	Fields []Source
	// DropIncomplete leaves out ids for which a field has no file. Otherwise they are NotFound.
	DropIncomplete bool
	// Partial makes what was written a sound catalog of the files done so far if an error, or the end
	// of the context, comes after the first rows. The number of its rows is returned with the error.
	Partial bool
	// Counts, if not nil, is filled in.
	Counts *Counts
}

// Member is a raster that lies in a container.
type Member struct {
	// File is the file that holds it, Path where it is in the container.
	File, Path string
	// Offset and Length are its bytes in the file; both are -1 of one that is a file of its own.
	Offset, Length int64
	// Known is what is known of the file.
	Known source.Known
	// Open opens its bytes alone.
	Open func(ctx context.Context) (source.Reader, error)
}

// separator stands between the URI of a container and the path of a member in it.
const separator = "::"

// Counts says what became of the files of a catalog.
type Counts struct {
	Rows    int // written
	Reused  int // of them taken from a previous catalog
	Skipped int // files left out
	// Incomplete are ids left out because a field of a catalog of pairs has no file for them.
	Incomplete int
	// Unmatched are the files that have no row in the joined table, Unused its rows that have no file.
	Unmatched, Unused int
}

// WriteParquet writes a catalog of files, and of what is below the folders and globs among the
// paths, each file once, in the order of the bytes of their URIs. It returns the number of rows.
// Unless WriteOptions.Skipped is set, the first file that cannot be indexed ends it with an error that
// names the file; that nothing is left to write is an error too.
//
// Columns: uri; chaski:index (chunk index blob) of TIFFs, rumi:header of rumi files; bands, height,
// width; dtype (numpy's name); nodata, and nodata_exact (decimal) of 64-bit integers; epsg;
// transform (6 numbers in GDAL's order); minx, miny, maxx, maxy in the CRS; size in bytes; mtime
// (RFC 3339, UTC) of local files; etag of objects in a store that gives one; chaski:offset and
// chaski:length of a member of a container, whose uri is CONTAINER::PATH, and whose size, mtime and
// etag are the container's; those of a joined table. What a file does not say is null, or an empty
// transform. Memory is that of the list of paths and one row group, and with Join of the table's
// keys (of a CSV file, all of it).
func WriteParquet(ctx context.Context, w io.Writer, paths []string, o WriteOptions) (n int, err error) {
	if o.Opener == nil {
		files := &source.Files{}
		defer func() { err = errors.Join(err, files.Close()) }()
		o.Opener = files
	}
	if o.Counts == nil {
		o.Counts = &Counts{}
	}
	*o.Counts = Counts{}
	var files []namedFile
	var pairs *paired
	if len(o.Fields) > 0 {
		if pairs, err = openPaired(ctx, paths, o); err == nil {
			files = pairs.files[0]
		}
	} else {
		files, err = expand(ctx, paths, o)
	}
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, noRasters(paths)
	}
	if o.Workers <= 0 {
		o.Workers = max(4, runtime.GOMAXPROCS(0))
		if slices.ContainsFunc(files, func(f namedFile) bool { return source.IsRemote(f.path) }) {
			o.Workers = max(o.Workers, remoteWorkers)
		}
	}
	x := &indexing{o: o, files: files}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.open(ctx); err != nil {
		return 0, err
	}
	rows := rowSource{begin: x.begin, make: x.row, path: func(i int) string { return files[i].path }}
	switch {
	case pairs != nil:
		rows.begin, rows.make, rows.wide = pairs.begin, pairs.make, pairs
	case x.join != nil:
		rows.wide = x.join
	}
	n, err = writeRows(ctx, w, len(files), o, rows)
	o.Counts.Rows, o.Counts.Reused = n, int(x.reused.Load())
	if n == 0 && err == nil {
		err = noRasters(paths)
	}
	return n, err
}

// remoteWorkers is how many remote files are indexed at the same time: they wait, mostly.
const remoteWorkers = 32

func noRasters(paths []string) error {
	return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no rasters"), strings.Join(paths, ", "))
}

// indexing makes the rows of files.
type indexing struct {
	o        WriteOptions
	files    []namedFile
	previous []*previous
	join     *joined
	known    map[string]row // previous rows of the files of the block
	reused   atomic.Int64
}

func (x *indexing) open(ctx context.Context) (err error) {
	if x.o.Join != nil {
		if x.join, err = openJoin(ctx, x.o, x.files); err != nil {
			return fault.WithFile(err, x.o.Join.Table)
		}
	}
	for _, name := range x.o.Previous {
		p, err := openPrevious(ctx, name)
		if err != nil {
			return fault.WithFile(err, name)
		}
		if p != nil {
			x.previous = append(x.previous, p)
		}
	}
	return nil
}

func (x *indexing) close() (err error) {
	for _, p := range x.previous {
		err = errors.Join(err, p.close())
	}
	if x.join != nil {
		err = errors.Join(err, x.join.tab.close())
	}
	return err
}

// begin looks up the previous rows of a block of files.
func (x *indexing) begin(first, n int) error {
	x.known = map[string]row{}
	for _, p := range x.previous {
		if err := p.find(x.files[first:first+n], x.known); err != nil {
			return fault.WithFile(err, p.name)
		}
	}
	return nil
}

// row makes the row of a file.
func (x *indexing) row(ctx context.Context, i int) (row, error) {
	f := x.files[i]
	// Before the file is read: one that changes meanwhile then has another time than its row.
	mtime := mtimeOf(f.path)
	if r, ok := x.known[f.uri]; ok && f.unchanged(&r, mtime) && x.sound(&r) {
		x.reused.Add(1)
		return r, nil
	}
	r, err := readRow(ctx, f, x.o)
	r.MTime = mtime
	return r, err
}

// unchanged reports whether a previous row is of the file as it is now, by its size and time, or its tag.
func (f *namedFile) unchanged(r *row, mtime *string) bool {
	if m := f.member; m != nil && (r.Offset == nil || r.Length == nil || *r.Offset != m.Offset ||
		*r.Length != m.Length) {
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

// sound reports whether a previous row has an index that can be used.
func (x *indexing) sound(r *row) bool {
	blob := r.Index
	if len(blob) == 0 {
		blob = r.Header
	}
	ix, err := ParseIndex(blob, x.o.MaxChunk)
	return err == nil && ix.Bands == int(r.Bands) && ix.Height == int(r.Height) && ix.Width == int(r.Width) &&
		ix.DType.String() == r.DType
}

// mtimeOf returns when a local file was modified, or nil.
func mtimeOf(path string) *string {
	if s := scheme(path); s != "" && s != "file" {
		return nil
	}
	st, err := os.Stat(source.LocalPath(path))
	if err != nil {
		return nil
	}
	t := st.ModTime().UTC().Format(time.RFC3339Nano)
	return &t
}

type namedFile struct {
	uri, path string
	size      int64  // of an object that was listed
	etag      string // likewise
	member    *Member
}

// expand lists the files, with the URI each gets in the catalog, in order.
func expand(ctx context.Context, paths []string, o WriteOptions) ([]namedFile, error) {
	base, err := filepath.Abs(o.Base)
	if err != nil {
		return nil, err
	}
	var files []namedFile
	for _, p := range paths {
		members, err := o.members(ctx, p)
		if err != nil {
			return nil, err
		}
		if members != nil {
			for i := range members {
				f, err := members[i].named(base, o.Absolute)
				if err != nil {
					return nil, err
				}
				files = append(files, f)
			}
			continue
		}
		if source.IsRemote(p) && !remoteGlob(p) && isRaster(extension(p)) {
			files = append(files, namedFile{uri: p, path: p})
			continue
		}
		l, err := listFiles(ctx, p, nil, o.Opener)
		if err != nil {
			return nil, err
		}
		for i, rel := range l.paths {
			if l.etags != nil {
				uri := resolve(l.base, rel)
				files = append(files, namedFile{uri: uri, path: uri, size: l.sizes[i], etag: l.etags[i]})
				continue
			}
			f := namedFile{path: filepath.Join(l.base, filepath.FromSlash(rel))}
			if f.uri, err = uriOf(base, f.path, o.Absolute); err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b namedFile) int { return strings.Compare(a.uri, b.uri) })
	return slices.CompactFunc(files, func(a, b namedFile) bool { return a.uri == b.uri }), nil
}

func (o *WriteOptions) members(ctx context.Context, path string) ([]Member, error) {
	if o.Members == nil {
		return nil, nil
	}
	return o.Members(ctx, path)
}

// named returns a member as a file of the catalog.
func (m *Member) named(base string, absolute bool) (f namedFile, err error) {
	f = namedFile{uri: m.File, path: m.File, size: m.Known.Size, etag: m.Known.ETag}
	if !source.IsRemote(m.File) {
		if f.uri, err = uriOf(base, m.File, absolute); err != nil {
			return f, err
		}
	}
	if m.Offset >= 0 {
		f.member = m
		f.uri += separator + m.Path
	}
	return f, nil
}

// memberOpener opens a member, by whatever name.
type memberOpener struct{ m *Member }

// Open implements source.Opener.
func (o memberOpener) Open(ctx context.Context, _ string) (source.Reader, error) {
	return o.m.Open(ctx)
}

func uriOf(base, path string, absolute bool) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if !absolute {
		if rel, err := filepath.Rel(base, abs); err == nil {
			return filepath.ToSlash(rel), nil
		}
	}
	return filepath.ToSlash(abs), nil
}

// readRow makes the row of one file, but for its time.
func readRow(ctx context.Context, f namedFile, o WriteOptions) (row, error) {
	open, name := o.Opener, f.path
	if f.member != nil {
		open, name = memberOpener{f.member}, f.path+separator+f.member.Path
	}
	a, m, err := OpenAsset(ctx, open, name, o.MaxChunk)
	if err != nil {
		return row{}, err
	}
	x := a.Index
	if f.member != nil {
		if err := x.Validate(m.Size, cmp.Or(o.MaxChunk, tiff.DefaultMaxChunk)); err != nil {
			return row{}, fault.WithFile(err, name)
		}
		m.Size, a.ETag = f.member.Known.Size, f.member.Known.ETag
	}
	r := row{
		URI: f.uri, Bands: int32(x.Bands), Height: int32(x.Height), Width: int32(x.Width), DType: x.DType.String(),
		NoData: x.NoData, Size: m.Size,
	}
	if f.member != nil {
		r.Offset, r.Length = &f.member.Offset, &f.member.Length
	}
	if a.ETag != "" {
		r.ETag = &a.ETag
	}
	if m.Format == FormatRumi {
		r.Header = m.Blob
	} else {
		r.Index = m.Blob
	}
	if x.NoDataBits != nil {
		s := strconv.FormatUint(*x.NoDataBits, 10)
		v := float64(*x.NoDataBits)
		if x.DType == chunk.Int64 {
			s, v = strconv.FormatInt(int64(*x.NoDataBits), 10), float64(int64(*x.NoDataBits))
		}
		r.NoDataExact = &s
		if r.NoData == nil {
			r.NoData = &v
		}
	}
	if m.EPSG > 0 && m.EPSG <= math.MaxInt32 {
		e := int32(m.EPSG)
		r.EPSG = &e
	}
	if b, ok := m.Bounds(x.Height, x.Width); ok {
		r.Transform = m.Transform[:]
		r.MinX, r.MinY, r.MaxX, r.MaxY = &b[0], &b[1], &b[2], &b[3]
	}
	return r, nil
}

func (r *row) bytes() int { return 160 + len(r.URI) + len(r.Index) + len(r.Header) }

// rowSource makes the rows of a catalog.
type rowSource struct {
	begin func(first, n int) error // is told of every block before it; may be nil
	make  func(ctx context.Context, i int) (row, error)
	wide  wider              // further columns, or nil
	path  func(i int) string // of file i; needed where files are skipped
}

// wider adds columns to rows.
type wider interface {
	// rowType returns a struct of the fields of row and then its own.
	rowType() reflect.Type
	// extend returns such a struct for row number i, and the bytes that were added.
	extend(r *row, i int) (any, int, error)
	// meta returns what the footer says of the columns, or nothing.
	meta() []parquet.WriterOption
}

// writeRows makes n rows in parallel, a block at a time, and writes them in order.
func writeRows(ctx context.Context, w io.Writer, n int, o WriteOptions, src rowSource) (rows int, err error) {
	defer func() {
		if p := recover(); p != nil { // a library's panic on odd input is no reason to go down
			rows, err = 0, fault.New(fault.Unsupported, "catalog", fault.NoOffset, "the Parquet writer failed: %v", p)
		}
	}()
	c := newCatalogWriter(w, src.wide)
	c.path = src.path
	err = c.all(ctx, n, o, src)
	if err != nil && !o.Partial || c.rows == 0 {
		return c.rows, err
	}
	if cerr := c.file.Close(); cerr != nil {
		return 0, errors.Join(err, fmt.Errorf("catalog: %w", cerr))
	}
	return c.rows, err
}

// rowWriter is what a parquet.GenericWriter of any type does.
type rowWriter interface {
	Flush() error
	Close() error
}

// catalogWriter writes rows to a file.
type catalogWriter struct {
	file    rowWriter
	write   func(r *row, i int) (bytes int, err error)
	path    func(i int) string
	rows    int
	inGroup int // bytes
	inRows  int
}

func newCatalogWriter(w io.Writer, j wider) *catalogWriter {
	options := []parquet.WriterOption{
		parquet.PageBufferSize(pageBytes), parquet.DataPageStatistics(false),
		parquet.SkipPageBounds(colIndex), parquet.SkipPageBounds(colHeader),
		parquet.CreatedBy("chaski", version, ""), parquet.KeyValueMetadata(metaVersion, version),
		parquet.KeyValueMetadata(metaMasks, "1"),
	}
	if j != nil {
		options = append(options, j.meta()...)
		pw := parquet.NewGenericWriter[any](w,
			append(options, parquet.SchemaOf(reflect.New(j.rowType()).Interface()))...)
		return &catalogWriter{file: pw, write: func(r *row, i int) (int, error) {
			v, n, err := j.extend(r, i)
			if err != nil {
				return 0, err
			}
			_, err = pw.Write([]any{v})
			return r.bytes() + n, err
		}}
	}
	pw := parquet.NewGenericWriter[row](w, options...)
	return &catalogWriter{file: pw, write: func(r *row, _ int) (int, error) {
		_, err := pw.Write([]row{*r})
		return r.bytes(), err
	}}
}

// all makes and writes the rows, but for those that are skipped.
func (c *catalogWriter) all(ctx context.Context, n int, o WriteOptions, src rowSource) error {
	block, bad := make([]row, 0, blockRows), make([]error, blockRows)
	for done := 0; done < n; {
		block = block[:min(n-done, cap(block))]
		if src.begin != nil {
			if err := src.begin(done, len(block)); err != nil {
				return err
			}
		}
		clear(bad)
		if err := fill(ctx, block, bad, done, o, src.make); err != nil {
			return err
		}
		for i := range block {
			if err := c.add(&block[i], done, bad[i], o); err != nil {
				return err
			}
			done++
			if o.Progress != nil {
				o.Progress(done, n)
			}
		}
	}
	return nil
}

// blockRows is how many files are read before their rows are written.
const blockRows = 1024

// add writes the row of file number i, or says why it has none.
func (c *catalogWriter) add(r *row, i int, bad error, o WriteOptions) error {
	if bad != nil {
		if o.Counts != nil {
			o.Counts.Skipped++
		}
		o.Skipped(c.path(i), bad)
		return nil
	}
	n, err := c.write(r, i)
	if err != nil {
		if fault.KindOf(err) != 0 {
			return err
		}
		return fmt.Errorf("catalog: %w", err)
	}
	c.rows++
	c.inGroup += n
	if c.inRows++; c.inGroup >= groupBytes || c.inRows == maxGroupRows {
		if err := c.file.Flush(); err != nil {
			return fmt.Errorf("catalog: %w", err)
		}
		c.inGroup, c.inRows = 0, 0
	}
	return nil
}

// fill makes the rows from number first on. The first error stops the others, but for what is wrong
// with a file where files are skipped: that is put into bad.
func fill(ctx context.Context, block []row, bad []error, first int, o WriteOptions,
	makeRow func(context.Context, int) (row, error)) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(o.Workers)
	for i := range block {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			block[i], err = makeRow(gctx, first+i)
			if err != nil && o.Skipped != nil && fault.KindOf(err) != 0 && gctx.Err() == nil {
				bad[i], err = err, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
