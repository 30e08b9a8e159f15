// Package source reads byte ranges of objects, by URI.
//
// Here are the interfaces, local files (Files), and Mux, which chooses an Opener by the scheme of a URI. Objects
// over HTTP are read by source/httpsource, those of object stores by source/blobsource; both keep to the policy of
// source/remote (retries, deadlines, hedged requests, limits). A program compiles only what it imports.
package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Reader reads ranges of one object. It is safe for concurrent use.
type Reader interface {
	// ReadAt fills p from offset off, or returns an error: there is no partial read. A range past
	// the end is fault.Corrupt.
	ReadAt(ctx context.Context, p []byte, off int64) error
	// Size returns the object's size in bytes.
	Size() int64
	// Close gives the reader back to its opener. The reader is not used afterwards.
	Close() error
}

// Timed is a Reader that knows when its object was last modified, as of Open. Those of Files are.
type Timed interface {
	Reader
	ModTime() time.Time
}

// Opener opens objects by URI. It is safe for concurrent use.
type Opener interface {
	// Open returns a reader for a URI. A URI that names nothing is fault.NotFound.
	Open(ctx context.Context, uri string) (Reader, error)
}

// Tagged is a Reader that knows the entity tag of its object: a text that is another one once the object has
// other bytes. ETag returns "" where the store gives none, or where nothing was asked of it yet.
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

// Gapped is a Reader that says over how large a gap between two ranges it is cheaper to read than to ask twice.
type Gapped interface {
	Reader
	Gap() int64 // bytes
}

// DefaultGap is the gap of a Reader that is not Gapped: that of a local file.
const DefaultGap = 32 << 10

// Gap returns the gap, in bytes, up to which two ranges of a reader are better read as one.
func Gap(r Reader) int64 {
	if g, ok := r.(Gapped); ok {
		return g.Gap()
	}
	return DefaultGap
}

// Known is what a catalog or a listing says of an object. Size 0 is one that is not known.
type Known struct {
	Size int64 // bytes
	ETag string
}

// KnownOpener is an Opener that needs no request to open an object of which enough is known.
type KnownOpener interface {
	Opener
	// OpenKnown is Open for an object whose size is known. That the object has it, and the tag if that is
	// known too, is checked when it is read: one that has not is fault.Corrupt. Every ReadAt is one request,
	// of exactly its range.
	OpenKnown(ctx context.Context, uri string, k Known) (Reader, error)
}

// OpenKnown opens an object of which something is known, without a request where the opener can do that.
func OpenKnown(ctx context.Context, o Opener, uri string, k Known) (Reader, error) {
	if ko, ok := o.(KnownOpener); ok {
		return ko.OpenKnown(ctx, uri, k)
	}
	return o.Open(ctx, uri)
}

// Entry is an object below a folder.
type Entry struct {
	Path string // relative to the folder, with "/"
	Size int64  // bytes
	ETag string // or ""
}

// Lister is an Opener that can list objects.
type Lister interface {
	Opener
	// List calls each for every object whose URI begins with that of the folder and "/", in any order. An
	// error of each ends it. A folder without objects is no error. A store that has no listing is
	// fault.Unsupported.
	List(ctx context.Context, folder string, each func(Entry) error) error
}

// List lists the objects below a folder, as Lister does, if the opener can; else it is fault.Unsupported.
func List(ctx context.Context, o Opener, folder string, each func(Entry) error) error {
	if l, ok := o.(Lister); ok {
		return l.List(ctx, folder, each)
	}
	return noListing(folder)
}

// Namer is an Opener that can name what lies in a folder, also where it cannot list all objects below it.
type Namer interface {
	Opener
	// Names returns the names of what lies in a folder itself, in any order; those of folders end in "/". What
	// cannot be named is fault.Unsupported.
	Names(ctx context.Context, folder string) ([]string, error)
}

// Names names what lies in a folder itself, as Namer does, if the opener can do that or list; else it is
// fault.Unsupported.
func Names(ctx context.Context, o Opener, folder string) ([]string, error) {
	if n, ok := o.(Namer); ok {
		return n.Names(ctx, folder)
	}
	seen := map[string]bool{}
	err := List(ctx, o, folder, func(e Entry) error {
		name := e.Path
		if i := strings.IndexByte(name, '/'); i >= 0 {
			name = name[:i+1]
		}
		seen[name] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

func noListing(folder string) error {
	return fault.WithFile(fault.New(fault.Unsupported, "listing", fault.NoOffset,
		"%s:// has no listing: name its files one by one, or a catalog of them", Scheme(folder)), folder)
}

// RequestError is a request that failed for a reason that says nothing about the object: the network, the
// server, a missing permission. It has no kind.
type RequestError struct {
	URI      string
	Part     string // "byte range", "listing"
	Off      int64  // first byte asked for, or fault.NoOffset
	Attempts int    // requests made
	Err      error  // of the last one
}

// Error returns "URI: PART at OFFSET: what went wrong, after N attempts".
func (e *RequestError) Error() string {
	at := ""
	if e.Off >= 0 {
		at = fmt.Sprintf(" at %d", e.Off)
	}
	tries := "1 attempt"
	if e.Attempts != 1 {
		tries = fmt.Sprintf("%d attempts", e.Attempts)
	}
	return fmt.Sprintf("%s: %s%s: %v, after %s", e.URI, e.Part, at, e.Err, tries)
}

// Unwrap returns what went wrong with the last attempt.
func (e *RequestError) Unwrap() error { return e.Err }
