package pixels

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
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
		bands, _, width := x.DecodedShape(i)
		if x.Codec == chunk.Raw && (bands == 1 || x.Inner == chunk.YXB) && place.Len > 0 {
			top, row := int64(max(box.Y0-part.Y0, 0)), int64(bands*width*x.DType.Size())
			place = chunk.Range{Off: place.Off + top*row, Len: (int64(min(box.Y1, part.Y1)-part.Y0) - top) * row}
		}
		out = append(out, ReadChunk{Chunk: i, Mask: mask, Off: place.Off, Len: place.Len, Decoded: x.DecodedBytes(i),
			Rows: min(box.Y1, part.Y1) - part.Y0, Held: int64(x.DecodedBytes(i)) + chunk.Spare})
	}
	return out
}

// TestDryReaderAgainstReader: a dry reader notes the ranges that a reader reads, in their order, the chunks that meet
// the window, and the bytes that came with the header, also where chunks are shared.
func TestDryReaderAgainstReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawImage(t, dtypes.Draw(t, "dtype"))
		x := m.asset.Index
		opener := &noted{Opener: m, gap: int64(rapid.IntRange(0, 80).Draw(t, "gap"))}
		o := resources.Options{Opener: opener}.WithDefaults()
		r, dry := NewReader(o), NewDryReader(o)
		dry.Gap = opener.gap
		size := int64(len(m.file))
		header := source.Range{Off: rapid.Int64Range(0, size).Draw(t, "header"), Len: rapid.Int64Range(0,
			size).Draw(t, "of")}
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
			if err := dry.Read(t.Context(), m.asset, box, bands, Nowhere{}); err != nil {
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

// TestUncompressedRowsAreReadAlone: of uncompressed chunks, one beside and below another, only the rows of a window are
// read.
func TestUncompressedRowsAreReadAlone(t *testing.T) {
	x := &chunk.Index{Bands: 1, Height: 40, Width: 16, ChunkB: 1, ChunkH: 20, ChunkW: 8, DType: chunk.Uint16,
		Ranges: []chunk.Range{{Off: 0, Len: 320}, {Off: 320, Len: 320}, {Off: 640, Len: 320}, {Off: 960, Len: 320}}}
	opener := &noted{Opener: folder.OneFile(make([]byte, 1280))}
	box := chunk.Box{B1: 1, Y0: 18, Y1: 23, X0: 9, X1: 11}
	r := NewReader(resources.Options{Opener: opener}.WithDefaults())
	if err := r.Read(t.Context(), catalog.Asset{URI: "f", Index: x}, box, nil, Nowhere{}, nil); err != nil {
		t.Fatal(err)
	}
	// A row of a chunk is 8 numbers of 2 bytes: rows 18 and 19 of chunk 1, and rows 0 to 2 of chunk 3.
	want := []source.Range{{Off: 320 + 18*16, Len: 2 * 16}, {Off: 960, Len: 3 * 16}}
	if !slices.Equal(opener.ranges, want) {
		t.Errorf("read %+v, want %+v", opener.ranges, want)
	}
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

// plannedArray is an array whose reads are known.
type plannedArray struct {
	memoryArray
	held  int64
	exact bool
}

func (a plannedArray) Plan() chunk.BlockPlan { return a }

func (a plannedArray) Held() int64 { return a.held }

func (a plannedArray) PlanBox(_ context.Context, image int64, b chunk.Box, read func(string, int64, int64)) (bool,
	error) {
	read("tile", image, int64(b.Y1-b.Y0))
	return a.exact, nil
}

// aheadArray is a plannedArray whose boxes are announced.
type aheadArray struct {
	plannedArray
	asked *[]chunk.Box
	err   error
}

func (a aheadArray) Plan() chunk.BlockPlan { return a }

func (a aheadArray) Ahead(_ context.Context, image int64, boxes []chunk.Box) error {
	if *a.asked = append(*a.asked, boxes...); image != 7 {
		return errRead
	}
	return a.err
}

// TestDryReaderAsksAhead: a dry reader announces the boxes of an array to its plan, and fails as that does.
func TestDryReaderAsksAhead(t *testing.T) {
	x := small(chunk.Uint8, 0)
	for _, failure := range []error{nil, errRead} {
		var asked []chunk.Box
		array := aheadArray{plannedArray{memoryArray{&image{}}, 1, true}, &asked, failure}
		dry := NewDryReader(resources.Options{}.WithDefaults())
		index := x.WithBlocks(chunk.Blocks{Array: array, Image: 7})
		err := dry.Read(t.Context(), catalog.Asset{Index: index}, chunk.Box{B1: 3, Y0: 1, Y1: 3, X1: 2}, []int{2},
			nil)
		want := []chunk.Box{{B0: 2, B1: 3, Y0: 1, Y1: 3, X1: 4}}
		if !errors.Is(err, failure) || !slices.Equal(asked, want) || (len(dry.Runs) > 0) != (failure == nil) {
			t.Errorf("asked for %+v, %+v: %v", asked, dry.Runs, err)
		}
	}
}

// TestDryReaderOfArrays: a dry reader notes the reads that arrays plan, their memory together, and whether they may be
// fewer.
func TestDryReaderOfArrays(t *testing.T) {
	x := small(chunk.Uint8, 0)
	box := chunk.Box{B1: 3, Y0: 1, Y1: 3, X1: 2}
	dry := NewDryReader(resources.Options{}.WithDefaults())
	total := int64(0)
	for i, exact := range []bool{true, true, false} {
		total += int64(i + 1)
		index := x.WithBlocks(chunk.Blocks{Array: plannedArray{memoryArray{&image{}}, int64(i + 1), exact}, Image: 7})
		dry.Reads = Reads{}
		if err := dry.Read(t.Context(), catalog.Asset{Index: index}, box, []int{2}, nil); err != nil {
			t.Fatal(err)
		}
		want := []ReadRange{{File: "tile", Off: 7, Len: 2, Requests: 1}}
		chunks := []ReadChunk{{Chunk: 2, Decoded: 16, Held: 16 + chunk.Spare}}
		if !slices.Equal(dry.Runs, want) || !slices.Equal(dry.Chunks, chunks) || dry.Held != total ||
			dry.Loose == exact {
			t.Errorf("%+v, %d bytes held", dry.Reads, dry.Held)
		}
	}
	dry.Reads = Reads{}
	index := x.WithBlocks(chunk.Blocks{Array: memoryArray{&image{}}})
	err := dry.Read(t.Context(), catalog.Asset{Index: index}, box, []int{2}, nil)
	if err != nil || len(dry.Runs) > 0 || !dry.Loose || dry.Held != total {
		t.Errorf("an array without a plan: %v, %+v", err, dry.Reads)
	}
}

// TestDryReaderOfPieces: of a chunk that is decoded in pieces the whole range is read, and the rows above the end of
// the window are decoded. It may read less if it takes several reads.
func TestDryReaderOfPieces(t *testing.T) {
	for _, stored := range []int64{0, 1, MaxRun, MaxRun + 1, 3 * MaxRun} {
		x := &chunk.Index{Bands: 1, Height: 100, Width: 10, ChunkB: 1, ChunkH: 100, ChunkW: 10, DType: chunk.Uint16,
			Codec: chunk.Deflate, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 5, Len: stored}}}
		dry := NewDryReader(resources.Options{MaxChunkBytes: 200}.WithDefaults())
		box := chunk.Box{B1: 1, Y0: 3, Y1: 40, X1: 2}
		if err := dry.Read(t.Context(), catalog.Asset{Index: x}, box, nil, nil); err != nil {
			t.Fatal(err)
		}
		var runs []ReadRange
		requests := int64(0)
		for rest := stored; rest > 0; rest -= MaxRun {
			requests++
		}
		if stored > 0 {
			runs = []ReadRange{{Off: 5, Len: stored, Requests: requests}}
		}
		chunks := []ReadChunk{{Off: 5, Len: stored, Decoded: 40 * 10 * 2, Held: pieceBytes(x, x.InPieces(200))}}
		if !slices.Equal(dry.Runs, runs) || !slices.Equal(dry.Chunks, chunks) || dry.Loose != (requests > 1) {
			t.Errorf("%d stored bytes: %+v", stored, dry.Reads)
		}
	}
}

// TestDryReaderOfAnUnknownLink: reads are loose where another gap than the least joins more chunks.
func TestDryReaderOfAnUnknownLink(t *testing.T) {
	for gap, loose := range map[int64]bool{0: false, source.MinGap: false, source.MinGap + 1: true, source.MaxGap: true,
		source.MaxGap + 1: false} {
		x := &chunk.Index{Bands: 1, Height: 2, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: chunk.Uint8,
			Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 0, Len: 1}, {Off: 1 + gap, Len: 1}}}
		for _, measured := range []bool{false, true} {
			dry := NewDryReader(resources.Options{}.WithDefaults())
			dry.Measured = measured
			err := dry.Read(t.Context(), catalog.Asset{Index: x}, chunk.Box{B1: 1, Y1: 2, X1: 1}, nil, nil)
			if err != nil || dry.Loose != (measured && loose) {
				t.Errorf("a gap of %d bytes, measured %v: loose %v, %v", gap, measured, dry.Loose, err)
			}
		}
	}
}
