package runs

import "github.com/chaski-eo/chaski/format/chunk"

// Join joins ranges of a file that are read at once: those that lie near each other, up to a length. All that reads
// ranges, and all that forecasts reads, joins them here, so a forecast is exact.
type Join struct {
	Span   chunk.Range // what was joined so far
	MaxGap int64       // bytes between two ranges, which are cheaper to read than to skip
	MaxLen int64       // bytes of a span of several ranges; a longer range is a span of its own
}

// Take grows the span by a range that joins it, and reports whether it does. A range that begins before the span, lies
// more than MaxGap bytes behind it or would make it longer than MaxLen begins a new span.
func (j *Join) Take(r chunk.Range) bool {
	end := j.Span.Off + j.Span.Len
	grown := max(end, r.Off+r.Len) - j.Span.Off
	if r.Off < j.Span.Off || r.Off-end > j.MaxGap || grown > j.MaxLen {
		return false
	}
	j.Span.Len = grown
	return true
}
