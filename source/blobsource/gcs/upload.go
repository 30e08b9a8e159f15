package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob/driver"
)

// Objects up to the size of a part are uploaded in one request, longer ones in parts, in a session (Cloud Storage
// documentation, "Resumable uploads"). The object is there once the last part is.
const (
	unit        = 256 << 10 // all parts but the last are multiples of it
	defaultPart = 16 << 20
	maxTries    = 5 // requests in which the store takes no byte more
)

// firstWait is the wait before the second request for a part. It doubles with each: 3 s in all.
const firstWait = 200 * time.Millisecond

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer uploads an object.
type writer struct {
	ctx         context.Context
	b           *bucket
	query       url.Values
	contentType string
	part        []byte // not yet uploaded; its capacity is the size of a part
	session     string // URL of the session, once there is one
	sent        int64
	sum         uint32 // CRC-32C of all bytes written
	err         error  // of an earlier part
}

// NewTypedWriter implements driver.Bucket.
func (b *bucket) NewTypedWriter(ctx context.Context, key, contentType string,
	o *driver.WriterOptions) (driver.Writer, error) {
	if len(o.Metadata) > 0 || len(o.ContentMD5) > 0 || o.CacheControl+o.ContentDisposition+o.ContentEncoding+
		o.ContentLanguage != "" {
		return nil, errUnused
	}
	if o.BeforeWrite != nil {
		if err := o.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	size := o.BufferSize
	if size <= 0 {
		size = defaultPart
	}
	query := url.Values{"name": {key}, "fields": {"size,crc32c"}}
	if o.IfNotExist {
		query.Set("ifGenerationMatch", "0")
	}
	return &writer{ctx: ctx, b: b, query: query, contentType: contentType,
		part: make([]byte, 0, (size+unit-1)/unit*unit)}, nil
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 && w.err == nil {
		if len(w.part) == cap(w.part) { // more follows, so that this is not the last part
			if w.err = w.flush(false); w.err != nil {
				break
			}
		}
		k := min(len(p), cap(w.part)-len(w.part))
		w.part = append(w.part, p[:k]...)
		w.sum = crc32.Update(w.sum, castagnoli, p[:k])
		p, n = p[k:], n+k
	}
	return n, w.err
}

// Close implements io.Closer. It uploads the last part; without it there is no object.
func (w *writer) Close() error {
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.err != nil:
		return w.err
	case w.session != "":
		return w.flush(true)
	}
	resp, err := w.post("media", bytes.NewReader(w.part), http.Header{"Content-Type": {w.contentType}})
	if err != nil {
		return err
	}
	w.sent = int64(len(w.part))
	return w.check(resp)
}

// post makes the one request of an upload, or the one that begins a session.
func (w *writer) post(kind string, body io.Reader, header http.Header) (*http.Response, error) {
	w.query.Set("uploadType", kind)
	u := w.b.base + "/upload" + w.b.objects() + "?" + w.query.Encode()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, u, body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return w.b.do(req)
}

// flush uploads the part. It asks the store what it has where a request fails, and sends the rest.
func (w *writer) flush(last bool) error {
	if w.session == "" {
		resp, err := w.post("resumable", http.NoBody, http.Header{"X-Upload-Content-Type": {w.contentType}})
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // the headers are all
		u, err := resp.Location()
		if err != nil {
			return fmt.Errorf("the store began no upload: %w", err)
		}
		if u.Scheme+"://"+u.Host != w.b.base {
			return fmt.Errorf("the store wants the object uploaded to another host, %s", u.Host)
		}
		w.session = u.String()
	}
	end, total := w.sent+int64(len(w.part)), "*"
	if last {
		total = strconv.FormatInt(end, 10)
	}
	ask := false // what the store has, without sending more
	for try, wait := 1, w.b.wait; ; try++ {
		before := w.sent
		done, err := w.send(end, total, ask)
		if done || err == nil && !last && len(w.part) == 0 {
			return err
		}
		if w.sent > before {
			try, wait = 1, w.b.wait
		}
		if err == nil { // the store has a part of the part
			ask = false
			continue
		}
		var status *statusError
		if w.ctx.Err() != nil || try == maxTries || errors.As(err, &status) && status.code < 500 &&
			status.code != http.StatusTooManyRequests && status.code != http.StatusRequestTimeout {
			return err
		}
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-time.After(wait):
		}
		wait, ask = 2*wait, true
	}
}

// send uploads the bytes up to end, or asks which ones the store has. It drops those from the part. done says that the
// object is complete.
func (w *writer) send(end int64, total string, ask bool) (done bool, err error) {
	span, body := "*", w.part[:0]
	if !ask && len(w.part) > 0 {
		span, body = fmt.Sprintf("%d-%d", w.sent, end-1), w.part
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPut, w.session, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Range", "bytes "+span+"/"+total)
	resp, err := w.b.do(req, http.StatusOK, http.StatusCreated, http.StatusPermanentRedirect)
	if err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusPermanentRedirect {
		w.sent = end
		return true, w.check(resp)
	}
	_ = resp.Body.Close() // the headers are all
	has := int64(0)
	if have := resp.Header.Get("Range"); have != "" {
		last, err := strconv.ParseUint(strings.TrimPrefix(have, "bytes=0-"), 10, 62)
		if err != nil {
			return false, fmt.Errorf("the store has the bytes %.40q", have)
		}
		has = int64(last) + 1
	}
	if has < w.sent || has > end || !ask && len(body) > 0 && has == w.sent {
		return false, fmt.Errorf("the store has %d bytes, after %d were sent", has, end)
	}
	rest := copy(w.part, w.part[has-w.sent:])
	w.part, w.sent = w.part[:rest], has
	return false, nil
}

// check compares the size and the checksum that the store computed with those of the bytes written.
func (w *writer) check(resp *http.Response) error {
	defer resp.Body.Close()
	var o object
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(&o); err != nil {
		return fmt.Errorf("the store's answer to an upload is not JSON: %w", err)
	}
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, w.sum))
	if o.Size != w.sent || o.CRC32C != "" && o.CRC32C != sum {
		return fmt.Errorf("the store has %d bytes with the checksum %s: written were %d with %s", o.Size, o.CRC32C,
			w.sent, sum)
	}
	return nil
}
