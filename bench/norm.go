package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/stats"
)

// maxStats is the largest file of statistics that is read, in bytes.
const maxStats = 64 << 20

// Normalization reads statistics and returns a normalisation (such as stats.MeanStd) for the bands that a field picks.
// The file is the output of `chaski stats`, its member "fields" alone or, for stats.MeanStd, an object with the lists
// "mean" and "std", one number for each band of the rasters. Errors have the kind fault.NotFound, fault.Corrupt or
// fault.Limit.
func Normalization(file string, field *spec.Field, kind string) (*spec.Normalize, error) {
	report, err := readStats(file, field.Name)
	if err != nil {
		return nil, fault.WithFile(err, file)
	}
	f, ok := report.Fields[field.Name]
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "stats", "no field %q", field.Name), file)
	}
	normalize, err := spec.NormalizeByStats(&f, kind, field.Bands, field.BandNames)
	if err != nil {
		err = fault.Wrap(fault.NotFound, "stats", fmt.Errorf("field %q: %w", field.Name, err))
		return nil, fault.WithFile(err, file)
	}
	return normalize, nil
}

// readStats reads any form of the file as a report.
func readStats(file, field string) (*stats.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStats+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStats {
		return nil, fault.New(fault.Limit, "stats", "over %d bytes", maxStats)
	}
	var s struct {
		stats.Report
		Mean []float64 `json:"mean"`
		Std  []float64 `json:"std"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "stats", err)
	}
	switch {
	case s.Fields != nil:
		return &s.Report, nil
	case s.Mean == nil && s.Std == nil:
		if err := json.Unmarshal(data, &s.Fields); err != nil {
			return nil, fault.Wrap(fault.Corrupt, "stats", err)
		}
		return &s.Report, nil
	case len(s.Mean) == 0 || len(s.Mean) != len(s.Std):
		return nil, fault.New(fault.Corrupt, "stats",
			"mean has %d values and std has %d: both need as many, one for each band", len(s.Mean), len(s.Std))
	}
	return &stats.Report{Fields: map[string]stats.FieldReport{field: {Bands: stats.MeanStdBands(s.Mean, s.Std)}}}, nil
}
