package tiff

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/jpeg"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// JPEG of 1992 (TIFF 6.0 section 22) keeps tables and headers apart from the strips or tiles. Each of these holds the
// bits of one scan. Params of the codec OldJPEG have what a stream needs besides these bits: a byte that is 1 for
// YCbCr, the restart interval (2 bytes, big-endian), the number of components, oldComponent bytes for each, colorimetry
// if they are YCbCr, and a stream of tables. Catalogs store the values: they must not change.
const (
	oldHead      = 4
	oldComponent = 4 // id, sampling factors, quantisation table, Huffman tables, as in SOF and SOS segments
	// oldHeader is how much of a stream is read for its header: 12 tables have less than 4 KiB.
	oldHeader = 64 << 10
)

// Markers of JPEG streams.
const (
	markSOI  = 0xd8
	markSOF0 = 0xc0
	markSOF1 = 0xc1
	markDHT  = 0xc4
	markDQT  = 0xdb
	markDRI  = 0xdd
	markSOS  = 0xda
)

// oldStream is the header of a stream.
type oldStream struct {
	restart    uint16
	components []byte // oldComponent bytes each
	tables     []byte // a stream of tables
	bits       int64  // where the bits behind the header begin in the file
}

func (p *parser) oldJPEG(x *chunk.Index, yCbCr bool) {
	var colours []byte
	if yCbCr {
		colours = p.colorimetry()
	}
	stream := oldStream{tables: []byte{0xff, markSOI}}
	switch {
	case p.Uint(ifd.TagJPEGInterchange, 0) != 0:
		p.oldInterchange(&stream)
	case p.Dir.Find(ifd.TagJPEGQTables) != nil:
		p.oldTables(x, &stream, yCbCr)
	}
	switch {
	case p.Err != nil:
		return
	case p.Uint(ifd.TagJPEGProc, 1) != 1:
		p.Fail(fault.Unsupported, ifd.TagJPEGProc, "old JPEG of process %d", p.Uint(ifd.TagJPEGProc, 1))
	case x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "old JPEG of samples that do not have 8 bits")
	case x.ChunkB > 4 || yCbCr && (x.Bands != 3 || x.ChunkB != 3):
		p.Fail(fault.Unsupported, ifd.TagPhotometric, "old JPEG of %d bands in chunks of %d", x.Bands, x.ChunkB)
	case len(stream.components) > 0 && len(stream.components) != oldComponent*x.ChunkB:
		p.Fail(fault.Unsupported, ifd.TagCompression, "old JPEG of %d components in chunks of %d bands",
			len(stream.components)/oldComponent, x.ChunkB)
	}
	x.Params = binary.BigEndian.AppendUint16(JPEGParams(yCbCr), stream.restart)
	x.Params = append(x.Params, byte(len(stream.components)/oldComponent))
	x.Params = append(append(append(x.Params, stream.components...), colours...), stream.tables...)
}

// oldInterchange reads the header of the stream that JPEGInterchangeFormat points to.
func (p *parser) oldInterchange(s *oldStream) {
	const tag = ifd.TagJPEGInterchange
	offset := p.Uint(tag, 0)
	size := uint64(p.File.Size())
	if p.Err != nil || offset >= size {
		p.Fail(fault.Corrupt, tag, "offset %d is past the end of the file", offset)
		return
	}
	data := p.Bytes(tag, int64(offset), int64(min(size-offset, oldHeader)))
	if p.Err == nil && !bytes.HasPrefix(data, []byte{0xff, markSOI}) {
		p.Fail(fault.Corrupt, tag, "no stream of JPEG at %d", offset)
	}
	var frame []byte
	for pos := 2; p.Err == nil; {
		for pos+1 < len(data) && data[pos] == 0xff && data[pos+1] == 0xff { // fill bytes
			pos++
		}
		if len(data)-pos < 4 || data[pos] != 0xff {
			p.Fail(fault.Corrupt, tag, "the header of the stream at %d breaks off", offset)
			return
		}
		mark, n := data[pos+1], int(data[pos+2])<<8|int(data[pos+3])
		if n < 2 || n > len(data)-pos-2 {
			p.Fail(fault.Corrupt, tag, "a segment of %d bytes in the header of the stream at %d", n, offset)
			return
		}
		segment, body := data[pos:pos+2+n], data[pos+4:pos+2+n]
		pos += 2 + n
		switch {
		case mark == markDQT || mark == markDHT:
			s.tables = append(s.tables, segment...)
		case mark == markDRI && len(body) == 2:
			s.restart = binary.BigEndian.Uint16(body)
		case mark == markSOF0 || mark == markSOF1:
			frame = body
		case mark > markSOF1 && mark <= 0xcf && mark != 0xc8 && mark != 0xcc:
			p.Fail(fault.Unsupported, tag, "old JPEG whose stream is not baseline")
		case mark == markSOS:
			s.bits = int64(offset) + int64(pos)
			p.oldScan(s, frame, body)
			return
		}
	}
}

