package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestErrorsComeFirst: arguments that cannot work are refused before anything is downloaded,
// measured or served.
func TestErrorsComeFirst(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "no", "file")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--root", dir, "--tokens", nowhere},
	} {
		if r := chaski(ctx, args...); r.code != 1 || r.out != "" || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, r.code, r.out, r.err)
		}
	}
}
