package cli_test

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestRootsWithoutASystem promises that the command trusts well-known authorities where the system has no certificates,
// as in an image from scratch.
func TestRootsWithoutASystem(t *testing.T) {
	if os.Getenv("CHASKI_TEST_ROOTS") == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRootsWithoutASystem$")
		none := t.TempDir()
		child.Env = append(os.Environ(), "CHASKI_TEST_ROOTS=1", "SSL_CERT_FILE="+none+"/none.pem", "SSL_CERT_DIR="+none)
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Fatalf("no authority is trusted (%v)", err)
	}
}
