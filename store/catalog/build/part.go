package build

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/rowkey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// Parts of a catalog are catalogs of some of its files each, which several machines write. Files lists what there is,
// WritePart writes one of them, and MergeParts joins them into the catalog that Write writes of all.

// File is a file of a catalog, or a member of a container. It is all that WritePart has to know.
type File struct {
	URI    string      `json:"uri"`            // in the catalog, whose rows are in the order of its bytes
	Path   string      `json:"path,omitempty"` // "" if it is the URI
	Size   int64       `json:"size,omitempty"` // of an object that was listed
	ETag   string      `json:"etag,omitempty"`
	Member *FileMember `json:"member,omitempty"`
	// More are the files of the fields after the first, in a catalog of pairs.
	More []File `json:"more,omitempty"`
	// Below is its path below the directory or the fixed part of the glob that lists it, with "/", or its name.
	Below string `json:"-"`
	Bytes int64  `json:"-"` // its size when it was listed; 0 if that is not known
}

// FileMember is a Member without the function that opens it.
type FileMember struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// Files calls add for every file below paths, in any order, and for some twice. Local paths are absolute, so that the
// list is good wherever it is read.
//
// With o.Fields it calls add for every sample, in the order of the catalog, with the files of the further fields in
// More.
func Files(ctx context.Context, paths []string, o Options, add func(File) error) error {
	if len(o.Fields) > 0 {
		return eachPair(ctx, paths, o, add)
	}
	return eachFile(ctx, paths, o, func(f namedFile) error {
		out, err := f.file()
		if err != nil {
			return err
		}
		return add(out)
	})
}

// file returns the file for WritePart, with an absolute path.
func (f *namedFile) file() (out File, err error) {
	out = File{URI: f.uri, Path: f.path, Size: f.size, ETag: f.etag, Below: f.below, Bytes: f.bytes}
	if out.Path, err = source.Abs(f.path); err != nil {
		return out, err
	}
	if out.Path == out.URI {
		out.Path = ""
	}
	if m := f.member; m != nil {
		out.Member = &FileMember{m.Path, m.Offset, m.Length}
	}
	return out, nil
}

// named returns a file in the form of Write.
func (f *File) named(o *Options) namedFile {
	file := namedFile{uri: f.URI, path: f.Path, size: f.Size, etag: f.ETag}
	file.path = cmp.Or(file.path, f.URI)
	if fileMember := f.Member; fileMember != nil {
		known := source.Known{Size: f.Size, ETag: f.ETag}
		file.member = &Member{File: file.path, Path: fileMember.Path, Offset: fileMember.Offset,
			Length: fileMember.Length,
			Known:  known,
			Open: func(ctx context.Context) (source.Reader, error) {
				return o.OpenMember(ctx, file.path, known, *fileMember)
			}}
	}
	return file
}

// WritePart writes a catalog of files, which are in the order of their URIs. It returns the number of rows; without
// one, nothing is written.
func WritePart(ctx context.Context, w io.Writer, files []File, o Options) (n int, err error) {
	named := make([]namedFile, len(files))
	for i := range files {
		named[i] = files[i].named(&o)
	}
	if len(o.Fields) == 0 && !slices.IsSortedFunc(files, func(a, b File) int { return compareURIs(a.URI, b.URI) }) {
		return 0, fault.New(fault.Corrupt, "files", fault.NoOffset, "they are not in the order of their URIs")
	}
	o.Workers = o.workers(named)
	o.Counts = cmp.Or(o.Counts, &Counts{})
	o.Join = nil // MergeParts joins
	x := &indexing{o: o, files: named}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.open(ctx); err != nil {
		return 0, err
	}
	ro := rowio.RowOptions{Workers: o.Workers, Progress: o.Progress}
	if o.Skipped != nil {
		ro.Skipped = func(i int, err error) { o.Skipped(named[i].path, err) }
	}
	rows := rowio.Source{Begin: x.begin, Make: x.row}
	if len(o.Fields) > 0 {
		pairs, err := pairsOf(files, o)
		if err != nil {
			return 0, err
		}
		rows = rowio.Source{Begin: pairs.begin, Make: pairs.make, Columns: pairs}
	}
	n, err = rowio.Write(ctx, w, len(named), ro, rows)
	o.Counts.Rows, o.Counts.Reused = n, int(x.reused.Load())
	return n, err
}

