package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

const (
	// maxParts is the most parts that S3 takes for an object.
	maxParts = 10_000
	// partBytes is the size of a part: S3 takes 5 MiB and more. All parts but the last have one size, because some
	// compatible stores ask for it, unless an object of unknown size grows beyond uniformParts.
	partBytes = 16 << 20
	// uniformParts have one size. If an object of unknown size has more parts, their size doubles every 1,000 parts:
	// 7,000 parts of 16 MiB, 1,000 of 32, 64 and 128 MiB each are 328 GiB, which is all that such an object can have.
	// Larger ones have to say their size first.
	uniformParts = 7000
	// maxSize bounds the expected size of an object, which may be a guess from the size of decoded pixels: 5 TiB in
	// 7,000 parts are 750 MiB each, and S3 takes up to 5 GiB.
	maxSize = 5 << 40
	// sending is how many parts are sent at a time. Memory holds as many, the one that is being filled, and those that
	// are held.
	sending = 3
	// abortTime bounds the request that ends an upload that failed.
	abortTime = 30 * time.Second
)

// Upload writes an object in parts, from its beginning on. Ranges that were announced by Hold can be written again
// until Commit, which the rest need not wait for: parts are numbered, and sent in any order. The object is the old one
// until Commit, and the new one afterwards; a kill leaves an unfinished upload, which the next one of the same key
// aborts. It is for one goroutine.
type Upload struct {
	store *Store
	key   string
	id    string // "" until the first part is sent
	run   string // a random number
	size  int64  // of parts

	ctx    context.Context // is done once a part could not be sent
	parent context.Context
	cancel context.CancelCauseFunc
	group  *errgroup.Group
	at     int64   // bytes written
	kept   []*part // of ascending offsets: not sent yet
	number int32   // of the last part
	held   []held
	done   chan types.CompletedPart
	free   chan []byte
}

// part is bytes of the object.
type part struct {
	number int32
	off    int64
	data   []byte
	full   bool
}

// held is a range that is written again.
type held struct{ at, n int64 }

// Create begins an object of about size bytes, or of unknown size if that is 0. End it by Commit or Abort. Uploads of
// the same key that earlier runs of the same user left are aborted.
func (s *Store) Create(ctx context.Context, uri string, size int64) (*Upload, error) {
	key, err := s.key(uri)
	if err != nil {
		return nil, err
	}
	upload := &Upload{store: s, key: key, run: rand.Text(), parent: ctx,
		size: max(s.part, (min(size, maxSize)+uniformParts-1)/uniformParts),
		done: make(chan types.CompletedPart, maxParts), free: make(chan []byte, sending+1)}
	ctx, upload.cancel = context.WithCancelCause(ctx)
	upload.group, upload.ctx = errgroup.WithContext(ctx)
	upload.group.SetLimit(sending)
	if err := upload.clean(); err != nil {
		return nil, errors.Join(s.fail(uri, err), upload.Abort())
	}
	return upload, nil
}

// clean aborts unfinished uploads of the key by the same user. S3 returns the user only for uploads, so this one
// begins first, if there is another.
func (u *Upload) clean() error {
	stale, err := u.unfinished()
	if err != nil || len(stale) == 0 {
		return nil //nolint:nilerr // listing uploads is a permission of its own, which writing does not need
	}
	if err := u.begin(); err != nil {
		return err
	}
	uploads, err := u.unfinished()
	mine := slices.IndexFunc(uploads, func(m types.MultipartUpload) bool { return aws.ToString(m.UploadId) == u.id })
	if err != nil || mine < 0 {
		return nil //nolint:nilerr // as above
	}
	for _, m := range stale {
		if initiator(m) == initiator(uploads[mine]) {
			u.store.abort(u.parent, u.key, aws.ToString(m.UploadId))
		}
	}
	return nil
}

func initiator(m types.MultipartUpload) string {
	if m.Initiator == nil {
		return ""
	}
	return aws.ToString(m.Initiator.ID)
}

// unfinished returns the uploads of the key. A key has few: one page, of 1,000, is enough.
func (u *Upload) unfinished() ([]types.MultipartUpload, error) {
	out, err := u.store.client.ListMultipartUploads(u.ctx, &s3.ListMultipartUploadsInput{Bucket: &u.store.bucket,
		Prefix: &u.key}, again)
	if err != nil {
		return nil, err
	}
	other := func(m types.MultipartUpload) bool { return aws.ToString(m.Key) != u.key }
	return slices.DeleteFunc(out.Uploads, other), nil
}

// begin begins the upload in parts.
func (u *Upload) begin() error {
	if u.id != "" {
		return nil
	}
	out, err := u.store.client.CreateMultipartUpload(u.ctx, &s3.CreateMultipartUploadInput{Bucket: &u.store.bucket,
		Key: &u.key, ContentType: aws.String(contentType), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
		Metadata: map[string]string{runMember: u.run}}, again)
	if err != nil {
		return err
	}
	u.id = aws.ToString(out.UploadId)
	return nil
}

// partSize returns the size of the next part.
func (u *Upload) partSize() int64 {
	if excess := int64(u.number) - uniformParts; excess >= 0 {
		return u.size << (1 + excess/1000)
	}
	return u.size
}

// Hold announces that n bytes at an offset will be written again, once. They must not be written yet.
func (u *Upload) Hold(at, n int64) { u.held = append(u.held, held{at, n}) }

