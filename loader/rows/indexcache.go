package rows

import (
	"bufio"
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

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
)

// An index file holds the chunk indexes of the rasters in one container file, so that the next run need not read their
// headers. It belongs to one version of that file, which its key names. It is a log: processes append records and
// change none. All numbers of a record are little-endian:
//
//	u64 offset and u64 length of the raster in the container
//	u32 length of the blob
//	u32 CRC-32C of the key, the 20 bytes before and the blob
//	blob: the names of bands and the place of the raster (catalog.Asset.AppendHeader), then its chunk index
//
// The file may be damaged or forged. Lengths are checked against its size, blobs against their checksums, and a parsed
// index against the raster like any other. A damaged file is removed, because a record behind the damage would never
// be found.
const (
	indexHead    = 8 + 8 + 4 + 4
	maxIndexKey  = 1 << 13  // a path or URI, a size and an entity tag
	maxIndexBlob = 16 << 20 // at most the size of one write, pendingBytes
	maxIndexes   = 1 << 20  // records, whose places take 80 MiB of memory

	// indexFileBytes bounds one file, which is read once when it is opened: 128 MiB hold the indexes of 130,000 rasters
	// of 1 KiB each, whose places take about 10 MiB of memory. indexStoreBytes bounds the directory: 8 files of full
	// size. trim removes the files that were not used for the longest time.
	indexFileBytes  = 128 << 20
	indexStoreBytes = 1 << 30

	// New indexes are written when there are this many, or this many bytes, and on close. Both are reached together by
	// indexes of 1 KiB: 16,384 × 1 KiB = 16 MiB. Larger limits would take more memory for each container.
	pendingIndexes = 1 << 14
	pendingBytes   = 16 << 20
)

// castagnoli is the polynomial of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// indexStore is a directory of index files. A nil store keeps nothing.
type indexStore struct {
	dir       string
	bound     int64 // bytes of all files together
	fileBound int64 // bytes of one file
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
	return &indexStore{dir, indexStoreBytes, indexFileBytes}
}

// open returns the indexes of the version of a file that key names. It returns nil if they are not
// kept; a nil indexFile has no indexes and takes none.
func (s *indexStore) open(key string) *indexFile {
	if s == nil || len(key) > maxIndexKey {
		return nil
	}
	// The name is a hash, because a key has characters that file names must not have. The number is the version of the
	// format: files of other versions have other names, and are removed by trim.
	sum := xxh3.HashString128("5\n" + key).Bytes()
	x := &indexFile{
		store: s, key: key, path: filepath.Join(s.dir, hex.EncodeToString(sum[:])+".idx"),
		stored: map[chunk.Range]indexBlob{}, fresh: map[chunk.Range][]byte{},
	}
	x.load()
	return x
}

// indexBlob says where a blob lies in an index file.
type indexBlob struct {
	off      int64
	size     uint32
	checksum uint32
}

// indexFile holds the indexes of one container file. It is safe for concurrent use.
type indexFile struct {
	store *indexStore
	key   string
	path  string

	mu     sync.RWMutex // guards the fields below it
	file   *os.File     // nil until there is one
	stored map[chunk.Range]indexBlob
	fresh  map[chunk.Range][]byte // indexes that are not written yet
	bytes  int                    // that fresh takes in a file
	full   bool                   // put takes no more
}

// load opens the file and reads its records. Without a file, or with a damaged one, it has no records.
func (x *indexFile) load() {
	file, err := os.OpenFile(x.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && x.scan(file, info.Size()) {
		now := time.Now()
		_ = os.Chtimes(x.path, now, now) // trim goes by the modification time
		x.file = file
		return
	}
	clear(x.stored)
	_ = file.Close()
	_ = os.Remove(x.path)
}

// scan reads the records of a file of size bytes. It reports false for a file that is damaged or has another key.
func (x *indexFile) scan(r io.Reader, size int64) bool {
	// Processes that write at once may pass the bound by a write each, pendingBytes.
	if size > 2*indexFileBytes {
		return false
	}
	in := bufio.NewReaderSize(r, 1<<20)
	var head [indexHead]byte
	var blob []byte
	for pos := int64(0); pos < size; {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return false
		}
		pos += indexHead
		n, checksum := binary.LittleEndian.Uint32(head[16:]), binary.LittleEndian.Uint32(head[20:])
		if n > maxIndexBlob || int64(n) > size-pos || len(x.stored) >= maxIndexes {
			return false
		}
		blob = slices.Grow(blob[:0], int(n))[:n]
		raster := chunk.Range{
			Off: int64(binary.LittleEndian.Uint64(head[:])), Len: int64(binary.LittleEndian.Uint64(head[8:])),
		}
		if _, err := io.ReadFull(in, blob); err != nil || checksum != x.checksum(raster, blob) {
			return false
		}
		x.stored[raster] = indexBlob{pos, n, checksum}
		pos += int64(n)
	}
	return true
}

