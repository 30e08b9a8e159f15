package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const database0 = "../../testdata/lmdb/a.lmdb/data.mdb"

// TestDatabase compares the keys and the values of a database with those that the package lmdb was given.
func TestDatabase(t *testing.T) {
	data := testfile.Read(t, database0)
	var want map[string]any
	if err := json.Unmarshal(testfile.Read(t, "../../testdata/lmdb/expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	got, err := readDatabase(context.Background(), source.Memory(data))
	if err != nil || len(got.members) != len(want) {
		t.Fatalf("%d keys, not %d: %v", len(got.members), len(want), err)
	}
	for key, value := range want {
		m := got.members[key]
		if m == nil {
			t.Errorf("no %q", key)
			continue
		}
		content := data[m.data.Load():][:m.Size]
		text, isText := value.(string)
		if isText && hex.EncodeToString(content) != text || !isText && float64(len(content)) != value {
			t.Errorf("%q is %q", key, content)
		}
	}
}

// readKinded reads a database, whose values must lie in it. An error needs a kind.
func readKinded(t *testing.T, b []byte) error {
	t.Helper()
	got, err := readDatabase(context.Background(), source.Memory(b))
	if err != nil {
		if fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
		return err
	}
	for key, m := range got.members {
		if !source.Fits(m.data.Load(), m.Size, int64(len(b))) {
			t.Fatalf("%q lies at %d, of %d bytes", key, m.data.Load(), m.Size)
		}
	}
	return nil
}

// TestDamagedDatabase: damaged databases are read or refused, and so are trees that lead back to themselves.
func TestDamagedDatabase(t *testing.T) {
	good, random := testfile.Read(t, database0), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bad := slices.Clone(good)
		for range 1 + random.IntN(9) {
			bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		}
		_ = readKinded(t, bad)
	}
	const page = 4096
	circles := 0
	for at := 2 * page; at+page <= len(good); at += page {
		if binary.LittleEndian.Uint16(good[at+10:]) != pageBranch {
			continue
		}
		bad := slices.Clone(good)
		node := bad[at+int(binary.LittleEndian.Uint16(bad[at+dbHeader:])):]
		binary.LittleEndian.PutUint32(node, uint32(at/page)) // itself
		if err := readKinded(t, bad); fault.KindOf(err) == fault.Corrupt {
			circles++
		}
	}
	if circles == 0 {
		t.Error("no tree that leads back to itself is refused")
	}
}

// TestOverlappingKeys: a page whose places lead to thousands of long keys that lie over one another is refused, before
// they take memory.
func TestOverlappingKeys(t *testing.T) {
	const page, keys, first = 1 << 16, 4000, 1 << 13
	le, b := binary.LittleEndian, make([]byte, 3*page)
	for at := 0; at < 2*page; at += page {
		meta := b[at+dbHeader:]
		le.PutUint32(meta, dbMagic)
		le.PutUint32(meta[4:], dbVersion)
		le.PutUint32(meta[24:], page)
		le.PutUint64(meta[72+40:], 2)
	}
	leaf := b[2*page:]
	le.PutUint16(leaf[10:], pageLeaf)
	le.PutUint16(leaf[12:], dbHeader+2*keys)
	for i := range keys {
		place := first + dbNode*i
		le.PutUint16(leaf[dbHeader+2*i:], uint16(place))
		le.PutUint16(leaf[place+6:], uint16(page-place-dbNode))
	}
	if err := readKinded(t, b); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("%v, not corrupt", err)
	}
}

// FuzzDatabase: a database of any content is read or refused, with a kind.
func FuzzDatabase(f *testing.F) {
	f.Add(testfile.Read(f, database0))
	f.Add(bytes.Repeat([]byte{0}, 8192))
	f.Fuzz(func(t *testing.T, b []byte) { _ = readKinded(t, b) })
}
