package loader_test

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// rumi3 is a line of the manifest of testdata/raster/rumi-3.
type rumi3 struct {
	Path, DType, Blob, SHA256 string
	Shape                     [4]int // steps of time, bands, height, width
	Bands                     []string
}

func (f *rumi3) path(t *testing.T) string {
	return filepath.Join(corpus.Testdata(t), "raster", "rumi-3", f.Path)
}

func rumi3s(t *testing.T) []rumi3 {
	t.Helper()
	return corpus.Rows[rumi3](t, filepath.Join(corpus.Testdata(t), "raster", "rumi-3"))
}

// TestRumi3: files of generation 3 are recognised and described, and read from the file's own header and with
// the original writer's.
func TestRumi3(t *testing.T) {
	for _, f := range rumi3s(t) {
		path := f.path(t)
		info, err := survey.Inspect(t.Context(), path, loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if info.Kind != survey.KindRumi || info.Unreadable != "" || !slices.Equal(info.TIFF.BandNames, f.Bands) {
			t.Errorf("%s: %+v, %+v", f.Path, info, info.TIFF)
		}
		blob, err := hex.DecodeString(f.Blob)
		if err != nil {
			t.Fatal(err)
		}
		for _, headers := range [][][]byte{nil, {blob}} {
			got, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{
				Layout: "t b y x", Headers: headers, Threads: 3,
			})
			if err != nil {
				t.Fatal(f.Path, err)
			}
			if !slices.Equal(got.Shape, f.Shape[:]) || corpus.SHA256(got.Data) != f.SHA256 {
				t.Errorf("%s: %v %s, want %v %s, or other samples", f.Path, got.Shape, got.DType, f.Shape, f.DType)
			}
		}
	}
}

// TestReadOfTime: steps of time, bands and windows of every frame unit, in any order of axes, are those of the
// whole image.
func TestReadOfTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	list := func(n int) (raster.Selection, []int) {
		out := make([]int, 1+r.IntN(4))
		for i := range out {
			out[i] = r.IntN(n)
		}
		return raster.Selection{List: out}, out
	}
	for _, f := range rumi3s(t) {
		if !strings.HasPrefix(f.Path, "unit-") {
			continue
		}
		all, err := raster.Read(t.Context(), []string{f.path(t)}, raster.ReadOptions{Layout: "t b y x"})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			o := raster.ReadOptions{Threads: 1 + r.IntN(3)}
			var at [4][]int
			o.T, at[0] = list(f.Shape[0])
			o.B, at[1] = list(f.Shape[1])
			for k, sel := range []*raster.Selection{&o.Y, &o.X} {
				n := f.Shape[2+k]
				start := r.IntN(n)
				*sel = raster.Selection{Slice: true, Start: start, Stop: start + 1 + r.IntN(n-start)}
				for i := start; i < sel.Stop; i++ {
					at[2+k] = append(at[2+k], i)
				}
			}
			order := r.Perm(4)
			names := make([]string, 4)
			for i, k := range order {
				names[i] = "tbyx"[k : k+1]
			}
			o.Layout = strings.Join(names, " ")
			got, err := raster.Read(t.Context(), []string{f.path(t)}, o)
			if err != nil {
				t.Fatal(f.Path, o, err)
			}
			var want []byte
			var walk func(depth int, idx [4]int)
			walk = func(depth int, idx [4]int) {
				if depth == 4 {
					k := ((idx[0]*f.Shape[1]+idx[1])*f.Shape[2]+idx[2])*f.Shape[3] + idx[3]
					want = append(want, all.Data[2*k:2*k+2]...)
					return
				}
				for _, v := range at[order[depth]] {
					idx[order[depth]] = v
					walk(depth+1, idx)
				}
			}
			walk(0, [4]int{})
			if !slices.Equal(got.Data, want) {
				t.Errorf("%s: %+v: other samples", f.Path, o)
			}
		}
	}
}
