package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
)

// readTar reads the headers of a tar, which lie between its members. Of several members with one name the last one
// counts, as for tar. Links and directories are left out.
func readTar(ctx context.Context, r source.Reader) (*zipDirectory, error) {
	read := &zipDirectory{size: r.Size(), members: map[string]*zipMember{}}
	headers := &headers{ctx: ctx, r: r}
	for archive := tar.NewReader(headers); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case headers.err != nil:
			return nil, headers.err
		case err != nil:
			return nil, fault.New(fault.Corrupt, "tar", headers.pos, "%v", err)
		case header.Typeflag != tar.TypeReg:
			continue
		}
		name := strings.TrimPrefix(header.Name, "./")
		for record := range header.PAXRecords {
			if strings.HasPrefix(record, "GNU.sparse.") {
				return nil, fault.New(fault.Unsupported, "tar", headers.pos, "member %q is sparse: unpack it", name)
			}
		}
		if header.Size > r.Size()-headers.pos {
			return nil, fault.New(fault.Corrupt, "tar", headers.pos, "the %d bytes of %q reach past the end",
				header.Size, name)
		}
		member := &zipMember{Entry: zipdir.Entry{Size: header.Size, Bytes: header.Size, Plain: true}}
		member.data.Store(headers.pos)
		read.members[name] = member
	}
}

// headers reads the headers of a tar, and seeks over its members.
type headers struct {
	ctx context.Context
	r   source.Reader
	pos int64
	err error // of r
}

// Read implements io.Reader.
func (h *headers) Read(p []byte) (int, error) {
	left := h.r.Size() - h.pos
	if left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	if h.err = errors.Join(h.ctx.Err(), h.r.ReadAt(h.ctx, p, h.pos)); h.err != nil {
		return 0, h.err
	}
	h.pos += int64(len(p))
	return len(p), nil
}

// Seek implements io.Seeker as package tar needs it.
func (h *headers) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset += h.pos
	}
	h.pos = offset
	return offset, nil
}
