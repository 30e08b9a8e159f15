// Package runs plans what to read of a file for a window of an image.
package runs

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
)

// Run is a range of a file that is read at once, and the chunks in it.
type Run struct {
	Off    int64 // first byte in the file
	Len    int64 // bytes
	Chunks []int // chunk numbers, by offset; the bytes of each are at the Off of its place, less this Off
}

// Plan lists the chunks that a window of an image needs, and the reads that fetch them. Its methods keep its memory, so
// a plan in use allocates nothing. The zero value is ready to use.
type Plan struct {
	// Chunks are the chunks of the window that have bytes, by offset. For an index of an array they are all chunks of
	// the window, in Blocks.Order. Sparse are the chunks without bytes. Both lists are valid until the next Reset.
	Chunks, Sparse []int

	runs    []Run
	grouped []int  // see byGroup
	groups  []bool // the wanted groups, by number; empty if all are wanted
}

// Reset lists the chunks of x that meet box. bands lists the bands to read, in any order, with
// or without repeats, each within the image; nil means the bands of the box. Rows and columns of the
// box are cut to the image, and so are its bands if bands is nil.
func (p *Plan) Reset(x *chunk.Index, box chunk.Box, bands []int) {
	p.Chunks, p.Sparse = p.Chunks[:0], p.Sparse[:0]
	g0, g1 := p.selectGroups(x, box, bands) // from g0 up to g1, as for the rows and columns below
	y0, y1 := max(box.Y0, 0), min(box.Y1, x.Height)
	x0, x1 := max(box.X0, 0), min(box.X1, x.Width)
	if g0 >= g1 || y0 >= y1 || x0 >= x1 {
		return
	}
	if x.OfArray() {
		p.blocks(x, [3]int{g0, y0 / x.ChunkH, x0 / x.ChunkW}, [3]int{g1, (y1-1)/x.ChunkH + 1, (x1-1)/x.ChunkW + 1})
		return
	}
	across, groups := x.Across(), x.Groups()
	for row := y0 / x.ChunkH; row <= (y1-1)/x.ChunkH; row++ {
		for col := x0 / x.ChunkW; col <= (x1-1)/x.ChunkW; col++ {
			first := (row*across + col) * groups
			for group := g0; group < g1; group++ {
				switch {
				case len(p.groups) > 0 && !p.groups[group]:
				case x.Ranges[first+group].Len == 0:
					p.Sparse = append(p.Sparse, first+group)
				default:
					p.Chunks = append(p.Chunks, first+group)
				}
			}
		}
	}
	p.sort(x)
}

// blocks lists the chunks from lo up to hi along bands, rows and columns, in the order in which they
// lie in files.
func (p *Plan) blocks(x *chunk.Index, lo, hi [3]int) {
	order := [3]uint8{1, 2, 0}
	if x.Blocks != nil && x.Blocks.Order != [3]uint8{} {
		order = x.Blocks.Order
	}
	outer, middle, inner := order[0], order[1], order[2]
	across, groups := x.Across(), x.Groups()
	var pos [3]int
	for pos[outer] = lo[outer]; pos[outer] < hi[outer]; pos[outer]++ {
		for pos[middle] = lo[middle]; pos[middle] < hi[middle]; pos[middle]++ {
			for pos[inner] = lo[inner]; pos[inner] < hi[inner]; pos[inner]++ {
				if len(p.groups) == 0 || p.groups[pos[0]] {
					p.Chunks = append(p.Chunks, (pos[1]*across+pos[2])*groups+pos[0])
				}
			}
		}
	}
}

// selectGroups returns the range of groups that hold the bands. It marks the groups to read in p.groups,
// which stays empty if they are the whole range.
func (p *Plan) selectGroups(x *chunk.Index, box chunk.Box, bands []int) (g0, g1 int) {
	p.groups = p.groups[:0]
	if bands == nil {
		b0, b1 := max(box.B0, 0), min(box.B1, x.Bands)
		if b0 >= b1 {
			return 0, 0
		}
		return b0 / x.ChunkB, (b1-1)/x.ChunkB + 1
	}
	groups := x.Groups()
	p.groups = slices.Grow(p.groups, groups)[:groups]
	clear(p.groups)
	g0, g1 = groups, 0
	for _, b := range bands {
		group := b / x.ChunkB
		p.groups[group] = true
		g0, g1 = min(g0, group), max(g1, group+1)
	}
	return g0, g1
}

// sort orders the chunks by offset.
func (p *Plan) sort(x *chunk.Index) {
	// It looks before it sorts: the chunks of a TOG or a rumi file are in order already, and the chunks of other TIFFs
	// are in order group by group.
	if inOrder(x, p.Chunks) {
		return
	}
	if p.byGroup(x.Groups()); inOrder(x, p.grouped) {
		p.Chunks, p.grouped = p.grouped, p.Chunks
		return
	}
	slices.SortFunc(p.Chunks, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.Ranges[a].Off, x.Ranges[b].Off), cmp.Compare(a, b))
	})
}

// byGroup lists the chunks in grouped, one group after the other, each by position. It assumes that each position has
// as many chunks as the first one.
func (p *Plan) byGroup(groups int) {
	each := 1
	for each < len(p.Chunks) && p.Chunks[each]/groups == p.Chunks[0]/groups {
		each++
	}
	p.grouped = slices.Grow(p.grouped[:0], len(p.Chunks))
	for group := range each {
		for k := group; k < len(p.Chunks); k += each {
			p.grouped = append(p.grouped, p.Chunks[k])
		}
	}
}

// inOrder reports whether chunks are ordered by offset, and by number where offsets are equal.
func inOrder(x *chunk.Index, chunks []int) bool {
	for k := 1; k < len(chunks); k++ {
		a, b := chunks[k-1], chunks[k]
		if first, second := x.Ranges[a].Off, x.Ranges[b].Off; second < first || second == first && b < a {
			return false
		}
	}
	return true
}

// Join returns the runs that read chunks, which are in the order of Plan.Chunks: of number k of them the bytes that
// place returns, which are Index.Place or a part of it. They are valid until the next Join, and so long as chunks is
// not changed.
//
// Chunks that lie at most maxGap bytes apart are read as one run, as long as the run has at most maxRun
// bytes; a larger chunk is a run of its own. Chunks that overlap in the file (a writer may store equal
// chunks once) share a run under the same rule.
func (p *Plan) Join(chunks []int, place func(k int) chunk.Range, maxGap, maxRun int64) []Run {
	p.runs = p.runs[:0]
	join := Join{MaxGap: maxGap, MaxLen: maxRun}
	start := 0 // of the last run in chunks
	for k := range chunks {
		span := place(k)
		if k > 0 && join.Take(span) {
			p.runs[len(p.runs)-1] = Run{join.Span.Off, join.Span.Len, chunks[start : k+1 : k+1]}
			continue
		}
		start, join.Span = k, span
		p.runs = append(p.runs, Run{span.Off, span.Len, chunks[k : k+1 : k+1]})
	}
	return p.runs
}
