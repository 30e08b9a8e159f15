package hdf5

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/meter"
	"github.com/chaski-eo/chaski/source"
)

// Signature begins a superblock.
const Signature = "\x89HDF\r\n\x1a\n"

// Superblock is the beginning of a file.
type Superblock struct {
	Version int
	root    uint64 // the address of the root group's object header
}

const superblockPart = "superblock"

// findSuperblock returns the offset of the signature: 0, or after a user block 512, 1024 and so on.
func findSuperblock(ctx context.Context, r source.Reader) (int64, error) {
	head := make([]byte, len(Signature))
	for off := int64(0); off <= r.Size()-int64(len(head)); off = max(512, 2*off) {
		if err := r.ReadAt(ctx, head, off); err != nil {
			return 0, err
		}
		if bytes.Equal(head, []byte(Signature)) {
			return off, nil
		}
	}
	return 0, fault.At(fault.Corrupt, superblockPart, 0, "not an HDF5 file: no signature")
}

// Is reports whether a file begins like an HDF5 file. Its errors are outages.
func Is(ctx context.Context, r source.Reader) (bool, error) {
	_, err := findSuperblock(ctx, r)
	return err == nil, source.Outage(err)
}

// openFile reads the superblock of a file.
func openFile(ctx context.Context, r source.Reader) (*file, *Superblock, error) {
	off, err := findSuperblock(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	opened := &file{meter: meter.New(), size: r.Size(), offsetSize: 8, lengthSize: 8}
	w := opened.walk(ctx, r)
	// The longest, of version 1, has 24 + 4 + 4·8 + 40 bytes.
	b, err := w.block(superblockPart, uint64(off), uint64(min(100, r.Size()-off)))
	if err != nil {
		return nil, nil, err
	}
	b.take(len(Signature))
	version, err := b.version(0, 1, 2, 3)
	if err != nil {
		return nil, nil, err
	}
	super := &Superblock{Version: int(version)}
	var base, end, more uint64
	if version < 2 {
		b.take(4) // versions of the free space and of symbol tables
		if err := sizes(b, opened); err != nil {
			return nil, nil, err
		}
		b.take(1 + 2 + 2 + 4) // the ranks of B-trees and flags
		if version == 1 {
			b.take(4)
		}
		base, _, end, more = b.offset(), b.offset(), b.offset(), b.offset()
		if more != undefined {
			return nil, nil, unsupported(superblockPart, "a file in several parts (a driver information block)")
		}
		b.length() // the offset of the name of the root group
		super.root = b.offset()
	} else {
		if err := sizes(b, opened); err != nil {
			return nil, nil, err
		}
		b.take(1)
		base, _, end, super.root = b.offset(), b.offset(), b.offset(), b.offset()
		b.all = b.all[:min(len(b.all), b.pos+4)]
		if err := b.checked(); err != nil {
			return nil, nil, err
		}
	}
	if b.err != nil {
		return nil, nil, b.err
	}
	// Addresses begin at the superblock: a user block may have been put before it later, or cut off.
	opened.base = uint64(off)
	if size := uint64(r.Size()); end-base > size-uint64(off) {
		return nil, nil, b.fail("the file is cut off: it has %d bytes of %d", size, end-base+uint64(off))
	}
	return opened, super, nil
}

// sizes reads the sizes of offsets and lengths.
func sizes(b *block, f *file) error {
	f.offsetSize, f.lengthSize = int(b.u8()), int(b.u8())
	for _, n := range [...]int{f.offsetSize, f.lengthSize} {
		if b.err == nil && n != 2 && n != 4 && n != 8 {
			return unsupported(superblockPart, "addresses of %d bytes and lengths of %d", f.offsetSize, f.lengthSize)
		}
	}
	return b.err
}