// oldRange moves the ends of the only chunk to the bits of the stream that JPEGInterchangeFormat points to, if the
// chunk begins in the stream: some writers let strips begin in the header, or give them fewer bytes than they have.
func (p *parser) oldRange(x *chunk.Index) {
	offset, length := p.Uint(ifd.TagJPEGInterchange, 0), p.Uint(ifd.TagJPEGInterchangeLength, 0)
	size := uint64(p.File.Size())
	inside := 0 < offset && offset <= size && length <= size-offset
	if p.Err != nil || len(x.Ranges) != 1 || !inside {
		return
	}
	span := &x.Ranges[0]
	start, end := span.Off, max(span.Off+span.Len, int64(offset+length))
	if start < int64(offset) || length > 0 && start >= int64(offset+length) {
		return
	}
	var stream oldStream
	if p.oldInterchange(&stream); start > int64(offset) { // or the strip has the header, too
		start = max(start, stream.bits)
	}
	if start >= end {
		p.Fail(fault.Corrupt, ifd.TagJPEGInterchange, "no bits behind the header of the stream at %d", offset)
		return
	}
	*span = chunk.Range{Off: start, Len: end - start}
}

// oldScan reads the components of a frame header and the header of its scan.
func (p *parser) oldScan(s *oldStream, frame, scan []byte) {
	count := 0
	if len(frame) >= 6 {
		count = int(frame[5])
	}
	whole := len(frame) == 6+3*count && len(scan) == 4+2*count
	if count < 1 || count > 4 || !whole || int(scan[0]) != count {
		p.Fail(fault.Unsupported, ifd.TagJPEGInterchange, "old JPEG with a scan of some of the components")
		return
	}
	for i := range count {
		s.components = append(s.components, frame[6+3*i:][:3]...)
		if s.components = append(s.components, scan[2+2*i]); scan[1+2*i] != frame[6+3*i] {
			p.Fail(fault.Corrupt, ifd.TagJPEGInterchange, "a scan of component %d, not %d", scan[1+2*i], frame[6+3*i])
		}
	}
}

// oldTables reads the tables that tags point to: one of each kind for each component.
func (p *parser) oldTables(x *chunk.Index, s *oldStream, yCbCr bool) {
	sampling := byte(0x11)
	if yCbCr {
		sampling = 0x22
		if sharing := p.Uints(ifd.TagYCbCrSubSampling); sharing.Len() >= 2 {
			sampling = byte(min(sharing.Uint(0), 15)<<4 | min(sharing.Uint(1), 15))
		}
	}
	s.restart = uint16(min(p.Uint(ifd.TagJPEGRestart, 0), math.MaxUint16))
	for i := range min(x.ChunkB, 4) {
		id := byte(i)
		s.components = append(s.components, id, sampling, id, id<<4|id)
		sampling = 0x11
		s.segment(markDQT, id, p.oldTable(ifd.TagJPEGQTables, i))
		s.segment(markDHT, id, p.oldTable(ifd.TagJPEGDCTables, i))
		s.segment(markDHT, 0x10|id, p.oldTable(ifd.TagJPEGACTables, i))
	}
}

