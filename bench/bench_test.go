package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		rounds           []float64
		min, median, max float64
	}{{[]float64{3}, 3, 3, 3}, {[]float64{3, 1, 2}, 1, 2, 3}, {[]float64{4, 1, 3, 2}, 1, 2.5, 4}} {
		f := newFigure("x", "u", c.rounds)
		if f.Min != c.min || f.Median != c.median || f.Max != c.max || f.Rounds[0] != c.rounds[0] {
			t.Errorf("%v: %+v", c.rounds, f)
		}
	}
}

// raster returns the valid files of testdata that can be read.
func raster(t *testing.T) []corpus.File {
	t.Helper()
	var files []corpus.File
	for _, f := range corpus.Manifest(t, filepath.Join(corpus.Testdata(t), "raster")) {
		if (f.Kind == "tiff" || f.Kind == "rumi") && !f.MayRefuse() {
			files = append(files, f)
		}
	}
	return files
}

// TestDecodeDoesTheWork: a measurement yields the whole image as the original readers have it.
func TestDecodeDoesTheWork(t *testing.T) {
	for _, f := range raster(t) {
		path := filepath.Join(f.Dir, f.Path)
		if got := corpus.SHA256(decoded(t, path)); got != f.SHA256 {
			t.Errorf("%s: %s, want %s", f.Path, got, f.SHA256)
		}
	}
}

func decoded(t *testing.T, path string) []byte {
	t.Helper()
	d := newDecodeRun([]string{path}, DecodeOptions{}.withDefaults())
	defer d.files.Close()
	if err := d.warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d.workers[0].row.Dst.Data
}

