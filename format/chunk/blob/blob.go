// Package blob stores an index of chunks as bytes.
package blob

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// An index blob is an Index as bytes, for a catalog column beside the image's URI. Version 1, of an
// image without a mask:
//
//	4 bytes   magic "CHKX"
//	u8        version, 1
//	u8        flags: 1 Inner is YXB, 2 BigEndian, 4 CutEdge, 8 CutRight, 16 NoData follows,
//	          32 NoDataBits follows, 64 ChunkB is Bands (0: ChunkB is 1; 0 also when Bands is 1)
//	u8 u8 u8  dtype, codec, predictor, by the constants of this package
//	varint    Bands, Height, Width, ChunkH, ChunkW
//	8 bytes   NoData, float64, if its flag is set
//	8 bytes   NoDataBits, if its flag is set
//	u8        walk: bit 0 the order of the walk, bit 1 steps follow; other bits 0
//	varint    smallest length of a chunk
//	u8        width w, 1 to 63
//	bits      for each chunk in the order of the index, its length minus the smallest, w bits,
//	          packed from the least significant bit on; the last byte's spare bits are 0
//	varint    offset of the walk's first chunk           } only if there is a chunk
//	zigzag    gap between two chunks of the walk         } whose length is not 0
//	zigzag ×  one step for every chunk of the walk from the third on, if bit 1 says so
//
// Version 2, of an image with a mask, says 2 where version 1 says 1, and behind the image has the
// mask's index in the same form, from the flags on. There flag 128 says that its samples are bits
// (Index.Bits). It must have the shape of the image, with one band, and no nodata. In the flags of an image
// flag 128 says that its last band is alpha (Index.Alpha).
//
// Version 3, of an image with an axis of time or with Index.LowBits, which has no mask: between version and
// flags stand a varint, Index.Times, and two u8, Index.Inner and bits: 1 for LowBits, 2 if Physical follows as in
// version 4. Flag 1 is not set.
//
// Version 4, of an image or mask with Packed, Reversed, Classes, Physical, BandNoData or Params, and without steps of
// time and LowBits: it has u8 after the version, 1 if there is a mask, else 0. Between that and the flags of the image
// stand varint Packed, u8 1 for Reversed plus 2 for Classes plus 4 if Physical follows plus 16 if BandNoData
// does, varint length of Params, Params and, if it follows, varint number of entries of Physical, and float64 Scale and
// Offset of each, and, if it follows, varint number of entries of BandNoData, and of each varint number of values and
// these as float64; the same stands before the flags of the mask.
//
// varint is a base-128 number, least significant group first (as in protobuf), in as few bytes as
// possible; zigzag is a varint of a signed number n as 2n, or -2n-1 where n < 0. N, the number of
// chunks, follows from the shape.
//
// The walk visits the chunks whose length is not 0: in the order of the index (bit 0 clear), or all
// of group 0, then all of group 1, … (set; the physical order of a band-interleaved file). A chunk
// lies at the end of the chunk visited before it, plus gap, plus its step (0 where there are no
// steps), modulo 2^64. So a TOG costs the bits of its lengths only. A chunk of length 0 is sparse.
//
// The blob of an index is unique: the smallest length and w are the smallest possible (w at least
// 1, so a blob bounds the number of chunks), gap is that between the walk's first two chunks (0 if
// there is one), steps follow only if one of them is not 0, and the group-wise walk is taken only if its
// steps need fewer bytes. Parse refuses everything else.
const (
	// Catalogs store these numbers: they must not change.
	magic       = "CHKX"
	versionOne  = 1
	versionMask = 2
	versionTime = 3
	versionMore = 4

	flagYXB        = 1
	flagBigEndian  = 2
	flagCutEdge    = 4
	flagCutRight   = 8
	flagNoData     = 16
	flagNoDataBits = 32
	flagAllBands   = 64
	flagBits       = 128 // of masks
	flagAlpha      = 128 // of images

	walkGroups = 1
	walkSteps  = 2
)

// maxChunks returns the largest number of chunks that a blob of n bytes can hold.
func maxChunks(n int) int64 { return 8 * int64(n) }

