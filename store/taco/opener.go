package taco

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Separator stands between a container and the path of a sample in it: "data.tacozip::roi_1/image".
const Separator = "::"

// Split takes a name apart into a container and the path of a sample in it. ok is false for a name
// without Separator.
func Split(name string) (container, path string, ok bool) { return strings.Cut(name, Separator) }

// Opener opens samples of containers beside what its base opens: names with Separator are taken apart,
// and the reader is of the sample's bytes alone. A chunk ("data.taco::img1/lrf::2") is opened as a TIFF of
// its own, whose bytes but for the header are the chunk's: reading it takes one range. The zero value of
// Options is ready. It is safe for concurrent use.
type Opener struct {
	Base    source.Opener
	Options Options

	mu    sync.Mutex
	found map[string]found // by name; no more than maxFound
}

// found is where a sample is, and of a chunk the header that is put before it.
type found struct {
	Entry
	head []byte
}

// maxFound bounds the places of samples that an Opener remembers.
const maxFound = 1 << 12

// Open implements source.Opener. A sample that is a folder is fault.Unsupported. The container is
// opened for each name anew; who reads many samples opens a Dataset, and Section.
func (o *Opener) Open(ctx context.Context, uri string) (source.Reader, error) {
	container, path, ok := Split(uri)
	if !ok {
		return o.Base.Open(ctx, uri)
	}
	o.mu.Lock()
	e, ok := o.found[uri]
	o.mu.Unlock()
	if !ok {
		var err error
		if e, err = o.find(ctx, container, path); err != nil {
			return nil, err
		}
		o.mu.Lock()
		if o.found == nil || len(o.found) >= maxFound {
			o.found = map[string]found{}
		}
		o.found[uri] = e
		o.mu.Unlock()
	}
	r, err := Section(ctx, o.Base, e.Entry)
	if err == nil && e.head != nil {
		r = &headed{r, e.head}
	}
	return r, err
}

func (o *Opener) find(ctx context.Context, container, path string) (found, error) {
	d, err := Open(ctx, o.Base, []string{container}, o.Options)
	if err != nil {
		return found{}, err
	}
	e, err := d.Resolve(ctx, path)
	if err = errors.Join(err, d.Close()); err != nil {
		return found{}, err
	}
	if e.Of != nil {
		head, err := openChunk(ctx, o.Base, e)
		return found{e, head}, err
	}
	if e.Kind == Folder {
		return found{}, fault.WithFile(fault.New(fault.Unsupported, "sample "+e.Path, fault.NoOffset, "is a folder, and has no bytes"), container)
	}
	return found{Entry: e}, nil
}

// Section opens a sample's bytes: a reader whose offset 0 is their first. Of a container whose size is known
// (Entry.Object) that costs no request, where the opener can do that, and every read one, of exactly its range.
func Section(ctx context.Context, o source.Opener, e Entry) (source.Reader, error) {
	r, err := source.OpenKnown(ctx, o, e.URI, e.Object)
	if err != nil || e.Offset == Whole {
		return r, err
	}
	s, err := SectionOf(r, e.Offset, e.Size)
	if err != nil {
		err = fault.WithFile(fault.WithPart(err, "sample "+e.Path, 0), e.URI)
		return nil, errors.Join(err, r.Close())
	}
	return s, nil
}

// SectionOf returns a reader of size bytes of r from offset off on, which is closed with it. Bytes that r
// does not have are fault.Corrupt.
func SectionOf(r source.Reader, off, size int64) (source.Reader, error) {
	if off < 0 || size < 0 || off > r.Size() || size > r.Size()-off {
		return nil, fault.New(fault.Corrupt, "", off, "%d bytes in a file of %d", size, r.Size())
	}
	return &section{r, off, size}, nil
}

// section is a range of a reader.
type section struct {
	source.Reader
	off, size int64
}

func (s *section) Size() int64 { return s.size }

// Gap implements source.Gapped, ETag source.Tagged: they are those of the object.
func (s *section) Gap() int64   { return source.Gap(s.Reader) }
func (s *section) ETag() string { return source.ETag(s.Reader) }

func (s *section) ReadAt(ctx context.Context, p []byte, off int64) error {
	if off < 0 || off > s.size || int64(len(p)) > s.size-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the sample's %d", len(p), s.size)
	}
	return s.Reader.ReadAt(ctx, p, s.off+off)
}
