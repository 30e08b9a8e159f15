package taco

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/source"
)

// maxHeld is the number of readers that a dataset holds open. Containers of thousands of files are
// read all the same: the others are opened for each read.
const maxHeld = 200

// holder is an opener whose readers may stay open for as long as one likes: no more than maxHeld of them
// are open underneath.
type holder struct {
	opener source.Opener

	mu     sync.Mutex
	held   int
	opened map[string]version // local files, as they were first
}

// version tells one version of a file from another.
type version struct {
	size int64
	time time.Time
}

func versionOf(r source.Reader) version {
	v := version{size: r.Size()}
	if t, ok := r.(source.Timed); ok {
		v.time = t.ModTime()
	}
	return v
}

// maxWatched bounds the files whose versions are remembered.
const maxWatched = 1 << 14

// note remembers the version of a local file. p.mu is held.
func (p *holder) note(uri string, r source.Reader) {
	if source.IsRemote(uri) || len(p.opened) > maxWatched {
		return
	}
	if p.opened == nil {
		p.opened = map[string]version{}
	}
	if _, ok := p.opened[uri]; !ok {
		p.opened[uri] = versionOf(r)
	}
}

// Changed reports whether one of the local files that were opened so far is another one now, or may be one, as there
// are too many to look: a dataset that is kept for later is opened anew then. Remote files are not looked at.
func (d *Dataset) Changed(ctx context.Context) bool {
	p := d.opener
	p.mu.Lock()
	opened := maps.Clone(p.opened)
	p.mu.Unlock()
	if len(opened) > maxWatched {
		return true
	}
	for uri, was := range opened {
		r, err := p.opener.Open(ctx, uri)
		if err != nil {
			return true
		}
		now := versionOf(r)
		if r.Close() != nil || now.size != was.size || !now.time.Equal(was.time) {
			return true
		}
	}
	return false
}

// Open implements source.Opener.
func (p *holder) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := p.opener.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.note(uri, r)
	hold := p.held < maxHeld
	if hold {
		p.held++
	}
	p.mu.Unlock()
	if hold {
		return &heldReader{r, p}, nil
	}
	known := source.Known{Size: r.Size(), ETag: source.ETag(r)}
	gap := source.Gap(r)
	if err := r.Close(); err != nil {
		return nil, err
	}
	return &briefReader{p.opener, uri, known, gap}, nil
}

// OpenKnown implements source.KnownOpener. Such readers are not counted: they are closed soon.
func (p *holder) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, p.opener, uri, k)
}

// heldReader is open underneath.
type heldReader struct {
	source.Reader
	p *holder
}

// Gap implements source.Gapped, ETag source.Tagged.
func (r *heldReader) Gap() int64   { return source.Gap(r.Reader) }
func (r *heldReader) ETag() string { return source.ETag(r.Reader) }

func (r *heldReader) Close() error {
	r.p.mu.Lock()
	r.p.held--
	r.p.mu.Unlock()
	return r.Reader.Close()
}

// briefReader is opened for each read.
type briefReader struct {
	opener source.Opener
	uri    string
	known  source.Known
	gap    int64
}

func (r *briefReader) Size() int64  { return r.known.Size }
func (r *briefReader) Gap() int64   { return r.gap }
func (r *briefReader) ETag() string { return r.known.ETag }
func (r *briefReader) Close() error { return nil }

func (r *briefReader) ReadAt(ctx context.Context, b []byte, off int64) (err error) {
	f, err := source.OpenKnown(ctx, r.opener, r.uri, r.known)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return f.ReadAt(ctx, b, off)
}