// Append appends the index as bytes, in the format described at the top of blob.go, to dst. The index
// must be valid (Validate). Offsets of sparse chunks are lost. Append panics for an index with
// Blocks or a Grid, which has no blob.
func Append(dst []byte, x *chunk.Index) []byte {
	if x.OfArray() {
		panic("blob: an index that is read in blocks has no blob")
	}
	dst = append(dst, magic...)
	switch {
	case x.Timed():
		dst = binary.AppendUvarint(append(dst, versionTime), uint64(x.Times))
		dst = append(dst, byte(x.Inner), oneIf(x.LowBits)|oneIf(x.Physical != nil)<<1)
		return appendBody(appendPhysical(dst, x), x)
	case hasMore(x):
		dst = appendBody(appendMore(append(dst, versionMore, oneIf(x.Mask != nil)), x), x)
		if x.Mask == nil {
			return dst
		}
		return appendBody(appendMore(dst, x.Mask), x.Mask)
	case x.Mask == nil:
		return appendBody(append(dst, versionOne), x)
	}
	return appendBody(appendBody(append(dst, versionMask), x), x.Mask)
}

// hasMore reports whether the index, or its mask, needs version 4.
func hasMore(x *chunk.Index) bool {
	return x.Packed != 0 || x.Reversed || x.Classes || x.Physical != nil || x.BandNoData != nil ||
		len(x.Params) > 0 || x.Mask != nil && hasMore(x.Mask)
}

// oneIf returns the byte of a boolean: 1 for true.
func oneIf(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// appendMore appends what version 4 has before the flags.
func appendMore(dst []byte, x *chunk.Index) []byte {
	kinds := oneIf(x.Reversed) | oneIf(x.Classes)<<1 | oneIf(x.Physical != nil)<<2 | oneIf(x.BandNoData != nil)<<4
	dst = append(binary.AppendUvarint(dst, uint64(x.Packed)), kinds)
	dst = appendPhysical(append(binary.AppendUvarint(dst, uint64(len(x.Params))), x.Params...), x)
	if x.BandNoData != nil {
		dst = binary.AppendUvarint(dst, uint64(len(x.BandNoData)))
	}
	for _, values := range x.BandNoData {
		dst = binary.AppendUvarint(dst, uint64(len(values)))
		for _, v := range values {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

// appendPhysical appends Physical, and nothing for nil.
func appendPhysical(dst []byte, x *chunk.Index) []byte {
	if x.Physical != nil {
		dst = binary.AppendUvarint(dst, uint64(len(x.Physical)))
	}
	for _, l := range x.Physical {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.Scale))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.Offset))
	}
	return dst
}

// appendBody appends the part of a blob that describes one index, from its flags on.
func appendBody(dst []byte, x *chunk.Index) []byte {
	dst = append(dst, flagsOf(x), byte(x.DType), byte(x.Codec), byte(x.Predictor))
	for _, v := range [...]int{x.Bands, x.Height, x.Width, x.ChunkH, x.ChunkW} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	if x.NoData != nil {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(*x.NoData))
	}
	if x.NoDataBits != nil {
		dst = binary.LittleEndian.AppendUint64(dst, *x.NoDataBits)
	}
	plan := bestWalk(x)
	dst = append(dst, plan.form)
	// Lengths precede offsets, because the walk needs to know which chunks are sparse.
	least, width := lengthCode(x)
	lengths := cursor.Packer{Dst: append(binary.AppendUvarint(dst, least), byte(width))}
	for _, r := range x.Ranges {
		lengths.Put(uint64(r.Len)-least, width)
	}
	dst = lengths.Bytes()
	if plan.present == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(plan.first))
	dst = binary.AppendUvarint(dst, cursor.Zigzag(plan.gap))
	if plan.form&walkSteps != 0 {
		walker := newWalker(x, plan.form)
		walker.next()
		walker.next()
		for n := 2; n < plan.present; n++ {
			end := walker.end
			i, _ := walker.next()
			dst = binary.AppendUvarint(dst, cursor.Zigzag(x.Ranges[i].Off-end-plan.gap))
		}
	}
	return dst
}

func flagsOf(x *chunk.Index) byte {
	var flags byte
	set := func(on bool, bit byte) {
		if on {
			flags |= bit
		}
	}
	set(x.Inner == chunk.YXB && !x.Timed(), flagYXB)
	set(x.BigEndian, flagBigEndian)
	set(x.CutEdge, flagCutEdge)
	set(x.CutRight, flagCutRight)
	set(x.NoData != nil, flagNoData)
	set(x.NoDataBits != nil, flagNoDataBits)
	set(x.Bands > 1 && x.ChunkB == x.Bands, flagAllBands)
	set(x.Bits, flagBits)
	set(x.Alpha, flagAlpha)
	return flags
}

