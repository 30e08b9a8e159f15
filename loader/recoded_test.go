package loader_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

// epochOf returns the bytes of the tensors of an epoch, one batch after the other.
func epochOf(t testing.TB, e *loader.Engine, epoch uint64) []byte {
	t.Helper()
	var all []byte
	for step := range (e.Len() + 3) / 4 {
		batch, err := e.Start(context.Background(), steps.StepTicket(epoch, step, 4, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range batch.Tensors {
			all = append(all, tensor.Data...)
		}
		batch.Release()
	}
	return all
}

// smoothTOG writes a TOG whose pixels change little from one to the next.
func smoothTOG(t testing.TB, path string, bands, side, tile, seed int) {
	t.Helper()
	pixels, r := make([]byte, 2*bands*side*side), rand.New(rand.NewPCG(1, uint64(seed)))
	for i := range bands * side * side {
		v := 1000 + i%side*seed/7 + i/side%side*3 + r.IntN(64)
		pixels[2*i], pixels[2*i+1] = byte(v), byte(v>>8)
	}
	var b bytes.Buffer
	if err := tiff.WriteTOG(&b, pixels, tiff.TOGOptions{Shape: [3]int{bands, side, side}, DType: chunk.Uint16,
		Tile: tile, Level: 1, Predictor: chunk.Horizontal}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecodedEpochs: with Recode, epochs have the same bytes as without it, and from the second on chunks are decoded
// from what idle workers encoded.
func TestRecodedEpochs(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		smoothTOG(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), 3, 192, 64, i+1)
	}
	for name, spec := range map[string]string{
		"chips":   `{"source": %q, "batch_size": 4, "shuffle": true}`,
		"windows": `{"source": %q, "batch_size": 4, "sampler": {"kind": "random_window", "height": 70, "width": 50}}`,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := loader.ParseSpec([]byte(fmt.Sprintf(spec, dir)))
			if err != nil {
				t.Fatal(err)
			}
			// So little memory that decoded tiles do not stay.
			open := func(recode bool) *loader.Engine {
				e, err := loader.Open(t.Context(), parsed, loader.Options{Recode: recode,
					MemoryBytes: 24 << 20, Workers: 2})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				return e
			}
			plain, recoded := open(false), open(true)
			for epoch := range uint64(4) {
				if !bytes.Equal(epochOf(t, recoded, epoch), epochOf(t, plain, epoch)) {
					t.Fatalf("epoch %d has other pixels", epoch)
				}
				recoded.Recoded().Settle()
			}
			if counts := recoded.Recoded().Counts(); counts.Used == 0 || counts.Chunks == 0 || counts.Refused > 0 {
				t.Errorf("%+v", counts)
			}
		})
	}
}

// TestFileChanges: a file that is overwritten between two epochs, by one of the same size and layout, yields its new
// pixels: neither tiles that are kept nor chunks that were encoded anew are those of the old one.
func TestFileChanges(t *testing.T) {
	windows := loader.Sampler{Kind: "random_window", Height: 40, Width: 40, PerAsset: 32}
	for name, c := range map[string]struct {
		sampler loader.Sampler
		recode  bool
	}{"chips": {recode: true}, "windows": {sampler: windows, recode: true}, "tiles": {sampler: windows}} {
		t.Run(name, func(t *testing.T) { fileChanges(t, c.sampler, c.recode) })
	}
}

func fileChanges(t *testing.T, sampler loader.Sampler, recode bool) {
	path := filepath.Join(t.TempDir(), "a.tif")
	put := func(seed uint64, at time.Time) {
		if err := os.WriteFile(path, netsim.Chip(seed, 2, 128, 64), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	put(1, now)
	open := func() *loader.Engine {
		e, err := loader.Open(t.Context(), loader.Spec{Source: path, BatchSize: 4, Sampler: sampler},
			loader.Options{Recode: recode})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	e := open()
	epochOf(t, e, 0)
	if recode {
		e.Recoded().Settle()
	}
	old := epochOf(t, e, 1)
	if recode && sampler.Kind == "" && e.Recoded().Counts().Used == 0 { // windows have their chunks in tiles
		t.Fatal("nothing was decoded from what was encoded")
	}
	put(2, now.Add(time.Second))
	if fresh := epochOf(t, e, 1); bytes.Equal(fresh, old) {
		t.Error("the old pixels")
	} else if want := epochOf(t, open(), 1); !bytes.Equal(fresh, want) {
		t.Error("pixels of neither file")
	}
}
