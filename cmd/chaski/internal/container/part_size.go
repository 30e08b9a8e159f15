package container

import (
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// sizeUnits are what a size may end in, longer ones first.
var sizeUnits = []struct {
	name  string
	bytes float64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"B", 1}, {"", 1}}

// parseSize returns the bytes of a size such as 4GB, 512MiB or 1000.
func parseSize(flag, text string) (int64, error) {
	upper := strings.ToUpper(strings.TrimSpace(text))
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(upper, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if n *= unit.bytes; err == nil && n >= 1 && n < math.MaxInt64 {
			return int64(n), nil
		}
		break
	}
	return 0, console.Usagef("--%s is %q: it must be a size such as 4GB, 512MiB or 1000", flag, text)
}