// chunkWalker visits the chunks of an index whose length is not 0.
type chunkWalker struct {
	x      *chunk.Index
	groups bool
	at     int   // steps of the walk so far, sparse chunks included
	end    int64 // end of the chunk visited last
}

func newWalker(x *chunk.Index, form byte) chunkWalker {
	return chunkWalker{x: x, groups: form&walkGroups != 0}
}

// next returns the number of the next chunk, or false at the end.
func (w *chunkWalker) next() (int, bool) {
	groups := w.x.Groups()
	positions := len(w.x.Ranges) / groups
	for w.at < len(w.x.Ranges) {
		i := w.at
		if w.groups {
			i = w.at%positions*groups + w.at/positions
		}
		w.at++
		if r := w.x.Ranges[i]; r.Len > 0 {
			w.end = r.Off + r.Len
			return i, true
		}
	}
	return 0, false
}

// walkPlan is how the offsets of an index are written.
type walkPlan struct {
	form       byte
	present    int
	first, gap int64
	cost       int // bytes of the steps
}

// planWalk counts the bytes of the steps of a walk.
func planWalk(x *chunk.Index, form byte) walkPlan {
	plan := walkPlan{form: form}
	walker := newWalker(x, form)
	steps := false
	for {
		end := walker.end
		i, ok := walker.next()
		if !ok {
			break
		}
		off := x.Ranges[i].Off
		switch plan.present {
		case 0:
			plan.first = off
		case 1:
			plan.gap = off - end
		default:
			step := off - end - plan.gap
			steps = steps || step != 0
			plan.cost += cursor.UvarintLen(cursor.Zigzag(step))
		}
		plan.present++
	}
	if steps {
		plan.form |= walkSteps
	} else {
		plan.cost = 0
	}
	return plan
}

// bestWalk returns the walk whose steps need fewer bytes, or the one in the order of the index if both need as many.
func bestWalk(x *chunk.Index) walkPlan {
	plain := planWalk(x, 0)
	if plain.cost == 0 || x.Groups() == 1 {
		return plain
	}
	if grouped := planWalk(x, walkGroups); grouped.cost < plain.cost {
		return grouped
	}
	return plain
}

// lengthCode returns the smallest length and the bits that the others need above it.
func lengthCode(x *chunk.Index) (least uint64, width int) {
	lo, hi := int64(math.MaxInt64), int64(0)
	for _, r := range x.Ranges {
		lo, hi = min(lo, r.Len), max(hi, r.Len)
	}
	return uint64(lo), max(1, bits.Len64(uint64(hi-lo)))
}

// Parse reads an index blob. maxChunk is the limit of a decoded chunk in bytes. Parse does not
// know the size of the file, so the caller needs to check the ranges with Validate before it reads.
// It allocates at most 128 bytes for each byte of b. b is not kept.
func Parse(b []byte, maxChunk int) (*chunk.Index, error) {
	p := parser{cursor.Cursor{B: b, Part: "index blob"}}
	index := p.index(maxChunk, p.version())
	p.End()
	if p.Err != nil {
		return nil, p.Err
	}
	return index, nil
}

// index reads the image, and the mask if the version has one.
func (p *parser) index(maxChunk int, version byte) *chunk.Index {
	index := &chunk.Index{}
	mask, extended := version == versionMask, version == versionMore
	switch version {
	case versionTime:
		p.time(index)
	case versionMore:
		mask = p.bool()
		p.more(index)
	}
	p.head(index, false)
	p.ranges(index, maxChunk)
	if mask && p.Err == nil {
		index.Mask = &chunk.Index{}
		if extended {
			p.more(index.Mask)
		}
		p.head(index.Mask, true)
		if p.ranges(index.Mask, maxChunk); p.Err == nil {
			p.Err = index.Validate(-1, maxChunk)
		}
	}
	if p.Err == nil && extended && !hasMore(index) {
		p.Fail(fault.Corrupt, "version %d of an index that needs none", version)
	}
	return index
}

