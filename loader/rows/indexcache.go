package rows

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader/resources"
)

// An index file holds the chunk indexes of the rasters in one container file, so that the next run
// need not read their headers. It belongs to one version of that file, which its key names, and is
// never changed: new indexes are merged into a new file that replaces it. All numbers are
// little-endian.
//
//	8 bytes   magic "CHKIDX4\n"
//	u32       length of the key, and the key
//	u64       number of entries
//	entries   u64 offset and u64 length of the raster in the container; u64 offset of the blob in
//	          this file, u32 length of the blob; u32 CRC-32C over these 28 bytes and the blob.
//	          Entries ascend by offset and length.
//	blobs     the names of bands and the place of the raster (catalog.Asset.AppendHeader), then its chunk index
//
// The file may be damaged or forged. Offsets are checked against its size, blobs against their
// checksums, and a parsed index against the raster like any other.
const (
	indexMagic   = "CHKIDX4\n"
	indexEntry   = 32       // 8 + 8 + 8 + 4 + 4 bytes
	maxIndexKey  = 1 << 13  // a path or URI, a size and an entity tag
	maxIndexBlob = 16 << 20 // at most the size of one write, pendingBytes

	// indexFileBytes bounds one file, indexStoreBytes the directory: 4 files of full size.
	// trim removes the files that were not used for the longest time.
	indexFileBytes  = 256 << 20
	indexStoreBytes = 1 << 30

	// New indexes are written when there are this many, or this many bytes, and on close. Both are
	// reached together by indexes of 1 KiB: 16,384 × 1 KiB = 16 MiB. Each write copies the whole
	// file, so that smaller limits would cost more copies, and larger ones more memory for each
	// container.
	pendingIndexes = 1 << 14
	pendingBytes   = 16 << 20
)

// castagnoli is the polynomial of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// indexStore is a directory of index files. A nil store keeps nothing.
type indexStore struct {
	dir   string
	bound int64 // bytes of all files together
}

// newIndexStore returns the store in dir. "" is chaski/indexes in the user's cache directory, and
// NoIndexCache means no store. Without a cache directory there is no store either, since a run does
// not need one.
func newIndexStore(dir string) *indexStore {
	if dir == resources.NoIndexCache {
		return nil
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(base, "chaski", "indexes")
	}
	return &indexStore{dir, indexStoreBytes}
}

// open returns the indexes of the version of a file that key names. It returns nil if they are not
// kept; a nil indexFile has no indexes and takes none.
func (s *indexStore) open(key string) *indexFile {
	if s == nil || len(key) > maxIndexKey {
		return nil
	}
	sum := xxh3.HashString128(key).Bytes()
	// The name is a hash, because a key has characters that file names must not have. The file
	// holds the key itself, so that two keys with one hash are not confused.
	path := filepath.Join(s.dir, hex.EncodeToString(sum[:])+".idx")
	x := &indexFile{store: s, key: key, path: path, fresh: map[extent][]byte{}}
	if x.stored = readIndexFile(x.path, key); x.stored != nil {
		now := time.Now()
		_ = os.Chtimes(x.path, now, now) // trim goes by the modification time
	}
	return x
}

// extent is the byte range of a raster in its container.
type extent struct{ off, length int64 }

// compare orders extents by offset, then by length.
func (e extent) compare(o extent) int {
	return cmp.Or(cmp.Compare(e.off, o.off), cmp.Compare(e.length, o.length))
}

// indexFile holds the indexes of one container file. It is safe for concurrent use.
type indexFile struct {
	store *indexStore
	key   string
	path  string

	// mu protects the fields up to full. It is not held during a write, so that get and put go on
	// meanwhile. An index leaves fresh only after the write, so that get finds it until then.
	mu     sync.RWMutex
	stored *storedIndexes    // the open file; nil without one
	fresh  map[extent][]byte // indexes that are not written yet
	bytes  int               // the bytes of fresh in a file
	full   bool              // put takes no more

	// writing is held during a flush, so that one flush does not drop what another has added. It is
	// taken before mu.
	writing sync.Mutex
}

