// Package chunk holds the index that every raster format yields: where each chunk of an image lies in
// its file, which box of the image it holds, and how its bytes become samples. Behind the index, all
// formats share one path.
//
// An image is (bands, height, width). A regular grid cuts it into chunks of (ChunkB, ChunkH, ChunkW).
// ChunkB is 1 if every band has chunks of its own (PlanarConfiguration 2 in TIFF; rumi), and Bands if
// a chunk holds all bands (pixel-interleaved TIFF, rumi cells). It lies between if a chunk holds the
// bands of one of several pages of a TIFF; such an index has no blob. An image
// with steps of time has the bands of each step one after the other; its planes are bands in all that
// follows from the grid.
//
// Not supported: chunks of different sizes, other than those that the edge of the image cuts.
package chunk

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Axes is what a field says of the axes of a file. The zero value leaves them to the file.
type Axes struct {
	// Pages says what the pages of a TIFF are: FirstPage, BandsPages or StepsPages. Other formats have no pages.
	Pages string
	// Dims names the axes of an array in their order, by t, b, y and x, as in "y x b". Other formats ignore it.
	Dims string
	// Lengths has the length of each axis of a list of samples, because a list has no header.
	Lengths Lengths
	// AsStored ignores the orientation in a picture's Exif metadata, as GDAL does. Other formats ignore it.
	AsStored bool
}

// Lengths are the lengths of the axes t, b, y and x; 0 of one that is not known.
type Lengths [4]int

// AxisNames are the names of the axes of Lengths.
const AxisNames = "tbyx"

// Plain reports whether an index can hold the axes in their order: x follows y, there is no n, and t is before x if b
// is before y. Axes without names are plain.
func (a *Axes) Plain() bool {
	names := strings.Fields(a.Dims)
	if len(names) == 0 {
		return true
	}
	y, x := slices.Index(names, "y"), slices.Index(names, "x")
	inner := slices.Contains(names[:max(y, 0)], "b") && slices.Contains(names[x+1:], "t")
	return !slices.Contains(names, "n") && y >= 0 && x == y+1 && !inner
}

// What the pages of a TIFF are to a reader. Pages are the images that are neither overviews nor masks.
const (
	FirstPage  = ""      // the first page is the image
	BandsPages = "bands" // bands of one image
	StepsPages = "steps" // steps of time of one image
)

// Codec names how a chunk's bytes are compressed.
type Codec uint8

// Codecs. Register takes their decompressors, so this package depends on none.
const (
	// The values are stored in index blobs: they must not change, and new codecs go to the end.
	Raw Codec = iota
	Zstd
	Deflate
	LZW
	PackBits
	OpenZL
	JPEG  // TIFF's, with JPEGTables in Params
	LERC  // TIFF's, with what surrounds the blobs in Params
	WebP  // TIFF's
	PNG   // a whole file
	LZMA  // TIFF's: the xz format
	YCbCr // TIFF's samples of YCbCr without JPEG, which become RGB, with what they are stored as in Params
	// Turned is a whole PNG or JPEG file whose pixels are stored turned, with how, the codec and its Params in Params.
	Turned
	BMP // a whole file
	numCodecs
)

// traits says what is known of each codec without its decompressor.
var traits = [numCodecs]struct {
	name    string
	from    string // the package that registers it; "": tiff
	pieces  bool   // Streams
	samples bool   // Samples
}{
	Raw:      {name: "none"},
	Zstd:     {name: "zstd", pieces: true},
	Deflate:  {name: "deflate", pieces: true},
	LZW:      {name: "lzw", pieces: true},
	PackBits: {name: "packbits", pieces: true},
	OpenZL:   {name: "openzl", from: "format/codec/geozl", samples: true},
	JPEG:     {name: "jpeg", from: "format/codec/jpeg", samples: true},
	LERC:     {name: "lerc", from: "format/codec/lerc", samples: true},
	WebP:     {name: "webp", from: "format/codec/webp", samples: true},
	PNG:      {name: "png", from: "format/picture", samples: true},
	LZMA:     {name: "lzma", from: "format/codec/xz"},
	YCbCr:    {name: "ycbcr", samples: true},
	Turned:   {name: "turned", from: "format/picture", samples: true},
	BMP:      {name: "bmp", from: "format/picture", samples: true},
}

