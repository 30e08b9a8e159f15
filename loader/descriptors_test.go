//go:build unix

package loader

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFewDescriptors: a process with 64 file descriptors trains through two datasets of 400 files at the same time,
// also while all descriptors are taken for a moment. It runs in a process of its own, because the limit cannot be
// raised again.
func TestFewDescriptors(t *testing.T) {
	if dir := os.Getenv("CHASKI_TEST_FEW_DESCRIPTORS"); dir != "" {
		trainWithFew(t, dir)
		return
	}
	b := testfile.Read(t, "../testdata/demo/coast.tif")
	dir := t.TempDir()
	first := filepath.Join(dir, "000.tif")
	testfile.Write(t, first, b)
	for i := 1; i < 400; i++ {
		if err := os.Link(first, filepath.Join(dir, "x"+strconv.Itoa(1000+i)+".tif")); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFewDescriptors$", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), "CHASKI_TEST_FEW_DESCRIPTORS="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func trainWithFew(t *testing.T, dir string) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	var loaders []*Loader
	for seed := range uint64(2) {
		e, err := Open(t.Context(), Spec{Source: dir, BatchSize: 16, Seed: seed,
			Sampler: Sampler{Kind: spec.RandomWindow, Height: 8, Width: 8}}, Options{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		l, err := NewLoader(e, LoaderOptions{Epochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		loaders = append(loaders, l)
	}
	for step := range 25 {
		if step == 10 {
			hold(t)
		}
		for _, l := range loaders {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			b.Release()
		}
	}
	for _, l := range loaders {
		if _, err := l.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// hold takes all free descriptors, and gives them back a while later.
func hold(t *testing.T) {
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	if len(held) == 0 {
		t.Error("no descriptor was free")
	}
	time.AfterFunc(300*time.Millisecond, func() {
		for _, f := range held {
			f.Close()
		}
	})
}
