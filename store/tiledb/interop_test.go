package tiledb

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/store/tiledb/filter"
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

// interopPipelines are all filters that tests write, alone, and pipelines of several.
func interopPipelines() [][]filter.ID {
	return [][]filter.ID{{}, {filter.None}, {filter.Zstd}, {filter.ByteShuffle}, {filter.ByteShuffle, filter.Zstd},
		{filter.Zstd, filter.ByteShuffle, filter.Zstd}}
}

// interopSchema has an attribute of every datatype that a pipeline takes, in cells of one, of three and of any
// number of values.
func interopSchema(dense bool, n int, ids []filter.ID) *Schema {
	p := filter.Pipeline{MaxChunk: []uint32{48, 300, maxChunk}[n%3]}
	for _, id := range ids {
		p.Filters = append(p.Filters, filter.Filter{ID: id, Level: 3, Window: 64})
	}
	dims := []Datatype{Int32, Uint16, Int64, Uint8, Int8, Uint64, DatetimeDay}
	t := dims[n%len(dims)]
	s := &Schema{Dense: dense, TileOrder: Order(n & 1), CellOrder: Order(n >> 1 & 1), Capacity: 7, DimType: t,
		Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims: []Dim{{Name: "y", Domain: Interval{t.CoordOf(3), t.CoordOf(14)}, Extent: 4},
			{Name: "x", Domain: Interval{t.CoordOf(10), t.CoordOf(19)}, Extent: 5}}}
	// offsets and coordinates by the pipeline too
	if !dense && n%3 == 0 {
		s.Coords, s.Offsets = p, p
	}
	for t := range numOfFormat3 {
		for _, values := range []uint32{1, 3, VarLen} {
			if t == Any && values != VarLen {
				continue
			}
			s.Attrs = append(s.Attrs, Attr{Name: fmt.Sprintf("%v %d", t, values), Type: t, Values: values, Pipeline: p})
		}
	}
	return s
}

// interopValues makes cells of ascending values.
func interopValues(s *Schema, cells, from int) []Values {
	out := make([]Values, len(s.Attrs))
	for i := range s.Attrs {
		a, v := &s.Attrs[i], &out[i]
		k := 0
		for c := range cells {
			n := int(a.Values)
			if a.Var() {
				v.Offsets = append(v.Offsets, uint64(len(v.Data)))
				n = 1 + c%3
			}
			for range n {
				k++
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], uint64(from+k/4))
				v.Data = append(v.Data, b[:a.Type.Size()]...)
			}
		}
	}
	return out
}

// writeInterop writes an array of two fragments.
func writeInterop(t *testing.T, path string, s *Schema) {
	t.Helper()
	ctx := context.Background()
	if err := Create(path, s); err != nil {
		t.Fatal(err)
	}
	var files Files
	defer files.Close()
	for n := range 2 {
		a, err := Open(ctx, &files, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		box := s.Domain()
		if n == 1 {
			box = Box{{s.Dims[0].Domain.Lo + 2, s.Dims[0].Domain.Lo + 8},
				{s.Dims[1].Domain.Lo + 3, s.Dims[1].Domain.Lo + 7}}
		}
		if s.Dense {
			_, cells, err := a.Shape(box)
			if err != nil {
				t.Fatal(err)
			}
			err = a.writeDense(ctx, box, interopValues(s, cells, 10*n), timeAtCompletion, timeAtCompletion)
			if err != nil {
				t.Fatalf("%v: %v", s.Attrs[0].Pipeline, err)
			}
			continue
		}
		var coords []byte
		cells := 0
		walkBox(box, func(at []Coord) {
			if (int(at[0])*7+int(at[1])*3)%4 == n {
				return
			}
			cells++
			for _, c := range at {
				coords = s.DimType.store(coords, c)
			}
		})
		if err := a.WriteSparse(ctx, coords, interopValues(s, cells, 10*n)); err != nil {
			t.Fatalf("%v: %v", s.Attrs[0].Pipeline, err)
		}
	}
}

// TestTileDBReadsWhatTestsWrite: libtiledb, the newest from PyPI, reads arrays of all datatypes that
// these tests write as this package does.
func TestTileDBReadsWhatTestsWrite(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TILEDB names no Python with tiledb")
	}
	dir := t.TempDir()
	var reads []oracleRead
	var wants []oracleResult
	for n, ids := range interopPipelines() {
		for _, dense := range []bool{true, false} {
			path := filepath.Join(dir, fmt.Sprintf("%d-%v", n, dense))
			writeInterop(t, path, interopSchema(dense, n, ids))
			r, w := ownRead(t, path)
			reads, wants = append(reads, r), append(wants, w)
		}
	}
	askOracle(t, python, reads, wants)
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

// ownRead reads all of an array, and says what a read of the oracle is to give.
func ownRead(t *testing.T, path string) (oracleRead, oracleResult) {
	t.Helper()
	ctx := context.Background()
	var files Files
	defer files.Close()
	a, err := Open(ctx, &files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ownBox(t, a, nil, a.Schema.Domain())
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
		c, err := rd.Sparse(ctx, sequence(len(s.Attrs)), box)
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
