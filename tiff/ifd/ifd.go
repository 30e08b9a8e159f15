// Package ifd reads the structure of TIFF and BigTIFF files: header, image file directories and values of
// tags. It leaves the meaning of tags to its callers (packages tiff and rumi).
//
// It reads both byte orders, classic TIFF (TIFF 6.0, 1992) and BigTIFF (the libtiff design, 2007), with all
// of their field types. Not supported: BigTIFF with offsets of a size other than 8.
//
// Files are not trusted: a value is read only after its range is checked against the size of the file, and
// all values together are bounded by a limit.
package ifd

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/meter"
	"github.com/chaski-eo/chaski/source"
)

// Type is the type of a tag's values.
type Type uint16

// Field types (TIFF 6.0 section 2, BigTIFF).
const (
	Byte      Type = 1
	ASCII     Type = 2
	Short     Type = 3
	Long      Type = 4
	Rational  Type = 5
	SByte     Type = 6
	Undefined Type = 7
	SShort    Type = 8
	SLong     Type = 9
	SRational Type = 10
	Float     Type = 11
	Double    Type = 12
	IFD       Type = 13
	Long8     Type = 16
	SLong8    Type = 17
	IFD8      Type = 18
)

var typeSizes = [...]int{1: 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 16: 8, 8, 8}

// Size returns the bytes of one value, 0 for a type that does not exist.
func (t Type) Size() int {
	if int(t) >= len(typeSizes) {
		return 0
	}
	return typeSizes[t]
}

// Limits bound the memory and time that a file can cost. A zero field means its default.
type Limits struct {
	MaxBytes int64 // total size of directories and values after the head. Default 64 MiB
	MaxIFDs  int   // directories of a file. Default 256
	Head     int   // bytes read at once from the file's start. Default 64 KiB
}

func (l Limits) withDefaults() Limits {
	l.MaxBytes = cmp.Or(l.MaxBytes, DefaultMaxBytes)
	l.MaxIFDs = cmp.Or(l.MaxIFDs, 256)
	l.Head = cmp.Or(l.Head, 64<<10)
	return l
}

// DefaultMaxBytes is the default of Limits.MaxBytes.
const DefaultMaxBytes = 64 << 20

// maxEntries bounds the tags of one directory. A classic directory, whose count has 16 bits, cannot have
// more.
const maxEntries = 1<<16 - 1

// maxAllEntries bounds the tags of all directories, which may overlap in the file: 2^20 take 32 MiB.
const maxAllEntries = 1 << 20

// Entry is one tag of a directory.
type Entry struct {
	Tag   uint16
	Type  Type
	Count uint64
	Off   int64 // of the values in the file; not checked before Value
}

// Directory is one image file directory. Entries are in the order of the file. If a tag occurs twice, the
// first counts.
type Directory struct {
	Index   int
	Off     int64
	Entries []Entry
	Next    uint64 // offset of the next directory, 0 for none
	Kind    uint64 // NewSubfileType: 0, an image of its own, also if it is broken
}

// Find returns the entry of a tag, or nil.
func (d *Directory) Find(tag uint16) *Entry {
	for i := range d.Entries {
		if d.Entries[i].Tag == tag {
			return &d.Entries[i]
		}
	}
	return nil
}

// ValueBytes returns the size of the values of all tags, as the file says it.
func (d *Directory) ValueBytes() uint64 {
	size := uint64(0)
	for i := range d.Entries {
		size += min(d.Entries[i].Count, math.MaxUint32) * uint64(d.Entries[i].Type.Size()) // of at most 2^16 tags
	}
	return size
}

// File is an open TIFF with the directories read. It is safe for one goroutine.
type File struct {
	Big       bool // BigTIFF
	BigEndian bool
	Dirs      []Directory // the chain, then Children; Dirs[0] is the full image in every file read here
	Children  int         // reduced images among the SubIFDs of Dirs[0], which OME-TIFF has its overviews in
	Head      []byte      // the first bytes of the file

	// ChainErr says why the chain of directories breaks: the next directory lies outside the file, is
	// broken, was in the chain before, or exceeds the limit. Dirs has the directories before it. ChainErr
	// is nil if all directories were read.
	ChainErr error

	r      source.Reader
	order  binary.ByteOrder
	limits Limits
	budget int64 // bytes that may still be read
	meter  *meter.Meter
	tags   uint64 // of all directories
	spans  []span // read so far; the head is the first
}

