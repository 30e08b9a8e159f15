package tortilla

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// pointerKey is the key in the metadata of a table whose value is the place of the next table.
const pointerKey = "pointer"

// parsePointer parses a pointer: OFFSETLENGTH(A, B), with or without the space, or NULL for the end
// of the chain (ok is false), bare or as a JSON string.
func parsePointer(text string) (next span, ok bool, err error) {
	bad := func() (span, bool, error) {
		return span{}, false, fault.New(fault.Corrupt, "pointer", fault.NoOffset,
			"%.100q is neither OFFSETLENGTH(A, B) nor NULL", text)
	}
	s := strings.TrimSpace(text)
	if strings.HasPrefix(s, `"`) {
		var inner string
		if json.Unmarshal([]byte(s), &inner) != nil {
			return bad()
		}
		s = strings.TrimSpace(inner)
	}
	if strings.EqualFold(s, "NULL") {
		return span{}, false, nil
	}
	s, ok1 := strings.CutPrefix(s, "OFFSETLENGTH(")
	s, ok2 := strings.CutSuffix(s, ")")
	a, b, ok3 := strings.Cut(s, ",")
	if !ok1 || !ok2 || !ok3 {
		return bad()
	}
	for _, n := range []struct {
		text string
		to   *int64
	}{{a, &next.Off}, {b, &next.Size}} {
		v, err := strconv.ParseUint(strings.TrimSpace(n.text), 10, 63)
		if err != nil {
			return bad()
		}
		*n.to = int64(v)
	}
	return next, true, nil
}
