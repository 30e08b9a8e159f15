package tiff

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// grid reads the sizes of the chunks. A file with TileWidth is tiled. If RowsPerStrip is missing, or not less
// than the height, the image is one strip; if there are more strips and the samples are not compressed, the
// size of the first one tells the rows.
func (p *parser) grid(x *chunk.Index) {
	if p.tiled() {
		x.ChunkW = int(p.Between(ifd.TagTileWidth, 0, 1, chunk.MaxSide))
		x.ChunkH = int(p.Between(ifd.TagTileLength, 0, 1, chunk.MaxSide))
		return
	}
	x.ChunkW, x.CutEdge = x.Width, true
	missing := p.Dir.Find(ifd.TagRowsPerStrip) == nil
	rows := p.Between(ifd.TagRowsPerStrip, uint64(x.Height), 1, math.MaxUint32)
	x.ChunkH = min(x.Height, int(rows))
	entry := p.Dir.Find(ifd.TagStripOffsets)
	if p.Err != nil || x.ChunkH < x.Height || entry == nil || entry.Count <= uint64(x.Groups()) {
		return
	}
	if h := p.rowsOfStrips(x, entry.Count); h > 0 {
		x.ChunkH = h
	} else if missing {
		p.Fail(fault.Corrupt, ifd.TagRowsPerStrip, "missing, and StripOffsets has %d entries", entry.Count)
	}
}

// rowsOfStrips returns the rows of a strip as the size of the first one tells them, if the samples are not
// compressed and an image in strips of so many rows has that number of strips, else 0.
func (p *parser) rowsOfStrips(x *chunk.Index, strips uint64) int {
	counts, row := p.Uints(ifd.TagStripByteCounts), rowBytes(x)
	if x.Codec != chunk.Raw || counts.Len() == 0 || row == 0 {
		return 0
	}
	n := counts.Uint(0)
	if n%row != 0 || n/row < 1 || n/row > uint64(x.Height) {
		return 0
	}
	cut := *x
	cut.ChunkH = int(n / row)
	if uint64(cut.Down())*uint64(cut.Groups()) != strips {
		return 0
	}
	return cut.ChunkH
}

func (p *parser) tiled() bool {
	return p.Dir.Find(ifd.TagTileWidth) != nil || p.Dir.Find(ifd.TagTileLength) != nil ||
		p.Dir.Find(ifd.TagTileOffsets) != nil
}

// rowBytes returns the bytes of one row of an uncompressed chunk.
func rowBytes(x *chunk.Index) uint64 {
	if x.Bits || x.Packed != 0 {
		return (uint64(x.ChunkW)*uint64(x.ChunkB)*uint64(max(x.Packed, 1)) + 7) / 8
	}
	// No overflow, since the factors are below 2^31, 2^16 and 2^4.
	return uint64(x.ChunkW) * uint64(x.ChunkB) * uint64(x.DType.Size())
}

// ranges reads the byte ranges of the chunks. The arrays of a file with PlanarConfiguration 2 hold all of
// band 0, then all of band 1, …; the index has the bands of one position side by side. Entries after the
// image's are ignored.
func (p *parser) ranges(x *chunk.Index) {
	// The tags are chosen one by one, because some writers put tiles under the tags of strips.
	offTag, countTag := uint16(ifd.TagStripOffsets), uint16(ifd.TagStripByteCounts)
	if p.Dir.Find(ifd.TagTileOffsets) != nil {
		offTag = ifd.TagTileOffsets
	}
	if p.Dir.Find(ifd.TagTileByteCounts) != nil && p.tiled() {
		countTag = ifd.TagTileByteCounts
	}
	if p.Err != nil {
		return
	}
	groups := int64(x.Groups())
	positions := int64(x.Across()) * int64(x.Down()) // below 2^62
	entry := p.Dir.Find(offTag)
	switch {
	case entry == nil:
		p.Fail(fault.Corrupt, offTag, "missing")
	case entry.Count/uint64(groups) < uint64(positions):
		p.Fail(fault.Corrupt, offTag, "%d entries for %d positions with %d chunks each", entry.Count, positions, groups)
	}
	s := sizer{parser: p, x: x, offTag: offTag, countTag: countTag, offs: p.Uints(offTag), counts: p.Uints(countTag)}
	if p.Err != nil {
		return
	}
	s.chunks = positions * groups // at most entry.Count
	if s.checkSizes() {
		s.clipped()
		x.Ranges = make([]chunk.Range, s.chunks)
	}
	for i := range x.Ranges {
		pos := int64(i)%positions*groups + int64(i)/positions
		if x.Ranges[pos] = s.place(i, int(pos)); p.Err != nil {
			return
		}
	}
}

