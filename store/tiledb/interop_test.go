package tiledb

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// oracleRead is a read that testdata/oracle.py makes.
type oracleRead struct {
	Path  string       `json:"path"`
	Key   *string      `json:"key"`
	Dense bool         `json:"dense"`
	Box   [][2]string  `json:"box"`
	Dims  [][2]any     `json:"dims"`
	Cells int          `json:"cells"`
	Attrs []oracleAttr `json:"attrs"`
	Since uint64       `json:"since"`
	Until uint64       `json:"until"`
}

type oracleAttr struct {
	Name  string `json:"name"`
	Var   bool   `json:"var"`
	Bytes int    `json:"bytes"`
}

type oracleResult struct {
	Error  string
	Coords string
	Attrs  map[string]struct{ Data, Offsets string }
}

// TestTileDBReadsTheSame: random boxes of the arrays of the corpus are to libtiledb what they are here.
func TestTileDBReadsTheSame(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TILEDB names no Python with tiledb")
	}
	rnd := rand.New(rand.NewPCG(12, 13))
	var reads []oracleRead
	var wants []oracleResult
	for _, l := range lines(t, corpusDir(t)) {
		a := l.open(t)
		for range 12 {
			r, w := ownBox(t, a, l.options().Key, randomBox(rnd, a))
			if a.Schema.Dense || r.Cells > 0 {
				reads, wants = append(reads, r), append(wants, w)
			}
		}
	}
	askOracle(t, python, reads, wants)
}

// askOracle has the reads made and compares the answers.
func askOracle(t *testing.T, python string, reads []oracleRead, wants []oracleResult) {
	t.Helper()
	in, err := json.Marshal(reads)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join("testdata", "oracle.py"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(reads) {
		t.Fatalf("%d answers to %d reads", len(lines), len(reads))
	}
	for i, line := range lines {
		var got oracleResult
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(reads[i].Path)
		if got.Error != "" || got.Coords != wants[i].Coords {
			t.Errorf("%s in %v: %s, coordinates equal: %t", name, reads[i].Box, got.Error,
				got.Coords == wants[i].Coords)
			continue
		}
		for attr, w := range wants[i].Attrs {
			if got.Attrs[attr] != w {
				t.Errorf("%s in %v: attribute %s differs", name, reads[i].Box, attr)
			}
		}
	}
	t.Logf("%d reads", len(reads))
}

// ownBox reads a box of an array, and says what a read of the oracle is to give.
func ownBox(t *testing.T, a *Array, key []byte, box Box) (oracleRead, oracleResult) {
	t.Helper()
	s := a.Schema
	r := oracleRead{Path: a.uri, Dense: s.Dense, Since: a.o.Since, Until: a.o.Until}
	if key != nil {
		k := string(key)
		r.Key = &k
	}
	for d, i := range box {
		r.Box = append(r.Box, [2]string{hex.EncodeToString(s.DimType.store(nil, i.Lo)),
			hex.EncodeToString(s.DimType.store(nil, i.Hi))})
		r.Dims = append(r.Dims, [2]any{s.Dims[d].Name, s.DimType.Size()})
	}
	cells, values, w, err := resultOf(a, box)
	if err != nil {
		t.Fatal(err)
	}
	r.Cells = cells
	for i, v := range values {
		at := &s.Attrs[i]
		r.Attrs = append(r.Attrs, oracleAttr{at.Name, at.Var(), len(v.Data)})
	}
	return r, w
}

// resultOf reads a box of an array: the number of cells, the values of every attribute, and their hashes.
func resultOf(a *Array, box Box) (cells int, values []Values, w oracleResult, err error) {
	ctx := context.Background()
	s := a.Schema
	rd := a.NewReader()
	if s.Dense {
		if _, cells, err = a.Shape(box); err != nil {
			return 0, nil, w, err
		}
		values = make([]Values, len(s.Attrs))
		for i := range values {
			if values[i], err = rd.Dense(ctx, i, box); err != nil {
				return 0, nil, w, err
			}
		}
	} else {
		c, err := rd.Sparse(ctx, num.Range[int](0, len(s.Attrs)), box)
		if err != nil {
			return 0, nil, w, err
		}
		cells, values, w.Coords = c.N, c.Values, corpus.SHA256(c.Coords)
	}
	w.Attrs = map[string]struct{ Data, Offsets string }{}
	for i, v := range values {
		at := &s.Attrs[i]
		h := struct{ Data, Offsets string }{Data: corpus.SHA256(v.Data)}
		if at.Var() {
			h.Offsets = corpus.SHA256(offsetBytes(v.Offsets))
		}
		w.Attrs[at.Name] = h
	}
	return cells, values, w, nil
}