func TestDecodeReports(t *testing.T) {
	f := raster(t)[0]
	path := filepath.Join(f.Dir, f.Path)
	for _, opened := range []bool{false, true} {
		done := 0
		r, err := Decode(t.Context(), []string{path, path}, DecodeOptions{
			Opened: opened, Workers: 2, Rounds: Rounds{3, 10 * time.Millisecond, func(d, _ int) { done = d }},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkReport(t, r, 3)
		checkStages(t, r)
		if done != 3 {
			t.Errorf("progress ended at %d", done)
		}
	}
}

// checkReport requires figures that are positive, ordered and complete, and settings and machine.
func checkReport(t *testing.T, r *Report, rounds int) {
	t.Helper()
	for _, f := range r.Figures {
		if len(f.Rounds) != rounds && len(f.Rounds) != 1 || !(f.Min <= f.Median && f.Median <= f.Max) || f.Min < 0 ||
			f.Max == 0 && f.Unit != "a chunk" {
			t.Errorf("%s: %+v", r.Workload, f)
		}
	}
	if r.Machine.CPU == "" || r.Machine.Cores < 1 || r.Machine.Go == "" || r.Machine.Zstd == "" || len(r.Settings) < 4 {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{r.Machine.CPU, "rounds", r.Settings[0].Value, r.Figures[0].Unit} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}

// checkStages requires every stage, and times that add up to the whole.
func checkStages(t *testing.T, r *Report) {
	t.Helper()
	share := 0.0
	for i, stage := range resources.AllStages() {
		if i >= len(r.Stages) || r.Stages[i].Stage != stage.String() || r.Stages[i].Seconds < 0 {
			t.Fatalf("%s: stages %+v", r.Workload, r.Stages)
		}
		share += r.Stages[i].Share
	}
	if math.Abs(share-1) > 1e-5 ||
		r.Stages[resources.StageDecode].Seconds == 0 && r.Stages[resources.StagePredictor].Seconds == 0 {
		t.Errorf("%s: stages %+v", r.Workload, r.Stages)
	}
}

// TestDecodeFrames: loose frames are decoded, of one output into memory of a size that is reused, and counted by the
// bytes of all their outputs.
func TestDecodeFrames(t *testing.T) {
	samples := bytes.Repeat([]byte{1, 2, 3, 4}, 2048)
	one, err := openzl.Store(nil, samples, 2)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "one.zl")
	testfile.Write(t, path, one)
	several := filepath.Join(corpus.Testdata(t), "openzl", "multi-concat-struct.zl")
	for _, opened := range []bool{false, true} {
		d := newDecodeRun([]string{path, several}, DecodeOptions{Opened: opened}.withDefaults())
		w := d.workers[0]
		if err := d.warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := w.file(t.Context(), 0)
		if err != nil || n != int64(len(samples)) || !bytes.Equal(w.frames[:n], samples) {
			t.Errorf("opened %v: %d bytes, %v", opened, n, err)
		}
		if n, err := w.file(t.Context(), 1); err != nil || n <= 0 {
			t.Errorf("opened %v: %d bytes, %v", opened, n, err)
		}
		d.files.Close()
	}
	testfile.Write(t, path, []byte("no frame"))
	if _, err := Decode(t.Context(), []string{path}, DecodeOptions{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("no frame: %v", err)
	}
	if _, err := Decode(t.Context(), []string{several}, DecodeOptions{MaxChunk: 9}); !errors.Is(err, fault.Limit) {
		t.Errorf("limit: %v", err)
	}
}

func TestDecodeErrors(t *testing.T) {
	f := raster(t)[0]
	if _, err := Decode(t.Context(), nil, DecodeOptions{}); err == nil {
		t.Error("no files: no error")
	}
	if _, err := Decode(t.Context(), []string{"none.tif"}, DecodeOptions{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Decode(ctx, []string{filepath.Join(f.Dir, f.Path)}, DecodeOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// chips makes a dataset of three equal chips.
func chips(t *testing.T) (dir string, f corpus.File) {
	t.Helper()
	for _, f := range raster(t) {
		if !f.TOG || f.Shape[0] < 2 || f.DType != "uint8" {
			continue
		}
		dir := t.TempDir()
		for _, name := range []string{"a.tif", "b.tif", "c.tif"} {
			testfile.Write(t, filepath.Join(dir, name), f.Bytes(t))
		}
		return dir, f
	}
	t.Fatal("no chip")
	return "", f
}

func TestLoadReports(t *testing.T) {
	dir, _ := chips(t)
	spec := loader.Spec{
		Source: dir, BatchSize: 2, Shuffle: true,
		Fields:  []loader.Field{{Name: "image", DType: "float32", Bands: []int{0, 1, 2, 3}}}, // one is alpha
		Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 30, Width: 40},
	}
	r, err := Load(t.Context(), LoadOptions{Spec: spec, Rounds: Rounds{Count: 3, Time: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, r, 3)
	checkStages(t, r)
	figures := map[string]Figure{}
	for _, f := range r.Figures {
		figures[f.Name] = f
	}
	mb, samples := figures["tensors"], figures["samples"]
	if len(mb.Rounds) == 0 || len(mb.Rounds) != len(samples.Rounds) {
		t.Fatalf("%+v", r.Figures)
	}
	// The tensors of a sample have 4 bytes an element; rows of padding do not count.
	_, f := chips(t)
	perSample := float64(f.Shape[0]*30*40*4) / 1e6
	for i := range mb.Rounds {
		if ratio := mb.Rounds[i] / (samples.Rounds[i] * perSample); ratio < 0.999 || ratio > 1.001 {
			t.Errorf("%g MB/s for %g samples/s of %g MB", mb.Rounds[i], samples.Rounds[i], perSample)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	_, err := Load(t.Context(), LoadOptions{
		Spec: loader.Spec{Source: filepath.Join(t.TempDir(), "none"), BatchSize: 1},
	})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("no dataset: %v", err)
	}
}

func TestNormalization(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lists": `{"mean": [10, 20, 30], "std": [2, 0, 5]}`,
		"report": `{"fields": {"image": {"bands": [
			{"count": 9, "mean": 10, "std": 2},
			{"count": 9, "mean": 20, "std": 0},
			{"count": 9, "mean": 30, "std": 5, "max": 7}]}}}`,
	} {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, []byte(text))
		n, err := Normalization(p, &spec.Field{Name: "image", Bands: []int{2, 1}}, "mean_std")
		if err != nil || len(n.Scale) != 2 || n.Scale[0] != 0.2 || n.Offset[0] != -6 || n.Scale[1] != 1 ||
			n.Offset[1] != -20 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
		if n, err := Normalization(p, &spec.Field{Name: "image"}, "mean_std"); err != nil || len(n.Scale) != 3 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
		_, err = Normalization(p, &spec.Field{Name: "image", Bands: []int{3}}, "mean_std")
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s band 3: %v", name, err)
		}
	}
	_, err := Normalization(filepath.Join(dir, "report"), &spec.Field{Name: "mask"}, "mean_std")
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("field: %v", err)
	}
	for _, text := range []string{"", "[]", `{"mean": [1]}`, `{"mean": [1], "std": [1, 2]}`} {
		p := filepath.Join(dir, "bad")
		testfile.Write(t, p, []byte(text))
		if _, err := Normalization(p, &spec.Field{Name: "image"}, "mean_std"); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMachine(t *testing.T) {
	if m := ThisMachine(); m.Cores < 1 || m.GOMAXPROCS < 1 || m.Go == "" || m.OS == "" || m.Arch == "" || m.CPU == "" {
		t.Errorf("%+v", m)
	}
}
