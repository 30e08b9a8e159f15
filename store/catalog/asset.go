package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/chunk/pictures"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

// Asset is one raster file of a dataset: where it is and how it is read.
type Asset struct {
	// URI to open the file by. Where Options.Roots are set it is free of symbolic links.
	URI string
	// Index is the chunk index. It is shared and must not be changed. An index from a blob was not
	// compared with the file's size, which would cost a request: reads past the end fail instead. A
	// TIFF with an internal mask has Index.Mask, and so has a raster with one in the file MaskFile.
	Index *chunk.Index
	// MaskFile is the file of Index.Mask if that lies beside the raster (NAME.msk), else nil.
	MaskFile *Asset
	// Beside are the extensions of the files beside the raster that Index, Place and Names are made of, such as
	// ".msk .aux.xml .tfw": "" for none.
	Beside string
	// Size is the size of the file in bytes when it was listed or indexed, 0 if unknown. The index does
	// not fit a file of another size.
	Size int64
	// MTime is the file's modification time when its index was made, zero if unknown. A file with
	// another time may be a copy, or another file of the same size: SameIndex decides.
	MTime time.Time
	// ETag is the entity tag of the object when its index was made, "" if unknown. The index does not fit an
	// object with another one.
	ETag string

	// Place is where the image lies, nil if the file or the catalog does not say so.
	Place *Place
	// GCPs are the ground control points of a file without a transform, and CRSName is what it calls its CRS. They are
	// for Unplaced, and are known of opened files only.
	GCPs    int
	CRSName string

	// Names are the names that the file gives its bands, "" for a band without one; nil if the file names none of
	// them, or was left closed and its catalog lacks them. They are shared and must not be changed.
	Names []string

	// Member is the path of the raster inside its container, "" if the raster is a file of its own.
	// A member has Length bytes from Offset on. Offsets in Index, Size and MTime are of the
	// container's file.
	Member         string
	Offset, Length int64

	// Parts are the rasters of a stack, whose bands follow each other; nil for a raster of its own. Index then has the
	// size, the bands and the dtype of the stack, but no chunks: reads go to the parts.
	Parts []Asset

	// Raster is the index of the first image of the file where Index belongs to an overview, else nil: the raster
	// itself or, in a file of overviews beside it, the first of these. Overview is then the number of the overview,
	// from 0 for the largest.
	Raster   *chunk.Index
	Overview int

	// Axes is what the field said of the file's axes, as far as it counts in Index.
	Axes chunk.Axes

	// Source is a number that no other source of a virtual raster has, as long as the process runs; 0 for other assets.
	Source uint64

	// Bytes are all bytes of the raster, from Offset on, if OpenSmall read them with its header,
	// else nil. They are shared and must not be changed.
	Bytes []byte

	storeBytes int64 // bytes that an array of a store takes
}

// SmallBytes is the size in bytes of the largest remote raster that OpenSmall reads whole: that takes about as long as
// asking for the header and the pixels in two requests. 256 KiB hold 256 × 256 pixels of two uint16 bands without
// compression.
const SmallBytes = 256 << 10

// headBytes is how much of a file the reader of a TIFF header reads at once (ifd.Limits.Head). A file of that size or
// less comes whole with it.
const headBytes = 64 << 10

// localHeadBytes is headBytes of a local file: another read costs less than bytes that are not needed.
const localHeadBytes = 8 << 10

// Reader returns a reader of Bytes, which must be set, at their offsets in the file.
func (a *Asset) Reader() source.Reader {
	return &memoryReader{bytes: a.Bytes, off: a.Offset, size: max(a.Size, int64(len(a.Bytes))), etag: a.ETag}
}

// memoryReader is a reader of a part of a file that is in memory.
type memoryReader struct {
	bytes []byte
	off   int64 // of bytes in the file
	size  int64 // of the file
	etag  string
}

// ReadAt implements source.Reader. Bytes outside the raster are fault.Corrupt: no chunk of its index may need them.
func (h *memoryReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	pos, n := off-h.off, int64(len(h.bytes))
	if !source.Fits(pos, int64(len(p)), n) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the raster's %d bytes at %d",
			len(p), n, h.off)
	}
	copy(p, h.bytes[pos:])
	return ctx.Err()
}

