package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/openers"
)

// objectVersion is one version of the object at a URI, with some of its blocks.
type objectVersion struct {
	objectName
	size        int64
	opened      time.Time
	lacksRanges atomic.Bool // it is read as a whole, because the server has no ranges

	mu         sync.Mutex
	tag        Tag
	spans      []blockSpan      // the head first
	wholeBytes []byte           // the object, if source.WithWhole covers it and the cache has room; else nil
	diskObject diskcache.Object // the object with a tag in the cache on disk
	diskTag    Tag              // of diskObject
}

// objectName names an object in the caches. Roots may refuse the redirect by which an opener with others has read it.
type objectName struct {
	uri   string
	roots *openers.Roots
}

type blockSpan struct {
	off int64
	b   []byte
}

// maxSpans limits the blocks kept of an object: its head, its tail, and some between.
const maxSpans = 8

// copy fills the front and the back of p from blocks. It returns what is missing between, and its offset.
func (x *objectVersion) copy(p []byte, off int64) (missing []byte, begin int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wholeBytes != nil {
		n := copy(p, x.wholeBytes[off:])
		return p[n:], off + int64(n)
	}
	for _, s := range x.spans {
		pos := off - s.off
		switch end := pos + int64(len(p)); {
		case pos >= 0 && pos < int64(len(s.b)):
			n := copy(p, s.b[pos:])
			p, off = p[n:], off+int64(n)
		case pos < 0 && end > 0 && end <= int64(len(s.b)):
			copy(p[-pos:], s.b)
			p = p[:-pos]
		}
	}
	return p, off
}

// add stores a block in place of the oldest one, except the head, which every opening needs.
func (x *objectVersion) add(s blockSpan) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.spans) == maxSpans {
		x.spans = append(x.spans[:1], x.spans[2:]...)
	}
	x.spans = append(x.spans, s)
}

// free frees the memory of all of an object: open readers keep no more than the cache has room for.
func (x *objectVersion) free() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wholeBytes = nil
}

// bytes returns the memory of the object with its blocks.
func (x *objectVersion) bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	total := objectBytes + int64(len(x.uri)) + int64(len(x.wholeBytes))
	for _, s := range x.spans {
		total += int64(len(s.b))
	}
	return total
}

func (x *objectVersion) currentTag() Tag {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tag
}

// check compares a response with the object's size and tag, and adopts a tag that was unknown.
func (x *objectVersion) check(a *Answer) error {
	if a.Size >= 0 && a.Size != x.size {
		return Fail(Changed, fmt.Errorf("it has %d bytes, expected %d", a.Size, x.size))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.tag.Same(a.Tag) {
		return Fail(Changed, errOtherTag(a.Tag, x.tag))
	}
	x.tag.ETag = cmp.Or(x.tag.ETag, a.Tag.ETag)
	if x.tag.Modified.IsZero() {
		x.tag.Modified = a.Tag.Modified
	}
	return nil
}

// errOtherTag returns the error of an answer whose tag is not the expected one.
func errOtherTag(now, expected Tag) error {
	switch {
	case expected.ETag == "":
		return fmt.Errorf("it was modified at %s, expected %s", now.when(), expected.when())
	case now.ETag == "":
		return fmt.Errorf("it has no entity tag, expected %s", expected.ETag)
	}
	return fmt.Errorf("its entity tag is %s, expected %s", now.ETag, expected.ETag)
}

// when writes the time of change in messages.
func (t Tag) when() string {
	if t.Modified.IsZero() {
		return "an unknown time"
	}
	return t.Modified.UTC().Format(time.RFC3339)
}

// String describes the tag in names of caches.
func (t Tag) String() string { return cmp.Or(t.ETag, t.when()) }

// reader reads an object.
type reader struct {
	o     *Opener
	x     *objectVersion
	exact bool // request nothing beyond the ranges that are read
}

func (r *reader) Size() int64  { return r.x.size }
func (r *reader) Close() error { return nil }

// Gap implements source.Gapped. With a cache on disk it stays the same, so ranges that were kept are asked for
// again.
func (r *reader) Gap() int64 {
	_, err := r.o.options.Disk.Get()
	// A plan has a quota and no folder, and counts what a run with a folder reads.
	if kept := r.o.options.Disk.Quota() > 0 && err == nil; r.o.options.Gap > 0 || kept {
		return cmp.Or(r.o.options.Gap, StartGap)
	}
	return r.o.hosts.get(r.o.backend.Host(r.x.uri), &r.o.options).gap()
}

// ETag implements source.Tagged.
func (r *reader) ETag() string { return r.x.currentTag().ETag }

// ReadAt implements source.Reader. A range inside cached blocks costs no request, any other range one, for the bytes
// between the blocks at its front and back.
func (r *reader) ReadAt(ctx context.Context, p []byte, off int64) error {
	size := r.x.size
	if !source.Fits(off, int64(len(p)), size) {
		return fault.WithFile(fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the object's %d",
			len(p), size), r.x.uri)
	}
	if spans := source.SpansOf(ctx); spans != nil && spans.Read(ctx, r.x.uri, p, off, r.readSpan) {
		return nil
	}
	block := int64(r.o.options.Block)
	if !r.exact && int64(len(p)) <= block {
		if missing, _ := r.x.copy(p, off); len(missing) == 0 {
			return ctx.Err()
		}
	}
	if r.exact || int64(len(p)) >= block {
		return r.fill(ctx, p, off)
	}
	// Near the end of the object the whole tail is read, since footers are read backwards from the
	// end.
	wanted := blockSpan{off: min(off, max(size-block, 0))}
	wanted.b = make([]byte, min(block, size-wanted.off))
	if err := r.fill(ctx, wanted.b, wanted.off); err != nil {
		return err
	}
	copy(p, wanted.b[off-wanted.off:])
	r.x.add(wanted)
	r.o.cache.grown(r.x)
	return nil
}

