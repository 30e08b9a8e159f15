package cli

import (
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestViewOfSteps promises that the files of a sequence are drawn side by side, a line for each sample, and that what a
// sample lacks is transparent.
func TestViewOfSteps(t *testing.T) {
	out := filepath.Join(t.TempDir(), "v.png")
	source := filepath.Join(corpus.Testdata(t), "taco3", "scenes.zip")
	if r := chaski(t.Context(), "view", "-o", out, "--field", "seq=seq/t", source); r.code != 0 {
		t.Fatal(r.err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	const height, width, gap = 12, 14, 4
	if b := img.Bounds(); b.Dx() != 3*width+2*gap || b.Dy() != 4*height+3*gap {
		t.Fatalf("the picture is %v", b)
	}
	var files []int // of each line, which are the samples in the order of a run
	for line := range 4 {
		n := 0
		for k := range 3 {
			_, _, _, alpha := img.At(k*(width+gap)+width/2, line*(height+gap)+height/2).RGBA()
			if alpha > 0 {
				n++
			} else if k == 0 {
				t.Errorf("line %d does not begin with a file", line)
			}
		}
		files = append(files, n)
	}
	slices.Sort(files)
	if !slices.Equal(files, []int{1, 1, 2, 3}) {
		t.Errorf("the samples have %v files", files)
	}
}
