package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestCommandsOnPieces: cat, stats, verify and convert say the same about files whose chunks are decoded in pieces as
// about those whose chunks are decoded whole. The files have every codec, masks, and bands in planes.
func TestCommandsOnPieces(t *testing.T) {
	var files []string
	for _, folder := range []string{"masks", "raster/tog", "tiffs"} {
		some, err := filepath.Glob(filepath.Join(corpus.Testdata(t), folder, "*.tif"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	codecs := map[chunk.Codec]int{}
	masks := 0
	for _, path := range files {
		b := testfile.Read(t, path)
		img, err := tiff.Open(t.Context(), &corpus.Mem{B: b}, tiff.Limits{})
		if err != nil {
			continue
		}
		x := img.Index
		row := *x
		row.ChunkH, row.CutEdge = 1, true
		// Room for a row, and for a few of the mask.
		most := max(row.MaxDecodedBytes(), 4*x.Width*x.Bands)
		pieces := x.InPieces(most)
		if pieces == nil {
			continue
		}
		codecs[x.Codec]++
		if race.Enabled && codecs[x.Codec] > 2 {
			continue // chunks of a codec are decoded by the same goroutines
		}
		if strings.Contains(path, "masks") {
			masks++
		}
		made := filepath.Join(t.TempDir(), "made.tif")
		for _, args := range [][]string{
			{"cat"}, {"verify"}, {"stats"}, {"convert", "--to", "tog", "--overwrite", "-o", made},
		} {
			if args[0] == "stats" && pieces.ChunkH*x.Width*x.Bands > most {
				continue // the mask of the rows of a piece is over the limit
			}
			args = append(args, path)
			want := chaski(t.Context(), args...)
			wantMade, _ := os.ReadFile(made)
			got := chaski(t.Context(), append(args, "--max-chunk", strconv.Itoa(most))...)
			gotMade, _ := os.ReadFile(made)
			if want.code != 0 || want != got || string(wantMade) != string(gotMade) {
				t.Errorf("%v: whole %+v, in pieces %+v", args, want, got)
			}
		}
	}
	if codecs[chunk.Zstd] == 0 || codecs[chunk.Deflate] == 0 || codecs[chunk.LZW] == 0 || masks == 0 {
		t.Errorf("files by codec: %v; with masks: %d", codecs, masks)
	}
}
