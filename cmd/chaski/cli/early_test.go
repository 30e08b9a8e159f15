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
	t.Setenv("XDG_CACHE_HOME", dir)
	chip := testdata(t, "raster", "tog", "tog-series-0.tif")
	nowhere := filepath.Join(dir, "no", "file")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"bench", "peers", "-o", dir, "--python", nowhere},
		{"bench", "peers", "-o", dir, "--python", "rumi1=" + nowhere},
		{"bench", "peers", "-o", dir, "--imagery", nowhere},
		{"bench", "peers", "-o", filepath.Join(chip, "x")},
		{"serve", "--listen", "127.0.0.1:0", "--stages", nowhere},
	} {
		if r := chaski(ctx, args...); r.code != 1 || r.out != "" || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, r.code, r.out, r.err)
		}
	}
}