// more reads what version 4 has before the flags.
func (p *parser) more(x *chunk.Index) {
	packed, kinds, n := p.Uvarint(), p.U8(), p.Uvarint()
	if p.Err == nil && (packed > 64 || kinds&^(7|16) != 0 || n > chunk.MaxParams) {
		p.Fail(fault.Corrupt, "samples of %d bits and kind %d, %d bytes of parameters", packed, kinds, n)
	}
	x.Packed, x.Reversed, x.Classes = int(packed&127), kinds&1 != 0, kinds&2 != 0
	if p.Err == nil && n > 0 {
		// Cloned, because b is not kept.
		x.Params = slices.Clone(p.Bytes(int(n)))
	}
	if kinds&4 != 0 {
		p.physical(x)
	}
	if kinds&16 != 0 {
		p.bandNoData(x)
	}
}

// bandNoData reads BandNoData.
func (p *parser) bandNoData(x *chunk.Index) {
	n := p.Uvarint()
	if p.Err == nil && (n == 0 || n > chunk.MaxBands || n > uint64(len(p.B))) {
		p.Fail(fault.Corrupt, "%d lists of nodata values", n)
	}
	for i := uint64(0); i < n && p.Err == nil; i++ {
		count := p.Uvarint()
		if p.Err == nil && count > chunk.MaxNoData {
			p.Fail(fault.Corrupt, "%d nodata values of a band, at most %d", count, chunk.MaxNoData)
		}
		var values []float64
		for j := uint64(0); j < count && p.Err == nil; j++ {
			values = append(values, math.Float64frombits(p.U64()))
		}
		x.BandNoData = append(x.BandNoData, values)
	}
}

// physical reads Physical.
func (p *parser) physical(x *chunk.Index) {
	n := p.Uvarint()
	if p.Err == nil && (n == 0 || n > chunk.MaxBands || n > uint64(len(p.B)/16)) {
		p.Fail(fault.Corrupt, "%d scales and offsets", n)
	}
	if p.Err != nil {
		return
	}
	x.Physical = make([]chunk.Linear, n)
	for i := range x.Physical {
		x.Physical[i].Scale = math.Float64frombits(p.U64())
		x.Physical[i].Offset = math.Float64frombits(p.U64())
	}
}

// bool reads a byte of 0 or 1.
func (p *parser) bool() bool {
	v := p.U8()
	if p.Err == nil && v > 1 {
		p.Fail(fault.Corrupt, "%d where 0 or 1 is needed", v)
	}
	return v == 1
}

// parser reads a blob from front to back.
type parser struct{ cursor.Cursor }

// side reads a number that must fit a side of an image.
func (p *parser) side(what string) int {
	v := p.Uvarint()
	if p.Err == nil && (v < 1 || v > chunk.MaxSide) {
		p.Fail(fault.Corrupt, "%s %d", what, v)
	}
	return int(v & math.MaxInt32)
}

// time reads what version 3 has before the flags.
func (p *parser) time(x *chunk.Index) {
	times, inner, low := p.Uvarint(), p.U8(), p.U8()
	empty := times == 0 && low&1 == 0
	if p.Err == nil && (times > chunk.MaxPlanes || low > 3 || empty) {
		p.Fail(fault.Corrupt, "%d steps of time, then %d", times, low)
	}
	x.Times, x.Inner, x.LowBits = int(min(times, chunk.MaxPlanes)), chunk.Inner(inner), low&1 != 0
	if low&2 != 0 {
		p.physical(x)
	}
}

// version reads the magic and the version.
func (p *parser) version() byte {
	version := p.Magic(magic, "an index blob")
	if p.Err == nil && (version < versionOne || version > versionMore) {
		p.Fail(fault.Unsupported, "version %d", version)
	}
	return version
}

