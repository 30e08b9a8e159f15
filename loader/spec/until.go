package spec

import (
	"fmt"
	"strconv"

	"github.com/chaski-eo/chaski/shuffle"
)

// Rules for the end of an epoch of a mixture.
const (
	UntilShortest = "shortest" // before a source would repeat a sample
	UntilLongest  = "longest"  // after every source has given every sample
	UntilLength   = "length"   // after Length samples
)

// Untils maps the values of Mixture.Until to the rules of package shuffle.
var Untils = map[Text]shuffle.Until{
	UntilShortest: shuffle.Shortest, UntilLongest: shuffle.Longest, UntilLength: shuffle.Given,
}

// countIn moves a number of samples from a member until to the member length.
func (t *Text) countIn(length *int64) {
	if n, err := strconv.ParseInt(string(*t), 10, 64); err == nil && n > 0 && *length == 0 {
		*t, *length = UntilLength, n
	}
}

func validUntil(until Text, length int64, temperature float64) error {
	switch {
	case until != UntilShortest && until != UntilLongest && until != UntilLength:
		return wrong("until", until, "it must be %q, %q or %q", UntilShortest, UntilLongest, UntilLength)
	case length < 0 || length > maxSamples || until != UntilLength && length != 0:
		return fmt.Errorf("length is %d, but until is %q", length, until)
	// The negation also refuses NaN, for which every comparison is false.
	case !(temperature >= 0):
		return wrong("temperature", temperature, "it must be above 0")
	}
	return nil
}
