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
// counts, as for tar. Hard links are the files that they lead to. Symbolic links and directories are left out.
func readTar(ctx context.Context, r source.Reader) (*zipDirectory, error) {
	read := &zipDirectory{size: r.Size(), members: map[string]*zipMember{}}
	headers := &headers{ctx: ctx, r: r}
	for archive := tar.NewReader(headers); ; {
		header, err := archive.Next()
		switch {
		case headers.err != nil:
			return nil, headers.err
		case errors.Is(err, io.EOF) && headers.pos == r.Size() && r.Size()%tarBlock != 0:
			return nil, fault.At(fault.Corrupt, "tar", headers.pos, "it is cut: it ends within a block of %d bytes",
				tarBlock)
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return nil, fault.At(fault.Corrupt, "tar", headers.pos, "%v", err)
		}
		name := memberName(header.Name)
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		case tar.TypeLink:
			if linked := read.members[memberName(header.Linkname)]; linked != nil {
				read.members[name] = linked
			}
			continue
		default:
			continue
		}
		sparse := header.Typeflag == tar.TypeGNUSparse
		for record := range header.PAXRecords {
			sparse = sparse || strings.HasPrefix(record, "GNU.sparse.")
		}
		if sparse {
			return nil, fault.At(fault.Unsupported, "tar", headers.pos, "member %q is sparse: unpack it", name)
		}
		if header.Size > r.Size()-headers.pos {
			return nil, fault.At(fault.Corrupt, "tar", headers.pos, "the %d bytes of %q reach past the end",
				header.Size, name)
		}
		member := &zipMember{Entry: zipdir.Entry{Size: header.Size, Bytes: header.Size, Plain: true}}
		member.data.Store(headers.pos)
		read.members[name] = member
	}
}

// tarBlock is the size of the blocks of a tar, bytes.
const tarBlock = 512

// headers reads the headers of a tar, and seeks over its members.
type headers struct {
	ctx context.Context
	r   source.Reader
	pos int64
	err error // of r, or of a seek
}

// Read implements io.Reader.
func (h *headers) Read(p []byte) (int, error) {
	rest := h.r.Size() - h.pos
	if rest <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), rest)]
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
	if offset < 0 || offset > h.r.Size() { // or it is too large to be a number
		h.err = fault.At(fault.Corrupt, "tar", h.pos, "a member reaches past the end, %d bytes", h.r.Size())
		return 0, h.err
	}
	h.pos = offset
	return offset, nil
}