type span struct {
	off int64
	b   []byte
}

// Size returns the file's size in bytes.
func (f *File) Size() int64 { return f.r.Size() }

// Open reads the head of a file and all of its directories, usually with one read. Values outside the head
// are read on demand. Only faults of the first directory are errors. A chain that breaks after it loses the
// directories that follow (File.ChainErr), because the first image does not need them.
func Open(ctx context.Context, r source.Reader, l Limits) (*File, error) {
	return OpenAs(ctx, r, l, nil)
}

// OpenAs is Open for files that may be of another format with the directories of a little-endian BigTIFF.
// header, if not nil, gets the first bytes of the file and returns where its first directory stands, or 0 if
// the file begins like a TIFF.
func OpenAs(ctx context.Context, r source.Reader, l Limits, header func(head []byte) (uint64, error)) (*File, error) {
	file := &File{r: r, limits: l.withDefaults(), meter: meter.New()}
	file.budget = file.limits.MaxBytes
	file.Head = make([]byte, min(int64(file.limits.Head), r.Size()))
	if err := r.ReadAt(ctx, file.Head, 0); err != nil {
		return nil, err
	}
	file.spans = append(file.spans, span{0, file.Head})
	next, err := uint64(0), error(nil)
	if header != nil {
		if next, err = header(file.Head); next != 0 {
			file.Big, file.order = true, binary.LittleEndian
		}
	}
	if next == 0 && err == nil {
		next, err = file.header()
	}
	for err == nil && next != 0 {
		next, err = file.directory(ctx, next)
	}
	if err == nil {
		err = file.children(ctx)
	}
	if err != nil && (len(file.Dirs) == 0 || fault.KindOf(err) == 0) {
		return nil, err
	}
	file.ChainErr = err
	return file, nil
}

// children reads the reduced images among the SubIFDs of the first directory, and their masks. The SubIFDs of a
// thumbnail, as raw files of cameras have them, are larger images.
func (f *File) children(ctx context.Context) error {
	const reduced = 1 // a bit of NewSubfileType
	tags := f.Tags(ctx, &f.Dirs[0])
	offsets := tags.Value(TagSubIFDs)
	if f.Dirs[0].Kind&reduced != 0 || !offsets.IsInt() {
		return tags.Err
	}
	for i := range min(offsets.Len(), f.limits.MaxIFDs) {
		if _, err := f.directory(ctx, offsets.Uint(i)); err != nil {
			return err
		}
		if last := len(f.Dirs) - 1; f.Dirs[last].Kind&reduced == 0 {
			f.Dirs = f.Dirs[:last]
		} else {
			f.Children++
		}
	}
	return nil
}

// header reads the file header and returns the offset of the first directory.
func (f *File) header() (uint64, error) {
	bad := func(off int64, format string, args ...any) (uint64, error) {
		return 0, fault.At(fault.Corrupt, "header", off, format, args...)
	}
	if name := magic.OfBytes(f.Head); name != "" {
		return 0, NotRead(name)
	}
	switch {
	case len(f.Head) == 0:
		return bad(0, "the file is empty")
	case len(f.Head) < 8:
		return bad(0, "%d bytes are too few for the header of a TIFF", len(f.Head))
	}
	switch string(f.Head[:2]) {
	case "II":
		f.order = binary.LittleEndian
	case "MM":
		f.order, f.BigEndian = binary.BigEndian, true
	default:
		return bad(0, "not a TIFF: its byte order mark is %q", f.Head[:2])
	}
	switch v := f.order.Uint16(f.Head[2:]); v {
	case 42:
		return f.first(uint64(f.order.Uint32(f.Head[4:])))
	case 43:
		f.Big = true
	default:
		return bad(2, "version %d", v)
	}
	if len(f.Head) < 16 {
		return bad(0, "%d bytes are no BigTIFF header", len(f.Head))
	}
	if s, zero := f.order.Uint16(f.Head[4:]), f.order.Uint16(f.Head[6:]); s != 8 || zero != 0 {
		return bad(4, "offsets of %d bytes, then %d", s, zero)
	}
	return f.first(f.order.Uint64(f.Head[8:]))
}

