package catalog

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Asset is one raster file of a dataset: where it is and how it is read.
type Asset struct {
	// URI to open the file by. Where Options.Roots are set it is free of symbolic links.
	URI string
	// Index says where the chunks lie. It is shared and must not be changed. One that comes from a
	// blob was not compared with the file's size: reading past the end is what tells. That of a TIFF with
	// an internal mask has Index.Mask; masks in files of their own (.msk) are not looked for.
	Index *chunk.Index
	// Size of the file in bytes when it was listed or indexed, 0 if that is not known. A file of another
	// size is not the one that the index is of.
	Size int64
	// MTime is when the file had last been modified when its index was made, zero if that is not known. A
	// file that has another time now may be a copy, or another file of the same size: SameIndex tells.
	MTime time.Time
	// ETag is that of the object when its index was made, "" if that is not known. An object with another one
	// is not the one that the index is of.
	ETag string

	// Member is the path of the raster in the container that the file is, "" where it is a file of its own.
	// A member lies in Length bytes from Offset on. The places in Index are those in the file, whose Size
	// and MTime the two above are.
	Member         string
	Offset, Length int64

	// Bytes are all bytes of the raster, from Offset on, where OpenSmall read them with its header; else nil. They
	// are shared and must not be changed.
	Bytes []byte
}

// SmallBytes is the size in bytes of the largest remote raster that OpenSmall reads whole: it takes
// about as long as to ask for the header and the pixels in two requests. 256 KiB hold 256 × 256
// pixels of two uint16 bands without compression.
const SmallBytes = 256 << 10

// headBytes is what reading the header of a TIFF takes of a file's beginning at once
// (ifd.Limits.Head): a file that is no larger comes whole with it.
const headBytes = 64 << 10

// Reader returns a reader of Bytes, which must be there, at the places that they have in the file.
func (a *Asset) Reader() source.Reader {
	return &held{bytes: a.Bytes, off: a.Offset, size: max(a.Size, int64(len(a.Bytes))), etag: a.ETag}
}

// held is a reader of a part of a file that is in memory.
type held struct {
	bytes []byte
	off   int64 // of bytes in the file
	size  int64 // of the file
	etag  string
}

// ReadAt implements source.Reader. What is not in memory is fault.Corrupt: an index has no chunk outside of its raster.
func (h *held) ReadAt(ctx context.Context, p []byte, off int64) error {
	at, n := off-h.off, int64(len(h.bytes))
	if at < 0 || at > n || int64(len(p)) > n-at {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the raster's %d bytes at %d",
			len(p), n, h.off)
	}
	copy(p, h.bytes[at:])
	return ctx.Err()
}

// Size, ETag and Gap implement source.Reader, source.Tagged and source.Gapped: in memory no gap is worth reading.
func (h *held) Size() int64  { return h.size }
func (h *held) ETag() string { return h.etag }
func (h *held) Gap() int64   { return 0 }
func (h *held) Close() error { return nil }

// Fault says of an error that it is one of the asset.
func (a *Asset) Fault(err error) error {
	if a.Member != "" {
		base := int64(fault.NoOffset)
		var e *fault.Error
		if errors.As(err, &e) && e.Off >= 0 {
			base = 0
		}
		err = fault.WithPart(err, "sample "+a.Member, base)
	}
	return fault.WithFile(err, a.URI)
}

// Known returns what is known of the file, to open it by.
func (a *Asset) Known() source.Known { return source.Known{Size: a.Size, ETag: a.ETag} }

// Formats of raster files.
const (
	FormatTIFF = "tiff"
	FormatRumi = "rumi"
)

// Meta is what a catalog keeps of an asset besides its index.
type Meta struct {
	Format string // FormatTIFF or FormatRumi
	Size   int64  // of the file, bytes
	ETag   string // of an object in a store that gives one; "" for local files
	// Blob is the index as bytes: a rumi header blob, or a chunk index blob.
	Blob []byte
	// EPSG code of the CRS, 0 for none.
	EPSG int
	// Transform takes pixel corners to the ground as GDAL's geotransform does:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5]. nil for none.
	Transform *[6]float64
}

