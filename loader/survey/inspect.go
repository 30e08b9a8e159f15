package survey

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Kinds of files and directories in FileInfo. Other files have the name of their format.
const (
	KindRumi   = "rumi"
	KindTable  = "parquet" // any Parquet file but a catalog
	KindAssets = "catalog" // a Parquet file that holds the indexes of its assets
	KindCSV    = "csv"
	KindFolder = "folder"
)

// FileInfo describes a file or a directory. Fields that do not apply to its kind are nil.
type FileInfo struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"` // of the file, or of all files below the directory

	Raster *RasterInfo        `json:"raster,omitempty"`
	TIFF   *TIFFInfo          `json:"tiff,omitempty"`
	VRT    *VRTInfo           `json:"vrt,omitempty"`
	ENVI   *BesideInfo        `json:"envi,omitempty"`
	Rumi   *RumiInfo          `json:"rumi,omitempty"`
	Frame  *FrameInfo         `json:"frame,omitempty"`
	Table  *tableinfo.Summary `json:"table,omitempty"`
	Folder *FolderInfo        `json:"folder,omitempty"`
	// Beside are the files beside a raster that count for it, by their extensions, such as ".msk".
	Beside []string `json:"beside,omitempty"`
	// Unreadable is why chaski cannot read the pixels of a raster file; empty if it can.
	Unreadable string `json:"unreadable,omitempty"`

	// Format is the format of a file. A directory has one without a class.
	Format *magic.Format `json:"-"`

	index *chunk.Index // of Raster
	uri   string       // by which the file was opened; "" if it may lie in a container
}

// RasterInfo describes an image as the loader reads it.
type RasterInfo struct {
	Shape  [3]int      `json:"shape"`           // bands, height, width; the bands of one step of time
	Times  int         `json:"times,omitempty"` // steps of time; 0 for an image without time
	DType  chunk.DType `json:"dtype"`
	Chunk  [3]int      `json:"chunk"` // bands (at all steps of time), height, width of a full chunk
	Chunks int         `json:"chunks"`
	Sparse int         `json:"sparse,omitempty"` // chunks without bytes
	Codec  string      `json:"codec"`
	// Predictor is TIFF's: 1 none, 2 horizontal, 3 floating point.
	Predictor    int         `json:"predictor"`
	Order        string      `json:"order"`         // axes inside a chunk, such as "b y x" or "y x b"
	StoredBytes  int64       `json:"stored_bytes"`  // of all chunks in the file
	DecodedBytes int64       `json:"decoded_bytes"` // of the image
	NoData       *spec.Float `json:"nodata,omitempty"`
	// BandNoData lists the nodata values of each band, or of all if it has one entry, where NoData alone does not say
	// them.
	BandNoData [][]spec.Float `json:"band_nodata,omitempty"`
	// Joint are the values that all bands of a missing pixel have (NODATA_VALUES of GDAL, or the transparent colour of
	// a PNG). Runs read such pixels as valid ones.
	Joint string    `json:"nodata_values,omitempty"`
	Mask  *MaskInfo `json:"mask,omitempty"` // the mask of valid pixels
	// Palette are the colours of the numbers from 0 on, as chunk.Legend has them. A raster with them has classes, which
	// windows do not blend.
	Palette []string `json:"palette,omitempty"`
	// Classes are the names of the numbers from 0 on, "" for a number without one.
	Classes []string `json:"classes,omitempty"`
	// Alpha is the number of the band that is alpha, which is a band of batches only if they pick it; 0 for none.
	Alpha int `json:"alpha,omitempty"`
	// OpenZL is the sum over the frames of the first cell (rumi only).
	OpenZL *FrameInfo `json:"openzl,omitempty"`
}

// MaskInfo describes the mask of an image as the loader reads it.
type MaskInfo struct {
	Kind        string `json:"kind"`            // "internal": an image in the file; "beside": NAME.msk; "alpha": a band
	Bits        int    `json:"bits"`            // of a sample in the file: 1, 8 or, of alpha, 16
	Bands       int    `json:"bands,omitempty"` // if the mask has one for each band of the image
	Chunk       [2]int `json:"chunk"`           // height, width of a full chunk
	Chunks      int    `json:"chunks"`
	Sparse      int    `json:"sparse,omitempty"` // chunks without bytes, where every pixel is masked
	Codec       string `json:"codec"`
	StoredBytes int64  `json:"stored_bytes"`
}

