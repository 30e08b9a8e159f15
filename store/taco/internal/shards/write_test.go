package shards

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// put keeps written files in memory.
func (m memory) put(dir string) func(string, ...[]byte) error {
	return func(name string, pieces ...[]byte) error {
		if _, ok := m[dir+"/"+name]; ok {
			return errors.New(name + " was written before")
		}
		m[dir+"/"+name] = bytes.Join(pieces, nil)
		return nil
	}
}

// samplesOf returns the encoded values of all samples of the shards of an index, by the description of MDS alone.
func samplesOf(m memory, dir string) (columns []Encoding, samples [][][]byte) {
	var x index
	if err := json.Unmarshal(m[dir+"/index.json"], &x); err != nil {
		panic(err)
	}
	for _, s := range x.Shards {
		b, number := m[dir+"/"+s.Raw.Name], binary.LittleEndian.Uint32
		for i := range number(b) {
			at := b[number(b[4+4*i:]):number(b[8+4*i:])]
			var sizes []uint32
			for _, size := range s.Sizes {
				if size != nil {
					sizes = append(sizes, uint32(*size))
				} else {
					sizes, at = append(sizes, number(at)), at[4:]
				}
			}
			var values [][]byte
			for _, size := range sizes {
				values, at = append(values, at[:size]), at[size:]
			}
			samples = append(samples, values)
		}
		columns = nil
		for i, name := range s.Names {
			columns = append(columns, Encoding{name, s.Encodings[i]})
		}
	}
	return columns, samples
}

// writeMDS writes shards of encoded samples.
func writeMDS(t *testing.T, columns []Encoding, samples [][][]byte, o Output) {
	t.Helper()
	w, err := NewMDS(columns, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if err := w.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWritesTheOriginalsBytes: the values of shards that MDSWriter of MosaicML Streaming wrote give the same shards and
// index again: it cuts shards at the same samples.
func TestWritesTheOriginalsBytes(t *testing.T) {
	want := fixture(t, "mds")
	columns, samples := samplesOf(want, "mds")
	got := memory{}
	writeMDS(t, columns, samples, Output{Bytes: 9000, Hashes: []string{"sha1", "xxh64"}, Put: got.put("mds")})
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			t.Errorf("%s differs:\n%.2000q\n%.2000q", name, got[name], b)
		}
	}
	if len(got) != len(want) || len(samples) != 7 {
		t.Error(len(got), len(samples))
	}
}

// TestAppendArray: what stands before arrays is what the original wrote for the same shapes and dtypes.
func TestAppendArray(t *testing.T) {
	columns, samples := samplesOf(fixture(t, "mds"), "mds")
	mask := slices.Index(columns, Encoding{"mask", "ndarray"})
	for i, s := range samples {
		head, err := AppendArray(nil, chunk.Uint8, []int{8, 9})
		if err != nil || !bytes.HasPrefix(s[mask], head) || len(s[mask]) != len(head)+72 {
			t.Errorf("sample %d: %x %v, want %x", i, head, err, s[mask][:4])
		}
	}
	// The bytes by the description of the encoding: dtype, 4 times the number of axes and the log2 of their bytes.
	for _, c := range []struct {
		shape []int
		want  string
	}{{[]int{255, 1}, "10 08 ff 01"}, {[]int{2, 256}, "10 09 02 00 00 01"}, {[]int{65536}, "10 06 00 00 01 00"}} {
		got, err := AppendArray(nil, chunk.Uint16, c.shape)
		if fmt.Sprintf("% x", got) != c.want || err != nil {
			t.Errorf("%v: % x %v, want %s", c.shape, got, err, c.want)
		}
	}
	if _, err := AppendArray(nil, chunk.Complex64, []int{1}); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

// TestCompressedShardsDecompress: a compressed shard is one frame of zstd with the size of its content, and holds the
// bytes of the shard that is written without compression.
func TestCompressedShardsDecompress(t *testing.T) {
	columns, samples := samplesOf(fixture(t, "mds"), "mds")
	raw, zipped := memory{}, memory{}
	for level, to := range map[int]memory{0: raw, 7: zipped} {
		writeMDS(t, columns, samples,
			Output{Bytes: 1 << 20, Level: level, Hashes: []string{"xxh64"}, Put: to.put("mds")})
	}
	var h zstd.Header
	frame := zipped["mds/shard.00000.mds.zstd"]
	if err := h.Decode(frame); err != nil || !h.HasFCS {
		t.Fatal(h, err)
	}
	dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	defer dec.Close()
	got, err := dec.DecodeAll(frame, nil)
	// The configuration in a shard names its compression.
	want := bytes.Replace(raw["mds/shard.00000.mds"], []byte("null, \"format\""), []byte(`"zstd:7", "format"`), 1)
	if err != nil || len(got) != len(want) || !bytes.Equal(got[len(got)-1000:], want[len(want)-1000:]) {
		t.Errorf("%d bytes, want %d, %v", len(got), len(want), err)
	}
	var x index
	if err := json.Unmarshal(zipped["mds/index.json"], &x); err != nil || x.Shards[0].Zip.Bytes != int64(len(frame)) ||
		x.Shards[0].Raw.Bytes != int64(len(got)) {
		t.Error(err, x.Shards[0].Zip, x.Shards[0].Raw)
	}
}

// TestTars: shards are as large as the limit allows, have the samples in order, and headers without a time or an owner.
func TestTars(t *testing.T) {
	m := memory{}
	w := NewTars(Output{Bytes: 8192, Put: m.put("wds")})
	var keys []string
	for i := range 20 {
		key := fmt.Sprintf("é%02d", i)
		keys = append(keys, key)
		err := w.Add(key, []Member{{"image.npy", make([]byte, 100*i)}, {"json", []byte("{}")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range len(m) {
		b := m[fmt.Sprintf("wds/shard-%06d.tar", i)]
		if len(b) == 0 || len(b) > 8192 && i > 0 || len(b)%TarBlock != 0 {
			t.Errorf("shard %d has %d bytes", i, len(b))
		}
		for in := tar.NewReader(bytes.NewReader(b)); ; {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" || h.Mode != 0o644 {
				t.Errorf("%+v", h)
			}
			if key, is := strings.CutSuffix(h.Name, ".json"); is {
				got = append(got, key)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(keys, " ") || len(m) < 3 {
		t.Error(got, len(m))
	}
	c, err := OpenTars(context.Background(), m, "wds", []string{"wds/shard-000000.tar", "wds/shard-000001.tar"})
	if err != nil || walk(t, m, c) == 0 {
		t.Error(err)
	}
}
