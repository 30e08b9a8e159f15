package loader_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestStaleCatalogIsNoticed: a file that changed after its catalog was made is an error, and does
// not yield other pixels.
func TestStaleCatalogIsNoticed(t *testing.T) {
	dir := t.TempDir()
	chip := filepath.Join(dir, "chip.tif")
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-odd-16.tif"))
	put := func(name string, b []byte) {
		testfile.Write(t, name, b)
	}
	put(chip, b)
	var cat bytes.Buffer
	ctx := context.Background()
	if _, err := build.Write(ctx, &cat, []string{chip}, build.Options{Base: dir}); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(dir, "catalog.parquet"), cat.Bytes())
	read := func() error {
		e, err := loader.Open(ctx, loader.Spec{
			Source: filepath.Join(dir, "catalog.parquet"), BatchSize: 1,
		}, loader.Options{})
		if err != nil {
			return err
		}
		defer e.Close()
		batch, err := e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false).Wait(ctx)
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
	// First a copy: the same bytes at another time. Then a file of the same size with another
	// predictor.
	later := time.Now().Add(time.Hour)
	touch := func(b []byte) {
		t.Helper()
		put(chip, b)
		if err := os.Chtimes(chip, later, later); err != nil {
			t.Fatal(err)
		}
	}
	touch(b)
	if err := read(); err != nil {
		t.Errorf("a copy: %v", err)
	}
	f, err := ifd.Open(ctx, &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	const predictor = 317
	other := bytes.Clone(b)
	other[f.Dirs[0].Find(predictor).Off] ^= 3 // 2 and 1
	touch(other)
	if err := read(); fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "rewritten") {
		t.Errorf("another file of the same size: %v", err)
	}
}

// TestFolderIsWatched: rewriting a file of a directory while it is read, with the same size, is an
// error, unless its index stays the same.
func TestFolderIsWatched(t *testing.T) {
	dir := t.TempDir()
	chip := filepath.Join(dir, "chip.tif")
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-odd-16.tif"))
	put := func(b []byte, age time.Duration) {
		t.Helper()
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(chip, b, 0o600), os.Chtimes(chip, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	put(b, 3*time.Hour)
	ctx := context.Background()
	e, err := loader.Open(ctx, loader.Spec{Source: dir, BatchSize: 1}, loader.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	read := func() error {
		batch, err := e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false).Wait(ctx)
		if err == nil {
			batch.Release()
		}
		return err
	}
	for _, age := range []time.Duration{3 * time.Hour, 2 * time.Hour} {
		put(b, age)
		for range 2 {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := ifd.Open(ctx, &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	const predictor = 317
	other := bytes.Clone(b)
	other[f.Dirs[0].Find(predictor).Off] ^= 3 // 2 and 1
	put(other, time.Hour)
	for range 2 { // it is not forgotten
		if err := read(); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("another file of the same size: %v", err)
		}
	}
	put(b, time.Minute)
	if err := read(); err != nil {
		t.Errorf("back again: %v", err)
	}
}
