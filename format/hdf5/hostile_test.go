package hdf5

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// files returns the files of the corpus.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for _, pattern := range [...]string{"*.h5", "*.nc"} {
		names, err := filepath.Glob("../../testdata/hdf5/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatal("no corpus: ", err)
		}
		for _, name := range names {
			b := testfile.Read(t, name)
			list[filepath.Base(name)] = b
		}
	}
	return list
}

// walkAll reads all that a file has: its tree and every index of chunks. It fails the test on an error without a kind,
// and on a chunk that does not lie in the file.
func walkAll(t testing.TB, b []byte) {
	t.Helper()
	ctx, r := context.Background(), &corpus.Mem{B: b}
	free := func(int64) error { return nil }
	file, err := Open(ctx, r, free)
	if err != nil {
		if fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
		return
	}
	seen := map[*Node]bool{}
	for _, p := range file.Paths {
		n := file.Nodes[p]
		if n.Dataset == nil || seen[n] {
			continue
		}
		seen[n] = true
		if off, size, inline, ok, err := n.Dataset.Contiguous(); err == nil && ok && inline == nil &&
			n.Dataset.Chunked() == nil && (off < 0 || off+size > r.Size()) {
			t.Fatalf("%s lies at %d+%d of %d", p, off, size, r.Size())
		}
		chunks, err := n.Dataset.Chunks(ctx, r, free)
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
		if err != nil {
			continue
		}
		for _, c := range all(n.Dataset, chunks) {
			if c.Off < 0 || c.Size < 0 || c.Off+c.Size > r.Size() {
				t.Fatalf("%s: chunk %d lies at %d+%d of %d", p, c.Number, c.Off, c.Size, r.Size())
			}
		}
	}
}

// all returns the chunks of a dataset that were written, of its first 262,144.
func all(d *Dataset, chunks *Chunks) (list []Chunk) {
	count := int64(1)
	for i, n := range d.Chunked() {
		count = min(count*ceil(d.Shape[i], n), 1<<18)
	}
	for number := range count {
		if c, ok := chunks.Find(number); ok {
			list = append(list, c)
		}
	}
	return list
}

// damage changes some bytes of a copy of a file, or cuts it off.
func damage(random *rand.Rand, b []byte) []byte {
	out := append([]byte(nil), b...)
	if random.IntN(8) == 0 {
		return out[:random.IntN(len(out))]
	}
	for range 1 + random.IntN(6) {
		at := random.IntN(len(out))
		if random.IntN(2) == 0 { // structures lie in front mostly
			at = random.IntN(min(len(out), 4096))
		}
		switch random.IntN(4) {
		case 0:
			out[at] ^= 1 << random.IntN(8)
		case 1:
			out[at] = byte(random.IntN(256))
		case 2:
			out[at] = 0xff
		default: // a number or an address that is another one
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], uint64(random.Int64N(int64(len(out)))))
			copy(out[at:], word[:1+random.IntN(8)])
		}
	}
	return out
}

// TestDamaged: damaged copies of the corpus, whose checksums count or not, neither crash nor take memory or time that
// does not follow from their bytes.
func TestDamaged(t *testing.T) {
	race.SkipCovered(t)
	defer func() { checksums = true }()
	random := rand.New(rand.NewPCG(1, 2))
	copies := 400
	if testing.Short() {
		copies = 60
	}
	for name, b := range files(t) {
		for i := range copies {
			checksums = i%4 == 0
			bad := damage(random, b)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			walkAll(t, bad)
			runtime.ReadMemStats(&after)
			// The whole files of the corpus take up to 40 times their bytes, in all that is allocated and freed.
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(200*len(b)+16<<20); got > most {
				t.Errorf("%s, copy %d: %d bytes of memory, %d of file, in %v", name, i, got, len(b), time.Since(begin))
			}
		}
	}
}

// FuzzFile: any file is read or refused.
func FuzzFile(f *testing.F) {
	for _, b := range files(f) {
		if len(b) < 64<<10 {
			f.Add(b)
		}
	}
	checksums = false
	f.Fuzz(func(t *testing.T, b []byte) { walkAll(t, b) })
}
