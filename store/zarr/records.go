package zarr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables"
)

// records are the references of a directory with files in Parquet, as fsspec, kerchunk and VirtualiZarr write them:
//
//	.zmetadata         the metadata of all nodes, and record_size
//	ARRAY/refs.N.parq  a row for each of record_size chunks of the array in C order, from N · record_size on
//
// The columns are path, offset, size and raw. A row has the content of a chunk as raw, or the range of a file, which is
// the whole file if offset and size are 0. A row with neither, or a missing file, stands for chunks that were not
// written. Files are read on demand. It implements refTable.
type records struct {
	refList // the metadata of all nodes
	base    source.Opener
	folder  string // URI
	size    int64  // rows of a file
	arrays  map[string]*recordArray
	kept    *lru.Cache[recordKey, *recordFile]
	known   *lru.Cache[string, *referred] // files that references lead to, by URL
	// busy is held to read files: so no two workers decode the same one, and rows on their way take the memory of one
	// file.
	busy chan struct{}
}

// recordArray has the metadata from which the names of an array's chunks follow.
type recordArray struct {
	keys keys
	grid []int64 // chunks along each dimension
}

// recordKey names a file: the number of it, and the directory of the array.
type recordKey struct {
	dir    string
	number int64
}

// recordFile has the rows of a file. It does not change.
type recordFile struct {
	rows    int
	columns [recordColumns]*tables.Vector // nil for one that the file lacks
	absent  bool                          // the file does not exist
	err     error                         // why it cannot be read
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

const recordsPart = "record"

// Limits of references in Parquet. fsspec writes 10,000 rows to a file by default, kerchunk 100,000, of some 100 bytes
// in memory.
const (
	maxRecordSize = 1 << 22   // rows of a file
	maxRecordFile = 128 << 20 // bytes of a file
	recordMemory  = 32 << 20  // bytes of decoded rows that a store keeps, and that one file may have
	recordURLs    = 4 << 20   // bytes of the known files that references lead to
	recordError   = 1 << 10   // bytes of an error, with the path of a file
	// maxRecordChunks bounds the chunks of an array, so that their numbers do not overflow.
	maxRecordChunks = 1 << 40
)

// recordsFolder returns the beginning of a URI that names a directory of references in Parquet, if a path below it
// follows.
func recordsFolder(uri string) (folder string, ok bool) {
	for pos, c := range uri {
		if c == '/' && namedRecords(path.Base(uri[:pos])) && strings.Trim(uri[pos:], "/") != "" {
			return uri[:pos], true
		}
	}
	return "", false
}

// referRecords makes the node's opener one of references in Parquet if the consolidated metadata of a folder says so.
func (n *Node) referRecords(ctx context.Context, folder string, all object) error {
	size := int64(0)
	ok, err := all.get("record_size", &size)
	if _, refers := n.open.(*references); refers || !ok || err != nil {
		return err
	}
	if size < 1 || size > maxRecordSize {
		return fault.New(fault.Limit, metaPart, fault.NoOffset, "a record_size of %d, at most %d", size, maxRecordSize)
	}
	var nodes map[string]json.RawMessage
	if err := cmp.Or(all.need("metadata", &nodes), n.charge(ctx, recordMemory+recordURLs)); err != nil {
		return err
	}
	table := &records{base: n.open, folder: folder, size: size, arrays: map[string]*recordArray{},
		kept: lru.New[recordKey, *recordFile](recordMemory), known: lru.New[string, *referred](recordURLs),
		busy: make(chan struct{}, 1)}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		table.refs = append(table.refs, namedRef{name, ref{inline: nodes[name]}})
		if dir, ok := strings.CutSuffix(name, "/"+array2); ok {
			table.arrays[dir] = newRecordArray(nodes[name])
		}
	}
	n.open = &references{base: n.open, uri: folder, list: table}
	return nil
}

// newRecordArray makes a recordArray from metadata. It returns nil if no array can be made of them; their chunks are
// never read.
func newRecordArray(raw []byte) *recordArray {
	var meta object
	if decode(raw, &meta) != nil {
		return nil
	}
	parsed, err := parse2(meta, nil)
	if err != nil {
		return nil
	}
	array := &recordArray{keys: parsed.keys, grid: gridOf(parsed.Shape, parsed.Chunks)}
	if !slices.Contains(array.grid, 0) && cells(array.grid, maxRecordChunks) < 0 {
		return nil
	}
	return array
}

// find implements refTable.
func (s *records) find(ctx context.Context, name string) (ref, bool, error) {
	key, row, ok := s.place(name)
	if !ok {
		return s.refList.find(ctx, name)
	}
	file, err := s.open(ctx, key)
	var found ref
	if err == nil {
		found, ok, err = s.row(file, row)
	}
	return found, ok && err == nil, fault.WithFile(fault.WithPart(err, firstBytes(name), 0), s.uri(key))
}

