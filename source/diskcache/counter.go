package diskcache

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
)

// counter is a number in a file that several engines change.
type counter struct {
	mu   sync.Mutex // the lock of the file is one of the process
	file *os.File
}

// change replaces the number by what f returns for it, and returns that.
func (c *counter) change(f func(int64) int64) (n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := lock(c.file); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unlock(c.file)) }()
	var b [8]byte
	if _, err := c.file.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) { // a new file is empty
		return 0, err
	}
	old := int64(binary.LittleEndian.Uint64(b[:]))
	if n = max(f(old), 0); n == old {
		return n, nil
	}
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, err = c.file.WriteAt(b[:], 0)
	return n, err
}

func (c *counter) add(n int64) (int64, error) {
	return c.change(func(old int64) int64 { return old + n })
}

func (c *counter) set(n int64) error {
	_, err := c.change(func(int64) int64 { return n })
	return err
}

// take adds n if the sum is at most the quota.
func (c *counter) take(n, quota int64) (taken bool) {
	_, err := c.change(func(old int64) int64 {
		if taken = old <= quota-n; taken {
			return old + n
		}
		return old
	})
	return taken && err == nil
}
