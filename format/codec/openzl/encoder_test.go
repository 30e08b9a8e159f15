package openzl_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

var graphs = []string{
	"store", "zstd", "delta>zstd", "delta>zigzag>zstd", "transpose>zstd", "transpose>entropy",
	"delta>transpose>zstd", "delta>transpose>entropy", "delta>zigzag>transpose>entropy",
	"delta>bitpack", "delta>zigzag>bitpack", "bitpack", "zigzag>zstd", "delta>store",
	"planar>zigzag>zstd", "planar>zigzag>transpose>entropy", "planar>zigzag>transpose>zstd", "planar>zstd", "auto",
	"best", "delta>zigzag>transpose>zstd",
	"pfor", "delta>zigzag>pfor", "planar>zigzag>pfor", "transpose>pivco", "delta>zigzag>transpose>pivco",
	"planar>zigzag>pivco", "planar>zigzag>transpose>pivco", "fast",
}

// raster makes samples like those of an image, of some kind.
func raster(r *rand.Rand, width, h, w, kind int) []byte {
	b := make([]byte, h*w*width)
	level := 0.0
	for i := range h * w {
		var v uint64
		switch kind {
		case 0: // a walk
			level += r.NormFloat64() * 3
			v = uint64(int64(1000 + level))
		case 1: // a slope with noise
			v = uint64(i%w*3 + i/w*5 + r.IntN(8))
		case 2: // few classes
			v = uint64(r.IntN(3) * (i / 7 % 2))
		case 3:
			v = r.Uint64()
		case 4:
			v = 7
		case 5: // mostly small
			v = uint64(math.Exp(r.Float64() * 8))
		}
		for k := range width {
			b[i*width+k] = byte(v >> (8 * k))
		}
	}
	return b
}

// TestEncoder promises that what every graph writes is read back, behind bytes that were there
// before, whatever was written before, and never much larger than the samples.
func TestEncoder(t *testing.T) {
	encoders := map[string]*openzl.Encoder{}
	for _, g := range graphs {
		e, err := openzl.NewEncoder(g, openzl.EncodeOptions{Geozl: openzl.Geozl19})
		if err != nil {
			t.Fatal(err)
		}
		encoders[g] = e
	}
	d := openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()})
	rapid.Check(t, func(t *rapid.T) {
		graph := rapid.SampledFrom(graphs).Draw(t, "graph")
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		h, w := rapid.IntRange(0, 40).Draw(t, "h"), rapid.IntRange(1, 70).Draw(t, "w")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		samples := raster(r, width, h, w, rapid.IntRange(0, 5).Draw(t, "kind"))
		before := []byte("before")
		got, err := encoders[graph].Encode(slices.Clone(before), samples, width, h, w)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(got, before) || len(got) > len(samples)+64 {
			t.Fatalf("%d bytes for %d", len(got), len(samples))
		}
		outs, err := d.Decode(got[len(before):])
		if err != nil {
			t.Fatal(err)
		}
		o := outs[0]
		if o.Type != openzl.Numeric || o.Width != width || o.Count != h*w || !bytes.Equal(o.Data, samples) {
			t.Fatalf("read back %d times %d bytes", o.Count, o.Width)
		}
	})
}

