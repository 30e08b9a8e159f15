package tiledb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const laterCorpus = "../../testdata/tiledb-later"

// laterArray is an array of the corpus: by which version of the Python package it was written, and what libtiledb 2.30
// reads of it.
type laterArray struct {
	Array  string `json:"array"`
	TileDB string `json:"tiledb"`
	Reads  []struct {
		laterRead
		laterResult
	} `json:"reads"`
}

func laterArrays(t testing.TB) (list []laterArray) {
	t.Helper()
	b := testfile.Read(t, filepath.Join(laterCorpus, "reads.jsonl"))
	for line := range bytes.Lines(b) {
		var a laterArray
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

// TestLaterCorpus: arrays of every format version from 5 to 22 have the cells that libtiledb reads of them.
func TestLaterCorpus(t *testing.T) {
	race.SkipCovered(t)
	versions := map[int]bool{}
	for _, l := range laterArrays(t) {
		for _, what := range l.Reads {
			what.Path, what.verify = filepath.Join(laterCorpus, "arrays", l.Array), true
			_, version, err := laterCompare(t, what.laterRead, what.laterResult)
			if err != nil {
				t.Errorf("%s [%s] until %d: %v", l.Array, what.Text, what.Until, err)
			}
			versions[version] = true
		}
	}
	for v := 5; v <= 22; v++ {
		if !versions[v] && v != 7 { // no release wrote 7 alone: 2.2 soon wrote 8
			t.Errorf("no array of format %d", v)
		}
	}
}

// laterStore is the files of an array of the corpus.
func laterStore(t testing.TB, name string) *memStore {
	t.Helper()
	m := &memStore{files: map[string][]byte{}, read: map[string]int64{}}
	root := filepath.Join(laterCorpus, "arrays", name)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		m.files["array"+filepath.ToSlash(strings.TrimPrefix(path, root))] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// laterDigest opens, verifies and reads an array of a store, and returns a digest of its cells.
func laterDigest(m *memStore) (string, error) {
	ctx := context.Background()
	a, err := Open(ctx, m, "array", Options{MaxTile: 1 << 20, MaxResult: 1 << 20})
	if err != nil {
		return "", err
	}
	_, verr := a.Verify(ctx)
	bounds := []string{}
	for d := range a.Schema.Dims {
		i := a.Schema.area(d)
		bounds = append(bounds, a.Schema.Type(d).FormatCoord(i.Lo)+".."+a.Schema.Type(d).FormatCoord(i.Hi))
	}
	var attrs []string
	for i := range a.Schema.Attrs {
		attrs = append(attrs, a.Schema.Attrs[i].Name)
	}
	rows, err := laterRows(ctx, a, strings.Join(bounds, ","), attrs)
	sum := sha256.Sum256(bytes.Join(rows, nil))
	return hex.EncodeToString(sum[:]), errors.Join(verr, err)
}

// TestLaterDamage: a changed byte of any file is read or refused with a kind, without a panic.
func TestLaterDamage(t *testing.T) {
	kinds := map[fault.Kind]int{}
	for _, l := range laterArrays(t) {
		clean := laterStore(t, l.Array)
		if _, err := laterDigest(clean); err != nil {
			t.Fatalf("%s: %v", l.Array, err)
		}
		for name, b := range clean.files {
			parts := min(len(b), 1)
			if soak.All() {
				parts = min(len(b), 3)
			}
			for k := range parts { // spread over the file
				m := laterStore(t, l.Array)
				at := (2*k + 1) * len(b) / (2 * parts)
				m.files[name] = bytes.Clone(b)
				m.files[name][at] ^= 0x41
				_, err := laterDigest(m)
				if err != nil && fault.KindOf(err) == 0 {
					t.Fatalf("%s: %s at %d: error without a kind: %v", l.Array, name, at, err)
				}
				kinds[fault.KindOf(err)]++
			}
		}
		if testing.Short() {
			break
		}
	}
	if kinds[fault.Corrupt] == 0 {
		t.Errorf("kinds of faults: %v", kinds)
	}
}

// FuzzLaterSchema: a schema of any version is parsed or refused, and never asks for much memory.
func FuzzLaterSchema(f *testing.F) {
	for _, l := range laterArrays(f) {
		a, err := Open(context.Background(), laterStore(f, l.Array), "array", Options{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Schema.content)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSchema(b, 1<<20)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if len(s.Dims) == 0 || len(s.Attrs) == 0 || !s.Domain().covers(s.Area()) {
			t.Fatalf("%+v", s)
		}
	})
}

// FuzzLaterFooter: a footer of any version.
func FuzzLaterFooter(f *testing.F) {
	var schemas []*Schema
	for _, l := range laterArrays(f) {
		m := laterStore(f, l.Array)
		a, err := Open(context.Background(), m, "array", Options{})
		if err != nil {
			f.Fatal(err)
		}
		for _, fr := range a.Fragments {
			b := m.files[fr.uri+"/"+metadataName]
			f.Add(uint8(len(schemas)), uint8(fr.Version), b[fr.foot.start:])
			schemas = append(schemas, fr.schema)
		}
	}
	f.Fuzz(func(t *testing.T, n, version uint8, b []byte) {
		x, known := formatOf(uint32(version))
		if !known {
			return
		}
		fr := &Fragment{Version: uint32(version), x: x, schema: schemas[int(n)%len(schemas)]}
		c := &byteCursor{b: b, part: footerPart, base: 0, x: x}
		c.u32("version")
		if x.schemaName {
			c.text("name of the schema")
		}
		if err := fr.parseFooter(c); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// FuzzCommits: files that list commits.
func FuzzCommits(f *testing.F) {
	const id = "__1795177423294_1795177423294_190a5c584e2c33c3c708c4eef2fe0416_22"
	f.Add([]byte("__commits/" + id + ".wrt\n__commits/" + id + ".wrt\n"))
	f.Add(binary.LittleEndian.AppendUint64([]byte("/__commits/"+id+".del\n"), 3))
	f.Add([]byte("file:///a/__fragments/" + id + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &arrayLister{a: &Array{}, done: map[string]bool{}, ignored: map[string]bool{}, deletes: map[string]bool{}}
		for _, read := range []func(string, []byte) error{l.ignore, l.vacuum, l.consolidated} {
			if err := read(id+vacuumSuffix, b); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
		}
		l.collect(nil)
	})
}
