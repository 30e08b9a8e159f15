package loader

import (
	"slices"
)

// fetchers returns how many goroutines do units.
func (e *Engine) fetchers() int {
	remote := slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.remote })
	return e.options.Readers(e.options.Workers, remote)
}
