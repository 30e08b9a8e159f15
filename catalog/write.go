package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Names of a catalog's columns and metadata that readers look for.
const (
	colURI    = "uri"
	colIndex  = "chaski:index"
	colHeader = "rumi:header"
	colSize   = "size"

	metaVersion = "chaski:catalog"
	version     = "1"
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
	// Workers read files at the same time. Default: the number of processors, at least 4.
	Workers int
	// MaxChunk is the limit of a decoded chunk in bytes. Default tiff.DefaultMaxChunk.
	MaxChunk int
	// Opener opens the files. Default: local files.
	Opener source.Opener
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// WriteParquet writes a catalog of files, and of what is below the folders and globs among the
// paths, each file once, in the order of the bytes of their URIs. It returns the number of rows.
// The first file that cannot be indexed ends it with an error that names the file; that there is none
// is an error too.
//
// Columns: uri; chaski:index (chunk index blob) of TIFFs, rumi:header of rumi files; bands, height,
// width; dtype (numpy's name); nodata, and nodata_exact (decimal) of 64-bit integers; epsg; transform (6
// numbers in GDAL's order); minx, miny, maxx, maxy in the CRS; size in bytes; mtime (RFC 3339, UTC).
// What a file does not say is null, or an empty transform. Memory is that of the list of paths and one row group.
func WriteParquet(ctx context.Context, w io.Writer, paths []string, o WriteOptions) (n int, err error) {
	if o.Opener == nil {
		files := &source.Files{}
		defer func() { err = errors.Join(err, files.Close()) }()
		o.Opener = files
	}
	if o.Workers <= 0 {
		o.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	files, err := expand(ctx, paths, o)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no rasters"), strings.Join(paths, ", "))
	}
	return write(ctx, w, len(files), o, func(ctx context.Context, i int) (row, error) {
		return readRow(ctx, files[i], o)
	})
}

type namedFile struct{ uri, path string }

// expand lists the files, with the URI each gets in the catalog, in order.
func expand(ctx context.Context, paths []string, o WriteOptions) ([]namedFile, error) {
	base, err := filepath.Abs(o.Base)
	if err != nil {
		return nil, err
	}
	var files []namedFile
	for _, p := range paths {
		if s := scheme(p); s != "" && s != "file" {
			files = append(files, namedFile{p, p})
			continue
		}
		l, err := listFiles(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		for _, rel := range l.paths {
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

// readRow makes the row of one file.
func readRow(ctx context.Context, f namedFile, o WriteOptions) (row, error) {
	a, m, err := OpenAsset(ctx, o.Opener, f.path, o.MaxChunk)
	if err != nil {
		return row{}, err
	}
	x := a.Index
	r := row{
		URI: f.uri, Bands: int32(x.Bands), Height: int32(x.Height), Width: int32(x.Width), DType: x.DType.String(),
		NoData: x.NoData, Size: m.Size,
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
	if scheme(f.path) == "" {
		if st, err := os.Stat(f.path); err == nil {
			t := st.ModTime().UTC().Format(time.RFC3339)
			r.MTime = &t
		}
	}
	return r, nil
}

func (r *row) bytes() int { return 160 + len(r.URI) + len(r.Index) + len(r.Header) }

// write makes n rows in parallel, a block at a time, and writes them in order.
func write(ctx context.Context, w io.Writer, n int, o WriteOptions, makeRow func(context.Context, int) (row, error)) (done int, err error) {
	defer func() {
		if p := recover(); p != nil { // a library's panic on odd input is no reason to go down
			err = fault.New(fault.Unsupported, "catalog", fault.NoOffset, "the Parquet writer failed: %v", p)
		}
	}()
	pw := parquet.NewGenericWriter[row](w,
		parquet.PageBufferSize(pageBytes), parquet.DataPageStatistics(false),
		parquet.SkipPageBounds(colIndex), parquet.SkipPageBounds(colHeader),
		parquet.CreatedBy("chaski", version, ""), parquet.KeyValueMetadata(metaVersion, version))
	block := make([]row, 0, 1024)
	inGroup, groupRows := 0, 0
	for done < n {
		block = block[:min(n-done, cap(block))]
		if err := fill(ctx, block, done, o.Workers, makeRow); err != nil {
			return done, err
		}
		for i := range block {
			if _, err := pw.Write(block[i : i+1]); err != nil {
				return done, fmt.Errorf("catalog: %w", err)
			}
			inGroup += block[i].bytes()
			groupRows++
			if inGroup >= groupBytes || groupRows == maxGroupRows {
				if err := pw.Flush(); err != nil {
					return done, fmt.Errorf("catalog: %w", err)
				}
				inGroup, groupRows = 0, 0
			}
			done++
			if o.Progress != nil {
				o.Progress(done, n)
			}
		}
	}
	if err := pw.Close(); err != nil {
		return done, fmt.Errorf("catalog: %w", err)
	}
	return done, nil
}

// fill makes the rows from number first on. The first error
// stops the others.
func fill(ctx context.Context, block []row, first, workers int, makeRow func(context.Context, int) (row, error)) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range block {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			block[i], err = makeRow(gctx, first+i)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
