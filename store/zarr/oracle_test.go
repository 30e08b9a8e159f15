package zarr

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
)

// written is an array by testdata/random_arrays.py, and what zarr-python reads of it.
type written struct {
	Path   string  `json:"path"`
	Format int     `json:"format"`
	Shape  []int64 `json:"shape"`
	DType  string  `json:"dtype"`
	Reads  []struct {
		Lo     []int64 `json:"lo"`
		Hi     []int64 `json:"hi"`
		SHA256 string  `json:"sha256"`
	} `json:"reads"`
}

// digest returns the hash of samples that random_arrays.py makes: NaN of every kind is one.
func digest(b []byte, t chunk.DType) string {
	b = bytes.Clone(b)
	for i := 0; i < len(b); i += t.Size() {
		s := b[i : i+t.Size()]
		switch t {
		case chunk.Float16:
			if v := binary.LittleEndian.Uint16(s); v&0x7c00 == 0x7c00 && v&0x3ff != 0 {
				binary.LittleEndian.PutUint16(s, 0x7e00)
			}
		case chunk.Float32:
			if v := math.Float32frombits(binary.LittleEndian.Uint32(s)); v != v {
				binary.LittleEndian.PutUint32(s, 0x7fc00000)
			}
		case chunk.Float64:
			if v := math.Float64frombits(binary.LittleEndian.Uint64(s)); v != v {
				binary.LittleEndian.PutUint64(s, 0x7ff8000000000000)
			}
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readBox reads a box of an array in C order.
func readBox(t *testing.T, a *arrays.Array, lo, hi []int64) []byte {
	t.Helper()
	n := int64(a.DType.Size())
	for d := range lo {
		n *= hi[d] - lo[d]
	}
	dst := make([]byte, n)
	for i := range dst {
		dst[i] = 0xdb
	}
	if err := a.Read(t.Context(), dst, lo, hi); err != nil {
		t.Fatal(err)
	}
	return dst
}

// compare reads every array of a list in dir, and compares with what zarr-python read.
func compare(t *testing.T, dir string, list io.Reader) (count int) {
	var files openers.Files
	defer files.Close()
	lines := bufio.NewScanner(list)
	lines.Buffer(nil, 1<<20)
	codecs := map[string]int{}
	for lines.Scan() {
		var w written
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		n, err := Open(t.Context(), &files, filepath.Join(dir, w.Path), arrays.Options{})
		if err != nil {
			t.Errorf("%s: %v", w.Path, err)
			continue
		}
		a := n.Array
		if a == nil || a.Format != w.Format || (a.DType.String() != w.DType && w.DType != "bool") {
			t.Fatalf("%s: opened as %+v", w.Path, a)
		}
		for _, c := range a.Codecs {
			codecs[c]++
		}
		for _, read := range w.Reads {
			if got := digest(readBox(t, a, read.Lo, read.Hi), a.DType); got != read.SHA256 {
				t.Errorf("%s (%s %v in %v, codecs %v): box %v to %v differs from what zarr-python reads", w.Path,
					w.DType, a.Shape, a.Chunks, a.Codecs, read.Lo, read.Hi)
				break
			}
		}
		count++
	}
	t.Logf("%d arrays, codecs %v", count, codecs)
	return count
}

// TestRandomArrays: boxes of random arrays that zarr-python writes have the cells that it reads of them.
func TestRandomArrays(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_ZARR")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_ZARR names no interpreter with the package zarr")
	}
	seed, count := rand.Uint64()>>12, 1000
	if testing.Short() {
		count = 300
	}
	for name, to := range map[string]func(int){
		"CHASKI_ORACLE_COUNT": func(n int) { count = n },
		"CHASKI_ORACLE_SEED":  func(n int) { seed = uint64(n) },
	} {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			to(n)
		}
	}
	t.Logf("CHASKI_ORACLE_SEED=%d", seed)
	dir := t.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), python, "testdata/random_arrays.py", dir,
		strconv.FormatUint(seed, 10), strconv.Itoa(count))
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := compare(t, dir, bytes.NewReader(list)); n < count*9/10 {
		t.Errorf("only %d of %d arrays were written", n, count)
	}
}
