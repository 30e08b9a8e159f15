package server

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestReadsThatEndEarly: readers of large arrays cancel or break their connections at any part, and none of the memory
// that is unmapped for them is read by the transport afterwards, which would end the process. Others beside them get
// the array as it is read without a server. All memory comes back.
func TestReadsThatEndEarly(t *testing.T) {
	file := filepath.Join(corpus.Testdata(t), "raster", "rumi-v1", "qa-1b.tif")
	paths := slices.Repeat([]string{file}, 24)
	want, err := raster.Read(t.Context(), paths, raster.ReadOptions{Threads: 2})
	if err != nil || len(want.Data) < pages.Worth {
		t.Fatalf("%d bytes, %v", len(want.Data), err)
	}
	request := &chaskiv1.ReadRequest{Paths: paths}
	total := resources.NewBudget(64 << 20) // several arrays of 4.2 MiB with what a thread holds
	l, target, dial := listenUnix(t)
	r := start(t, l, Options{Roots: []string{"/"}, MaxReads: 8, PartBytes: 64 << 10,
		Loader: loader.Options{Budget: total}})
	defer r.stop(t)
	dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))

	tries := 2
	if testing.Short() {
		tries = 1
	}
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for i := range tries {
				conn, err := grpc.NewClient(target, dial...)
				if err != nil {
					t.Error(err)
					return
				}
				c := chaskiv1.NewChaskiClient(conn)
				if k%4 == 0 {
					got, err := readBytes(t, c, request)
					if err != nil || !bytes.Contains(got, want.Data) {
						t.Errorf("reader %d: %d bytes, %v", k, len(got), err)
					}
				} else {
					readParts(t, c, request, (k*2+i)*5%60, k%2 == 0, conn)
				}
				if err := conn.Close(); err != nil && k%2 == 1 {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	eventually(t, "memory is not given back", func() bool { return total.Used() == 0 && pages.Held() == 0 })
}

// readParts reads n parts of an answer and then cancels the call, or closes its connection.
func readParts(t *testing.T, c chaskiv1.ChaskiClient, r *chaskiv1.ReadRequest, n int, hangUp bool,
	conn *grpc.ClientConn) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call, err := c.Read(ctx, r)
	if err != nil {
		t.Error(err)
		return
	}
	for range n {
		if _, err := call.Recv(); err != nil {
			t.Errorf("a part of an answer: %v", err)
			return
		}
	}
	if hangUp {
		_ = conn.Close() // again by the caller
	}
}
