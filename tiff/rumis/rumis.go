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

// Compression is the value of the Compression tag of files of generation 1.
const Compression = 60000

// Is reports whether an open file is a rumi file, as rumi.Is does.
func Is(ctx context.Context, f *ifd.File) bool { return Generation(ctx, f) > 0 }

// Generation returns the generation of a rumi file, 0 for another TIFF.
func Generation(ctx context.Context, f *ifd.File) int {
	tags := f.Tags(ctx, &f.Dirs[0])
	switch {
	case is3(f):
		return 3
	case is2(f):
		return 2
	case tags.Uint(ifd.TagCompression, 0) == Compression:
		return 1
	}
	return 0
}

// is2 reports whether an open TIFF looks like a file of generation 2: a BigTIFF with tiles and a
// matrix, and without a word on compression. Other TIFFs that leave out Compression because the samples
// are not compressed have PhotometricInterpretation, which TIFF demands of every image.
func is2(f *ifd.File) bool {
	directory := &f.Dirs[0]
	return !is3(f) && f.Big && directory.Find(ifd.TagCompression) == nil && directory.Find(ifd.TagPhotometric) == nil &&
		directory.Find(ifd.TagTileOffsets) != nil && directory.Find(ifd.TagTransformation) != nil &&
		directory.Find(ifd.TagGeoKeys) != nil
}

// is3 reports whether an open file is of generation 3.
func is3(f *ifd.File) bool { return len(f.Head) >= len(Magic) && string(f.Head[:len(Magic)]) == Magic }

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
