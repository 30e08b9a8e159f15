// Package chunk is the neutral chunk index that every raster format yields: where each chunk of an
// image lies in its file, which box of the image it holds, and how its bytes become samples.
// After the index there is one path for all formats.
//
// An image is (bands, height, width). It is cut by a regular grid into chunks of (ChunkB, ChunkH,
// ChunkW); ChunkB is 1 where every band has chunks of its own (PlanarConfiguration 2, rumi) and
// Bands where a chunk holds all bands (pixel-interleaved TIFF, rumi cells).
package chunk

import (
	"context"
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// Codec names how a chunk's bytes are compressed. The values are part of the index blob: append only.
type Codec uint8

// Codecs. Who decodes them is passed to NewDecoder as a value.
const (
	Raw Codec = iota
	Zstd
	Deflate
	LZW
	PackBits
	OpenZL
	numCodecs
)

var codecNames = [numCodecs]string{"none", "zstd", "deflate", "lzw", "packbits", "openzl"}

// String returns the codec's name in lower case.
func (c Codec) String() string {
	if c >= numCodecs {
		return "invalid"
	}
	return codecNames[c]
}

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

// Axis orders inside a chunk.
const (
	BYX Inner = iota // band planes; with ChunkB 1, plain rows
	YXB              // pixel-interleaved
)

// Range is a byte range of a file. A Range with Len 0 is a sparse chunk: every sample is nodata (of an
// integer image rounded, halves away from 0, and brought into its range; NaN is 0), or 0 where the image
// has none.
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
	Bands, Height, Width   int
	ChunkB, ChunkH, ChunkW int
	DType                  DType
	Codec                  Codec
	Predictor              Predictor
	Inner                  Inner
	BigEndian              bool     // samples are big-endian once decompressed
	CutEdge                bool     // chunks at the lower edge hold only the rows of the image (strips)
	CutRight               bool     // chunks at the right edge hold only the columns of the image
	NoData                 *float64 // may be a number that no sample has; sparse chunks hold the nearest one
	NoDataBits             *uint64  // of a 64-bit integer image, where a float64 is not exact: the sample's bits
	Ranges                 []Range

	// Mask says which pixels hold data: those where it is not 0. It is an image of one uint8 band of the
	// same size in the same file, with a grid of its own, and no nodata or mask. nil: all of them do.
	Mask *Index
	// Bits is for masks: a chunk stores one bit a pixel, the most significant bit of a byte first, its
	// rows padded to whole bytes. It decodes to a byte a pixel like any other, 0 or 1.
	Bits bool

	// Blocks reads the chunks where they are no byte ranges of a file; Ranges is empty then. Such an index has
	// no mask and no blob.
	Blocks *Blocks
}

// Blocks is one image of an array of many, that has its own ways to its samples.
type Blocks struct {
	Array BlockArray
	Image int64
	// Order is how chunks lie in files: the axes of the image, 0 for bands, 1 for rows, 2 for columns, the one that changes
	// fastest last. The zero value is that of every other index: rows, columns, bands.
	Order [3]uint8
}

// BlockArray is an array of images of one shape. It is safe for concurrent use, and comparable: equal ones
// are the same array.
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

// TurnTaker is a BlockReader that lets others wait, or waits itself, between reading bytes and decoding them: turn is
// called before it decodes, and what it returns afterwards. nil is none.
type TurnTaker interface {
	BlockReader
	SetTurn(turn func() (done func()))
}

// Foreteller is a BlockReader that reads less often, and a BlockPlan of one, where it knows what comes: boxes of an image are those
// for which ReadBox is called next, once for each and in any order, until Ahead is called again. Least is read where they
// are in Blocks.Order.
type Foreteller interface {
	Ahead(ctx context.Context, image int64, boxes []Box) error
}

// BlockPlanner is a BlockArray that can foresee which reads of files its readers make.
type BlockPlanner interface {
	BlockArray
	// Plan returns what foresees the reads of a new reader.
	Plan() BlockPlan
}

// BlockPlan foresees the reads of one reader. It is not safe for concurrent use.
type BlockPlan interface {
	// PlanBox calls read for every range of a file that ReadBox of the same box reads, after the boxes that were planned
	// before. Where that depends on what is read, it is an estimate, and not exact. No sample is read.
	PlanBox(ctx context.Context, image int64, b Box, read func(file string, off, n int64)) (exact bool, err error)
	// Held returns the memory that the reader then has at most, in bytes.
	Held() int64
}