// get returns the index of a raster as a blob, or nil.
func (x *indexFile) get(off, length int64) []byte {
	if x == nil {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	e := extent{off, length}
	if blob, ok := x.fresh[e]; ok {
		return blob
	}
	if x.stored == nil {
		return nil
	}
	return x.stored.find(e)
}

// put adds the index of a raster. It may write the new indexes; after an error it takes no more, so
// that a full disk is reported once.
func (x *indexFile) put(off, length int64, blob []byte) error {
	if x == nil || len(blob) > maxIndexBlob {
		return nil
	}
	x.mu.Lock()
	if x.full {
		x.mu.Unlock()
		return nil
	}
	x.fresh[extent{off, length}] = blob
	x.bytes += len(blob) + indexEntry
	write := len(x.fresh) >= pendingIndexes || x.bytes >= pendingBytes
	x.mu.Unlock()
	if write {
		return x.flush()
	}
	return nil
}

// close writes the new indexes and closes the file.
func (x *indexFile) close() error {
	err := x.flush()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stored != nil {
		err = errors.Join(err, x.stored.close())
		x.stored = nil
	}
	x.full = true
	return err
}

// flush writes a file that has the stored and the new indexes.
func (x *indexFile) flush() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.RLock()
	fresh := make([]extent, 0, len(x.fresh))
	blobs := make(map[extent][]byte, len(x.fresh))
	for e, b := range x.fresh {
		fresh, blobs[e] = append(fresh, e), b
	}
	x.mu.RUnlock()
	if len(fresh) == 0 {
		return nil
	}
	slices.SortFunc(fresh, extent.compare)
	// The file is opened again, because another process may have replaced it since x.stored was
	// opened.
	old := readIndexFile(x.path, x.key)
	full, err := x.write(old, fresh, blobs)
	if old != nil {
		err = errors.Join(err, old.close())
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range fresh {
		delete(x.fresh, e)
	}
	// Entries that other calls of put added during the write stay.
	x.bytes = 0
	for _, b := range x.fresh {
		x.bytes += len(b) + indexEntry
	}
	if x.stored != nil {
		err = errors.Join(err, x.stored.close())
	}
	x.stored = readIndexFile(x.path, x.key)
	x.full = x.full || full || err != nil
	return err
}

// indexItem is an entry of a file that is being written.
type indexItem struct {
	extent
	at  int64 // the offset of its blob in the old file; -1 for a new index
	len uint32
}

// write merges the stored and the new indexes into a file that replaces the old one. full reports
// whether there is no room for more.
func (x *indexFile) write(old *storedIndexes, fresh []extent, blobs map[extent][]byte) (full bool, err error) {
	if err := os.MkdirAll(x.store.dir, 0o700); err != nil {
		return true, err
	}
	items, full := x.merge(old, fresh, blobs)
	err = durable.WriteFile(x.path, func(f *os.File) error { return x.writeItems(f, old, items, blobs) })
	if err == nil {
		x.store.trim(x.path)
	}
	return full, err
}

// merge returns the entries that fit into a file, in order, and whether it left out new ones.
func (x *indexFile) merge(old *storedIndexes, fresh []extent, blobs map[extent][]byte) (items []indexItem, full bool) {
	size := int64(len(indexMagic)+4+len(x.key)) + 8 // the head: magic, length of the key, key, count
	add := func(e extent, at int64, n uint32) bool {
		if size+indexEntry+int64(n) > indexFileBytes {
			return false
		}
		size += indexEntry + int64(n)
		items = append(items, indexItem{e, at, n})
		return true
	}
	// Stored entries come first: a full file keeps them, and full makes put take no more.
	if old != nil {
		for i := range old.n {
			slot, ok := old.slot(i)
			if _, again := blobs[slot.extent]; !ok || again {
				continue
			}
			if !add(slot.extent, slot.at, slot.len) {
				break
			}
		}
	}
	for _, e := range fresh {
		if !add(e, -1, uint32(len(blobs[e]))) {
			full = true
			break
		}
	}
	slices.SortFunc(items, func(a, b indexItem) int { return a.compare(b.extent) })
	return items, full
}

// writeItems writes the head, the entries and the blobs of a file.
func (x *indexFile) writeItems(f *os.File, old *storedIndexes, items []indexItem, blobs map[extent][]byte) error {
	var head bytes.Buffer
	head.WriteString(indexMagic)
	head.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(x.key))))
	head.WriteString(x.key)
	head.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(items))))
	pos := int64(head.Len()) + int64(len(items))*indexEntry
	body := newBodyWriter(f, pos)
	for _, it := range items {
		blob := blobs[it.extent]
		if it.at >= 0 {
			if blob = old.read(it.at, it.len); blob == nil {
				// The offsets of all blobs follow from the number of entries, so an entry that
				// cannot be read keeps its place, with an empty blob that find takes for none.
				blob = []byte{}
			}
		}
		head.Write(slotBytes(it.extent, body.at, blob))
		body.write(blob)
	}
	return errors.Join(body.flush(), writeAt(f, head.Bytes()))
}

// writeAt writes b at the start of f.
func writeAt(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// bodyWriter writes blobs one after the other, in writes of about 1 MiB. It keeps the first error.
type bodyWriter struct {
	f   *os.File
	at  int64 // the offset of the next blob
	buf []byte
	err error
}

// newBodyWriter returns a writer whose first blob lies at offset at.
func newBodyWriter(f *os.File, at int64) *bodyWriter { return &bodyWriter{f: f, at: at} }

// write appends a blob.
func (w *bodyWriter) write(b []byte) {
	w.buf = append(w.buf, b...)
	w.at += int64(len(b))
	if len(w.buf) >= 1<<20 {
		w.err = w.flush()
	}
}

// flush writes the buffer and returns the first error of all writes.
func (w *bodyWriter) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.f.WriteAt(w.buf, w.at-int64(len(w.buf)))
		w.buf = w.buf[:0]
	}
	return w.err
}

