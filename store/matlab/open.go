package matlab

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	format "github.com/chaski-eo/chaski/format/hdf5"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/hdf5"
)

// Types of elements ("MAT-File Format", table 1-1).
const (
	typeInt8       = 1
	typeInt32      = 5
	typeUint32     = 6
	typeMatrix     = 14
	typeCompressed = 15
	typeUTF8       = 16
	typeUTF16      = 17
	typeUTF32      = 18
)

// dtypes are the types of elements that hold numbers.
var dtypes = map[uint32]chunk.DType{typeInt8: chunk.Int8, 2: chunk.Uint8, 3: chunk.Int16, 4: chunk.Uint16,
	typeInt32: chunk.Int32, typeUint32: chunk.Uint32, 7: chunk.Float32, 9: chunk.Float64, 12: chunk.Int64,
	13: chunk.Uint64}

// characters are the types of elements that hold texts.
var characters = map[uint32]chunk.DType{typeInt8: chunk.Uint8, 2: chunk.Uint8, 4: chunk.Uint16, typeUTF8: chunk.Uint8,
	typeUTF16: chunk.Uint16, typeUTF32: chunk.Uint32}

// Classes of arrays (table 1-3), and bits of their flags.
const (
	classCell   = 1
	classStruct = 2
	classChar   = 4
	classDouble = 6
	classUint64 = 15

	flagComplex = 0x800
)

// others are the classes that are not read.
var others = map[uint32]string{3: "an object", 5: "a sparse matrix", 16: "a function", 17: "an object"}

// Limits of a file.
const (
	headerSize = 128
	maxNodes   = 10000    // arrays
	maxLevels  = 16       // structures and cells in one another
	maxRank    = 32       // as arrays have
	maxName    = 4096     // bytes of a name; MATLAB has 63
	nodeBytes  = 1 << 10  // about the memory of an array
	maxPacked  = 64 << 20 // bytes of a compressed structure, which each of its members inflates
	windowSize = 4 << 10  // bytes that are read at a time
)

// file is a file that becomes a group of arrays.
type file struct {
	*arrays.Node
	stored   chunk.Stored // its name, size and tag
	order    binary.ByteOrder
	nodes    int
	maxChunk int64
}

// Open opens a file as a group, or with FILE::PATH an array in it.
func Open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	name, inside, _ := source.Split(uri)
	r, err := o.Open(ctx, name)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	defer r.Close()
	if is, err := format.Is(ctx, r); err != nil || is { // MATLAB 7.3
		if err == nil {
			return hdf5.Open(ctx, o, uri, opt)
		}
		return nil, fault.WithFile(err, name)
	}
	opened := &file{Node: arrays.New(ctx, o, name, nil, opt), maxChunk: opt.MaxChunk,
		stored: chunk.Stored{URI: name, Size: r.Size(), ETag: source.ETag(r)}}
	if opened.maxChunk <= 0 {
		opened.maxChunk = chunk.DefaultMaxBytes
	}
	opened.Format = 5
	if err := opened.read(ctx, r); err != nil {
		opened.Drop()
		return nil, fault.WithFile(err, name)
	}
	if inside = strings.Trim(inside, "/"); inside == "" {
		return opened.Node, nil
	}
	return opened.At(ctx, inside)
}

func corrupt(off int64, text string, args ...any) error {
	return fault.At(fault.Corrupt, "element", off, text, args...)
}

// read reads the header and all variables.
func (f *file) read(ctx context.Context, r source.Reader) error {
	whole := &stream{size: r.Size(), fill: func(b []byte, off int64) error { return r.ReadAt(ctx, b, off) }}
	head, err := whole.at(0, int(min(headerSize, whole.size)))
	if err != nil {
		return err
	}
	switch order := string(head[max(len(head)-2, 0):]); {
	case len(head) < headerSize || magic.Of(head) != magic.MAT:
		if noun := magic.OfBytes(head); noun != "" {
			return fault.At(fault.Unsupported, "header", 0, "it is %s, not a MATLAB file", noun)
		}
		return fault.At(fault.Unsupported, "header", 0, "it does not begin as MAT-files of level 5 and 7.3 do: "+
			"save those of level 4 with '-v7'")
	case order == "IM":
		f.order = binary.LittleEndian
	case order == "MI":
		f.order = binary.BigEndian
	default:
		return fault.At(fault.Corrupt, "header", 126, "the order of bytes is %q", order)
	}
	if f.order.Uint16(head[124:])>>8 != 1 {
		return fault.At(fault.Unsupported, "header", 124, "version %d", f.order.Uint16(head[124:]))
	}
	for off := int64(headerSize); off < whole.size; {
		e, err := f.element(whole, off, whole.size)
		if err != nil {
			return err
		}
		switch e.kind {
		case typeMatrix:
			err = f.matrix(ctx, whole, e, "", 0)
		case typeCompressed:
			err = f.compressed(ctx, r, e)
		default:
			err = corrupt(off, "type %d, where a variable should be", e.kind)
		}
		if err != nil {
			return err
		}
		off = e.next
	}
	return nil
}