// sizer finds the sizes of chunks in bytes: from the file, or from the image if the file says nothing or too
// little.
type sizer struct {
	*parser
	x                *chunk.Index
	offTag, countTag uint16
	offs, counts     ifd.Value
	chunks           int64
	row              uint64 // bytes of a row of samples, if they are not compressed
}

// checkSizes checks that the sizes of all chunks are known. They are in the file, or follow because the samples
// are not compressed, or because there is one chunk, which may reach to the end of the file.
func (s *sizer) checkSizes() bool {
	n := int64(s.counts.Len())
	switch {
	case n >= s.chunks || s.chunks == 1:
	case s.x.Codec != chunk.Raw && n == 0:
		s.Fail(fault.Corrupt, s.countTag, "missing")
	case s.x.Codec != chunk.Raw:
		s.Fail(fault.Corrupt, s.countTag, "%d entries for %d chunks", n, s.chunks)
	}
	if s.x.Codec == chunk.Raw && s.x.ChunkFits(math.MaxInt) {
		s.row = rowBytes(s.x)
	}
	return s.Err == nil
}

// clipped sets CutEdge and CutRight if the tiles at the edges hold only the columns and rows of the image:
// they are uncompressed, and all have exactly those sizes. Tiles that lack only the rows below the image are
// not clipped (see raw).
func (s *sizer) clipped() {
	packed := s.x.Bits || s.x.Packed != 0
	if packed || s.row == 0 || !s.tiled() {
		return
	}
	if int64(s.counts.Len()) < s.chunks || s.x.Width%s.x.ChunkW == 0 {
		return
	}
	cut := *s.x
	cut.CutEdge, cut.CutRight = true, true
	positions, groups := int(s.chunks)/cut.Groups(), cut.Groups()
	for i := range int(s.chunks) {
		pos := i%positions*groups + i/positions
		if s.counts.Uint(i) != uint64(cut.DecodedBytes(pos)) {
			return
		}
	}
	s.x.CutEdge, s.x.CutRight = true, true
}

// place returns the byte range of chunk at, which has entry i. The chunk is sparse if its offset and its
// size are 0, as GDAL writes it. GDAL also reads a chunk of size 0 with an offset as sparse, unless it is
// the only strip. Here such a chunk has samples, so samples are never taken for zeros.
func (s *sizer) place(i, at int) chunk.Range {
	off, n := s.offs.Uint(i), uint64(0)
	if i < s.counts.Len() {
		n = s.counts.Uint(i)
	}
	rest := uint64(s.File.Size()) - min(off, uint64(s.File.Size()))
	switch {
	case off == 0 && n == 0 && i < s.counts.Len():
		return chunk.Range{}
	case off == 0 || off > math.MaxInt64:
		s.Fail(fault.Corrupt, s.offTag, "entry %d is %d", i, off)
	case n > math.MaxInt64-off:
		s.Fail(fault.Corrupt, s.countTag, "entry %d is %d", i, n)
	case s.row > 0:
		n = s.raw(i, at, n, rest)
	case n == 0 && s.chunks == 1 && s.x.Codec != chunk.Raw:
		if n = rest; s.x.ChunkFits(math.MaxInt) {
			n = min(rest, uint64(s.x.MaxCompressed()))
		}
	case n == 0:
		s.Fail(fault.Corrupt, s.countTag,
			"entry %d is 0, and its offset is %d: where its samples end does not follow", i, off)
	}
	if s.Err == nil && n == 0 {
		s.Fail(fault.Corrupt, s.offTag, "entry %d is %d, in a file of %d bytes", i, off, s.File.Size())
	}
	return chunk.Range{Off: int64(off), Len: int64(n)}
}