// String returns the codec's name in lower case.
func (c Codec) String() string {
	if c >= numCodecs {
		return "invalid"
	}
	return traits[c].name
}

// Streams reports whether chunks of this codec can be decoded in pieces.
func (c Codec) Streams() bool { return c < numCodecs && traits[c].pieces }

// Samples reports whether the codec stores samples of an image, where others store any bytes. Nothing is known of a
// codec that does not exist: it is taken for one.
func (c Codec) Samples() bool { return c >= numCodecs || traits[c].samples }

// Predictor is TIFF's Predictor tag (TIFF 6.0 section 14, TIFF Technical Note 3).
type Predictor uint8

// Predictors. The values are TIFF's.
const (
	NoPredictor   Predictor = 1
	Horizontal    Predictor = 2 // difference to the left neighbour, modulo the sample's width
	FloatingPoint Predictor = 3 // byte planes, most significant first, differenced along the row
	maxPredictor            = FloatingPoint
)

// Inner is the axis order of the samples inside a decoded chunk.
type Inner uint8

// Axis orders inside a chunk. In an image with steps of time, b of the first two stands for all planes
// (Index.Bands), and the others name both axes that planes have.
const (
	// The values are stored in index blobs: they must not change, and new orders go to the end.
	BYX  Inner = iota // band planes; with ChunkB 1, plain rows
	YXB               // pixel-interleaved
	BTYX              // planes, each band with all its steps
	YXBT              // pixel-interleaved, each band with all its steps
	BYXT              // each band with its steps interleaved by pixel
	TYXB              // each step with its bands interleaved by pixel
	numInner
)

var innerNames = [numInner]string{"b y x", "y x b", "b t y x", "y x b t", "b y x t", "t y x b"}

// String returns the axes, the one that changes fastest last.
func (o Inner) String() string {
	if o >= numInner {
		return "invalid"
	}
	return innerNames[o]
}

// rowsFirst reports whether the first rows of a chunk of several planes stand at its beginning.
func (o Inner) rowsFirst() bool { return o == YXB || o == YXBT }

// RowsFirst reports whether the first rows of a chunk stand at its beginning, so that chunks one below the other are
// a higher one if their bytes follow each other.
func (x *Index) RowsFirst() bool { return x.ChunkB == 1 || x.Inner.rowsFirst() }

// Range is a byte range of a file. A Range with Len 0 is a sparse chunk: every sample is nodata, or 0 if
// the image has no nodata. In an integer image nodata is rounded, halves away from 0, and clipped to
// the range of the type; NaN becomes 0.
type Range struct {
	Off int64
	Len int64
}

