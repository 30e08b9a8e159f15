// Package source reads byte ranges of objects, by URI: it has what a format needs to read a file, and the names of
// files.
//
// Package source/openers opens local files and chooses an Opener by the scheme of a URI, source/httpsource reads
// objects over HTTP, source/blobsource objects of object stores. Both follow the policy of source/remote for retries,
// deadlines and limits. A program compiles only the backends that it imports.
package source

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Reader reads ranges of one object. It is safe for concurrent use.
type Reader interface {
	// ReadAt fills p from offset off, or returns an error: there are no partial reads. A range past
	// the end is fault.Corrupt.
	ReadAt(ctx context.Context, p []byte, off int64) error
	// Size returns the object's size in bytes.
	Size() int64
	// Close returns the reader to its opener. It must not be used afterwards.
	Close() error
}

// Dropper is a Reader that its opener keeps open after Close, for the next Open. Drop closes it for good.
type Dropper interface {
	Reader
	Drop() error
}

// Drop closes the reader of a file that hardly anybody opens again.
func Drop(r Reader) error {
	if d, ok := r.(Dropper); ok {
		return d.Drop()
	}
	return r.Close()
}

// Timed is a Reader that knows when its object was last modified, as of Open. Readers of Files are
// Timed.
type Timed interface {
	Reader
	ModTime() time.Time
}

// Opener opens objects by URI. It is safe for concurrent use.
type Opener interface {
	// Open returns a reader for a URI. A URI that names nothing is fault.NotFound.
	Open(ctx context.Context, uri string) (Reader, error)
}

// OpenOne is an Opener of one object, which it opens under any name.
type OpenOne func(ctx context.Context) (Reader, error)

// Open implements Opener.
func (open OpenOne) Open(ctx context.Context, _ string) (Reader, error) { return open(ctx) }

// Tagged is a Reader that knows the entity tag of its object, a string that changes whenever the bytes of the object
// change. ETag returns "" if the store lacks tags or has yet to be asked.
type Tagged interface {
	Reader
	ETag() string
}

// ETag returns the entity tag of a reader's object, or "".
func ETag(r Reader) string {
	if t, ok := r.(Tagged); ok {
		return t.ETag()
	}
	return ""
}

// ModTime returns when a reader's object was last modified, or zero if it does not say.
func ModTime(r Reader) time.Time {
	if t, ok := r.(Timed); ok {
		return t.ModTime()
	}
	return time.Time{}
}

// Marks returns what marks the contents of a reader's object: "etag:" and its entity tag, or "mtime:" and when it was
// modified, in nanoseconds since 1970; "" if it says neither.
func Marks(r Reader) string {
	if tag := ETag(r); tag != "" {
		return "etag:" + tag
	}
	if changed := ModTime(r); !changed.IsZero() {
		return "mtime:" + strconv.FormatInt(changed.UnixNano(), 10)
	}
	return ""
}

// Gapped is a Reader that knows which gap between two ranges is cheaper to read than to skip with
// another request.
type Gapped interface {
	Reader
	Gap() int64 // bytes
}

// Placed is a Reader of an object that a cache may keep.
type Placed interface {
	Reader
	// Place returns how the cache names the object, and where in it the reader begins. The object is nil if none keeps
	// it.
	Place() (object any, off int64)
}

// Place returns where the bytes of a reader are in a cache: see Placed.
func Place(r Reader) (object any, off int64) {
	if p, ok := r.(Placed); ok {
		return p.Place()
	}
	return nil, 0
}

// DiskCache keeps ranges of objects on a local disk: package source/diskcache has it. It names objects as Place does.
type DiskCache interface {
	// Has reports whether it has a range of an object.
	Has(object any, r Range) bool
	// NewRun returns a run that is about to read what stands at a place in its order, or nil if nothing is kept.
	NewRun(first int64) CacheRun
	// KeepMade keeps content that was made of an object, nil for a local file, as far as there is room that no range
	// takes. It reports whether the content is kept. name says of what it was made, and how.
	KeepMade(object any, name [16]byte, content []byte) bool
	// Made appends to dst the content that KeepMade has kept. Without one it returns dst.
	Made(object any, name [16]byte, dst []byte) []byte
}

// CacheRun tells a DiskCache what a run reads next: see diskcache.Run.
type CacheRun interface {
	Expect(at int64, object any, r Range)
	Full() bool
	Ready()
	Begin(at int64)
	Over(at int64)
	Close()
}

// orderKey is the context key of WithOrder.
type orderKey struct{}

// WithOrder returns a context whose requests to a store go before requests of higher numbers. Without it they go
// first.
func WithOrder(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, orderKey{}, n)
}

