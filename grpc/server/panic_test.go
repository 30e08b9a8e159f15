package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// trippingFiles opens local files, and panics for one name: when the file is opened, or when its pixels are read.
type trippingFiles struct {
	openers.Files
	onOpen, onRead string
	from           int64 // reads from this offset on panic
}

func (f *trippingFiles) Open(ctx context.Context, uri string) (source.Reader, error) {
	name := filepath.Base(uri)
	if name == f.onOpen {
		panic("opening " + name)
	}
	r, err := f.Files.Open(ctx, uri)
	if err == nil && name == f.onRead {
		return trippingReader{r, f.from}, nil
	}
	return r, err
}

type trippingReader struct {
	source.Reader
	from int64
}

func (r trippingReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	if off+int64(len(p)) > r.from {
		panic("reading")
	}
	return r.Reader.ReadAt(ctx, p, off)
}

// locked is a buffer that a logger may write to while a test reads.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// chipFolder makes a folder of n copies of a small TIFF, and returns the size of the TIFF.
func chipFolder(t *testing.T, n int) (dir string, size int64) {
	t.Helper()
	b := testfile.Read(t, "../../testdata/demo/coast.tif")
	dir = t.TempDir()
	for i := range n {
		testfile.Write(t, filepath.Join(dir, string(rune('a'+i))+".tif"), b)
	}
	return dir, int64(len(b))
}

// servePanics starts a server whose files panic, over gRPC and shared memory.
func servePanics(t *testing.T, files *trippingFiles) (
	r *running, dial func(client.Transport) *client.Client, log *locked, panics func() float64,
) {
	t.Helper()
	log = &locked{}
	registry := prometheus.NewRegistry()
	l, target, how := listenBuf(t)
	s, err := New(Options{Roots: []string{"/"}, SharedMemory: true, Metrics: registry,
		Logger: slog.New(slog.NewTextHandler(log, nil)), Loader: loader.Options{Opener: files, Workers: 2}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r = &running{s, cancel, make(chan error, 1)}
	go func() { r.done <- s.Serve(ctx, l) }()
	dial = func(transport client.Transport) *client.Client { return dialShared(t, transport, target, how...) }
	panics = func() float64 {
		t.Helper()
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if m.GetName() == "chaski_server_panics_total" {
				return m.GetMetric()[0].GetCounter().GetValue()
			}
		}
		t.Fatal("panics are not counted")
		return 0
	}
	return r, dial, log, panics
}

// TestPanicEndsOneRequest: a panic in a worker ends the run of one client, with an error of kind internal. A client
// beside it gets all its batches, over either transport, and the server stops in good order.
func TestPanicEndsOneRequest(t *testing.T) {
	bad, size := chipFolder(t, 6)
	good, _ := chipFolder(t, 6)
	if err := os.Rename(filepath.Join(bad, "d.tif"), filepath.Join(bad, "zz.tif")); err != nil {
		t.Fatal(err)
	}
	for _, transport := range []client.Transport{client.GRPC, client.Auto} {
		// The last byte of the file is one of its pixels, or of its directory if that is at the end.
		files := &trippingFiles{onRead: "zz.tif", from: size / 2}
		r, dial, log, panics := servePanics(t, files)
		before := panics()
		c1, c2 := dial(transport), dial(transport)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		next := func(c *client.Client, dir string, epochs uint64) *batch.Loader {
			run, err := c.Open(ctx, loader.Spec{Source: dir, BatchSize: 1,
				Sampler: loader.Sampler{Kind: "random_window", Height: 32, Width: 32}})
			if err != nil {
				t.Fatal(err)
			}
			l, err := run.Loader(batch.LoaderOptions{Epochs: epochs})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		beside := next(c2, good, 8)
		var group sync.WaitGroup
		group.Go(func() {
			for n := 0; ; n++ {
				b, err := beside.Next(ctx)
				if errors.Is(err, io.EOF) && n == 6*8 {
					return
				}
				if err != nil {
					t.Errorf("the client beside has %d batches: %v", n, err)
					return
				}
				b.Release()
			}
		})
		for range 3 {
			l := next(c1, bad, 1)
			var err error
			for err == nil {
				var b *batch.Batch
				if b, err = l.Next(ctx); err == nil {
					b.Release()
				}
			}
			if errors.Is(err, io.EOF) || !strings.HasSuffix(err.Error(), ": internal") ||
				!strings.Contains(err.Error(), "panic: reading") {
				t.Errorf("the run ends with %v", err)
			}
			l.Close()
		}
		group.Wait()
		beside.Close()
		if n := panics() - before; n < 3 {
			t.Errorf("%v panics are counted, want at least 3", n)
		}
		if s := log.String(); !strings.Contains(s, "trippingReader.ReadAt") {
			t.Errorf("the log has no stack:\n%s", s)
		}
		if err := errors.Join(c1.Close(), c2.Close()); err != nil {
			t.Error(err)
		}
		cancel()
		nothingLeased(t, r)
		r.stop(t)
	}
}

// TestPanicInAnOpening: Describe, Info and Read of a file that panics end with status INTERNAL, as often as they
// are asked: no single-flight entry stays behind. Other files are still described.
func TestPanicInAnOpening(t *testing.T) {
	bad, _ := chipFolder(t, 3)
	good, _ := chipFolder(t, 3)
	if err := os.Rename(filepath.Join(bad, "a.tif"), filepath.Join(bad, "0.tif")); err != nil {
		t.Fatal(err)
	}
	l, target, how := listenBuf(t)
	r := start(t, l, Options{Loader: loader.Options{Opener: &trippingFiles{onOpen: "0.tif"}}})
	defer r.stop(t)
	conn, err := grpc.NewClient(target, append(how,
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stub := chaskiv1.NewChaskiClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	describe := func(dir string) error {
		_, err := stub.Describe(ctx,
			&chaskiv1.DescribeRequest{Spec: []byte(`{"source": "` + dir + `", "batch_size": 1}`)})
		return err
	}
	name := filepath.Join(bad, "0.tif")
	asks := map[string]func() error{
		"describe": func() error { return describe(bad) },
		"info": func() error {
			_, err := stub.Info(ctx, &chaskiv1.InfoRequest{Path: name})
			return err
		},
		"read": func() error {
			s, err := stub.Read(ctx, &chaskiv1.ReadRequest{Paths: []string{name}})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
	}
	for what, ask := range asks {
		for range 2 * DefaultMaxReads { // more than may run at a time
			if err := ask(); status.Code(err) != codes.Internal ||
				!strings.Contains(err.Error(), "panic: opening 0.tif") {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	if err := describe(good); err != nil {
		t.Error(err)
	}
}