// Limits of what an index may say. They bound arithmetic, not memory: every product below fits in int64.
const (
	MaxSide  = math.MaxInt32
	MaxBands = 1 << 16
)

// Across returns the number of chunk columns, ceil(Width/ChunkW).
func (x *Index) Across() int { return (x.Width + x.ChunkW - 1) / x.ChunkW }

// Down returns the number of chunk rows, ceil(Height/ChunkH).
func (x *Index) Down() int { return (x.Height + x.ChunkH - 1) / x.ChunkH }

// Groups returns the number of chunks at one grid position, ceil(Bands/ChunkB).
func (x *Index) Groups() int { return (x.Bands + x.ChunkB - 1) / x.ChunkB }

// Box is a half-open box of an image: bands [B0, B1), rows [Y0, Y1), columns [X0, X1).
type Box struct{ B0, B1, Y0, Y1, X0, X1 int }

// Box returns the part of the image that chunk i covers, cut to the image.
func (x *Index) Box(i int) Box {
	g, pos := i%x.Groups(), i/x.Groups()
	row, col := pos/x.Across(), pos%x.Across()
	return Box{
		B0: g * x.ChunkB, B1: min((g+1)*x.ChunkB, x.Bands),
		Y0: row * x.ChunkH, Y1: min((row+1)*x.ChunkH, x.Height),
		X0: col * x.ChunkW, X1: min((col+1)*x.ChunkW, x.Width),
	}
}

// Stored returns the shape (bands, rows, columns) that chunk i decodes to: the full chunk, or what
// is left of it at an edge where the format cuts.
func (x *Index) Stored(i int) (b, h, w int) {
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

// StoredBytes returns the decoded size of chunk i in bytes.
func (x *Index) StoredBytes(i int) int {
	b, h, w := x.Stored(i)
	return b * h * w * x.DType.Size()
}

// MaxStoredBytes returns the decoded size of the largest chunk in bytes.
func (x *Index) MaxStoredBytes() int {
	h, w := x.ChunkH, x.ChunkW
	if x.CutEdge {
		h = min(h, x.Height)
	}
	if x.CutRight {
		w = min(w, x.Width)
	}
	return x.ChunkB * h * w * x.DType.Size()
}

// MaxCompressed returns the most bytes that a compressed chunk may take: twice those of the largest decoded one, and 64 KiB,
// so that a limit of what is decoded bounds what is read for it. The largest chunk must fit an int (ChunkFits).
func (x *Index) MaxCompressed() int64 { return min(int64(x.MaxStoredBytes()), 1<<61)*2 + 64<<10 }

// Validate checks that the index is one that the rest of chaski can work on: sizes in their ranges,
// one range a chunk, ranges within a file of fileSize bytes (or not checked, if fileSize is negative),
// decoded chunks of at most maxChunk bytes. A compressed chunk may take at most twice the bytes of
// the largest decoded one and 64 KiB, so that maxChunk bounds what is read for it too. A mask is held
// to the same, and to its image's size. An index with Blocks has no ranges to check. It allocates nothing.
func (x *Index) Validate(fileSize int64, maxChunk int) error {
	if err := x.validate(fileSize, maxChunk); err != nil || x.Mask == nil {
		return err
	}
	m := x.Mask
	if m.DType != Uint8 || m.Bands != 1 && m.Bands != x.Bands || m.Height != x.Height || m.Width != x.Width || m.Mask != nil || m.NoData != nil || m.NoDataBits != nil {
		return fault.New(fault.Corrupt, "chunk index", fault.NoOffset, "a mask of %d bands of %d by %d pixels of %s for an image of %d bands of %d by %d",
			m.Bands, m.Height, m.Width, m.DType, x.Bands, x.Height, x.Width)
	}
	if err := m.validate(fileSize, maxChunk); err != nil {
		return fault.WithPart(err, "mask", 0)
	}
	return nil
}

func (x *Index) validate(fileSize int64, maxChunk int) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "chunk index", fault.NoOffset, format, args...)
	}
	switch {
	case !x.DType.Valid():
		return bad(fault.Corrupt, "dtype %d does not exist", x.DType)
	case x.Codec >= numCodecs:
		return bad(fault.Corrupt, "codec %d does not exist", x.Codec)
	case x.Predictor < NoPredictor || x.Predictor > maxPredictor:
		return bad(fault.Corrupt, "predictor %d does not exist", x.Predictor)
	case x.Inner > YXB:
		return bad(fault.Corrupt, "axis order %d does not exist", x.Inner)
	case x.Bands < 1 || x.Bands > MaxBands:
		return bad(fault.Corrupt, "%d bands", x.Bands)
	case x.Height < 1 || x.Height > MaxSide || x.Width < 1 || x.Width > MaxSide:
		return bad(fault.Corrupt, "image of %d by %d pixels", x.Height, x.Width)
	case x.ChunkH < 1 || x.ChunkH > MaxSide || x.ChunkW < 1 || x.ChunkW > MaxSide:
		return bad(fault.Corrupt, "chunks of %d by %d pixels", x.ChunkH, x.ChunkW)
	case x.ChunkB != 1 && x.ChunkB != x.Bands:
		return bad(fault.Corrupt, "chunks of %d bands in an image of %d", x.ChunkB, x.Bands)
	case x.Bits && (x.DType != Uint8 || x.Bands != 1 || x.Predictor != NoPredictor):
		return bad(fault.Corrupt, "bits with %d bands of %s and predictor %d", x.Bands, x.DType, x.Predictor)
	}
	if !x.ChunkFits(maxChunk) {
		return x.OverLimit(maxChunk)
	}
	if x.Blocks != nil {
		if len(x.Ranges) > 0 || x.Mask != nil {
			return bad(fault.Corrupt, "%d byte ranges, or a mask, of an image that is read in blocks", len(x.Ranges))
		}
		return nil
	}
	return x.validateRanges(fileSize, bad)
}

