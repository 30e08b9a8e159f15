package spec

import (
	"fmt"
)

// MaxClasses bounds the classes of a field: the land cover legends in use have some hundred.
const MaxClasses = 1 << 16

// ClassLimit returns how many classes a dtype of a field of kind "class" can number from 0.
func ClassLimit(dtype string) int {
	switch dtype {
	case "uint8":
		return 1 << 8
	case "int16":
		return 1 << 15
	}
	return MaxClasses
}

// CheckClasses checks that classes are different, not empty, and that a dtype can number them.
func CheckClasses(classes []string, dtype string) error {
	if limit := ClassLimit(dtype); len(classes) > limit {
		return fmt.Errorf("classes has %d strings: dtype %q can number %d", len(classes), dtype, limit)
	}
	seen := make(map[string]bool, len(classes))
	for _, c := range classes {
		switch {
		case c == "":
			return fmt.Errorf("classes has an empty string: samples without a class are bad")
		case seen[c]:
			return fmt.Errorf("classes has %q twice", c)
		}
		seen[c] = true
	}
	return nil
}
