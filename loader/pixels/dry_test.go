package pixels

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// noted opens files that note what is read of them.
type noted struct {
	source.Opener
	gap    int64
	ranges []source.Range
}

func (n *noted) Open(ctx context.Context, uri string) (source.Reader, error) {
	file, err := n.Opener.Open(ctx, uri)
	return notedFile{file, n}, err
}

type notedFile struct {
	source.Reader
	to *noted
}

func (f notedFile) Gap() int64 { return f.to.gap }

func (f notedFile) ReadAt(ctx context.Context, p []byte, off int64) error {
	f.to.ranges = append(f.to.ranges, source.Range{Off: off, Len: int64(len(p))})
	return f.Reader.ReadAt(ctx, p, off)
}

// slowChunks lists the chunks of an index that meet a box and have one of some bands, without those at others.
func slowChunks(x *chunk.Index, box chunk.Box, bands []int, mask bool) (out []ReadChunk) {
	for i := range x.Ranges {
		part := x.Box(i)
		some := bands == nil && part.B0 < box.B1 && box.B0 < part.B1
		for _, b := range bands {
			some = some || part.B0 <= b && b < part.B1
		}
		if !some || part.Y0 >= box.Y1 || box.Y0 >= part.Y1 || part.X0 >= box.X1 || box.X0 >= part.X1 {
			continue
		}
		place := x.Place(i)
		out = append(out, ReadChunk{Chunk: i, Mask: mask, Off: place.Off, Len: place.Len, Decoded: x.StoredBytes(i),
			Rows: min(box.Y1, part.Y1) - part.Y0, Held: int64(x.StoredBytes(i)) + chunk.Spare})
	}
	return out
}

// TestDryReaderAgainstReader: a dry reader notes the ranges that a reader reads, in their order, the chunks that meet
// the window, and the bytes that came with the header, also where chunks are shared.
func TestDryReaderAgainstReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawImage(t, dtypes.Draw(t, "dtype"))
		x := m.asset.Index
		opener := &noted{Opener: folder.OneFile(m.file), gap: int64(rapid.IntRange(0, 80).Draw(t, "gap"))}
		o := resources.Options{Opener: opener}.WithDefaults()
		r, dry := NewReader(o), NewDryReader(o)
		dry.Gap = opener.gap
		size := int64(len(m.file))
		header := source.Range{Off: rapid.Int64Range(0, size).Draw(t, "header"), Len: rapid.Int64Range(0, size).Draw(t, "of")}
		dry.Headers = []source.Range{header}
		shares := rapid.Bool().Draw(t, "share")
		if shares {
			bound := int64(rapid.IntRange(0, 2*len(m.file)).Draw(t, "memory of tiles"))
			r.Share.Tiles, dry.Share.Tiles = NewTileCache(bound), NewTileCounter(bound)
		}
		for range 3 {
			box := chunk.Box{B1: x.Bands, Y0: rapid.IntRange(0, x.Height-1).Draw(t, "y"),
				X0: rapid.IntRange(0, x.Width-1).Draw(t, "x")}
			box.Y1 = rapid.IntRange(box.Y0+1, x.Height).Draw(t, "down")
			box.X1 = rapid.IntRange(box.X0+1, x.Width).Draw(t, "right")
			bands := []int{rapid.IntRange(0, x.Bands-1).Draw(t, "band")}
			opener.ranges, dry.Reads = nil, Reads{}
			if err := r.Read(t.Context(), m.asset, box, bands, Nowhere{}, Nowhere{}); err != nil {
				t.Fatal(err)
			}
			if err := dry.Read(t.Context(), m.asset, box, bands, Nowhere{}, Nowhere{}); err != nil {
				t.Fatal(err)
			}
			checkRuns(t, dry, opener.ranges, header)
			want := slowChunks(x, box, bands, false)
			switch mask := x.Masking(); {
			case mask == x && x.ChunkB == 1: // alpha lies in other chunks
				want = append(want, slowChunks(x, box, []int{x.Bands - 1}, false)...)
			case mask != nil && mask != x:
				if mask.Bands == 1 {
					bands = []int{0}
				}
				want = append(want, slowChunks(mask, box, bands, true)...)
			}
			if !shares {
				checkChunks(t, dry.Chunks, want)
			}
		}
	})
}

// checkRuns compares the runs of a dry reader with what a reader has read.
func checkRuns(t *rapid.T, dry *DryReader, ranges []source.Range, header source.Range) {
	got := []source.Range{}
	for _, run := range dry.Runs {
		got = append(got, source.Range{Off: run.Off, Len: run.Len})
		begin, end := run.Off, run.Off+run.Len // without what the header has of its two ends
		has := func(off int64) bool { return header.Off <= off && off < header.Off+header.Len }
		for begin < end && has(begin) {
			begin++
		}
		for begin < end && has(end-1) {
			end--
		}
		if requests := min(end-begin, 1); run.InMemory != run.Len-(end-begin) || run.Requests != requests || !run.Held {
			t.Fatalf("%+v with a header of %+v: %d bytes are to be read", run, header, end-begin)
		}
	}
	if !slices.Equal(got, ranges) || dry.Loose {
		t.Fatalf("%+v, loose %v; read %+v", got, dry.Loose, ranges)
	}
}

// checkChunks compares chunks in any order.
func checkChunks(t *rapid.T, got, want []ReadChunk) {
	order := func(a, b ReadChunk) int { return cmp.Or(cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Off, b.Off)) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Fatalf("chunks %+v\nwant %+v", got, want)
	}
}