// appendHead appends a record up to its checksum.
func appendHead(b []byte, raster chunk.Range, blob []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(raster.Off))
	b = binary.LittleEndian.AppendUint64(b, uint64(raster.Len))
	return binary.LittleEndian.AppendUint32(b, uint32(len(blob)))
}

// checksum returns the checksum of a record.
func (x *indexFile) checksum(raster chunk.Range, blob []byte) uint32 {
	sum := crc32.Checksum([]byte(x.key), castagnoli)
	sum = crc32.Update(sum, castagnoli, appendHead(nil, raster, blob))
	return crc32.Update(sum, castagnoli, blob)
}

// get returns the index of a raster as a blob, or nil.
func (x *indexFile) get(off, length int64) []byte {
	if x == nil {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	raster := chunk.Range{Off: off, Len: length}
	if blob, ok := x.fresh[raster]; ok {
		return blob
	}
	place, ok := x.stored[raster]
	if !ok || x.file == nil {
		return nil
	}
	blob := make([]byte, place.size)
	if _, err := x.file.ReadAt(blob, place.off); err != nil || x.checksum(raster, blob) != place.checksum {
		return nil
	}
	return blob
}

// put adds the index of a raster. It may write the new indexes; after an error it takes no more, so
// that a full disk is reported once.
func (x *indexFile) put(off, length int64, blob []byte) error {
	if x == nil || len(blob) > maxIndexBlob {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.full || len(x.stored)+len(x.fresh) >= maxIndexes {
		return nil
	}
	x.fresh[chunk.Range{Off: off, Len: length}] = blob
	x.bytes += indexHead + len(blob)
	if len(x.fresh) >= pendingIndexes || x.bytes >= pendingBytes {
		return x.flush()
	}
	return nil
}

// close writes the new indexes and closes the file.
func (x *indexFile) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.flush()
	if x.file != nil {
		err = errors.Join(err, x.file.Close())
		x.file = nil
	}
	x.full = true
	return err
}

// flush appends the new indexes to the file. It needs the lock.
func (x *indexFile) flush() error {
	if len(x.fresh) == 0 {
		return nil
	}
	written := make(map[chunk.Range]indexBlob, len(x.fresh))
	records := make([]byte, 0, x.bytes)
	for raster, blob := range x.fresh {
		sum := x.checksum(raster, blob)
		records = binary.LittleEndian.AppendUint32(appendHead(records, raster, blob), sum)
		written[raster] = indexBlob{int64(len(records)), uint32(len(blob)), sum}
		records = append(records, blob...)
	}
	clear(x.fresh)
	x.bytes = 0
	end, err := x.append(records)
	if err != nil || end == 0 {
		x.full = true
		return err
	}
	for raster, place := range written {
		place.off += end - int64(len(records))
		x.stored[raster] = place
	}
	x.store.trim(x.path)
	return nil
}

// append writes records at the end of the file in one write, so that processes do not mix theirs, and returns where
// they end, or 0 if there is no room for them.
func (x *indexFile) append(records []byte) (end int64, err error) {
	if x.file == nil {
		if err := os.MkdirAll(x.store.dir, 0o700); err != nil {
			return 0, err
		}
		if x.file, err = os.OpenFile(x.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
			return 0, err
		}
	}
	if info, err := x.file.Stat(); err != nil || info.Size()+int64(len(records)) > x.store.fileBound {
		return 0, err
	}
	if _, err := x.file.Write(records); err != nil {
		return 0, err
	}
	return x.file.Seek(0, io.SeekCurrent)
}

// trim removes the index files that were not used for the longest time until the others are within
// the bound. The file at keep stays. A file that cannot be removed is left for the next trim.
func (s *indexStore) trim(keep string) {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, entry := range list {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(entry.Name(), ".idx") {
			total += info.Size()
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if total <= s.bound {
			return
		}
		if path := filepath.Join(s.dir, f.Name()); path != keep && os.Remove(path) == nil {
			total -= f.Size()
		}
	}
}
