package catalog_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
)

// A catalog of a folder's rasters, and what it says of the first without a look at the file.
func Example() {
	ctx := context.Background()
	f, err := os.CreateTemp("", "*.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer os.Remove(f.Name())
	if _, err := build.Write(ctx, f, []string{"../../testdata/demo"}, build.Options{}); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	t, err := catalog.Open(ctx, f.Name(), nil, catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	a, err := t.Asset(ctx, 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.Len(), filepath.Base(a.URI), a.Index.Bands, a.Index.Height, a.Index.Width, a.Index.DType)
	// Output: 1 coast.tif 6 640 640 uint16
}
