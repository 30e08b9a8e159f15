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

// Normalization reads statistics and returns a normalisation (such as stats.MeanStd) for some bands of a field, or for
// all if bands is nil. The file is the output of `chaski stats` or, for stats.MeanStd, a JSON object with the lists
// "mean" and "std", one number for each band. Errors have the kind fault.NotFound, fault.Corrupt or fault.Limit.
func Normalization(file string, field *spec.Field, kind string) (*spec.Normalize, error) {
	report, err := readStats(file, field.Name)
	if err != nil {
		return nil, fault.WithFile(err, file)
	}
	f, ok := report.Fields[field.Name]
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "stats", fault.NoOffset, "no field %q", field.Name), file)
	}
	normalize, err := spec.NormalizeByStats(&f, kind, field)
	if err != nil {
		err = fault.Wrap(fault.NotFound, "stats", fault.NoOffset, fmt.Errorf("field %q: %w", field.Name, err))
		return nil, fault.WithFile(err, file)
	}
	return normalize, nil
}

// readStats reads either form of the file as a report.
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
		return nil, fault.New(fault.Limit, "stats", fault.NoOffset, "over %d bytes", maxStats)
	}
	var s struct {
		stats.Report
		Mean []float64 `json:"mean"`
		Std  []float64 `json:"std"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "stats", fault.NoOffset, err)
	}
	switch {
	case s.Fields != nil:
		return &s.Report, nil
	case len(s.Mean) == 0 || len(s.Mean) != len(s.Std):
		return nil, fault.New(fault.Corrupt, "stats", fault.NoOffset,
			"neither \"fields\" nor \"mean\" and \"std\" of one length")
	}
	bands := make([]stats.Band, len(s.Mean))
	for i := range bands {
		bands[i] = stats.Band{Count: 1, Mean: &s.Mean[i], Std: &s.Std[i]}
	}
	return &stats.Report{Fields: map[string]stats.FieldReport{field: {Bands: bands}}}, nil
}
