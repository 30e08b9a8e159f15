package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestShapesHaveWholeBatchesAndTiles(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Shapes() {
		if seen[s.Name] {
			t.Errorf("two shapes %s", s.Name)
		}
		seen[s.Name] = true
		for _, s := range []Shape{s, s.Small()} {
			if s.Samples%s.Batch != 0 || s.Samples < 2*s.Batch {
				t.Errorf("%s: %d samples in batches of %d", s.Name, s.Samples, s.Batch)
			}
			if s.Scene == 0 && s.Samples != s.Images {
				t.Errorf("%s: %d samples of %d files", s.Name, s.Samples, s.Images)
			}
			// Peers read windows anywhere, but write whole tiles only.
			if side := max(s.Scene, s.Side); side%s.Tile != 0 || s.Tile%16 != 0 || s.Scene > 0 && s.Scene <= s.Side {
				t.Errorf("%s: sides %d and %d, tiles of %d", s.Name, s.Scene, s.Side, s.Tile)
			}
			if standIns[s.Imagery] == "" || imageryNames[s.Imagery] == nil {
				t.Errorf("%s: imagery %q", s.Name, s.Imagery)
			}
		}
		// The images exceed the caches of the peers, but not the memory.
		perSample := map[string]int{"uint8": 1, "uint16": 2, "float32": 4}[s.DType]
		size := perSample * s.Bands * max(s.Scene, s.Side) * max(s.Scene, s.Side) * s.Images
		if size < 100e6 || size > 500e6 {
			t.Errorf("%s: %d bytes of samples", s.Name, size)
		}
	}
}