// Bounds returns the smallest box (minx, miny, maxx, maxy) in units of the CRS that holds an image
// of height by width pixels, or false without a transform.
func (m *Meta) Bounds(height, width int) (b [4]float64, ok bool) {
	if m.Transform == nil {
		return b, false
	}
	t, h, w := m.Transform, float64(height), float64(width)
	b = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, c := range [...][2]float64{{0, 0}, {0, w}, {h, 0}, {h, w}} {
		// Rounded one by one: splits by cell are the same on all machines.
		x, y := t[0]+float64(c[1]*t[1])+float64(c[0]*t[2]), t[3]+float64(c[1]*t[4])+float64(c[0]*t[5])
		b = [4]float64{math.Min(b[0], x), math.Min(b[1], y), math.Max(b[2], x), math.Max(b[3], y)}
	}
	return b, true
}

// OpenAsset reads a file's directory and makes its index. maxChunk is the limit of a decoded chunk in
// bytes (0: tiff.DefaultMaxChunk). Errors have the file's name and the kinds of the packages tiff and
// rumi; a URI that names nothing is NotFound.
func OpenAsset(ctx context.Context, o source.Opener, uri string, maxChunk int) (Asset, Meta, error) {
	r, err := o.Open(ctx, uri)
	if err != nil {
		return Asset{}, Meta{}, fault.WithFile(err, uri)
	}
	return openAsset(ctx, o, r, uri, maxChunk, 0)
}

// OpenSmall is OpenAsset for a raster whose pixels are read next, and of which something may be
// known. A remote one whose size is known and at most SmallBytes is read whole, in one request; so
// is one that reading its header brings whole.
func OpenSmall(ctx context.Context, o source.Opener, uri string, k source.Known, maxChunk int) (Asset, Meta, error) {
	if !source.IsRemote(uri) {
		return OpenAsset(ctx, o, uri, maxChunk)
	}
	small := int64(headBytes)
	if k.Size > 0 && k.Size <= SmallBytes {
		small = SmallBytes
	} else {
		k.Size = 0 // its reader then keeps what it reads around the header
	}
	r, err := source.OpenKnown(ctx, o, uri, k)
	if err != nil {
		return Asset{}, Meta{}, fault.WithFile(err, uri)
	}
	return openAsset(ctx, o, r, uri, maxChunk, small)
}

// openAsset is OpenAsset of an open reader, which it closes. A raster of at most small bytes is read whole.
func openAsset(ctx context.Context, o source.Opener, r source.Reader, uri string, maxChunk int,
	small int64) (a Asset, m Meta, err error) {
	from := r
	var whole []byte
	if n := r.Size(); n > 0 && n <= small {
		whole = make([]byte, n)
		if err = r.ReadAt(ctx, whole, 0); err == nil {
			from = &held{bytes: whole, size: n, etag: source.ETag(r)}
		}
	}
	if err == nil {
		a, m, err = readAsset(ctx, from, maxChunk)
	}
	if fault.KindOf(err) == fault.Corrupt {
		if name := foreign(ctx, o, uri, from); name != "" {
			err = ifd.NotRead(name)
		}
	}
	a.URI, a.ETag, a.Bytes = uri, source.ETag(r), whole
	if t, ok := r.(source.Timed); ok {
		a.MTime = t.ModTime()
	}
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Asset{}, Meta{}, fault.WithFile(err, uri)
	}
	return a, m, nil
}