// place returns the file and the row of the chunk with a name.
func (s *records) place(name string) (k recordKey, row int64, ok bool) {
	for i := range name {
		array := s.arrays[name[:i]]
		if name[i] != '/' || array == nil {
			continue
		}
		coordinates, ok := array.keys.parse(name[i+1:], array.grid)
		if !ok {
			continue
		}
		number := int64(0)
		for d, n := range array.grid {
			number = number*n + coordinates[d]
		}
		return recordKey{name[:i], number / s.size}, number % s.size, true
	}
	return recordKey{}, 0, false
}

// uri returns the URI of a file.
func (s *records) uri(k recordKey) string {
	return source.Join(s.folder, fmt.Sprintf("%s/refs.%d.parq", k.dir, k.number))
}

// open returns the rows of a file, which are kept.
func (s *records) open(ctx context.Context, k recordKey) (*recordFile, error) {
	if f, ok := s.kept.Get(k); ok {
		return f, f.err
	}
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.busy }()
	if f, ok := s.kept.Get(k); ok {
		return f, f.err
	}
	file, cost, err := s.read(ctx, k)
	if err != nil {
		if fault.KindOf(err) == 0 { // it may be read another time
			return nil, err
		}
		file, cost = &recordFile{err: err}, recordError
	}
	// A damaged file is kept too: each of its rows would otherwise read and decode it again.
	s.kept.Add(k, file, cost+int64(len(k.dir)))
	return file, err
}

// read decodes a file. It returns the memory that the rows take, too.
func (s *records) read(ctx context.Context, k recordKey) (*recordFile, int64, error) {
	reader, err := s.base.Open(ctx, s.uri(k))
	if missing(err) {
		return &recordFile{absent: true}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer reader.Close()
	if reader.Size() > maxRecordFile {
		return nil, 0, fault.New(fault.Limit, recordsPart, fault.NoOffset, "%d bytes, at most %d", reader.Size(),
			maxRecordFile)
	}
	limits := tables.Options{MaxRows: maxRecordSize, MaxBytes: recordMemory}
	table, err := tables.Read(ctx, reader, 0, reader.Size(), limits)
	if err != nil {
		return nil, 0, err
	}
	file := &recordFile{rows: table.Len()}
	for i, name := range recordNames {
		column := table.Index(name)
		if column < 0 {
			continue
		}
		kinds := []tables.Kind{tables.Int64, tables.Uint64}
		if i == colPath || i == colRaw {
			kinds = []tables.Kind{tables.String, tables.Binary}
		}
		if kind := table.Columns()[column].Type.Kind; kind != tables.Null && !slices.Contains(kinds, kind) {
			return nil, 0, fault.New(fault.Corrupt, "column "+name, fault.NoOffset, "it is of type %v", kind)
		}
		if file.columns[i], err = table.At(ctx, column); err != nil {
			return nil, 0, err
		}
		if table.Bytes() > recordMemory-lru.Overhead {
			return nil, 0, fault.New(fault.Limit, recordsPart, fault.NoOffset,
				"%d rows take more than %d bytes: write files with a smaller record_size", file.rows, recordMemory)
		}
	}
	return file, table.Bytes(), nil
}

// row returns the reference of a row of a file. It reports false if it has none.
func (s *records) row(f *recordFile, row int64) (r ref, ok bool, err error) {
	if f.absent {
		return ref{}, false, nil
	}
	if row >= int64(f.rows) {
		return ref{}, false, fault.New(fault.Corrupt, recordsPart, fault.NoOffset, "row %d of %d", row, f.rows)
	}
	has := func(column int) bool { return f.columns[column] != nil && !f.columns[column].Null(int(row)) }
	if has(colRaw) {
		r, err = content(f.columns[colRaw].Str(int(row)))
		return r, err == nil, err
	}
	if !has(colPath) {
		return ref{}, false, nil
	}
	for i, number := range [...]*int64{&r.off, &r.n} {
		column := colOffset + i
		if !has(column) {
			return ref{}, false, fault.New(fault.Corrupt, "column "+recordNames[column], fault.NoOffset,
				"row %d has a URL, but no number", row)
		}
		*number = f.columns[column].Int(int(row))
	}
	target := f.columns[colPath].Str(int(row))
	if err := r.check(target, true); err != nil {
		return ref{}, false, err
	}
	if r.off == 0 && r.n == 0 {
		r.n = -1
	}
	r.to, err = s.target(target)
	return r, err == nil, err
}

// target returns the file that a URL leads to.
func (s *records) target(u string) (*referred, error) {
	if f, ok := s.known.Get(u); ok {
		return f, nil
	}
	if len(u) > maxURL {
		return nil, fault.New(fault.Limit, recordsPart, fault.NoOffset, "the URL %.80q has more than %d bytes", u,
			maxURL)
	}
	file := &referred{}
	file.uri, file.err = resolve(s.folder, u)
	s.known.Add(u, file, int64(len(u)+len(file.uri))+referredRefs*refBytes)
	return file, nil
}
