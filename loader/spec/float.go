package spec

import (
	"encoding/json"
	"fmt"
	"math"
)

// Float is a float64 whose JSON form also has the strings "nan", "inf" and "-inf", because JSON has
// no numbers for these values.
type Float float64

// MarshalJSON writes a number, or one of the strings "nan", "inf" and "-inf".
func (f Float) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"nan"`), nil
	case math.IsInf(v, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-inf"`), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads what MarshalJSON writes. Other JSON is an error.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"nan"`:
		*f = Float(math.NaN())
	case `"inf"`:
		*f = Float(math.Inf(1))
	case `"-inf"`:
		*f = Float(math.Inf(-1))
	default:
		var v float64
		if err := json.Unmarshal(b, &v); err != nil {
			return fmt.Errorf("%s is neither a number nor \"nan\", \"inf\", \"-inf\"", b)
		}
		*f = Float(v)
	}
	return nil
}
