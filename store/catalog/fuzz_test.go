package catalog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// kinded fails if an error has neither a kind nor is the context's.
func kinded(t testing.TB, err error) {
	t.Helper()
	if err != nil && fault.KindOf(err) == 0 && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v has no kind", err)
	}
}

// use opens a table in memory and reads everything that a loader reads.
func use(t *testing.T, name string, b []byte, fields ...catalog.Source) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	tab, err := catalog.Open(ctx, name, fields, catalog.Options{Opener: folder.Memory{Name: name, Data: b},
		CacheBytes: 1 << 20,
		Roots:      []string{"/"}})
	kinded(t, err)
	if err != nil {
		return
	}
	defer tab.Close()
	if len(tab.Fingerprint()) != 32 {
		t.Fatalf("fingerprint %q", tab.Fingerprint())
	}
	for _, row := range []int64{0, tab.Len() / 2, tab.Len() - 1} {
		if row < 0 || row >= tab.Len() {
			continue
		}
		_, err := tab.ID(ctx, row)
		kinded(t, err)
		for f := range tab.Fields() {
			v, err := tab.Value(ctx, f, row)
			kinded(t, err)
			if v.Null && (string(v.Text) != "" || v.Int != 0 || v.Float != 0) {
				t.Fatalf("a null of value %+v", v)
			}
			if tab.Kind(f) == catalog.Raster {
				a, err := tab.Asset(ctx, f, row)
				kinded(t, err)
				if err == nil && a.Index.Validate(-1, 1<<30) != nil {
					t.Fatalf("row %d: the index is not valid", row)
				}
			}
		}
	}
}

func FuzzCatalog(f *testing.F) {
	small, _ := synthetic(f, 20)
	f.Add(small, "")
	names, _ := filepath.Glob("testdata/*.parquet")
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "path")
		f.Add(b, "class")
	}
	images := imageTable(f, 2, imageRows(pictures(f, 3)...)...)
	f.Add(images, "image")
	f.Add(images, "chip")
	f.Add(images, "image.bytes")
	f.Fuzz(func(t *testing.T, b []byte, column string) {
		use(t, "/t.parquet", b, catalog.Source{Field: "image", Column: column})
	})
}

// TestTaken: tables and items of many parts take memory by their length.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	check := func(name, text string) {
		taken.Check(t, len(text), taken.FactorRows, func() {
			use(t, name, []byte(text), catalog.Source{Field: "image"})
		})
	}
	for _, names := range []string{"image", "image,b", "image\n\"a"} {
		for _, text := range taken.CSV(names) {
			check("/t.csv", text)
		}
	}
	for _, element := range []string{"<annotation>", "<annotation><image>",
		"<annotation><image>a.tif</image><object>"} {
		for _, text := range taken.XML(element) {
			check("/t.xml", text)
			check("/t.xml", text+"</image></annotation>")
			check("/t.xml", text+"</object></annotation>")
		}
	}
	feature := `{"type":"Feature","id":"a","assets":`
	for _, array := range []string{"[", `{"features":[`, feature + "[",
		feature + `{"a":{"href":"x.tif"}},"properties":{"x":[`} {
		for _, text := range taken.JSON(array) {
			for _, end := range []string{"", "}", "]}"} {
				check("/t.json", text+end)
				check("/t.jsonl", text+end)
			}
		}
	}
}

func FuzzXML(f *testing.F) {
	f.Add("<annotation><image>a.tif</image><size w='3'><h>4</h></size><object><n>1</n></object><object/></annotation>")
	f.Add("\ufeff<?xml version='1.0'?><a><image>a.tif</image><image>b.tif</image>text &amp; more</a>")
	f.Fuzz(func(t *testing.T, s string) {
		taken.Check(t, len(s), taken.FactorRows, func() {
			use(t, "/t.xml", []byte(s), catalog.Source{Field: "image"}, catalog.Source{Field: "n", Column: "object.n"})
		})
	})
}

func FuzzCSV(f *testing.F) {
	f.Add("image,n\na.tif,1\nb.tif,\n")
	f.Add("\ufeffn,image\n\"a\"\"\",\n")
	f.Fuzz(func(t *testing.T, s string) {
		taken.Check(t, len(s), taken.FactorRows, func() {
			use(t, "/t.csv", []byte(s), catalog.Source{Field: "image"}, catalog.Source{Field: "n"})
		})
	})
}