// Index is everything a reader needs to know about one image. It is immutable once made and safe
// for concurrent use.
//
// Chunk (row, col, group) has number (row*Across()+col)*Groups()+group; Ranges is in that order.
// It is the physical order of TOG and rumi files.
type Index struct {
	// Bands is the number of planes: the bands or, in an image with steps of time, the bands of the
	// first step, then the bands of the second, …
	Bands, Height, Width   int
	ChunkB, ChunkH, ChunkW int
	DType                  DType
	Codec                  Codec
	Predictor              Predictor
	Inner                  Inner
	BigEndian              bool     // samples are big-endian once decompressed
	CutEdge                bool     // chunks at the lower edge hold only the rows of the image (strips)
	CutRight               bool     // chunks at the right edge hold only the columns of the image
	Times                  int      // steps of time, at least 1; 0 for an image without an axis of time
	LowBits                bool     // a sample of fewer than 8 bits must have zeros above them
	Packed                 int      // bits of a sample as stored, if DType has others; see packed.go
	Reversed               bool     // stored bytes have their bits reversed (FillOrder 2 of TIFF)
	Params                 []byte   // parameters of the codec; see Codec
	NoData                 *float64 // need not be a value of DType; sparse chunks hold the nearest value
	// NoDataBits is nodata as the bits of an integer: of 64 bits, which a float64 would round, or of fewer where NoData
	// has a fraction, which samples do not.
	NoDataBits *uint64
	// Joint are the values that all bands of a missing pixel have, as GDAL's NODATA_VALUES writes them; "" for none.
	// They are for reports: such pixels are read as valid ones, and blobs leave the values out.
	Joint string
	// Picture says that the axes of an array are (y, x, b) because its shape is one of pictures, not because somebody
	// said so. It is for reports, and blobs leave it out.
	Picture bool
	Ranges  []Range

	// Mask marks the pixels that hold data: it is not 0 there. It is an image of one uint8 band, of the
	// same size and in the same file, with a grid of its own and without nodata or mask. If it is nil,
	// all pixels hold data.
	Mask *Index
	// Alpha says that the last band is opacity. By default it is no band of the image (DataBands), and it marks the
	// pixels that hold data where neither Mask nor nodata does (Masking). Samples are Uint8 or Uint16 then, the only
	// ones whose alpha is a mask for GDAL.
	Alpha bool
	// BandNoData lists the nodata values of each band of a step of time, or of all if it has one entry, where one value
	// for all does not say them: NoData and NoDataBits are nil then. See SetNoData, which makes it.
	BandNoData [][]float64
	// Classes says that pixels are the numbers of classes, since the file has a palette: numbers between them mean
	// nothing.
	Classes bool
	// Physical makes physical values of the samples of each band, or of all if it has one entry; nil: they are such
	// values, or their unit is not known. It is in the shortest form: see Linears.
	Physical []Linear
	// Bits is for masks: a chunk stores one bit per pixel, most significant bit first, and pads its
	// rows to whole bytes. It decodes to one byte per pixel, 0 or 1.
	Bits bool

	// Blocks reads boxes of an array that makes its samples itself, Grid leads to the stored chunks of one. Such an
	// index lacks Ranges, has no blob, and its mask is of the same form.
	Blocks *Blocks
	Grid   *Grid
}

// DataBands returns the number of bands of a step of time without alpha, which is the last.
func (x *Index) DataBands() int {
	if x.Alpha {
		return x.StepBands() - 1
	}
	return x.StepBands()
}

// Blocks is one image of an array that holds many, and that reads its samples itself.
type Blocks struct {
	Array BlockArray
	Image int64
	// Order lists the axes of the image (0 bands, 1 rows, 2 columns) in the order in which chunks lie
	// in files; the last axis changes fastest. The zero value means rows, columns, bands, as in every
	// other index.
	Order [3]uint8
}

// WithBlocks returns a copy of the index with the blocks of an image.
func (x *Index) WithBlocks(b Blocks) *Index {
	image, blocks := copyWith(x, b)
	image.Blocks = blocks
	return image
}

// copyWith returns copies of an index and of what it is to have, in one allocation: each sample of an array makes them.
func copyWith[T any](x *Index, value T) (*Index, *T) {
	both := &struct {
		index Index
		value T
	}{*x, value}
	return &both.index, &both.value
}

// BlockArray is an array of images of one shape. It is safe for concurrent use, and comparable: equal
// values are the same array.
type BlockArray interface {
	// Open returns a reader for one worker, which needs no closing.
	Open() BlockReader
}

// BlockReader reads boxes of the images of an array. It keeps its memory between reads, and is not safe for
// concurrent use.
type BlockReader interface {
	// ReadBox fills dst with a box of an image, (bands, rows, columns) in C order, little-endian; len(dst) is the
	// box's size in bytes. The box is not empty and lies in the image; one that lies in a chunk needs no
	// other chunk. Errors name the file and its part.
	ReadBox(ctx context.Context, dst []byte, image int64, b Box) error
}

// TurnTaker is a BlockReader that asks for a turn before it decodes: it calls turn after reading bytes
// and before decoding them, and calls done when it has decoded. A nil turn removes the hook.
type TurnTaker interface {
	BlockReader
	SetTurn(turn func() (done func()))
}

// Prefetcher is a BlockReader, or the BlockPlan of one, that reads less often if it knows the next boxes.
// The caller of Ahead calls ReadBox once for each of the boxes, in any order, before it calls Ahead again.
// The least is read if the boxes are in Blocks.Order.
type Prefetcher interface {
	Ahead(ctx context.Context, image int64, boxes []Box) error
}

