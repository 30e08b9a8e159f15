package einops

// For the tests, which make plans by package pattern.
const (
	MaxStarts = maxStarts
	Streamed  = streamed
)

// Digits returns how many runs of an axis have strides of their own.
func (p *Plan) Digits(axis string) int {
	digits := len(p.axes[AxisIndex(axis)].digits)
	if axis == "x" && p.runs.constant() != (digits == 1) {
		return -1
	}
	return digits
}

// HasStarts reports whether the offsets of runs are stored.
func (p *Plan) HasStarts() bool { return p.runs.starts != nil }
