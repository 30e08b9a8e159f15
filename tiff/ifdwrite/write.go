// Package ifdwrite writes the directories of BigTIFFs. It is apart from package ifd: readers do not import it.
package ifdwrite

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Field is one tag to write, its values already as little-endian bytes.
type Field struct {
	Tag   uint16
	Type  ifd.Type
	Data  []byte
	Align int // alignment of values that do not fit the entry; 0 for none
}

// Shorts makes a field of SHORT values.
func Shorts(tag uint16, v ...uint16) Field { return numbers(tag, ifd.Short, v) }

// Longs makes a field of LONG values.
func Longs(tag uint16, v ...uint32) Field { return numbers(tag, ifd.Long, v) }

// Long8s makes a field of LONG8 values.
func Long8s(tag uint16, v ...uint64) Field { return numbers(tag, ifd.Long8, v) }

// Doubles makes a field of DOUBLE values.
func Doubles(tag uint16, v ...float64) Field { return numbers(tag, ifd.Double, v) }

func numbers[T uint16 | uint32 | uint64 | float64](tag uint16, kind ifd.Type, values []T) Field {
	data, _ := binary.Append(nil, binary.LittleEndian, values) // it knows the size of numbers
	return Field{Tag: tag, Type: kind, Data: data}
}

// Text makes an ASCII field; the NUL at its end is added.
func Text(tag uint16, s string) Field {
	return Field{Tag: tag, Type: ifd.ASCII, Data: append([]byte(s), 0)}
}

// AppendHeader appends the header of a little-endian BigTIFF whose first directory is at off.
func AppendHeader(dst []byte, off int64) []byte {
	dst = append(dst, 'I', 'I', 43, 0, 8, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, uint64(off))
}

// dirSize returns the bytes of a BigTIFF directory of n entries, without values.
func dirSize(n int) int { return 8 + 20*n + 8 }

// place returns where the values of each field go, 0 for those that fit their entry, and the end
// of them all. The directory itself is at off.
func place(off int64, fields []Field) (at []int64, end int64) {
	at = make([]int64, len(fields))
	end = off + int64(dirSize(len(fields)))
	for i, field := range fields {
		if len(field.Data) > 8 {
			if align := int64(field.Align); align > 0 {
				end = (end + align - 1) / align * align
			}
			at[i] = end
			end += int64(len(field.Data))
		}
	}
	return at, end
}

// End returns the end of a BigTIFF directory at off, with its values.
func End(off int64, fields []Field) int64 {
	_, end := place(off, fields)
	return end
}

// AppendDirectory appends a little-endian BigTIFF directory, the last one of its file, to a dst
// that ends at offset off. The entries are sorted by tag; the values that do not fit them follow the
// directory in the order of fields.
func AppendDirectory(dst []byte, off int64, fields []Field) []byte {
	return AppendDirectoryBefore(dst, off, 0, fields)
}

// AppendDirectoryBefore is AppendDirectory of a directory that is followed by one at offset next in the
// file's chain; 0 for none.
func AppendDirectoryBefore(dst []byte, off, next int64, fields []Field) []byte {
	le := binary.LittleEndian
	places, end := place(off, fields)
	order := num.Range[int](0, len(fields))
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(fields[a].Tag, fields[b].Tag) })
	start := len(dst)
	dst = le.AppendUint64(dst, uint64(len(fields)))
	for _, i := range order {
		field := &fields[i]
		dst = le.AppendUint16(dst, field.Tag)
		dst = le.AppendUint16(dst, uint16(field.Type))
		dst = le.AppendUint64(dst, uint64(len(field.Data)/field.Type.Size()))
		var value [8]byte
		if places[i] == 0 {
			copy(value[:], field.Data)
		} else {
			le.PutUint64(value[:], uint64(places[i]))
		}
		dst = append(dst, value[:]...)
	}
	dst = le.AppendUint64(dst, uint64(next))
	dst = append(dst, make([]byte, int(end-off)-(len(dst)-start))...)
	for i, field := range fields {
		if places[i] != 0 {
			copy(dst[start+int(places[i]-off):], field.Data)
		}
	}
	return dst
}
