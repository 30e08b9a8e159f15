package verify

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tripping panics where a file of one name is opened, as a bug in a decoder would.
type tripping struct {
	openers.Files
	name string
}

func (o *tripping) Open(ctx context.Context, uri string) (source.Reader, error) {
	if filepath.Base(uri) == o.name {
		panic("index out of range")
	}
	return o.Files.Open(ctx, uri)
}

func TestPanicIsAFaultOfOneFile(t *testing.T) {
	chip, err := os.ReadFile("../../testdata/demo/coast.tif")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"a.tif", "b.tif", "c.tif"} {
		testfile.Write(t, filepath.Join(dir, name), chip)
	}
	rows := filepath.Join(t.TempDir(), "rows.parquet")
	err = durable.WriteFile(rows, func(f *os.File) error {
		_, err := build.Write(t.Context(), f, []string{dir}, build.Options{Base: filepath.Dir(rows)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{dir: filepath.Join(dir, "b.tif"), rows: rows + ": row 1"} {
		files := &tripping{name: "b.tif"}
		r, err := Paths(t.Context(), []string{path}, Options{Opener: files, Workers: 1, MaxFaults: 10})
		files.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r.Faulty != 1 || !strings.Contains(r.Faults[0], name) || !strings.Contains(r.Faults[0], "panic") {
			t.Errorf("%s: %d faults: %v", path, r.Faulty, r.Faults)
		}
		whole, err := Paths(t.Context(), []string{filepath.Join(dir, "a.tif")}, Options{MaxFaults: 10})
		if err != nil || r.Bytes != 2*whole.Bytes || whole.Bytes == 0 {
			t.Errorf("%s: %d bytes of the other two files are checked; one has %d (%v)", path, r.Bytes, whole.Bytes,
				err)
		}
	}
}
