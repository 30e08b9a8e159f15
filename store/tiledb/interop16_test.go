package tiledb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// writtenArray is a line of testdata/write16.py.
type writtenArray struct {
	Seed     int64
	What     string
	Disputed string // why the judge may be wrong
	Skipped  string
	Error    string
	Reads    []writtenRead
}

// writtenRead is a read, and what was written there.
type writtenRead struct {
	Read oracleRead
	Text string // of the box
	oracleResult
}

// TestReadsTileDB16: random arrays that libtiledb 1.6.3 wrote, the writer of this format, are here
// what they are to libtiledb of today. Where that fails, or is known to be wrong, what was written
// decides.
//
// The arrays are the same in every run, since that library has faults that nobody has met yet. CHASKI_ORACLE_SEED is
// the seed of the first of others; that of one that fails makes it again.
func TestReadsTileDB16(t *testing.T) {
	library, python := os.Getenv("CHASKI_ORACLE_LIBTILEDB16"), os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if library == "" || python == "" {
		t.Skip("CHASKI_ORACLE_LIBTILEDB16 names no libtiledb 1.6.3")
	}
	seed, err := strconv.ParseInt(os.Getenv("CHASKI_ORACLE_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("CHASKI_ORACLE_SEED=%d", seed)
	count := map[string]int{}
	var arrays []*writtenArray
	var reads []oracleRead
	for _, w := range writeTileDB16(t, python, library, seed) {
		switch {
		case w.Skipped != "":
			count["arrays skipped: "+w.Skipped]++
		case w.Error != "":
			count["arrays not written"]++
			t.Logf("%d: %s", w.Seed, w.Error)
		default:
			arrays = append(arrays, &w)
			for i := range w.Reads {
				reads = append(reads, w.Reads[i].Read)
			}
		}
	}
	if len(arrays) < 5 || len(arrays) < 4*count["arrays not written"] {
		t.Errorf("%d arrays were written, %d not", len(arrays), count["arrays not written"])
	}
	judged := askJudge(t, python, reads)
	for _, w := range arrays {
		for i := range w.Reads {
			r := &w.Reads[i]
			got := r.read()
			by := verdict(w, r, &got, &judged[0])
			if count[by]++; by == "" {
				t.Errorf("%d in %s: %s\njudge: %s\nas written: %t; %s", w.Seed, r.Text, got.Error, judged[0].Error,
					got.equal(&r.oracleResult), w.What)
			}
			judged = judged[1:]
		}
	}
	if count[byJudge] < len(reads)*3/4 {
		t.Errorf("of %d reads the judge made %d", len(reads), count[byJudge])
	}
	t.Logf("%d arrays, %d reads: %v", len(arrays), len(reads), count)
}

const byJudge = "reads as libtiledb of today"

// verdict says by what a read is right; "" is that it is not.
func verdict(w *writtenArray, r *writtenRead, got, judge *oracleResult) string {
	switch {
	case got.equal(judge):
		return byJudge
	case !got.equal(&r.oracleResult):
		return ""
	case w.Disputed != "":
		return "reads as written: " + w.Disputed
	case judge.Error != "":
		return "reads as written, which libtiledb of today fails to"
	}
	return ""
}

// equal reports whether both are results, and the same.
func (r *oracleResult) equal(o *oracleResult) bool {
	return r.Error == "" && o.Error == "" && r.Coords == o.Coords && maps.Equal(r.Attrs, o.Attrs)
}

// read makes the read here, after all of the array was verified.
func (r *writtenRead) read() (w oracleResult) {
	ctx := context.Background()
	var files Files
	defer files.Close()
	var o Options
	if r.Read.Key != nil {
		o.Key = []byte(*r.Read.Key)
	}
	a, err := Open(ctx, &files, r.Read.Path, o)
	if err != nil {
		return oracleResult{Error: err.Error()}
	}
	if _, err := a.Verify(ctx); err != nil {
		return oracleResult{Error: err.Error()}
	}
	box, err := a.Schema.ParseBox(r.Text)
	if err == nil {
		_, _, w, err = resultOf(a, box)
	}
	if err != nil {
		return oracleResult{Error: err.Error()}
	}
	return w
}

// writeTileDB16 has random arrays written, for 25 seconds at most, and one that was begun then.
func writeTileDB16(t *testing.T, python, library string, seed int64) (arrays []writtenArray) {
	t.Helper()
	cmd := exec.Command(python, filepath.Join("testdata", "write16.py"), library, t.TempDir(),
		fmt.Sprint(seed), "150", "25")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		var a writtenArray
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		arrays = append(arrays, a)
	}
	return arrays
}

// askJudge has reads made by libtiledb of today, for 20 seconds at most. A read at which it crashes
// is an error, and the next one has a new process.
func askJudge(t *testing.T, python string, reads []oracleRead) (results []oracleResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for len(results) < len(reads) {
		in, err := json.Marshal(reads[len(results):])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, python, filepath.Join("testdata", "oracle.py"))
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
		out, failed := cmd.Output()
		for line := range bytes.Lines(out) {
			var r oracleResult
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		if len(results) < len(reads) {
			results = append(results, oracleResult{Error: fmt.Sprint("libtiledb: ", failed)})
		}
	}
	return results
}