func TestStandInsAreThere(t *testing.T) {
	for kind, name := range standIns {
		if _, err := os.Stat(filepath.Join(corpus.Testdata(t), filepath.FromSlash(name))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestRequirementsAreSplitByPeer(t *testing.T) {
	all, peers := byPeer("# a comment\n\n" +
		"numpy==2.1; python_version < \"3.13\"\n" +
		"torch==2\n" +
		"a==1  # mds\n" +
		"b==2 # mds\n" +
		"c==3 # zarr\n")
	if want := []string{`numpy==2.1; python_version < "3.13"`, "torch==2"}; !slices.Equal(all, want) {
		t.Errorf("all: %q", all)
	}
	if want := map[string][]string{"mds": {"a==1", "b==2"}, "zarr": {"c==3"}}; !reflect.DeepEqual(peers, want) {
		t.Errorf("peers: %q", peers)
	}
}

func TestEveryRequirementIsPinnedAndOfAPeer(t *testing.T) {
	for _, text := range []string{requirements, requirementsRumi1} {
		all, peers := byPeer(text)
		for name := range peers {
			if _, err := PeersNamed([]string{name}); err != nil {
				t.Error(err)
			}
			all = append(all, peers[name]...)
		}
		for _, want := range all {
			if !strings.Contains(want, "==") {
				t.Errorf("%q has no version", want)
			}
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{3, 1}, Spread{1, 2, 3}},
		{[]float64{9, 1, 4}, Spread{1, 4, 9}},
		{[]float64{8, 1, 4, 2}, Spread{1, 3, 8}},
	} {
		if got := spread(c.values); *got != c.want {
			t.Errorf("%v: %v, want %v", c.values, *got, c.want)
		}
	}
	if spread(nil) != nil {
		t.Error("a spread of nothing")
	}
}

// example is a report with rows of all statuses.
func example() *Report {
	round := func(v float64) *Round {
		return &Round{SamplesPerS: v, CPU: 1 / v, WaitP50: 0.001, WaitP99: 0.02, RSS: 5e8}
	}
	s := ShapeResult{
		Shape: Shape{Name: "chips"}, About: "chips | about",
		Imagery: "scene", Bytes: map[string]int64{"tog": 7e6},
		Rows: []Row{
			{Peer: "chaski", Status: OK, Rounds: []*Round{round(100), round(400), round(300)}},
			{Peer: "rasterio", Status: OK, Rounds: []*Round{round(100), round(200), round(100)}},
			{Peer: "slow", Status: OK, Rounds: []*Round{round(50), round(50), round(50)}},
			{Peer: "mds", Status: Missing, Why: "No module | named\nstreaming", Rounds: make([]*Round, 3)},
		},
	}
	s.summarise()
	return &Report{Settings: Settings{Rounds: 3, Seconds: 1, Workers: 2}, Shapes: []ShapeResult{s}}
}

func TestRatiosAreRoundByRound(t *testing.T) {
	rows := example().Shapes[0].Rows
	// 100/100, 400/200, 300/100: not the ratio of the medians, which is 3.
	if got, want := *rows[0].Ratio, (Spread{1, 2, 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := *rows[2].Ratio, (Spread{0.25, 0.5, 0.5}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if rows[3].Samples != nil || rows[3].Ratio != nil {
		t.Error("a row without figures has some")
	}
}

func TestNoRatiosWithoutTheBaseline(t *testing.T) {
	s := example().Shapes[0]
	s.Rows = slices.DeleteFunc(s.Rows, func(r Row) bool { return r.Peer == Baseline })
	for i := range s.Rows {
		s.Rows[i].Ratio = nil
	}
	s.summarise()
	if s.Rows[0].Ratio != nil || s.Rows[0].Samples == nil {
		t.Errorf("%+v", s.Rows[0])
	}
}

func TestMarkdownIsATableWithTheFastestFirst(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
		}
	}
	if len(rows) != 2+4 {
		t.Fatalf("%d lines of a table in\n%s", len(rows), &b)
	}
	for _, r := range rows {
		if len(r) != len(rows[0]) {
			t.Errorf("%d cells in %q, %d in the head", len(r), r, len(rows[0]))
		}
	}
	want := []string{"chaski", "rasterio", "slow", "mds"}
	for i, r := range rows[2:] {
		if strings.TrimSpace(r[0]) != want[i] {
			t.Errorf("row %d is %s, want %s", i, r[0], want[i])
		}
	}
	if got := strings.TrimSpace(rows[2][1]); got != "300 (100 – 400)" {
		t.Errorf("samples/s: %q", got)
	}
	if got := strings.TrimSpace(rows[2][2]); got != "2.00 (1.00 – 3.00)" {
		t.Errorf("ratio: %q", got)
	}
	if got := strings.TrimSpace(rows[5][1]); got != "missing: No module / named streaming" {
		t.Errorf("why: %q", got)
	}
}

func TestFigureIsDrawn(t *testing.T) {
	for _, format := range []string{draw.PNG, draw.SVG} {
		var b bytes.Buffer
		if err := example().WriteFigure(&b, format); err != nil || b.Len() < 1000 {
			t.Errorf("%s: %d bytes, %v", format, b.Len(), err)
		}
	}
}

func TestReportSurvivesJSON(t *testing.T) {
	r := example()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.Shapes[0].Batch = 0; !reflect.DeepEqual(&back, r) {
		t.Errorf("%+v\nwant %+v", back, *r)
	}
}

// fakePython answers as the script does, with one loader that is missing, one that dies and one
// that yields wrong samples.
const fakePython = `#!/bin/sh
echo "noise of a package"
echo "more noise" >&2
case "$4" in
*'"verb":"versions"'*) echo '{"python": "3.99", "versions": {"torch": "9"}}' ;;
*'"verb":"imagery"'*) mkdir -p "$DIR"; echo '{"imagery": "made up"}' ;;
*'"verb":"make"'*'"format":"mds"'*) echo '{"failed": "no space"}' ;;
*'"verb":"make"'*) echo '{"bytes": 10}' ;;
*'"verb":"check"'*'"loader":"tifffile"'*) echo '{"missing": "No module named tifffile"}' ;;
*'"verb":"check"'*'"loader":"zarr"'*) echo '{"wrong": "2 of 9 samples"}' ;;
*'"verb":"one"'*'"loader":"zarr"'*) touch "$DIR/timed-although-wrong"; echo '{}' ;;
*'"verb":"one"'*'"loader":"rumi"'*) echo "ValueError: broken" >&2; exit 3 ;;
*'"verb":"one"'*) sleep 0 & echo '{"samples_per_s": 120.5, "cpu_s_per_sample": 0.01}' ;;
*) echo '{}' ;;
esac
`

// fake returns options for a run with fakePython.
func fake(t *testing.T) Options {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	python := filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte(fakePython), 0o755); err != nil {
		t.Fatal(err)
	}
	shapes, err := ShapesNamed([]string{"chips"})
	if err != nil {
		t.Fatal(err)
	}
	peers, err := PeersNamed([]string{"chaski", "rasterio", "tifffile", "zarr", "mds", "rumi", "chaski-full"})
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	t.Setenv("DIR", filepath.Join(work, "chips"))
	return Options{Shapes: shapes, Peers: peers, Rounds: 2, Seconds: 0.01, Work: work, Testdata: corpus.Testdata(t),
		Environment: &Environment{Main: Interpreter{Path: python}}}
}

func TestFailuresAreRows(t *testing.T) {
	o := fake(t)
	var steps []string
	o.Progress = func(done, total int, what string) {
		if done < 0 || done >= total {
			t.Errorf("step %d of %d", done, total)
		}
		steps = append(steps, what)
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Row{
		"chaski":      {Status: OK},
		"rasterio":    {Status: OK},
		"tifffile":    {Status: Missing, Why: "tifffile"},
		"zarr":        {Status: Wrong, Why: "2 of 9"},
		"mds":         {Status: Failed, Why: "mds is not written: no space"},
		"rumi":        {Status: Failed, Why: "ValueError: broken"},
		"chaski-full": {Status: Missing, Why: "chaski-full"},
	}
	for _, row := range r.Shapes[0].Rows {
		w := want[row.Peer]
		if row.Status != w.Status || !strings.Contains(row.Why, w.Why) {
			t.Errorf("%s: %s %q, want %s %q", row.Peer, row.Status, row.Why, w.Status, w.Why)
		}
		if (row.Samples != nil) != (row.Status == OK) {
			t.Errorf("%s: %s with figures %v", row.Peer, row.Status, row.Samples)
		}
	}
	if r.Shapes[0].Imagery != "made up" || r.Machine.Python != "3.99" ||
		*r.Shapes[0].Rows[0].Samples != (Spread{120.5, 120.5, 120.5}) {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(o.Work, "chips", "timed-although-wrong")); err == nil {
		t.Error("a loader of wrong samples was timed")
	}
	if len(steps) == 0 {
		t.Error("no progress was told")
	}
}

func TestSamplesAreReused(t *testing.T) {
	o := fake(t)
	wrote := func() (n int) {
		o.Progress = nil
		before, _ := os.Stat(filepath.Join(o.Work, "chips", "made.json"))
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(filepath.Join(o.Work, "chips", "made.json"))
		if err != nil {
			t.Fatal(err)
		}
		if before == nil || !before.ModTime().Equal(after.ModTime()) {
			return 1
		}
		return 0
	}
	o.Peers = o.Peers[:2] // mds fails every time, and is tried again
	if wrote() != 1 || wrote() != 0 {
		t.Error("not written once")
	}
	o.Shapes[0].Images, o.Shapes[0].Samples = 64, 64
	if wrote() != 1 {
		t.Error("another shape was taken for the same")
	}
}

func TestForeignFolderIsNotTouched(t *testing.T) {
	o := fake(t)
	mine := filepath.Join(o.Work, "chips", "mine.tif")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWhenCancelled(t *testing.T) {
	o := fake(t)
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(done, _ int, _ string) {
		if done == 9 {
			cancel()
		}
	}
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestMissingImageryIsNotFound(t *testing.T) {
	o := fake(t)
	o.Testdata, o.Imagery = "", []string{t.TempDir()}
	if _, err := Run(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// realPython returns an interpreter with torch and rasterio (CHASKI_TEST_PYTHON) and an engine (CHASKI_BIN).
func realPython(t *testing.T) (python, engine string) {
	t.Helper()
	python, engine = os.Getenv("CHASKI_TEST_PYTHON"), os.Getenv("CHASKI_BIN")
	if python == "" || engine == "" {
		t.Skip("CHASKI_TEST_PYTHON and CHASKI_BIN are not set")
	}
	if err := exec.Command(python, "-c", "import torch, rasterio").Run(); err != nil {
		t.Skipf("%s has no torch or no rasterio", python)
	}
	return python, engine
}

// TestEndToEnd: real loaders yield what was written, and a replaced file is noticed.
func TestEndToEnd(t *testing.T) {
	python, engine := realPython(t)
	peers, err := PeersNamed([]string{"chaski", "chaski-load", "rasterio"})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Peers: peers, Rounds: 1, Seconds: 0.05, Work: t.TempDir(), Testdata: corpus.Testdata(t),
		Engine: engine, PythonPath: filepath.Join(corpus.Root(t), "python", "src"),
		Environment: &Environment{Main: Interpreter{Path: python}},
		Shapes: []Shape{
			{
				Name: "files", Imagery: "naip", Bands: 3, Side: 48,
				DType: "uint8", Tile: 16, Images: 8, Samples: 8, Batch: 4,
			},
			{
				Name: "parts", Imagery: "landsat", Bands: 9, Side: 48, DType: "uint16",
				Tile: 64, Images: 2, Scene: 192, Samples: 12, Batch: 4,
			},
		},
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Shapes {
		for _, row := range s.Rows {
			if row.Status != OK || row.Samples == nil || row.Ratio == nil || row.First == nil {
				t.Errorf("%s, %s: %s %s", s.Shape.Name, row.Peer, row.Status, row.Why)
			}
			if runtime.GOOS == "linux" && (row.CPU == nil || row.RSS == nil || row.RSS.Median < 1e7) {
				t.Errorf("%s, %s: CPU %v, memory %v", s.Shape.Name, row.Peer, row.CPU, row.RSS)
			}
		}
	}

	tog := filepath.Join(o.Work, "files", "tog")
	other, err := os.ReadFile(filepath.Join(tog, "00001.tif"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tog, "00000.tif"), other, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Shapes = o.Shapes[:1]
	if r, err = Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Shapes[0].Rows {
		if row.Peer != "chaski-load" && (row.Status != Wrong || row.Samples != nil) {
			t.Errorf("%s read another file and is %s", row.Peer, row.Status)
		}
	}
}