// compareURIs is negative also for equal URIs, so that sorted URIs are different ones.
func compareURIs(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// Matching matches files with the rows of Options.Join as they are listed, so that mismatches are found before any
// file is read.
type Matching struct {
	o Options
	j *joined
	m *rowkey.Match
}

// NewMatching opens the table of o.Join. Close it after use.
func NewMatching(ctx context.Context, o Options) (*Matching, error) {
	joined, err := openJoin(ctx, o)
	if err != nil {
		return nil, fault.WithFile(err, o.Join.Table)
	}
	return &Matching{o, joined, joined.on.Match()}, nil
}

// Add adds a file by its URI in the catalog. Each is added once.
func (m *Matching) Add(uri string) { m.m.Row(uri) }

// End puts the numbers of files and rows that do not match into o.Counts, and refuses such files as Write does.
func (m *Matching) End() error { return fault.WithFile(m.j.end(m.m, &m.o), m.o.Join.Table) }

// Close closes the table.
func (m *Matching) Close() error { return m.j.tab.Close() }

// MergeParts writes the catalog of the files of all parts, in their order, with the columns of o.Join. It takes the
// memory of one row group of the output and of one part, and with Join as much as Write. A part that is not a catalog
// is fault.Corrupt or fault.Unsupported, and so are rows that are not sorted by URI.
func MergeParts(ctx context.Context, w io.Writer, parts iter.Seq2[*io.SectionReader, error], o Options) (n int,
	err error) {
	var rest rowio.Columns
	var join *joined
	if o.Join != nil {
		if join, err = openJoin(ctx, o); err != nil {
			return 0, fault.WithFile(err, o.Join.Table)
		}
		defer func() { err = errors.Join(err, join.tab.Close()) }()
		rest = join
	}
	last, first := "", true
	return rowio.Copy(w, rest, func(add func(*rowio.Row) error) error {
		for part, err := range parts {
			if err != nil {
				return err
			}
			err = copyPart(ctx, part, func(r *rowio.Row) error {
				if !first && r.URI <= last {
					return fault.New(fault.Corrupt, "row", fault.NoOffset, "%q comes after %q", r.URI, last)
				}
				last, first = r.URI, false
				if join != nil {
					join.at = append(join.at[:0], join.on.Row(r.URI))
					if join.at[0] < 0 && !o.Join.Left {
						return fault.WithFile(join.on.Missing(r.URI, ": it changed since the parts were listed"),
							o.Join.Table)
					}
				}
				return add(r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// copyPart calls add for every row of a part.
func copyPart(ctx context.Context, part *io.SectionReader, add func(*rowio.Row) error) (err error) {
	if _, err := checkCatalog(ctx, sectionReader{part}); err != nil {
		return err
	}
	file, err := parquet.OpenFile(part, part.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fault.Wrap(fault.Corrupt, "footer", fault.NoOffset, err)
	}
	r := parquet.NewGenericReader[rowio.Row](file)
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]rowio.Row, 128)
	return eachBatch(ctx, func() (int, error) {
		clear(rows)
		return r.Read(rows)
	}, func(n int) error {
		for i := range rows[:n] {
			if err := add(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachBatch calls read until it says io.EOF, and take for the number of rows that each call has read.
func eachBatch(ctx context.Context, read func() (int, error), take func(n int) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, rerr := read()
		if err := take(n); err != nil {
			return err
		}
		switch {
		case errors.Is(rerr, io.EOF):
			return nil
		case rerr != nil:
			return fault.Wrap(fault.Corrupt, "row", fault.NoOffset, rerr)
		case n == 0:
			return fault.Wrap(fault.Corrupt, "row", fault.NoOffset, io.ErrNoProgress)
		}
	}
}

// sectionReader is a source.Reader of a section.
type sectionReader struct{ *io.SectionReader }

// ReadAt implements source.Reader.
func (s sectionReader) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > s.Size() || int64(len(p)) > s.Size()-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the %d of the part", len(p), s.Size())
	}
	_, err := s.SectionReader.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// Close implements source.Reader.
func (s sectionReader) Close() error { return nil }
