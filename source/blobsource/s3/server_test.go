package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// startServer starts a separate S3 server, the command versitygw (go install
// github.com/versity/versitygw/cmd/versitygw@v1.8.0), or the one that VERSITYGW names. It returns
// the server's URL.
func startServer(t *testing.T) string {
	t.Helper()
	name, err := exec.LookPath(cmp.Or(os.Getenv("VERSITYGW"), "versitygw"))
	if err != nil {
		t.Skip("needs versitygw")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "chips"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, "--access", "key", "--secret", "secret", "--region", "us-east-1", "--port",
		addr, "posix", dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { cancel(); <-done })
	for range 6000 { // five minutes
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return "http://" + addr
		}
		select {
		case err := <-done:
			done <- err
			t.Skipf("versitygw does not run here: %v: %s", err, out.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("versitygw does not listen: %s", out.String())
	return ""
}

// TestRealServer: the source reads and lists objects, and notices a change, on a server in another
// process.
func TestRealServer(t *testing.T) {
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(k, v)
	}
	d := New(Options{Endpoint: startServer(t), Region: "us-east-1"})
	o, err := blobsource.New(d, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx := context.Background()
	bucket, err := d.Bucket(ctx, "chips")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	var want []string
	for i := range 5 {
		key := fmt.Sprintf("a dir/%d+ü.tif", i)
		if err := bucket.WriteAll(ctx, key, noise(100_000+i), nil); err != nil {
			t.Fatal(err)
		}
		want = append(want, key[len("a dir/"):])
	}
	var got []string
	err = o.List(ctx, "s3://chips/a dir", func(e source.Entry) error {
		got = append(got, e.Path)
		if b := noise(100_000 + len(got) - 1); e.Size != int64(len(b)) {
			return errors.New("another size")
		}
		r, err := source.OpenKnown(ctx, o, "s3://chips/a dir/"+e.Path, source.Known{Size: e.Size, ETag: e.ETag})
		if err != nil {
			return err
		}
		b, err := readAt(r, 50_000, 20_000)
		if err == nil && !bytes.Equal(b, noise(100_000 + len(got) - 1)[50_000:70_000]) {
			err = errors.New("other bytes")
		}
		return err
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
	r, err := o.Open(ctx, "s3://chips/a dir/0+ü.tif")
	if err != nil {
		t.Fatal(err)
	}
	if r.Size() != 100_000 || source.ETag(r) == "" {
		t.Errorf("size %d, tag %q", r.Size(), source.ETag(r))
	}
	other := noise(100_000)
	other[0]++
	if err := bucket.WriteAll(ctx, "a dir/0+ü.tif", other, nil); err != nil {
		t.Fatal(err)
	}
	_, err = readAt(r, 80_000, 10)
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "another one") {
		t.Errorf("a change: %v", err)
	}
	if _, err := o.Open(ctx, "s3://chips/none"); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if _, err := o.Open(ctx, "s3://none/none"); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	denied, err := blobsource.New(New(Options{Endpoint: d.(*driver).o.Endpoint, Region: "us-east-1"}), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer denied.Close()
	_, err = denied.Open(ctx, "s3://chips/a dir/1+ü.tif")
	if err == nil || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), "1 attempt") {
		t.Errorf("a wrong key: %v", err)
	}
}
