package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestPlans: a plan is of a dataset that the client has had described in its own roots, and of epochs and ranks
// that there are.
func TestPlans(t *testing.T) {
	root := t.TempDir()
	chip := filepath.Join(root, "a.tif")
	copyFile(t, chip, "raster", "tog", "tog-odd-16.tif")
	if err := os.Mkdir(filepath.Join(root, "bob"), 0o700); err != nil {
		t.Fatal(err)
	}
	alice, aliceLine := line(t, auth.Client{Name: "alice"})
	bob, bobLine := line(t, auth.Client{Name: "bob", Roots: []string{filepath.Join(root, "bob")}})
	g := serveGuarded(t, Options{Roots: []string{root}}, aliceLine+bobLine, false)
	client := g.asker(t, g.authority, nil)
	spec, err := json.Marshal(loader.Spec{Source: chip, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	as := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+alice)
	described, err := client.Describe(as, &chaskiv1.DescribeRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	handle := described.GetHandle()
	type question = chaskiv1.PlanRequest
	for name, c := range map[string]struct {
		token string
		m     *question
		code  codes.Code
	}{
		"no file is remote":  {alice, &question{Handle: handle, Epochs: 3, CacheBytes: 1 << 62}, codes.OK},
		"no room":            {alice, &question{Handle: handle, Epochs: 3, CacheBytes: -1 << 63}, codes.OK},
		"no epoch":           {alice, &question{Handle: handle}, codes.OK},
		"the last epochs":    {alice, &question{Handle: handle, FirstEpoch: 1<<64 - 1, Epochs: 2}, codes.OK},
		"too many epochs":    {alice, &question{Handle: handle, Epochs: 1 << 31}, codes.InvalidArgument},
		"no such rank":       {alice, &question{Handle: handle, Epochs: 1, Rank: 2}, codes.InvalidArgument},
		"no dataset":         {alice, &question{Epochs: 1}, codes.FailedPrecondition},
		"a dataset of alice": {bob, &question{Handle: handle, Epochs: 1}, codes.FailedPrecondition},
		"nobody":             {"", &question{Handle: handle, Epochs: 1}, codes.Unauthenticated},
	} {
		as := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.token)
		reply, err := client.Plan(as, c.m)
		if status.Code(err) != c.code || err == nil && string(reply.GetJson()) != "[]" {
			t.Errorf("%s: %q, %v", name, reply.GetJson(), err)
		}
	}
}