// readSpan reads a span, which may lie elsewhere than the object.
func (r *reader) readSpan(ctx context.Context, p []byte, off int64) error {
	if !source.Fits(off, int64(len(p)), r.x.size) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the object's %d", len(p), r.x.size)
	}
	return r.fill(ctx, p, off)
}

// fill reads a range: what the cache on disk has from there, and the rest in one request.
func (r *reader) fill(ctx context.Context, p []byte, off int64) error {
	disk, err := r.o.options.Disk.Get()
	if err != nil { // only its text: the kind says nothing about the object, and no policy on bad samples may skip it
		return &fault.RequestError{URI: r.x.uri, Part: "cache on disk", Off: fault.NoOffset, Attempts: 1,
			Err: errors.New(err.Error())}
	}
	if disk == nil {
		return r.request(ctx, p, off)
	}
	object, lasting := r.x.inCache()
	if !lasting { // nothing says whether the object is still the same
		return r.request(ctx, p, off)
	}
	return disk.Fill(ctx, object, p, off, func(p []byte, off int64) error { return r.request(ctx, p, off) })
}

// inCache returns the name of the object in the cache on disk, if its tag is one that lasts.
func (x *objectVersion) inCache() (o diskcache.Object, lasting bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.tag.lasting() {
		return o, false
	}
	if x.diskTag != x.tag {
		x.diskObject, x.diskTag = diskcache.NameObject(x.uri, x.roots.String(), x.tag.String(), x.size), x.tag
	}
	return x.diskObject, true
}

// Held implements source.Holder.
func (r *reader) Held() (held []source.Range) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if r.x.wholeBytes != nil {
		return []source.Range{{Len: r.x.size}}
	}
	for _, s := range r.x.spans {
		held = append(held, source.Range{Off: s.off, Len: int64(len(s.b))})
	}
	return held
}

// Place implements source.Placed: the object is a diskcache.Object.
func (r *reader) Place() (object any, off int64) {
	disk, err := r.o.options.Disk.Get()
	if disk == nil || err != nil {
		return nil, 0
	}
	if o, lasting := r.x.inCache(); lasting {
		object = o
	}
	return object, 0
}

// request reads a range in at most one request.
func (r *reader) request(ctx context.Context, p []byte, off int64) error {
	if p, off = r.x.copy(p, off); len(p) == 0 {
		return ctx.Err()
	}
	if r.x.lacksRanges.Load() {
		return r.cut(ctx, p, off)
	}
	err := r.o.get(ctx, r.x.objectName, Range{off, int64(len(p))}, r.x.currentTag(), func(a *Answer) error {
		if err := r.x.check(a); err != nil {
			return err
		}
		return r.o.readBody(a, p)
	})
	size, ok, err := r.o.readsWhole(err)
	if !ok {
		return r.drop(err)
	}
	if size != r.x.size { // the size came from the caller: no memory is allocated until the server confirms it
		return r.drop(requestPlace{r.x.uri, "byte range",
			off}.fault(Fail(Changed, fmt.Errorf("it has %d bytes, expected %d", size, r.x.size)), 1))
	}
	r.x.lacksRanges.Store(true)
	return r.cut(ctx, p, off)
}

// cut copies a range out of the whole object.
func (r *reader) cut(ctx context.Context, p []byte, off int64) error {
	b, err := r.o.wholeObject(ctx, r.x)
	if err == nil {
		copy(p, b[off:])
	}
	return r.drop(err)
}

// drop removes an object from the cache if err says that it changed or is damaged.
func (r *reader) drop(err error) error {
	if fault.KindOf(err) != 0 {
		r.o.cache.Remove(r.x.objectName)
	}
	return err
}

// cache keeps the most recently used objects, within a limit on the bytes of their blocks.
type cache struct {
	*lru.Cache[objectName, *objectVersion]
}

// objectBytes estimates the memory of an object without its blocks, beside what the cache counts for each.
const objectBytes = 512 - lru.Overhead

// get returns an object that was opened within a time, or nil.
func (c cache) get(n objectName, fresh time.Duration) *objectVersion {
	found, ok := c.Get(n)
	if ok && time.Since(found.opened) >= fresh {
		c.Remove(n)
		return nil
	}
	return found
}

// add keeps an object.
func (c cache) add(x *objectVersion) { c.Add(x.objectName, x, x.bytes()) }

// grown counts the blocks of an object again, if the cache has it.
func (c cache) grown(x *objectVersion) {
	if newest, _ := c.Get(x.objectName); newest == x {
		c.add(x)
	}
}