// Size, ETag and Gap implement source.Reader, source.Tagged and source.Gapped. In memory it never helps to read a gap.
func (h *memoryReader) Size() int64  { return h.size }
func (h *memoryReader) ETag() string { return h.etag }
func (h *memoryReader) Gap() int64   { return 0 }
func (h *memoryReader) Close() error { return nil }

// Fault adds the asset's name to an error.
func (a *Asset) Fault(err error) error {
	if a.Member != "" {
		err = fault.InPart(err, "sample "+a.Member)
	}
	return fault.WithFile(err, a.URI)
}

// DataNames returns the names of the bands without alpha, which is the last.
func (a *Asset) DataNames() []string { return a.Names[:min(len(a.Names), a.Index.DataBands())] }

// TakenForPicture reports whether the file is an array whose axes are (y, x, b) by its shape alone. Catalogs do not say
// why axes are what they are, so the name of the file tells there.
func (a *Asset) TakenForPicture() bool {
	interleaved := a.Index.Inner == chunk.YXB && a.Axes.Dims == "" && magic.Named(a.URI) == magic.NPY
	return a.Index.Picture || interleaved
}

// Name returns the name of the asset for errors and reports, as commands take it.
func (a *Asset) Name() string {
	if a.Member != "" {
		return a.URI + "::" + a.Member
	}
	return a.URI
}

// Known returns the size and tag of the file, which save requests when it is opened.
func (a *Asset) Known() source.Known { return source.Known{Size: a.Size, ETag: a.ETag} }

// Open opens the asset's file or, of a raster that is a part of its file, that part: offset 0 is the first byte of the
// raster. k is what is known of the file.
func (a *Asset) Open(ctx context.Context, o source.Opener, k source.Known) (source.Reader, error) {
	switch {
	case a.Bytes != nil:
		return source.Memory(a.Bytes), nil
	case a.Member != "":
		return source.OpenSection(ctx, o, a.URI, k, "sample "+a.Member, a.Offset, a.Length)
	}
	return source.OpenKnown(ctx, o, a.URI, k)
}

// Alone returns an opener that ignores the name and opens the asset as a file of its own.
func (a *Asset) Alone(o source.Opener) source.Opener {
	return source.OpenOne(func(ctx context.Context) (source.Reader, error) { return a.Open(ctx, o, source.Known{}) })
}

// Meta has the columns that a catalog keeps of an asset besides its index.
type Meta struct {
	Format *magic.Format // magic.TIFF, …
	Size   int64         // of the file, bytes
	// Blob is the index as bytes: a rumi header blob, or a chunk index blob; nil of a virtual raster.
	Blob []byte
	// EPSG is the code of the CRS, or 0.
	EPSG int
	// CRS has the parameters of a CRS without a code, as epsg.Definition.String writes them; "" if they are not known.
	CRS string
	// Transform converts pixel corners to coordinates as GDAL's geotransform does:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5]. nil without a place.
	Transform *[6]float64
	// Bands has the scales and offsets of all bands that NAME.aux.xml says, nil if it says none.
	Bands []tiff.Band
	// apart says that the mask of the index is in a file of its own: Blob leaves it out.
	apart bool
}

// Bounds returns the smallest box (minx, miny, maxx, maxy) in units of the CRS that holds an image of height by width
// pixels, or false without a transform, or with a corner beyond the largest float64.
func (m *Meta) Bounds(height, width int) (b [4]float64, ok bool) {
	place := m.Place(height, width)
	if place == nil {
		return b, false
	}
	low, high := place.bounds()
	return [4]float64{low[0], low[1], high[0], high[1]}, true
}

// OpenAsset reads a file's header and makes its index. maxChunk limits a decoded chunk in bytes (0:
// chunk.DefaultMaxBytes). Errors have the file's name and the kinds of the packages tiff and rumi; a URI that names
// nothing is NotFound.
func OpenAsset(ctx context.Context, o source.Opener, uri string, maxChunk int) (Asset, Meta, error) {
	return openWith(ctx, o, uri, chunk.Axes{}, maxChunk)
}

