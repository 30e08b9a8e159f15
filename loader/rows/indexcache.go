package rows

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/loader/resources"
)

// A file of indexes holds the chunk indexes of rasters in one container, so that the next run need not
// read their headers. It is made for one state of the container, which its key names, and never changed:
// what is new is merged into a new file that takes its place. All numbers are little-endian.
//
//	8 bytes   magic "CHKIDX1\n"
//	u32       length of the key, and the key
//	u64       number of entries
//	entries   u64 offset, u64 length of the raster in the container; u64 place in this file, u32 length of
//	          the blob; u32 CRC-32C over the 28 bytes before and the blob. They ascend by offset and length.
//	blobs
//
// Nothing in it is believed: places are checked against the file, blobs against their sums, and what they
// say as if they came from anywhere.
const (
	indexMagic   = "CHKIDX1\n"
	indexEntry   = 32
	maxIndexKey  = 1 << 13
	maxIndexBlob = 16 << 20

	// indexFileBytes bounds one file, indexStoreBytes all of them: the longest unused go first.
	indexFileBytes  = 256 << 20
	indexStoreBytes = 1 << 30

	// What is new is written once there are so many indexes of it or so many bytes, and at the end.
	pendingIndexes = 1 << 14
	pendingBytes   = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// indexStore is a folder of files of indexes. nil keeps nothing.
type indexStore struct {
	dir   string
	bound int64
}

// newIndexStore returns the store in a folder: "" is the user's, NoIndexCache none.
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

// open returns the indexes of a container in a state.
func (s *indexStore) open(key string) *indexFile {
	if s == nil || len(key) > maxIndexKey {
		return nil
	}
	sum := xxh3.HashString128(key).Bytes()
	x := &indexFile{store: s, key: key, path: filepath.Join(s.dir, hex.EncodeToString(sum[:])+".idx"), fresh: map[extent][]byte{}}
	if x.stored = readIndexFile(x.path, key); x.stored != nil {
		now := time.Now()
		_ = os.Chtimes(x.path, now, now) // only what is unused for long goes
	}
	return x
}

// extent is where a raster lies in its container.
type extent struct{ off, length int64 }

func (e extent) compare(o extent) int {
	return cmp.Or(cmp.Compare(e.off, o.off), cmp.Compare(e.length, o.length))
}

// indexFile is the indexes of one container. It is safe for concurrent use.
type indexFile struct {
	store *indexStore
	key   string
	path  string

	mu     sync.RWMutex
	stored *storedIndexes // nil: none
	fresh  map[extent][]byte
	bytes  int
	full   bool // no more are taken

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

// put adds the index of a raster. An error says that what is new could not be written; nothing more is
// taken then.
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

// close writes what is new and lets go of the file.
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

// flush writes a file of what is stored, now that others may have added to it, and what is new.
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
	at  int64 // in the file before, or -1
	len uint32
}

// write merges what is stored and what is new into a file that takes the place of the one before. It
// reports whether there is no room for more.
func (x *indexFile) write(old *storedIndexes, fresh []extent, blobs map[extent][]byte) (full bool, err error) {
	if err := os.MkdirAll(x.store.dir, 0o700); err != nil {
		return true, err
	}
	items, full := x.merge(old, fresh, blobs)
	tmp, err := os.CreateTemp(x.store.dir, ".new-*")
	if err != nil {
		return true, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	err = errors.Join(x.writeItems(tmp, old, items, blobs), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), x.path)
	}
	if err == nil {
		x.store.trim(x.path)
	}
	return full, err
}

// merge returns the entries that there is room for, in their order in the file, and whether new ones were left out.
func (x *indexFile) merge(old *storedIndexes, fresh []extent, blobs map[extent][]byte) (items []indexItem, full bool) {
	size := int64(len(indexMagic)+4+len(x.key)) + 8
	add := func(e extent, at int64, n uint32) bool {
		if size+indexEntry+int64(n) > indexFileBytes {
			return false
		}
		size += indexEntry + int64(n)
		items = append(items, indexItem{e, at, n})
		return true
	}
	if old != nil {
		for i := range old.n {
			s, ok := old.slot(i)
			if _, again := blobs[s.extent]; !ok || again {
				continue
			}
			if !add(s.extent, s.at, s.len) {
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

// writeItems writes the head, the slots and the blobs of a file.
func (x *indexFile) writeItems(f *os.File, old *storedIndexes, items []indexItem, blobs map[extent][]byte) error {
	var head bytes.Buffer
	head.WriteString(indexMagic)
	head.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(x.key))))
	head.WriteString(x.key)
	head.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(items))))
	at := int64(head.Len()) + int64(len(items))*indexEntry
	body := newBodyWriter(f, at)
	for _, it := range items {
		blob := blobs[it.extent]
		if it.at >= 0 {
			if blob = old.read(it.at, it.len); blob == nil {
				blob = []byte{} // an entry that finds nothing
			}
		}
		head.Write(slotBytes(it.extent, body.at, blob))
		body.write(blob)
	}
	return errors.Join(body.flush(), writeAt(f, head.Bytes()))
}

