package zarr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/store/arrays"
)

// shelf serves objects from memory with byte ranges, and notes what was asked for.
type shelf struct {
	objects map[string][]byte
	mu      sync.Mutex
	asked   []string
	bytes   int
}

// ServeHTTP implements http.Handler.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := s.objects[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path+" "+r.Header.Get("Range"))
	s.mu.Unlock()
	http.ServeContent(&counted{w, s}, r, "", time.Time{}, bytes.NewReader(b))
}

// take returns the requests since the last call, and how many bytes were sent.
func (s *shelf) take() (asked []string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, n = s.asked, s.bytes
	s.asked, s.bytes = nil, 0
	return asked, n
}

type counted struct {
	http.ResponseWriter
	s *shelf
}

// Write counts before it writes, so that a client that has the bytes finds them counted.
func (c *counted) Write(b []byte) (int, error) {
	c.s.mu.Lock()
	c.s.bytes += len(b)
	c.s.mu.Unlock()
	return c.ResponseWriter.Write(b)
}

// A shard of 32 by 32 chunks of 64 by 64 pixels, one byte each: 4 MiB, and an index of 16 KiB.
const (
	shardChunks = 32
	chunkSide   = 64
	shardSide   = shardChunks * chunkSide
)

// shardedShelf returns an array of one shard with its index at the end or at the start, in which pixel (y, x) is
// y*7+x*3, but for the chunk (0, 31), which was not written.
func shardedShelf(atStart bool) *shelf {
	const index = 16*shardChunks*shardChunks + 4
	var body, table []byte
	base := 0
	place := "end"
	if atStart {
		base, place = index, "start"
	}
	for c := range shardChunks * shardChunks {
		if c == 31 {
			table = binary.LittleEndian.AppendUint64(table, noChunk)
			table = binary.LittleEndian.AppendUint64(table, noChunk)
			continue
		}
		table = binary.LittleEndian.AppendUint64(table, uint64(base+len(body)))
		table = binary.LittleEndian.AppendUint64(table, chunkSide*chunkSide)
		for y := range chunkSide {
			for x := range chunkSide {
				body = append(body, byte((c/shardChunks*chunkSide+y)*7+(c%shardChunks*chunkSide+x)*3))
			}
		}
	}
	table = binary.LittleEndian.AppendUint32(table, crc32.Checksum(table, crc32.MakeTable(crc32.Castagnoli)))
	object := append(bytes.Clone(body), table...)
	if atStart {
		object = append(bytes.Clone(table), body...)
	}
	meta := fmt.Sprintf(`{"zarr_format":3,"node_type":"array","shape":[%d,%d],"data_type":"uint8","chunk_grid":{"name":
		"regular","configuration":{"chunk_shape":[%[1]d,%d]}},"chunk_key_encoding":{"name":"default"},"fill_value":9,
		"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[64,64],"codecs":["bytes"],"index_codecs":
		[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"],"index_location":%q}}],"attributes":{}}`,
		shardSide, shardSide, place)
	return &shelf{objects: map[string][]byte{"/a/zarr.json": []byte(meta), "/a/c/0/0": object}}
}

// TestPartialShards: of a shard over HTTP only the index and the chunks of the window are asked for, neighbours in one
// request, and the index once.
func TestPartialShards(t *testing.T) {
	for _, atStart := range []bool{false, true} {
		t.Run(fmt.Sprintf("index at start %t", atStart), func(t *testing.T) {
			s := shardedShelf(atStart)
			server := httptest.NewServer(s)
			defer server.Close()
			web, err := httpsource.New(httpsource.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			n, err := Open(t.Context(), web, server.URL+"/a", arrays.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := n.Raster(t.Context(), "", "", "")
			if err != nil {
				t.Fatal(err)
			}
			s.take()
			r := windowReader(web)
			defer r.Close()
			read := func(b chunk.Box) {
				t.Helper()
				dst, err := readWindow(t.Context(), r, m.Index(0), b)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range dst {
					y, x := b.Y0+i/(b.X1-b.X0), b.X0+i%(b.X1-b.X0)
					want := byte(y*7 + x*3)
					if y < chunkSide && x >= shardSide-chunkSide {
						want = 9
					}
					if v != want {
						t.Fatalf("pixel (%d, %d) is %d, want %d", y, x, v, want)
					}
				}
			}
			// Two chunks side by side, far from both ends of the shard.
			read(chunk.Box{B1: 1, Y0: 15 * 64, Y1: 16 * 64, X0: 10 * 64, X1: 12 * 64})
			asked, bytes := s.take()
			// The request that opens the object brings its first block, with an index that is there.
			most := 3
			if atStart {
				most = 2
			}
			if len(asked) > most || bytes > 64<<10+16<<10+4+2*4096 {
				t.Errorf("the first window took %d bytes by the requests\n%s", bytes, strings.Join(asked, "\n"))
			}
			read(chunk.Box{B1: 1, Y0: 20*64 + 5, Y1: 20*64 + 9, X0: 3 * 64, X1: 5*64 + 1})
			if asked, bytes := s.take(); len(asked) != 1 || bytes != 3*4096 {
				t.Errorf("three neighbours took %d bytes by the requests\n%s", bytes, strings.Join(asked, "\n"))
			}
			read(chunk.Box{B1: 1, Y0: 0, Y1: 9, X0: 31 * 64, X1: 32 * 64})
			if asked, _ := s.take(); len(asked) != 0 {
				t.Errorf("a chunk that was not written took the requests\n%s", strings.Join(asked, "\n"))
			}
		})
	}
}