// openWith is OpenAsset with what is said of the axes.
func openWith(ctx context.Context, o source.Opener, uri string, axes chunk.Axes, maxChunk int) (Asset, Meta, error) {
	file, err := o.Open(ctx, uri)
	if err != nil {
		return Asset{}, Meta{}, fault.WithFile(err, uri)
	}
	return openAsset(ctx, o, file, uri, axes, maxChunk, 0)
}

// OpenSmall is OpenAsset for a raster whose pixels are read next. k has the size and tag of the file, if known. axes is
// what the field says of the file. A remote raster is read whole, in one request, if its size is known and at most
// SmallBytes, or if reading its header brings all of it.
func OpenSmall(ctx context.Context, o source.Opener, uri string, k source.Known, axes chunk.Axes,
	maxChunk int) (a Asset,
	err error) {
	small := int64(headBytes)
	if !source.IsRemote(uri) {
		small, k = 0, source.Known{}
	} else if k.Size > 0 && k.Size <= SmallBytes {
		small = SmallBytes
	} else {
		// Without a size the reader keeps the bytes around the header, so a small file comes whole with it.
		k.Size = 0
	}
	file, err := source.OpenKnown(ctx, o, uri, k)
	if err != nil {
		return Asset{}, fault.WithFile(err, uri)
	}
	a, _, err = openAsset(ctx, o, file, uri, axes, maxChunk, small)
	return a, err
}

// openAsset implements OpenAsset for an open reader, and closes it. It reads a raster of at most small bytes whole.
func openAsset(ctx context.Context, o source.Opener, r source.Reader, uri string, axes chunk.Axes, maxChunk int,
	small int64) (a Asset, m Meta, err error) {
	reader := r
	var whole []byte
	if n := r.Size(); n <= small {
		whole = make([]byte, n)
		if err = r.ReadAt(ctx, whole, 0); err == nil {
			reader = &memoryReader{bytes: whole, size: n, etag: source.ETag(r)}
		}
	}
	if err == nil {
		m.Format, err = FormatOf(ctx, reader)
		switch {
		case err != nil:
		case m.Format.Class == 0 && !opensOne(o):
			whole = nil
			if a, m, err = openENVI(ctx, o, reader, uri, maxChunk); a.Index == nil && err == nil {
				a, m, err = readFormat(ctx, reader, m.Format, axes, maxChunk)
			}
		case m.Format != magic.VRT:
			a, m, err = readFormat(ctx, reader, m.Format, axes, maxChunk)
		case opensOne(o) || source.IsPart(uri):
			whole, err = nil, errVirtualPart
		default:
			whole = nil
			a, m, err = OpenVirtual(ctx, o, reader, uri, maxChunk)
		}
	}
	if m.Format != magic.ENVI {
		err = NotRaster(ctx, o, uri, reader, err)
	}
	a.URI, a.ETag, a.MTime, a.Bytes = uri, source.ETag(r), source.ModTime(r), whole
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = AddBeside(ctx, o, &a, &m, maxChunk)
	}
	if err != nil {
		return Asset{}, Meta{}, fault.WithFile(err, uri)
	}
	return a, m, nil
}

func readAsset(ctx context.Context, r source.Reader, axes chunk.Axes, maxChunk int) (Asset, Meta, error) {
	format, err := FormatOf(ctx, r)
	if err != nil {
		return Asset{}, Meta{}, err
	}
	return readFormat(ctx, r, format, axes, maxChunk)
}

