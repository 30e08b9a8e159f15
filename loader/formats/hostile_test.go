package formats_test

import (
	"context"
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/format/vector"
	_ "github.com/chaski-eo/chaski/loader/formats"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/counted"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// tera is the size that files claim: they have their bytes, and a hole.
const tera = 1 << 40

// samples are files of each format whose structures lead to each other.
var samples = []string{
	"demo/coast.tif", "raster/*/tog*.tif", "codecs/bits-11.tif", "overviews/*.tif", "masks/*.tif",
	"raster/rumi-3/*-9.rumi",
	"hdf5/*.h5", "hdf5/scene.nc", "matlab/*.mat", "tensors/*.pt",
	"tensors/*.safetensors",
	"coast/*.tacozip", "coast/coast_dir/METADATA/level2.parquet", "taco3/flat.zip",
	"containers/taco-v1/*.taco", "containers/tortilla/*.tortilla", "stores/*/a.zarr.zip", "alpha/grey.png",
	"openzl/fv14-n16.zl", "vrt/alpha.vrt", "tiledb/cube", "coast/coast_dir", "beside/world.png",
}

// misled returns a copy of a file some of whose numbers, wherever they may stand, are another one: with all, all that
// may be addresses, and else one in sixty of those that may be sizes.
func misled(random *rand.Rand, good []byte, all bool) []byte {
	b, size := append([]byte(nil), good...), uint64(len(good))
	place := uint64(random.IntN(len(b)))
	others := []uint64{place, size, tera / 2, 1<<31 - 1, 1 << 33, 64 << 20, 1 << 20, 1<<16 - 1}
	for pos := 0; pos+8 <= len(b); pos++ {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			wide, narrow := order.Uint64(good[pos:]), uint64(order.Uint32(good[pos:]))
			value := place
			if !all {
				value = others[random.IntN(len(others))]
			}
			switch chosen := all && random.IntN(3) == 0 || !all && random.IntN(60) == 0; {
			case !chosen:
			case wide > 8 && wide <= size:
				order.PutUint64(b[pos:], value)
			case narrow > 8 && narrow <= size:
				order.PutUint32(b[pos:], uint32(min(value, 1<<32-1)))
			}
		}
	}
	return b
}

// put writes a file with b at an offset, of a size.
func put(t *testing.T, name string, b []byte, off, size int64) {
	t.Helper()
	file, err := os.Create(name)
	if err == nil {
		_, err = file.WriteAt(b, off)
	}
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestClaimsTakeNothing: to read the structure of a file of any format takes memory and reads by the bytes that are
// there, with a hole of a tebibyte before or behind them, and when its addresses lead to one place.
func TestClaimsTakeNothing(t *testing.T) {
	race.SkipCovered(t)
	dir, random, rounds := t.TempDir(), rand.New(rand.NewPCG(1, 2)), 12
	if testing.Short() {
		rounds = 3
	}
	for _, pattern := range samples {
		names, err := filepath.Glob("../../testdata/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names[:min(len(names), 6)] {
			for k := range rounds {
				for hole := range 3 {
					path := filepath.Join(dir, filepath.Base(name))
					size := copied(t, name, path, func(b []byte) ([]byte, int64, int64) {
						if k > 0 {
							b = misled(random, b, k%2 == 0)
						}
						switch size := int64(len(b)); hole {
						case 1:
							return b, 0, tera
						case 2:
							return b, tera - size, tera
						default:
							return b, 0, size
						}
					})
					check(t, name, size, func(ctx context.Context, o *counted.Files) {
						_, _ = survey.Describe(ctx, path, nil, resources.Options{Opener: o})
					})
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// copied copies a file or the files of a directory, as change returns their bytes, where they stand, and their sizes.
func copied(t *testing.T, from, to string, change func(b []byte) ([]byte, int64, int64)) (size int) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		below, _ := filepath.Rel(from, name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, below), 0o755)
		}
		b := testfile.Read(t, name)
		if size += len(b); len(b) > 0 {
			b, off, end := change(b)
			put(t, filepath.Join(to, below), b, off, end)
			return nil
		}
		put(t, filepath.Join(to, below), b, 0, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// TestTextsBeforeHoles: the same of texts, which are read to their end.
func TestTextsBeforeHoles(t *testing.T) {
	race.SkipCovered(t)
	path := filepath.Join(t.TempDir(), "a")
	for name, begin := range map[string]string{
		"a.csv": "image,a\nx.tif,1\n", "a.json": `[{"image":"x.tif"}]`, "a.jsonl": "{\"image\":\"x.tif\"}\n",
		"a.geojson": `{"type":"FeatureCollection","features":[`, "coco.json": `{"images":[],"annotations":[`,
		"via.json": `{"_via_img_metadata":{`, "labelme.json": `{"shapes":[`, "voc.xml": "<annotation><object>",
		"yolo.txt": "0 .5 .5 .1 .1\n", "dota.txt": "1 1 5 1 5 5 1 5 x 0\n", "a.npy": "\x93NUMPY\x01\x00\x76\x00",
		"boxes.csv": "filename,xmin,ymin,xmax,ymax\na.tif,1,1,5,5\n", "nothing.csv": "", "nothing.json": "",
	} {
		put(t, path, []byte(begin), 0, tera)
		check(t, name, len(begin), func(ctx context.Context, o *counted.Files) {
			r, err := o.Open(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = text.Read(ctx, r, name, func(string) texts.Want { return texts.Values })
			open := source.OpenOne(func(context.Context) (source.Reader, error) { return r, nil })
			_, _ = vector.Open(ctx, open, name, vector.Options{OneImage: true, Class: true})
		})
	}
}

// check fails if a call makes too much memory, or reads too many bytes.
func check(t *testing.T, name string, size int, call func(ctx context.Context, o *counted.Files)) {
	t.Helper()
	o := &counted.Files{}
	defer o.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call(t.Context(), o)
	runtime.ReadMemStats(&after)
	// Pages of 16 KiB around the structures of HDF5 are read again, and all that was made counts, also what is free.
	most := int64(40<<20 + 16*size)
	if made := int64(after.TotalAlloc - before.TotalAlloc); made > most || o.Bytes.Load() > most {
		t.Errorf("%s, %d bytes: %d bytes of memory, %d bytes read", name, size, made, o.Bytes.Load())
	}
}
