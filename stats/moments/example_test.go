package moments_test

import (
	"fmt"
	"log"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/stats/moments"
)

// Two workers measure rows of a band, 0 being nodata; what a model needs follows from both.
func ExampleField() {
	nodata := 0.0
	var workers [2]*moments.Field
	for i, row := range [][]byte{{1, 2, 0, 3}, {4, 5, 0, 0}} {
		f, err := moments.NewField(chunk.Uint8, 1)
		if err != nil {
			log.Fatal(err)
		}
		f.NoData(&nodata, nil)
		f.AddRows(0, row)
		workers[i] = f
	}
	if err := workers[0].Merge(workers[1]); err != nil {
		log.Fatal(err)
	}
	r := stats.Report{
		Version: stats.ReportVersion, Samples: 2,
		Fields: map[string]stats.FieldReport{"image": workers[0].Report()},
	}
	band := r.Fields["image"].Bands[0]
	fmt.Println(band.Count, "samples,", band.NoData, "of nodata, mean", *band.Mean, "from", *band.Min, "to", *band.Max)
	scale, offset, _, err := r.Normalizer("image", stats.MinMax, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scale, offset)
	// Output:
	// 5 samples, 3 of nodata, mean 3 from 1 to 5
	// [0.25] [-0.25]
}