// stream is where elements lie: the file, or what one of them inflates to.
type stream struct {
	size   int64
	fill   func(b []byte, off int64) error
	packed *chunk.Range // of the compressed element, nil of the file
	window int64        // bytes that are read at a time, if not windowSize

	off    int64 // of buffer
	buffer []byte
}

// at returns n bytes at an offset, valid until the next call.
func (s *stream) at(off int64, n int) ([]byte, error) {
	if off < s.off || off+int64(n) > s.off+int64(len(s.buffer)) {
		if !source.Fits(off, int64(n), s.size) {
			return nil, corrupt(off, "it ends after %d bytes", s.size)
		}
		buffer := make([]byte, min(max(windowSize, s.window, int64(n)), s.size-off))
		if err := s.fill(buffer, off); err != nil {
			return nil, err
		}
		s.off, s.buffer = off, buffer
	}
	return s.buffer[off-s.off:][:n], nil
}

// element is a tag, and where its bytes are.
type element struct {
	kind   uint32
	off, n int64
	next   int64 // where the next one begins
}

// element reads the tag at an offset of what ends at end.
func (f *file) element(s *stream, off, end int64) (element, error) {
	const tag = 8
	if end-off < tag {
		return element{}, corrupt(off, "%d bytes are no tag", end-off)
	}
	b, err := s.at(off, tag)
	if err != nil {
		return element{}, err
	}
	kind, n := f.order.Uint32(b), int64(f.order.Uint32(b[4:]))
	if small := kind >> 16; small != 0 { // its bytes are in the tag
		if small > 4 {
			return element{}, corrupt(off, "%d bytes in a tag", small)
		}
		return element{kind & 0xffff, off + 4, int64(small), off + tag}, nil
	}
	if n > end-off-tag {
		return element{}, corrupt(off, "%d bytes, and %d are left", n, end-off-tag)
	}
	e := element{kind, off + tag, n, off + tag + n}
	if kind != typeCompressed {
		e.next = min(off+tag+(n+7)/8*8, end)
	}
	return e, nil
}

// member reads the next part of a matrix, which has a type.
func (f *file) member(s *stream, off *int64, end int64, want uint32, most int64) ([]byte, error) {
	e, err := f.element(s, *off, end)
	if err != nil {
		return nil, err
	}
	other := map[uint32]uint32{typeInt8: typeUTF8, typeInt32: typeUint32}[want] // which some writers put there
	if e.kind != want && e.kind != other || e.n > most {
		return nil, corrupt(*off, "type %d of %d bytes, where type %d of at most %d bytes should be", e.kind, e.n, want,
			most)
	}
	*off = e.next
	return s.at(e.off, int(e.n))
}

