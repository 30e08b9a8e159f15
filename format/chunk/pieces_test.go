package chunk

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// plainStream is a codec that stores bytes as they are, and has a byte 'E' at its end.
type plainStream struct {
	src           *bufio.Reader
	ended, closed *int
}

func (s plainStream) Decompress(dst, src []byte, _ *Tile) error { copy(dst, src); return nil }

func (s plainStream) Stream(src *bufio.Reader, _ int) (Stream, error) {
	return plainStream{src: src, ended: s.ended, closed: s.closed}, nil
}

func (s plainStream) Fill(p []byte) error {
	for i := range p {
		var err error
		if p[i], err = s.src.ReadByte(); err != nil {
			return fault.New(fault.Corrupt, "", "the content ends")
		}
	}
	return nil
}

func (s plainStream) End() error {
	*s.ended++
	if b, err := s.src.ReadByte(); b != 'E' || err != nil {
		return fault.New(fault.Corrupt, "", "no end")
	}
	return nil
}

func (s plainStream) Close() { *s.closed++ }

// drawImage draws an image in chunks that can be cut into rows.
func drawImage(t *rapid.T) *Index {
	side := rapid.IntRange(1, 12)
	x := &Index{
		Bands: rapid.IntRange(1, 3).Draw(t, "bands"), Height: rapid.IntRange(1, 30).Draw(t, "height"),
		Width: rapid.IntRange(1, 30).Draw(t, "width"), ChunkB: 1, ChunkH: side.Draw(t, "chunk rows"),
		ChunkW: side.Draw(t, "chunk columns"), DType: Uint16, Codec: Zstd, Predictor: NoPredictor,
		CutEdge: rapid.Bool().Draw(t, "cut"), CutRight: rapid.Bool().Draw(t, "cut right"),
	}
	if rapid.Bool().Draw(t, "interleaved") {
		x.ChunkB, x.Inner = x.Bands, YXB
	}
	x.Predictor = rapid.SampledFrom([]Predictor{NoPredictor, Horizontal}).Draw(t, "predictor")
	if rapid.IntRange(0, 3).Draw(t, "form") == 0 {
		x.DType, x.Packed, x.Predictor = Uint16, 12, NoPredictor
	}
	x.Ranges = make([]Range, x.Across()*x.Down()*x.Groups())
	for i := range x.Ranges {
		x.Ranges[i].Len = rapid.Int64Range(0, 3).Draw(t, "sparse")
	}
	return x
}

// TestStreamBytes: the codecs that can be decoded in pieces, and no others, hold memory for it.
func TestStreamBytes(t *testing.T) {
	for codec := range numCodecs {
		if codec.Streams() != (codec.StreamBytes(0) > 0) {
			t.Errorf("%v streams: %t, and a stream holds %d bytes", codec, codec.Streams(), codec.StreamBytes(0))
		}
	}
}

// TestPiecesAreRowsOfTheirChunks: pieces are as large as the limit allows, cover each sample of the image once, and
// the piece of a chunk's row has the box of that row.
func TestPiecesAreRowsOfTheirChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawImage(t)
		limit := rapid.IntRange(1, x.MaxDecodedBytes()+1).Draw(t, "limit")
		pieces := x.InPieces(limit)
		height := x.ChunkH
		if x.CutEdge {
			height = min(height, x.Height)
		}
		row := x.MaxDecodedBytes() / height
		if fits, tooWide := x.MaxDecodedBytes() <= limit, row > limit; fits || tooWide {
			if pieces != nil {
				t.Fatalf("%d bytes a chunk and %d a row, at most %d: %+v", x.MaxDecodedBytes(), row, limit, pieces)
			}
			return
		}
		if pieces == nil {
			t.Fatalf("%d bytes a row, at most %d: no pieces", row, limit)
		}
		// The largest number of rows that fit and, where chunks lie below each other, divide theirs.
		want := min(limit/row, x.ChunkH)
		for x.Height > x.ChunkH && x.ChunkH%want != 0 {
			want--
		}
		if pieces.ChunkH != want || pieces.ChunkB != x.ChunkB || pieces.ChunkW != x.ChunkW ||
			pieces.MaxDecodedBytes() > limit || pieces.Ranges != nil {
			t.Fatalf("pieces of %d rows, want %d: %+v", pieces.ChunkH, want, pieces)
		}
		seen := map[int]bool{}
		for i := range x.Ranges {
			box := x.Box(i)
			for y := 0; y < box.Y1-box.Y0; y += want {
				piece := x.Piece(pieces, i, y)
				rows := box
				rows.Y0, rows.Y1 = box.Y0+y, min(box.Y0+y+want, box.Y1)
				if got := pieces.Box(piece); got != rows || seen[piece] {
					t.Fatalf("chunk %d, row %d: piece %d is %+v, want %+v", i, y, piece, got, rows)
				}
				seen[piece] = true
			}
		}
		if all := pieces.Across() * pieces.Down() * pieces.Groups(); len(seen) != all {
			t.Fatalf("%d pieces of %d", len(seen), all)
		}
	})
}