// segment adds a segment of one table.
func (s *oldStream) segment(mark, id byte, table []byte) {
	s.tables = append(s.tables, 0xff, mark)
	s.tables = binary.BigEndian.AppendUint16(s.tables, uint16(3+len(table)))
	s.tables = append(append(s.tables, id), table...)
}

// oldTable reads the table of component i: 64 bytes of quantisation, or 16 numbers of Huffman codes and their symbols.
func (p *parser) oldTable(tag uint16, i int) []byte {
	places := p.Uints(tag)
	if p.Err == nil && i >= places.Len() {
		p.Fail(fault.Corrupt, tag, "%d values, %d are needed", places.Len(), i+1)
	}
	if p.Err != nil {
		return nil
	}
	offset := int64(min(places.Uint(i), math.MaxInt64))
	if tag == ifd.TagJPEGQTables {
		return p.Bytes(tag, offset, 64)
	}
	symbols := int64(0)
	for _, count := range p.Bytes(tag, offset, 16) {
		symbols += int64(count)
	}
	if symbols > 256 {
		p.Fail(fault.Corrupt, tag, "a table of %d codes", symbols)
	}
	return p.Bytes(tag, offset, 16+symbols)
}

// oldJPEGDecoder makes streams of chunks and decodes them. Chroma is repeated and samples become RGB as in libtiff.
type oldJPEGDecoder struct {
	d      jpeg.Decoder
	stream []byte
	tables rgbTables
}

// Decompress implements chunk.Decompressor.
func (d *oldJPEGDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	bad := fault.New(fault.Corrupt, "old jpeg", fault.NoOffset, "not the parameters of this codec")
	if len(t.Params) < oldHead || t.Params[0] > jpegYCbCr || t.DType != chunk.Uint8 || len(dst) == 0 {
		return bad
	}
	yCbCr, count := t.Params[0] == jpegYCbCr, int(t.Params[3])
	components := t.Params[oldHead:]
	if len(components) < count*oldComponent {
		return bad
	}
	components, tables := components[:count*oldComponent], components[count*oldComponent:]
	var colours []byte
	if yCbCr {
		if len(tables) < colorimetry || t.Bands != 3 {
			return bad
		}
		colours, tables = tables[:colorimetry], tables[colorimetry:]
	}
	if !bytes.HasPrefix(src, []byte{0xff, markSOI}) {
		if count != t.Bands || t.Height > math.MaxUint16 || t.Width > math.MaxUint16 {
			return fault.New(fault.Corrupt, "old jpeg", fault.NoOffset, "the headers of the stream are missing")
		}
		d.assemble(src, components, t)
		src = d.stream
	}
	err := d.d.Decode(dst, src, tables, jpeg.Shape{
		Width: t.Width, Height: t.Height, Bands: t.Bands, Rows: t.Rows, Least: t.Least, MaxHeight: t.MaxHeight,
		Repeat: yCbCr,
	})
	if err != nil || !yCbCr {
		return err
	}
	d.tables.reset(colours)
	for pixels := dst[:t.Rows*t.Width*3]; len(pixels) > 0; pixels = pixels[3:] {
		d.tables.rgb(pixels, pixels[0], pixels[1], pixels[2])
	}
	return nil
}

// assemble puts the headers of a chunk before its bits.
func (d *oldJPEGDecoder) assemble(src, components []byte, t *chunk.Tile) {
	bands := byte(t.Bands)
	buf := append(d.stream[:0], 0xff, markSOI, 0xff, markDRI, 0, 4, t.Params[1], t.Params[2])
	buf = append(buf, 0xff, markSOF0, 0, 8+3*bands, 8, byte(t.Height>>8), byte(t.Height), byte(t.Width>>8),
		byte(t.Width), bands)
	for i := 0; i < len(components); i += oldComponent {
		buf = append(buf, components[i:i+3]...)
	}
	buf = append(buf, 0xff, markSOS, 0, 6+2*bands, bands)
	for i := 0; i < len(components); i += oldComponent {
		buf = append(buf, components[i], components[i+3])
	}
	d.stream = append(append(buf, 0, 63, 0), src...)
}
