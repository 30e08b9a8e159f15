package jpeg

import (
	"bytes"

	"github.com/chaski-eo/chaski/fault"
)

// Shape is the expected shape of the image of a stream.
type Shape struct {
	Width, Height, Bands int  // of the decoded samples
	Rows                 int  // how many of the first rows are needed
	Least                int  // rows that a stream must have at least
	MaxHeight            int  // rows that a stream may have at most
	YCbCr                bool // samples are YCbCr and become RGB
}

// Limits of a stream.
const (
	// maxComponents is the limit of libjpeg.
	maxComponents = 10
	// maxScans is the limit of libtiff and GDAL. Each scan may pass over the whole image with few bytes.
	maxScans = 100
)

// Decoder decodes streams one after another. It keeps its memory, and is not safe for concurrent use.
type Decoder struct {
	tables tableSet // of the tables that tiles share
	shared []byte   // the bytes that tables was read from
	own    tableSet // of the current stream

	src   []byte
	at    int
	in    bitReader
	shape Shape

	quant       [4]*[64]int32
	dc, ac      [4]*huffman
	frame       frameHeader
	restart     int // MCUs between restart markers, 0 for none
	scans       int
	coefs       []int16
	planes      []byte
	rows        [maxComponents][]byte // the current row of each component
	upsampled   []byte
	progressive bool
}

// frameHeader is the frame header of a stream.
type frameHeader struct {
	width, height int
	hMax, vMax    int
	mcuX, mcuY    int
	n             int // components; 0 before the frame header
	component     [maxComponents]bandComponent
}

// bandComponent is one band as it is stored.
type bandComponent struct {
	id            byte
	h, v, quant   int
	width, height int // samples
	bw, bh        int // blocks that hold them
	stride        int // bytes of a row of plane: whole MCUs
	plane         []byte
	coefs         []int16   // of progressive streams; 64 a block, rows of stride/8 blocks
	quantTable    [64]int32 // as it was at the first scan: streams may replace tables between scans
	dcPred        int32
	hasScan       bool
	missingBits   [64]int8 // of progressive streams: bits of each coefficient that are missing, -1 for all
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "jpeg", format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "jpeg", format, args...)
}

// Decode fills the first s.Rows rows of dst, which has s.Height rows of s.Width pixels of s.Bands bytes,
// from a stream. tables is an abbreviated stream of tables that many tiles share, or empty; the caller must
// not change it. Rows that the stream lacks become 0.
func (d *Decoder) Decode(dst, src, tables []byte, s Shape) error {
	if err := d.share(tables); err != nil {
		return err
	}
	d.quant, d.dc, d.ac = d.tables.quants()
	d.src, d.shape, d.frame.n, d.restart, d.scans = src, s, 0, 0, 0
	// The decoder lives on, and would keep the memory of the caller.
	defer func() { d.src, d.in.src = nil, nil }()
	if err := d.markers(&d.own, true); err != nil {
		return err
	}
	if err := d.finish(); err != nil {
		return err
	}
	rows := min(s.Rows, d.frame.height)
	d.output(dst, rows)
	row := s.Width * s.Bands
	clear(dst[rows*row : s.Rows*row])
	return nil
}

// share reads the tables that tiles have in common. It does nothing if the last call read the same ones.
func (d *Decoder) share(tables []byte) error {
	if d.shared != nil && bytes.Equal(d.shared, tables) {
		return nil
	}
	d.shared = nil
	d.tables.clear()
	if len(tables) > 0 {
		d.quant, d.dc, d.ac = d.tables.quants()
		d.src = tables
		if err := d.markers(&d.tables, false); err != nil {
			return fault.WithPart(err, "tables", fault.NoOffset)
		}
	}
	d.shared = append([]byte{}, tables...) // not nil
	return nil
}

// finish checks that all samples are known, and computes the samples of a progressive stream.
func (d *Decoder) finish() error {
	frame := &d.frame
	if frame.n == 0 {
		return corrupt("no image")
	}
	for i := range frame.n {
		if component := &frame.component[i]; !component.hasScan {
			return corrupt("component %d has no scan", i)
		}
	}
	if !d.progressive {
		return nil
	}
	// libjpeg smooths images whose first coefficients are not known to their last bit.
	for i := range frame.n {
		component := &frame.component[i]
		for coefficient := range 10 {
			if component.missingBits[coefficient] != 0 {
				return unsupported("a progressive stream without its last scans")
			}
		}
		d.transform(component)
	}
	return nil
}
