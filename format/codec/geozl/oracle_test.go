package geozl

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOriginal: frames that the original library writes now, and frames with random streams and
// headers for its codecs, decode to the same bytes as in the original, or are refused by both.
// CHASKI_ORACLE_COUNT sets how many of each kind there are, CHASKI_ORACLE_SEED the seed.
func TestOriginal(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with geozl")
	}
	count, seed := os.Getenv("CHASKI_ORACLE_COUNT"), os.Getenv("CHASKI_ORACLE_SEED")
	if count == "" {
		count = "150"
	}
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
	}
	t.Logf("CHASKI_ORACLE_SEED=%s", seed)
	dir := t.TempDir()
	out, err := exec.Command(python, filepath.Join("testdata", "make.py"), dir, seed, count).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.zl"))
	if len(files) < 100 {
		t.Fatalf("only %d frames were written", len(files))
	}
	d := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	read, refused := 0, 0
	for _, f := range files {
		frame := testfile.Read(t, f)
		want, missing := os.ReadFile(strings.TrimSuffix(f, ".zl") + ".raw")
		outs, err := d.Decode(frame)
		name := filepath.Base(f)
		switch {
		case missing != nil && err == nil:
			t.Errorf("%s: read, the original refuses it", name)
		case missing != nil && fault.KindOf(err) == 0:
			t.Errorf("%s: error without a kind: %v", name, err)
		case missing != nil:
			refused++
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !bytes.Equal(outs[0].Data, want):
			t.Errorf("%s: wrong samples", name)
		default:
			read++
		}
	}
	t.Logf("%d frames read, %d refused", read, refused)
	if read < len(files)/2 {
		t.Errorf("only %d of %d frames are sound", read, len(files))
	}
}

// TestFastFrames: frames of a cache hold the same samples as others, and no checksum.
func TestFastFrames(t *testing.T) {
	encoder, err := openzl.NewEncoder("fast", openzl.EncodeOptions{Geozl: openzl.Geozl19, Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	decoder := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		width, h, w := 1<<r.IntN(4), 1+r.IntN(40), 1+r.IntN(40)
		samples := make([]byte, h*w*width)
		for i := range samples {
			if i%width == 0 || r.IntN(30) == 0 { // some numbers are long
				samples[i] = byte(r.Uint32() >> r.IntN(9))
			}
		}
		frame, err := encoder.Encode(nil, samples, width, h, w)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(samples))
		if err := decoder.Decompress(got, frame, width); err != nil || !bytes.Equal(got, samples) {
			t.Fatalf("%d by %d numbers of %d bytes: other samples, %v", h, w, width, err)
		}
		// Samples that do not shrink are stored as they are, with checksums.
		info, err := openzl.Inspect(frame)
		if err != nil || len(frame) < len(samples) && (info.ContentChecksum || info.ChunkChecksum) {
			t.Fatalf("checksums: %+v, %v", info, err)
		}
	}
}
