// Package remote is the policy by which objects are read over a network: few requests, each with a deadline,
// limited in number at a time, tried again within a budget, hedged when they are slow, and held to the object
// that was opened. A Backend makes the requests; packages httpsource and blobsource have some.
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

// Backend makes single requests, without trying again. It is safe for concurrent use.
type Backend interface {
	// Host names what limits, budget and latencies are counted by: the server, or the bucket.
	Host(uri string) string
	// Get asks for the bytes r of an object, in one request. With a tag that the store can compare, it asks for
	// those of the object with that tag only. It returns once the answer has begun. A failure that is a
	// *Failure is dealt with by its class, any other one by Classify.
	Get(ctx context.Context, uri string, r Range, tag Tag) (*Answer, error)
}

// Lister is a Backend of a store that lists its objects; see source.Lister.
type Lister interface {
	Backend
	// ListPage returns the objects below a folder that follow those of the page that gave the token (nil: the
	// first ones), and the token of the next page, nil for none.
	ListPage(ctx context.Context, folder string, token []byte) (page []source.Entry, next []byte, err error)
}

// Namer is a Backend that names what lies in a folder itself; see source.Namer. It bounds what it asks for.
type Namer interface {
	Backend
	Names(ctx context.Context, folder string) ([]string, error)
}

// Range is a range of bytes of an object. Both numbers are at least 0, Len at least 1.
type Range struct{ Off, Len int64 }

// Tag tells one version of an object from another.
type Tag struct {
	ETag     string
	Modified time.Time // of HTTP: with a resolution of a second; used where there is no ETag
}

// Same reports whether two answers are of one version, as far as they tell. ETags are compared weakly (RFC 9110,
// 8.8.3.2).
func (t Tag) Same(u Tag) bool {
	if t.ETag != "" && u.ETag != "" {
		return strings.TrimPrefix(t.ETag, "W/") == strings.TrimPrefix(u.ETag, "W/")
	}
	return t.Modified.IsZero() || u.Modified.IsZero() || t.Modified.Equal(u.Modified)
}

// Strong returns the ETag if it may stand in If-Match (RFC 9110, 13.1.1), or "".
func (t Tag) Strong() string {
	if strings.HasPrefix(t.ETag, "W/") {
		return ""
	}
	return t.ETag
}

// Answer is what a store says to a request, from its headers; nothing in it is trusted.
type Answer struct {
	Body io.ReadCloser
	Range
	Size int64 // of the object, or -1 where it is not said
	Tag  Tag
}

// ContentRange reads the value of a Content-Range header, "bytes 0-99/1000" (RFC 9110, 14.4). The size is -1 for
// "*".
func ContentRange(s string) (r Range, size int64, err error) {
	bad := func() (Range, int64, error) {
		return Range{}, 0, fmt.Errorf("Content-Range %.60q", s)
	}
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return bad()
	}
	a, err1 := parseSize(first)
	b, err2 := parseSize(last)
	if err1 != nil || err2 != nil || b < a {
		return bad()
	}
	size = -1
	if total != "*" {
		if size, err = parseSize(total); err != nil || b >= size {
			return bad()
		}
	}
	return Range{a, b - a + 1}, size, nil
}

// parseSize reads digits alone.
func parseSize(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 62)
	return int64(n), err
}

// Check makes an Answer of a response's status and headers to a request for the bytes r, without its body: of 206
// (contentRange says which bytes they are), or of 200 by a server that knows no ranges, which is no harm where the
// object is no longer than what was asked for. Where it is, an Opener reads all of it, within Options.MaxWhole.
func Check(r Range, status int, contentRange string, length int64) (*Answer, error) {
	if status == 206 || contentRange != "" {
		got, size, err := ContentRange(contentRange)
		switch {
		case err != nil:
			return nil, Fail(Transient, err)
		case got.Off != r.Off || got.Len > r.Len:
			return nil, Fail(Transient, fmt.Errorf("asked for %d bytes at %d, got %d bytes at %d", r.Len, r.Off, got.Len, got.Off))
		case length >= 0 && length != got.Len:
			return nil, Fail(Transient, fmt.Errorf("a body of %d bytes for a range of %d", length, got.Len))
		}
		return &Answer{Range: got, Size: size}, nil
	}
	if r.Off == 0 && length >= 0 && length <= r.Len {
		return &Answer{Range: Range{0, length}, Size: length}, nil
	}
	return nil, Fail(Refused, &errNoRanges{length})
}
