package pixels

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// MaxRun is the largest run in bytes: the chunks that a reader fetches with one read. A run joins
// chunks over gaps of up to source.Gap, because reading these is cheaper than another read.
const MaxRun = 4 << 20 // otherwise a worker's memory would grow with its largest window

// pass is one part of the reads of an asset: the chunks of an index that meet a box and hold one of bands.
type pass struct {
	x     *chunk.Index
	box   chunk.Box
	bands []int // nil: the box says which
	sink  Sink
	mask  bool           // x is a mask of its own
	file  *catalog.Asset // the file of a mask that lies beside the image; nil: the asset's
}

// passes returns the parts of the reads of a box of an asset: one, or two with a mask, which comes last, because its
// sink fills masked pixels of the tensor, which the image's chunks would otherwise overwrite. masked is nil if the mask
// is not read.
func passes(a *catalog.Asset, box chunk.Box, bands []int, to, masked Sink) (list [2]pass, n int) {
	image, mask := pass{x: a.Index, box: box, bands: bands, sink: to}, a.Index.Masking()
	switch {
	case mask == nil || masked == nil:
		return [2]pass{image}, 1
	case mask == a.Index && mask.ChunkB > 1: // the image's chunks have alpha in them
		image.sink = both{to, masked}
		return [2]pass{image}, 1
	}
	other := pass{x: mask, sink: masked, mask: mask != a.Index}
	if other.box, other.bands = maskBands(mask, box, bands); other.mask && a.MaskFile != nil {
		other.x, other.file = a.MaskFile.Index, a.MaskFile
	}
	return [2]pass{image, other}, 2
}

// fault adds the mask to a fault.
func (p *pass) fault(err error) error {
	switch {
	case p.file != nil:
		return p.file.Fault(err)
	case p.mask:
		return InMask(err)
	}
	return err
}

// plan says what is read and decoded for a box of an index. A Reader executes it and a DryReader notes it, so a
// forecast is what a run does. It keeps its memory from box to box.
type plan struct {
	x      *chunk.Index
	pieces *chunk.Index // of chunks that are decoded in pieces; nil if chunks are decoded whole
	box    chunk.Box
	wholly bool // other windows may share chunks, which are read whole then
	chunks runs.Plan

	strip    chunk.Index  // several strips as one chunk: see strips
	joinedOf *chunk.Index // of which strip has several

	own, foreign []neededChunk // see divide
	numbers      []int         // of the chunks that are read next
	runs         []storedRun   // of an array that are read next
	boxes        []chunk.Box   // of an array that are read next
}

// neededChunk is a chunk that a window needs, and its tile.
type neededChunk struct {
	i    int   // the chunk's number
	t    *tile // nil if the chunk is not shared
	open bool  // this reader decodes the chunk for all, and Finish is still to be called

	place chunk.Range // the bytes that are read of it: see settle
	alone bool        // they are its rows in the box, without the others

	stored storedChunk // of an array
}

// set plans a pass of a reader whose decoded chunks have at most maxChunk bytes.
func (p *plan) set(of *pass, maxChunk int) error {
	if p.x, p.box, p.pieces = of.x, of.box, nil; !p.x.ChunkFits(maxChunk) {
		if p.pieces = p.x.InPieces(maxChunk); p.pieces == nil {
			return p.x.OverLimit(maxChunk)
		}
	}
	p.chunks.Reset(p.x, p.box, of.bands)
	return nil
}

// unit returns the index of what is decoded at once: of chunks, or of pieces.
func (p *plan) unit() *chunk.Index {
	if p.pieces != nil {
		return p.pieces
	}
	return p.x
}

// executor does what a plan says: a walk reads and decodes, a DryReader notes it.
type executor interface {
	// rows decodes a chunk in pieces of rows.
	rows(ctx context.Context, i int) error
	// decode decodes chunks that this reader decodes.
	decode(ctx context.Context, wants []neededChunk) error
	// await takes a chunk that another reader decodes, the first of list.
	await(ctx context.Context, list []neededChunk) error
	// sparse makes chunks that the file leaves out.
	sparse(ctx context.Context, list []int) error
}

