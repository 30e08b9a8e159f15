package inspect

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// sheet collects lines of "name   value". It leaves out empty values and secrets of URIs.
type sheet struct{ b strings.Builder }

func (s *sheet) line(name, format string, args ...any) {
	if v := fault.WithoutSecrets(fmt.Sprintf(format, args...)); v != "" {
		fmt.Fprintf(&s.b, "  %-14s %s\n", name, v)
	}
}
