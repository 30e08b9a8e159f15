package rows

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestImportsNamed: a program that imports no format, as this test does, is told which import reads a path. The folder
// of that import has the call that registers the format.
func TestImportsNamed(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.png")
	testfile.Write(t, name, picture.Bytes())
	options := resources.Options{}.WithDefaults()
	_, raster := catalog.OpenSmall(t.Context(), options.Opener, name, source.Known{}, chunk.Axes{},
		options.MaxChunkBytes)
	member := spec.Source{Source: name, Container: spec.Container{BasePath: "b"}}
	_, container := Open(t.Context(), member, nil, options)
	_, zarr := store.Open(t.Context(), options.Opener, "a.zarr", store.Options{})
	_, hdf5 := store.Open(t.Context(), options.Opener, "a.h5", store.Options{})
	_, sql := tables.FindSQL()
	for registers, err := range map[string]error{"pictures.Open, pictures.Palette = ": raster,
		"tables.RegisterSQL(": sql, "store.Register(kind{})": container,
		"Files: format, Looks": zarr, "Files: magic.Named(\".h5\")": hdf5} {
		const before, after = "import github.com/chaski-eo/chaski/", ", or "
		if fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", registers, err)
			continue
		}
		_, rest, _ := strings.Cut(err.Error(), before)
		path, _, ok := strings.Cut(rest, after)
		files, _ := filepath.Glob(filepath.Join("../..", path, "*.go"))
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			found = found || err == nil && bytes.Contains(text, []byte(registers))
		}
		if !ok || !found {
			t.Errorf("%v: no file of %q has %s", err, path, registers)
		}
	}
}
