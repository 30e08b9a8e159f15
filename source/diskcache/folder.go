// Package diskcache keeps byte ranges of remote objects in a folder of a local disk, within a quota.
//
// A training run reads every chip once an epoch, in a new order each time. Then a cache that drops the least recently
// used range hardly ever has the next one: with room for a tenth of the data it has 0.5 % of them. One that keeps what
// it has and takes nothing more has a tenth. So a Folder keeps the first ranges that fit. Where ranges are read several
// times in an epoch, the run announces its next reads (Run), and what is read last makes room. Either way its hits are
// known before the run: see Simulation.
//
// The folder may be shared by several engines and runs. Each range is a file, which has its name once it is complete.
// Its pages have checksums; a damaged range is removed and read again. A file that is missing costs a request and
// nothing else, so the folder may be deleted at any time. It is never the only copy of anything.
package diskcache

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/source"
)

const (
	// marker is a file by which a folder is known as a cache. Without it everything in a folder stays.
	marker = "chaski-cache.json"
	// usedName is a file of 8 bytes: the bytes that all ranges take. Its lock guards them.
	usedName = "used"
	// liveName is a file on which every engine has a shared lock, so the next one knows whether it is alone.
	liveName = "engines"
	// readsName is a file whose bytes stand for ranges: an engine that reads one from the store has a lock on it.
	readsName = "reads"
	// version is the version of the folder's format.
	version = 1
	// maxMarker is how many bytes of a marker are read: one has 15.
	maxMarker = 4 << 10
)

// idle is how long nobody has read a range when it may make room for others. A run that reads the data once a week is
// the slowest that a cache is for.
const idle = 7 * 24 * time.Hour

// reclaimEvery is how often a full cache looks for idle ranges, which takes a stat for each of them.
const reclaimEvery = time.Hour

const (
	// pause is how long a cache stops writing after a disk refused a range, stops reading after a read failed, and
	// stops both after the disk was slow: otherwise each range would fail anew.
	pause = time.Minute
	// slow is how long the disk takes for one range when the store would be faster: a request of a few MiB takes less.
	slow = 2 * time.Second
)

// Stats are counts since the folder was opened.
type Stats struct {
	// HitBytes were read from the folder, StoreBytes from the store, which is what Simulation.MissedBytes plans, and
	// StoredBytes written to the folder.
	HitBytes, StoreBytes, StoredBytes int64
	// Hits are reads that needed no request, Misses reads that needed one.
	Hits, Misses int64
	// Refused are ranges that the quota had no room for, Evicted those that made room for others, Damaged those with
	// wrong checksums, Failed those that the disk did not take or give.
	Refused, Evicted, Damaged, Failed int64
	// Shared are reads that had their bytes from a request for another one.
	Shared int64
	// Time is the time of all readers that went to reads and writes of the folder.
	Time time.Duration
}

type folderCounts struct {
	hitBytes, storeBytes, storedBytes, hits, misses, refusals, evicted, damaged, failed, shared, time atomic.Int64
}

// since counts the time since begin.
func (c *folderCounts) since(begin time.Time) { c.time.Add(int64(time.Since(begin))) }

// Folder is a cache on disk. It is safe for concurrent use. A nil *Folder holds nothing.
type Folder struct {
	path  string
	quota int64
	live  *os.File
	reads *os.File
	used  counter
	disk  disk
	stats folderCounts

	mu        sync.Mutex
	policy    policy
	reading   map[Object][]*request
	reclaimed time.Time // when idle ranges were looked for
	paused    time.Time // until when nothing is stored
	unread    time.Time // until when nothing is read
}

// Ref is a folder that is opened when it is first used. The zero value, and nil, have none.
type Ref struct {
	path  string
	quota int64
	once  sync.Once
	open  *Folder
	err   error
}

// Set says which folder it is, before the first use. An empty path means: no cache.
func (r *Ref) Set(path string, quota int64) { r.path, r.quota = path, quota }

// Quota returns the most bytes that the folder may take, also where Set named none.
func (r *Ref) Quota() int64 {
	if r == nil {
		return 0
	}
	return r.quota
}

