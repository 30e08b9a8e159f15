package diskcache

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Content describes what a folder holds.
type Content struct {
	Objects int   `json:"objects"` // versions of objects
	Ranges  int   `json:"ranges"`
	Bytes   int64 `json:"bytes"` // of the ranges
	Disk    int64 `json:"disk"`  // what they take on disk, which the quota counts
	// Read is when a range was last read, to a day: of the one that was read longest ago, and of the last one.
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
}

// List describes what a folder holds.
func List(path string) (c Content, err error) {
	if err := isCache(path); err != nil {
		return c, err
	}
	objects := map[Object]bool{}
	err = each(path, false, func(name string, s stored) error {
		info, err := os.Lstat(name)
		if err != nil {
			return nil // another engine removed it
		}
		objects[s.Object] = true
		c.Ranges++
		c.Bytes += s.len()
		c.Disk += costOf(s.len())
		if read := info.ModTime().UTC(); c.Ranges == 1 {
			c.Oldest, c.Newest = read, read
		} else if read.Before(c.Oldest) {
			c.Oldest = read
		} else if read.After(c.Newest) {
			c.Newest = read
		}
		return nil
	})
	c.Objects = len(objects)
	return c, err
}

// Verify reads all ranges of a folder and removes damaged ones. It returns how many there were of both.
func Verify(path string, progress func(done int64)) (ranges, damaged int64, err error) {
	if err := isCache(path); err != nil {
		return 0, 0, err
	}
	cache, err := Open(path, math.MaxInt64)
	if err != nil {
		return 0, 0, err
	}
	part := make([]byte, bucketBytes)
	err = each(path, false, func(name string, s stored) (err error) {
		ranges++
		progress(ranges)
		for off := s.From; off < s.End && err == nil; off += bucketBytes {
			err = disk{}.readRange(name, s.Span, part[:min(bucketBytes, s.End-off)], off, false)
		}
		switch {
		case errors.Is(err, errDamaged):
			damaged++
			removeRange(name, &cache.used, costOf(s.len()))
			return nil
		case errors.Is(err, os.ErrNotExist): // another engine removed it
			return nil
		}
		return err
	})
	return ranges, damaged, errors.Join(err, cache.Close())
}

// Trim removes ranges, the longest unread first, until they take at most a number of bytes on disk.
func Trim(path string, bytes int64) error {
	if err := isCache(path); err != nil {
		return err
	}
	cache, err := Open(path, bytes)
	return errors.Join(err, cache.Close())
}

// isCache returns an error for a folder without the marker of a cache. One with a damaged marker gets a new one.
func isCache(path string) error {
	err := checkMarker(path)
	if errors.Is(err, errDamaged) {
		err = create(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fault.WithFile(fault.New(fault.NotFound, marker, "the folder is no cache"), path)
	}
	return err
}
