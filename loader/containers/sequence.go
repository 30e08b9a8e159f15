package containers

import (
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
)

// maxFiles bounds the files of a sequence, as Time.Length does the steps of a series.
const maxFiles = 1 << 16

// fileSequence is the files of a field in each sample.
type fileSequence struct {
	level  int
	first  []int32 // row i of level 0 has the files rows[first[i]:first[i+1]] of the level
	rows   []int32
	picks  []int // the number of the file of each step
	fields []int // the number of the field of each step
}

// newSequence returns the sequence that name means. It has a step for each file that some sample of the container has,
// selected or not, or those that times picks.
func newSequence(name string, files *store.Sequence, times []int) (*fileSequence, error) {
	made := &fileSequence{level: files.Level, first: []int32{0}, picks: times, fields: []int{}}
	longest := 0
	for _, rows := range files.Rows {
		longest = max(longest, len(rows))
		for _, row := range rows {
			made.rows = append(made.rows, int32(row))
		}
		made.first = append(made.first, int32(len(made.rows)))
	}
	if longest > maxFiles {
		return nil, fault.New(fault.Limit, name, "a sample has %d files, at most %d are steps of time",
			longest, maxFiles)
	}
	if len(times) == 0 {
		for k := range longest {
			made.picks = append(made.picks, k)
		}
	} else if last := slices.Max(times); last >= files.Most {
		return nil, fault.New(fault.NotFound, name, "no step %d: a sample has up to %d files", last, files.Most)
	}
	return made, nil
}

// row returns the row of file number k of a sample, or -1.
func (s *fileSequence) row(sample int32, k int) int32 {
	if k >= int(s.first[sample+1]-s.first[sample]) {
		return -1
	}
	return s.rows[int(s.first[sample])+k]
}

// padding reports whether a sample has no file for a step, and some for others.
func (s *fileSequence) padding(step int, sample int32) bool {
	return s.row(sample, 0) >= 0 && s.row(sample, s.picks[step]) < 0
}
