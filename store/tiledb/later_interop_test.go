package tiledb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// laterRead is a read of an array that testdata/later.py wrote.
type laterRead struct {
	Path  string `json:"path"`
	Text  string `json:"text"`
	Until uint64 `json:"until"`
}

// laterResult is what libtiledb reads.
type laterResult struct {
	Error  string   `json:"error"`
	Cells  int      `json:"cells"`
	SHA256 string   `json:"sha256"`
	Attrs  []string `json:"attrs"`
	verify bool     // every read of the array succeeds
}

// TestLaterArrays: random arrays that libtiledb of today writes have the cells that it reads of them.
func TestLaterArrays(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TILEDB names no interpreter with the package tiledb")
	}
	seed, count := laterSeed(t), 60
	if testing.Short() {
		count = 20
	}
	if s := os.Getenv("CHASKI_ORACLE_COUNT"); s != "" {
		var err error
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	library := "package"
	if s := os.Getenv("CHASKI_WRITER_LIBTILEDB"); s != "" {
		library = s // an older one, which writes an older format
	}
	written := laterWrite(t, python, library, seed, count)
	results := bufio.NewScanner(bytes.NewReader(laterReads(t, python, written)))
	results.Buffer(nil, 1<<20)
	arrays, reads, cells, unread, odd, versions := 0, 0, 0, 0, 0, map[int]int{}
	for line := range bytes.Lines(written) {
		var one struct {
			Reads []laterRead `json:"reads"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		if len(one.Reads) > 0 {
			arrays++
		}
		all, broken := make([]laterResult, len(one.Reads)), false
		for k := range all {
			if !results.Scan() {
				t.Fatalf("no result for %s", one.Reads[k].Path)
			}
			if err := json.Unmarshal(results.Bytes(), &all[k]); err != nil {
				t.Fatal(err)
			}
			broken = broken || all[k].Error != ""
		}
		for k, what := range one.Reads {
			want := all[k]
			if want.Error != "" { // what the library writes but does not read again says nothing
				unread++
				continue
			}
			want.verify = !broken
			n, version, err := laterCompare(t, what, want)
			// The library has given other bytes for the same read now and then, of memory that it did not write, and
			// has crashed: only an answer that it gives twice counts against us.
			twice := false
			for try := 0; err != nil && try < 3; try++ {
				again := laterAgain(t, python, line, k)
				if again.verify = want.verify; again.Error != "" {
					continue
				}
				if again.SHA256 == want.SHA256 {
					twice = true
				} else if n, version, err = laterCompare(t, what, again); err == nil {
					odd++
				}
			}
			if err != nil && !twice {
				unread++
				continue
			}
			if err != nil {
				t.Errorf("%s [%s] until %d: %v", filepath.Base(what.Path), what.Text, what.Until, err)
			}
			reads, cells = reads+1, cells+n
			versions[version]++
		}
	}
	t.Logf("CHASKI_ORACLE_SEED=%d: %d arrays, %d reads of %d cells are equal to libtiledb's, which does not "+
		"read %d, and reads %d in two ways; reads by "+
		"format version: %v", seed, arrays, reads, cells, unread, odd, versions)
	if reads < 2*arrays || arrays < count {
		t.Errorf("only %d reads of %d arrays", reads, arrays)
	}
}

func laterSeed(t *testing.T) uint64 {
	if s := os.Getenv("CHASKI_ORACLE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return rand.Uint64() >> 32
}

// laterReads makes the reads of some lines. Those of an array on which the library crashes are errors.
func laterReads(t *testing.T, python string, lines []byte) (results []byte) {
	t.Helper()
	out, err := laterRun(lines, python, "testdata/later.py", "read", "package")
	if err == nil {
		return out
	}
	list := slices.Collect(bytes.Lines(lines))
	if len(list) > 1 {
		for _, line := range list {
			results = append(results, laterReads(t, python, line)...)
		}
		return results
	}
	t.Logf("reading: %v", err)
	return bytes.Repeat([]byte("{\"error\": \"it crashes\"}\n"), bytes.Count(lines, []byte("\"path\"")))
}

// laterAgain makes the reads of an array again, and returns what read k gives.
func laterAgain(t *testing.T, python string, line []byte, k int) (r laterResult) {
	t.Helper()
	out := laterReads(t, python, line)
	if err := json.Unmarshal(bytes.Split(out, []byte("\n"))[k], &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// laterWrite has arrays written, in processes of 20 each: the library has crashed now and then, and what it wrote
// before that counts.
func laterWrite(t *testing.T, python, library string, seed uint64, count int) (lines []byte) {
	t.Helper()
	for batch := uint64(0); count > 0; batch++ {
		out, err := laterRun(nil, python, "testdata/later.py", "write", library, t.TempDir(),
			fmt.Sprint((seed+batch)%1e9), fmt.Sprint(min(count, 20)))
		if err != nil {
			t.Logf("batch %d: %v", batch, err)
			out = out[:bytes.LastIndexByte(out, '\n')+1]
		}
		n := bytes.Count(out, []byte("\"reads\""))
		if n == 0 {
			t.Fatalf("libtiledb writes nothing: %v", err)
		}
		lines, count = append(lines, out...), count-n
	}
	return lines
}

func laterRun(in []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return out, err
}

// laterCompare makes a read and compares it. It also verifies the array.
func laterCompare(t *testing.T, what laterRead, want laterResult) (cells, version int, err error) {
	ctx := context.Background()
	var files Files
	defer files.Close()
	a, err := Open(ctx, &files, what.Path, Options{Until: what.Until})
	if err != nil {
		return 0, 0, err
	}
	if _, err := a.Verify(ctx); want.verify && err != nil {
		return 0, a.Format(), fmt.Errorf("verify: %w", err)
	}
	rows, err := laterRows(ctx, a, what.Text, want.Attrs)
	if err != nil {
		return 0, a.Format(), err
	}
	sum := sha256.Sum256(bytes.Join(rows, nil))
	if len(rows) != want.Cells || hex.EncodeToString(sum[:]) != want.SHA256 {
		return 0, a.Format(), fmt.Errorf("%d cells %x, libtiledb has %d cells %s", len(rows), sum[:4], want.Cells,
			want.SHA256[:8])
	}
	return len(rows), a.Format(), nil
}

// laterRows reads cells in the form of testdata/later.py: coordinates and values, each preceded by its length.
func laterRows(ctx context.Context, a *Array, text string, attrs []string) ([][]byte, error) {
	box, err := a.Schema.ParseBox(text)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, name := range attrs {
		if list = append(list, a.Schema.Attr(name)); list[len(list)-1] < 0 {
			return nil, fmt.Errorf("there is no attribute %q", name)
		}
	}
	r := a.NewReader()
	if a.Schema.Dense {
		var columns []Values
		for _, i := range list {
			v, err := r.Dense(ctx, i, box)
			if err != nil {
				return nil, err
			}
			columns = append(columns, v)
		}
		_, n, err := a.Shape(box)
		if err != nil {
			return nil, err
		}
		return laterJoin(n, columns, laterSizes(a, list)), nil
	}
	cells, err := r.Sparse(ctx, list, box)
	if err != nil {
		return nil, err
	}
	columns, sizes := cells.Dims, []int(nil)
	for d := range a.Schema.Dims {
		sizes = append(sizes, a.Schema.Type(d).Size())
	}
	if columns == nil {
		columns = laterSplit(cells, sizes)
	}
	rows := laterJoin(cells.N, append(columns, cells.Values...), append(sizes, laterSizes(a, list)...))
	slices.SortFunc(rows, bytes.Compare)
	return rows, nil
}

// laterSplit splits coordinates by dimension.
func laterSplit(cells *Cells, sizes []int) []Values {
	out := make([]Values, len(sizes))
	for b := cells.Coords; len(b) > 0; {
		for d, n := range sizes {
			out[d].Data = append(out[d].Data, b[:n]...)
			b = b[n:]
		}
	}
	return out
}

func laterSizes(a *Array, attrs []int) []int {
	var sizes []int
	for _, i := range attrs {
		sizes = append(sizes, a.Schema.Attrs[i].CellSize())
	}
	return sizes
}

// laterJoin joins columns to rows.
func laterJoin(n int, columns []Values, sizes []int) [][]byte {
	rows := make([][]byte, n)
	for k, v := range columns {
		for i := range rows {
			b := []byte(nil)
			switch {
			case v.Valid != nil && v.Valid[i] == 0:
				rows[i] = binary.LittleEndian.AppendUint64(rows[i], ^uint64(0))
				continue
			case v.Offsets == nil:
				b = v.Data[i*sizes[k] : (i+1)*sizes[k]]
			case i+1 < len(v.Offsets):
				b = v.Data[v.Offsets[i]:v.Offsets[i+1]]
			default:
				b = v.Data[v.Offsets[i]:]
			}
			rows[i] = append(binary.LittleEndian.AppendUint64(rows[i], uint64(len(b))), b...)
		}
	}
	return rows
}
