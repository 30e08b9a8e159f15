package zarr

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// committed extracts the arrays that zarr-python wrote.
func committed(t *testing.T) (dir string) {
	t.Helper()
	z, err := zip.OpenReader("testdata/arrays.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir = t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	return dir
}

// verifyAt verifies an array.
func verifyAt(t *testing.T, dir string) (arrays.Checked, error) {
	t.Helper()
	var files openers.Files
	defer files.Close()
	n, err := Open(t.Context(), &files, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Array.Verify(t.Context(), 3)
}

// objectsOf returns the files of an array that are not metadata.
func objectsOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !slices.Contains([]string{meta3, array2, attrs2}, d.Name()) {
			list = append(list, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestVerifySound: arrays that zarr-python wrote have no faults, and each of their objects is counted.
func TestVerifySound(t *testing.T) {
	dir := committed(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		c, err := verifyAt(t, at)
		if err != nil || c.Bad != 0 || c.Absent < 0 {
			t.Errorf("%s: %+v, %v", e.Name(), c, err)
		}
		var files openers.Files
		n, err := Open(t.Context(), &files, at, arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		files.Close()
		if objects := objectsOf(t, at); n.Array.Shards == nil && int(c.Chunks) != len(objects) {
			t.Errorf("%s: %d chunks are checked, there are %d files", e.Name(), c.Chunks, len(objects))
		}
	}
}

// TestVerifyCounts: chunks that were not written are counted, in shards and outside of them.
func TestVerifyCounts(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "zarr.json", plainArray) // 2 by 2 chunks of 4 bytes
	put(t, dir, "c/0/1", "abcd")
	c, err := verifyAt(t, dir)
	if want := (arrays.Checked{Chunks: 1, Absent: 3, Bytes: 4}); err != nil || c != want {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
	sharded := t.TempDir()
	put(t, sharded, "zarr.json", strings.Replace(plainArray, `"bytes"`, `{"name":"sharding_indexed","configuration":{`+
		`"chunk_shape":[1,1],"codecs":["bytes"],`+
		`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}`, 1))
	// Two chunks of one byte at 0 and 1, then two that were not written.
	entry := func(b byte) string { return string([]byte{b, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}) }
	put(t, sharded, "c/1/0", "xy"+entry(0)+entry(1)+strings.Repeat("\xff", 32))
	c, err = verifyAt(t, sharded)
	if want := (arrays.Checked{Chunks: 2, Absent: 14, Bytes: 2}); err != nil || c != want {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
	// The same byte as every chunk: a small file must not be decoded many times over.
	put(t, sharded, "c/1/1", strings.Repeat(string([]byte{0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0}), 4))
	c, err = verifyAt(t, sharded)
	want := arrays.Checked{Chunks: 2, Absent: 10, Bytes: 2, Bad: 1}
	if fault.KindOf(err) != fault.Corrupt || c != want {
		t.Errorf("%+v, %v; want %+v and corrupt", c, err, want)
	}
}

// TestVerifyNamesTheFirst: all faults are counted, and the error is the first by its place, with array and chunk.
func TestVerifyNamesTheFirst(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "zarr.json", plainArray)
	put(t, dir, "c/0/0", "abcd")
	put(t, dir, "c/0/1", "abc")
	put(t, dir, "c/1/1", "")
	for range 20 {
		c, err := verifyAt(t, dir)
		if c.Bad != 2 || c.Chunks != 1 || c.Absent != 1 || fault.KindOf(err) != fault.Corrupt ||
			!strings.HasPrefix(err.Error(), filepath.Join(dir, "c/0/1")+": chunk c/0/1") {
			t.Fatalf("%+v, %v", c, err)
		}
	}
}

// TestVerifyHugeGrid: a grid of more objects than can be asked for is refused.
func TestVerifyHugeGrid(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(plainArray, "[4,4]", "[4611686018427387904,4611686018427387904]", 1)
	put(t, dir, "zarr.json", strings.Replace(text, "[2,2]", "[1,1]", 1))
	if c, err := verifyAt(t, dir); fault.KindOf(err) != fault.Limit {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestVerifyAgreesWithReading: of damaged arrays, Verify refuses those that cannot be read, and more only if the chunks
// of a shard lie over each other. Under CRC-32C no changed byte is missed.
func TestVerifyAgreesWithReading(t *testing.T) {
	dir := committed(t)
	r := rand.New(rand.NewPCG(1, 2))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	refused, sums := 0, 0
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		objects := objectsOf(t, at)
		for range min(len(objects), 4) {
			p := objects[r.IntN(len(objects))]
			sound, err := os.ReadFile(p)
			if err != nil || len(sound) == 0 {
				t.Fatal(err, len(sound))
			}
			bad := slices.Clone(sound)
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
			testfile.Write(t, p, bad)
			_, got := verifyAt(t, at)
			if want := readAll(t, at); (got == nil) != (want == nil) && (want != nil ||
				!strings.Contains(got.Error(), "more bytes than the shard")) {
				t.Errorf("%s: Verify says %v, reading %v", p, got, want)
			}
			if got != nil {
				refused++
				if strings.Contains(got.Error(), "the checksum does not match") {
					sums++
				}
			}
			testfile.Write(t, p, sound)
		}
	}
	if refused < 50 || sums < 20 {
		t.Errorf("%d damaged arrays are refused, %d for a checksum: the arrays test little", refused, sums)
	}
}

// readAll reads all cells of an array.
func readAll(t *testing.T, dir string) error {
	t.Helper()
	var files openers.Files
	defer files.Close()
	n, err := Open(t.Context(), &files, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := n.Array
	size := int64(a.DType.Size())
	for _, n := range a.Shape {
		size *= n
	}
	return a.Read(t.Context(), make([]byte, size), make([]int64, len(a.Shape)), a.Shape)
}

// TestVerifyDamaged: Verify passes random arrays of zarr-python, and refuses damaged ones where zarr-python does, and
// where the damage is under a checksum and changes what it reads.
func TestVerifyDamaged(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_ZARR")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_ZARR names no interpreter with the package zarr")
	}
	seed := strconv.FormatUint(rand.Uint64()>>12, 10)
	if s := os.Getenv("CHASKI_ORACLE_SEED"); s != "" {
		seed = s
	}
	t.Logf("CHASKI_ORACLE_SEED=%s", seed)
	sound, damaged := t.TempDir(), t.TempDir()
	run := func(args ...string) []byte {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), python, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	count := "250"
	if testing.Short() {
		count = "80"
	}
	list := run("testdata/random_arrays.py", sound, seed, count)
	for line := range bytes.Lines(list) {
		var w written
		if err := json.Unmarshal(line, &w); err != nil {
			t.Fatal(err)
		}
		if c, err := verifyAt(t, filepath.Join(sound, w.Path)); err != nil {
			t.Errorf("%s: %+v, %v", w.Path, c, err)
		}
	}
	verdicts := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(run("testdata/damaged_arrays.py", sound, damaged, seed, "4")))
	for lines.Scan() {
		var d struct {
			Path, Object, Kind, Verdict string
			Summed                      bool
		}
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		_, err := verifyAt(t, filepath.Join(damaged, d.Path))
		key := d.Verdict
		if d.Summed {
			key += " under a checksum"
		}
		if err != nil {
			key += ", refused"
			kinded(t, err)
		}
		verdicts[key]++
		if err == nil && (d.Verdict == "refused" || d.Verdict == "other" && d.Summed) {
			t.Errorf("%s: %s of %s passes; of zarr-python: %s", d.Path, d.Kind, d.Object, d.Verdict)
		}
	}
	t.Log(verdicts)
}
