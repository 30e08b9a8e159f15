package openzl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/cputime"
	corpora "github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// corpusEntry holds the fields of a line of the corpus manifest that the tests use.
type corpusEntry struct {
	Path          string
	Kind          string
	Format        string
	FormatVersion int `json:"format_version"`
	Codecs        []string
	Chunks        int
	Checksums     struct{ Content, Compressed bool }
	Expect        string
	Identical     string `json:"identical_sha256"`
	Outputs       []struct {
		Type   string
		Width  int
		Count  int
		Raw    string
		Lens   string
		SHA256 string
		// LensSHA256 replaces the file Lens in the module's own manifest.
		LensSHA256 string `json:"lens_sha256"`
	}
}

// corpus returns the folder of the shared raster corpus and its entries. It skips the test if the
// corpus is not there.
func corpus(t testing.TB) (string, []corpusEntry) {
	t.Helper()
	dir := filepath.Join(corpora.Dir(t), "raster")
	return dir, corpora.Rows[corpusEntry](t, dir)
}

// own returns the folder of the module's own frames and their entries.
func own(t testing.TB) (string, []corpusEntry) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "testdata", "openzl")
	return dir, corpora.Rows[corpusEntry](t, dir)
}

func read(t testing.TB, elem ...string) []byte {
	t.Helper()
	b := testfile.Read(t, filepath.Join(elem...))
	return b
}

func sha(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// undecoded returns the codecs of e that have no decoder here.
func undecoded(e corpusEntry) []string {
	var missing []string
	for _, name := range e.Codecs {
		ok := false
		for _, c := range codecs.Standard {
			ok = ok || c.Name == name && c.Decode != nil
		}
		if !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

func checkOutputs(t *testing.T, dir string, e corpusEntry, outs []Output) {
	t.Helper()
	if len(outs) != len(e.Outputs) {
		t.Fatalf("%d outputs, want %d", len(outs), len(e.Outputs))
	}
	for i, w := range e.Outputs {
		o := outs[i]
		if o.Type.String() != w.Type || o.Count != w.Count {
			t.Errorf("output %d: %s of %d elements, want %s of %d", i, o.Type, o.Count, w.Type, w.Count)
		}
		if o.Type != String && o.Width != w.Width {
			t.Errorf("output %d: width %d, want %d", i, o.Width, w.Width)
		}
		if sha(o.Data) != w.SHA256 {
			t.Errorf("output %d: wrong bytes", i)
		}
		want := w.LensSHA256
		if w.Lens != "" {
			want = sha(read(t, dir, w.Lens))
		}
		if w.Type == "string" && sha(little(o.Lens)) != want {
			t.Errorf("output %d: wrong string lengths", i)
		}
	}
}

// TestOwnFrames and TestCorpusFrames promise that every frame written by the original library
// decodes to what went into it, or is refused by name.
func TestOwnFrames(t *testing.T) {
	dir, all := own(t)
	testFrames(t, dir, all)
}

func TestCorpusFrames(t *testing.T) {
	dir, all := corpus(t)
	testFrames(t, dir, all)
}

func testFrames(t *testing.T, dir string, all []corpusEntry) {
	d := NewDecoder(Options{}) // one for all: what a frame leaves behind must not matter
	frames, decoded := 0, 0
	for _, e := range all {
		if e.Kind != "frame" {
			continue
		}
		frames++
		t.Run(strings.TrimSuffix(filepath.Base(e.Path), ".zl"), func(t *testing.T) {
			outs, err := d.Decode(read(t, dir, e.Path))
			missing := undecoded(e)
			switch {
			case e.FormatVersion < minVersion || e.FormatVersion > maxVersion:
				if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "openzl format version ") {
					t.Errorf("version %d: error %v", e.FormatVersion, err)
				}
			case len(missing) > 0:
				if !errors.Is(err, fault.Unsupported) {
					t.Fatalf("codecs %v: error %v", missing, err)
				}
				named := false
				for _, m := range missing {
					named = named || strings.Contains(err.Error(), ": openzl codec "+m+" (")
				}
				if !named {
					t.Errorf("codecs %v: error %v", missing, err)
				}
				t.Skip(err)
			case err != nil:
				t.Error(err)
			default:
				checkOutputs(t, dir, e, outs)
				decoded++
			}
		})
	}
	t.Logf("%d of %d frames decoded", decoded, frames)
}

// TestInspect: the headers alone yield what the manifest says about a frame.
func TestInspect(t *testing.T) {
	dir, all := own(t)
	for _, e := range all {
		info, err := Inspect(read(t, dir, e.Path))
		if err != nil {
			t.Errorf("%s: %v", e.Path, err)
			continue
		}
		codecs := slices.Sorted(slices.Values(info.Codecs))
		if info.FormatVersion != e.FormatVersion || info.Chunks != e.Chunks ||
			info.ContentChecksum != e.Checksums.Content ||
			info.ChunkChecksum != e.Checksums.Compressed || !slices.Equal(codecs, e.Codecs) {
			t.Errorf("%s: %+v, manifest says %+v", e.Path, info, e)
		}
		for i, o := range e.Outputs {
			if info.Outputs[i].String() != o.Type || o.Type != "string" && info.Sizes[i] != o.Width*o.Count {
				t.Errorf("%s: output %d is %v of %d bytes", e.Path, i, info.Outputs[i], info.Sizes[i])
			}
		}
	}
}

// little returns numbers as little-endian bytes.
func little(numbers []uint32) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// TestSteadyState: decoding a frame again allocates nothing.
func TestSteadyState(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	if _, views := cast.Of[uint16](cast.Aligned(2)); !views {
		t.Skip("without views of bytes as numbers, these are copied")
	}
	dir, all := own(t)
	for _, e := range all {
		if len(undecoded(e)) > 0 {
			continue
		}
		frame := read(t, dir, e.Path)
		d := NewDecoder(Options{})
		outs, err := d.Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := d.Decode(frame); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: Decode allocates %v times", e.Path, n)
		}
		if len(outs) != 1 || outs[0].Type != Numeric {
			continue
		}
		dst, width := make([]byte, len(outs[0].Data)), outs[0].Width
		if n := testing.AllocsPerRun(20, func() {
			if err := d.Decompress(dst, frame, width); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: Decompress allocates %v times", e.Path, n)
		}
	}
}

// TestCorpusDecompress: Decompress, which chunk decoders call, yields the same bytes as Decode.
func TestCorpusDecompress(t *testing.T) {
	dir, all := corpus(t)
	d := NewDecoder(Options{})
	for _, e := range all {
		if e.Kind != "frame" || len(e.Outputs) != 1 || len(undecoded(e)) > 0 ||
			e.FormatVersion < minVersion || e.FormatVersion > maxVersion {
			continue
		}
		w := e.Outputs[0]
		frame := read(t, dir, e.Path)
		dst := make([]byte, w.Width*w.Count)
		err := d.Decompress(dst, frame, w.Width)
		if w.Type != "numeric" {
			if w.Width <= 8 && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%s: %s output accepted: %v", e.Path, w.Type, err)
			}
			continue
		}
		if err != nil || sha(dst) != w.SHA256 {
			t.Errorf("%s: error %v, right bytes: %v", e.Path, err, sha(dst) == w.SHA256)
		}
		odd := make([]byte, len(dst)+1)[1:]
		if err := d.Decompress(odd, frame, w.Width); err != nil || sha(odd) != w.SHA256 {
			t.Errorf("%s: at an odd address: error %v, right bytes: %v", e.Path, err, sha(odd) == w.SHA256)
		}
		if err := d.Decompress(append(dst, make([]byte, w.Width)...), frame, w.Width); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: one sample more accepted: %v", e.Path, err)
		}
		if len(dst) > 0 && w.Width > 1 {
			if err := d.Decompress(dst, frame, w.Width/2); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s: half the width accepted: %v", e.Path, err)
			}
		}
		if err := d.Decompress(dst, frame, 16); !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: samples of 16 bytes: %v", e.Path, err)
		}
	}
}

