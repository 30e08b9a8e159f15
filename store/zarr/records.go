package zarr

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// recordKey names a part of a file of records: the file itself with a group of -1, a column of a row group with a page
// of -1, or a page of it.
type recordKey struct {
	dir                 string // of the array
	record              int64
	group, column, page int
}

// recordPart is the part of a file of records that is kept in memory. It does not change.
type recordPart struct {
	file   *parquet.File // nil of a file that is not there
	leaves [recordColumns]int
	pages  *parquet.Pages
	dict   *parquet.Values
	values *parquet.Values
	err    error // why the part cannot be read, whenever it is
}

// recordFile is an open file of records.
type recordFile struct {
	key  recordKey
	part *recordPart
}

// Columns of a file of records.
const (
	colPath = iota
	colOffset
	colSize
	colRaw
	recordColumns
)

var recordNames = [recordColumns]string{"path", "offset", "size", "raw"}

const (
	maxRecordLeaves = 64      // columns of a file
	maxBuffered     = 1 << 20 // bytes of a column that are fetched from a remote file at once, and kept
	recordError     = 1 << 10 // bytes of an error, with the path of a file
)

// uri returns the URI of a file.
func (s *records) uri(k recordKey) string {
	return source.Join(s.folder, fmt.Sprintf("%s/refs.%d.parq", k.dir, k.record))
}

// kept returns a part of a file that is kept, or what load returns, with the bytes that it takes. A part that is
// damaged is kept, too: each of its rows would otherwise read and decode it again.
func (s *records) kept(ctx context.Context, k recordKey, load func() (*recordPart, int64, error)) (*recordPart, error) {
	if p, ok := s.parts.Get(k); ok {
		return p, p.err
	}
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.busy }()
	if p, ok := s.parts.Get(k); ok {
		return p, p.err
	}
	part, cost, err := load()
	if err != nil {
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported { // it may be read another time
			return nil, err
		}
		part, cost = &recordPart{err: err}, recordError
	}
	s.parts.Add(k, part, cost+int64(len(k.dir)))
	return part, err
}

