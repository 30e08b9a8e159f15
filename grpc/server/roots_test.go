package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// connected calls f with a client of the service.
func connected(t *testing.T, o Options, f func(c chaskiv1.ChaskiClient)) {
	l, target, dial := listenUnix(t)
	r := start(t, l, o)
	defer r.stop(t)
	conn := dialed(t, target, dial)
	defer conn.Close()
	f(chaskiv1.NewChaskiClient(conn))
}

// readBytes returns the data of all parts of the answer to a Read.
func readBytes(t *testing.T, c chaskiv1.ChaskiClient, r *chaskiv1.ReadRequest) (all []byte, err error) {
	t.Helper()
	call, err := c.Read(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m.GetPart().GetData()...)
	}
}

// copyFile copies a file of the corpus.
func copyFile(t *testing.T, to string, from ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{corpus.Testdata(t)}, from...)...))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o777)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCraftedHeader promises that a client cannot read the bytes of a file that is not a raster as pixels, by an
// index of its own.
func TestCraftedHeader(t *testing.T) {
	root := t.TempDir()
	tif := filepath.Join(root, "a.tif")
	image := copyFile(t, tif, "raster", "tog", "tog-odd-16.tif")
	for _, name := range []string{"key.pem", ".env"} {
		text := append([]byte("-----BEGIN PRIVATE KEY-----\n"), image...)
		testfile.Write(t, filepath.Join(root, name), text)
	}
	_, meta, err := catalog.OpenAsset(t.Context(), &openers.Files{}, tif, 0)
	if err != nil {
		t.Fatal(err)
	}
	connected(t, Options{Roots: []string{root}}, func(c chaskiv1.ChaskiClient) {
		read := func(name string) ([]byte, error) {
			return readBytes(t, c, &chaskiv1.ReadRequest{Paths: []string{filepath.Join(root, name)},
				Headers: [][]byte{meta.Blob}})
		}
		if b, err := read("a.tif"); err != nil || len(b) == 0 {
			t.Errorf("a raster: %d bytes, %v", len(b), err)
		}
		for _, name := range []string{"key.pem", ".env"} {
			if b, err := read(name); status.Code(err) != codes.Unimplemented || len(b) > 0 {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		}
	})
}

// TestExchangedLinks promises that a client reads nothing from outside of the root while a writer below it
// exchanges links, and learns from no error whether a file outside exists.
func TestExchangedLinks(t *testing.T) {
	tries := max(1_000, intrusions(t))
	if testing.Short() {
		tries = 200
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	copyFile(t, filepath.Join(root, "in", "x.tif"), "raster", "tog", "tog-odd-16.tif")
	other := copyFile(t, filepath.Join(dir, "out", "x.tif"), "raster", "tog", "tog-odd-16.tif")
	copyFile(t, filepath.Join(dir, "out", "hidden-name.tif"), "raster", "tog", "tog-odd-16.tif")
	// The file outside has another size, by which Info would tell it.
	if err := os.WriteFile(filepath.Join(dir, "out", "x.tif"), append(other, make([]byte, 4096)...),
		0o666); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"good": "in", "bad": "../out", "out": "../out", "none": "../none"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	connected(t, Options{Roots: []string{root}}, func(c chaskiv1.ChaskiClient) {
		info := func(p string) (string, error) {
			r, err := c.Info(t.Context(), &chaskiv1.InfoRequest{Path: filepath.Join(root) + "/" + p})
			return string(r.GetJson()), err
		}
		texts := map[string]string{}
		for _, p := range []string{"out/x.tif", "out/none.tif", "none/x.tif", "out", "none", "out/../out/x.tif",
			"out/../none/x.tif", "out/../root/in/x.tif", "../out/x.tif", "../none/x.tif", "../out/../root/in/x.tif"} {
			text, err := info(p)
			if status.Code(err) != codes.NotFound {
				t.Errorf("%s: %s, %v", p, text, err)
				continue
			}
			texts[strings.ReplaceAll(err.Error(), root+"/"+p, "")] = p
		}
		if len(texts) != 1 {
			t.Errorf("errors differ: %v", texts)
		}
		for _, glob := range []string{"out/*.tif", "out/../*/*.tif", "*/*.tif", "**/*.tif"} {
			spec := []byte(`{"source":"` + root + "/" + glob + `","batch_size":1}`)
			r, err := c.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: spec})
			if err == nil || strings.Contains(err.Error(), "hidden-name") {
				t.Errorf("%s: %v, %v", glob, r, err)
			}
		}

		inside, err := info("in/x.tif")
		if err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		var flips atomic.Int64
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, to := range []string{"in", "../out"} {
					_ = os.Symlink(to, filepath.Join(root, "new"))
					_ = os.Rename(filepath.Join(root, "new"), filepath.Join(root, "flip"))
					flips.Add(1)
				}
			}
		}()
		read := 0
		for i := 0; i < tries || flips.Load() < int64(tries); i++ {
			got, err := info("flip/x.tif")
			if err != nil {
				continue
			}
			read++
			if strings.ReplaceAll(got, "/flip/", "/in/") != inside {
				t.Fatalf("after %d tries: %s", i, got)
			}
		}
		close(stop)
		<-done
		if read == 0 {
			t.Error("nothing was read")
		}
		t.Logf("%d exchanges, %d reads", flips.Load(), read)
	})
}
