// Package containers answers questions about TACO containers and Tortillas: their description, the places of their
// samples, and queries of their tables. Containers stay open from one question to the next.
package containers

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

// Set names containers that form one dataset.
type Set struct {
	Paths    []string
	BasePath string      // see taco.Options
	Mode     column.Mode // see taco.Options
	Chosen   bool        // see taco.Options
}

const (
	// A program asks about a few datasets in turn. Without this limit, one that goes through a directory of
	// containers would keep all of their files open.
	maxSets = 8
	// The columns of some millions of rows need to fit, otherwise each question would read them again.
	maxSetBytes = 2 << 30
	// budgetShare bounds the cache: 1/budgetShare of the memory budget. The cache is not charged to the budget; it
	// takes its memory from the quarter of all memory that is left for uncharged things.
	budgetShare = 16
)

// Cache keeps datasets open between questions. It is safe for concurrent use.
type Cache struct {
	options resources.Options
	sets    *refcache.Cache[string, *openSet]
}

// openSet is an open dataset with the warnings of its opening and of all questions so far.
type openSet struct {
	*taco.Dataset

	mu       sync.Mutex
	warnings []string // guarded by mu, each once: conditions that join groups repeat theirs
}

func (s *openSet) warn(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.warnings, message) {
		s.warnings = append(s.warnings, message)
	}
}

// NewCache returns a cache, one of several, that opens files with o.Opener, which must be set, below o.Roots. Together
// they keep at most a sixteenth of o.Budget between questions.
func NewCache(o resources.Options, several int64) *Cache {
	bound := int64(maxSetBytes)
	if limit := o.Budget.Limit(); limit > 0 {
		bound = min(bound, limit/budgetShare)
	}
	return &Cache{options: o, sets: refcache.New[string](refcache.Options[*openSet]{
		MaxEntries: maxSets, MaxBytes: max(1, bound/several), Close: (*openSet).Close, SizeOf: (*openSet).Bytes,
		Stale: func(ctx context.Context, s *openSet) bool { return s.Changed(ctx) },
	})}
}

// Close closes the datasets. No question may be under way.
func (c *Cache) Close() {
	// The files were only read, so that closing loses nothing.
	_ = c.sets.Close()
}

// Use calls use with the dataset of a set. A dataset whose files have changed is opened again. It returns the
// warnings about the dataset, from earlier questions too, because columns are joined when it is opened.
func (c *Cache) Use(ctx context.Context, set Set, use func(d *taco.Dataset) error) (warnings []string, err error) {
	key := fmt.Sprintf("%q %d %t %q", set.BasePath, set.Mode, set.Chosen, set.Paths)
	lease, err := c.sets.Acquire(ctx, key, func(ctx context.Context) (*openSet, error) {
		opened := &openSet{}
		var err error
		opened.Dataset, err = taco.Open(ctx, c.options.Opener, set.Paths, taco.Options{
			BasePath: set.BasePath, Mode: set.Mode, Chosen: set.Chosen, Warn: opened.warn,
		})
		return opened, err
	})
	if err != nil {
		return nil, err
	}
	err = use(lease.Value.Dataset)
	lease.Value.mu.Lock()
	warnings = slices.Clone(lease.Value.warnings)
	lease.Value.mu.Unlock()
	// After an error that may come from a closed or changed file, the dataset is opened again.
	_ = lease.Release(refcache.Reusable(err)) // the files were only read
	return warnings, err
}
