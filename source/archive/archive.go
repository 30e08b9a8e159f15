// Package archive makes a program read members of ZIPs, tars and databases of LMDB. Package loader/formats imports it.
package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/zipdir"
)

func init() { openers.RegisterArchive(openers.Archive{Member: member, List: list}) }

// zipDirectory is the directory of a ZIP, or of a tar as if it were one.
type zipDirectory struct {
	size    int64                 // of the ZIP, bytes
	members map[string]*zipMember // by name; directories have none
}

// zipMember is a file in a ZIP.
type zipMember struct {
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
// looked up here, so nobody gets a directory without access to the ZIP.
var archives = lru.New[string, *zipDirectory](archivesBytes)

// archiveKey is the key of archives. The size is 0 for an archive with a tag that is not open yet.
func archiveKey(part *source.Part, version string, size int64) string {
	return fmt.Sprintf("%t\n%s\n%d\n%s", part.Tar, part.File.Name, size, version)
}

// memberName returns the path of a member below its archive, where unpacking puts it: a name that leads out of it, or
// is a URI, must not stand for a file elsewhere.
func memberName(name string) string { return path.Clean("/" + name)[1:] }

// openArchive opens an archive and returns its directory. If the tag is known and the directory is kept, opening costs
// no request where the opener supports that.
func openArchive(ctx context.Context, part *source.Part, open openers.Opening,
	etag string) (r source.Reader, a *zipDirectory, err error) {
	name := part.File.Name
	if part.Tar && source.IsRemote(source.FileOf(name)) {
		return nil, nil, fault.WithFile(fault.New(fault.Unsupported, "tar",
			"to read its headers takes a request for each member: download it"), name)
	}
	if etag != "" {
		if a, ok := archives.Get(archiveKey(part, etag, 0)); ok {
			r, err = open(source.Known{Size: a.size, ETag: etag})
			return r, a, err
		}
	}
	if r, err = open(source.Known{}); err != nil {
		return nil, nil, err
	}
	version := source.ETag(r)
	if t, ok := r.(source.Timed); ok && version == "" {
		version = t.ModTime().String()
	}
	key := archiveKey(part, version, r.Size())
	if a, ok := archives.Get(key); ok && version != "" {
		return r, a, nil
	}
	read := readArchive
	if part.Tar {
		read = readTar
		if !strings.HasSuffix(name, ".tar") {
			read = readDatabase
		}
	}
	if a, err = read(ctx, r); err != nil {
		return nil, nil, errors.Join(fault.WithFile(err, name), r.Close())
	}
	if version = source.ETag(r); version != "" { // some openers know the tag only after the first bytes
		archives.Add(archiveKey(part, version, 0), a, a.cost())
		key = archiveKey(part, version, r.Size())
	}
	archives.Add(key, a, a.cost())
	return r, a, nil
}

// member implements openers.Archive.
func member(ctx context.Context, p *source.Part, open openers.Opening, etag string) (
	file source.Reader, part openers.Member, err error) {
	file, archive, err := openArchive(ctx, p, open, etag)
	if err != nil {
		return nil, part, err
	}
	found, off, err := archive.find(ctx, file, p.Member)
	if err != nil {
		return nil, part, errors.Join(err, file.Close())
	}
	content := func(stored source.Reader) source.Reader { return &memberReader{Reader: stored, member: found} }
	return file, openers.Member{Off: off, Size: found.Size, Content: content}, nil
}

// list implements openers.Archive.
func list(ctx context.Context, p *source.Part, open openers.Opening) (source.Reader, iter.Seq[source.Entry], error) {
	file, archive, err := openArchive(ctx, p, open, "")
	if err != nil {
		return nil, nil, err
	}
	return file, func(yield func(source.Entry) bool) {
		for _, name := range slices.Sorted(maps.Keys(archive.members)) {
			if !yield(source.Entry{Path: name, Size: archive.members[name].Bytes, ETag: source.ETag(file)}) {
				return
			}
		}
	}, nil
}

// cost estimates the memory of a directory.
func (a *zipDirectory) cost() int64 {
	total := int64(0)
	for name := range a.members {
		total += memberBytes + int64(len(name))
	}
	return total
}

// readArchive reads the directory of a ZIP.
func readArchive(ctx context.Context, r source.Reader) (*zipDirectory, error) {
	read := &zipDirectory{size: r.Size(), members: map[string]*zipMember{}}
	later := map[string]*zipMember{} // the last ones of names that are there several times
	err := zipdir.Each(ctx, r, 0, func(id []byte, parse func() (zipdir.Entry, error)) error {
		name := strings.ReplaceAll(string(id), `\`, "/")
		directory := strings.HasSuffix(name, "/")
		if name = memberName(name); name == "" || directory {
			return nil
		}
		entry, err := parse()
		if entry.Plain {
			entry.Bytes = entry.Size
		}
		if _, twice := read.members[name]; twice {
			later[name] = &zipMember{Entry: entry}
		} else {
			read.members[name] = &zipMember{Entry: entry}
		}
		return err
	})
	// GDAL opens the first of two members with one name. Writers of Zarr append metadata that has changed, so in
	// its stores the last one counts.
	for _, name := range [...]string{"zarr.json", ".zgroup", ".zarray"} {
		if read.members[name] != nil {
			maps.Copy(read.members, later)
		}
	}
	return read, err
}

// maxInflated limits the content of a member that is compressed by Deflate, in bytes, because every read inflates it
// from its beginning.
const maxInflated = 64 << 20

// find returns a member and the offset of its bytes. Without a name it is the only member.
func (a *zipDirectory) find(ctx context.Context, r source.Reader,
	name string) (found *zipMember, off int64, err error) {
	found = a.members[memberName(name)]
	if name == "" && len(a.members) == 1 {
		for _, only := range a.members {
			found = only
		}
	}
	part := fmt.Sprintf("member %q", name)
	if name == "" {
		part = "archive"
	}
	cannot := func(kind fault.Kind, why string, args ...any) (*zipMember, int64, error) {
		return nil, 0, fault.New(kind, part, why, args...)
	}
	switch {
	case found == nil && name == "":
		return cannot(fault.Unsupported, "it has %d members: name one", len(a.members))
	case found == nil:
		return nil, 0, fault.NoMember(part, "no such member in the archive, which has %s",
			fault.Near(name, slices.Sorted(maps.Keys(a.members)), fault.Itself))
	case found.Encrypted:
		return cannot(fault.Unsupported, "it is encrypted")
	case found.Method == zip.Deflate && max(found.Bytes, found.Size) > maxInflated:
		return cannot(fault.Limit, "it has %d bytes that are compressed by Deflate, at most %d: store it (zip -0), so "+
			"that it can be read by range", found.Bytes, maxInflated)
	case found.Method == zip.Deflate && found.Bytes/maxRatio > found.Size:
		return cannot(fault.Corrupt, "%d bytes cannot inflate to %d", found.Size, found.Bytes)
	case !found.Plain && found.Method != zip.Deflate:
		return cannot(fault.Unsupported, "it is compressed by method %d: Deflate and none are read", found.Method)
	case found.data.Load() == 0:
		data, err := zipdir.Data(ctx, r, name, found.Entry)
		if err != nil {
			return nil, 0, err
		}
		found.data.Store(data.Off)
	}
	return found, found.data.Load(), nil
}

// maxRatio is more than Deflate compresses anything by.
const maxRatio = 1033

// memberReader reads a member of a ZIP. A read of the whole member checks its CRC-32, and so does one that inflates it.
type memberReader struct {
	source.Reader // of the stored bytes
	member        *zipMember
	inflated      atomic.Pointer[[]byte] // the whole member, once more than a header was read
}

// Size implements Reader, ETag Tagged, Gap Gapped.
func (m *memberReader) Size() int64  { return m.member.Bytes }
func (m *memberReader) ETag() string { return source.ETag(m.Reader) }
func (m *memberReader) Gap() int64   { return source.Gap(m.Reader) }

// Place implements Placed: compressed bytes have no places of their own.
func (m *memberReader) Place() (object any, off int64) {
	if !m.member.Plain {
		return nil, 0
	}
	return source.Place(m.Reader)
}

// ReadAt implements Reader.
func (m *memberReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	read := m.Reader.ReadAt
	if !m.member.Plain {
		read = m.inflate
	}
	if err := read(ctx, p, off); err != nil {
		return err
	}
	return m.check(p)
}

// check checks the CRC-32 of the whole member; other ranges have none.
func (m *memberReader) check(p []byte) error {
	if int64(len(p)) != m.member.Bytes || m.member.CRC == 0 {
		return nil
	}
	if sum := crc32.ChecksumIEEE(p); sum != m.member.CRC {
		return fault.At(fault.Corrupt, "member", 0, "the CRC-32 of its %d bytes is %08x, the ZIP says %08x", len(p),
			sum, m.member.CRC)
	}
	return nil
}

// inflate fills p with the content from offset off on.
func (m *memberReader) inflate(ctx context.Context, p []byte, off int64) error {
	if size := m.member.Bytes; !source.Fits(off, int64(len(p)), size) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the %d of a member", len(p), size)
	}
	if content := m.inflated.Load(); content != nil {
		copy(p, (*content)[off:])
		return nil
	}
	stored, err := source.Read(ctx, m.Reader, 0, m.Reader.Size()) // which lie in the file
	if err != nil {
		return err
	}
	// All of it, unless a header is read: what is read next would inflate it from its beginning again.
	size := off + int64(len(p))
	if size > inflatedHead {
		size = m.member.Bytes
	}
	out := make([]byte, size)
	var decoder inflate.Decoder
	if _, err := decoder.Fill(out, stored); err != nil {
		return fault.New(fault.Corrupt, "Deflate", "%v", err)
	}
	if err := m.check(out); err != nil {
		return err
	}
	if copy(p, out[off:]); size > inflatedHead {
		m.inflated.Store(&out)
	}
	return nil
}

// inflatedHead is the size of the largest range from the beginning of a member for which the rest is not inflated: 64
// KiB have the header of most files.
const inflatedHead = 64 << 10