// readFormat is readAsset of a file of this format.
func readFormat(ctx context.Context, r source.Reader, format *magic.Format, axes chunk.Axes, maxChunk int) (a Asset,
	m Meta, err error) {
	m.Size, a.Size = r.Size(), r.Size()
	if m.Format = format; m.Format == magic.VRT {
		return a, m, errVirtualPart
	}
	if m.Format.Class == magic.Picture {
		if a.Axes.AsStored = axes.AsStored; m.Format == magic.NPY {
			a.Axes = chunk.Axes{Dims: axes.Dims}
		}
		if a.Index, err = pictures.Open(ctx, r, a.Axes, maxChunk); err == nil {
			m.Blob = blob.Append(nil, a.Index)
		}
		return a, m, err
	}
	limits := tiff.Limits{MaxChunk: maxChunk}
	if axes.Pages != "" {
		limits.MaxIFDs = tiff.MaxPages
	}
	parts := limits.IFD()
	if _, local := r.(source.Timed); local {
		parts.Head = localHeadBytes
	}
	file, err := rumis.Open(ctx, r, parts)
	if err != nil {
		return a, m, err
	}
	var geo tiff.Geo
	if rumis.Is(ctx, file) {
		m.Format = magic.Rumi
		// Not from the blob, because it may be one of another generation, too.
		a.Index, m.Blob, err = rumis.Index(ctx, file, cmp.Or(maxChunk, chunk.DefaultMaxBytes))
		if err != nil {
			return a, m, err
		}
		tm, err := rumis.Meta(ctx, file)
		if err != nil {
			return a, m, err
		}
		geo, a.Names = tm.Geo, tm.BandNames
		a.Index = tm.Complete(a.Index) // of GDAL's tags, which 'chaski convert' writes
	} else {
		m.Format = magic.TIFF
		img, err := tiff.OpenPages(ctx, file, axes.Pages, limits)
		if err != nil {
			return a, m, err
		}
		a.Index, geo, a.Names = img.Index, img.Meta.Geo, img.Meta.BandNames
		if axes.Pages != "" && img.Meta.Pages > 1 {
			a.Axes.Pages = axes.Pages
		} else if a.Index.Mask, err = tiff.OpenMask(ctx, file, a.Index, limits); err != nil {
			return a, m, err
		} else {
			m.Blob = blob.Append(nil, a.Index)
		}
	}
	m.EPSG, m.CRS = geo.EPSG, geo.Parameters
	a.GCPs, a.CRSName = geo.GCPs, geo.Citation()
	if geo.HasTransform {
		t := geo.Transform
		m.Transform = &t
	}
	a.Place = m.Place(a.Index.Height, a.Index.Width)
	return a, m, nil
}

// Kept returns the bytes by which catalogs and caches keep the index: Blob, or a chunk index blob with the mask of a
// file of its own, and for a rumi file with a nodata value, scales or offsets, which its header blob has no room for.
func (m *Meta) Kept(x *chunk.Index) []byte {
	if m.apart || m.Format == magic.Rumi && (x.HasNoData() || x.Physical != nil) {
		return blob.Append(nil, x)
	}
	return m.Blob
}

// Header returns Blob, or an error of kind unsupported if the asset has no blob.
func (m *Meta) Header() ([]byte, error) {
	if m.Blob == nil {
		return nil, fault.New(fault.Unsupported, "header",
			"a virtual raster has no header to keep: its pixels are in other files")
	}
	return m.Blob, nil
}

// SameIndex reads the header of an open file and reports whether x is its index, with these axes. An x without a mask,
// alpha, palette, scales or offsets also matches a file with them, because older catalogs have none; so does one
// without the nodata value of a rumi or PNG file. What the files with the extensions beside say is not compared.
func SameIndex(ctx context.Context, r source.Reader, x *chunk.Index, beside string, axes chunk.Axes,
	maxChunk int) (bool, error) {
	asset, meta, err := readAsset(ctx, r, axes, maxChunk)
	if err != nil {
		return false, err
	}
	stored, image := *asset.Index, *x
	known := Asset{Beside: beside}
	if known.hasBeside(maskExt) {
		image.Mask = nil
	}
	if x = &image; known.hasBeside(pamExt) {
		stored.NoData, stored.NoDataBits, stored.Physical = x.NoData, x.NoDataBits, x.Physical
		stored.Alpha, stored.Classes, stored.BandNoData = x.Alpha, x.Classes, x.BandNoData
	}
	if x.Mask == nil {
		stored.Mask = nil
	}
	if (meta.Format == magic.Rumi || meta.Format == magic.PNG) && !x.HasNoData() {
		stored.SetNoData(nil)
	}
	return Matches(&stored, x), nil
}

// Matches reports whether x, of a catalog, is the index of a file, which catalogs of earlier versions have without its
// alpha, palette, scales and offsets. Of virtual rasters it compares nothing: catalogs do not keep their indexes.
func Matches(file, x *chunk.Index) bool {
	if file.OfArray() || x.OfArray() {
		return file.OfArray() && x.OfArray()
	}
	stored := *file
	stored.Alpha, stored.Classes = stored.Alpha && x.Alpha, stored.Classes && x.Classes
	if x.Physical == nil {
		stored.Physical = nil
	}
	return bytes.Equal(blob.Append(nil, &stored), blob.Append(nil, x))
}