// head reads what precedes the lengths and offsets of the chunks, from the flags on.
func (p *parser) head(x *chunk.Index, mask bool) {
	flags := p.U8()
	if flags&flagYXB != 0 && x.Timed() {
		p.Fail(fault.Corrupt, "flags %#x", flags)
	}
	x.DType, x.Codec, x.Predictor = chunk.DType(p.U8()), chunk.Codec(p.U8()), chunk.Predictor(p.U8())
	x.Bands, x.Height, x.Width = p.side("bands"), p.side("height"), p.side("width")
	x.ChunkB, x.ChunkH, x.ChunkW = 1, p.side("chunk height"), p.side("chunk width")
	x.BigEndian, x.CutEdge, x.CutRight = flags&flagBigEndian != 0, flags&flagCutEdge != 0, flags&flagCutRight != 0
	x.Bits, x.Alpha = mask && flags&flagBits != 0, !mask && flags&flagAlpha != 0
	if x.Bands > chunk.MaxPlanes {
		p.Fail(fault.Corrupt, "%d bands", x.Bands)
	}
	if flags&flagYXB != 0 {
		x.Inner = chunk.YXB
	}
	if flags&flagAllBands != 0 {
		if x.ChunkB = x.Bands; x.Bands == 1 && p.Err == nil {
			p.Fail(fault.Corrupt, "flag 64 with one band")
		}
	}
	if flags&flagNoData != 0 {
		nodata := math.Float64frombits(p.U64())
		x.NoData = &nodata
	}
	if flags&flagNoDataBits != 0 {
		nodata := p.U64()
		x.NoDataBits = &nodata
	}
}

// ranges reads the byte ranges of the chunks into x, and checks all of x but its mask.
func (p *parser) ranges(x *chunk.Index, maxChunk int) {
	form := p.U8()
	if form > walkGroups|walkSteps {
		p.Fail(fault.Corrupt, "walk %d", form)
	}
	least, width := p.Uvarint(), int(p.U8())
	if least > math.MaxInt64 || width < 1 || width > 63 {
		p.Fail(fault.Corrupt, "lengths of %d bits from %d on", width, least)
	}
	if p.Err != nil {
		return
	}
	// No overflow, since both are below 2^31.
	n := int64(x.Across()) * int64(x.Down())
	// Every chunk has at least one bit: a grid with more chunks than bits must not be allocated.
	if limit := maxChunks(len(p.B)); n > limit || n*int64(x.Groups()) > limit {
		p.Fail(fault.Corrupt, "the grid has more chunks than the blob has bits")
		return
	}
	n *= int64(x.Groups())
	packed := p.Bytes(int((n*int64(width) + 7) / 8))
	if p.Err != nil {
		return
	}
	x.Ranges = make([]chunk.Range, n)
	p.lengths(x, packed, least, width)
	p.offsets(x, form)
	if p.Err != nil {
		return
	}
	if p.Err = x.Validate(-1, maxChunk); p.Err != nil {
		return
	}
	// Other forms of the same index are refused, because equal indexes must have equal blobs:
	// catalogs compare assets by them.
	if shortest, bits := lengthCode(x); shortest != least || bits != width || bestWalk(x).form != form {
		p.Fail(fault.Corrupt, "not the shortest form of its index")
	}
}

// lengths unpacks the chunks' lengths.
func (p *parser) lengths(x *chunk.Index, packed []byte, least uint64, width int) {
	unpacker := cursor.Unpacker{Src: packed}
	for i := range x.Ranges {
		length := unpacker.Get(width) + least // below 2^64, as both are below 2^63
		if length > math.MaxInt64 {
			p.Fail(fault.Corrupt, "chunk %d of %d bytes", i, length)
			return
		}
		x.Ranges[i].Len = int64(length)
	}
	if unpacker.Spare() != 0 {
		p.Fail(fault.Corrupt, "spare bits are not 0")
	}
}

// offsets walks the chunks and sets the offset of each.
func (p *parser) offsets(x *chunk.Index, form byte) {
	walker := newWalker(x, form)
	i, ok := walker.next()
	if !ok || p.Err != nil {
		return
	}
	first := p.Uvarint()
	gap := p.Varint()
	if first > math.MaxInt64 {
		p.Fail(fault.Corrupt, "first chunk at %d", first)
	}
	pos := int64(first)
	for k := 0; p.Err == nil; k++ {
		if pos < 0 || pos > math.MaxInt64-x.Ranges[i].Len {
			p.Fail(fault.Corrupt, "chunk %d of %d bytes at %d", i, x.Ranges[i].Len, pos)
			return
		}
		x.Ranges[i].Off = pos
		end := pos + x.Ranges[i].Len
		if i, ok = walker.next(); !ok {
			if k == 0 && gap != 0 {
				p.Fail(fault.Corrupt, "a gap after the only chunk")
			}
			return
		}
		step := int64(0)
		if form&walkSteps != 0 && k > 0 {
			step = p.Varint()
		}
		pos = end + gap + step // may wrap around; the next turn of the loop checks the result
	}
}