func writeAt(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// bodyWriter writes blobs from a place on.
type bodyWriter struct {
	f   *os.File
	at  int64 // of the next blob
	buf []byte
	err error
}

func newBodyWriter(f *os.File, at int64) *bodyWriter { return &bodyWriter{f: f, at: at} }

func (w *bodyWriter) write(b []byte) {
	w.buf = append(w.buf, b...)
	w.at += int64(len(b))
	if len(w.buf) >= 1<<20 {
		w.err = w.flush()
	}
}

func (w *bodyWriter) flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.f.WriteAt(w.buf, w.at-int64(len(w.buf)))
		w.buf = w.buf[:0]
	}
	return w.err
}

// slotBytes returns an entry.
func slotBytes(e extent, at int64, blob []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(e.off))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.length))
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(blob)))
	return binary.LittleEndian.AppendUint32(b, crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, blob))
}

// trim removes the files that are unused for longest until the others are within the bound. The one at
// keep stays. What cannot be removed is left to the next time.
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
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f := file{filepath.Join(s.dir, d.Name()), info.Size(), info.ModTime()}
		switch {
		case strings.HasPrefix(d.Name(), ".new-") && time.Since(f.used) > time.Hour: // of who was killed
			_ = os.Remove(f.path)
		case strings.HasSuffix(d.Name(), ".idx"):
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

// storedIndexes is an open file of indexes.
type storedIndexes struct {
	f     io.ReaderAt
	c     io.Closer
	first int64 // place of the first entry
	n     int64 // entries
	size  int64 // of the file
}

// readIndexFile opens a file of indexes, or returns nil if there is none for the key that is sound.
func readIndexFile(path, key string) *storedIndexes {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		if s := parseIndexFile(f, info.Size(), key); s != nil {
			s.c = f
			return s
		}
	}
	_ = f.Close()
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return nil
}

// parseIndexFile reads the head of a file of indexes.
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
	n := binary.LittleEndian.Uint64(rest[4+len(key):])
	if n > uint64(size-int64(len(head)))/indexEntry {
		return nil
	}
	return &storedIndexes{f: f, first: int64(len(head)), n: int64(n), size: size}
}

func (s *storedIndexes) close() error { return s.c.Close() }

// slot is an entry that lies in its file.
type slot struct {
	extent
	at  int64
	len uint32
	raw [indexEntry]byte
}

func (s *storedIndexes) slot(i int64) (e slot, ok bool) {
	if _, err := s.f.ReadAt(e.raw[:], s.first+i*indexEntry); err != nil {
		return e, false
	}
	n := func(at int) int64 { return int64(binary.LittleEndian.Uint64(e.raw[at:])) }
	e.off, e.length, e.at, e.len = n(0), n(8), n(16), binary.LittleEndian.Uint32(e.raw[24:])
	return e, e.off >= 0 && e.length >= 0 && e.len <= maxIndexBlob && e.at >= 0 && e.at <= s.size && int64(e.len) <= s.size-e.at
}

// read returns bytes of the file, or nil.
func (s *storedIndexes) read(at int64, n uint32) []byte {
	b := make([]byte, n)
	if _, err := s.f.ReadAt(b, at); err != nil {
		return nil
	}
	return b
}

// find looks for a raster's blob. One whose sum is not right is not there.
func (s *storedIndexes) find(want extent) []byte {
	lo, hi := int64(0), s.n
	for lo < hi {
		mid := lo + (hi-lo)/2
		e, ok := s.slot(mid)
		if !ok {
			return nil
		}
		switch c := e.compare(want); {
		case c < 0:
			lo = mid + 1
		case c > 0:
			hi = mid
		default:
			blob := s.read(e.at, e.len)
			sum := crc32.Update(crc32.Checksum(e.raw[:28], castagnoli), castagnoli, blob)
			if len(blob) == 0 || sum != binary.LittleEndian.Uint32(e.raw[28:]) {
				return nil
			}
			return blob
		}
	}
	return nil
}
