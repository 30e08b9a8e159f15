package tiff

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// careless is a line of testdata/tiffs/manifest.jsonl: a file that careful writers avoid, and its
// pixels as GDAL or tifffile reads them, or why it is refused.
type careless struct {
	Path    string
	Shape   []int
	DType   string
	SHA256  string
	Chain   string // kind of the fault that ends the chain of directories
	Refused string // kind of the fault that the file is refused for
}

func TestCarelessWriters(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "tiffs")
	rows := corpus.Rows[careless](t, dir)
	if len(rows) < 30 {
		t.Fatalf("%d files", len(rows))
	}
	for _, f := range rows {
		t.Run(f.Path, func(t *testing.T) {
			b := testfile.Read(t, filepath.Join(dir, f.Path))
			img, pix, err := decode(b)
			if f.Refused != "" {
				if k := fault.KindOf(err); k == 0 || k.Error() != f.Refused {
					t.Errorf("%v, want %s", err, f.Refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkPixels(t, img.Index, pix, f.Shape, f.DType, f.SHA256)
			chain := ""
			if k := fault.KindOf(img.Meta.ChainErr); k != 0 {
				chain = k.Error()
			}
			if chain != f.Chain {
				t.Errorf("the chain ends with %v, want %q", img.Meta.ChainErr, f.Chain)
			}
			y, err := blob.Parse(blob.Append(nil, img.Index), 64<<20)
			if err != nil || !slices.Equal(img.Index.Ranges, y.Ranges) {
				t.Errorf("the blob: %v", err)
			}
		})
	}
}

// TestCutRaw: cut into pieces, an image has the samples that it has as a whole, and every piece
// holds its own rows.
func TestCutRaw(t *testing.T) {
	for name, x := range map[string]*chunk.Index{
		"one strip": {
			Bands: 3, Height: 9_000, Width: 4_001, ChunkB: 3,
			ChunkH: 9_000, ChunkW: 4_001, Inner: chunk.YXB, CutEdge: true,
		},
		"strips of 5000": {
			Bands: 1, Height: 17_001, Width: 20_001, ChunkB: 1, ChunkH: 5000, ChunkW: 20_001, CutEdge: true,
		},
		"strips of a prime": {
			Bands: 2, Height: 20_000, Width: 10_000, ChunkB: 1, ChunkH: 7919, ChunkW: 10_000, CutEdge: true,
		},
		"tiles": {Bands: 1, Height: 9_000, Width: 9_000, ChunkB: 1, ChunkH: 8_192, ChunkW: 8_208},
	} {
		t.Run(name, func(t *testing.T) { checkCut(t, x) })
	}
}

func checkCut(t *testing.T, x *chunk.Index) {
	x.DType, x.Predictor = chunk.Uint8, chunk.NoPredictor
	x.Ranges = make([]chunk.Range, x.Across()*x.Down()*x.Groups())
	size := int64(1000)
	for i := range x.Ranges {
		if i == 1 {
			continue // sparse
		}
		x.Ranges[i] = chunk.Range{Off: size, Len: int64(x.DecodedBytes(i))}
		size += x.Ranges[i].Len
	}
	cut := *x
	cutRaw(&cut, size)
	if err := cut.Validate(size, pieceBytes); err != nil {
		t.Fatal(err)
	}
	if cut.ChunkH >= x.ChunkH || cut.Width != x.Width || cut.Height != x.Height {
		t.Fatalf("chunks of %d rows", cut.ChunkH)
	}
	// The place of the first sample of a row in a chunk column, in both images.
	at := func(x *chunk.Index, y, col, group int) int64 {
		i := (y/x.ChunkH*x.Across()+col)*x.Groups() + group
		if x.Ranges[i].Len == 0 {
			return -1
		}
		_, h, _ := x.DecodedShape(i)
		off := int64(y%x.ChunkH) * int64(x.DecodedBytes(i)/h)
		if off >= x.Ranges[i].Len {
			return -2
		}
		return x.Ranges[i].Off + off
	}
	for y := range x.Height {
		for col := range x.Across() {
			for g := range x.Groups() {
				if a, b := at(x, y, col, g), at(&cut, y, col, g); a != b {
					t.Fatalf("row %d, column %d, group %d lies at %d, not at %d", y, col, g, b, a)
				}
			}
		}
	}
}

// TestCutRawOfMissingChunks: an image whose chunks are not in the file is never cut, because the
// pieces would take memory.
func TestCutRawOfMissingChunks(t *testing.T) {
	for name, ranges := range map[string][]chunk.Range{
		"sparse":  make([]chunk.Range, 1),
		"cut off": {{Off: 8, Len: 1 << 50}},
	} {
		x := &chunk.Index{
			Bands: 1, Height: chunk.MaxSide, Width: 1 << 20, ChunkB: 1, ChunkH: chunk.MaxSide,
			ChunkW: 1 << 20, CutEdge: true, DType: chunk.Uint8, Predictor: chunk.NoPredictor, Ranges: ranges,
		}
		if n := corpus.Allocated(func() { cutRaw(x, 1000) }); n > 1<<20 || len(x.Ranges) != 1 {
			t.Errorf("%s: %d bytes allocated for %d pieces", name, n, len(x.Ranges))
		}
	}
}

// TestSmallRawChunksStay: indexes in old catalogs do not change.
func TestSmallRawChunksStay(t *testing.T) {
	x := &chunk.Index{
		Bands: 1, Height: 8192, Width: 8192, ChunkB: 1, ChunkH: 8192, ChunkW: 8192, CutEdge: true,
		DType: chunk.Uint8, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 8, Len: cutAbove}},
	}
	before := blob.Append(nil, x)
	if cutRaw(x, cutAbove+8); !bytes.Equal(before, blob.Append(nil, x)) {
		t.Errorf("%d chunks", len(x.Ranges))
	}
}

// checkPixels compares an image and its pixels, (b, y, x), with what a manifest says of them.
func checkPixels(t *testing.T, x *chunk.Index, pix []byte, shape []int, dtype, sum string) {
	t.Helper()
	if got := []int{x.Bands, x.Height, x.Width}; !slices.Equal(got, shape) || x.DType.String() != dtype {
		t.Errorf("%v %v, want %v %s", got, x.DType, shape, dtype)
	}
	if got := corpus.SHA256(pix); got != sum {
		t.Errorf("sha256 %s, want %s", got, sum)
	}
}