// CheckRaster returns an error if there is no TIFF or rumi file at off in a local file below roots. It protects
// against indexes from clients: without the check, a client that may only read rasters could describe the bytes of any
// file, such as a key, as pixels. It checks local files below roots only: a remote object would cost a request, and
// the root "/" allows all.
func CheckRaster(ctx context.Context, o source.Opener, uri string, off int64) error {
	if source.IsRemote(source.FileOf(uri)) || !openers.RootsOf(o).Bounded() {
		return nil
	}
	file, err := o.Open(ctx, uri)
	if err != nil {
		return fault.WithFile(err, uri)
	}
	format, err := formatAt(ctx, file, off)
	if err := errors.Join(err, file.Close()); err != nil {
		return fault.WithFile(err, uri)
	}
	if !format.Class.Pixels() {
		if text, err := besideENVI(ctx, o, uri); text != "" || err != nil {
			return fault.WithFile(err, uri)
		}
		return fault.WithFile(fault.At(fault.Unsupported, "header", off,
			"no raster file, as the index of it says"), uri)
	}
	return nil
}

// FormatOf returns the format of a file by its first bytes.
func FormatOf(ctx context.Context, r source.Reader) (*magic.Format, error) {
	return formatAt(ctx, r, 0)
}

// formatAt returns the format of a file that begins at an offset of another one.
func formatAt(ctx context.Context, r source.Reader, off int64) (*magic.Format, error) {
	if off < 0 || off >= r.Size() {
		return magic.Of(nil), nil
	}
	head, err := source.Read(ctx, r, off, min(magic.Head, r.Size()-off))
	if err != nil {
		return nil, err
	}
	return magic.Of(head), nil
}

// IsRaster reports whether a file begins like one that OpenAsset reads.
func IsRaster(ctx context.Context, r source.Reader) (bool, error) {
	format, err := FormatOf(ctx, r)
	return err == nil && format.Class.Pixels(), err
}

// isOther reports whether a file begins like none that OpenAsset reads, as far as it can be read.
func isOther(ctx context.Context, r source.Reader) bool {
	is, err := IsRaster(ctx, r)
	return err == nil && !is
}

// NotRaster returns the error of a file whose header could not be read, as err says. It names another format.
func NotRaster(ctx context.Context, o source.Opener, uri string, r source.Reader, err error) error {
	refusal := magic.Refusal(source.Name(uri))
	switch kind := fault.KindOf(err); {
	case err != nil && magic.Named(source.Name(uri)) == magic.NPZ && !source.IsPart(uri):
		return NotOneArray(ctx, o, uri)
	case kind == fault.Unsupported && refusal != "" && magic.OfName(uri) != magic.ZIP && isOther(ctx, r):
		return fault.At(kind, "header", 0, "%s", refusal)
	case kind != fault.Corrupt:
	case magic.Named(uri) == magic.ENVI && isOther(ctx, r):
		return fault.At(fault.Corrupt, "header", 0, "there is no header of an ENVI raster beside it, NAME.hdr")
	case magic.Named(uri).Class == magic.Picture && isOther(ctx, r):
		return fault.At(fault.Corrupt, "header", 0, "it begins like no PNG, JPEG, BMP, NumPy, TIFF, rumi or VRT file")
	default:
		if name := foreign(ctx, uri, r); name != "" {
			return ifd.NotRead(name)
		}
	}
	return err
}

