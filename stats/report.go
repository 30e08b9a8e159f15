// Package stats has the statistics of rasters by band, and what normalises by them. Package stats/moments measures
// them.
package stats

import (
	"encoding/json"

	"github.com/chaski-eo/chaski/format/chunk"
)

// ReportVersion is the version of Report's JSON.
const ReportVersion = 1

// Report has the statistics of a dataset. Its JSON is the same for the same dataset, byte for byte.
type Report struct {
	Version int                    `json:"version"`           // ReportVersion
	Samples int64                  `json:"samples"`           // of the dataset, not pixels
	Skipped int64                  `json:"skipped,omitempty"` // samples that could not be read
	Fields  map[string]FieldReport `json:"fields"`
}

// FieldReport has the statistics of a raster field.
type FieldReport struct {
	DType chunk.DType `json:"dtype"`
	Bands []Band      `json:"bands"`
	// Picked says that Bands are those that the field asked for, in its order, and not all.
	Picked bool `json:"picked,omitempty"`
	// Physical says that the values are physical ones, and not as stored.
	Physical bool `json:"physical,omitempty"`
	// LUT has the class that a look-up table makes of each number of Band.Classes, but for those that become fill.
	LUT map[int64]int64 `json:"lut,omitempty"`
}

// Pooled are statistics of all pixels of some samples, by band.
type Pooled struct {
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"` // of the population, not an estimate from a sample
	Min  []float64 `json:"min"`
	Max  []float64 `json:"max"`
	// Samples is the number of rows with statistics.
	Samples int `json:"samples"`

	Pixels []float64 `json:"-"` // valid ones, by band
}

// Band has the statistics of one band. Without a valid sample Mean, Std, Min, Max, Histogram and
// Percentiles are null.
type Band struct {
	Name  string `json:"name,omitempty"`  // its name in the first file
	Index *int   `json:"index,omitempty"` // its number in the rasters, if it was picked by it

	Count  uint64 `json:"count"`  // valid samples: all but those below
	NoData uint64 `json:"nodata"` // samples that are nodata
	NaN    uint64 `json:"nan"`    // NaN that are not nodata
	Inf    uint64 `json:"inf"`    // infinities of both signs that are not nodata

	Mean *float64     `json:"mean"`
	Std  *float64     `json:"std"` // of the population (ddof 0)
	Min  *json.Number `json:"min"` // exact, integers of 64 bits too
	Max  *json.Number `json:"max"`

	Histogram *Histogram `json:"histogram"`
	// Classes counts each number of a raster of one band of 8 or 16 bits with at most 256 different ones: of
	// others nil, which are measurements.
	Classes map[int64]uint64 `json:"classes,omitempty"`
	// Percentiles by name: "2.5", "50", "98.5".
	Percentiles map[string]float64 `json:"percentiles"`
	// Resolution is the largest error of a percentile; 0 means exact.
	Resolution float64 `json:"resolution"`
}

// Number returns Index, or -1 without one.
func (b *Band) Number() int {
	if b.Index == nil {
		return -1
	}
	return *b.Index
}

// Histogram counts the valid samples in bins of equal width. Bin i holds Edges[i] <= x <
// Edges[i+1], and the last bin also its upper edge.
type Histogram struct {
	Edges  []float64 `json:"edges"`  // 101
	Counts []uint64  `json:"counts"` // 100
}
