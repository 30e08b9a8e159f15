package openers

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// openPart opens a part of a file, whose file o opens, so the rules of o hold for it.
func openPart(ctx context.Context, o router, p *source.Part, k source.Known) (r source.Reader, err error) {
	if p.Archive() {
		r, err = openMember(ctx, o, p, k)
	} else if r, err = openPath(ctx, o, p.File, source.Known{ETag: k.ETag}); err == nil {
		// A tag that is known belongs to the file, a size to the part.
		size := p.Size
		if size == source.UntilEnd {
			size = r.Size() - p.Off
		}
		r, err = partReader(r, p.Off, size, nil)
	}
	if err != nil {
		return nil, fault.WithFile(err, p.Text)
	}
	if k.Size != 0 && r.Size() != k.Size {
		err = fault.WithFile(fault.New(fault.Corrupt, "size",
			"%d bytes, expected %d: the object is another one now", r.Size(), k.Size), p.Text)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// partReader returns a reader of size bytes of r from offset off on or, unless content is nil, of what content makes of
// them. It is Timed if r is. It closes r if it fails.
func partReader(r source.Reader, off, size int64, content func(source.Reader) source.Reader) (
	source.Reader, error) {
	reader, err := source.SectionOf(r, off, size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if content != nil {
		reader = content(reader)
	}
	if t, ok := r.(source.Timed); ok {
		return &timedPart{reader, t}, nil
	}
	return reader, nil
}

// timedPart is a part of a file that knows when it was last modified.
type timedPart struct {
	source.Reader
	file source.Timed
}

// ModTime implements Timed.
func (p *timedPart) ModTime() time.Time { return p.file.ModTime() }

// Gap implements Gapped, ETag Tagged.
func (p *timedPart) Gap() int64   { return source.Gap(p.Reader) }
func (p *timedPart) ETag() string { return source.ETag(p.Reader) }

// Place implements Placed.
func (p *timedPart) Place() (object any, off int64) { return source.Place(p.Reader) }

// Archive reads ZIPs and tars, whose file open opens by the rules of an opener.
type Archive struct {
	// Member opens an archive and finds the member of a part. The ETag of the archive is empty if it is not known.
	Member func(ctx context.Context, p *source.Part, open Opening, etag string) (source.Reader, Member, error)
	// List opens an archive, and lists its members in the order of their paths.
	List func(ctx context.Context, p *source.Part, open Opening) (source.Reader, iter.Seq[source.Entry], error)
}

// Opening opens a file about which something is known.
type Opening func(k source.Known) (source.Reader, error)

// Member is where the bytes of a member lie in its archive. Content makes a reader of its content from one of these.
type Member struct {
	Off, Size int64
	Content   func(stored source.Reader) source.Reader
}

// archive refuses all archives until one is registered.
var archive = Archive{
	Member: func(context.Context, *source.Part, Opening, string) (r source.Reader, m Member, err error) {
		return nil, m, errNoArchives()
	},
	List: func(context.Context, *source.Part, Opening) (source.Reader, iter.Seq[source.Entry], error) {
		return nil, nil, errNoArchives()
	},
}

// RegisterArchive makes all openers read archives. Package source/archive calls it in its init function.
func RegisterArchive(a Archive) { archive = a }

func errNoArchives() error {
	return fault.NotImported("member", "reads members of ZIPs and tars", "source/archive")
}

// openMember opens a member of an archive.
func openMember(ctx context.Context, o router, p *source.Part, k source.Known) (source.Reader, error) {
	open := func(k source.Known) (source.Reader, error) { return openPath(ctx, o, p.File, k) }
	file, member, err := archive.Member(ctx, p, open, k.ETag)
	if err != nil {
		return nil, err
	}
	return partReader(file, member.Off, member.Size, member.Content)
}

// listPart calls each for the members of an archive below a directory.
func listPart(ctx context.Context, o router, p *source.Part, each func(source.Entry) error) error {
	if !p.Archive() {
		return noListing(p.Text)
	}
	open := func(k source.Known) (source.Reader, error) { return openPath(ctx, o, p.File, k) }
	file, entries, err := archive.List(ctx, p, open)
	if err != nil {
		return fault.WithFile(err, p.Text)
	}
	prefix := ""
	if p.Member != "" {
		prefix = p.Member + "/"
	}
	for e := range entries {
		path, inside := strings.CutPrefix(e.Path, prefix)
		if !inside || path == "" {
			continue
		}
		e.Path = path
		if err = each(e); err != nil {
			break
		}
	}
	return errors.Join(err, file.Close())
}