// TIFFInfo describes a TIFF without its pixels.
type TIFFInfo struct {
	BigTIFF     bool   `json:"bigtiff"`
	BigEndian   bool   `json:"big_endian,omitempty"`
	Tiled       bool   `json:"tiled"`
	Compression string `json:"compression"`
	Interleave  string `json:"interleave"` // TILE, BAND or PIXEL
	Directories int    `json:"directories"`
	Chain       string `json:"chain,omitempty"` // why further directories cannot be read
	Pages       int    `json:"pages,omitempty"` // images, if there are several: the first one is read
	Overviews   int    `json:"overviews,omitempty"`
	// OverviewFile is the file of overviews beside the raster (.ovr), where its own file has none. OverviewFault says
	// why that file is refused.
	OverviewFile  string `json:"overview_file,omitempty"`
	OverviewFault string `json:"overview_fault,omitempty"`
	// OverviewSizes are the heights and widths of the overviews, from the largest to the smallest.
	OverviewSizes [][2]int    `json:"overview_sizes,omitempty"`
	Mask          bool        `json:"mask,omitempty"`
	TOG           bool        `json:"tog"`
	NotTOG        []string    `json:"not_tog,omitempty"` // how it differs from one; nil for rumi files
	NoData        string      `json:"nodata,omitempty"`  // as written
	EPSG          int         `json:"epsg,omitempty"`
	Transform     *[6]float64 `json:"transform,omitempty"` // as GDAL's geotransform
	Bounds        *[4]float64 `json:"bounds,omitempty"`    // minx, miny, maxx, maxy in the CRS
	GCPs          int         `json:"gcps,omitempty"`      // ground control points, if there is no transform
	Citation      string      `json:"citation,omitempty"`  // the name that the file gives its CRS
	// PixelAt says which part of a pixel the file's coordinates refer to: "area" or "point".
	PixelAt   string            `json:"pixel_at,omitempty"`
	BandNames []string          `json:"band_names,omitempty"`
	Bands     []tiff.Band       `json:"bands,omitempty"` // of each band; nil if the file describes none
	Ghost     map[string]string `json:"ghost,omitempty"` // GDAL's structural metadata
}

// VRTInfo describes a virtual raster.
type VRTInfo struct {
	Sources int `json:"sources"` // files whose pixels it has
	BesideInfo
}

// BesideInfo is what is said of pixels elsewhere: by a virtual raster, or by the header of an ENVI raster.
type BesideInfo struct {
	EPSG      int         `json:"epsg,omitempty"`
	Transform *[6]float64 `json:"transform,omitempty"` // as GDAL's geotransform
	Bounds    *[4]float64 `json:"bounds,omitempty"`    // minx, miny, maxx, maxy in the CRS
	BandNames []string    `json:"band_names,omitempty"`
}

// FrameInfo describes OpenZL frames by their headers.
type FrameInfo struct {
	FormatVersions []int    `json:"format_versions"`
	Outputs        []string `json:"outputs,omitempty"` // types; only of a file that is one frame
	Sizes          []int    `json:"sizes,omitempty"`   // bytes of each output; only of a file that is one frame
	Codecs         []string `json:"codecs"`
	Checksums      bool     `json:"checksums"` // whether content or chunks have checksums
	Frames         int      `json:"frames"`    // how many frames this describes
}

// FolderInfo counts the files below a directory, without hidden ones.
type FolderInfo struct {
	Files  int            `json:"files"`
	ByType map[string]int `json:"by_type"` // by extension in lower case
}

// ErrNotArray is returned if a timestamp is given for a path that is not an array.
var ErrNotArray = errors.New("a timestamp opens arrays: the path is not an array")

// Describer is a store.Kind that describes a path from headers alone.
type Describer interface {
	Describe(ctx context.Context, path string, o resources.Options) (any, error)
}

