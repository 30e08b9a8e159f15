package server

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// sparseTIFF writes a TIFF of side by side bytes whose tiles of 512 by 512 are all missing, which readers make zeros
// of.
func sparseTIFF(t *testing.T, side int) string {
	t.Helper()
	tiles := (side / 512) * (side / 512)
	le := binary.LittleEndian
	type tag struct {
		id, typ  uint16
		n, value uint32
	}
	const tags = 10
	lists := uint32(8 + 2 + tags*12 + 4)
	dir := []tag{
		{256, 4, 1, uint32(side)}, {257, 4, 1, uint32(side)}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1},
		{277, 3, 1, 1}, {322, 3, 1, 512}, {323, 3, 1, 512},
		{324, 4, uint32(tiles), lists}, {325, 4, uint32(tiles), lists + 4*uint32(tiles)},
	}
	b := le.AppendUint32([]byte("II*\x00"), 8)
	b = le.AppendUint16(b, tags)
	for _, e := range dir {
		b = le.AppendUint16(le.AppendUint16(b, e.id), e.typ)
		b = le.AppendUint32(le.AppendUint32(b, e.n), e.value)
	}
	b = append(b, make([]byte, 4+8*tiles)...)
	name := filepath.Join(t.TempDir(), "sparse.tif")
	testfile.Write(t, name, b)
	return name
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestReadsShareTheBudget: clients ask for eight arrays of 16 MiB of a file of a few hundred bytes, and do not read the
// answers. The server makes as many arrays as the budget has room for, and the others when those were read.
func TestReadsShareTheBudget(t *testing.T) {
	race.SkipCovered(t)
	const array, reads = 16 << 20, 8
	name := sparseTIFF(t, 4096)
	total := resources.NewBudget(64 << 20) // an eighth is the reserve: two arrays with 4.25 MiB for the thread fit
	o := Options{Roots: []string{"/"}, MaxReads: reads, Loader: loader.Options{Budget: total}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		before := heap()
		var streams []chaskiv1.Chaski_ReadClient
		for range reads {
			r, err := c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{name}})
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, r)
		}
		eventually(t, "no read waits", func() bool { return total.Waiting() >= reads-3 })
		if n := heap() - before + pages.Held(); n > 5*array {
			t.Errorf("%d bytes are in use, of %d", n, total.Limit())
		}
		var done sync.WaitGroup
		for _, r := range streams {
			done.Go(func() {
				n := 0
				for {
					m, err := r.Recv()
					if err != nil {
						if n < array {
							t.Errorf("%d bytes came, then %v", n, err)
						}
						return
					}
					n += len(m.GetPart().GetData())
				}
			})
		}
		done.Wait()
		eventually(t, "memory is not given back", func() bool { return total.Used() == 0 && total.Waiting() == 0 })

		_, err := readBytes(t, c, &chaskiv1.ReadRequest{Paths: []string{sparseTIFF(t, 8192)}})
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--memory-total") {
			t.Errorf("a read over the budget: %v", err)
		}
	})
}

// TestEnginesShareTheBudget: datasets that nobody uses are closed when another one needs their memory, and all of it
// comes back in the end.
func TestEnginesShareTheBudget(t *testing.T) {
	dir, _ := chipFolder(t, 6)
	// With its caches an engine has 4 + 1.25 MiB and more, so that of ten engines at most seven fit.
	total := resources.NewBudget(40 << 20)
	o := Options{Roots: []string{"/"}, Loader: loader.Options{Budget: total, Workers: 1}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		for seed := range uint64(10) {
			spec, err := json.Marshal(loader.Spec{Source: dir, BatchSize: 2, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: spec}); err != nil {
				t.Fatal(err)
			}
			if n := total.Used(); n > total.Limit() {
				t.Errorf("%d bytes of %d", n, total.Limit())
			}
		}
	})
	if n := total.Used(); n != 0 {
		t.Errorf("%d bytes are charged after the end", n)
	}
}
