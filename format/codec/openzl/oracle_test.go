package openzl

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// TestOriginalGraphs: frames that the original library writes now, of random graphs, levels, format versions and
// inputs, decode to what went into them. CHASKI_ORACLE_COUNT sets how many there are, CHASKI_ORACLE_SEED the seed,
// CHASKI_ORACLE_GRAPHS the names of nodes and graphs to take alone.
func TestOriginalGraphs(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with openzl")
	}
	count, seed := os.Getenv("CHASKI_ORACLE_COUNT"), os.Getenv("CHASKI_ORACLE_SEED")
	if count == "" {
		count = "1000"
		if testing.Short() {
			count = "300"
		}
	}
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
	}
	t.Logf("CHASKI_ORACLE_SEED=%s", seed)
	dir := t.TempDir()
	args := append([]string{filepath.Join("testdata", "random_graphs.py"), dir, seed, count},
		strings.Fields(os.Getenv("CHASKI_ORACLE_GRAPHS"))...)
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.zl"))
	if want, _ := strconv.Atoi(count); err != nil || len(files) < want*9/10 {
		t.Fatalf("%d frames were written, not %s: %v", len(files), count, err)
	}
	d := NewDecoder(Options{MaxOutput: 64 << 20})
	used := map[string]int{}
	for _, file := range files {
		frame := read(t, file)
		stem := strings.TrimSuffix(file, ".zl")
		if info, err := Inspect(frame); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		} else {
			for _, c := range info.Codecs {
				used[c]++
			}
		}
		outs, err := d.Decode(frame)
		switch want := read(t, stem+".raw"); {
		case err != nil && errors.Is(err, fault.Unsupported):
			t.Errorf("%s: not read: %v", filepath.Base(file), err)
		case err != nil:
			t.Errorf("%s: %v", filepath.Base(file), err)
		case len(outs) != 1 || !bytes.Equal(outs[0].Data, want):
			t.Errorf("%s: wrong content", filepath.Base(file))
		case outs[0].Type == String && !bytes.Equal(little(outs[0].Lens), read(t, stem+".len")):
			t.Errorf("%s: wrong string lengths", filepath.Base(file))
		}
	}
	var names []string
	for name, n := range used {
		names = append(names, name+" "+strconv.Itoa(n))
	}
	sort.Strings(names)
	t.Logf("%d frames, frames with each codec: %s", len(files), strings.Join(names, ", "))
}