// Describe describes the object at a path from headers alone: a store as its kind does, or a file, a directory or a
// raster inside a container (*FileInfo). at, if not nil, opens an array as it was at that time; for other paths it
// causes ErrNotArray. A path outside of Options.Roots is fault.NotFound, a file of an unknown kind fault.Unsupported.
func Describe(ctx context.Context, path string, at *spec.Timestamp, o resources.Options) (any, error) {
	o = o.WithDefaults()
	defer o.CloseOpener()
	real, err := o.Resolve(path)
	kind := store.Other // where a path leads outside of the roots, Inspect says so
	if err == nil {
		if kind, err = store.Of(ctx, o.Opener, real); err != nil {
			return nil, err
		}
	}
	if _, ok := kind.(store.Times); at != nil && !ok {
		return nil, ErrNotArray
	}
	switch kind := kind.(type) {
	case Describer:
		return kind.Describe(ctx, path, o)
	case store.Arrays:
		group, err := rows.OpenArrays(ctx, kind, path, at, o)
		if err != nil {
			return nil, err
		}
		return group.Describe(ctx, path)
	}
	info, err := Inspect(ctx, path, o)
	if err != nil {
		return nil, err
	}
	if err := info.beside(ctx, o); err != nil {
		return nil, err
	}
	info.classes(ctx, o)
	return info, info.overviewsBeside(ctx, o)
}

// classes adds what a raster says of its classes.
func (i *FileInfo) classes(ctx context.Context, o resources.Options) {
	if i.index == nil || !i.index.Classes && len(i.Beside) == 0 && i.VRT == nil {
		return
	}
	if asset, err := raster.One(ctx, o, i.Path); err == nil {
		legend := pixels.Legend(ctx, o.Opener, asset)
		i.Raster.Palette, i.Raster.Classes = legend.Palette, legend.Names
	}
}

// Inspect describes a file, a raster inside a container or a directory from headers, without decoding pixels. A path
// outside of Options.Roots is fault.NotFound, a file of an unknown kind fault.Unsupported.
func Inspect(ctx context.Context, path string, o resources.Options) (*FileInfo, error) {
	o = o.WithDefaults()
	info := &FileInfo{Path: path}
	if err := info.open(ctx, path, o); err != nil {
		return nil, fault.WithFile(err, path)
	}
	return info, nil
}

// open describes the file or directory at a path.
func (i *FileInfo) open(ctx context.Context, path string, o resources.Options) error {
	_, _, member := source.Split(path)
	if !member {
		var err error
		if path, err = o.Resolve(path); err != nil {
			return err
		}
		i.uri = path
	}
	roots := openers.RootsOf(o.Opener)
	if st, err := roots.Stat(path); !source.IsRemote(path) && err == nil && st.IsDir() {
		return i.folder(ctx, path, roots)
	}
	open := o.Opener.Open
	if member {
		open = func(ctx context.Context, path string) (source.Reader, error) {
			return rows.OpenMember(ctx, o.Opener, path)
		}
	}
	file, err := open(ctx, path)
	if err != nil {
		return err
	}
	return i.file(ctx, file, path, o)
}

// file describes an open file, and closes it.
func (i *FileInfo) file(ctx context.Context, file source.Reader, path string, o resources.Options) (err error) {
	defer file.Close() //nolint:errcheck // it was only read
	i.Bytes = file.Size()
	head, err := source.Read(ctx, file, 0, min(magic.Head, file.Size()))
	if err != nil {
		return err
	}
	format := magic.Of(head)
	named := magic.Named(path)
	if (named.Class == magic.CSV || named.Class == magic.Records) &&
		(format.Class == 0 || format.Class == magic.Container) {
		format = named
	}
	i.Format, i.Kind = format, format.Name
	switch format.Class {
	case magic.Raster:
		return i.tiff(ctx, file, o)
	case magic.Picture:
		if format == magic.VRT && i.uri != "" {
			return i.virtual(ctx, o)
		}
		return i.picture(ctx, file, o)
	case magic.Parquet:
		return i.table(ctx, file)
	case magic.Frame:
		return i.frame(ctx, file, o)
	case magic.CSV:
		i.Table, err = tableinfo.CSV(ctx, file, path)
		return err
	case magic.Records:
		i.Table, err = tableinfo.Records(ctx, o.Opener, path)
		return err
	case 0:
		if is, err := catalog.IsENVI(ctx, o.Opener, i.uri); err != nil || is {
			return cmp.Or(err, i.virtual(ctx, o))
		}
	}
	if magic.Named(path) == magic.NPZ {
		return catalog.NotOneArray(ctx, o.Opener, path)
	}
	says := "neither a TIFF nor an OpenZL frame, a Parquet file or a CSV file"
	if noun := cmp.Or(format.Noun, magic.OfBytes(head), magic.OfName(path)); noun != "" {
		says = noun + " is not read"
	}
	return fault.At(fault.Unsupported, "file", 0, "%s", cmp.Or(magic.Refusal(path), says))
}

