package bench

import (
	"fmt"
	"math"
	"slices"
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
	for i, v := range rounds {
		rounds[i] = rounded(v)
	}
	s := slices.Sorted(slices.Values(rounds))
	m := s[len(s)/2]
	if len(s)%2 == 0 {
		m = (s[len(s)/2-1] + m) / 2
	}
	return Figure{Name: name, Unit: unit, Min: s[0], Median: rounded(m), Max: s[len(s)-1], Rounds: rounds}
}

// rounded returns a number with six digits: no clock measures more of them.
func rounded(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
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
