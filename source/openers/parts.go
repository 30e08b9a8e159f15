package openers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// openPart opens a part of a file, whose file o opens, so the rules of o hold for it.
func openPart(ctx context.Context, o router, p *source.Part, k source.Known) (r source.Reader, err error) {
	if p.Tar {
		// A directory may have the name of a tar, too.
		if st, failed := RootsOf(o).Stat(p.File.Name); failed == nil && st.IsDir() {
			return openPath(ctx, o, source.Path{Name: source.Join(p.File.Name, p.Member)}, k)
		}
	}
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
		err = fault.WithFile(fault.New(fault.Corrupt, "size", fault.NoOffset,
			"%d bytes, expected %d: the object is another one now", r.Size(), k.Size), p.Text)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// partReader returns a reader of size bytes of r from offset off on, of a member unless of is nil. It is Timed
// if r is. It closes r if it fails.
func partReader(r source.Reader, off, size int64, of *zipMember) (source.Reader, error) {
	reader, err := source.SectionOf(r, off, size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if of != nil {
		reader = &memberReader{Reader: reader, member: of}
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

// openMember opens a member of an archive.
func openMember(ctx context.Context, o router, p *source.Part, k source.Known) (source.Reader, error) {
	file, archive, err := openArchive(ctx, o, p, k.ETag)
	if err != nil {
		return nil, err
	}
	member, off, err := archive.find(ctx, file, p.Member)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return partReader(file, off, member.Size, member)
}

// listPart calls each for the members of an archive below a directory.
func listPart(ctx context.Context, o router, p *source.Part, each func(source.Entry) error) error {
	if !p.Archive() {
		return noListing(p.Text)
	}
	file, archive, err := openArchive(ctx, o, p, "")
	if err != nil {
		return fault.WithFile(err, p.Text)
	}
	prefix := ""
	if p.Member != "" {
		prefix = p.Member + "/"
	}
	for _, name := range slices.Sorted(maps.Keys(archive.members)) {
		path, inside := strings.CutPrefix(name, prefix)
		if !inside || path == "" {
			continue
		}
		entry := source.Entry{Path: path, Size: archive.members[name].Bytes, ETag: source.ETag(file)}
		if err = each(entry); err != nil {
			break
		}
	}
	return errors.Join(err, file.Close())
}