// NotRead is the error for a raster that is a file of another format, as "a PNG image".
func NotRead(name string) error {
	if name == magic.HTML {
		return fault.At(fault.Unsupported, "header", 0,
			"it is %s: a server may send one in place of a file, such as about a login", name)
	}
	rule := "TIFF (GeoTIFF, COG, TOG) and rumi are"
	if name == magic.ZIP {
		rule = "name its member, as in /vsizip/{FILE.zip}/MEMBER or, in a container, FILE::SAMPLE/PATH"
	}
	return fault.At(fault.Unsupported, "header", 0, "%s is not read as a raster: %s", name, rule)
}

func (f *File) first(off uint64) (uint64, error) {
	if off == 0 {
		return 0, fault.At(fault.Corrupt, "header", 4, "no directory")
	}
	return off, nil
}

// directory reads the directory at off and returns the offset of the next one.
func (f *File) directory(ctx context.Context, off uint64) (uint64, error) {
	part := "ifd " + strconv.Itoa(len(f.Dirs))
	countSize, entrySize, nextSize := 2, 12, 4
	if f.Big {
		countSize, entrySize, nextSize = 8, 20, 8
	}
	if off >= uint64(f.Size()) {
		return 0, fault.New(fault.Corrupt, part, "offset %d is past the end of the file", off)
	}
	pos := int64(off)
	bad := func(kind fault.Kind, format string, args ...any) (uint64, error) {
		return 0, fault.At(kind, part, pos, format, args...)
	}
	if slices.ContainsFunc(f.Dirs, func(d Directory) bool { return d.Off == pos }) {
		return bad(fault.Corrupt, "the chain of directories comes back to itself")
	}
	if len(f.Dirs) == f.limits.MaxIFDs {
		return bad(fault.Limit, "more than %d directories", f.limits.MaxIFDs)
	}
	if err := f.ahead(ctx, pos); err != nil {
		return 0, err
	}
	data, err := f.Bytes(ctx, part, pos, int64(countSize))
	if err != nil {
		return 0, err
	}
	n := f.uint(data)
	if n == 0 || n > uint64(f.Size())/uint64(entrySize) {
		return bad(fault.Corrupt, "%d entries", n)
	}
	if f.tags += n; n > maxEntries || f.tags > maxAllEntries {
		return bad(fault.Limit, "%d entries, and %d with the directories before it", n, f.tags)
	}
	entries := int64(n) * int64(entrySize)
	if end := pos + int64(countSize) + entries; end <= f.Size() && f.Size()-end < int64(nextSize) {
		// Some writers omit the pointer to the next directory at the end of the file. Asking for it would fail.
		nextSize = 0
	}
	data, err = f.Bytes(ctx, part, pos+int64(countSize), entries+int64(nextSize))
	if err != nil {
		return 0, err
	}
	directory := Directory{Index: len(f.Dirs), Off: pos, Entries: make([]Entry, n)}
	for i := range directory.Entries {
		directory.Entries[i] = f.entry(data[i*entrySize:(i+1)*entrySize], pos+int64(countSize+i*entrySize))
	}
	if nextSize > 0 {
		directory.Next = f.uint(data[len(data)-nextSize:])
	}
	tags := f.Tags(ctx, &directory)
	directory.Kind = tags.Uint(TagNewSubfileType, 0)
	if tags.Err != nil && fault.KindOf(tags.Err) == 0 {
		return 0, tags.Err
	}
	f.Dirs = append(f.Dirs, directory)
	return directory.Next, nil
}

