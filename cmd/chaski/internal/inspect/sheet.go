package inspect

import (
	"fmt"
	"strings"
)

// sheet collects lines of "name   value". It leaves out empty values.
type sheet struct{ b strings.Builder }

func (s *sheet) line(name, format string, args ...any) {
	if v := fmt.Sprintf(format, args...); v != "" {
		fmt.Fprintf(&s.b, "  %-14s %s\n", name, v)
	}
}
