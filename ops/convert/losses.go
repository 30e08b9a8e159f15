package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Losses collects what conversions left out. Rasters with the same losses share a line, because a directory mostly
// holds rasters of one kind. The zero value is empty.
type Losses struct {
	mu sync.Mutex
	of map[string]*loss // by the names of what was left out, joined
}

// loss counts the rasters that lost the same things.
type loss struct {
	first int // number of the first raster with it
	path  string
	count int
}

// Add records what raster i lost. Several goroutines may call it.
func (l *Losses) Add(i int, path string, names []string) {
	if len(names) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*loss{}
	}
	key := strings.Join(names, ", ")
	v := l.of[key]
	if v == nil {
		v = &loss{first: i, path: path}
		l.of[key] = v
	}
	// Conversions end in any order: the raster with the lowest number is named, so that the warning is the
	// same in every run.
	if v.count++; i < v.first {
		v.first, v.path = i, path
	}
}

// Lines returns a warning for each kind of loss, in the order of the first raster that has it.
func (l *Losses) Lines() []string {
	keys := slices.SortedFunc(maps.Keys(l.of), func(a, b string) int {
		return cmp.Compare(l.of[a].first, l.of[b].first)
	})
	var lines []string
	for _, k := range keys {
		loss := l.of[k]
		note := ""
		if loss.count > 1 {
			note = fmt.Sprintf(" and %d more", loss.count-1)
		}
		lines = append(lines, fmt.Sprintf("warning: %s%s: left out: %s", loss.path, note, k))
	}
	return lines
}