// entry decodes one entry, whose bytes stand at off.
func (f *File) entry(b []byte, off int64) Entry {
	entry := Entry{Tag: f.order.Uint16(b), Type: Type(f.order.Uint16(b[2:]))}
	half := (len(b) - 4) / 2 // bytes of the count, and of the value or its offset
	entry.Count = f.uint(b[4 : 4+half])
	if size := uint64(entry.Type.Size()); size > 0 && entry.Count <= uint64(half)/size {
		entry.Off = off + int64(4+half)
	} else {
		// Offsets of 2^63 and more become -1, which no file has either, so Off stays an int64.
		entry.Off = max(int64(f.uint(b[4+half:])), -1)
	}
	return entry
}

// uint reads an unsigned number of 2, 4 or 8 bytes.
func (f *File) uint(b []byte) uint64 {
	switch len(b) {
	case 2:
		return uint64(f.order.Uint16(b))
	case 4:
		return uint64(f.order.Uint32(b))
	}
	return f.order.Uint64(b)
}

// ahead reads the bytes from off on, unless the first ones are in memory, so a directory far from the
// head costs one read.
func (f *File) ahead(ctx context.Context, off int64) error {
	// 4 KiB hold a BigTIFF directory of 204 tags of 20 bytes; files have some twenty.
	n := min(4<<10, f.Size()-off, f.budget)
	if f.cached(off, min(8, n)) != nil {
		return nil
	}
	_, err := f.load(ctx, "directory", off, n)
	return err
}

func (f *File) cached(off, n int64) []byte {
	for _, s := range f.spans {
		if off >= s.off && off-s.off <= int64(len(s.b)) && n <= int64(len(s.b))-(off-s.off) {
			return s.b[off-s.off:][:n]
		}
	}
	return nil
}

// Bytes returns n bytes of the file from off on, which count against Limits.MaxBytes unless they were read
// before. They must not be written to. Errors name the part.
func (f *File) Bytes(ctx context.Context, part string, off, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if b := f.cached(off, n); b != nil {
		return b, nil
	}
	return f.load(ctx, part, off, n)
}

func (f *File) load(ctx context.Context, part string, off, n int64) ([]byte, error) {
	if !source.Fits(off, n, f.Size()) {
		return nil, fault.At(fault.Corrupt, part, off, "%d bytes reach past the file's %d", n, f.Size())
	}
	if n > f.budget {
		return nil, fault.At(fault.Limit, part, off, "directories and tags of more than %d bytes", f.limits.MaxBytes)
	}
	f.budget -= n
	data, err := f.meter.Read(ctx, f.r, part, off, n)
	if err == nil {
		err = f.meter.Memory(part, off, n) // values may lie on each other
	}
	if err != nil {
		return nil, err
	}
	f.spans = append(f.spans, span{off, data})
	return data, nil
}

// Prefetch reads those values of the tags that are not in memory yet, in few reads. It ignores values that
// lie outside the file; Value returns the error.
func (f *File) Prefetch(ctx context.Context, d *Directory, tags ...uint16) error {
	type piece struct{ off, end int64 }
	// Values up to 16 KiB apart are read together, because a request of a remote file costs more than
	// the transfer of the gap.
	const maxGap = 16 << 10
	var want []piece
	for _, tag := range tags {
		if entry := d.Find(tag); entry != nil {
			n, err := f.valueBytes(d, entry)
			if err == nil && n > 0 && f.cached(entry.Off, n) == nil {
				want = append(want, piece{entry.Off, entry.Off + n})
			}
		}
	}
	slices.SortFunc(want, func(a, b piece) int { return cmp.Compare(a.off, b.off) })
	for len(want) > 0 {
		run := want[0]
		for want = want[1:]; len(want) > 0 && want[0].off-run.end <= maxGap; want = want[1:] {
			run.end = max(run.end, want[0].end)
		}
		if _, err := f.Bytes(ctx, "tags", run.off, run.end-run.off); err != nil {
			return err
		}
	}
	return nil
}
