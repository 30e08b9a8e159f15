package pixels

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
)

// The chunks of an array lie in one file or in many, where the array finds them. One may hold samples of several chunks
// of the index: it is decoded once, for the first of them, and the others, which follow it in a plan, take theirs from
// there.

// storedChunk is where a needed chunk of an array lies.
type storedChunk struct {
	of     chunk.ChunkID
	begin  int  // the byte of the decoded chunk at which the samples begin
	repeat bool // the needed chunk before this one lies in the same stored chunk
	at     chunk.Stored
}

// storedRun is a range of a file of an array that is read at once, with chunks in it.
type storedRun struct {
	at     chunk.Stored // the range, without what is of one chunk
	chunks []int        // the places of the chunks in the list that is read
	bytes  []byte
	absent bool  // there is no such file
	most   int64 // about the most bytes that it has if it is a file
}

// divideStored is divide for an array.
func (p *plan) divideStored(share *Shared, tiles *TileCache) {
	grid, order := p.x.Grid, share.Order
	needed := slices.Grow(p.own[:0], len(p.chunks.Chunks))
	for _, i := range p.chunks.Chunks {
		c := neededChunk{i: i}
		c.stored.of, c.stored.begin = grid.Array.Part(grid.Image, i)
		needed = append(needed, c)
	}
	slices.SortStableFunc(needed, func(a, b neededChunk) int {
		x, y := a.stored.of, b.stored.of
		return cmp.Or(cmp.Compare(x.Array, y.Array), cmp.Compare(x.Number, y.Number))
	})
	p.own, p.foreign = needed[:0], p.foreign[:0]
	mine := true
	for k, c := range needed {
		if c.stored.repeat = k > 0 && c.stored.of == needed[k-1].stored.of; !c.stored.repeat {
			mine = true
			if tiles != nil {
				key := TileKey{Source: c.stored.of.Array, Chunk: int(c.stored.of.Number)}
				c.t, c.open = tiles.Get(key, 0, grid.Array.Size(c.stored.of), order, 1)
				mine = c.t == nil || c.open
			}
		}
		if mine {
			p.own = append(p.own, c) // which is never ahead of needed
		} else {
			p.foreign = append(p.foreign, c)
		}
	}
}

// groupEnd returns where the needed chunks end that lie in the stored chunk of the first of list.
func groupEnd(list []neededChunk) int {
	end := 1
	for end < len(list) && list[end].stored.repeat {
		end++
	}
	return end
}

// storedRuns joins the ranges of chunks that lie near each other in a file. Chunks that have no bytes are left out.
func (p *plan) storedRuns(wants []neededChunk, gap int64) []storedRun {
	p.numbers = p.numbers[:0]
	for k := range wants {
		if at := &wants[k].stored.at; !wants[k].stored.repeat && !at.Absent && at.Inline == nil {
			p.numbers = append(p.numbers, k)
		}
	}
	slices.SortStableFunc(p.numbers, func(a, b int) int {
		x, y := &wants[a].stored.at, &wants[b].stored.at
		return cmp.Or(cmp.Compare(x.URI, y.URI), cmp.Compare(x.At.Off, y.At.Off))
	})
	list := p.runs[:0]
	var join runs.Join
	for k, number := range p.numbers {
		at := &wants[number].stored.at
		if n := len(list) - 1; n >= 0 && !at.Object && list[n].at.URI == at.URI && join.Take(at.At) {
			list[n].at.At, list[n].chunks = join.Span, p.numbers[k-len(list[n].chunks):k+1]
			continue
		}
		join = runs.Join{Span: at.At, MaxGap: gap, MaxLen: MaxRun}
		size := int64(p.x.Grid.Array.Size(wants[number].stored.of))
		list = append(list, storedRun{at: *at, chunks: p.numbers[k : k+1], most: size + size/8 + 64<<10})
	}
	p.runs = list
	return list
}
