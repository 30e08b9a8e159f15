package taco_test

import (
	"os"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/taco"
)

// catalog returns the container that the environment variable CHASKI_BENCH_TACO names.
func catalog(b *testing.B) string {
	b.Helper()
	path := os.Getenv("CHASKI_BENCH_TACO")
	if path == "" {
		b.Skip("CHASKI_BENCH_TACO names no container")
	}
	return path
}

// BenchmarkOpen opens a container and its level 0, with the ids.
func BenchmarkOpen(b *testing.B) {
	path := catalog(b)
	files := &source.Files{}
	defer files.Close()
	b.ReportAllocs()
	for b.Loop() {
		d, err := taco.Open(b.Context(), files, []string{path}, taco.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.Visible(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFilterBox filters by a box: the first time, when the geometries are decoded, and again.
func BenchmarkFilterBox(b *testing.B) {
	path := catalog(b)
	files := &source.Files{}
	defer files.Close()
	box := taco.NewBox(-10, 35, 5, 45)
	filter := func(b *testing.B, d *taco.Dataset) {
		if rows, err := d.Filter(b.Context(), taco.Filter{Box: &box}); err != nil || len(rows) == 0 {
			b.Fatal(len(rows), err)
		}
	}
	open := func(b *testing.B) *taco.Dataset {
		d, err := taco.Open(b.Context(), files, []string{path}, taco.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := open(b)
			filter(b, d)
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		d := open(b)
		filter(b, d)
		for b.Loop() {
			filter(b, d)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	})
}
