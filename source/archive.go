package source

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source/zipdir"
)

// archive is the directory of a ZIP.
type archive struct {
	size    int64              // of the ZIP, bytes
	members map[string]*member // by name; directories have none
}

// member is a file in a ZIP.
type member struct {
	zipdir.Entry
	data atomic.Int64 // offset of its content, 0 if the local header was not read yet
}

const (
	// memberBytes estimates the memory of a member: the struct, the name, and its entry of the map.
	memberBytes = 256
	// archivesBytes limits the directories that are kept: half a million members.
	archivesBytes = 128 << 20
)

// archives keeps directories by the name, size, and tag or time of the ZIP. A name is opened before its directory is
// looked up here, so that nobody gets a directory without access to the ZIP.
var archives = lru.New[string, *archive](archivesBytes)

// archiveKey is the key of archives. The size is 0 for a ZIP with a tag that is not open yet.
func archiveKey(name, version string, size int64) string {
	return fmt.Sprintf("%s\n%d\n%s", name, size, version)
}

// openArchive opens a ZIP and returns its directory. If the tag of the ZIP is known and its directory is kept, opening
// costs no request where the opener supports that.
func openArchive(ctx context.Context, o router, p Path, etag string) (r Reader, a *archive, err error) {
	name := p.Name
	if etag != "" {
		if a, ok := archives.Get(archiveKey(name, etag, 0)); ok {
			r, err = openPath(ctx, o, p, Known{Size: a.size, ETag: etag})
			return r, a, err
		}
	}
	if r, err = openPath(ctx, o, p, Known{}); err != nil {
		return nil, nil, err
	}
	version := ETag(r)
	if t, ok := r.(Timed); ok && version == "" {
		version = t.ModTime().String()
	}
	key := archiveKey(name, version, r.Size())
	if a, ok := archives.Get(key); ok && version != "" {
		return r, a, nil
	}
	if a, err = readArchive(ctx, r); err != nil {
		return nil, nil, errors.Join(fault.WithFile(err, name), r.Close())
	}
	if version = ETag(r); version != "" { // some openers know the tag only after the first bytes
		archives.Add(archiveKey(name, version, 0), a, a.cost())
		key = archiveKey(name, version, r.Size())
	}
	archives.Add(key, a, a.cost())
	return r, a, nil
}

// cost estimates the memory of a directory.
func (a *archive) cost() int64 {
	total := int64(0)
	for name := range a.members {
		total += memberBytes + int64(len(name))
	}
	return total
}

// readArchive reads the directory of a ZIP.
func readArchive(ctx context.Context, r Reader) (*archive, error) {
	read := &archive{size: r.Size(), members: map[string]*member{}}
	return read, zipdir.Each(ctx, r, 0, func(id []byte, parse func() (zipdir.Entry, error)) error {
		name := strings.TrimPrefix(strings.ReplaceAll(string(id), `\`, "/"), "./")
		if _, twice := read.members[name]; twice || name == "" || strings.HasSuffix(name, "/") {
			return nil // GDAL opens the first of two members with one name
		}
		entry, err := parse()
		read.members[name] = &member{Entry: entry}
		return err
	})
}

// find returns where the content of a member is. Without a name it is the only member.
func (a *archive) find(ctx context.Context, r Reader, name string) (off, size int64, err error) {
	member := a.members[name]
	if name == "" && len(a.members) == 1 {
		for _, only := range a.members {
			member = only
		}
	}
	part := fmt.Sprintf("member %q", name)
	cannot := func(why string, args ...any) (off, size int64, err error) {
		return 0, 0, fault.New(fault.Unsupported, part, fault.NoOffset, why, args...)
	}
	switch {
	case member == nil && name == "":
		return 0, 0, fault.New(fault.Unsupported, "ZIP", fault.NoOffset, "it has %d members: name one", len(a.members))
	case member == nil:
		return 0, 0, fault.New(fault.NotFound, part, fault.NoOffset, "no such member in the ZIP")
	case member.Encrypted:
		return cannot("it is encrypted")
	case member.Method == zip.Deflate:
		return cannot("it is compressed by Deflate: only members that are stored (zip -0) can be read by range")
	case !member.Plain:
		return cannot("it is compressed by method %d: only members that are stored can be read by range", member.Method)
	case member.data.Load() == 0:
		data, err := zipdir.Data(ctx, r, name, member.Entry)
		if err != nil {
			return 0, 0, err
		}
		member.data.Store(data.Off)
	}
	return member.data.Load(), member.Size, nil
}
