package view

import (
	"bytes"
	"image/png"
	"io"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
)

// view runs the command and returns what it writes.
func view(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	files := open.NewOpener(true, nil)
	defer files.Close()
	cmd := NewView(console.Env{Out: &out, Err: io.Discard, Files: files})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.Bytes(), err
}

// TestPictures: a picture has the sides that --size allows, several stand side by side with a gap, and wrong flags
// write nothing.
func TestPictures(t *testing.T) {
	testdata := filepath.Join("..", "..", "..", "..", "testdata")
	file := filepath.Join(testdata, "raster", "tog", "tog-1x1.tif") // one pixel
	for _, c := range []struct {
		args          []string
		width, height int
	}{
		{[]string{file}, 1, 1},
		{[]string{file, file}, 1 + 4 + 1, 1},
		{[]string{file, file, file}, 1 + 4 + 1, 1 + 4 + 1},
	} {
		out, err := view(t, append([]string{"-o", "-"}, c.args...)...)
		if err != nil {
			t.Fatalf("%q: %v", c.args, err)
		}
		picture, err := png.Decode(bytes.NewReader(out))
		if err != nil || picture.Bounds().Dx() != c.width || picture.Bounds().Dy() != c.height {
			t.Errorf("%q: %v, %v; want %d by %d", c.args, picture.Bounds(), err, c.width, c.height)
		}
	}
	for _, args := range [][]string{
		{file}, {"-o", "a.jpg", file}, {"-o", "-", "--b", "1,2", file},
		{"-o", "-", "--window", "4x4", file}, {"-o", "-", "--b", "7", file}, {"-o", "-"}, {"-o", "-", file + "x"},
	} {
		if out, err := view(t, args...); err == nil || len(out) > 0 {
			t.Errorf("%q: %d bytes, %v", args, len(out), err)
		}
	}
}