// compressed adds a variable that is compressed.
func (f *file) compressed(ctx context.Context, r source.Reader, e element) error {
	account, held := budget.Of(ctx), int64(0)
	defer func() { account.Shrink(held) }()
	inflated := &stream{packed: &chunk.Range{Off: e.off, Len: e.n}, size: 8}
	inflated.fill = func(b []byte, off int64) error {
		size := off + int64(len(b)) // at most maxPacked
		taken := size + int64(len(b)) + e.n
		if err := account.Grow(ctx, taken); err != nil {
			return err
		}
		held += taken
		// Twice the bytes hold the beginning of all but odd streams.
		for limit := 2*size + windowSize; ; limit = e.n {
			limit = min(limit, e.n)
			stored, err := source.Read(ctx, r, e.off, limit)
			if err != nil {
				return err
			}
			if !inflate.IsZlib(stored) {
				return corrupt(e.off, "it is no zlib stream")
			}
			out := make([]byte, size)
			var decoder inflate.Decoder
			if _, err = decoder.Fill(out, stored[2:]); err != nil && limit < e.n {
				continue
			}
			copy(b, out[off:])
			if err != nil {
				return corrupt(e.off, "zlib: %v", err)
			}
			return nil
		}
	}
	head, err := inflated.at(0, 8)
	if err != nil {
		return err
	}
	kind, n := f.order.Uint32(head), int64(f.order.Uint32(head[4:]))
	if kind != typeMatrix || n/inflate.MostRatio > e.n {
		return corrupt(e.off, "type %d of %d bytes in %d compressed ones", kind, n, e.n)
	}
	inflated.size, inflated.buffer = 8+n, nil
	return f.matrix(ctx, inflated, element{kind: kind, off: 8, n: n}, "", 0)
}

// matrix adds a variable, or what is in one at a path.
func (f *file) matrix(ctx context.Context, s *stream, e element, path string, level int) error {
	if f.nodes++; f.nodes > maxNodes || level > maxLevels {
		return fault.At(fault.Limit, "element", e.off, "more than %d arrays, or %d levels of them", maxNodes, maxLevels)
	}
	if e.n == 0 || e.kind != typeMatrix { // an empty one of a structure
		return nil
	}
	off, end := e.off, e.off+e.n
	b, err := f.member(s, &off, end, typeUint32, 8)
	if err != nil || len(b) < 8 {
		return cmpErr(err, corrupt(e.off, "no flags"))
	}
	flags := f.order.Uint32(b)
	class := flags & 0xff
	var shape []int64
	if class != 17 { // whose parts are not documented
		if b, err = f.member(s, &off, end, typeInt32, 4*maxRank); err != nil {
			return err
		}
		for ; len(b) >= 4; b = b[4:] {
			shape = append(shape, int64(int32(f.order.Uint32(b))))
		}
	}
	if b, err = f.member(s, &off, end, typeInt8, maxName); err != nil {
		return err
	}
	if path += string(b); path == "" {
		return nil // the subsystem, which has what objects are made of
	}
	if err := arrays.CheckPath(path); err != nil {
		return err
	}
	if err := f.Charge(ctx, nodeBytes+int64(len(path))); err != nil {
		return err
	}
	cells := int64(-1)
	if len(shape) >= 2 && min(shape[0], shape[1]) >= 0 {
		cells = arrays.Cells(shape, e.n)
	}
	switch {
	case class != 17 && cells < 0:
		return corrupt(e.off, "%q has the shape %v in %d bytes", path, shape, e.n)
	case class == classCell || class == classStruct:
		return f.parts(ctx, s, class, off, end, path, cells, level)
	case class == classChar || class >= classDouble && class <= classUint64:
		data, err := f.element(s, off, end)
		if err == nil {
			err = f.array(s, data, flags, path, shape, cells)
		}
		if err != nil {
			f.PutBroken(path, err, class != classChar, nil)
		}
		return nil
	}
	noun := others[class]
	if noun == "" {
		noun = fmt.Sprintf("of class %d", class)
	}
	f.PutBroken(path, fault.At(fault.Unsupported, "variable "+path, e.off, "it is %s, which is not read", noun), true,
		nil)
	return nil
}

