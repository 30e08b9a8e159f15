package taco_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
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
	files := &openers.Files{}
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
	files := &openers.Files{}
	defer files.Close()
	box := mustBox(b, -10, 35, 5, 45)
	filter := func(b *testing.B, d *taco.Dataset) {
		if rows, err := d.Filter(b.Context(), spacetime.Filter{Box: &box}); err != nil || len(rows) == 0 {
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

// BenchmarkSQL asks for ids by a number and by two texts: as the first question about a dataset, when columns are
// decoded; as the first one after a box was asked for with all columns, whose pages are held then; and again.
func BenchmarkSQL(b *testing.B) {
	path := catalog(b)
	files := &openers.Files{}
	defer files.Close()
	box := mustBox(b, -10, 35, 5, 45)
	all := func(b *testing.B, t *tables.Table) {
		for i := range t.Columns() {
			if _, err := t.At(b.Context(), i); err != nil {
				b.Fatal(err)
			}
		}
	}
	ask := func(b *testing.B, d *taco.Dataset, where string) {
		t, err := d.SQL(b.Context(), "SELECT id, rank FROM data WHERE "+where)
		if err != nil {
			b.Fatal(err)
		}
		all(b, t)
	}
	open := func(b *testing.B, boxed bool) *taco.Dataset {
		d, err := taco.Open(b.Context(), files, []string{path}, taco.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.Visible(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		if boxed {
			rows, err := d.Filter(b.Context(), spacetime.Filter{Box: &box, Keep: true})
			if err != nil {
				b.Fatal(err)
			}
			data, err := d.Level(b.Context(), 0)
			if err != nil {
				b.Fatal(err)
			}
			all(b, data.Take(rows))
		}
		return d
	}
	for name, where := range map[string]string{"number": "cloud_cover < 2",
		"text": "split = 'test' AND region = 'south'"} {
		for _, boxed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/first,boxed=%t", name, boxed), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					d := open(b, boxed)
					b.StartTimer()
					ask(b, d, where)
					if err := d.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(name+"/again", func(b *testing.B) {
			d := open(b, false)
			ask(b, d, where)
			for b.Loop() {
				ask(b, d, where)
			}
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
