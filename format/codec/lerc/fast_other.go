//go:build !amd64 || purego || twins

package lerc

// wide writes a block of a common kind with vectors. It reports false if it has not.
func (d *Decoder) wide(rect, float64) bool { return false }
