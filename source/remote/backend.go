// Package remote is the policy for reading objects over a network: few requests, each with a
// deadline, limited concurrency, retries within a budget, and a check
// that the object is still the one that was opened. A Backend makes the requests; packages
// httpsource and blobsource have backends.
package remote

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/source"
)

// Backend makes single requests without retries. It is safe for concurrent use.
type Backend interface {
	// Host returns the name under which limits and retries are counted: the server or the bucket.
	Host(uri string) string
	// Get requests the bytes r of an object, in one request. With a tag that the store can compare,
	// the request has the condition that the object still has the tag. Get returns when the
	// response has begun. The class of a *Failure decides how the request is repeated; Classify
	// classifies other errors.
	Get(ctx context.Context, uri string, r Range, tag Tag) (*Answer, error)
}

// Lister is a Backend that can list objects; see source.Lister.
type Lister interface {
	Backend
	// Lists reports whether the store of a folder can list objects.
	Lists(folder string) bool
	// ListPage returns a page of the objects below a folder, and the token of the next page, or nil
	// after the last one. token comes from the page before, or is nil for the first page.
	ListPage(ctx context.Context, folder string, token []byte) (page []source.Entry, next []byte, err error)
}

// Namer is a Backend that can name the entries of a directory; see source.Namer. It limits the size
// of the answers.
type Namer interface {
	Backend
	Names(ctx context.Context, folder string) ([]string, error)
}

// Range is a range of bytes of an object. Off is at least 0, Len at least 1.
type Range struct{ Off, Len int64 }

// Tag identifies a version of an object.
type Tag struct {
	ETag     string
	Modified time.Time // of HTTP, with a resolution of one second; used if there is no ETag
}

// Same reports whether an answer with the tag u may have the version t. It must have the ETag that t has or, without
// one, the time: an answer without them may be of any version. ETags are compared weakly (RFC 9110, 8.8.3.2).
func (t Tag) Same(u Tag) bool {
	if t.ETag != "" {
		return u.ETag != "" && strings.TrimPrefix(t.ETag, "W/") == strings.TrimPrefix(u.ETag, "W/")
	}
	return t.Modified.IsZero() || t.Modified.Equal(u.Modified)
}

// settled is how old a time of change must be: two changes within its resolution have the same one.
const settled = time.Minute // clocks may differ

// lasting reports whether another version of the object will have another tag.
func (t Tag) lasting() bool {
	return t.ETag != "" || !t.Modified.IsZero() && time.Since(t.Modified) > settled
}

// Strong returns the ETag if it may be used in If-Match (RFC 9110, 13.1.1), or "".
func (t Tag) Strong() string {
	if strings.HasPrefix(t.ETag, "W/") {
		return ""
	}
	return t.ETag
}

// Answer is the response of a store, as its headers describe it. Nothing in it is trusted.
type Answer struct {
	Body io.ReadCloser
	Range
	Size int64 // of the object, or -1 if unknown
	Tag  Tag
}

// ContentRange parses a Content-Range header, "bytes 0-99/1000" (RFC 9110, 14.4). The size is -1
// for "*".
func ContentRange(s string) (r Range, size int64, err error) {
	bad := func() (Range, int64, error) {
		return Range{}, 0, fmt.Errorf("Content-Range is %.60q", s)
	}
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return bad()
	}
	begin, err1 := parseSize(first)
	end, err2 := parseSize(last)
	if err1 != nil || err2 != nil || end < begin {
		return bad()
	}
	size = -1
	if total != "*" {
		if size, err = parseSize(total); err != nil || end >= size {
			return bad()
		}
	}
	return Range{begin, end - begin + 1}, size, nil
}

// parseSize parses a number that has only digits.
func parseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 62)
	return int64(n), err
}

// Check makes an Answer of the status and headers of a response to a request for the bytes r. It
// accepts 206, for which contentRange says which bytes they are, and 200 from a server that ignores
// ranges if the object is at most as long as the range. If it is longer, an Opener reads the whole
// object within Options.MaxWhole.
func Check(r Range, status int, contentRange string, length int64) (*Answer, error) {
	if status == 206 || contentRange != "" {
		got, size, err := ContentRange(contentRange)
		switch {
		case err != nil:
			return nil, Fail(Transient, err)
		case got.Off != r.Off || got.Len > r.Len:
			return nil, Fail(Transient, fmt.Errorf("requested %d bytes at %d, but got %d bytes at %d", r.Len,
				r.Off, got.Len, got.Off))
		case length >= 0 && length != got.Len:
			return nil, Fail(Transient, fmt.Errorf("the body has %d bytes, the range %d", length, got.Len))
		}
		return &Answer{Range: got, Size: size}, nil
	}
	if r.Off == 0 && length >= 0 && length <= r.Len {
		return &Answer{Range: Range{0, length}, Size: length}, nil
	}
	return nil, Fail(Refused, &errNoRanges{length})
}