// TestCorpusBad: malformed frames yield an error with a kind, or the right bytes where the manifest
// allows it, with bounded memory and time.
func TestCorpusBad(t *testing.T) {
	dir, all := corpus(t)
	d := NewDecoder(Options{MaxOutput: 64 << 20})
	for _, e := range all {
		if e.Kind != "bad" || e.Format != "frame" {
			continue
		}
		frame := read(t, dir, e.Path)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cputime.Used()
		outs, err := d.Decode(frame)
		if took := cputime.Used() - start; took > time.Minute {
			t.Errorf("%s: took %v", e.Path, took)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: allocated %d MiB", e.Path, grown>>20)
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Errorf("%s: error without a kind: %v", e.Path, err)
		}
		switch e.Expect {
		case "error":
			if err == nil {
				t.Errorf("%s: accepted", e.Path)
			}
		case "error-or-identical":
			if err == nil {
				var all []byte
				for _, o := range outs {
					all = append(all, o.Data...)
				}
				if sha(all) != e.Identical {
					t.Errorf("%s: other bytes without an error", e.Path)
				}
			}
		case "no-crash":
		default:
			t.Errorf("%s: unknown expectation %q", e.Path, e.Expect)
		}
		if n := d.space.Memory.Live(); err != nil {
			if d.reset(); d.space.Memory.Live() != 0 {
				t.Fatalf("%s: %d bytes leaked", e.Path, n)
			}
		}
	}
}