// validateRanges checks the places of the chunks of an index that is right otherwise.
func (x *Index) validateRanges(fileSize int64, bad func(k fault.Kind, format string, args ...any) error) error {
	positions := int64(x.Across()) * int64(x.Down())
	if positions > int64(len(x.Ranges)) || positions*int64(x.Groups()) != int64(len(x.Ranges)) {
		return bad(fault.Corrupt, "%d byte ranges for a grid of %d by %d with %d chunks a position",
			len(x.Ranges), x.Down(), x.Across(), x.Groups())
	}
	most := int64(math.MaxInt64)
	if x.Codec != Raw {
		most = x.MaxCompressed()
	}
	for i, r := range x.Ranges {
		if r.Off < 0 || r.Len < 0 || r.Off > math.MaxInt64-r.Len {
			return bad(fault.Corrupt, "chunk %d: range of %d bytes at %d", i, r.Len, r.Off)
		}
		if fileSize >= 0 && r.Len > 0 && r.Off+r.Len > fileSize {
			return fault.New(fault.Corrupt, "chunk index", r.Off, "chunk %d: range of %d bytes ends past the file's %d", i, r.Len, fileSize)
		}
		if r.Len > most {
			return fault.New(fault.Limit, "chunk index", r.Off, "chunk %d: %d bytes stored, at most %d", i, r.Len, most)
		}
	}
	return nil
}

// OverLimit is the error for an index with chunks that decode to more than maxChunk bytes. It names the option that raises
// the limit as commands (--max-chunk) and Python (max_chunk) have it.
func (x *Index) OverLimit(maxChunk int) error {
	size := "too many"
	if x.ChunkFits(math.MaxInt) {
		size = strconv.Itoa(x.MaxStoredBytes())
	}
	return fault.New(fault.Limit, "chunk index", fault.NoOffset, "a chunk of (%d, %d, %d) %s decodes to %s bytes, over max_chunk, which is %d (--max-chunk of commands)",
		x.ChunkB, x.ChunkH, x.ChunkW, x.DType, size, maxChunk)
}

// Shift returns the index of the same image with all places by bytes further on: of an image that begins
// there in its file. The places must stay in int64, as those of an index do that is valid for the image's
// own bytes.
func (x *Index) Shift(by int64) *Index {
	if by == 0 {
		return x
	}
	s := *x
	s.Ranges = make([]Range, len(x.Ranges))
	for i, r := range x.Ranges {
		if r.Len > 0 { // a sparse chunk lies nowhere
			r.Off += by
		}
		s.Ranges[i] = r
	}
	if x.Mask != nil {
		s.Mask = x.Mask.Shift(by)
	}
	return &s
}

// ChunkFits reports whether the largest decoded chunk has at most limit bytes. It multiplies step
// by step so that nothing overflows.
func (x *Index) ChunkFits(limit int) bool {
	h, w := x.ChunkH, x.ChunkW
	if x.CutEdge {
		h = min(h, x.Height)
	}
	if x.CutRight {
		w = min(w, x.Width)
	}
	n := int64(1)
	for _, f := range [...]int{h, w, x.ChunkB, x.DType.Size()} {
		if n > int64(limit)/int64(f) {
			return false
		}
		n *= int64(f)
	}
	return true
}
