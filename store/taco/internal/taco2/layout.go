package taco2

import (
	"context"
	"encoding/binary"
	"hash/crc32"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Layout is where the parts of a ZIP are that a change of its tables needs.
type Layout struct {
	// Head is the first entry with its data, TACO_HEADER.
	Head []byte
	// Places are offset and size of the table of each level, then of COLLECTION.json.
	Places []model.Span
	// Records are the records of the central directory.
	Records []Record
	// End is where the archive ends. Bytes behind it belong to no entry: an interrupted change left them.
	End int64
}

// Record is a record of a central directory as it is in the file.
type Record struct {
	Name string
	Raw  []byte
}

// ReadLayout reads the layout of a ZIP. Its directory is the one behind COLLECTION.json, where the writers have it: one
// at the end of the file may be of a change that was interrupted before TACO_HEADER had it.
func ReadLayout(ctx context.Context, r source.Reader) (*Layout, error) {
	layout := &Layout{Head: make([]byte, min(int64(zipDataAt), r.Size()))}
	if err := r.ReadAt(ctx, layout.Head, 0); err != nil {
		return nil, fault.WithPart(err, HeaderName, 0)
	}
	levels, collection, err := parseHeader(layout.Head, r.Size())
	if err != nil {
		return nil, err
	}
	for _, s := range append(levels, collection) {
		layout.Places = append(layout.Places, s)
		layout.End = max(layout.End, s.End())
	}
	sig := make([]byte, 4)
	pos, size, count := collection.End(), r.Size()-collection.End(), uint64(zipdir.UntilEnd)
	if pos > r.Size()-4 || r.ReadAt(ctx, sig, pos) != nil || string(sig) != zipdir.Signature {
		where, entries, err := zipdir.Find(ctx, r, 0)
		if err != nil {
			return nil, err
		}
		pos, size, count = where.Off, where.Size, entries
	}
	// A part of the directory would be written again without its last records.
	if size > zipdir.MaxBytes {
		return nil, fault.New(fault.Limit, "central directory", pos, "%d bytes, at most %d", size, zipdir.MaxBytes)
	}
	data := make([]byte, size)
	if err := r.ReadAt(ctx, data, pos); err != nil {
		return nil, fault.WithPart(err, "central directory", 0)
	}
	return layout, layout.directory(data, pos, count)
}

// directory reads n records of the directory in b, which is at offset base, and finds the end of the archive.
func (l *Layout) directory(b []byte, base int64, n uint64) error {
	pos := 0
	for i := uint64(0); i < n && len(b)-pos >= 46 && string(b[pos:pos+4]) == zipdir.Signature; i++ {
		name := int(le16(b, pos+28))
		end := pos + 46 + name + int(le16(b, pos+30)) + int(le16(b, pos+32))
		if end > len(b) {
			return fault.New(fault.Corrupt, "central directory", base+int64(pos), "ends inside an entry")
		}
		l.Records = append(l.Records, Record{string(b[pos+46 : pos+46+name]), b[pos:end]})
		pos = end
	}
	if n != zipdir.UntilEnd && uint64(len(l.Records)) != n {
		return fault.New(fault.Corrupt, "central directory", base+int64(pos), "it has only %d of %d entries",
			len(l.Records), n)
	}
	if len(b)-pos >= 56+20 && string(b[pos:pos+4]) == zipdir.End64Signature {
		pos += 56 + 20 // the record of ZIP64, and its locator
	}
	if len(b)-pos >= 22 && string(b[pos:pos+4]) == zipdir.EndSignature {
		pos = min(pos+22+int(le16(b, pos+20)), len(b))
	}
	l.End = max(l.End, base+int64(pos))
	return nil
}

// PutPlaces writes the content of TACO_HEADER: offset and size of the table of each level, then of COLLECTION.json.
func PutPlaces(b []byte, places []model.Span) {
	clear(b)
	b[0] = byte(len(places))
	for i, p := range places {
		binary.LittleEndian.PutUint64(b[4+16*i:], uint64(p.Off))
		binary.LittleEndian.PutUint64(b[12+16*i:], uint64(p.Size))
	}
}

// SetPlaces makes Head the TACO_HEADER of other places, and its record too.
func (l *Layout) SetPlaces(places []model.Span) {
	data := l.Head[HeaderAt:]
	PutPlaces(data, places)
	crc := crc32.ChecksumIEEE(data)
	binary.LittleEndian.PutUint32(l.Head[14:], crc)
	for i := range l.Records {
		if l.Records[i].Name == HeaderName {
			binary.LittleEndian.PutUint32(l.Records[i].Raw[16:], crc)
		}
	}
	l.Places = places
}

// ParseRecords returns the first n records of a directory that a writer of this program has made.
func ParseRecords(b []byte, n int) []Record {
	l := &Layout{}
	_ = l.directory(b, 0, uint64(n)) // it is whole
	return l.Records
}

// AppendDirectory appends a central directory that begins at offset at of a file, and the records of its end.
func AppendDirectory(b []byte, records []Record, at int64) []byte {
	start := len(b)
	for _, r := range records {
		b = append(b, r.Raw...)
	}
	entries, size := len(records), int64(len(b)-start)
	const full16, full32 = 1<<16 - 1, 1<<32 - 1
	if entries >= full16 || size >= full32 || at >= full32 {
		end := at + size
		b = append(b, zipdir.End64Signature...)
		b = binary.LittleEndian.AppendUint64(b, 56-12) // size of the rest of the record
		b = binary.LittleEndian.AppendUint16(b, 45)    // version that made it, and that is needed: 4.5, for ZIP64
		b = binary.LittleEndian.AppendUint16(b, 45)
		b = binary.LittleEndian.AppendUint64(b, 0) // this disk, and the directory's disk
		for _, v := range []int64{int64(entries), int64(entries), size, at} {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		b = append(b, zipdir.Locator64Signature...)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint64(b, uint64(end))
		b = binary.LittleEndian.AppendUint32(b, 1)
	}
	b = append(b, zipdir.EndSignature...)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for range 2 {
		b = binary.LittleEndian.AppendUint16(b, uint16(min(entries, full16)))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(min(size, full32)))
	b = binary.LittleEndian.AppendUint32(b, uint32(min(at, full32)))
	return binary.LittleEndian.AppendUint16(b, 0)
}
