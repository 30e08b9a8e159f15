package arrays

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
)

// maxHeld bounds the metadata that one Open holds, as it is charged, whether there is a budget or not. The 10,000
// arrays of a group that is listed take some 10 KB each, which are 100 MB.
const maxHeld = 512 << 20

// memoryCount counts the bytes of an open store: the metadata of its nodes, and the indexes of its shards. All nodes
// and arrays of one Open share it.
type memoryCount struct {
	account *budget.Account // of the opening, nil for none
	indexes *lru.Cache[string, any]

	metaBytes atomic.Int64 // bytes of metadata
	most      int64        // of them

	mu         sync.Mutex // of the fields below
	indexBytes int64      // Options.MaxIndexes, which the caller charges, and the bytes charged by reserve
	least      int64      // of indexes: bytes that the arrays of reserve need
	full       error      // the first that had no room
}

func newMemory(account *budget.Account, indexes, most int64) *memoryCount {
	return &memoryCount{account: account, indexes: lru.New[string, any](indexes), indexBytes: indexes, most: most}
}

// Held implements store.Group: it returns the bytes that the store takes at most, once its rasters are open, and an
// error if there was no room for some of the metadata, which Place takes for missing.
func (n *Node) Held() (int64, error) {
	memory := n.options.memory
	memory.mu.Lock()
	defer memory.mu.Unlock()
	return memory.metaBytes.Load() + memory.indexBytes, fault.WithFile(memory.full, n.URI)
}

// take charges n bytes of metadata.
func (m *memoryCount) take(ctx context.Context, n int64) (err error) {
	if m.metaBytes.Add(n) > m.most {
		err = fault.New(fault.Limit, MetaPart, "the metadata of the store takes more than %d bytes: "+
			"open a group or an array below it", m.most)
	} else {
		err = m.account.Grow(ctx, n)
	}
	if err != nil {
		m.metaBytes.Add(-n)
		m.mu.Lock()
		m.full = cmp.Or(m.full, err)
		m.mu.Unlock()
	}
	return err
}

// give gives n bytes back.
func (m *memoryCount) give(n int64) {
	m.metaBytes.Add(-n)
	m.account.Shrink(n)
}

// reserve makes room for one index of each level of each array, beside those that it was called for before.
func (m *memoryCount) reserve(ctx context.Context, arrays []*Array) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	least := m.least
	for _, a := range arrays {
		if a.objects != nil {
			if kept, _, err := a.objects.IndexBytes(); err == nil { // else nothing of the array is read
				least += kept
			}
		}
	}
	if growth := least - m.indexBytes; growth > 0 {
		if err := m.account.Grow(ctx, growth); err != nil {
			return err
		}
		m.indexBytes = least
		m.indexes.Raise(least)
	}
	m.least = least
	return nil
}
