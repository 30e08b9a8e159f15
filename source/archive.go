package source

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
)

// archive is the directory of a ZIP.
type archive struct {
	size    int64              // of the ZIP, bytes
	members map[string]*member // by name; directories have none
}

// member is a file in a ZIP.
type member struct {
	size   int64        // stored bytes
	header int64        // offset of its local header
	data   atomic.Int64 // offset of its content, 0 if the local header was not read yet
	cannot string       // why it is not read, or ""
}

const (
	// maxDirectory limits the directory of a ZIP that is read, in bytes: two million members with names of 80 bytes.
	maxDirectory = 256 << 20
	// memberBytes estimates the memory of a member: the struct, the name, and its entry of the map.
	memberBytes = 256
	// archivesBytes limits the directories that are kept: half a million members.
	archivesBytes = 128 << 20
	// tailBytes is read from the end of a ZIP at once: it has the end of the directory behind a comment of any length,
	// and the directory of some 800 members.
	tailBytes = 128 << 10
	// directoryBytes is read at once of a longer directory.
	directoryBytes = 4 << 20
	// localHeader is the length of a local header without its name and extra field.
	localHeader = 30
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
func openArchive(ctx context.Context, o Opener, name, etag string) (r Reader, a *archive, err error) {
	if etag != "" {
		if a, ok := archives.Get(archiveKey(name, etag, 0)); ok {
			r, err = OpenKnown(ctx, o, name, Known{Size: a.size, ETag: etag})
			return r, a, err
		}
	}
	if r, err = o.Open(ctx, name); err != nil {
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
	n := int64(0)
	for name := range a.members {
		n += memberBytes + int64(len(name))
	}
	return n
}

// readArchive reads the directory of a ZIP.
func readArchive(ctx context.Context, r Reader) (*archive, error) {
	ahead := &aheadReader{ctx: ctx, r: r}
	z, err := zip.NewReader(ahead, r.Size())
	if ahead.err != nil {
		return nil, fault.WithPart(ahead.err, "ZIP directory", 0)
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names only choose members, no path is written
		return nil, fault.New(fault.Corrupt, "ZIP directory", fault.NoOffset, "%v", err)
	}
	a := &archive{size: r.Size(), members: make(map[string]*member, len(z.File))}
	for _, file := range z.File {
		name := strings.TrimPrefix(strings.ReplaceAll(file.Name, `\`, "/"), "./")
		if _, twice := a.members[name]; twice || name == "" || strings.HasSuffix(name, "/") {
			continue // GDAL opens the first of two members with one name
		}
		m := &member{size: int64(file.CompressedSize64), header: ahead.headerOf(file)}
		switch {
		case file.Flags&1 != 0:
			m.cannot = "it is encrypted"
		case file.Method == zip.Deflate:
			m.cannot = "it is compressed by Deflate: only members that are stored (zip -0) can be read by range"
		case file.Method != zip.Store:
			m.cannot = fmt.Sprintf("it is compressed by method %d: only members that are stored can be read by range",
				file.Method)
		}
		a.members[name] = m
	}
	return a, nil
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
	switch {
	case member == nil && name == "":
		return 0, 0, fault.New(fault.Unsupported, "ZIP", fault.NoOffset, "it has %d members: name one", len(a.members))
	case member == nil:
		return 0, 0, fault.New(fault.NotFound, part, fault.NoOffset, "no such member in the ZIP")
	case member.cannot != "":
		return 0, 0, fault.New(fault.Unsupported, part, fault.NoOffset, "%s", member.cannot)
	case member.data.Load() == 0:
		data := make([]byte, localHeader)
		if member.header < 0 || member.header > r.Size()-localHeader {
			return 0, 0, fault.New(fault.Corrupt, part, fault.NoOffset, "its local header is outside of the ZIP")
		}
		if err := r.ReadAt(ctx, data, member.header); err != nil {
			return 0, 0, fault.WithPart(err, part, 0)
		}
		if string(data[:4]) != "PK\x03\x04" {
			return 0, 0, fault.New(fault.Corrupt, part, member.header, "it has no local header")
		}
		nameBytes, extraBytes := binary.LittleEndian.Uint16(data[26:]), binary.LittleEndian.Uint16(data[28:])
		member.data.Store(member.header + localHeader + int64(nameBytes) + int64(extraBytes))
	}
	return member.data.Load(), member.size, nil
}

// aheadReader reads the directory of a ZIP for package zip, which asks for 4 KiB at a time. It reads more at once, and
// keeps that.
type aheadReader struct {
	ctx    context.Context
	r      Reader
	held   []byte
	off    int64 // of held
	read   int64 // bytes in all
	header *int64
	err    error // the first failure of r, which package zip would take for the end of the file
}

// errHeader is the answer to headerOf.
var errHeader = errors.New("the header is not read now")

// headerOf returns the offset of the local header of a member, or -1. Package zip has no other way to ask for it than
// reading the header, which would cost a request for each member.
func (a *aheadReader) headerOf(f *zip.File) int64 {
	off := int64(-1)
	a.header = &off
	_, _ = f.DataOffset() // errHeader
	a.header = nil
	return off
}

// ReadAt implements io.ReaderAt.
func (a *aheadReader) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case a.header != nil:
		*a.header = off
		return 0, errHeader
	case a.err != nil:
		return 0, a.err
	case off < 0 || off >= a.r.Size():
		return 0, io.EOF
	}
	if off < a.off || off+int64(len(p)) > a.off+int64(len(a.held)) {
		first, n := off, max(int64(len(p)), directoryBytes)
		if a.held == nil { // package zip begins at the end of the file
			first, n = max(0, min(off, a.r.Size()-tailBytes)), tailBytes
		}
		n = min(max(n, off-first+int64(len(p))), a.r.Size()-first)
		if a.read += n; a.read > maxDirectory {
			a.err = fault.New(fault.Limit, "", first, "over %d bytes", maxDirectory)
			return 0, a.err
		}
		held := make([]byte, n)
		if a.err = a.r.ReadAt(a.ctx, held, first); a.err != nil {
			return 0, a.err
		}
		a.held, a.off = held, first
	}
	n := copy(p, a.held[off-a.off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
