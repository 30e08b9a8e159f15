package survey_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// rumi3 is a line of the manifest of testdata/raster/rumi-3.
type rumi3 struct {
	Path, DType, Blob, SHA256 string
	Shape                     [4]int // steps of time, bands, height, width
	Bands                     []string
	Frame                     string
	TimeKind                  string `json:"time_kind"`
	Times                     []int64
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
		if r := info.Rumi; r.Generation != 3 || r.Frame != f.Frame || len(r.Times) != len(f.Times) ||
			f.TimeKind != "" && r.TimeKind != f.TimeKind || max(info.Raster.Times, 1) != f.Shape[0] {
			t.Errorf("%s: %+v", f.Path, r)
		}
		for i, s := range info.Rumi.Times {
			form := time.DateOnly
			if len(s) > len(form) {
				form = time.RFC3339
			}
			if at, err := time.Parse(form, s); err != nil || at.Unix() != f.Times[i] {
				t.Errorf("%s: time %d is %s, want %d", f.Path, i, s, f.Times[i])
			}
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

// TestBatchesOfTime: a batch of files with steps of time has the axis t by default, the steps that a field picks
// in their order, and in a sequence the steps of file after file.
func TestBatchesOfTime(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "raster", "rumi-3")
	all, err := raster.Read(t.Context(), []string{filepath.Join(dir, "unit-t-b-y-x-0.rumi")}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plane := func(step, band int) []byte { // of every file, which differ in their units only
		const size = 2 * 20 * 21
		return all.Data[(step*2+band)*size:][:size]
	}
	catalog := filepath.Join(t.TempDir(), "cubes.csv")
	table := "image,site,date\n"
	for i, unit := range "03456789" {
		table += fmt.Sprintf("%s,a,%d\n", filepath.Join(dir, "unit-t-b-y-x-"+string(unit)+".rumi"), i)
	}
	testfile.Write(t, catalog, []byte(table))
	for name, c := range map[string]struct {
		spec  string
		shape string
		rows  int
		at    [][2]int // step and band of each plane of a row
	}{
		"all": {`"fields":[{"name":"image"}]`, "[n t b y x] [8 3 2 20 21]", 8,
			[][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}},
		"some": {`"fields":[{"name":"image","times":[2,0],"bands":[1]}]`, "[n t b y x] [8 2 1 20 21]", 8,
			[][2]int{{2, 1}, {0, 1}}},
		"one step without t": {`"fields":[{"name":"image","times":[1],"layout":"n b y x"}]`,
			"[n b y x] [8 2 20 21]", 8, [][2]int{{1, 0}, {1, 1}}},
		"bands before time": {`"fields":[{"name":"image","layout":"n b t y x","band_names":["último","band 0"]}]`,
			"[n b t y x] [8 2 3 20 21]", 8, [][2]int{{0, 1}, {1, 1}, {2, 1}, {0, 0}, {1, 0}, {2, 0}}},
		"sequences": {`"fields":[{"name":"image","times":[1,2],"bands":[0]}],` +
			`"time":{"key":"site","order":"date","length":2,"stride":2}`, "[n t b y x] [4 4 1 20 21]", 4,
			[][2]int{{1, 0}, {2, 0}, {1, 0}, {2, 0}}},
	} {
		text := fmt.Sprintf(`{"source":%q,"batch_size":%d,%s}`, catalog, c.rows, c.spec)
		spec, err := loader.ParseSpec([]byte(text))
		if err != nil {
			t.Fatal(name, err)
		}
		e, err := loader.Open(t.Context(), spec, loader.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		b, err := e.Start(t.Context(), steps.StepTicket(0, 0, c.rows, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(name, err)
		}
		img := b.Tensors[0]
		if got := fmt.Sprint(img.Axes, img.Shape); got != c.shape {
			t.Errorf("%s: %s, want %s", name, got, c.shape)
		}
		var row []byte
		for _, at := range c.at {
			row = append(row, plane(at[0], at[1])...)
		}
		if !bytes.Equal(img.Data, bytes.Repeat(row, c.rows)) {
			t.Errorf("%s: other samples", name)
		}
		b.Release()
		e.Close()
	}
}
