//go:build invariants

package invariants

// Enabled reports whether the checks are compiled in.
const Enabled = true