// BlockPlanner is a BlockArray that can list the reads of its readers without reading.
type BlockPlanner interface {
	BlockArray
	// Plan returns the plan of a new reader.
	Plan() BlockPlan
}

// BlockPlan lists the reads of one reader. It is not safe for concurrent use.
type BlockPlan interface {
	// PlanBox calls read for every range of a file that ReadBox would read for the same box, after the
	// boxes planned before it. exact is false if that depends on the content of the files. No sample
	// is read.
	PlanBox(ctx context.Context, image int64, b Box, read func(file string, off, n int64)) (exact bool, err error)
	// Held returns the most memory, in bytes, that the reader holds after these boxes.
	Held() int64
}

// Limits of an index. They bound arithmetic, not memory.
const (
	// MaxSide is the largest height and width: the pixels of an image, below 2^62, then fit in an
	// int64.
	MaxSide = math.MaxInt32
	// MaxBands is the largest number of bands: one more than SamplesPerPixel of a TIFF, an unsigned 16-bit
	// number, can say.
	MaxBands = 1 << 16
	// MaxParams is the largest number of bytes of Index.Params: 16 quantisation and Huffman tables of a
	// JPEG stream have less than 6 KiB, and writers add little to them.
	MaxParams = 64 << 10
	// MaxPlanes is the largest number of planes of an image with steps of time. 2^20 are 13 bands on every
	// day of 200 years. The samples of the largest image have below 2^62 · 2^20 · 2^4 bytes, which the
	// arithmetic on whole images must bound, and the samples of the largest window (2^32 pixels) 2^56.
	MaxPlanes = 1 << 20
)

// Steps returns the number of steps of time, 1 for an image without time.
func (x *Index) Steps() int { return max(x.Times, 1) }

// StepBands returns the number of bands of one step of time.
func (x *Index) StepBands() int { return x.Bands / x.Steps() }

// Across returns the number of chunk columns, ceil(Width/ChunkW).
func (x *Index) Across() int { return (x.Width + x.ChunkW - 1) / x.ChunkW }

// Down returns the number of chunk rows, ceil(Height/ChunkH).
func (x *Index) Down() int { return (x.Height + x.ChunkH - 1) / x.ChunkH }

// Groups returns the number of chunks at one grid position, ceil(Bands/ChunkB).
func (x *Index) Groups() int { return (x.Bands + x.ChunkB - 1) / x.ChunkB }

// Box is a half-open box of an image: bands [B0, B1), rows [Y0, Y1), columns [X0, X1).
type Box struct{ B0, B1, Y0, Y1, X0, X1 int }

// Inside reports whether a box has pixels, and all of them lie in an image of that many bands, rows and columns.
func (b Box) Inside(bands, height, width int) bool {
	fits := func(lo, hi, n int) bool { return 0 <= lo && lo < hi && hi <= n }
	return fits(b.B0, b.B1, bands) && fits(b.Y0, b.Y1, height) && fits(b.X0, b.X1, width)
}

// Box returns the part of the image that chunk i covers, cut to the image.
func (x *Index) Box(i int) Box {
	group, position := i%x.Groups(), i/x.Groups()
	row, col := position/x.Across(), position%x.Across()
	return Box{
		B0: group * x.ChunkB, B1: min((group+1)*x.ChunkB, x.Bands),
		Y0: row * x.ChunkH, Y1: min((row+1)*x.ChunkH, x.Height),
		X0: col * x.ChunkW, X1: min((col+1)*x.ChunkW, x.Width),
	}
}

// DecodedShape returns the shape (bands, rows, columns) that chunk i decodes to: the full chunk, or the part
// inside the image if the format cuts chunks at the edges.
func (x *Index) DecodedShape(i int) (b, h, w int) {
	box := x.Box(i)
	b, h, w = box.B1-box.B0, x.ChunkH, x.ChunkW
	if x.CutEdge {
		h = box.Y1 - box.Y0
	}
	if x.CutRight {
		w = box.X1 - box.X0
	}
	return b, h, w
}

