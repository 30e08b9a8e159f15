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

// named resolves a name for an opener. The part is nil if the name does not stand for a part of another file.
func named(name string) (resolved string, p *part, err error) {
	resolved, err = Resolve(name)
	if err != nil || !IsPart(resolved) {
		return resolved, nil, err
	}
	parsed, _ := partOf(resolved)
	parsed.given = name
	return resolved, &parsed, nil
}

// openPart opens a part of a file, whose file o opens, so that the rules of o hold for it. err is the error of named.
func openPart(ctx context.Context, o Opener, p *part, k Known, err error) (Reader, error) {
	if err != nil {
		return nil, err
	}
	var r Reader
	if p.zip {
		r, err = openMember(ctx, o, p, k)
	} else {
		// A tag that is known belongs to the file, a size to the part.
		r, err = OpenKnown(ctx, o, p.file, Known{ETag: k.ETag})
		if err == nil {
			size := p.size
			if size == untilEnd {
				size = r.Size() - p.off
			}
			r, err = partReader(r, p.off, size)
		}
	}
	if err != nil {
		return nil, fault.WithFile(err, p.given)
	}
	if k.Size != 0 && r.Size() != k.Size {
		err = fault.WithFile(fault.New(fault.Corrupt, "size", fault.NoOffset,
			"%d bytes, expected %d: the object is another one now", r.Size(), k.Size), p.given)
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// partReader returns a reader of size bytes of r from offset off on, which is Timed if r is. It closes r if it fails.
func partReader(r Reader, off, size int64) (Reader, error) {
	reader, err := SectionOf(r, off, size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
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

// openMember opens a member of a ZIP that is stored without compression.
func openMember(ctx context.Context, o Opener, p *part, k Known) (Reader, error) {
	file, archive, err := openArchive(ctx, o, p.file, k.ETag)
	if err != nil {
		return nil, err
	}
	off, size, err := archive.find(ctx, file, p.member)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return partReader(file, off, size)
}

// listPart calls each for the members of a ZIP below a directory. err is the error of named.
func listPart(ctx context.Context, o Opener, p *part, each func(Entry) error, err error) error {
	if err != nil {
		return err
	}
	if !p.zip {
		return noListing(p.given)
	}
	file, archive, err := openArchive(ctx, o, p.file, "")
	if err != nil {
		return fault.WithFile(err, p.given)
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
		if err = each(Entry{Path: path, Size: archive.members[name].Size, ETag: ETag(file)}); err != nil {
			break
		}
	}
	return errors.Join(err, file.Close())
}

// namesOf returns the names of the entries of a directory of a ZIP. err is the error of named.
func namesOf(ctx context.Context, o Opener, p *part, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return entriesOf(func(each func(Entry) error) error { return listPart(ctx, o, p, each, nil) })
}
