package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chaski-eo/chaski/stats"
)

// summary is what a terminal shows of a report: a row for each band, without histograms and percentiles.
type summary struct {
	Samples int64                `json:"samples"`
	Skipped int64                `json:"skipped,omitempty"`
	Fields  map[string][]bandRow `json:"fields"`
	Output  string               `json:"output,omitempty"` // the file that has the report
}

type bandRow struct {
	Band   string       `json:"band"`
	Mean   json.Number  `json:"mean,omitempty"`
	Std    json.Number  `json:"std,omitempty"`
	Min    *json.Number `json:"min"`
	Max    *json.Number `json:"max"`
	Count  uint64       `json:"count"`
	NoData string       `json:"nodata"`
	NaN    string       `json:"nan,omitempty"`
	Inf    string       `json:"inf,omitempty"`
}

func summaryOf(report *stats.Report, output string) summary {
	out := summary{report.Samples, report.Skipped, map[string][]bandRow{}, output}
	for name, field := range report.Fields {
		for k, b := range field.Bands {
			share := func(n uint64) string {
				return fmt.Sprintf("%.3g%%", 100*float64(n)/float64(max(1, b.Count+b.NoData+b.NaN+b.Inf)))
			}
			row := bandRow{cmp.Or(b.Name, strconv.Itoa(k)), short(b.Mean), short(b.Std), b.Min, b.Max, b.Count,
				share(b.NoData), "", ""}
			if b.NaN > 0 {
				row.NaN = share(b.NaN)
			}
			if b.Inf > 0 {
				row.Inf = share(b.Inf)
			}
			out.Fields[name] = append(out.Fields[name], row)
		}
	}
	return out
}

// short returns a number with six digits, which JSON and YAML read.
func short(v *float64) json.Number {
	if v == nil {
		return ""
	}
	return json.Number(fmt.Sprintf("%.6g", *v))
}