// DecodedBytes returns the decoded size of chunk i in bytes.
func (x *Index) DecodedBytes(i int) int {
	if x.Grid != nil {
		part, _ := x.Grid.Array.Part(x.Grid.Image, i)
		return x.Grid.Array.Size(part)
	}
	b, h, w := x.DecodedShape(i)
	return b * h * w * x.DType.Size()
}

// largest returns the sides of the largest decoded chunk.
func (x *Index) largest() (height, width int) {
	height, width = x.ChunkH, x.ChunkW
	if x.CutEdge {
		height = min(height, x.Height)
	}
	if x.CutRight {
		width = min(width, x.Width)
	}
	return height, width
}

// MaxDecodedBytes returns the decoded size of the largest chunk in bytes.
func (x *Index) MaxDecodedBytes() int {
	if x.Grid != nil {
		return x.Grid.Array.Bytes()
	}
	height, width := x.largest()
	return x.ChunkB * height * width * x.DType.Size()
}

// MaxCompressed returns the most bytes that a compressed chunk may take: twice the size of the largest decoded
// chunk plus 64 KiB, so the limit on decoded chunks also bounds reads. If a chunk may be a whole picture
// file, it is 4 MiB in place of 64 KiB, for profiles and previews. The largest chunk must fit in an int (ChunkFits).
func (x *Index) MaxCompressed() int64 {
	spare := int64(64 << 10)
	if len(x.Ranges) == 1 && (x.Codec == JPEG || x.Codec == PNG) {
		spare = 4 << 20
	}
	// Capped at 2^61, since twice that and 4 MiB still fit in an int64.
	return min(int64(x.MaxDecodedBytes()), 1<<61)*2 + spare
}

// Place returns the byte range to read for chunk i: its range, or the part of it that an uncompressed
// chunk needs. Len is 0 for a sparse chunk.
func (x *Index) Place(i int) Range {
	span := x.Ranges[i]
	if x.Codec == Raw {
		need := x.DecodedBytes(i)
		if x.isPacked() {
			b, h, w := x.DecodedShape(i)
			need = h * x.packedRow(b, w)
		}
		span.Len = min(span.Len, int64(need))
	}
	return span
}

// Rows returns the byte range of rows top up to bottom of chunk i, which must lie in the image, and whether they can be
// read without the others: in an uncompressed chunk whose rows lie one behind the other, in whole bytes, they can. For
// other chunks, and one that ends before these rows, it returns Place.
func (x *Index) Rows(i, top, bottom int) (_ Range, alone bool) {
	bands, _, width := x.DecodedShape(i)
	span, row := x.Ranges[i], int64(bands*width*x.DType.Size())
	plain := x.Codec == Raw && !x.isPacked() && !x.LowBits && !x.Reversed
	if !plain || bands > 1 && !x.Inner.rowsFirst() || span.Len < int64(bottom)*row {
		return x.Place(i), false
	}
	return Range{Off: span.Off + int64(top)*row, Len: int64(bottom-top) * row}, true
}

// Timed reports whether the index has steps of time, or samples in the low bits of bytes.
func (x *Index) Timed() bool { return x.Times != 0 || x.LowBits }

// Validate checks that the rest of chaski can work with the index: sizes are in range, there is one
// range per chunk, ranges lie within a file of fileSize bytes (not checked if fileSize is negative),
// decoded chunks have at most maxChunk bytes or are decoded in pieces (InPieces), and compressed ones
// have at most MaxCompressed. A mask must pass the same checks and have the size of its image. An
// index with Blocks has no ranges to check. Validate allocates nothing.
func (x *Index) Validate(fileSize int64, maxChunk int) error {
	if err := x.validate(fileSize, maxChunk); err != nil || x.Mask == nil {
		return err
	}
	mask := x.Mask
	if x.Timed() || mask.Timed() {
		return fault.New(fault.Corrupt, "chunk index",
			"an image with steps of time, or of samples of fewer than 8 bits, has a mask")
	}
	bands := mask.Bands == 1 || mask.Bands == x.Bands
	hasValues := mask.HasNoData() || mask.Physical != nil
	plain := mask.DType == Uint8 && mask.Mask == nil && !mask.Alpha && !hasValues
	if !plain || !bands || mask.Height != x.Height || mask.Width != x.Width {
		return fault.New(fault.Corrupt, "chunk index", "a mask of %d bands of %d by %d pixels of %s for an image of "+
			"%d bands of %d by %d", mask.Bands, mask.Height, mask.Width, mask.DType, x.Bands, x.Height, x.Width)
	}
	if err := mask.validate(fileSize, maxChunk); err != nil {
		return fault.WithPart(err, "mask", 0)
	}
	return nil
}

