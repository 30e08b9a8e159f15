package containers_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/raster"
	specpkg "github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// Samples of testdata/taco3 have 1, 2, 3, 1 … files seq/t0.tif …, each of two bands of 12 by 14 uint16.
const (
	seqBands, seqHeight, seqWidth = 2, 12, 14
	seqPixels                     = seqBands * seqHeight * seqWidth
)

// seqFile returns the pixels of a file of a sequence, read by its own name, or nil if the sample lacks it.
func seqFile(t *testing.T, source, id string, k int) []uint16 {
	t.Helper()
	a, err := raster.Read(t.Context(), []string{fmt.Sprintf("%s::%s/seq/t%d.tif", source, id, k)}, raster.ReadOptions{})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return uint16s(a.Data)
}

func uint16s(b []byte) []uint16 {
	out := make([]uint16, len(b)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return out
}

// texts returns the strings of a tensor.
func texts(t batch.Tensor) (out []string) {
	for i := 0; i+16 <= len(t.Offsets); i += 8 {
		lo, hi := binary.LittleEndian.Uint64(t.Offsets[i:]), binary.LittleEndian.Uint64(t.Offsets[i+8:])
		out = append(out, string(t.Data[lo:hi]))
	}
	return out
}

// TestFilesAreSteps promises that a field that names a sequence of files has an axis t with all of them, or those that
// times picks, in their order; that what a sample lacks is padding; and that "steps" says so. Files that are read by
// their own names are the judge.
func TestFilesAreSteps(t *testing.T) {
	race.SkipCovered(t)
	taco3 := filepath.Join(corpus.Testdata(t), "taco3")
	for _, source := range []string{"scenes.zip", "scenes", "parts/.tacocat"} {
		for _, column := range []string{"seq/t", "seq/t*.tif", "seq/t*[1,3].tif"} {
			for _, times := range [][]int{nil, {2, 0, 2}, {1}} {
				t.Run(fmt.Sprint(source, column, times), func(t *testing.T) {
					checkSteps(t, filepath.Join(taco3, source), column, times)
				})
			}
		}
	}
}

func checkSteps(t *testing.T, source, column string, times []int) {
	fill := specpkg.Float(7)
	spec := loader.Spec{
		Source: source, BatchSize: 4, Shuffle: true, Seed: 3, Windows: true,
		Fields: []loader.Field{
			{Name: "seq", Column: column, Times: times, Fill: &fill, Validity: "seq_valid"}, {Name: "id"},
		},
		Sampler: loader.Sampler{Kind: specpkg.RandomWindow, Height: 5, Width: 6},
	}
	b := first(t, mustOpen(t, spec, loader.Options{}))
	picks := times
	if picks == nil {
		picks = []int{0, 1, 2}
	}
	n, rows := len(picks), int64(4) // of the directory, which has two samples, two rows are padding
	seq, steps := b.Tensor("seq"), b.Tensor("steps")
	if got, want := fmt.Sprint(seq.Axes, seq.Shape, steps.Axes, steps.Shape), fmt.Sprint(
		[]string{"n", "t", "b", "y", "x"}, []int64{rows, int64(n), seqBands, 5, 6}, []string{"n", "t"},
		[]int64{rows, int64(n)}); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	pixels, windows := uint16s(seq.Data), b.Tensor("window").Data
	for i, id := range texts(*b.Tensor("id")) {
		if !b.Valid[i] {
			if bytes.Contains(steps.Data[i*n:(i+1)*n], []byte{1}) {
				t.Errorf("row %d is padding, and its steps exist", i)
			}
			continue
		}
		y0 := int(binary.LittleEndian.Uint64(windows[32*i:]))
		x0 := int(binary.LittleEndian.Uint64(windows[32*i+8:]))
		for k, number := range picks {
			file := seqFile(t, source, id, number)
			if got, want := steps.Data[i*n+k] == 1, file != nil; got != want {
				t.Errorf("%s, file %d: step is %v, want %v", id, number, got, want)
			}
			for p := range seqBands * 5 * 6 {
				at := (i*n+k)*seqBands*5*6 + p
				want, valid := uint16(fill), byte(0)
				if file != nil {
					want, valid = file[(p/30*seqHeight+y0+p/6%5)*seqWidth+x0+p%6], 1
				}
				if pixels[at] != want || b.Tensor("seq_valid").Data[at] != valid {
					t.Fatalf("%s, file %d, pixel %d: got %d (%d), want %d (%d)", id, number, p, pixels[at],
						b.Tensor("seq_valid").Data[at], want, valid)
				}
			}
		}
	}
}

// damaged returns a copy of testdata/taco3/scenes in which the bytes of a file are others.
func damaged(t *testing.T, file string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scenes")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(corpus.Testdata(t), "taco3", "scenes"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "DATA", file)
	data := testfile.Read(t, path)
	testfile.Write(t, path, bytes.Repeat([]byte("x"), len(data)))
	return dir
}

// TestBadFilesOfSteps promises that a file of a sequence that cannot be read makes its sample bad, or with "fill" its
// step alone, also where it is the first one, and that Check finds it.
func TestBadFilesOfSteps(t *testing.T) {
	for broken := range 3 {
		// The samples have 1 and 3 files.
		source := damaged(t, fmt.Sprintf("1/seq/t%d.tif", broken))
		filled := []byte{1, 0, 0, 1, 1, 1}
		filled[3+broken] = 0
		for policy, want := range map[string]string{
			specpkg.BadError: "",
			specpkg.BadSkip:  fmt.Sprint([]bool{true, false}, []byte{1, 0, 0, 0, 0, 0}),
			specpkg.BadFill:  fmt.Sprint([]bool{true, true}, filled),
		} {
			e := mustOpen(t, loader.Spec{Source: source, BatchSize: 2, BadSamples: policy, Fields: []loader.Field{
				{Name: "seq", Column: "seq/t", DType: "float32"}, {Name: "id"}}}, loader.Options{})
			b, err := e.Start(t.Context(), steps.StepTicket(0, 0, 2, 0, 1), false).Wait(t.Context())
			if policy == specpkg.BadError {
				if fault.KindOf(err) == 0 || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("t%d.tif", broken)) {
					t.Errorf("file %d: %v", broken, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(b.Valid, b.Tensor("steps").Data); got != want || len(b.Bad) != 1 || b.Bad[0].Row != 1 {
				t.Errorf("%s, file %d: got %s, bad %v, want %s", policy, broken, got, b.Bad, want)
			}
			b.Release()
			if r, err := e.Check(t.Context(), loader.CheckOptions{}); err != nil || r.Bad != 1 {
				t.Errorf("Check: %+v, %v", r, err)
			}
		}
	}
}

// TestStepsThatAreNotDeclared promises that a sample is bad whose files are more than taco:structure allows: no file is
// left out.
func TestStepsThatAreNotDeclared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scenes")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(corpus.Testdata(t), "taco3", "scenes"))); err != nil {
		t.Fatal(err)
	}
	about := filepath.Join(dir, "COLLECTION.json")
	data := testfile.Read(t, about)
	data = bytes.ReplaceAll(data, []byte("seq/t*[1,3].tif"), []byte("seq/t*[1,2].tif"))
	testfile.Write(t, about, data)
	spec := loader.Spec{Source: dir, BatchSize: 2, BadSamples: specpkg.BadSkip,
		Fields: []loader.Field{{Name: "seq", Column: "seq/t"}}}
	b := first(t, mustOpen(t, spec, loader.Options{}))
	if len(b.Bad) != 1 || b.Bad[0].Row != 1 || fault.KindOf(b.Bad[0].Err) != fault.NotFound {
		t.Errorf("bad %v", b.Bad)
	}
}

// TestForecastOfSteps promises that a forecast counts the files of a sequence that exist, each with one tile for all
// of its windows.
func TestForecastOfSteps(t *testing.T) {
	spec := loader.Spec{Source: filepath.Join(corpus.Testdata(t), "taco3", "scenes.zip"), BatchSize: 4,
		Fields:  []loader.Field{{Name: "seq", Column: "seq/t"}},
		Sampler: loader.Sampler{Kind: specpkg.TileWindow, Height: 6, Width: 7}}
	f, err := mustOpen(t, spec, loader.Options{}).Forecast(t.Context(), dryrun.Options{World: 1})
	if err != nil {
		t.Fatal(err)
	}
	if windows := f.Samples / 4; f.Total.Chunks != 1+2+3+1 || f.Total.Opens != windows*(1+2+3+1) {
		t.Errorf("%+v: want 7 tiles, and %d windows of 7 rasters", f.Total, windows)
	}
}

// TestStepsThatAreRefused promises an error for what takes one raster of a sample.
func TestStepsThatAreRefused(t *testing.T) {
	source := filepath.Join(corpus.Testdata(t), "taco3", "scenes.zip")
	seq := loader.Field{Name: "seq", Column: "seq/t"}
	with := func(change func(f *loader.Field)) loader.Spec {
		f := seq
		change(&f)
		return loader.Spec{Source: source, BatchSize: 2, Fields: []loader.Field{f}}
	}
	for name, spec := range map[string]loader.Spec{
		"no step 3":      with(func(f *loader.Field) { f.Times = []int{0, 3} }),
		`"steps" is the`: with(func(f *loader.Field) { f.Name = "steps" }),
		"t":              with(func(f *loader.Field) { f.Layout = "n y x b" }),
		"stack":          with(func(f *loader.Field) { f.Column, f.Columns = "", []string{"seq/t", "seq/t0"} }),
		"one raster": {Source: source, BatchSize: 2, Fields: []loader.Field{seq},
			Subset: loader.Subset{Time: &specpkg.Time{Key: "ml:split", Order: "id", Length: 2}}},
	} {
		if _, err := open(t, spec, loader.Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := loader.Options{}
	spec := loader.Spec{Source: source, Fields: []loader.Field{seq}}
	if err := survey.Weights(t.Context(), io.Discard, spec, o, survey.WeightOptions{}, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "one raster") {
		t.Errorf("weights: %v", err)
	}
}
