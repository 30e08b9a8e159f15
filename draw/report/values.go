package report

import (
	"strconv"

	"github.com/chaski-eo/chaski/store/catalog"
)

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