// Get returns the folder, or nil, and the error of its opening. A folder whose disk cannot be used, as it is full or
// read-only, is empty and stays so.
func (r *Ref) Get() (*Folder, error) {
	if r == nil || r.path == "" {
		return nil, nil
	}
	r.once.Do(func() {
		r.open, r.err = Open(r.path, r.quota)
		if r.err != nil && fault.KindOf(r.err) == 0 {
			slog.Warn("going on without the cache on disk", "folder", r.path, "error", r.err)
			r.open, r.err = unusable(r.path, r.quota), nil
		}
	})
	return r.open, r.err
}

// Has implements source.DiskCache.
func (r *Ref) Has(object any, bytes source.Range) bool {
	folder, err := r.Get()
	o, ok := object.(Object)
	return ok && err == nil && folder.Has(o, spanOf(bytes))
}

// NewRun implements source.DiskCache.
func (r *Ref) NewRun(first int64) source.CacheRun {
	if folder, err := r.Get(); folder != nil && err == nil { // the first read returns the error
		return folder.NewRun(first)
	}
	return nil
}

// Close closes the folder, if it was opened.
func (r *Ref) Close() error { return r.open.Close() }

func newFolder(path string, quota int64) *Folder {
	return &Folder{path: path, quota: quota, policy: newPolicy(), reading: map[Object][]*request{}}
}

// unusable returns a folder that is neither read nor written.
func unusable(path string, quota int64) *Folder {
	folder := newFolder(path, quota)
	folder.unread = time.Now().Add(math.MaxInt64)
	folder.paused = folder.unread
	folder.stats.failed.Add(1)
	return folder
}

// Open opens a folder, which is made if it is missing. It holds at most quota bytes, as the disk counts them; what is
// beyond goes, the longest unread first. A folder of another user, and one that has other files and no marker of a
// cache, are refused; an error of the disk has no kind.
func Open(path string, quota int64) (*Folder, error) {
	if quota < 0 {
		return nil, fmt.Errorf("diskcache: a quota of %d bytes", quota)
	}
	if err := create(path); err != nil {
		return nil, err
	}
	folder := newFolder(path, quota)
	if err := folder.join(); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if used, err := folder.used.add(0); err == nil && used > quota {
		err = trim(path, &folder.used, quota, 0)
		if err == nil {
			folder.policy.spans, _, err = scan(path, false)
		}
		if err != nil {
			return nil, errors.Join(err, folder.Close())
		}
	}
	return folder, nil
}

// create makes the folder with its marker, or checks the marker of one that is there.
func create(path string) error {
	err := os.MkdirAll(path, 0o700) // others may not read what a token was needed for
	if errors.Is(err, syscall.ENOTDIR) {
		err = fault.WithFile(fault.Wrap(fault.Unsupported, "folder", err), path)
	}
	if err != nil {
		return err
	}
	err = checkMarker(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
		return err
	}
	entries, failed := os.ReadDir(path)
	if failed != nil {
		return failed
	}
	for _, e := range entries {
		making := strings.HasPrefix(e.Name(), "."+marker) // which another engine does
		if !making && (errors.Is(err, fs.ErrNotExist) || !isCacheName(e.Name())) {
			return fault.WithFile(fault.New(fault.Unsupported, "folder",
				"it has files, such as %q, and is no cache: name an empty or a new folder", e.Name()), path)
		}
	}
	return durable.WriteFile(filepath.Join(path, marker), func(file *os.File) error {
		_, err := fmt.Fprintf(file, "{\"version\": %d}\n", version)
		return err
	})
}

// isCacheName reports whether a cache has a file or folder of this name.
func isCacheName(name string) bool {
	_, err := hex.DecodeString(name)
	return slices.Contains([]string{marker, usedName, liveName, readsName}, name) || len(name) == 2 && err == nil
}

// checkMarker returns an error unless the folder is this user's and has the marker of a cache of this version. It is
// fs.ErrNotExist if the folder lacks it, and errDamaged if it differs from what was written.
func checkMarker(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		err = own(path, info)
	}
	if err != nil {
		return err
	}
	file, err := openOwn(filepath.Join(path, marker), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMarker))
	if err != nil {
		return err
	}
	var m struct{ Version int }
	switch err := json.Unmarshal(text, &m); {
	case err != nil || m.Version == 0:
		return errDamaged
	case m.Version != version:
		return fault.WithFile(fault.New(fault.Unsupported, marker, "%.40q is not of version %d", text, version), path)
	}
	return nil
}

