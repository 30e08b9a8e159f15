// Package rumis reads the headers of rumi files, which have the directories of TIFFs. Package rumi does it, where a
// program imports that.
package rumis

import (
	"context"
	"encoding/binary"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// The magic numbers that header blobs begin with.
const (
	Blob1   = 0x333C333C
	BlobCut = 0x796D6173 // of rumi-eo 0.12 to 0.14
	Blob2   = 0x45564F4C // of generation 3, too
)

// IsBlob reports whether b begins like a header blob.
func IsBlob(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	magic := binary.LittleEndian.Uint32(b)
	return magic == Blob1 || magic == BlobCut || magic == Blob2
}

// Magic begins files of generation 3, which are not TIFFs. Files of earlier generations begin like a BigTIFF.
const Magic = "RUMI"

// Without package rumi these functions read TIFFs alone.
var (
	// Open reads the directories of a TIFF or of a rumi file, as rumi.Open does.
	Open = func(ctx context.Context, r source.Reader, l ifd.Limits) (*ifd.File, error) {
		return ifd.OpenAs(ctx, r, l, func(head []byte) (uint64, error) {
			if len(head) >= len(Magic) && string(head[:len(Magic)]) == Magic {
				return 0, notImported()
			}
			return 0, nil
		})
	}
	// Is reports whether an open file is a rumi file, as rumi.Is does.
	Is = func(ctx context.Context, f *ifd.File) bool { return false }
	// Index returns the index of a rumi file, and its header blob.
	Index = func(ctx context.Context, f *ifd.File, maxChunk int) (*chunk.Index, []byte, error) {
		return nil, nil, notImported()
	}
	// Meta reads the metadata of a rumi file, as rumi.Meta does.
	Meta = func(ctx context.Context, f *ifd.File) (tiff.Meta, error) { return tiff.Meta{}, notImported() }
	// ParseBlob returns the index of a header blob.
	ParseBlob = func(b []byte, maxChunk int) (*chunk.Index, error) { return nil, notImported() }
)

func notImported() error { return fault.NotImported("header", "reads rumi files", "rumi") }
