package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Setting is one setting of a measurement.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Figure is one measured quantity, with one number for each round.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

// newFigure summarises the rounds of a figure. There must be at least one.
func newFigure(name, unit string, rounds []float64) Figure {
	s := slices.Sorted(slices.Values(rounds))
	m := s[len(s)/2]
	if len(s)%2 == 0 {
		m = (s[len(s)/2-1] + m) / 2
	}
	return Figure{Name: name, Unit: unit, Min: s[0], Median: m, Max: s[len(s)-1], Rounds: rounds}
}

// Report is the result of a measurement.
type Report struct {
	Workload string    `json:"workload"`
	Settings []Setting `json:"settings"`
	Machine  Machine   `json:"machine"`
	Figures  []Figure  `json:"figures"`
	// Stages is the time of all workers in all rounds, by stage, if it was measured.
	Stages []StageTime `json:"stages,omitempty"`
}

// StageTime is the time of all workers in one stage.
type StageTime struct {
	Stage     string  `json:"stage"`
	Seconds   float64 `json:"seconds"`
	Share     float64 `json:"share"` // of the workers' time, 0 to 1
	PerSample float64 `json:"ms_per_sample"`
}

func (r *Report) set(name, format string, args ...any) {
	r.Settings = append(r.Settings, Setting{name, fmt.Sprintf(format, args...)})
}

// Figure returns the first figure with the name, or nil.
func (r *Report) Figure(name string) *Figure {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			return &r.Figures[i]
		}
	}
	return nil
}

// WriteText writes the report as a table.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	writer := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(writer, "figure\tunit\tmin\tmedian\tmax\trounds\t")
	for _, f := range r.Figures {
		fmt.Fprintf(writer, "%s\t%s\t%s\t%s\t%s\t%d\t\n", f.Name, f.Unit, number(f.Min), number(f.Median),
			number(f.Max), len(f.Rounds))
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	if err := r.writeStages(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeStages writes where the time of the workers went.
func (r *Report) writeStages(b *strings.Builder) error {
	if len(r.Stages) == 0 {
		return nil
	}
	b.WriteByte('\n')
	writer := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(writer, "stage of the workers\tms a sample\tseconds\tshare\t")
	line := func(name string, s StageTime) {
		fmt.Fprintf(writer, "%s\t%s\t%s\t%.1f %%\t\n", name, number(s.PerSample), number(s.Seconds), 100*s.Share)
	}
	var total StageTime
	for _, stageTime := range r.Stages {
		line(stageTime.Stage, stageTime)
		total.Seconds += stageTime.Seconds
		total.Share += stageTime.Share
		total.PerSample += stageTime.PerSample
	}
	line("all", total)
	return writer.Flush()
}

// writeHead writes the workload, the machine and the settings.
func (r *Report) writeHead(b *strings.Builder) {
	machine := r.Machine
	fmt.Fprintf(b, "%s\n", r.Workload)
	fmt.Fprintf(b, "machine: %s, %d cores (GOMAXPROCS %d), %s/%s, %s, zstd %s\n", machine.CPU, machine.Cores,
		machine.GOMAXPROCS,
		machine.OS, machine.Arch, machine.Go, machine.Zstd)
	b.WriteString("settings:")
	for i, setting := range r.Settings {
		sep := ","
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(b, "%s %s %s", sep, setting.Name, setting.Value)
	}
	b.WriteString("\n\n")
}

// number formats a number with about four digits.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