// join locks the folder together with other engines, and reads which ranges are there. An engine that is alone counts
// their bytes anew and removes what a killed one left half written.
func (f *Folder) join() (err error) {
	open := func(name string) (*os.File, error) {
		path := filepath.Join(f.path, name)
		file, err := openOwn(path, os.O_CREATE|os.O_RDWR)
		if errors.Is(err, errDamaged) {
			if err = os.Remove(path); err == nil {
				file, err = openOwn(path, os.O_CREATE|os.O_RDWR)
			}
		}
		return file, err
	}
	if f.live, err = open(liveName); err != nil {
		return err
	}
	if f.used.file, err = open(usedName); err != nil {
		return err
	}
	if f.reads, err = open(readsName); err != nil {
		return err
	}
	alone, err := lockAlone(f.live)
	if err != nil {
		return err
	}
	if !alone {
		if err := lockShared(f.live); err != nil {
			return err
		}
		f.policy.spans, _, err = scan(f.path, false)
		return err
	}
	spans, used, err := scan(f.path, true)
	if err != nil {
		return err
	}
	f.policy.spans = spans
	if err := f.used.set(used); err != nil {
		return err
	}
	return lockShared(f.live)
}

// Close ends the use of the folder. The ranges stay.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	var err error
	for _, file := range []*os.File{f.used.file, f.reads, f.live} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// Stats returns the counts so far.
func (f *Folder) Stats() Stats {
	counts := &f.stats
	return Stats{
		HitBytes: counts.hitBytes.Load(), StoreBytes: counts.storeBytes.Load(), StoredBytes: counts.storedBytes.Load(),
		Hits: counts.hits.Load(), Misses: counts.misses.Load(), Refused: counts.refusals.Load(),
		Evicted: counts.evicted.Load(), Damaged: counts.damaged.Load(), Failed: counts.failed.Load(),
		Shared: counts.shared.Load(), Time: time.Duration(counts.time.Load()),
	}
}

// Used returns the bytes that the ranges of all engines take on disk.
func (f *Folder) Used() int64 {
	used, err := f.used.add(0)
	if err != nil {
		return 0
	}
	return used
}

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.path }

// Quota returns the most bytes that the ranges may take.
func (f *Folder) Quota() int64 { return f.quota }

// Read fills p with the bytes of an object from off on, as far as they are here, and returns the range that is missing:
// from the first to the last byte that is not here. It is empty if all are.
func (f *Folder) Read(o Object, p []byte, off int64) (missing Span) {
	missing = Span{off, off + int64(len(p))}
	if f == nil {
		return missing
	}
	defer f.stats.since(time.Now())
	f.mu.Lock()
	found, unread := f.policy.spans.touching(o, missing), time.Now().Before(f.unread)
	f.mu.Unlock()
	if unread {
		f.stats.misses.Add(1)
		return missing
	}
	if len(found) == 0 && f.adopt(o, missing) {
		found = []Span{missing}
	}
	for _, span := range cover(found, missing) {
		part := span.within(missing)
		if err := f.readSpan(o, span, p[part.From-off:part.End-off], part.From); err != nil {
			f.forget(o, span, errors.Is(err, errDamaged))
			f.stats.misses.Add(1)
			return missing // of a cache whose disk fails nothing is used
		}
	}
	gaps := gapsOf(found, missing)
	if len(gaps) == 0 {
		f.stats.hits.Add(1)
		f.stats.hitBytes.Add(int64(len(p)))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.policy.read(stored{o, missing})
		return Span{}
	}
	f.stats.misses.Add(1)
	missing = Span{gaps[0].From, gaps[len(gaps)-1].End}
	f.stats.hitBytes.Add(int64(len(p)) - missing.len())
	return missing
}

// Has reports whether the folder may be read, and has a range of an object, as far as this engine knows: others may
// have removed it.
func (f *Folder) Has(o Object, s Span) bool {
	if f == nil || !s.isRange() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return !time.Now().Before(f.unread) && len(gapsOf(f.policy.spans.touching(o, s), s)) == 0
}

// adopt takes a range into the index that another engine has stored since the folder was opened. Engines that load the
// same data read the same ranges.
func (f *Folder) adopt(o Object, span Span) bool {
	if _, err := os.Lstat(filepath.Join(f.path, nameOf(o, span))); err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.hold(stored{o, span})
	return true
}