func (x *Index) validate(fileSize int64, maxChunk int) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "chunk index", format, args...)
	}
	switch {
	case !x.DType.Valid():
		return bad(fault.Corrupt, "dtype %d does not exist", x.DType)
	case x.Codec >= numCodecs:
		return bad(fault.Corrupt, "codec %d does not exist", x.Codec)
	case x.Predictor < NoPredictor || x.Predictor > maxPredictor:
		return bad(fault.Corrupt, "predictor %d does not exist", x.Predictor)
	case x.Inner >= numInner:
		return bad(fault.Corrupt, "axis order %d does not exist", x.Inner)
	case x.Bands < 1 || x.Times == 0 && x.Bands > MaxBands:
		return bad(fault.Corrupt, "%d bands", x.Bands)
	case x.Times != 0 && (x.Times < 0 || x.Bands%x.Times != 0 || x.StepBands() > MaxBands):
		return bad(fault.Corrupt, "%d planes in %d steps of time", x.Bands, x.Times)
	case x.Bands > MaxPlanes:
		return bad(fault.Limit, "%d steps of time of %d bands, at most %d in all", x.Times, x.StepBands(), MaxPlanes)
	case x.Inner > YXB && (x.Times < 2 || x.ChunkB != x.Bands || x.Times == x.Bands):
		return bad(fault.Corrupt, "axis order %s in chunks of %d planes, of %d steps of time of %d bands", x.Inner,
			x.ChunkB, x.Steps(), x.StepBands())
	case x.Height < 1 || x.Height > MaxSide || x.Width < 1 || x.Width > MaxSide:
		return bad(fault.Corrupt, "image of %d by %d pixels", x.Height, x.Width)
	case x.ChunkH < 1 || x.ChunkH > MaxSide || x.ChunkW < 1 || x.ChunkW > MaxSide:
		return bad(fault.Corrupt, "chunks of %d by %d pixels", x.ChunkH, x.ChunkW)
	case x.ChunkB < 1 || x.Bands%x.ChunkB != 0:
		return bad(fault.Corrupt, "chunks of %d bands in an image of %d", x.ChunkB, x.Bands)
	case x.LowBits && x.DType.Bits() >= 8:
		return bad(fault.Corrupt, "samples of %s use all bits of their bytes", x.DType)
	case len(x.Params) > MaxParams:
		return bad(fault.Limit, "%d bytes of parameters of the codec %s, at most %d", len(x.Params), x.Codec, MaxParams)
	case x.Packed != 0 && !x.packedFits():
		return bad(fault.Corrupt, "samples of %d bits as %s, with axis order %s and predictor %d", x.Packed, x.DType,
			x.Inner, x.Predictor)
	case x.Alpha && !x.alphaFits():
		return bad(fault.Corrupt, "alpha with %d bands of %s in %d steps of time", x.Bands, x.DType, x.Steps())
	case x.BandNoData != nil && !x.bandNoDataFits():
		return bad(fault.Corrupt, "lists of nodata values: %d for %d bands, or not their shortest form",
			len(x.BandNoData), x.StepBands())
	case x.Classes && (x.LowBits || x.StepBands() != 1 || !x.DType.Integer()):
		return bad(fault.Corrupt, "a palette for %d bands of %s in %d steps of time", x.Bands, x.DType, x.Steps())
	case x.Physical != nil && !x.linear():
		return bad(fault.Corrupt, "%d scales and offsets for %d bands, or not their shortest form", len(x.Physical),
			x.StepBands())
	case x.Bits && (x.DType != Uint8 || x.Bands != 1 || x.Predictor != NoPredictor):
		return bad(fault.Corrupt, "bits with %d bands of %s and predictor %d", x.Bands, x.DType, x.Predictor)
	}
	if !x.ChunkFits(maxChunk) && x.InPieces(maxChunk) == nil {
		return x.OverLimit(maxChunk)
	}
	if x.OfArray() {
		if len(x.Ranges) > 0 {
			return bad(fault.Corrupt, "%d byte ranges of an image that is read in blocks", len(x.Ranges))
		}
		return nil
	}
	return x.validateRanges(fileSize, bad)
}

