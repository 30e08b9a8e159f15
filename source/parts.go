package source

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// openPart opens a part of a file, whose file o opens, so that the rules of o hold for it.
func openPart(ctx context.Context, o router, p *part, k Known) (r Reader, err error) {
	if p.zip {
		r, err = openMember(ctx, o, p, k)
	} else if r, err = openPath(ctx, o, p.file, Known{ETag: k.ETag}); err == nil {
		// A tag that is known belongs to the file, a size to the part.
		size := p.size
		if size == untilEnd {
			size = r.Size() - p.off
		}
		r, err = partReader(r, p.off, size, nil)
	}
	if err != nil {
		return nil, fault.WithFile(err, p.text)
	}
	if k.Size != 0 && r.Size() != k.Size {
		err = fault.WithFile(fault.New(fault.Corrupt, "size", fault.NoOffset,
			"%d bytes, expected %d: the object is another one now", r.Size(), k.Size), p.text)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// partReader returns a reader of size bytes of r from offset off on, of a member of a ZIP unless of is nil. It is Timed
// if r is. It closes r if it fails.
func partReader(r Reader, off, size int64, of *member) (Reader, error) {
	reader, err := SectionOf(r, off, size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if of != nil {
		reader = &memberReader{reader, of}
	}
	if t, ok := r.(Timed); ok {
		return &timedPart{reader, t}, nil
	}
	return reader, nil
}

// timedPart is a part of a file that knows when it was last modified.
type timedPart struct {
	Reader
	file Timed
}

// ModTime implements Timed.
func (p *timedPart) ModTime() time.Time { return p.file.ModTime() }

// Gap implements Gapped, ETag Tagged.
func (p *timedPart) Gap() int64   { return Gap(p.Reader) }
func (p *timedPart) ETag() string { return ETag(p.Reader) }

// Place implements Placed.
func (p *timedPart) Place() (object any, off int64) { return Place(p.Reader) }

// openMember opens a member of a ZIP.
func openMember(ctx context.Context, o router, p *part, k Known) (Reader, error) {
	file, archive, err := openArchive(ctx, o, p.file, k.ETag)
	if err != nil {
		return nil, err
	}
	member, off, err := archive.find(ctx, file, p.member)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return partReader(file, off, member.Size, member)
}

// listPart calls each for the members of a ZIP below a directory.
func listPart(ctx context.Context, o router, p *part, each func(Entry) error) error {
	if !p.zip {
		return noListing(p.text)
	}
	file, archive, err := openArchive(ctx, o, p.file, "")
	if err != nil {
		return fault.WithFile(err, p.text)
	}
	prefix := ""
	if p.member != "" {
		prefix = p.member + "/"
	}
	for _, name := range slices.Sorted(maps.Keys(archive.members)) {
		path, below := strings.CutPrefix(name, prefix)
		if !below || path == "" {
			continue
		}
		if err = each(Entry{Path: path, Size: archive.members[name].Bytes, ETag: ETag(file)}); err != nil {
			break
		}
	}
	return errors.Join(err, file.Close())
}
