package paste

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/npy"
)

// Windows reads the windows of a float32 array (n, bands, height, width) from a NumPy file (NumPy Enhancement
// Proposal 1), versions 1.0 to 3.0, little-endian and in C order.
type Windows struct {
	N, Bands, H, W int
	in             io.Reader
	next           int64  // the window that Read returns next
	buf            []byte // one row of a window
}

// NewWindows reads the header of a NumPy file. Its errors have the kind fault.Corrupt, fault.Limit for a header over
// 64 KiB, or fault.Unsupported for arrays of another shape, dtype or order.
func NewWindows(r io.Reader) (*Windows, error) {
	bad := func(kind fault.Kind, format string, args ...any) error {
		return fault.At(kind, "npy header", 0, format, args...)
	}
	in := bufio.NewReaderSize(r, 1<<17) // Peek sees the largest header that is read
	array, err := npy.Parse(func(off int64, n int) ([]byte, error) {
		data, err := in.Peek(int(off) + n)
		if err != nil {
			return nil, bad(fault.Corrupt, "it ends early")
		}
		return data[off:], nil
	})
	if err != nil {
		return nil, err
	}
	if array.Descr != "<f4" || array.Fortran || len(array.Shape) != 4 {
		return nil, bad(fault.Unsupported,
			"the array has shape %d and dtype %s: predictions must be (windows, bands, height, width) of "+
				"<f4 in C order", array.Shape, array.Descr)
	}
	if _, err := in.Discard(array.Size); err != nil {
		return nil, err
	}
	shape := array.Shape
	return &Windows{N: shape[0], Bands: shape[1], H: shape[2], W: shape[3], in: in}, nil
}

// Read fills dst, which must have Bands·H·W elements, with window j. Windows must be read in order, from 0. A file that
// ends early is fault.Corrupt.
func (w *Windows) Read(j int64, dst []float32) error {
	if j != w.next || len(dst) != w.Bands*w.H*w.W {
		return fmt.Errorf("window %d with %d values cannot be read: window %d with %d values is next", j, len(dst),
			w.next, w.Bands*w.H*w.W)
	}
	w.next++
	// Made here and not by NewWindows, so only a header is read before the caller has checked the sizes.
	if w.buf == nil {
		w.buf = make([]byte, 4*w.W)
	}
	for pos := 0; pos < len(dst); pos += w.W {
		if _, err := io.ReadFull(w.in, w.buf); err != nil {
			return fault.New(fault.Corrupt, "npy", "it ends in window %d of %d", j, w.N)
		}
		for x := range w.W {
			dst[pos+x] = math.Float32frombits(binary.LittleEndian.Uint32(w.buf[4*x:]))
		}
	}
	return nil
}