// TestPiecesNeedRows: chunks that are not decoded from their first row to their last are not cut.
func TestPiecesNeedRows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *Index)
		cut    bool
	}{
		"planes of one band":   {func(*Index) {}, true},
		"several planes":       {func(x *Index) { x.ChunkB = 3 }, false},
		"pixels":               {func(x *Index) { x.ChunkB, x.Inner = 3, YXB }, true},
		"pixels of steps":      {func(x *Index) { x.ChunkB, x.Inner = 3, YXBT }, true},
		"a band of steps":      {func(x *Index) { x.ChunkB, x.Inner = 3, BYXT }, false},
		"blocks":               {func(x *Index) { x.Blocks = &Blocks{} }, false},
		"bits reversed":        {func(x *Index) { x.Reversed = true }, false},
		"a codec of images":    {func(x *Index) { x.Codec = JPEG }, false},
		"a codec without rows": {func(x *Index) { x.Codec = LZMA }, false},
		"no compression":       {func(x *Index) { x.Codec = Raw }, false},
		"a codec of bytes":     {func(x *Index) { x.Codec = LZW }, true},
		"chunks beyond an int": {
			func(x *Index) { x.ChunkH, x.ChunkW, x.DType = math.MaxInt32, math.MaxInt32, Complex128 }, false,
		},
	} {
		x := &Index{Bands: 3, Height: 100, Width: 10, ChunkB: 1, ChunkH: 50, ChunkW: 10, DType: Uint8, Codec: Zstd}
		c.change(x)
		if got := x.InPieces(60); (got != nil) != c.cut {
			t.Errorf("%s: pieces %+v", name, got)
		}
	}
	// A piece has at most 4 MiB, or one row, however much is allowed.
	for width, rows := range map[int]int{1: 4 << 20, 1 << 20: 4, 3 << 20: 1, 4 << 20: 1, 5 << 20: 1} {
		x := &Index{Bands: 1, Height: 8 << 20, Width: width, ChunkB: 1, ChunkH: 8 << 20, ChunkW: width, DType: Uint8,
			Codec: Zstd}
		if pieces := x.InPieces(7 << 20); pieces == nil || pieces.ChunkH != rows {
			t.Errorf("a row of %d bytes: pieces %+v", width, pieces)
		}
	}
}

// TestRowsAgainstDecode: whatever is read of the rows of a chunk and skipped, in order, is what Decode gives of the
// whole chunk. The end of the content is checked once, after the last row.
func TestRowsAgainstDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawImage(t)
		nodata := 7.0
		x.NoData = &nodata
		i := rapid.IntRange(0, len(x.Ranges)-1).Draw(t, "chunk")
		_, height, _ := x.DecodedShape(i)
		var ended, closed, decompressed int
		d := NewDecoder(Codecs{Zstd: func() Decompressor { return plainStream{nil, &ended, &closed} }})
		var src []byte
		if x.Ranges[i].Len > 0 {
			src = rapid.SliceOfN(rapid.Byte(), x.DecodedBytes(i), x.DecodedBytes(i)).Draw(t, "content")
			if b, h, w := x.DecodedShape(i); x.Packed != 0 {
				src = src[:h*((b*w*x.Packed+7)/8)]
			}
		}
		whole := make([]byte, x.DecodedBytes(i))
		if err := d.Decode(whole, src, x, i); err != nil {
			t.Fatal(err)
		}
		d.Decompressed = func() { decompressed++ }
		rows, err := d.Rows(bufio.NewReader(bytes.NewReader(append(src, 'E'))), x, i, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		row := len(whole) / height
		if rows.Bytes() != row {
			t.Fatalf("%d bytes a row, not %d", rows.Bytes(), row)
		}
		calls := 0
		for y := 0; y < height; {
			if rows.Left() != height-y {
				t.Fatalf("%d rows left, not %d", rows.Left(), height-y)
			}
			n := rapid.IntRange(0, height-y).Draw(t, "rows")
			if rapid.Bool().Draw(t, "skip") {
				if err := rows.Skip(n); err != nil {
					t.Fatal(err)
				}
			} else {
				got := bytes.Repeat([]byte{0xaa}, n*row)
				if err := rows.Next(got); err != nil {
					t.Fatal(err)
				}
				if calls++; !bytes.Equal(got, whole[y*row:][:n*row]) {
					t.Fatalf("%d rows from %d: %x, want %x", n, y, got, whole[y*row:][:n*row])
				}
			}
			y += n
		}
		if rows.Close(); rows.Left() != 0 {
			t.Fatalf("%d rows left", rows.Left())
		}
		want := [3]int{1, 1, calls}
		if len(src) == 0 { // sparse
			want = [3]int{}
		}
		if got := [3]int{ended, closed, decompressed}; got != want {
			t.Fatalf("ended, closed and decompressed %v times, not %v", got, want)
		}
	})
}

