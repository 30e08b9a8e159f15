package bench

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
)

// spent is the time in every stage at one moment.
type spent []time.Duration

func spentIn(s *resources.Stages) (all spent) {
	for _, stage := range resources.AllStages() {
		all = append(all, s.Spent(stage))
	}
	return all
}

// stageTimes returns the time spent in each stage between two moments, and its share per sample.
func stageTimes(from, to spent, samples int64) []StageTime {
	var sum time.Duration
	for i := range to {
		sum += to[i] - from[i]
	}
	out := make([]StageTime, 0, len(to))
	for i, stage := range resources.AllStages() {
		out = append(out, newStageTime(stage.String(), to[i]-from[i], sum, samples))
	}
	return out
}

// engineStages is the report of an engine about its workers when it ends.
type engineStages struct {
	Stages []StageTime `json:"stages"`
	Send   StageTime   `json:"send"`
	Chunks int64       `json:"decoded_chunks"`
}

// WriteStages writes where the time of an engine's workers went, and beside them what passing batches on took, as JSON.
func WriteStages(w io.Writer, s *resources.Stages) error {
	n := s.Samples()
	e := engineStages{Stages: stageTimes(make(spent, len(resources.AllStages())), spentIn(s), n)}
	var times time.Duration
	for _, d := range spentIn(s) {
		times += d
	}
	e.Chunks, _ = s.Decoded()
	e.Send = newStageTime("send", s.Sent(), times, n)
	return json.NewEncoder(w).Encode(e)
}

func newStageTime(stage string, t, all time.Duration, samples int64) StageTime {
	return StageTime{
		Stage: stage, Seconds: rounded(t.Seconds()), Share: rounded(t.Seconds() / max(all.Seconds(), 1e-9)),
		PerSample: rounded(1e3 * t.Seconds() / float64(max(samples, 1))),
	}
}

// waits has how long a consumer waited for each batch of a round.
type waits []time.Duration

// waitRounds has the median, the 99th percentile and the maximum of the waits of every round, in ms.
type waitRounds struct{ p50, p99, max []float64 }

func (w *waitRounds) add(all waits) {
	slices.Sort(all)
	quantile := func(q int) float64 { return float64(all[(len(all)-1)*q/100]) / 1e6 }
	w.p50, w.p99, w.max = append(w.p50, quantile(50)), append(w.p99, quantile(99)), append(w.max, quantile(100))
}

func (w *waitRounds) figures() []Figure {
	return []Figure{newFigure("wait p50", "ms", w.p50), newFigure("wait p99", "ms", w.p99),
		newFigure("longest wait", "ms", w.max)}
}