// table describes a Parquet file.
func (i *FileInfo) table(ctx context.Context, r source.Reader) (err error) {
	i.Table, err = tableinfo.Parquet(ctx, r)
	if err == nil && i.Table.Catalog {
		i.Kind = KindAssets
	}
	return err
}

// frame describes a file that is one OpenZL frame.
func (i *FileInfo) frame(ctx context.Context, r source.Reader, o resources.Options) error {
	data, err := readSome(ctx, r, chunk.Range{Len: r.Size()}, o.MaxChunkBytes)
	if err != nil {
		return err
	}
	i.Frame = &FrameInfo{}
	return i.Frame.add(data, true)
}

// readSome reads a byte range. It checks the range before it allocates memory, because files declare
// their ranges themselves.
func readSome(ctx context.Context, r source.Reader, at chunk.Range, limit int) ([]byte, error) {
	switch {
	case at.Len > int64(limit):
		return nil, fault.At(fault.Limit, "frame", at.Off, "%d bytes, at most %d", at.Len, limit)
	case !source.Fits(at.Off, at.Len, r.Size()):
		return nil, fault.At(fault.Corrupt, "frame", at.Off, "%d bytes reach past the file's %d", at.Len, r.Size())
	}
	return source.Read(ctx, r, at.Off, at.Len)
}

// add adds the headers of a frame. loose is true if the frame is a whole file.
func (f *FrameInfo) add(frame []byte, loose bool) error {
	info, err := openzl.Inspect(frame)
	if err != nil {
		return err
	}
	f.Frames++
	f.Checksums = f.Checksums || info.ContentChecksum || info.ChunkChecksum
	if !slices.Contains(f.FormatVersions, info.FormatVersion) {
		f.FormatVersions = append(f.FormatVersions, info.FormatVersion)
	}
	for _, c := range info.Codecs {
		if !slices.Contains(f.Codecs, c) {
			f.Codecs = append(f.Codecs, c)
		}
	}
	if loose {
		f.Sizes = info.Sizes
		for _, t := range info.Outputs {
			f.Outputs = append(f.Outputs, t.String())
		}
	}
	return nil
}

// tiff describes a TIFF or rumi file, whose Kind is what its first bytes say.
func (i *FileInfo) tiff(ctx context.Context, r source.Reader, o resources.Options) error {
	file, err := rumi.Open(ctx, r, tiff.Limits{}.IFD())
	if i.Kind == KindRumi && fault.KindOf(err) == fault.Unsupported { // of a later version
		i.Unreadable = fault.Line(err)
		return nil
	}
	if err != nil {
		return err
	}
	meta, err := rumi.Meta(ctx, file)
	if err != nil {
		return err
	}
	var x *chunk.Index
	if rumi.Is(ctx, file) {
		i.Kind = KindRumi
		var h *rumi.Header
		if h, err = rumi.HeaderOf(ctx, file, o.MaxChunkBytes); err == nil {
			x = meta.Complete(h.Index())
			i.Rumi, err = rumiInfo(ctx, file, h, &meta)
		}
	} else {
		var img *tiff.Image
		if img, err = tiff.FromFile(ctx, file, tiff.Limits{MaxChunk: o.MaxChunkBytes}); err == nil {
			x = img.Index
			x.Mask, err = tiff.OpenMask(ctx, file, x, tiff.Limits{MaxChunk: o.MaxChunkBytes})
		}
	}
	if err := i.refuse(err); err != nil {
		return err
	}
	i.TIFF = tiffInfo(&meta, x)
	if x == nil {
		return nil
	}
	i.Raster, i.index = rasterInfo(x), x
	if i.Kind != KindRumi {
		return nil
	}
	if tileInterleaved(x) {
		i.TIFF.Interleave = "TILE"
	}
	err = i.Raster.firstFrames(ctx, r, x, o.MaxChunkBytes)
	if fault.KindOf(err) == fault.Unsupported {
		i.Unreadable, err = fault.Line(err), nil
	}
	return err
}

