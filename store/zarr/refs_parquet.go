package zarr

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
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
	base   source.Opener
	folder string // URI
	size   int64  // rows of a file
	arrays map[string]*recordArray
	parts  *lru.Cache[recordKey, *recordPart]
	files  *lru.Cache[string, *referred] // by URL
	// busy is held to read files: so no two workers decode the same page, and pages on their way take the memory of
	// one.
	busy chan struct{}
}

// recordArray has the metadata from which the names of an array's chunks follow.
type recordArray struct {
	keys keys
	grid []int64 // chunks along each dimension
}

const recordsPart = "record"

// Limits of references in Parquet. fsspec writes 10,000 rows to a file by default, kerchunk 100,000, of some 100 bytes
// in memory.
const (
	maxRecordSize = 1 << 22   // rows of a file: the most of a page that the reader of Parquet takes
	maxRecordFile = 128 << 20 // bytes of a file
	recordParts   = 32 << 20  // bytes of pages and footers that a store keeps
	recordURLs    = 4 << 20   // bytes of the known files that references lead to
	// maxRecordChunks bounds the chunks of an array, so that their numbers do not overflow.
	maxRecordChunks = 1 << 40
)

// recordsFolder splits a URI into a directory with the name of references in Parquet and the path below it, if it has
// both.
func recordsFolder(uri string) (folder, below string, ok bool) {
	for pos, c := range uri {
		if c == '/' && namedRecords(path.Base(uri[:pos])) && strings.Trim(uri[pos:], "/") != "" {
			return uri[:pos], strings.Trim(uri[pos:], "/"), true
		}
	}
	return "", "", false
}

// inRecords opens the node, with the metadata of the folder, if its URI lies in a folder of references in Parquet.
// Otherwise it returns nil.
func (n *Node) inRecords(ctx context.Context) (*Node, error) {
	folder, below, ok := recordsFolder(n.URI)
	if _, refers := n.open.(*references); refers || !ok {
		return nil, nil
	}
	root, err := Open(ctx, n.open, folder, n.options)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, refers := root.open.(*references); !refers {
		root.drop()
		return nil, nil
	}
	if source.IsWeb(folder) { // see source.Join
		if below, err = url.PathUnescape(below); err != nil {
			return nil, fault.WithFile(corrupt("%v", err), n.URI)
		}
	}
	node, err := root.At(ctx, below)
	if err != nil {
		root.drop()
		return nil, err
	}
	node.charged = root.charged
	if node.Array != nil {
		node.Array.Path = "" // it is opened by itself
	}
	return node, nil
}

// referRecords makes the node's opener one of references in Parquet if its consolidated metadata says so.
func (n *Node) referRecords(ctx context.Context, all object) error {
	size := int64(0)
	ok, err := all.get("record_size", &size)
	if _, refers := n.open.(*references); refers || !ok || err != nil {
		return err
	}
	if size < 1 || size > maxRecordSize {
		return fault.New(fault.Limit, metaPart, fault.NoOffset, "a record_size of %d, at most %d", size, maxRecordSize)
	}
	if err := n.charge(ctx, recordParts+recordURLs); err != nil {
		return err
	}
	s := &records{base: n.open, folder: n.URI, size: size, arrays: map[string]*recordArray{},
		parts: lru.New[recordKey, *recordPart](recordParts), files: lru.New[string, *referred](recordURLs),
		busy: make(chan struct{}, 1)}
	for p, e := range n.below {
		if e.array {
			s.arrays[p] = newRecordArray(e.meta)
		}
	}
	n.open = &references{base: n.open, uri: n.URI, list: s}
	return nil
}

// newRecordArray makes a recordArray from metadata. It returns nil if no array can be made of them; their chunks are
// never read.
func newRecordArray(meta object) *recordArray {
	m, err := parse2(meta, nil)
	if err != nil {
		return nil
	}
	records := &recordArray{keys: m.keys, grid: gridOf(m.Shape, m.Chunks)}
	if !slices.Contains(records.grid, 0) && cells(records.grid, maxRecordChunks) < 0 {
		return nil
	}
	return records
}

// array returns the array that an object belongs to, and the coordinates of the chunk.
func (s *records) array(name string) (dir string, a *recordArray, at []int64) {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		if records := s.arrays[name[:i]]; records != nil {
			places, ok := records.keys.parse(name[i+1:], records.grid)
			if ok {
				return name[:i], records, places
			}
		}
	}
	return "", nil, nil
}

// find implements refTable.
func (s *records) find(ctx context.Context, name string) (ref, bool, error) {
	dir, a, places := s.array(name)
	if a == nil {
		return ref{}, false, nil
	}
	number := int64(0)
	for d, n := range a.grid {
		number = number*n + places[d]
	}
	recordFile, err := s.open(ctx, dir, number/s.size)
	var r ref
	ok := false
	if err == nil && recordFile.part.file != nil {
		r, ok, err = s.row(ctx, recordFile, number%s.size)
	}
	return r, ok, fault.WithFile(fault.WithPart(err, firstBytes(name), 0), s.uri(recordFile.key))
}

// each implements refTable: it knows the chunks of arrays, where the folder can be listed. A row that is damaged is
// visited like one with a reference.
func (s *records) each(ctx context.Context, dir string, visit func(name string) (skip string, err error)) error {
	a := s.arrays[dir]
	if a == nil || slices.Contains(a.grid, 0) {
		return nil
	}
	list, err := source.Names(ctx, s.base, source.Join(s.folder, dir))
	if err != nil {
		return err
	}
	total := cells(a.grid, maxRecordChunks)
	for _, name := range list {
		record, ok := recordNumber(name)
		if !ok || record > (total-1)/s.size {
			continue
		}
		recordFile, err := s.open(ctx, dir, record)
		if err != nil {
			return fault.WithFile(err, s.uri(recordFile.key))
		}
		if recordFile.part.file == nil {
			continue
		}
		for row := range min(recordFile.part.file.Rows, s.size, total-record*s.size) {
			_, ok, err := s.row(ctx, recordFile, row)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			switch {
			case err != nil && fault.KindOf(err) == 0: // no fault of the row
				return fault.WithFile(err, s.uri(recordFile.key))
			case err == nil && !ok:
				continue
			}
			if _, err := visit(a.chunk(record*s.size + row)); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordNumber returns the number in the name of a file.
func recordNumber(name string) (int64, bool) {
	rest, begins := strings.CutPrefix(name, "refs.")
	digits, ends := strings.CutSuffix(rest, ".parq")
	n, err := strconv.ParseInt(digits, 10, 64)
	number := err == nil && n >= 0 && strconv.FormatInt(n, 10) == digits
	return n, begins && ends && number
}

// chunk returns the name of the chunk with a number in C order.
func (a *recordArray) chunk(number int64) string {
	places := make([]int64, len(a.grid))
	for d, n := range slices.Backward(a.grid) {
		places[d], number = number%n, number/n
	}
	return a.keys.name(places)
}
