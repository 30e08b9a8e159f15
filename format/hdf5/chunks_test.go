package hdf5

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestChunkIndexes: the chunks of every index lie where h5py finds their elements, and no other chunk was written.
func TestChunkIndexes(t *testing.T) {
	var expected map[string]map[string]*struct {
		Shape  []int64
		SHA256 string
	}
	text, err := os.ReadFile("../../testdata/hdf5/expected.json")
	if err != nil || json.Unmarshal(text, &expected) != nil {
		t.Fatal("no expected.json: ", err)
	}
	compared := map[indexType]int{}
	for name, b := range files(t) {
		if !strings.HasPrefix(name, "layouts_") {
			continue
		}
		file, err := Open(context.Background(), &corpus.Mem{B: b}, func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range expected[name] {
			d := file.Nodes[path].Dataset
			if d.Chunked() == nil {
				continue
			}
			data := cells(t, d, b)
			if data == nil {
				continue
			}
			compared[d.layout.index]++
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Errorf("%s %s, index %d: other elements than h5py reads", name, path, d.layout.index)
			}
		}
	}
	for index := indexBtree1; index <= indexBtree2; index++ {
		if compared[index] == 0 {
			t.Errorf("no dataset has index %d", index)
		}
	}
}

// cells returns the elements of a chunked dataset, cell by cell: of a cell whose chunk was not written the fill
// value. It returns nil for filters other than Deflate.
func cells(t *testing.T, d *Dataset, b []byte) []byte {
	t.Helper()
	for _, f := range d.Filters {
		if f.ID != Deflate {
			return nil
		}
	}
	list, err := d.Chunks(context.Background(), &corpus.Mem{B: b}, func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[int64][]byte{}
	for _, c := range all(d, list) {
		decoded[c.Number] = b[c.Off : c.Off+c.Size]
		if len(d.Filters) > 0 && c.Skip == 0 {
			r, err := zlib.NewReader(bytes.NewReader(decoded[c.Number]))
			if err == nil {
				decoded[c.Number], err = io.ReadAll(r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill := d.Fill
	if fill == nil {
		fill = make([]byte, d.Type.Size)
	}
	size, count := int64(d.Type.Size), d.count(1<<30)
	out := make([]byte, 0, count*size)
	for cell := range count {
		// The places of the cell in the shape, of its chunk in the grid, and of the cell in the chunk.
		rest, chunk, within, chunks, inside := cell, int64(0), int64(0), int64(1), int64(1)
		for k := len(d.Shape) - 1; k >= 0; k-- {
			at, side := rest%d.Shape[k], d.Chunked()[k]
			rest /= d.Shape[k]
			chunk, within = chunk+at/side*chunks, within+at%side*inside
			chunks, inside = chunks*((d.Shape[k]+side-1)/side), inside*side
		}
		if data, ok := decoded[chunk]; ok {
			out = append(out, data[within*size:(within+1)*size]...)
		} else {
			out = append(out, fill...)
		}
	}
	return out
}

// tower returns a file of groups in each other, each with one link of a name, as HDF5 1.8 writes them.
func tower(groups int, name string) []byte {
	file := []byte(Signature + "\x02\x08\x08\x00")
	u64 := func(v uint64) { file = binary.LittleEndian.AppendUint64(file, v) }
	sum := func(from int) { file = binary.LittleEndian.AppendUint32(file, lookup3(file[from:])) }
	message := 4 + len(name) + 8 // version, flags, two bytes of length; the name; the address
	each := 8 + 4 + message + 4  // the front of a header, the front of the message, and the checksum
	u64(0)
	u64(math.MaxUint64)
	u64(uint64(48 + each*groups))
	u64(48)
	sum(0)
	for i := range groups {
		from := len(file)
		file = append(file, "OHDR\x02\x01"...) // with two bytes of length
		file = binary.LittleEndian.AppendUint16(file, uint16(4+message))
		file = append(file, msgLink)
		file = binary.LittleEndian.AppendUint16(file, uint16(message))
		file = append(file, 0, 1, 1)
		file = binary.LittleEndian.AppendUint16(file, uint16(len(name)))
		file = append(file, name...)
		u64(uint64(48 + each*min(i+1, groups-1)))
		sum(from)
	}
	return file
}

// TestBounds: a file may have groups in each other up to the limits of levels and of the bytes of a path, and one more
// is over the limit.
func TestBounds(t *testing.T) {
	short, long := "a", strings.Repeat("b", 500)
	for _, c := range []struct {
		groups int
		name   string
		want   fault.Kind
	}{
		{maxLevels, short, 0}, {maxLevels + 2, short, fault.Limit},
		{maxPath / 501, long, 0}, {maxPath/501 + 3, long, fault.Limit},
	} {
		b := tower(c.groups, c.name)
		file, err := Open(context.Background(), &corpus.Mem{B: b}, func(int64) error { return nil })
		if fault.KindOf(err) != c.want || err != nil && c.want == 0 {
			t.Errorf("%d groups with names of %d bytes: %v", c.groups, len(c.name), err)
		}
		if err == nil && len(file.Paths) != c.groups {
			t.Errorf("%d groups with names of %d bytes: %d paths", c.groups, len(c.name), len(file.Paths))
		}
	}
}
