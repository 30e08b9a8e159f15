package taco_test

import (
	"context"
	"fmt"
	"log"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
)

// Samples of a place and a time, and where the bytes of one of their files are.
func Example() {
	ctx := context.Background()
	files := &openers.Files{}
	defer files.Close()
	ds, err := taco.Open(ctx, files, []string{"../../testdata/containers/taco-v2/spec200/codec_snappy.tacozip"},
		taco.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	box, err := crs.NewBox([4]float64{-180, -60, -120, 0}, 4326)
	if err != nil {
		log.Fatal(err)
	}
	times, err := column.ParseTimes("2015-02-01/2015-12-31")
	if err != nil {
		log.Fatal(err)
	}
	rows, err := ds.Filter(ctx, spacetime.Filter{Box: &box, Times: &times})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range rows {
		sample, err := ds.Entry(ctx, 0, row)
		if err != nil {
			log.Fatal(err)
		}
		image, err := ds.Below(ctx, sample, "image")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(image.Path, image.Offset, image.Size)
	}
	// Output:
	// roi_qs1/image 31736 10002
	// roi_qs2/image 45236 2690
}
