package num

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Float is a float64 whose JSON form also has the strings "nan", "inf" and "-inf", because JSON has
// no numbers for these values.
type Float float64

// MarshalJSON writes a number, or one of the strings "nan", "inf" and "-inf".
func (f Float) MarshalJSON() ([]byte, error) {
	switch value := float64(f); {
	case math.IsNaN(value):
		return []byte(`"nan"`), nil
	case math.IsInf(value, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(value, -1):
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
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return errors.New(`a number, "nan", "inf" or "-inf"`)
		}
		*f = Float(v)
	}
	return nil
}