// TestRowsEnd: rows beyond the last one are a mistake of the caller. Content that ends early, or goes wrong at its end,
// is a fault that names the chunk.
func TestRowsEnd(t *testing.T) {
	var ended, closed int
	d := NewDecoder(Codecs{Zstd: func() Decompressor { return plainStream{nil, &ended, &closed} }})
	const row = 40 << 10 // rows that are skipped one at a time
	index := func(stored int64) *Index {
		return &Index{Bands: 1, Height: 9, Width: row, ChunkB: 1, ChunkH: 3, ChunkW: row, DType: Uint8, Codec: Zstd,
			Predictor: NoPredictor, Ranges: []Range{{}, {Len: stored}, {}}}
	}
	open := func(x *Index, src []byte) *Rows {
		rows, err := d.Rows(bufio.NewReader(bytes.NewReader(src)), x, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	content := bytes.Repeat([]byte{1}, 3*row)
	for _, stored := range []int64{0, 1} {
		rows := open(index(stored), append(content, 'E'))
		for name, f := range map[string]func(){
			"a row too many":         func() { _ = rows.Next(make([]byte, 4*row)) },
			"a part of a row":        func() { _ = rows.Next(make([]byte, row+1)) },
			"a row too many to skip": func() { _ = rows.Skip(4) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				f()
			}()
		}
		if err := errors.Join(rows.Skip(3), rows.Next(nil)); err != nil {
			t.Errorf("all rows: %v", err)
		}
	}
	for name, src := range map[string][]byte{
		"cut": content[:3*row-1], "another end": append(content[:3*row:3*row], 'X'), "no end": content,
	} {
		for _, step := range []func(*Rows) error{
			func(r *Rows) error { return r.Skip(3) }, func(r *Rows) error { return r.Next(make([]byte, 3*row)) },
		} {
			err := step(open(index(1), src))
			if !errors.Is(err, fault.Corrupt) || err.Error()[:8] != "chunk 1:" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := NewDecoder(Codecs{}).Rows(nil, index(1), 1, 0); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a codec that the program lacks: %v", err)
	}
}

// mostStream decodes nothing, and keeps how many bytes it is asked for at once, and in all.
type mostStream struct{ most, all *int }

func (s mostStream) Decompress([]byte, []byte, *Tile) error    { return nil }
func (s mostStream) Stream(*bufio.Reader, int) (Stream, error) { return s, nil }
func (s mostStream) End() error                                { return nil }
func (s mostStream) Close()                                    {}
func (s mostStream) Fill(p []byte) error {
	*s.most, *s.all = max(*s.most, len(p)), *s.all+len(p)
	return nil
}

// TestSkippedRowsNeedLittleMemory: rows that are passed over are decoded into 64 KiB, or one by one if they are longer.
func TestSkippedRowsNeedLittleMemory(t *testing.T) {
	for _, width := range []int{1, 1000, 1 << 15, 1<<15 + 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		for _, skipped := range []int{1, 3, 64, 1000} {
			var most, all int
			d := NewDecoder(Codecs{Zstd: func() Decompressor { return mostStream{&most, &all} }})
			x := &Index{Bands: 1, Height: 1 << 12, Width: width, ChunkB: 1, ChunkH: 1 << 12, ChunkW: width,
				DType: Uint8, Codec: Zstd, Predictor: NoPredictor, Ranges: []Range{{Len: 1}}}
			rows, err := d.Rows(nil, x, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := rows.Skip(skipped); err != nil || all != skipped*width || rows.Left() != 1<<12-skipped {
				t.Errorf("%d rows of %d bytes: %d bytes are decoded, %v", skipped, width, all, err)
			}
			if at := max(1, 1<<16/width); most != min(at, skipped)*width {
				t.Errorf("%d rows of %d bytes: %d bytes at a time, want %d rows", skipped, width, most,
					min(at, skipped))
			}
		}
	}
}