// Order returns the number of WithOrder, or 0.
func Order(ctx context.Context) int64 {
	n, _ := ctx.Value(orderKey{}).(int64)
	return n
}

// wholeKey is the context key of WithWhole.
type wholeKey struct{}

// WithWhole returns a context in which opening a remote object of at most n bytes reads all of it, in the one request.
// Further reads cost none until the opener needs the memory for other objects.
func WithWhole(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, wholeKey{}, n)
}

// Whole returns the number of WithWhole, or 0.
func Whole(ctx context.Context) int64 {
	n, _ := ctx.Value(wholeKey{}).(int64)
	return n
}

// Range is a range of bytes of an object.
type Range struct{ Off, Len int64 }

// Holder is a Reader that has ranges of its object in memory, such as those that came when it was opened. Reading them
// costs no request.
type Holder interface {
	Reader
	Held() []Range
}

// Held returns the ranges that a reader has in memory.
func Held(r Reader) []Range {
	if h, ok := r.(Holder); ok {
		return h.Held()
	}
	return nil
}

const (
	// DefaultGap is the gap of readers that are not Gapped, such as readers of local files.
	DefaultGap = 32 << 10
	// MinGap and MaxGap bound the gaps of remote files, which follow the link. A request costs store and client about
	// as much as 16 KiB. A lone reader would join ranges over megabytes: a wrong estimate costs at most 512 KiB.
	MinGap = 16 << 10
	MaxGap = 512 << 10
)

// Gap returns the largest gap between two ranges, in bytes, over which reading both as one is
// cheaper.
func Gap(r Reader) int64 {
	if g, ok := r.(Gapped); ok {
		return g.Gap()
	}
	return DefaultGap
}

// Known has the size and tag of an object, from a catalog or a listing. Size 0 means unknown.
type Known struct {
	Size int64 // bytes
	ETag string
}

// KnownOpener is an Opener that needs no request to open an object whose size is known.
type KnownOpener interface {
	Opener
	// OpenKnown is Open for an object whose size, and perhaps tag, is known. They are checked when
	// the object is read: other ones are fault.Corrupt. Each ReadAt is at most one request, and for
	// no byte outside of its range.
	OpenKnown(ctx context.Context, uri string, k Known) (Reader, error)
}

// OpenKnown opens an object with known size or tag, without a request if the opener can do that.
func OpenKnown(ctx context.Context, o Opener, uri string, k Known) (Reader, error) {
	if ko, ok := o.(KnownOpener); ok {
		return ko.OpenKnown(ctx, uri, k)
	}
	return o.Open(ctx, uri)
}

// Entry is an object below a directory.
type Entry struct {
	Path string // relative to the directory, with "/"
	Size int64  // bytes
	ETag string // or ""
}

// Lister is an Opener that can list objects.
type Lister interface {
	Opener
	// List calls each for every object whose URI begins with the folder's and "/", in any
	// order. An error of each ends the listing. An empty folder is allowed. A store
	// that cannot list is fault.Unsupported.
	List(ctx context.Context, folder string, each func(Entry) error) error
}

// Putter is an Opener that can write objects.
type Putter interface {
	Opener
	// Put writes an object of the bytes of body: as a whole, or after an error not at all. With fresh an object that is
	// there is fault.Unsupported. A URI that is only read is fault.Unsupported, too.
	Put(ctx context.Context, uri string, body io.ReadSeeker, fresh bool) error
	// Remove removes an object. It returns nil if there is no such object.
	Remove(ctx context.Context, uri string) error
}

// Namer is an Opener that can list the entries of a directory, even if it cannot list all objects
// below it.
type Namer interface {
	Opener
	// Names returns the names of the entries of a directory, in any order. Names of directories end
	// in "/". A directory that cannot be listed is fault.Unsupported.
	Names(ctx context.Context, folder string) ([]string, error)
}

// IsDenied reports whether a store refused a request for a reason that a retry does not change. Stores that do not list
// their objects also answer so for a missing object.
func IsDenied(err error) bool {
	var e *fault.RequestError
	return errors.As(err, &e) && e.Denied
}

// Fits reports whether n bytes at an offset lie in size bytes. Numbers of a forged file may be below 0, or too large to
// be added.
func Fits(off, n, size int64) bool { return off >= 0 && n >= 0 && off <= size && n <= size-off }

// Unreachable reports whether a request failed after all its retries. Other names of the same server are then not
// tried, because each of them would take as long.
func Unreachable(err error) bool {
	var e *fault.RequestError
	return errors.As(err, &e) && e.Attempts > 1
}

// Outage returns an error of an Unreachable server, and nil for others: these say something about a file.
func Outage(err error) error {
	if Unreachable(err) {
		return err
	}
	return nil
}