// alphaFits reports whether the last band may be alpha.
func (x *Index) alphaFits() bool {
	return !x.Timed() && x.Bands > 1 && (x.DType == Uint8 || x.DType == Uint16)
}

// validateRanges checks the byte ranges of an index that is valid otherwise.
func (x *Index) validateRanges(fileSize int64, bad func(k fault.Kind, format string, args ...any) error) error {
	positions := int64(x.Across()) * int64(x.Down())
	// The first condition must come first: without it the product of the second would overflow.
	if positions > int64(len(x.Ranges)) || positions*int64(x.Groups()) != int64(len(x.Ranges)) {
		return bad(fault.Corrupt, "%d byte ranges for a grid of %d by %d with %d chunks a position",
			len(x.Ranges), x.Down(), x.Across(), x.Groups())
	}
	limit := int64(math.MaxInt64)
	if x.Codec != Raw {
		limit = x.MaxCompressed()
	}
	for i, span := range x.Ranges {
		if span.Off < 0 || span.Len < 0 || span.Off > math.MaxInt64-span.Len {
			return bad(fault.Corrupt, "chunk %d: range of %d bytes at %d", i, span.Len, span.Off)
		}
		if fileSize >= 0 && span.Len > 0 && span.Off+span.Len > fileSize {
			return fault.At(fault.Corrupt, "chunk index", span.Off,
				"chunk %d: range of %d bytes ends past the file's %d", i, span.Len, fileSize)
		}
		if span.Len > limit {
			return fault.At(fault.Limit, "chunk index", span.Off,
				"chunk %d: %d bytes stored, at most %d", i, span.Len, limit)
		}
	}
	return nil
}

// OverLimit returns the error for an index with chunks that decode to more than maxChunk bytes and are not
// decoded in pieces. It names the option that raises the limit, as Python (max_chunk) and commands
// (--max-chunk) spell it.
func (x *Index) OverLimit(maxChunk int) error {
	name, least := "a chunk", *x
	if x.inRows() {
		name, least.ChunkH, least.CutEdge = "a row of a chunk", 1, true
	}
	size := "too many"
	if least.ChunkFits(math.MaxInt) {
		size = strconv.Itoa(least.MaxDecodedBytes())
	}
	whole := ""
	if x.Codec == OpenZL {
		whole = "; chunks of the codec openzl are decoded whole"
	}
	return fault.New(fault.Limit, "chunk index", "%s of (%d, %d, %d) %s decodes to %s bytes, over max_chunk, which is "+
		"%d (--max-chunk of commands)%s", name, x.ChunkB, x.ChunkH, x.ChunkW, x.DType, size, maxChunk, whole)
}

// Shift returns the index of the same image with all ranges moved on by that many bytes, for an image
// that begins there in a larger file. The ranges must stay within int64.
func (x *Index) Shift(by int64) *Index {
	if by == 0 {
		return x
	}
	index := *x
	index.Ranges = make([]Range, len(x.Ranges))
	for i, span := range x.Ranges {
		if span.Len > 0 { // a sparse chunk has no place, and its offset must stay 0
			span.Off += by
		}
		index.Ranges[i] = span
	}
	if x.Mask != nil {
		index.Mask = x.Mask.Shift(by)
	}
	return &index
}

// ChunkFits reports whether the largest decoded chunk has at most limit bytes.
func (x *Index) ChunkFits(limit int) bool {
	if x.Grid != nil {
		return x.Grid.Array.Bytes() <= limit
	}
	height, width := x.largest()
	size := int64(1)
	// Dividing before each multiplication avoids overflow.
	for _, factor := range [...]int{height, width, x.ChunkB, x.DType.Size()} {
		if size > int64(limit)/int64(factor) {
			return false
		}
		size *= int64(factor)
	}
	return true
}