// raw returns the size of an uncompressed chunk. The file says n bytes, or 0 for unknown, and has rest bytes
// from its offset on. The image tells how many bytes are needed; for a tile at the lower edge, the rows of
// the image are enough.
func (s *sizer) raw(i, at int, n, rest uint64) uint64 {
	_, h, _ := s.x.DecodedShape(at)
	box := s.x.Box(at)
	row := s.row
	if s.x.CutRight {
		row = row / uint64(s.x.ChunkW) * uint64(box.X1-box.X0)
	}
	wanted, least := uint64(h)*row, uint64(box.Y1-box.Y0)*row
	if s.Dir.Find(ifd.TagCompression) == nil && n != 0 && n != wanted && n != least {
		s.Fail(fault.Unsupported, s.countTag,
			"no Compression tag, and chunk %d has %d bytes where samples that are not compressed have %d", at, n,
			wanted)
		return 0
	}
	switch {
	case n >= wanted:
		if n > rest {
			n = wanted // bytes after the samples are not needed
		}
	case n == least:
	case n == 0 || !s.tiled() && !s.overlaps(i, wanted):
		n = wanted
	default:
		s.Fail(fault.Corrupt, s.countTag, "chunk %d has %d bytes, %d needed", at, n, wanted)
		return 0
	}
	if n > rest && least <= rest {
		n = rest
	}
	return n
}

// overlaps reports whether strip i, if it had n bytes, would reach into the strip of the next entry.
func (s *sizer) overlaps(i int, n uint64) bool {
	if i+1 >= s.offs.Len() {
		return false
	}
	off, next := s.offs.Uint(i), s.offs.Uint(i+1)
	return next > off && next-off < n
}

const (
	// cutAbove is the size in bytes above which an uncompressed chunk is cut into pieces. It is the
	// default limit of engines for a decoded chunk, so every image that engines could read before
	// keeps its chunks, and every catalog its blobs.
	cutAbove = 64 << 20
	// pieceBytes is the largest piece in bytes, unless a row has more: the size of one read of an engine.
	pieceBytes = 4 << 20
)

// cutRaw cuts the chunks of an uncompressed image into pieces of whole rows if they have more than cutAbove
// bytes: writers like tifffile put an image of any size into one strip, and a window should cost no more
// than its rows. Chunks stay as they are if the pieces would be too many for the size of the file, or if a
// row has more than cutAbove bytes.
func cutRaw(x *chunk.Index, fileSize int64) {
	if x.Codec != chunk.Raw || x.CutRight || !x.ChunkFits(math.MaxInt) || x.ChunkFits(cutAbove) {
		return
	}
	h, row := x.ChunkH, int64(rowBytes(x))
	if row > cutAbove {
		return
	}
	rows := int(max(1, pieceBytes/row))
	// Pieces must not cross the edges of chunks.
	if x.Down() > 1 || !x.CutEdge {
		for ; h%rows != 0; rows-- {
		}
	}
	cut := *x
	cut.ChunkH = rows
	positions, groups := cut.Across()*cut.Down(), x.Groups() // below 2^62 and 2^16
	// A piece takes 16 bytes of memory, so this limit is a sixteenth of the file. It needs to follow
	// the file's size, because a sparse image of any size fits in a small file.
	limit := fileSize/256 + int64(len(x.Ranges))
	if int64(positions) > limit || int64(positions)*int64(groups) > limit {
		return
	}
	cut.Ranges = make([]chunk.Range, positions*groups)
	for i := range cut.Ranges {
		g, pos := i%groups, i/groups
		y, col := pos/cut.Across()*rows, pos%cut.Across()
		span := x.Ranges[(y/h*x.Across()+col)*groups+g]
		if span.Len == 0 {
			continue
		}
		start := int64(y%h) * row
		_, n, _ := cut.DecodedShape(i)
		cut.Ranges[i] = chunk.Range{Off: span.Off + start, Len: min(int64(n)*row, span.Len-start)}
	}
	*x = cut
}
