package server

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestLongNamesAreRefused promises that a client with the header limit of gRPC's C library, 8 KiB, learns why a request
// with a long name is refused, whatever its letters are.
func TestLongNamesAreRefused(t *testing.T) {
	race.SkipCovered(t)
	root := t.TempDir()
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Roots: []string{root}})
	defer s.stop(t)
	conn, err := grpc.NewClient(target, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithMaxHeaderListSize(8<<10))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := chaskiv1.NewChaskiClient(conn)
	for _, letter := range []string{"x", "\u00e9", "%", "\u20ac", "**/", "\x01"} {
		for _, n := range []int{300, 5_000, 100_000} {
			name := root + "/" + strings.Repeat(letter, n)
			_, err := c.Info(t.Context(), &chaskiv1.InfoRequest{Path: name})
			if status.Code(err) != codes.NotFound {
				t.Errorf("info of %d %q: %.200v", n, letter, err)
			}
			_, err = c.Info(t.Context(), &chaskiv1.InfoRequest{Path: "/elsewhere" + name})
			if status.Code(err) != codes.NotFound {
				t.Errorf("info of %d %q outside: %.200v", n, letter, err)
			}
			spec, err := json.Marshal(loader.Spec{Source: name, BatchSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := codes.NotFound
			if len(name) > 16<<10 {
				want = codes.InvalidArgument
			}
			if _, err := c.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: spec}); status.Code(err) != want {
				t.Errorf("describe of %d %q: %.200v", n, letter, err)
			}
		}
	}
}

// TestStatusKeepsWhatFits promises that a short error is not cut, and of a long one the begin and the end stay.
func TestStatusKeepsWhatFits(t *testing.T) {
	short := failed(fault.WithFile(fault.At(fault.Corrupt, "tile 18", 7, "%s", strings.Repeat("y", 1500)), "a.tif"))
	if m := status.Convert(short).Message(); !strings.Contains(m, strings.Repeat("y", 1500)) {
		t.Errorf("%d bytes: %.100q", len(m), m)
	}
	long := failed(fault.WithFile(fault.At(fault.Corrupt, "tile 18", 7, "%s", strings.Repeat("y", 1<<20)), "a.tif"))
	m := status.Convert(long).Message()
	if !strings.HasPrefix(m, "a.tif: tile 18 at 7: yyy") || !strings.HasSuffix(m, ": corrupt") || len(m) < 500 {
		t.Errorf("%d bytes: %.100q", len(m), m)
	}
}