// open opens a file.
func (s *records) open(ctx context.Context, dir string, record int64) (recordFile, error) {
	k := recordKey{dir: dir, record: record, group: -1}
	part, err := s.kept(ctx, k, func() (*recordPart, int64, error) {
		file, err := s.base.Open(ctx, s.uri(k))
		if missing(err) {
			return &recordPart{}, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		if file.Size() > maxRecordFile {
			return nil, 0, fault.New(fault.Limit, recordsPart, fault.NoOffset, "%d bytes, at most %d", file.Size(),
				maxRecordFile)
		}
		// No file stays open for as long as its footer is kept.
		in := &source.Reopened{Opener: s.base, URI: s.uri(k), Now: file,
			Known: source.Known{Size: file.Size(), ETag: source.ETag(file)}}
		p := &recordPart{}
		if p.file, err = parquet.Open(ctx, in); err != nil {
			return nil, 0, err
		}
		in.Now = nil
		return p, int64(p.file.Cost() + len(in.URI)), p.columns()
	})
	return recordFile{k, part}, err
}

// columns finds the columns. One that is missing, or is of the type without values that pyarrow gives to a column of
// nulls, is -1.
func (p *recordPart) columns() error {
	wrong := func(name string) error {
		return fault.New(fault.Corrupt, "column "+name, fault.NoOffset, "it is not there, or of another type")
	}
	if n := len(p.file.Columns); n > maxRecordLeaves {
		return fault.New(fault.Limit, recordsPart, fault.NoOffset, "%d columns, at most %d", n, maxRecordLeaves)
	}
	for i, name := range recordNames {
		leaf := p.file.Column(name)
		if leaf >= 0 {
			switch column := &p.file.Columns[leaf]; {
			case column.Note.Kind == parquet.Null:
				leaf = -1
			case i == colPath || i == colRaw:
				if column.Type != parquet.ByteArray {
					return wrong(name)
				}
			case column.Type != parquet.Int32 && column.Type != parquet.Int64:
				return wrong(name)
			}
		}
		p.leaves[i] = leaf
	}
	if p.leaves[colPath] >= 0 {
		for _, i := range [...]int{colOffset, colSize} {
			if p.leaves[i] < 0 {
				return wrong(recordNames[i])
			}
		}
	}
	return nil
}

// row returns the reference of a row of a file. It reports false if it has none.
func (s *records) row(ctx context.Context, f recordFile, row int64) (ref, bool, error) {
	if row >= f.part.file.Rows {
		return ref{}, false, fault.New(fault.Corrupt, recordsPart, fault.NoOffset, "row %d of %d", row,
			f.part.file.Rows)
	}
	raw, ok, err := s.value(ctx, f, colRaw, row)
	if err == nil && ok {
		r, err := content(string(raw.bytes()))
		return r, err == nil, err
	}
	var u recordCell
	if err == nil {
		u, ok, err = s.value(ctx, f, colPath, row)
	}
	if err != nil || !ok {
		return ref{}, false, err
	}
	r := ref{}
	if r.off, err = s.number(ctx, f, colOffset, row); err == nil {
		r.n, err = s.number(ctx, f, colSize, row)
	}
	if err == nil {
		err = r.check(string(u.bytes()), true)
	}
	if err != nil {
		return ref{}, false, err
	}
	if r.off == 0 && r.n == 0 {
		r.n = -1
	}
	r.to, err = s.target(string(u.bytes()))
	return r, err == nil, err
}

// number returns a number of a row that has a URL.
func (s *records) number(ctx context.Context, f recordFile, column int, row int64) (int64, error) {
	recordCell, ok, err := s.value(ctx, f, column, row)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	if ok {
		n, ok = recordCell.page.Int(recordCell.row)
	}
	if !ok {
		return 0, fault.New(fault.Corrupt, "column "+recordNames[column], fault.NoOffset,
			"row %d has a URL, but no number below 2^63", row)
	}
	return n, nil
}

// target returns the file that a URL leads to.
func (s *records) target(u string) (*referred, error) {
	if f, ok := s.files.Get(u); ok {
		return f, nil
	}
	if len(u) > maxURL {
		return nil, fault.New(fault.Limit, recordsPart, fault.NoOffset, "the URL %.80q has more than %d bytes", u,
			maxURL)
	}
	f := &referred{}
	f.uri, f.err = resolve(s.folder, u)
	s.files.Add(u, f, int64(len(u)+len(f.uri))+referredRefs*refBytes)
	return f, nil
}

// recordCell is a value that is not null.
type recordCell struct {
	page *parquet.Values
	row  int
}

func (c recordCell) bytes() []byte { return c.page.Raw(c.row) }

// value returns a value of a row. It reports false if the value is null or the file lacks the column.
func (s *records) value(ctx context.Context, f recordFile, column int, row int64) (recordCell, bool, error) {
	leaf, file := f.part.leaves[column], f.part.file
	if leaf < 0 {
		return recordCell{}, false, nil
	}
	recordKey := f.key
	recordKey.group, row = file.Group(row)
	recordKey.column, recordKey.page = leaf, -1
	part, err := s.kept(ctx, recordKey, func() (*recordPart, int64, error) {
		return s.loadColumn(ctx, file, recordKey)
	})
	if err != nil {
		return recordCell{}, false, err
	}
	recordKey.page = part.pages.Find(row)
	p, err := s.kept(ctx, recordKey, func() (*recordPart, int64, error) {
		values, err := part.file.Read(ctx, recordKey.group, leaf, part.pages, recordKey.page, part.dict)
		if err != nil {
			return nil, 0, err
		}
		return &recordPart{values: values}, int64(values.Cost()), nil
	})
	if err != nil {
		return recordCell{}, false, err
	}
	cell := recordCell{p.values, int(row - part.pages.Pages[recordKey.page].First)}
	return cell, !p.values.Null(cell.row), nil
}

// loadColumn reads where the pages of a column in a row group are, and its dictionary. A column of a remote file that
// is not large is read at once and kept, since each of its pages would be a request.
func (s *records) loadColumn(ctx context.Context, file *parquet.File, k recordKey) (*recordPart, int64, error) {
	part := &recordPart{file: file}
	cost := int64(0)
	var err error
	if source.IsRemote(s.folder) {
		if part.file, err = file.Buffered(ctx, k.group, k.column, maxBuffered); err != nil {
			return nil, 0, err
		}
		if part.file != file {
			cost = file.Stored(k.group, k.column)
		}
	}
	if part.pages, err = part.file.Pages(ctx, k.group, k.column); err != nil {
		return nil, 0, err
	}
	if part.dict, err = part.file.Dictionary(ctx, k.group, k.column, part.pages); err != nil {
		return nil, 0, err
	}
	const pageCost = 24 // of a parquet.Page
	cost += pageCost * int64(cap(part.pages.Pages))
	if part.dict != nil {
		cost += int64(part.dict.Cost())
	}
	return part, cost, nil
}
