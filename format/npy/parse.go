package npy

import (
	"encoding/binary"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Magic begins each file.
const Magic = "\x93NUMPY"

// Array is the content of a file's header.
type Array struct {
	Descr   string // the dtype in NumPy's array protocol, such as "<f4"
	Fortran bool   // the first axis changes fastest
	Shape   []int
	Size    int // bytes of the header, behind which the samples begin
}

// member matches a member of a header, a dict of Python, with the comma or the brace behind it. NumPy writes three in
// the order of the NEP, with a space behind each colon, and reads them in any order and with any white space. Shapes of
// Python 2 have an L behind each number.
var member = regexp.MustCompile(`^\s*(?:` +
	`['"](descr)['"]\s*:\s*['"]([^'"]*)['"]|` +
	`['"](fortran_order)['"]\s*:\s*(True|False)|` +
	`['"](shape)['"]\s*:\s*\(([0-9L,\s]*)\))\s*([,}])`)

// members returns the texts of the members of a header by their names, or nil if it is another dict.
func members(text string) map[string]string {
	found, end := map[string]string{}, ""
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	for ok && end != "}" && strings.TrimSpace(rest) != "}" {
		m := member.FindStringSubmatch(rest)
		if m == nil {
			return nil
		}
		name, value := m[1]+m[3]+m[5], m[2]+m[4]+m[6]
		if _, twice := found[name]; twice {
			return nil
		}
		found[name], end, rest = value, m[7], rest[len(m[0]):]
	}
	if len(found) < 3 || end == "}" && rest != "" {
		return nil
	}
	return found
}

// maxHeader is the longest header that is read, in bytes: the limit of version 1.0, which shapes of thousands of axes
// reach.
const maxHeader = 1 << 16

// maxAxes is NumPy's limit.
const maxAxes = 64

// Parse reads the header of a file. at returns n bytes at an offset of the file, or an error. Errors are Corrupt, Limit
// for a header over 64 KiB, or come from at.
func Parse(at func(off int64, n int) ([]byte, error)) (a Array, err error) {
	bad := func(kind fault.Kind, off int64, format string, args ...any) (Array, error) {
		return a, fault.At(kind, "npy header", off, format, args...)
	}
	data, err := at(0, 10)
	if err != nil {
		return a, err
	}
	if string(data[:6]) != Magic {
		return bad(fault.Corrupt, 0, "this is not a NumPy file")
	}
	begin, n := int64(10), int(binary.LittleEndian.Uint16(data[8:]))
	if data[6] > 1 { // versions 2.0 and 3.0 have a longer length
		if data, err = at(8, 4); err != nil {
			return a, err
		}
		begin, n = 12, int(min(binary.LittleEndian.Uint32(data), maxHeader+1))
	}
	if n > maxHeader {
		return bad(fault.Limit, 8, "it has over %d bytes", maxHeader)
	}
	text, err := at(begin, n)
	if err != nil {
		return a, err
	}
	found := members(string(text))
	if found == nil && strings.Contains(string(text), "'descr': [") {
		return bad(fault.Unsupported, begin, "it is a structured array: save each of its fields as an array")
	}
	if found == nil {
		return bad(fault.Corrupt, begin, "%.200q is not a header", text)
	}
	a.Descr, a.Fortran, a.Size = found["descr"], found["fortran_order"] == "True", int(begin)+n
	axes := strings.Split(strings.TrimSuffix(strings.TrimSpace(found["shape"]), ","), ",")
	if len(axes) > maxAxes {
		return bad(fault.Corrupt, begin, "%d axes", len(axes))
	}
	for _, s := range axes {
		if s = strings.TrimSpace(s); s == "" && len(axes) == 1 {
			break // "()", of a single number
		}
		v, err := strconv.ParseInt(strings.TrimSuffix(s, "L"), 10, 32)
		if err != nil || v < 0 {
			return bad(fault.Corrupt, begin, "the shape (%.200s) has an axis of %q", found["shape"], s)
		}
		a.Shape = append(a.Shape, int(v))
	}
	return a, nil
}

// samples are the dtypes by their names in NumPy's array protocol, without the byte order.
var samples = func() map[string]chunk.DType {
	m := map[string]chunk.DType{"b1": chunk.Uint8}
	for d, name := range maps.All(descr) {
		m[name[1:]] = d
	}
	return m
}()

// DType returns the dtype of an array, and whether its samples are big-endian. Booleans are bytes of 0 and 1. ok is
// false for types that chaski does not have.
func (a *Array) DType() (d chunk.DType, bigEndian, ok bool) {
	if len(a.Descr) < 2 || !strings.ContainsAny(a.Descr[:1], "<>|=") {
		return 0, false, false
	}
	d, ok = samples[a.Descr[1:]]
	return d, a.Descr[0] == '>', ok
}