// refuse notes that a raster is unsupported or too large, whose header may still describe it. It returns other errors.
func (i *FileInfo) refuse(err error) error {
	switch fault.KindOf(err) {
	case fault.Unsupported, fault.Limit:
		i.Unreadable = fault.Line(err)
		return nil
	}
	return err
}

// picture describes a PNG, JPEG or .npy file.
func (i *FileInfo) picture(ctx context.Context, r source.Reader, o resources.Options) error {
	index, err := picture.Open(ctx, r, chunk.Axes{}, o.MaxChunkBytes)
	if err == nil {
		i.Raster, i.index = rasterInfo(index), index
	}
	return i.refuse(err)
}

// virtual describes a virtual raster.
func (i *FileInfo) virtual(ctx context.Context, o resources.Options) error {
	asset, meta, err := catalog.OpenAsset(ctx, o.Opener, i.uri, o.MaxChunkBytes)
	if err != nil {
		return i.refuse(err)
	}
	i.Raster, i.index = rasterInfo(asset.Index), asset.Index
	says := BesideInfo{EPSG: meta.EPSG, Transform: meta.Transform, BandNames: asset.Names}
	if i.Beside = strings.Fields(asset.Beside); asset.MaskFile != nil {
		i.Raster.Mask.Kind = "beside"
	}
	if b, ok := meta.Bounds(asset.Index.Height, asset.Index.Width); ok {
		says.Bounds = &b
	}
	if i.Format == magic.VRT {
		i.VRT = &VRTInfo{catalog.SourcesOf(asset.Index), says}
		return nil
	}
	i.Format, i.Kind, i.ENVI = meta.Format, meta.Format.Name, &says
	return nil
}

// rasterInfo describes the image of a chunk index.
func rasterInfo(x *chunk.Index) *RasterInfo {
	info := &RasterInfo{
		Shape: [3]int{x.StepBands(), x.Height, x.Width}, Times: x.Times, DType: x.DType,
		Chunk:  [3]int{x.ChunkB, x.ChunkH, x.ChunkW},
		Chunks: len(x.Ranges), Sparse: sparse(x), Codec: x.Codec.String(), Predictor: int(x.Predictor), Order: "b y x",
	}
	if x.ChunkB > 1 && x.Inner != chunk.BYX {
		info.Order = x.Inner.String()
	}
	for _, place := range x.Ranges {
		info.StoredBytes += place.Len
	}
	// A forged size may overflow int64; then DecodedBytes stays 0.
	hi, decoded := bits.Mul64(uint64(x.Height)*uint64(x.Width), uint64(x.Bands)*uint64(x.DType.Size()))
	if hi == 0 && decoded <= math.MaxInt64 {
		info.DecodedBytes = int64(decoded)
	}
	if x.NoData != nil && x.BandNoData == nil {
		v := spec.Float(*x.NoData)
		info.NoData = &v
	}
	for _, values := range x.BandNoData {
		info.BandNoData = append(info.BandNoData, num.As[spec.Float](values))
	}
	info.Joint = x.Joint
	if x.Alpha {
		info.Alpha = x.DataBands()
	}
	if index := x.Masking(); index != nil {
		info.Mask = &MaskInfo{
			Kind: "internal", Bits: index.DType.Bits(), Chunk: [2]int{index.ChunkH, index.ChunkW},
			Chunks: len(index.Ranges), Sparse: sparse(index), Codec: index.Codec.String(),
		}
		if index.Bits {
			info.Mask.Bits = 1
		}
		if index == x {
			info.Mask.Kind = "alpha"
		} else if index.Bands > 1 {
			info.Mask.Bands = index.Bands
		}
		for _, place := range index.Ranges {
			info.Mask.StoredBytes += place.Len
		}
	}
	return info
}

// maxFrames bounds the frames that firstFrames reads, because each may take a request. A cell has one
// frame for each group of bands, and what differs between cells is not shown.
const maxFrames = 16

