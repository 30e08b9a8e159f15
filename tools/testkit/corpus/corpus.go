// Package corpus finds the test corpus that lies beside the module, and reads its manifest. Only
// tests import it; a test that needs the corpus is skipped without it.
package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// start is the folder of the tested package, where go test starts the tests, which may change folders. With -trimpath,
// files of Go have no paths to begin from.
var start, startErr = os.Getwd()

// Root returns the module's root directory.
func Root(t testing.TB) string {
	t.Helper()
	if startErr != nil {
		t.Fatal(startErr)
	}
	dir := start
	for !isRoot(dir) {
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("no go.mod of the module above %s", start)
		}
		dir = up
	}
	return dir
}

// isRoot reports whether dir is the module's root, not the root of another module inside it.
func isRoot(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(mod, []byte("module github.com/chaski-eo/chaski\n"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Dir returns the corpus directory: the environment variable CHASKI_CORPUS, or
// ../shared/corpus beside the module. It skips the test if neither exists.
func Dir(t testing.TB) string {
	t.Helper()
	dir := folder(t)
	if !exists(dir) {
		t.Skip("no test corpus (CHASKI_CORPUS)")
	}
	return dir
}

// folder returns where the corpus would be.
func folder(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("CHASKI_CORPUS"); dir != "" {
		return dir
	}
	return filepath.Join(Root(t), "..", "shared", "corpus")
}

// Testdata returns the module's own folder of small real files.
func Testdata(t testing.TB) string { return filepath.Join(Root(t), "testdata") }

// File is one line of a raster manifest: a file, and the result of its original reader. Fields that
// a kind does not have are empty.
type File struct {
	Dir  string `json:"-"` // folder of the manifest
	Kind string // rumi, rumi-new, tiff, stack, frame, bad
	Path string // relative to Dir
	Note string

	Shape      []int // bands, height, width
	DType      string
	Tile       *int
	Unit       string // tile or cell, of rumi-new
	SHA256     string // whole image, C order, little-endian
	TOG        bool
	NoData     any
	Overviews  []int
	MaskSHA256 *string `json:"mask_sha256"`
	Options    map[string]any
	Codecs     []string
	Layout     *Layout
	Blob       string // hex
	Reads      []Read
	Members    []string // of a stack
	Geo        *Geo

	// Of kind bad:
	Format, Base, What, Expect string
	IdenticalSHA256            string `json:"identical_sha256"`
}

// Layout holds the manifest's description of a TIFF's first IFD.
type Layout struct {
	ByteOrder                            string
	BigTIFF                              bool
	IFDOffset                            int64 `json:"ifd_offset"`
	Compression, Predictor, Planar, Bits int
	SPP                                  int
	Tiled                                bool
	Offsets, ByteCounts                  []int64
	NChunks                              int `json:"n_chunks"`
	Sparse                               int
	Ghost                                *string
	Tags                                 []int
}

// Geo is the location of an image: an affine transform (a, b, c, d, e, f) and an EPSG code.
type Geo struct {
	Transform []float64
	CRS       any
}

// Read is one windowed read and its result.
type Read struct {
	Pattern    string
	N, B, Y, X *Sel
	Shape      []int
	SHA256     string
}

// Sel selects from one axis: a half-open slice, or a list of positions.
type Sel struct{ Slice, List []int }

// Bytes reads the file.
func (f *File) Bytes(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Dir, f.Path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// MayRefuse reports whether an error of kind unsupported is as good as the pixels.
func (f *File) MayRefuse() bool {
	for _, s := range [...]string{"an error is fine", "a clear error is expected"} {
		if n := len(f.Note) - len(s) - 1; n > 0 && f.Note[n:n+len(s)] == s {
			return true
		}
	}
	return false
}

// CheckBad checks the samples or the error that a reader returned for a bad file: they must be what the row says, and
// every error must have a kind.
func (f *File) CheckBad(t testing.TB, samples []byte, err error) {
	t.Helper()
	if err != nil {
		if fault.KindOf(err) == 0 {
			t.Errorf("error without a kind: %v", err)
		}
		return
	}
	same := SHA256(samples) == f.IdenticalSHA256
	if f.Expect == "error" || f.Expect == "error-or-identical" && !same {
		t.Errorf("%s: accepted, identical %v", f.What, same)
	}
}

// Raster returns the rows of the corpus's raster manifest, or skips the test.
func Raster(t testing.TB) []File {
	t.Helper()
	return Manifest(t, filepath.Join(Dir(t), "raster"))
}

// Files returns the rows of the corpus's raster manifest or, without a corpus, the rows of the
// module's testdata, which are some of them.
func Files(t testing.TB) []File {
	t.Helper()
	if dir := filepath.Join(folder(t), "raster"); exists(dir) {
		return Manifest(t, dir)
	}
	return Manifest(t, filepath.Join(Testdata(t), "raster"))
}

// Manifest returns the rows of dir/manifest.jsonl.
func Manifest(t testing.TB, dir string) []File {
	t.Helper()
	files := Rows[File](t, dir)
	for i := range files {
		files[i].Dir = dir
	}
	return files
}

// Rows returns the rows of dir/manifest.jsonl, a JSON value a line. There must be one at least.
func Rows[T any](t testing.TB, dir string) []T {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows []T
	decoder := json.NewDecoder(file)
	for decoder.More() {
		var row T
		if err := decoder.Decode(&row); err != nil {
			t.Fatalf("%s row %d: %v", dir, len(rows), err)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("%s: an empty manifest", dir)
	}
	return rows
}

// Of returns the rows of a kind and, for bad files, of one of the formats.
func Of(files []File, kind string, formats ...string) []File {
	var picked []File
	for _, file := range files {
		ok := file.Kind == kind && len(formats) == 0
		for _, want := range formats {
			ok = ok || file.Kind == kind && file.Format == want
		}
		if ok {
			picked = append(picked, file)
		}
	}
	return picked
}

// SHA256 returns the hash of b as the manifest writes it.
func SHA256(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// DamageParquet returns a copy of a Parquet file that is cut short or has another byte, somewhere
// or in its footer, by turns as k counts up.
func DamageParquet(rng *rand.Rand, b []byte, k int) []byte {
	c := bytes.Clone(b)
	footer := int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	pos := 0
	switch k % 3 {
	case 0:
		return c[:rng.IntN(len(c))]
	case 1:
		pos = rng.IntN(len(c))
	case 2:
		pos = len(c) - 8 - 1 - rng.IntN(footer)
	}
	c[pos] ^= byte(1 + rng.IntN(255))
	return c
}

// Allocated returns the bytes allocated while f runs, freed or not, by all goroutines.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
