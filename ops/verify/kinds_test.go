package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// pile is a kind of the paths of its name.
type pile string

func (p pile) String() string { return "a " + string(p) }

func (p pile) Is(_ context.Context, _ source.Opener, path source.Path) (bool, error) {
	return path.Base() == string(p), nil
}

// heap is a pile that can be verified.
type heap struct{ pile }

func (heap) Verify(_ context.Context, c *store.Check, path string) error {
	c.Rows, c.Notes = 7, []string{path + " is a heap"}
	c.Fault(3, errors.New("a broken row"))
	return c.Guard("a row", func() error { panic("a damaged heap") })
}

// TestKinds: a kind of store that only this test knows verifies its paths by itself, and one that cannot is an error.
func TestKinds(t *testing.T) {
	store.Register(heap{"heap"})
	store.Register(pile("pile"))
	dir := t.TempDir()
	for _, name := range []string{"heap", "pile"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Paths(t.Context(), []string{dir}, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Files != 2 || r.Rows != 7 || r.Faulty != 3 || len(r.Notes) != 1 || len(r.Faults) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"a row: panic: a damaged heap", "a broken row", "a pile cannot be verified"} {
		if !strings.Contains(r.Faults[i], want) {
			t.Errorf("fault %d is %q, not %q", i, r.Faults[i], want)
		}
	}
}

// TestPicturesOfADirectory: arrays and masks in PNG are checked where they lie beside rasters and where they are all
// that a directory has.
func TestPicturesOfADirectory(t *testing.T) {
	var mask bytes.Buffer
	if err := png.Encode(&mask, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	head := "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"
	array := fmt.Sprintf("\x93NUMPY\x01\x00%c\x00%-117s\n123456", 118, head)
	dir := t.TempDir()
	for name, content := range map[string]string{"a.npy": array, "cut.npy": array[:len(array)-1],
		"m.png": mask.String(), "cut.PNG": mask.String()[:mask.Len()-20], "notes.txt": "no picture"} {
		testfile.Write(t, filepath.Join(dir, name), []byte(content))
	}
	r, err := Paths(t.Context(), []string{dir}, Options{Workers: 1, MaxFaults: 10})
	if err != nil || r.Files != 4 || r.Faulty != 2 || len(r.Faults) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range []string{"cut.PNG", "cut.npy"} {
		if !strings.Contains(r.Faults[i], want) {
			t.Errorf("fault %d is %q, not of %s", i, r.Faults[i], want)
		}
	}
	if r.Bytes != 6+64*64 {
		t.Errorf("%d bytes of pixels are checked", r.Bytes)
	}
}