func readAsset(ctx context.Context, r source.Reader, maxChunk int) (a Asset, m Meta, err error) {
	f, err := ifd.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil {
		return a, m, laterRumi(ctx, r, err)
	}
	m.Size, a.Size = r.Size(), r.Size()
	if t, ok := r.(interface{ ETag() string }); ok {
		m.ETag = t.ETag()
	}
	var geo tiff.Geo
	if rumi.Is(ctx, f) {
		m.Format = FormatRumi
		if m.Blob, err = rumi.Index(ctx, f); err != nil {
			return a, m, err
		}
		if a.Index, err = ParseIndex(m.Blob, maxChunk); err != nil {
			return a, m, err
		}
		tm, err := rumi.Meta(ctx, f)
		if err != nil {
			return a, m, err
		}
		geo = tm.Geo
	} else {
		m.Format = FormatTIFF
		img, err := tiff.FromFile(ctx, f, tiff.Limits{MaxChunk: maxChunk})
		if err != nil {
			return a, m, err
		}
		a.Index, geo = img.Index, img.Meta.Geo
		if a.Index.Mask, err = tiff.OpenMask(ctx, f, a.Index, tiff.Limits{MaxChunk: maxChunk}); err != nil {
			return a, m, err
		}
		m.Blob = a.Index.AppendBlob(nil)
	}
	m.EPSG = geo.EPSG
	if geo.HasTransform {
		t := geo.Transform
		m.Transform = &t
	}
	return a, m, nil
}

// SameIndex reads the directory of an open file and reports whether x is its index. An x without a mask
// is also that of a file with one, as catalogs were made before indexes had masks.
func SameIndex(ctx context.Context, r source.Reader, x *chunk.Index, maxChunk int) (bool, error) {
	a, _, err := readAsset(ctx, r, maxChunk)
	if err != nil {
		return false, err
	}
	is := *a.Index
	if x.Mask == nil {
		is.Mask = nil
	}
	return bytes.Equal(is.AppendBlob(nil), x.AppendBlob(nil)), nil
}

// laterRumi returns the error for a file that is no TIFF: err, or that it is a rumi file of a
// generation after the second.
func laterRumi(ctx context.Context, r source.Reader, err error) error {
	if !startsWith(ctx, r, rumi.LaterMagic) {
		return err
	}
	return fault.New(fault.Unsupported, "header", 0, "a rumi file of a generation after the second")
}

// foreign returns the name of the format of a file that could not be read, or "". Formats without a
// magic number go by the name of the file; an ENVI raster by the header beside it, NAME.hdr or
// NAME.dat.hdr. What starts like a TIFF is a broken TIFF.
func foreign(ctx context.Context, o source.Opener, uri string, r source.Reader) string {
	for _, tiff := range [...]string{"II*\x00", "II+\x00", "MM\x00*", "MM\x00+"} {
		if startsWith(ctx, r, tiff) {
			return ""
		}
	}
	switch ext := listing.Extension(uri); ext {
	case "", ".img", ".dat", ".bin", ".raw", ".bsq", ".bil", ".bip", ".envi":
		for _, name := range [...]string{uri[:len(uri)-len(ext)] + ".hdr", uri + ".hdr"} {
			h, err := o.Open(ctx, name)
			if err != nil {
				continue
			}
			found := startsWith(ctx, h, "ENVI")
			if h.Close() == nil && found {
				return "an ENVI raster (there is an .hdr file beside it)"
			}
		}
	}
	return magic.OfName(uri)
}

func startsWith(ctx context.Context, r source.Reader, prefix string) bool {
	head := make([]byte, len(prefix))
	return r.Size() >= int64(len(head)) && r.ReadAt(ctx, head, 0) == nil && string(head) == prefix
}

// ParseIndex reads an index from a blob: a rumi header blob or a chunk index blob, told apart by their
// first bytes. maxChunk is the limit of a decoded chunk in bytes (0: tiff.DefaultMaxChunk).
func ParseIndex(blob []byte, maxChunk int) (*chunk.Index, error) {
	if maxChunk == 0 {
		maxChunk = tiff.DefaultMaxChunk
	}
	if rumi.IsBlob(blob) {
		h, err := rumi.ParseLimit(blob, maxChunk)
		if err != nil {
			return nil, err
		}
		return h.Index(), nil
	}
	return chunk.ParseBlob(blob, maxChunk)
}

// indexCost is the memory of a parsed index in bytes.
func indexCost(a Asset) int64 {
	n := 256 + int64(cap(a.Index.Ranges))*16 + int64(len(a.URI)) + 64 + int64(cap(a.Bytes))
	if m := a.Index.Mask; m != nil {
		n += 256 + int64(cap(m.Ranges))*16
	}
	return n
}

var errNoRaster = errors.New("catalog: the field is no raster")