// slotBytes returns the 32 bytes of an entry.
func slotBytes(e extent, at int64, blob []byte) []byte {
	buf := binary.LittleEndian.AppendUint64(nil, uint64(e.off))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(e.length))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(at))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(blob)))
	return binary.LittleEndian.AppendUint32(buf, crc32.Update(crc32.Checksum(buf, castagnoli), castagnoli, blob))
}

// trim removes the index files that were not used for the longest time until the others are within
// the bound. The file at keep stays. A file that cannot be removed is left for the next trim.
func (s *indexStore) trim(keep string) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	type file struct {
		path string
		size int64
		used time.Time
	}
	var files []file
	total := int64(0)
	for _, entry := range list {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f := file{filepath.Join(s.dir, entry.Name()), info.Size(), info.ModTime()}
		if strings.HasSuffix(entry.Name(), ".idx") {
			total += f.size
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= s.bound {
			return
		}
		if f.path != keep && os.Remove(f.path) == nil {
			total -= f.size
		}
	}
}

// storedIndexes is an open index file. Entries and blobs are read on demand: twenty reads find one
// of a million entries, from pages that the operating system keeps in memory.
type storedIndexes struct {
	f     io.ReaderAt
	c     io.Closer
	first int64 // the offset of the first entry
	n     int64 // the number of entries
	size  int64 // the bytes of the file
}

// readIndexFile opens the index file at path. It returns nil if the file is missing, damaged or of
// another key, because a run can do without it.
func readIndexFile(path, key string) *storedIndexes {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		if s := parseIndexFile(file, info.Size(), key); s != nil {
			s.c = file
			return s
		}
	}
	_ = file.Close()
	return nil
}

// parseIndexFile reads the head of an index file of size bytes. It returns nil if the head is
// damaged or has another key.
func parseIndexFile(f io.ReaderAt, size int64, key string) *storedIndexes {
	head := make([]byte, len(indexMagic)+4+len(key)+8)
	if size < int64(len(head)) || size > indexFileBytes {
		return nil
	}
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil
	}
	rest, ok := bytes.CutPrefix(head, []byte(indexMagic))
	if !ok || binary.LittleEndian.Uint32(rest) != uint32(len(key)) || string(rest[4:4+len(key)]) != key {
		return nil
	}
	// Dividing the size, instead of multiplying n, cannot overflow for a forged count.
	n := binary.LittleEndian.Uint64(rest[4+len(key):])
	if n > uint64(size-int64(len(head)))/indexEntry {
		return nil
	}
	return &storedIndexes{f: f, first: int64(len(head)), n: int64(n), size: size}
}

// close closes the file.
func (s *storedIndexes) close() error { return s.c.Close() }

// slot is an entry of an index file.
type slot struct {
	extent
	at  int64  // the offset of the blob
	len uint32 // the bytes of the blob
	raw [indexEntry]byte
}

// slot reads entry i. ok is false if it cannot be read, or if its blob does not lie in the file.
func (s *storedIndexes) slot(i int64) (e slot, ok bool) {
	if _, err := s.f.ReadAt(e.raw[:], s.first+i*indexEntry); err != nil {
		return e, false
	}
	n := func(at int) int64 { return int64(binary.LittleEndian.Uint64(e.raw[at:])) }
	e.off, e.length, e.at, e.len = n(0), n(8), n(16), binary.LittleEndian.Uint32(e.raw[24:])
	inside := e.at >= 0 && e.at <= s.size && int64(e.len) <= s.size-e.at
	return e, inside && e.off >= 0 && e.length >= 0 && e.len <= maxIndexBlob
}

// read returns n bytes of the file from offset at, or nil if they cannot be read.
func (s *storedIndexes) read(at int64, n uint32) []byte {
	data := make([]byte, n)
	if _, err := s.f.ReadAt(data, at); err != nil {
		return nil
	}
	return data
}

// find returns the blob of a raster, by binary search. It returns nil if the file lacks it or its
// checksum is wrong.
func (s *storedIndexes) find(want extent) []byte {
	lo, hi := int64(0), s.n
	for lo < hi {
		mid := lo + (hi-lo)/2
		slot, ok := s.slot(mid)
		if !ok {
			return nil
		}
		switch c := slot.compare(want); {
		case c < 0:
			lo = mid + 1
		case c > 0:
			hi = mid
		default:
			blob := s.read(slot.at, slot.len)
			sum := crc32.Update(crc32.Checksum(slot.raw[:28], castagnoli), castagnoli, blob)
			if len(blob) == 0 || sum != binary.LittleEndian.Uint32(slot.raw[28:]) {
				return nil
			}
			return blob
		}
	}
	return nil
}
