package loader_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/corpus"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestStaleCatalogIsNoticed: a file that changed after its catalog was made is an error, not other
// pixels.
func TestStaleCatalogIsNoticed(t *testing.T) {
	dir := t.TempDir()
	chip := filepath.Join(dir, "chip.tif")
	b, err := os.ReadFile(filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-odd-16.tif"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(chip, b)
	var cat bytes.Buffer
	ctx := context.Background()
	if _, err := catalog.WriteParquet(ctx, &cat, []string{chip}, catalog.WriteOptions{Base: dir}); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(dir, "catalog.parquet"), cat.Bytes())
	read := func() error {
		e, err := loader.Open(ctx, loader.Spec{Source: filepath.Join(dir, "catalog.parquet"), BatchSize: 1}, loader.Options{})
		if err != nil {
			return err
		}
		defer e.Close()
		batch, err := e.Start(ctx, shuffle.StepTicket(0, 0, 1, 0, 1), false).Wait(ctx)
		if err == nil {
			batch.Release()
		}
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	put(chip, append(b, 0))
	if err := read(); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a file with a byte more: %v", err)
	}
}