// cmpErr returns the first error.
func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// parts adds the elements of a cell, or the members of a structure or of an array of them.
func (f *file) parts(ctx context.Context, s *stream, class uint32, off, end int64, path string, cells int64,
	level int) error {
	names := []string{""}
	if class == classStruct {
		b, err := f.member(s, &off, end, typeInt32, 4)
		if err != nil || len(b) < 4 {
			return cmpErr(err, corrupt(off, "no length of names"))
		}
		length := int(f.order.Uint32(b))
		if length < 1 || length > maxName {
			return corrupt(off, "names of %d bytes", length)
		}
		if b, err = f.member(s, &off, end, typeInt8, maxNodes*64); err != nil {
			return err
		}
		if err := f.Charge(ctx, int64(len(b))); err != nil {
			return err
		}
		names = names[:0]
		for ; len(b) >= length; b = b[length:] {
			name, _, _ := bytes.Cut(b[:length], []byte{0})
			names = append(names, "."+string(name))
		}
	}
	if s.packed != nil && s.size > maxPacked {
		f.PutBroken(path, fault.At(fault.Limit, "variable "+path, s.packed.Off, "its %d bytes are compressed at once, "+
			"at most %d: save it with '-v6', or its members as variables", s.size, maxPacked), true, nil)
		return nil
	}
	if s.packed != nil {
		s.window = s.size // it is inflated once
	}
	for i := range cells {
		for _, name := range names {
			if class == classCell || cells > 1 {
				name = "." + strconv.FormatInt(i, 10) + name
			}
			e, err := f.element(s, off, end)
			if err != nil {
				return err
			}
			if off = e.next; f.nodes >= maxNodes && class == classCell {
				return nil // what is listed is enough to say what a cell has
			}
			if err := f.matrix(ctx, s, e, path+name, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// array adds an array of numbers or of characters.
func (f *file) array(s *stream, e element, flags uint32, path string, shape []int64, cells int64) error {
	text := flags&0xff == classChar
	dtype := dtypes[e.kind]
	if text {
		dtype = characters[e.kind]
	}
	m := &arrays.Meta{Shape: shape, DType: dtype}
	switch size := int64(dtype.Size()); {
	case flags&flagComplex != 0:
		return fault.At(fault.Unsupported, "variable "+path, e.off, "complex numbers are not read")
	case dtype == chunk.Invalid:
		return corrupt(e.off, "numbers of type %d", e.kind)
	case text && (len(shape) != 2 || e.n != cells*size || cells == 0 && shape[0] > 0):
		return fault.At(fault.Unsupported, "variable "+path, e.off, "texts of the shape %v in %d bytes", shape, e.n)
	case e.n != cells*size:
		return corrupt(e.off, "%d bytes for %v of %s", e.n, shape, dtype)
	}
	for d := range shape {
		m.Order = append(m.Order, len(shape)-1-d)
	}
	m.Big = f.order == binary.BigEndian && dtype.Size() > 1
	m.Fill = make([]byte, dtype.Size())
	m.Text = fmt.Sprint(path, shape, dtype)
	var chunks arrays.Chunks
	if s.packed == nil || cells == 0 {
		chunks = m.LaySide(f.stored, chunk.Range{Off: e.off, Len: e.n})
	} else {
		if s.size > f.maxChunk+windowSize {
			return fault.At(fault.Limit, "variable "+path, s.packed.Off, "its %d bytes are compressed at once, over "+
				"max_chunk, which is %d (--max-chunk of commands)", s.size, f.maxChunk)
		}
		for _, n := range shape {
			m.Chunks = append(m.Chunks, max(n, 1))
		}
		m.Filters = []arrays.Filter{arrays.CutOut(e.off, s.size), {Name: "zlib", Codec: "zlib"}}
		location := f.stored
		location.At = *s.packed
		chunks = packed(location)
	}
	var texts arrays.Texts
	if text {
		texts = func(_ context.Context, data []byte) ([]string, error) { return lines(data, dtype, shape), nil }
	}
	f.PutArray(path, m, chunks, texts)
	return nil
}

// packed is an array that is compressed at once.
type packed chunk.Stored

// Prepare implements arrays.Chunks.
func (packed) Prepare(context.Context) error { return nil }

// Find implements arrays.Chunks.
func (p packed) Find(context.Context, []int64) (chunk.Stored, error) { return chunk.Stored(p), nil }

// lines returns the rows of a matrix of characters as texts.
func lines(data []byte, dtype chunk.DType, shape []int64) []string {
	out := make([]string, shape[0]) // of which each has characters in data, or is empty
	length := int(shape[1]) * dtype.Size()
	for i := range out {
		row := data[i*length:][:length]
		switch dtype {
		case chunk.Uint8:
			out[i] = string(row)
		case chunk.Uint16:
			units := make([]uint16, 0, shape[1])
			for ; len(row) > 0; row = row[2:] {
				units = append(units, binary.LittleEndian.Uint16(row))
			}
			out[i] = string(utf16.Decode(units))
		default:
			runes := make([]rune, 0, shape[1])
			for ; len(row) > 0; row = row[4:] {
				runes = append(runes, rune(binary.LittleEndian.Uint32(row)))
			}
			out[i] = string(runes)
		}
	}
	return out
}
