package npy

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Zip writes an .npz file: a ZIP archive of stored .npy files, as numpy.savez makes it. The same members
// make the same bytes.
type Zip struct{ zip *zip.Writer }

// NewZip begins a file.
func NewZip(w io.Writer) *Zip { return &Zip{zip.NewWriter(w)} }

// Array adds an array of little-endian elements in C order. An element type that NumPy lacks, such as
// bfloat16, becomes raw bytes of its size ("|V2").
func (z *Zip) Array(name string, d chunk.DType, shape []int, data []byte) error {
	head, err := Header(d, shape)
	if fault.KindOf(err) == fault.Unsupported && d.Size() > 0 {
		head, err = HeaderOf(fmt.Sprintf("|V%d", d.Size()), shape)
	}
	return z.member(name, head, data, err)
}

// Bools adds an array of booleans.
func (z *Zip) Bools(name string, v []bool) error {
	data := make([]byte, len(v))
	for i, b := range v {
		if b {
			data[i] = 1
		}
	}
	head, err := HeaderOf("|b1", []int{len(v)})
	return z.member(name, head, data, err)
}

// maxStrings is the largest array of strings, in bytes. NumPy pads all strings to the longest, so that one
// long string of a file would otherwise size a huge array.
const maxStrings = 1 << 30

// Strings adds an array of strings ("<U"). Invalid UTF-8 becomes U+FFFD.
func (z *Zip) Strings(name string, shape []int, v []string) error {
	longest := 1
	for _, s := range v {
		longest = max(longest, utf8.RuneCountInString(s))
	}
	if int64(longest)*4*int64(len(v)) > maxStrings {
		return fault.New(fault.Limit, "npz "+name, fault.NoOffset,
			"%d strings of up to %d characters are over %d bytes", len(v), longest, maxStrings)
	}
	data := make([]byte, 4*longest*len(v))
	for i, s := range v {
		place := data[4*longest*i:]
		for _, r := range s {
			binary.LittleEndian.PutUint32(place, uint32(r))
			place = place[4:]
		}
	}
	head, err := HeaderOf(fmt.Sprintf("<U%d", longest), shape)
	return z.member(name, head, data, err)
}

// member adds name.npy, unless its header failed.
func (z *Zip) member(name string, head, data []byte, err error) error {
	if err != nil {
		return err
	}
	return z.File(name+".npy", head, data)
}

// File adds a member with the content parts. Its time is zero, so that the same batch gives the same bytes.
func (z *Zip) File(name string, parts ...[]byte) error {
	writer, err := z.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	for _, p := range parts {
		if err == nil {
			_, err = writer.Write(p)
		}
	}
	return err
}

// Close ends the file. The writer below stays open.
func (z *Zip) Close() error { return z.zip.Close() }
