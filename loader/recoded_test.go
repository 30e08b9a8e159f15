package loader_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
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
	if err := tog.Write(&b, pixels, tog.Options{Shape: [3]int{bands, side, side}, DType: chunk.Uint16,
		Tile: tile, Level: 1, Predictor: chunk.Horizontal}); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// smoothZarr writes a Zarr array (n b y x) of 16 images of 3 bands, of uint16 with two bands of an image a chunk, by
// gzip. Pixels change little from one to the next.
func smoothZarr(t testing.TB, dir string) {
	t.Helper()
	const side = 96
	for n := range 16 {
		for b := range 2 {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			r := rand.New(rand.NewPCG(2, uint64(3*n+b)))
			for i := range 2 * side * side {
				v := 1000 + i%side*(n+1) + i/side%side*3 + r.IntN(64)
				_, _ = w.Write([]byte{byte(v), byte(v >> 8)})
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			testfile.Write(t, filepath.Join(dir, fmt.Sprintf("c/%d/%d/0/0", n, b)), packed.Bytes())
		}
	}
	testfile.Write(t, filepath.Join(dir, "zarr.json"), []byte(`{"zarr_format": 3, "node_type": "array", "shape":
		[16, 3, 96, 96], "data_type": "uint16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape":
		[1, 2, 96, 96]}}, "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [{"name": "bytes",
		"configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}], "dimension_names": ["n", "b", "y", "x"]}`))
}

// TestRecodedEpochs: with Recode, epochs have the same bytes as without it, and from the second on chunks are decoded
// from what idle workers encoded.
func TestRecodedEpochs(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "files")
	smoothZarr(t, filepath.Join(root, "x.zarr"))
	for i := range 8 {
		smoothTOG(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), 3, 192, 64, i+1)
	}
	for name, spec := range map[string]string{
		"chips":   `{"source": %q, "batch_size": 4, "shuffle": true}`,
		"windows": `{"source": %q, "batch_size": 4, "sampler": {"kind": "random_window", "height": 70, "width": 50}}`,
		"arrays":  `{"source": %q, "batch_size": 4, "shuffle": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			source := dir
			if name == "arrays" {
				source = filepath.Join(root, "x.zarr")
			}
			parsed, err := loader.ParseSpec([]byte(fmt.Sprintf(spec, source)))
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
			for e, share := range map[*loader.Engine]int64{plain: 0, recoded: 13} {
				plan, err := e.Forecast(t.Context(), dryrun.Options{})
				if err != nil {
					t.Fatal(err)
				}
				all := share > 0 && plan.Memory.Recoded == plan.Total.Bytes*share/10
				if epochs := plan.RecodedEpochs; (epochs > 0) != all {
					t.Errorf("all chunks are held after %d epochs, %+v", epochs, plan.Memory)
				}
				got, want := plan.Memory.Recoded, min(plan.Total.Bytes*share/10, 24<<20/4)
				if got > want || share > 0 && got == 0 {
					t.Errorf("the plan has %d bytes of chunks encoded anew, of %d that are read", got, plan.Total.Bytes)
				}
			}
		})
	}
}

// TestRecodedRows: batches that are written past the caches, of chunks whose rows become elements one by one and of
// others, have the same bytes as without Recode.
func TestRecodedRows(t *testing.T) {
	const bands, side, tile = 4, 512, 128
	for _, dtype := range []chunk.DType{chunk.Uint16, chunk.Int16} {
		dir := t.TempDir()
		for i := range 5 {
			smoothOf(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), dtype, bands, side, tile, 9*i)
		}
		floats := `"fields": [{"name": "image", "dtype": "float32", `
		window := `"sampler": {"kind": "random_window", "height": 384, "width": 512, "per_asset": 2}`
		for _, more := range []string{
			floats + `"normalize": {"mean": [300], "std": [7]}}]`,
			`"fields": [{"name": "image", "dtype": "native"}]`,
			`"fields": [{"name": "image", "dtype": "native"}], "augment": "flip_y"`,
			floats + `"normalize": {"mean": [300], "std": [7]}}], "augment": "d4"`,
			floats + `"normalize": {"mean": [3], "std": [7]}, "layout": "n y x b"}]`,
			floats + `"normalize": {"mean": [3], "std": [7]}, "layout": "b n y x"}], ` + window,
			`"fields": [{"name": "image", "dtype": "native", "bands": [2, 2, 0, 3]}]`,
			floats + `"normalize": {"mean": [3], "std": [7], "clip": [-1, 1]}}]`,
			floats + `"normalize": {"mean": [3], "std": [7]}, "nodata": [9], "fill": 5}]`,
		} {
			parsed, err := loader.ParseSpec(fmt.Appendf(nil, `{"source": %q, "batch_size": 4, %s}`, dir, more))
			if err != nil {
				t.Fatal(err)
			}
			var all [2][]byte
			for i, recode := range []bool{false, true} {
				e, err := loader.Open(t.Context(), parsed, loader.Options{Recode: recode, Workers: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				for epoch := range uint64(2) {
					all[i] = epochOf(t, e, epoch)
					if recode {
						e.Recoded().Settle()
					}
				}
				if recode && e.Recoded().Counts().Used == 0 && !strings.Contains(more, "window") {
					t.Errorf("%s of %s: nothing was decoded from what was encoded", more, dtype)
				}
			}
			if !bytes.Equal(all[0], all[1]) {
				t.Errorf("%s of %s: other pixels", more, dtype)
			}
		}
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
		testfile.Write(t, path, netsim.Chip(seed, 2, 128, 64))
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

// TestRecodedOnDisk: chunks that memory has no room for go to the cache on disk, exactly, within its quota. They are
// there for the next engine, also after a kill, and damaged ones, other dtypes and rewritten files yield their pixels.
func TestRecodedOnDisk(t *testing.T) {
	const quota = 3 << 20
	for _, dtype := range []chunk.DType{chunk.Uint8, chunk.Int8, chunk.Uint16, chunk.Int16, chunk.Uint32, chunk.Int32,
		chunk.Uint64, chunk.Int64, chunk.Float16, chunk.Float32, chunk.Float64, chunk.Complex64} {
		if testing.Short() && dtype != chunk.Uint16 && dtype != chunk.Float32 {
			continue
		}
		// Chunks of 64 KiB or more, in batches of less than the memory.
		side, tile := 512, 256
		if dtype.Size() > 2 {
			side, tile = 256, 128
		}
		t.Run(dtype.String(), func(t *testing.T) {
			files, folder := t.TempDir(), filepath.Join(t.TempDir(), "cache")
			write := func(seed int) {
				for i := range 4 {
					smoothOf(t, filepath.Join(files, fmt.Sprintf("%d.tif", i)), dtype, 2, side, tile, i+seed)
				}
			}
			write(1)
			parsed, err := loader.ParseSpec(fmt.Appendf(nil, `{"source": %q, "batch_size": 4, "shuffle": true}`, files))
			if err != nil {
				t.Fatal(err)
			}
			// Each run opens the folder anew, as a program does after another was killed. The memory for chunks is
			// less than one segment.
			run := func(recode bool, epochs uint64) (all []byte, counts pixels.RecodedCounts) {
				var disk diskcache.Ref
				disk.Set(folder, quota)
				defer disk.Close()
				e, err := loader.Open(t.Context(), parsed, loader.Options{Recode: recode, Disk: &disk,
					MemoryBytes: 12 << 20, Workers: 2, MaxChunkBytes: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				for epoch := range epochs {
					all = append(all, epochOf(t, e, epoch)...)
					if recode {
						e.Recoded().Settle()
					}
				}
				cached, err := disk.Get()
				if err != nil || cached.Used() > quota {
					t.Errorf("%d bytes on disk, %v", cached.Used(), err)
				}
				return all, e.Recoded().Counts()
			}
			want, _ := run(false, 2)
			got, counts := run(true, 2)
			if !bytes.Equal(got, want) || counts.OnDisk == 0 || counts.Used == 0 || counts.Chunks > 0 {
				t.Fatalf("first run: %+v, the pixels are equal: %t", counts, bytes.Equal(got, want))
			}
			if got, counts = run(true, 1); !bytes.Equal(got, want[:len(got)]) || counts.Used == 0 {
				t.Errorf("second run: %+v, the pixels are equal: %t", counts, bytes.Equal(got, want[:len(got)]))
			}
			damage(t, folder)
			if got, counts = run(true, 1); !bytes.Equal(got, want[:len(got)]) || counts.Used != 0 {
				t.Errorf("damaged: %+v, the pixels are equal: %t", counts, bytes.Equal(got, want[:len(got)]))
			}
			write(9)
			want, _ = run(false, 1)
			if got, _ = run(true, 1); !bytes.Equal(got, want) {
				t.Error("pixels of the old files")
			}
		})
	}
}

// damage changes a byte of each range in a cache.
func damage(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Dir(name) == folder {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		return os.WriteFile(name, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// smoothOf writes a TOG of any dtype whose pixels change little from one to the next.
func smoothOf(t testing.TB, path string, dtype chunk.DType, bands, side, tile, seed int) {
	t.Helper()
	size, r := dtype.Size(), rand.New(rand.NewPCG(2, uint64(seed)))
	samples := make([]byte, size*bands*side*side)
	for i := range bands * side * side {
		v := uint64(i%side*seed/7 + i/side%side + r.IntN(4))
		for k := range size {
			samples[size*i+k] = byte(v >> (8 * k))
		}
	}
	var b bytes.Buffer
	if err := tog.Write(&b, samples, tog.Options{Shape: [3]int{bands, side, side}, DType: dtype,
		Tile: tile, Level: 1, Predictor: chunk.NoPredictor}); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// TestRecodedByBusyWorkers: where no worker is ever idle, chunks are encoded all the same, within the share of their
// time, until all are.
func TestRecodedByBusyWorkers(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		smoothTOG(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), 3, 192, 64, i+1)
	}
	decoders := resources.NewDecoders(2)
	decoders.Begin("others")
	decoders.Begin("others")
	e, err := loader.Open(t.Context(), loader.Spec{Source: dir, BatchSize: 4},
		loader.Options{Recode: true, RecodeShare: 0.5, Workers: 2, Decoders: decoders})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for epoch := uint64(0); ; epoch++ {
		before := e.Recoded().Counts()
		epochOf(t, e, epoch)
		e.Recoded().Settle()
		if after := e.Recoded().Counts(); after.Missed == before.Missed {
			if after.Used == 0 || !decoders.AllBusy() {
				t.Errorf("%+v", after)
			}
			return
		}
	}
}