// Keep stores the bytes p of an object from off on, as far as they are not here and the quota has room for them.
func (f *Folder) Keep(o Object, p []byte, off int64) {
	if f == nil {
		return
	}
	defer f.stats.since(time.Now())
	wanted := Span{off, off + int64(len(p))}
	f.mu.Lock()
	old := f.policy.spans.otherVersions(o)
	gaps := gapsOf(f.policy.spans.touching(o, wanted), wanted)
	f.policy.read(stored{o, wanted})
	paused := time.Now().Before(f.paused)
	f.mu.Unlock()
	for _, stale := range old { // of another version of the object, which the store does not have any more
		f.forget(stale.Object, stale.Span, true)
	}
	if paused {
		return
	}
	for _, gap := range gaps {
		if err := f.store(o, p[gap.From-off:gap.End-off], gap); err != nil {
			f.stats.failed.Add(1)
			f.pause(&f.paused)
			return
		}
	}
}

// pause lets the folder be unused for a while, until the times that it sets.
func (f *Folder) pause(until ...*time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range until {
		*u = time.Now().Add(pause)
	}
}

// timed calls a use of the disk. If that is slow, the folder is unused for a while.
func (f *Folder) timed(use func() error) error {
	start := time.Now()
	err := use()
	if time.Since(start) > slow {
		f.stats.failed.Add(1)
		f.pause(&f.unread, &f.paused)
	}
	return err
}

// store writes a range if the quota has room for it.
func (f *Folder) store(o Object, p []byte, span Span) error {
	cost := costOf(span.len())
	if err := f.isThere(); err != nil {
		return err
	}
	if span.len() > maxRange || !f.reserve(stored{o, span}) {
		f.stats.refusals.Add(1)
		return nil
	}
	made := false
	err := f.timed(func() (err error) {
		made, err = f.disk.writeRange(f.path, o, p, span)
		return err
	})
	if !made || err != nil { // another engine has it, or the disk is full
		_, back := f.used.add(-cost)
		if err != nil || back != nil {
			return errors.Join(err, back)
		}
	}
	if made {
		f.stats.storedBytes.Add(span.len())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.hold(stored{o, span})
	return nil
}

// isThere returns an error if the folder was deleted, also if another engine has made one in its place since: that one
// counts without the ranges of this engine.
func (f *Folder) isThere() error {
	mine, err := f.used.file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(filepath.Join(f.path, usedName))
	if err == nil && !os.SameFile(mine, now) {
		err = fs.ErrNotExist
	}
	return err
}

// reserve takes room for a range from the quota. Where the quota has none, ranges go that are read later than it, or
// that nobody has read for long.
func (f *Folder) reserve(s stored) bool {
	cost := costOf(s.len())
	for cost <= f.quota && !f.used.take(cost, f.quota) {
		f.mu.Lock()
		old, ok := f.policy.evictable(f.policy.next(s))
		if ok {
			f.policy.drop(old)
		}
		f.mu.Unlock()
		if !ok {
			return f.reclaim(cost)
		}
		removeRange(filepath.Join(f.path, nameOf(old.Object, old.Span)), &f.used, costOf(old.len()))
		f.stats.evicted.Add(1)
	}
	return cost <= f.quota
}

// reclaim takes room from the quota in place of ranges that nobody has read for long.
func (f *Folder) reclaim(cost int64) bool {
	f.mu.Lock()
	again := time.Since(f.reclaimed) > reclaimEvery
	if again {
		f.reclaimed = time.Now()
	}
	f.mu.Unlock()
	return again && trim(f.path, &f.used, f.quota-cost, idle) == nil && f.used.take(cost, f.quota)
}

// forget takes a range out of the index, and removes its file if remove.
func (f *Folder) forget(o Object, span Span, remove bool) {
	f.mu.Lock()
	f.policy.drop(stored{o, span})
	f.mu.Unlock()
	if remove {
		removeRange(filepath.Join(f.path, nameOf(o, span)), &f.used, costOf(span.len()))
	}
}

// readSpan fills p with bytes of a stored range, from off of the object on.
func (f *Folder) readSpan(o Object, span Span, p []byte, off int64) error {
	err := f.timed(func() error {
		return f.disk.readRange(filepath.Join(f.path, nameOf(o, span)), span, p, off, true)
	})
	switch {
	case errors.Is(err, errDamaged):
		f.stats.damaged.Add(1)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // which another engine has removed
		f.stats.failed.Add(1)
		f.pause(&f.unread)
	}
	return err
}