// NotOneArray returns the error for a .npz file that is taken for a raster.
func NotOneArray(ctx context.Context, o source.Opener, uri string) error {
	var names []string
	err := openers.List(ctx, o, source.ArchiveName(uri), func(e source.Entry) error {
		if name, ok := strings.CutSuffix(e.Path, magic.NPY.End()); ok {
			names = append(names, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return fault.New(fault.Corrupt, "ZIP", "it has no arrays")
	}
	return fault.New(fault.Unsupported, "ZIP", "it holds the arrays %s: name one, as in %q",
		fault.Names(names), source.ArrayName("{id}.npz", fault.Short(names[0])))
}

// foreign returns the name of the format of a file that could not be read, or "". It knows formats without a magic
// number by the file's name. A file that starts like a TIFF or rumi file is a broken one.
func foreign(ctx context.Context, uri string, r source.Reader) string {
	if !isOther(ctx, r) {
		return ""
	}
	return magic.OfName(uri)
}

// ParseIndex parses an index blob: a rumi header blob or a chunk index blob, which differ in their first bytes.
// maxChunk limits a decoded chunk in bytes (0: chunk.DefaultMaxBytes).
func ParseIndex(data []byte, maxChunk int) (*chunk.Index, error) {
	maxChunk = cmp.Or(maxChunk, chunk.DefaultMaxBytes)
	if rumis.IsBlob(data) {
		return rumis.ParseBlob(data, maxChunk)
	}
	return blob.Parse(data, maxChunk)
}

// Cost is about the memory of the parsed index in bytes.
func (a *Asset) Cost() int64 {
	n := 320 + int64(cap(a.Index.Ranges))*16 + int64(len(a.URI)) + int64(cap(a.Bytes)) + a.storeBytes
	if m := a.Index.Mask; m != nil {
		n += 256 + int64(cap(m.Ranges))*16
	}
	if v := virtualOf(a.Index); v != nil {
		n += v.Cost()
	}
	return n
}

var errNoRaster = errors.New("catalog: the field is not a raster")

// Overviews returns the indexes of the overviews of a raster, from the largest to the smallest, with their masks. x is
// the index of the raster itself, which r holds. Only TIFF files have overviews of their own;
// OverviewFile reads those beside a file.
func Overviews(ctx context.Context, r source.Reader, x *chunk.Index, maxChunk int) ([]*chunk.Index, error) {
	if format, err := FormatOf(ctx, r); err != nil || format.Class == magic.Picture {
		return nil, err
	}
	file, err := rumis.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil || rumis.Is(ctx, file) {
		return nil, err
	}
	return tiff.OpenOverviews(ctx, file, x, tiff.Limits{MaxChunk: maxChunk})
}

// OverviewFile opens the file of overviews beside the raster at uri, NAME.ovr, as GDAL finds it: a TIFF whose images
// are overviews. It returns the file as an asset with the index of its first image, and the indexes of all of
// them, from the largest to the smallest, with their masks. The list is empty if the file does not exist or the store
// refuses it. x is the index of the raster. Errors name the file of overviews.
func OverviewFile(ctx context.Context, o source.Opener, uri string, x *chunk.Index, maxChunk int) (a Asset,
	levels []*chunk.Index, err error) {
	a.URI = besideURI(uri)
	file, err := o.Open(ctx, a.URI)
	// Stores that do not list their objects refuse missing ones: a refusal means that it is missing.
	if fault.KindOf(err) == fault.NotFound || source.IsDenied(err) {
		return a, nil, nil
	}
	if err != nil {
		return a, nil, fault.WithFile(err, a.URI)
	}
	defer func() { err = errors.Join(fault.WithFile(err, a.URI), file.Close()) }()
	if format, err := FormatOf(ctx, file); err != nil {
		return a, nil, err
	} else if format.Class != magic.Raster {
		return a, nil, fault.At(fault.Unsupported, "header", 0, "a file of overviews that is no TIFF")
	}
	f, err := rumis.Open(ctx, file, tiff.Limits{}.IFD())
	if err != nil {
		return a, nil, err
	}
	if levels, err = tiff.OpenOverviewFile(ctx, f, x, tiff.Limits{MaxChunk: maxChunk}); err != nil {
		return a, nil, err
	}
	side, _, err := readAsset(ctx, file, chunk.Axes{}, maxChunk)
	a.Index, a.Size, a.ETag, a.MTime = side.Index, side.Size, source.ETag(file), source.ModTime(file)
	return a, levels, err
}

// besideURI returns the URI of the file of overviews beside a raster. The query of a URL stays behind the path.
func besideURI(uri string) string {
	const ext = ".ovr"
	if path, query, ok := strings.Cut(uri, "?"); ok && source.IsRemote(uri) {
		return path + ext + "?" + query
	}
	return uri + ext
}
