package open

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"
)

// TestUpload: a file becomes an object as a whole. A context that ends leaves none, and a failure that stays is said
// with the name of the object.
func TestUpload(t *testing.T) {
	b := memblob.OpenBucket(nil)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("chips"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Upload(ctx, b, "x", "mem://b/x", file); err == nil {
		t.Error("it was written")
	}
	if there, err := b.Exists(t.Context(), "x"); there || err != nil {
		t.Errorf("there %t, %v", there, err)
	}
	if err := Upload(t.Context(), b, "x", "mem://b/x", file); err != nil {
		t.Fatal(err)
	}
	if have, err := b.ReadAll(t.Context(), "x"); err != nil || string(have) != "chips" {
		t.Errorf("%q, %v", have, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	err := Upload(t.Context(), b, "x", "mem://b/x", file)
	if err == nil || !strings.Contains(err.Error(), "mem://b/x") {
		t.Errorf("a closed bucket: %v", err)
	}
}
