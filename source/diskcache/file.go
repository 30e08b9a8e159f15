package diskcache

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
)

// A range is a file: its bytes, and behind them, for each page of them, 8 bytes, little-endian: the XXH3 hash of the
// page, seeded with the hash of the file's name plus the number of the page. So a read checks the pages that it needs,
// and a file under a wrong name is damaged.
const (
	pageBytes = 64 << 10
	sumBytes  = 8
	// blockBytes is what file systems round the size of a file up to. The quota counts blocks, as the disk does.
	blockBytes = 4 << 10
	// partPrefix begins the names of files that are being written.
	partPrefix = ".part-"
	// touchAfter is how old the time of a range may be that says when it was last read.
	touchAfter = 24 * time.Hour
)

// errDamaged is the error of a file that is not what was written.
var errDamaged = errors.New("it is not what was written")

// openOwn opens a file of the cache. It refuses with errDamaged all but a regular file of this user, at once:
// links and pipes, too. Only ranges may have a second name.
func openOwn(name string, flags int) (*os.File, error) {
	file, err := os.OpenFile(name, flags|noFollow, 0o600)
	if isLink(err) {
		return nil, errDamaged
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		user, names := ownerOf(info)
		if !info.Mode().IsRegular() || user != os.Geteuid() || names > 1 && flags != os.O_RDONLY {
			err = errDamaged
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// own returns an error unless a folder is this user's. It takes the right to write to it from others.
func own(path string, info fs.FileInfo) error {
	if user, _ := ownerOf(info); user != os.Geteuid() {
		return fault.WithFile(fault.New(fault.Unsupported, "folder",
			"it belongs to user %d, and this is user %d: name a folder of your own", user, os.Geteuid()), path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return os.Chmod(path, mode&^0o022)
	}
	return nil
}

func pagesOf(n int64) int64 { return (n + pageBytes - 1) / pageBytes }

// fileBytes returns the size of the file of a range of n bytes.
func fileBytes(n int64) int64 { return n + pagesOf(n)*sumBytes }

// costOf returns what the file of a range of n bytes takes on disk.
func costOf(n int64) int64 { return (fileBytes(n) + blockBytes - 1) / blockBytes * blockBytes }

// nameOf returns the name of a range's file, below the cache's folder. 256 folders hold the files, so one has some
// thousand of a million.
func nameOf(o Object, s Span) string {
	uri := hex.EncodeToString(o.uri[:])
	return filepath.Join(uri[:2], fmt.Sprintf("%s-%x-%x-%x", uri, o.version, s.From, s.End))
}

// parseName returns the range that a file's name says, without its folder.
func parseName(name string) (s stored, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 4 || len(parts[0]) != 2*len(s.uri) || len(parts[1]) != 2*len(s.version) {
		return s, false
	}
	_, err1 := hex.Decode(s.uri[:], []byte(parts[0]))
	_, err2 := hex.Decode(s.Object.version[:], []byte(parts[1]))
	start, err3 := strconv.ParseInt(parts[2], 16, 64)
	end, err4 := strconv.ParseInt(parts[3], 16, 64)
	s.Span = Span{start, end}
	// A name that says more than a file can hold would fill the index. Other spellings of a name would be read by none.
	ok = errors.Join(err1, err2, err3, err4) == nil && start >= 0 && end > start && end-start <= maxRange
	return s, ok && filepath.Base(nameOf(s.Object, s.Span)) == name
}

// maxRange is the largest range that is stored, in bytes: a loader reads at most some MiB at a time, and a whole object
// of a server without ranges at most 64 MiB.
const maxRange = 1 << 30

// seedOf returns the seed of the hashes in the file of a range.
func seedOf(name string) uint64 { return xxh3.HashString(filepath.Base(name)) }

// disk writes and reads the bytes of ranges. Tests have some that fail.
type disk struct {
	fails func(reading bool) error
}

// write writes to a file that is open.
func (d disk) write(file *os.File, p []byte) error {
	if d.fails != nil {
		if err := d.fails(false); err != nil {
			return err
		}
	}
	_, err := file.Write(p)
	return err
}

// readAt fills p from a file that is open.
func (d disk) readAt(file *os.File, p []byte, off int64) error {
	if d.fails != nil {
		if err := d.fails(true); err != nil {
			return err
		}
	}
	_, err := file.ReadAt(p, off)
	return err
}

// writeRange writes a range under its name. It reports false if the file is there already.
func (d disk) writeRange(folder string, o Object, p []byte, s Span) (made bool, err error) {
	name := filepath.Join(folder, nameOf(o, s))
	part, err := os.CreateTemp(filepath.Dir(name), partPrefix+"*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.Mkdir(filepath.Dir(name), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			part, err = os.CreateTemp(filepath.Dir(name), partPrefix+"*")
		}
	}
	if err != nil {
		return false, err
	}
	defer os.Remove(part.Name())
	seed := seedOf(name)
	sums := make([]byte, 0, pagesOf(s.len())*sumBytes)
	for page := range slices.Chunk(p, pageBytes) {
		sums = binary.LittleEndian.AppendUint64(sums, xxh3.HashSeed(page, seed+uint64(len(sums)/sumBytes)))
	}
	err = d.write(part, p)
	if err == nil {
		err = d.write(part, sums)
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return false, err
	}
	// A range with two names, as a link would give it, keeps its bytes on disk when it makes room: an engine may be
	// killed before it takes the other name away. One that replaces another engine's would count twice.
	err = durable.RenameNew(part.Name(), name)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// readRange fills p with bytes of a range, from off of the object on. Its errors are errDamaged, and what the disk
// says. touch says that a run reads it, which gives the file a new time.
func (d disk) readRange(name string, s Span, p []byte, off int64, touch bool) error {
	file, err := openOwn(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != fileBytes(s.len()) {
		return errDamaged
	}
	if touch && time.Since(info.ModTime()) > touchAfter {
		now := time.Now()
		_ = os.Chtimes(name, now, now) // without it the range goes earlier
	}
	start, end := off-s.From, off-s.From+int64(len(p))
	first, last := start/pageBytes, (end-1)/pageBytes
	sums := make([]byte, (last-first+1)*sumBytes)
	if err := d.readAt(file, sums, s.len()+first*sumBytes); err != nil {
		return err
	}
	seed := seedOf(name)
	check := func(k int64, page []byte) error {
		if xxh3.HashSeed(page, seed+uint64(k)) != binary.LittleEndian.Uint64(sums[(k-first)*sumBytes:]) {
			return errDamaged
		}
		return nil
	}
	// Pages at the edges, if p has only a part of them, are read aside, the others in one go.
	var edge []byte
	for count := first; count <= last; {
		begin := count * pageBytes
		if begin >= start && (begin+pageBytes <= end || end == s.len()) {
			stop := end
			if end < s.len() {
				stop = end / pageBytes * pageBytes
			}
			if err := d.readAt(file, p[begin-start:stop-start], begin); err != nil {
				return err
			}
			for page := range slices.Chunk(p[begin-start:stop-start], pageBytes) {
				if err := check(count, page); err != nil {
					return err
				}
				count++
			}
			continue
		}
		if edge == nil {
			edge = make([]byte, pageBytes)
		}
		page := edge[:min(pageBytes, s.len()-begin)]
		if err := d.readAt(file, page, begin); err != nil {
			return err
		}
		if err := check(count, page); err != nil {
			return err
		}
		low := max(begin, start)
		copy(p[low-start:], page[low-begin:])
		count++
	}
	return nil
}

// removeRange removes the file of a range, and gives its bytes back unless another engine did so.
func removeRange(name string, used *counter, cost int64) {
	if os.Remove(name) == nil {
		_, _ = used.add(-cost) // without it the cache holds less
	}
}

// each calls f for the files of ranges. remove removes the files of killed engines that are no range.
func each(folder string, remove bool, f func(name string, s stored) error) error {
	for k := range 256 {
		dir := filepath.Join(folder, fmt.Sprintf("%02x", k))
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() { // files behind a link are not the cache's to remove
			return fault.WithFile(fault.New(fault.Unsupported, "folder", "it is no folder, so remove it"), dir)
		}
		if err := own(dir, info); err != nil {
			return err
		}
		file, err := os.Open(dir)
		if err != nil {
			return err
		}
		names, err := file.Readdirnames(-1)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			s, ok := parseName(name)
			switch {
			case ok:
				if err := f(path, s); err != nil {
					return err
				}
			case remove && strings.HasPrefix(name, partPrefix):
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// scan returns the ranges of a folder, and what they take on disk.
func scan(folder string, alone bool) (spans index, used int64, err error) {
	spans = index{}
	err = each(folder, alone, func(_ string, s stored) error {
		spans.add(s.Object, s.Span)
		used += costOf(s.len())
		return nil
	})
	return spans, used, err
}

// trim removes ranges that have not been read for some time, the longest unread first, until all take at most target
// bytes. A time of 0 holds for all ranges, also for ones with a time in the future: clocks are set.
func trim(folder string, used *counter, target int64, unread time.Duration) error {
	type aged struct {
		name string
		cost int64
		read time.Time
	}
	var found []aged
	now := time.Now()
	err := each(folder, false, func(name string, s stored) error {
		info, err := os.Lstat(name)
		if err == nil && (unread == 0 || now.Sub(info.ModTime()) >= unread) {
			found = append(found, aged{name, costOf(s.len()), info.ModTime()})
		}
		return nil // another engine may have removed it
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b aged) int { return cmp.Or(a.read.Compare(b.read), cmp.Compare(a.name, b.name)) })
	for _, file := range found {
		rest, err := used.add(0)
		if err != nil || rest <= target {
			return err
		}
		removeRange(file.name, used, file.cost)
	}
	return nil
}
