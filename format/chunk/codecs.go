package chunk

import (
	"cmp"
	"maps"

	"github.com/chaski-eo/chaski/fault"
)

// DefaultMaxBytes is the largest decoded chunk, in bytes, that readers accept by default.
const DefaultMaxBytes = 256 << 20

// Codecs maps each codec to a function that opens its decompressor.
type Codecs map[Codec]func() Decompressor

var registered = Codecs{}

// Register makes all decoders decompress a codec by what open returns. The package of a codec calls it in its init
// function, so a program has the codecs whose packages it imports, as it has the formats of package image. It
// panics if the codec has a decompressor.
func Register(c Codec, open func() Decompressor) {
	if registered[c] != nil {
		panic("chunk: two decompressors of " + c.String())
	}
	registered[c] = open
}

// Registered returns the codecs that this program decompresses.
func Registered() Codecs { return maps.Clone(registered) }

// Opened has a decompressor of each codec that one worker has needed. The zero value opens the codecs of
// Register.
type Opened struct {
	codecs Codecs // nil: what Register has
	live   [numCodecs]Decompressor
}

// Of returns the decompressor of a codec, which it opens for the first call. An error is Unsupported: this program does
// not import the codec's package.
func (o *Opened) Of(c Codec) (Decompressor, error) {
	if o.live[c] == nil {
		codecs := o.codecs
		if codecs == nil {
			codecs = registered
		}
		open := codecs[c]
		if open == nil {
			return nil, fault.NotImported("", "decompresses "+c.String(), cmp.Or(traits[c].from, "tiff"))
		}
		o.live[c] = open()
	}
	return o.live[c], nil
}

// Recoder encodes samples for OpenZL's decompressor in a form that decodes fast. It is for one goroutine.
type Recoder interface {
	// Encode appends to dst the frame of h rows of w numbers of width bytes (1, 2, 4 or 8).
	Encode(dst, samples []byte, width, h, w int) ([]byte, error)
}

// Residuals reads frames of a Recoder row by row. Decompressors of OpenZL may implement it.
type Residuals interface {
	// Open begins a frame of count numbers of width bytes, and returns how many of them a row has. ok is false for
	// frames in another form.
	Open(frame []byte, count, width int) (row int, ok bool)
	// Read fills dst with the next residuals of the frame: see kernel.Planar. dst has whole blocks of ResidualBlock
	// numbers, or the rest of the frame. Read reports whether the frame has them.
	Read(dst []byte) bool
	// Done reports whether nothing follows what was read.
	Done() bool
}

// ResidualBlock is how many numbers a block of residuals has.
const ResidualBlock = 256

var newRecoder func() Recoder

// RegisterRecoder makes NewRecoder return what open returns. The package of OpenZL calls it in its init function.
func RegisterRecoder(open func() Recoder) { newRecoder = open }

// NewRecoder returns a Recoder, or nil if this program does not import its package.
func NewRecoder() Recoder {
	if newRecoder == nil {
		return nil
	}
	return newRecoder()
}