// TestEncoderRefuses promises errors of kind Unsupported for what cannot be written.
func TestEncoderRefuses(t *testing.T) {
	for _, g := range []string{"", "zst", "delta", "delta>", "zstd>delta", "zigzag>delta>zstd", "delta>delta>zstd",
		"transpose>bitpack", "transpose>store", "transpose>pfor", "pivco>zstd", "delta>constant", "auto>zstd",
		"med>zstd", "delta>auto"} {
		if _, err := openzl.NewEncoder(g, openzl.EncodeOptions{}); !errors.Is(err, fault.Unsupported) {
			t.Errorf("graph %q: %v", g, err)
		}
	}
	for _, c := range []struct {
		graph    string
		n, width int
		h, w     int
	}{
		{"zstd", 6, 3, 1, 2},
		{"zstd", 6, 2, 2, 2},
		{"zstd", 6, 2, -1, -3},
		{"zstd", 6, 2, 3, math.MaxInt},
		{"zstd", 5, 2, 1, 2},
		{"constant", 2, 1, 1, 2},
		{"delta>entropy", 64, 2, 4, 8},
		{"delta>pivco", 64, 2, 4, 8},
		{"zstd", 0, 2, 0, 5},
		{"zstd", 8, 2, math.MaxInt/2 + 1, 4},
	} {
		e, err := openzl.NewEncoder(c.graph, openzl.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		samples := make([]byte, c.n)
		for i := range samples {
			samples[i] = byte(i)
		}
		if _, err := e.Encode(nil, samples, c.width, c.h, c.w); c.n > 0 && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAuto promises that auto is no worse than any graph it may choose, that it keeps to standard
// codecs unless it may use others, and that a bound on the cost is kept: also that best, which has one
// of its own, is no worse than any graph within it.
func TestAuto(t *testing.T) {
	race.SkipCovered(t)
	r := rand.New(rand.NewPCG(1, 2))
	for kind := range 6 {
		samples := raster(r, 2, 100, 100, kind)
		size := func(graph string, o openzl.EncodeOptions) (int, string) {
			e, err := openzl.NewEncoder(graph, o)
			if err != nil {
				t.Fatal(err)
			}
			f, err := e.Encode(nil, samples, 2, 100, 100)
			if err != nil {
				return math.MaxInt, ""
			}
			return len(f), e.Graph()
		}
		std, graph := size("auto", openzl.EncodeOptions{})
		any, _ := size("auto", openzl.EncodeOptions{Geozl: openzl.Geozl19})
		if strings.Contains(graph, "planar") || any > std {
			t.Errorf("kind %d: %s, %d bytes, with other codecs %d", kind, graph, std, any)
		}
		for _, g := range graphs {
			if n, _ := size(g, openzl.EncodeOptions{}); !strings.HasPrefix(g, "planar") && n < std-64 {
				t.Errorf("kind %d: %s takes %d bytes, auto (%s) %d", kind, g, n, graph, std)
			}
		}
		_, g := size("auto", openzl.EncodeOptions{MaxCost: 0.5})
		if g != "bitpack" && g != "store" && g != "constant" {
			t.Errorf("kind %d: %s is not that fast", kind, g)
		}
		bounded, g := size("best", openzl.EncodeOptions{Geozl: openzl.Geozl18})
		if strings.HasSuffix(g, "pivco") || strings.HasSuffix(g, "zstd") && !strings.Contains(g, "transpose") {
			t.Errorf("kind %d: best chooses %s", kind, g)
		}
		for _, fast := range []string{"pfor", "planar>zigzag>pfor", "bitpack", "transpose>entropy"} {
			if n, _ := size(fast, openzl.EncodeOptions{Geozl: openzl.Geozl18}); n < bounded-64 {
				t.Errorf("kind %d: %s takes %d bytes, best (%s) %d", kind, fast, n, g, bounded)
			}
		}
	}
}

// images returns tiles of 256 by 256 samples of 16 bits cut from a Sentinel-2 scene of six bands of
// 973 by 967, where that lies beside the module.
func images() [][]byte {
	b, err := os.ReadFile("../../../../shared/peers/imagery/s2_20m_6x973x967_uint16.npy")
	if err != nil || len(b) != 128+6*973*967*2 {
		return nil
	}
	b = b[128:]
	var tiles [][]byte
	for band := range 6 {
		for _, at := range [][2]int{{0, 0}, {400, 300}, {700, 600}} {
			var tile []byte
			for y := range 256 {
				from := ((band*973+at[0]+y)*967 + at[1]) * 2
				tile = append(tile, b[from:from+512]...)
			}
			tiles = append(tiles, tile)
		}
	}
	return tiles
}

// TestOriginalReadsGraphs promises that the original library reads what every graph writes, and
// that its own frames of the same graph are at most 3% smaller.
func TestOriginalReadsGraphs(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with openzl and geozl")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 4))
	var list []string
	sizes := map[string]int{}
	tiles := images()
	for _, g := range graphs {
		e, err := openzl.NewEncoder(g, openzl.EncodeOptions{Geozl: openzl.Geozl19})
		if err != nil {
			t.Fatal(err)
		}
		write := func(samples []byte, width, n int, suffix string) {
			frame, err := e.Encode(nil, samples, width, n, n)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.ReplaceAll(g, ">", ".") + "-" + strconv.Itoa(width) + "-" + strconv.Itoa(n) + "-" + suffix
			p := filepath.Join(dir, name)
			err = errors.Join(os.WriteFile(p+".zl", frame, 0o600), os.WriteFile(p+".raw", samples, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, name)
			sizes[name] = len(frame)
		}
		for i, tile := range tiles {
			write(tile, 2, 256, strconv.Itoa(i)+"-image")
		}
		for _, width := range []int{1, 2, 4, 8} {
			for kind := range 6 {
				if testing.Short() && (kind+len(g)+width)%3 != 0 {
					continue
				}
				for _, n := range []int{1, 5, 40, 256, 700} {
					if n == 700 && (kind > 1 || width > 2) {
						continue
					}
					write(raster(r, width, n, n, kind), width, n, strconv.Itoa(kind))
				}
			}
		}
	}
	out, err := exec.Command(python, filepath.Join("testdata", "read_graphs.py"), dir).Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v\n%s", err, e.Stderr)
		}
		t.Fatal(err)
	}
	theirs := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		theirs[name], _ = strconv.Atoi(n)
	}
	compared, total := 0, map[string][2]int{}
	for _, name := range list {
		n, ok := theirs[name]
		if !ok {
			t.Errorf("%s is not read", name)
			continue
		}
		if n == 0 {
			continue // a graph they have no name for
		}
		compared++
		// With zstd, sizes of small or odd rasters differ in both directions, so only images count. Without it
		// openzl 0.3.0 is up to 3.6 % smaller on a raster (700 × 700 of uint16, transpose>entropy), 0.2.0 less than 3.
		// pfor counts the time of its exceptions, and takes up to an eighth more where there are many.
		bound := 1.04
		if strings.Contains(name, "pfor") {
			bound = 1.125
		}
		if ours := sizes[name]; !strings.Contains(name, "zstd") && float64(ours) > bound*float64(n)+40 {
			t.Errorf("%s: %d bytes, the original %d", name, ours, n)
		}
		if strings.HasSuffix(name, "-image") {
			graph, _, _ := strings.Cut(name, "-")
			total[graph] = [2]int{total[graph][0] + sizes[name], total[graph][1] + n}
		}
	}
	for graph, n := range total {
		t.Logf("%s: images of %d bytes, the original's of %d", graph, n[0], n[1])
		if float64(n[0]) > 1.03*float64(n[1]) {
			t.Errorf("%s: images of %d bytes, the original's of %d", graph, n[0], n[1])
		}
	}
	t.Logf("%d frames read, %d compared", len(theirs), compared)
}

// FuzzEncode promises that any samples are read back from any graph.
func FuzzEncode(f *testing.F) {
	for i := range graphs {
		f.Add([]byte("some samples, some more samples, and others"), uint8(i), uint8(i), uint8(3))
	}
	f.Fuzz(func(t *testing.T, samples []byte, graph, width, rows uint8) {
		w := 1 << (width % 4)
		n := len(samples) / w
		h := max(1, min(int(rows), n))
		samples = samples[:n/h*h*w]
		e, err := openzl.NewEncoder(graphs[int(graph)%len(graphs)], openzl.EncodeOptions{Geozl: 19, Level: 1})
		if err != nil {
			t.Fatal(err)
		}
		frame, err := e.Encode(nil, samples, w, h, n/h)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, len(samples))
		err = openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()}).Decompress(dst, frame, w)
		if err != nil || !bytes.Equal(dst, samples) {
			t.Fatalf("%s, %d rows of %d times %d: %v", e.Graph(), h, n/h, w, err)
		}
	})
}
