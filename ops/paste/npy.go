package paste

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Windows reads the windows of a float32 array (n, bands, height, width) from a NumPy file (NumPy Enhancement
// Proposal 1), versions 1.0 to 3.0, little-endian and in C order.
type Windows struct {
	N, Bands, H, W int
	in             io.Reader
	next           int64  // the window that Read returns next
	buf            []byte // one row of a window
}

// header matches the header that NumPy writes. Python's full syntax of dicts is not needed, because the NEP fixes the
// order of the keys.
var header = regexp.MustCompile(
	`^\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), *\}\s*$`)

// maxHeader is the longest header that is read, in bytes: the limit of version 1.0, which four lengths never reach.
const maxHeader = 1 << 16

// NewWindows reads the header of a NumPy file. Its errors have the kind fault.Corrupt, fault.Limit for a header over
// 64 KiB, or fault.Unsupported for arrays of another shape, dtype or order.
func NewWindows(r io.Reader) (*Windows, error) {
	bad := func(kind fault.Kind, format string, args ...any) error {
		return fault.New(kind, "npy header", 0, format, args...)
	}
	in := bufio.NewReaderSize(r, 1<<16)
	var magic [8]byte
	if _, err := io.ReadFull(in, magic[:]); err != nil || string(magic[:6]) != "\x93NUMPY" {
		return nil, bad(fault.Corrupt, "this is not a NumPy file")
	}
	length := make([]byte, 2)
	if magic[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(in, length); err != nil {
		return nil, bad(fault.Corrupt, "it ends early")
	}
	n := binary.LittleEndian.Uint32(append(length, 0, 0)[:4])
	if n > maxHeader {
		return nil, bad(fault.Limit, "it has %d bytes: at most %d are read", n, maxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, bad(fault.Corrupt, "it ends early")
	}
	m := header.FindStringSubmatch(string(text))
	if m == nil {
		return nil, bad(fault.Corrupt, "%q is not a header", text)
	}
	shape, ok := lengths(m[3])
	if m[1] != "<f4" || m[2] != "False" || !ok {
		return nil, bad(fault.Unsupported,
			"the array has shape (%s) and dtype %s: predictions must be (windows, bands, height, width) of "+
				"<f4 in C order", m[3], m[1])
	}
	return &Windows{N: shape[0], Bands: shape[1], H: shape[2], W: shape[3], in: in}, nil
}

// lengths reads a shape of four axes.
func lengths(text string) (shape [4]int, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), ","), ",")
	if len(parts) != 4 {
		return shape, false
	}
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > math.MaxInt32 {
			return shape, false
		}
		shape[i] = v
	}
	return shape, true
}

// Read fills dst, which must have Bands·H·W elements, with window j. Windows must be read in order, from 0. A file that
// ends early is fault.Corrupt.
func (w *Windows) Read(j int64, dst []float32) error {
	if j != w.next || len(dst) != w.Bands*w.H*w.W {
		return fmt.Errorf("window %d with %d values cannot be read: window %d with %d values is next", j, len(dst),
			w.next, w.Bands*w.H*w.W)
	}
	w.next++
	// Made here and not by NewWindows, so that only a header is read before the caller has checked the sizes.
	if w.buf == nil {
		w.buf = make([]byte, 4*w.W)
	}
	for at := 0; at < len(dst); at += w.W {
		if _, err := io.ReadFull(w.in, w.buf); err != nil {
			return fault.New(fault.Corrupt, "npy", fault.NoOffset, "it ends in window %d of %d", j, w.N)
		}
		for x := range w.W {
			dst[at+x] = math.Float32frombits(binary.LittleEndian.Uint32(w.buf[4*x:]))
		}
	}
	return nil
}
