package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
)

// init registers the decompressor of the frames of rumi files: the standard codecs of OpenZL, and the codecs of
// this package, which writers of generation 2 use.
func init() {
	options := openzl.Options{Custom: Codecs()}
	chunk.Register(chunk.OpenZL, func() chunk.Decompressor { return &frames{d: openzl.NewDecoder(options)} })
	chunk.RegisterRecoder(newRecoder)
}

// frames decodes frames of one output.
type frames struct {
	d      *openzl.Decoder
	blocks []byte // the blocks of pfor that Read reads next
	width  int    // of their numbers
}

// Decompress implements chunk.Decompressor.
func (f *frames) Decompress(dst, src []byte, t *chunk.Tile) error {
	if f.first(dst, src, t) {
		return nil
	}
	return f.d.Decompress(dst, src, t.Number)
}

// Open implements chunk.Residuals.
func (f *frames) Open(frame []byte, count, width int) (row int, ok bool) {
	lone, ok := f.d.Lone(frame)
	header := lone.Header
	isPfor := ok && lone.ID == PlanarZigzagPfor && len(header) == 17
	if !isPfor || count == 0 || lone.Size != count*width {
		return 0, false
	}
	row = int(binary.LittleEndian.Uint32(header[9:]))
	planes := binary.LittleEndian.Uint32(header[13:])
	if binary.LittleEndian.Uint64(header) != uint64(count) || int(header[8]) != width || !cast.IsWidth(width) ||
		planes != 1 || row == 0 || count%row != 0 {
		return 0, false
	}
	f.blocks, f.width = lone.Stored, width
	return row, true
}

// Read implements chunk.Residuals.
func (f *frames) Read(dst []byte) (ok bool) {
	f.blocks, ok = kernel.PforSome(dst, f.blocks, f.width)
	return ok
}

// someBlocks is how many blocks of pfor are unpacked at a time: their numbers stay in a first-level cache of 32 KiB
// until they are summed up.
const someBlocks = 8

// Done implements chunk.Residuals.
func (f *frames) Done() bool { return len(f.blocks) == 0 }

// first decodes the rows of a frame of a Recoder that are needed. It reports false if it is another frame, or damaged.
func (f *frames) first(dst, frame []byte, t *chunk.Tile) bool {
	if t.Number == 0 {
		return false
	}
	row, ok := f.Open(frame, len(dst)/t.Number, t.Number)
	if !ok {
		return false
	}
	row *= t.Number
	for read, done := 0, 0; done < t.Need; {
		start := read
		read = min(read+someBlocks*chunk.ResidualBlock*t.Number, len(dst))
		if start == read || !f.Read(dst[start:read]) {
			return false
		}
		if rows := read - read%row; rows > done {
			above := max(done-row, 0)
			sum := cast.ByWidth(t.Number, sumRows[uint8], sumRows[uint16], sumRows[uint32], sumRows[uint64])
			sum(dst[above:rows], row/t.Number, (done-above)/t.Number)
			done = rows
		}
	}
	return t.Need < len(dst) || f.Done()
}

// sumRows makes samples of the residuals of rows of width numbers, from number pos on.
func sumRows[T kernel.Unsigned](rows []byte, width, pos int) {
	cast.Fill(rows, func(out []T) { kernel.PlanarZigzagFrom(out, out, width, pos) })
}

func newRecoder() chunk.Recoder {
	encoder, err := openzl.NewEncoder("fast", openzl.EncodeOptions{Geozl: openzl.Geozl19, Bare: true})
	if err != nil {
		return nil // the graph is one of the package's
	}
	return encoder
}
