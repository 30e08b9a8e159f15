package inspect

import (
	"fmt"
	"strings"
)

// sheet prints lines of "name   value"; empty values are left out.
type sheet struct{ b strings.Builder }

func (s *sheet) line(name, format string, args ...any) {
	if v := fmt.Sprintf(format, args...); v != "" {
		fmt.Fprintf(&s.b, "  %-14s %s\n", name, v)
	}
}