// Write implements io.Writer.
func (u *Upload) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if u.ctx.Err() != nil {
			return n, u.fail(context.Cause(u.ctx))
		}
		part, err := u.filling()
		if err != nil {
			return n, u.fail(err)
		}
		k := min(len(p), cap(part.data)-len(part.data))
		part.data = append(part.data, p[:k]...)
		n, u.at, p = n+k, u.at+int64(k), p[k:]
		if part.full = len(part.data) == cap(part.data); part.full {
			if err := u.send(false); err != nil {
				return n, u.fail(err)
			}
		}
	}
	return n, nil
}

// filling returns the part that the next byte belongs to.
func (u *Upload) filling() (*part, error) {
	if n := len(u.kept); n > 0 && !u.kept[n-1].full {
		return u.kept[n-1], nil
	}
	if u.number == maxParts {
		return nil, fmt.Errorf("an object has at most %d parts: the size of this one was not known", maxParts)
	}
	filled := &part{off: u.at}
	size := u.partSize()
	select {
	case filled.data = <-u.free:
	default:
	}
	if int64(cap(filled.data)) != size {
		filled.data = make([]byte, 0, size)
	}
	u.number++
	filled.number = u.number
	u.kept = append(u.kept, filled)
	return filled, nil
}

// send sends full parts without held bytes or, with all, every part.
func (u *Upload) send(all bool) error {
	left := u.kept[:0]
	for _, part := range u.kept {
		if !all && (!part.full || slices.ContainsFunc(u.held, part.has)) {
			left = append(left, part)
			continue
		}
		if err := u.begin(); err != nil {
			return err
		}
		u.group.Go(func() error { return u.put(part) })
	}
	clear(u.kept[len(left):])
	u.kept = left
	return nil
}

// has reports whether a range lies partly in the part.
func (b *part) has(h held) bool { return h.at < b.off+int64(len(b.data)) && h.at+h.n > b.off }

// put sends a part.
func (u *Upload) put(b *part) error {
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	out, err := u.store.client.UploadPart(u.ctx, &s3.UploadPartInput{Bucket: &u.store.bucket, Key: &u.key,
		UploadId: &u.id, PartNumber: &b.number, Body: bytes.NewReader(b.data),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32}, again)
	if err != nil {
		return err
	}
	u.done <- types.CompletedPart{PartNumber: &b.number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
	select {
	case u.free <- b.data[:0]:
	default:
	}
	return nil
}

// WriteAt writes bytes again that Hold has announced.
func (u *Upload) WriteAt(p []byte, at int64) (int, error) {
	i := slices.Index(u.held, held{at, int64(len(p))})
	if i < 0 || at+int64(len(p)) > u.at {
		return 0, fmt.Errorf("%d bytes at %d are not held, or not written yet", len(p), at)
	}
	for _, part := range u.kept {
		if part.has(u.held[i]) {
			start := max(at, part.off)
			copy(part.data[start-part.off:], p[start-at:])
		}
	}
	u.held = slices.Delete(u.held, i, i+1)
	return len(p), u.fail(u.send(false))
}

// Commit makes the object appear. After an error, as far as the store reports it, the old object remains.
func (u *Upload) Commit() error {
	err := context.Cause(u.ctx)
	switch {
	case err != nil:
	case len(u.held) > 0:
		err = fmt.Errorf("%d ranges are still held", len(u.held))
	case int(u.number) == len(u.kept) && u.number < 2: // no part is sent: one request does
		var body []byte
		if len(u.kept) > 0 {
			body = u.kept[0].data
		}
		err = u.store.put(u.parent, u.key, body)
		return errors.Join(u.fail(err), u.Abort())
	default:
		err = u.send(true)
	}
	if werr := u.group.Wait(); werr != nil && err == nil {
		err = werr
	}
	if err == nil {
		err = u.complete()
	}
	if err != nil {
		return errors.Join(u.fail(err), u.Abort())
	}
	u.id = ""
	u.cancel(errAborted)
	return nil
}

// complete puts the parts together.
func (u *Upload) complete() error {
	close(u.done)
	var parts []types.CompletedPart
	for p := range u.done {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	_, err := u.store.client.CompleteMultipartUpload(u.parent, &s3.CompleteMultipartUploadInput{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}, again)
	if err == nil || code(err) != "NoSuchUpload" {
		return err
	}
	// An earlier try has put them together and its answer was lost, or another run has aborted the upload.
	have, herr := u.store.client.HeadObject(u.parent, &s3.HeadObjectInput{Bucket: &u.store.bucket, Key: &u.key}, again)
	if herr == nil && have.Metadata[runMember] == u.run {
		return nil
	}
	return err
}

// runMember is the metadata of an object of parts that has the number of its upload.
const runMember = "chaski-upload"

// Abort ends an upload without an object. After Commit it does nothing.
func (u *Upload) Abort() error {
	u.cancel(errAborted)
	_ = u.group.Wait() // its error is known, or is this one
	u.kept = nil
	if u.id != "" {
		u.store.abort(u.parent, u.key, u.id)
		u.id = ""
	}
	return nil
}

var errAborted = errors.New("the upload was aborted")

func (u *Upload) fail(err error) error { return u.store.fail(u.store.uri(u.key), err) }

var _ interface {
	io.Writer
	io.WriterAt
} = (*Upload)(nil)