// firstFrames describes the frames of the first cell, those at its position in all bands.
func (r *RasterInfo) firstFrames(ctx context.Context, f source.Reader, x *chunk.Index, limit int) error {
	r.OpenZL = &FrameInfo{}
	for group := range min(x.Groups(), maxFrames, len(x.Ranges)) {
		data, err := readSome(ctx, f, x.Ranges[group], limit)
		if err != nil {
			return err
		}
		if err := r.OpenZL.add(data, false); err != nil {
			return fault.WithPart(err, "tile "+strconv.Itoa(group), x.Ranges[group].Off)
		}
	}
	return nil
}

// beside adds what the files beside a raster say, as a run reads them.
func (i *FileInfo) beside(ctx context.Context, o resources.Options) error {
	if i.index == nil || i.uri == "" || i.Kind == KindRumi {
		return nil
	}
	asset, meta := catalog.Asset{URI: i.uri, Index: i.index}, catalog.Meta{Format: i.Format}
	if i.TIFF != nil {
		meta.EPSG, meta.Transform, asset.Names = i.TIFF.EPSG, i.TIFF.Transform, i.TIFF.BandNames
	}
	err := catalog.AddBeside(ctx, o.Opener, &asset, &meta, o.MaxChunkBytes)
	switch {
	case err != nil && fault.KindOf(err) == 0:
		return err
	case err != nil:
		i.Unreadable = fault.Line(err)
		return nil
	case asset.Beside == "":
		return nil
	}
	i.Beside, i.Raster, i.index = strings.Fields(asset.Beside), rasterInfo(asset.Index), asset.Index
	if asset.MaskFile != nil {
		i.Raster.Mask.Kind = "beside"
	}
	if i.TIFF == nil {
		return nil
	}
	i.TIFF.EPSG, i.TIFF.BandNames = meta.EPSG, asset.Names
	i.TIFF.place(meta.Transform, i.index)
	for b, band := range meta.Bands {
		if i.TIFF.Bands == nil {
			i.TIFF.Bands = make([]tiff.Band, len(meta.Bands))
		}
		known := &i.TIFF.Bands[b]
		known.Scale, known.Offset = cmp.Or(band.Scale, known.Scale), cmp.Or(band.Offset, known.Offset)
	}
	return nil
}

// overviewsBeside describes the overviews in the file beside a TIFF that has none of its own. It looks for that file,
// which takes a request of a remote one, and is not part of Inspect, which callers use on many files.
func (i *FileInfo) overviewsBeside(ctx context.Context, o resources.Options) error {
	if i.index == nil || i.TIFF == nil || i.TIFF.Overviews > 0 || i.uri == "" {
		return nil
	}
	file, levels, err := catalog.OverviewFile(ctx, o.Opener, i.uri, i.index, o.MaxChunkBytes)
	if err != nil && fault.KindOf(err) == 0 {
		return err
	}
	if err != nil || len(levels) > 0 {
		i.TIFF.OverviewFile = file.URI
	}
	if err != nil {
		i.TIFF.OverviewFault = fault.Line(err)
	}
	for _, x := range levels {
		i.TIFF.OverviewSizes = append(i.TIFF.OverviewSizes, [2]int{x.Height, x.Width})
	}
	return nil
}

// place sets the transform of an image and its bounds. x is nil if its pixels cannot be read.
func (i *TIFFInfo) place(transform *[6]float64, x *chunk.Index) {
	meta := catalog.Meta{Transform: transform}
	if i.Transform = transform; x == nil {
		return
	}
	if b, ok := meta.Bounds(x.Height, x.Width); ok {
		i.Bounds = &b
	}
}