// run executes the plan. version is of a local file, as in fileVersion.
func (p *plan) run(ctx context.Context, share *Shared, version uint64, x executor) error {
	if p.pieces != nil {
		for _, list := range [...][]int{p.chunks.Chunks, p.chunks.Sparse} {
			for _, i := range list {
				if err := x.rows(ctx, i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	tiles := share.Tiles
	// A shared chunk may be one that another worker decodes. That worker may itself wait for the room that this one
	// holds, so waiting for it would be a deadlock. Chunks of arrays are not announced.
	if resources.IsLarge(p.x) || p.x.Blocks != nil && share.Order > 0 {
		tiles = nil
	}
	err := p.runShared(ctx, share, tiles, version, x)
	if tiles != nil && fault.KindOf(err) != 0 {
		// If a shared chunk is damaged, the reader reads the window again, without sharing. Otherwise the result would
		// depend on the number of workers: which damaged chunk is found first follows from which worker decodes it, and
		// shared chunks are decoded to their last row, where damage may lie below the rows of this window.
		return p.runShared(ctx, share, nil, version, x)
	}
	return err
}

// runShared executes the plan of whole chunks: first those that this reader decodes, then those that others decode. In
// the other order two readers could each wait for a chunk of the other, forever.
func (p *plan) runShared(ctx context.Context, share *Shared, tiles *TileCache, version uint64, x executor) error {
	p.divide(share, tiles, version)
	defer p.putBack(tiles)
	if err := x.decode(ctx, p.own); err != nil {
		return err
	}
	for rest := p.foreign; len(rest) > 0; {
		n := groupEnd(rest)
		if err := x.await(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return x.sparse(ctx, p.chunks.Sparse)
}

// divide divides the chunks of the plan into those that this reader decodes, own, and those that others decode,
// foreign. The caller must call putBack.
func (p *plan) divide(share *Shared, tiles *TileCache, version uint64) {
	if p.x.Grid != nil {
		p.divideStored(share, tiles)
		return
	}
	// Grown once, because the dry reader of a window serves no other.
	p.own, p.foreign = slices.Grow(p.own[:0], len(p.chunks.Chunks)), p.foreign[:0]
	key, order := share.Key, share.Order
	for _, i := range p.chunks.Chunks {
		if tiles == nil {
			p.own = append(p.own, neededChunk{i: i})
			continue
		}
		key.Chunk = i
		part := p.x.Box(i)
		rows := part.Y1 - part.Y0
		if order > 0 { // windows of a pool need all rows sooner or later
			rows = min(p.box.Y1, part.Y1) - part.Y0
		}
		if t, decode := tiles.Get(key, version, p.x.DecodedBytes(i), order, rows); t == nil || decode {
			p.own = append(p.own, neededChunk{i: i, t: t, open: decode})
		} else {
			p.foreign = append(p.foreign, neededChunk{i: i, t: t})
		}
	}
}

// putBack puts back the tiles that divide got. It marks the others as failed, for which other readers would wait
// forever.
func (p *plan) putBack(tiles *TileCache) {
	for _, list := range [...][]neededChunk{p.own, p.foreign} {
		for _, c := range list {
			if c.open {
				tiles.Finish(c.t, true)
			}
			if c.t != nil {
				tiles.Put(c.t)
			}
		}
		clear(list) // the plan keeps the slice, which would otherwise keep evicted tiles alive
	}
}

// join returns the runs that fetch chunks, for which it settles what is read of each. size is the size of the file.
func (p *plan) join(wants []neededChunk, size, gap int64) []runs.Run {
	p.numbers = slices.Grow(p.numbers[:0], len(wants))
	for i := range wants {
		p.numbers = append(p.numbers, wants[i].i)
		p.settle(&wants[i], size)
	}
	return p.joined(wants, gap)
}

// joined is join for chunks that are settled.
func (p *plan) joined(wants []neededChunk, gap int64) []runs.Run {
	return p.chunks.Join(p.numbers, func(k int) chunk.Range { return wants[k].place }, gap, MaxRun)
}

// settle decides which bytes are read of a chunk: of an uncompressed one that no other window shares, the rows that the
// box needs. A chunk that reaches past the file is read whole, which fails whatever rows are needed.
func (p *plan) settle(c *neededChunk, size int64) {
	c.place = p.x.Place(c.i)
	if c.t != nil || p.wholly || c.place.Len > size-c.place.Off {
		return
	}
	top, bottom := p.rowsOf(c.i)
	c.place, c.alone = p.x.Rows(c.i, top, bottom)
}

// rowsOf returns the rows of chunk i, from top up to bottom, that the box needs.
func (p *plan) rowsOf(i int) (top, bottom int) {
	part := p.x.Box(i)
	return max(p.box.Y0, part.Y0) - part.Y0, min(p.box.Y1, part.Y1) - part.Y0
}

// pixels returns how many of the first pixels of a chunk are decoded.
func (p *plan) pixels(c *neededChunk) int {
	if c.t == nil {
		return needed(p.x, c.i, p.box)
	}
	// Whole rows, because the next window may lie anywhere in them.
	part := p.x.Box(c.i)
	_, _, width := p.x.DecodedShape(c.i)
	return min(c.t.rows, part.Y1-part.Y0) * width
}

// needed returns how many of the first pixels of chunk i, row by row, a box needs that ends in the chunk or behind it.
// Of a row whose last pixel in the image it needs, it needs the padding, too, and with it the end of a whole chunk.
func needed(x *chunk.Index, i int, box chunk.Box) int {
	part := x.Box(i)
	_, _, width := x.DecodedShape(i)
	last := width
	if box.X1 < part.X1 {
		last = box.X1 - part.X0
	}
	return (min(box.Y1, part.Y1)-part.Y0-1)*width + last
}

// boxOf returns the box that is read for a chunk of an array: only its rows inside the window's box, all columns. A
// chunk that is shared or has several bands is read as a whole.
func (p *plan) boxOf(c *neededChunk) chunk.Box {
	part := p.x.Box(c.i)
	// With more bands, such rows would not be contiguous in memory.
	if c.t == nil && part.B1-part.B0 == 1 {
		part.Y0, part.Y1 = max(part.Y0, p.box.Y0), min(part.Y1, p.box.Y1)
	}
	return part
}

// boxesOf returns the boxes that are read for chunks of an array.
func (p *plan) boxesOf(wants []neededChunk) []chunk.Box {
	p.boxes = p.boxes[:0]
	for i := range wants {
		p.boxes = append(p.boxes, p.boxOf(&wants[i]))
	}
	return p.boxes
}

// tooLong returns an error for a run that no chunk can have. Offset and length come from the file's header, which may
// lie. They are checked before memory is allocated, so a small hostile file cannot claim gigabytes.
func tooLong(run runs.Run, maxChunk int) error {
	if run.Len <= int64(max(maxChunk, MaxRun)) {
		return nil
	}
	return fault.At(fault.Limit, partOf(run), run.Off, "%d stored bytes, over max_chunk, which is %d", run.Len,
		maxChunk)
}

// present checks that a run lies in file f.
func present(f source.Reader, run runs.Run) error {
	if !source.Fits(run.Off, run.Len, f.Size()) {
		return fault.At(fault.Corrupt, partOf(run), run.Off, "%d bytes reach past the file's %d", run.Len, f.Size())
	}
	return nil
}

// partOf names the chunks of a run in errors.
func partOf(run runs.Run) string {
	if len(run.Chunks) == 1 {
		return "chunk " + strconv.Itoa(run.Chunks[0])
	}
	return "chunks " + strconv.Itoa(run.Chunks[0]) + " and following"
}

// maskBands returns which box and bands of a mask belong to a box and bands of its image. A mask of
// one band, and alpha, holds for all bands of the image; any other mask has the bands of the image.
func maskBands(mask *chunk.Index, box chunk.Box, bands []int) (chunk.Box, []int) {
	if mask.Bands == 1 || mask.Alpha {
		box.B0, box.B1 = mask.Bands-1, mask.Bands
		return box, nil
	}
	return box, bands
}

// InMask adds the part "mask" to a fault, to distinguish a mask's chunk from the image's chunk of the
// same number. It returns other errors, and nil, unchanged.
func InMask(err error) error {
	if fault.KindOf(err) == 0 {
		return err
	}
	return fault.Wrap(0, "mask", err)
}

// maxWindow is the most memory, in bytes, that a zstd frame may claim for its window. By default it equals the
// size of the largest chunk that a worker decodes whole. The best level of libzstd takes twice as much. Frames
// that claim more are decoded whole only.
const maxWindow = 64 << 20

// pieceBytes returns the most bytes that a worker holds to decode chunks of x in pieces.
func pieceBytes(x, pieces *chunk.Index) int64 {
	return int64(MaxRun) + int64(pieces.MaxDecodedBytes()) + chunk.Spare + x.Codec.StreamBytes(maxWindow)
}

// maxArrays is how many arrays a worker keeps open readers of. A reader holds the last tile that it
// decoded, so a worker holds up to four tiles beside its own buffers (see Options.MaxChunkBytes).
const maxArrays = 4

// arrayReader is the open reader of an array.
type arrayReader[T any] struct {
	array  chunk.BlockArray
	reader T
}

// lastArrays are the open readers of the arrays that were used last, the last used one first.
type lastArrays[T any] []arrayReader[T]

// get returns the reader of an array, which it opens. A fifth array evicts the one that was used longest ago.
func (l *lastArrays[T]) get(a chunk.BlockArray, open func(chunk.BlockArray) T) T {
	place := slices.IndexFunc(*l, func(v arrayReader[T]) bool { return v.array == a })
	if place < 0 {
		place = min(len(*l), maxArrays-1)
		*l = append((*l)[:place], arrayReader[T]{a, open(a)})
	}
	found := (*l)[place]
	copy((*l)[1:], (*l)[:place])
	(*l)[0] = found
	return found.reader
}
