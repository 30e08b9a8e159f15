package report

import (
	"math/bits"
	"strconv"

	"github.com/chaski-eo/chaski/store/catalog"
)

// Sizes counts files by size, in sixteen bins for each power of two.
type Sizes struct {
	N, Total, Min, Max int64
	bins               [16 * 64]int64
}

func (s *Sizes) add(n int64) {
	if s.N == 0 || n < s.Min {
		s.Min = n
	}
	s.N++
	s.Max = max(s.Max, n)
	s.Total += n
	s.bins[sizeBin(n)]++
}

// sizeBin returns 16·floor(log2 n) and the next four bits of n.
func sizeBin(n int64) int {
	if n < 1 {
		return 0
	}
	e := bits.Len64(uint64(n)) - 1
	return 16*e + int(uint64(n)<<(63-e)>>59&15)
}

// sizeEdge returns the lower edge of a bin in bytes.
func sizeEdge(bin int) float64 {
	return float64(uint64(1)<<(bin/16)) * (1 + float64(bin%16)/16)
}

// Mean returns the mean size in bytes.
func (s *Sizes) Mean() int64 { return s.Total / max(s.N, 1) }

// Values summarises a field of numbers or strings.
type Values struct {
	N, Null  int64
	Kinds    Tally
	Min, Max float64 // of numbers that are not NaN
	Sum      float64
	Numbers  int64
	Long     int64 // strings longer than maxText, which are not counted one by one
}

// maxText is the longest string that is kept, in bytes. A longer one is not a label, and a report should not show it.
const maxText = 200

func (v *Values) add(k catalog.Kind, x catalog.Value) {
	v.N++
	if x.Null {
		v.Null++
		return
	}
	n := x.Float
	switch k {
	case catalog.Text:
		if len(x.Text) > maxText {
			v.Long++
			return
		}
		v.Kinds.add(x.Text)
		return
	case catalog.Int:
		n = float64(x.Int)
		v.Kinds.add(strconv.FormatInt(x.Int, 10))
	}
	if n != n {
		return
	}
	if v.Numbers == 0 || n < v.Min {
		v.Min = n
	}
	if v.Numbers == 0 || n > v.Max {
		v.Max = n
	}
	v.Sum += n
	v.Numbers++
}