// tiffInfo describes the tags of a TIFF. x is nil if its pixels cannot be read.
func tiffInfo(m *tiff.Meta, x *chunk.Index) *TIFFInfo {
	info := &TIFFInfo{
		BigTIFF: m.BigTIFF, BigEndian: m.BigEndian, Tiled: m.Tiled, Compression: tiff.CompressionName(m.Compression),
		Interleave: m.Interleave, Directories: m.IFDs, Overviews: m.Overviews, OverviewSizes: m.OverviewSizes,
		Mask:   m.HasMask,
		NoData: m.NoData, EPSG: m.EPSG, BandNames: m.BandNames, Bands: m.Bands, Ghost: m.Ghost, Citation: m.Citation(),
		GCPs: m.GCPs,
	}
	if m.Pages > 1 {
		info.Pages = m.Pages
	}
	if m.ChainErr != nil {
		info.Chain = fault.Line(m.ChainErr)
	}
	if m.GeoKeys != nil {
		info.PixelAt = "area"
		if m.IsPoint() {
			info.PixelAt = "point"
		}
	}
	if m.HasTransform {
		c := m.Transform
		info.place(&c, x)
	}
	if m.Compression != rumi.Compression {
		info.NotTOG = notTOG(m, x)
		info.TOG = len(info.NotTOG) == 0
	}
	return info
}

// sparse counts the chunks without bytes.
func sparse(x *chunk.Index) (n int) {
	for _, place := range x.Ranges {
		if place.Len == 0 {
			n++
		}
	}
	return n
}

// tileInterleaved reports whether the chunks stand in the file position by position, the bands of a
// position side by side.
func tileInterleaved(x *chunk.Index) bool {
	var last int64
	for _, place := range x.Ranges {
		if place.Len == 0 {
			continue
		}
		if place.Off < last {
			return false
		}
		last = place.Off
	}
	return true
}

// maxTypes bounds the extensions that are counted one by one. A directory may have a file of every
// extension, and the report must stay short.
const maxTypes = 64

// folder describes a directory.
func (i *FileInfo) folder(ctx context.Context, dir string, roots *openers.Roots) error {
	i.Kind, i.Format, i.Folder = KindFolder, magic.Of(nil), &FolderInfo{ByType: map[string]int{}}
	return roots.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == dir:
			return fault.Wrap(fault.Unsupported, "folder", err)
		case err != nil: // a directory below it that cannot be listed
			return nil
		case p != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		i.Folder.Files++
		if st, err := d.Info(); err == nil {
			i.Bytes += st.Size()
		}
		ext := strings.ToLower(filepath.Ext(p))
		if _, known := i.Folder.ByType[ext]; !known && len(i.Folder.ByType) >= maxTypes {
			ext = "…"
		}
		i.Folder.ByType[ext]++
		return nil
	})
}

// RumiInfo describes a rumi file without its pixels and georeferencing.
type RumiInfo struct {
	Generation int    `json:"generation"` // of the format, 1 to 3
	Frame      string `json:"frame"`      // axes of a frame, such as "h w" or "t b h w"
	// PixelIsPoint says that the file's own transform refers to the centres of pixels.
	PixelIsPoint bool `json:"pixel_is_point,omitempty"`
	// TimeKind and Times belong to generation 3: "instant" with a time for each step, or "interval" with the begin
	// and the end of each.
	TimeKind string   `json:"time_kind,omitempty"`
	Times    []string `json:"times,omitempty"` // ISO 8601 in UTC; days without a time of day
}

// rumiInfo describes a rumi file with header h.
func rumiInfo(ctx context.Context, f *ifd.File, h *rumi.Header, m *tiff.Meta) (*RumiInfo, error) {
	i := &RumiInfo{Generation: h.Generation, Frame: h.Unit.Axes(h.Shape[0], h.Times), PixelIsPoint: m.IsPoint()}
	if h.Generation < 3 {
		return i, nil
	}
	trailer, err := rumi.TrailerOf(ctx, f)
	if err != nil {
		return nil, err
	}
	i.TimeKind, i.Times = trailer.Kind.String(), timesText(trailer.Times)
	return i, nil
}

// timesText returns seconds since 1970 in ISO 8601: days, if none has a time of day.
func timesText(seconds []int64) (texts []string) {
	const day = 24 * 60 * 60
	form := time.DateOnly
	if slices.ContainsFunc(seconds, func(s int64) bool { return s%day != 0 }) {
		form = time.RFC3339
	}
	for _, s := range seconds {
		when := time.Unix(s, 0).UTC()
		if y := when.Year(); y < 1 || y > 9999 { // ISO 8601 has four digits for a year
			texts = append(texts, strconv.FormatInt(s, 10)+" s")
			continue
		}
		texts = append(texts, when.Format(form))
	}
	return texts
}
