package spec

import (
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// wrong returns the error for a member whose value breaks a rule.
func wrong(member string, value any, rule string, args ...any) error {
	return &fault.MemberError{Member: member, Value: value, Rule: fmt.Sprintf(rule, args...)}
}

// within says where in a spec an error is.
func within(where string, err error) error {
	var e *fault.MemberError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return fmt.Errorf("%s: %w", where, err)
	}
	inside := *e
	inside.Where = where + ": " + e.Where
	return &inside
}

// brief returns the start of a text: enough to recognise it, and short enough for a line.
func brief(text string) string {
	if r := []rune(text[:min(len(text), 4*81)]); len(r) > 80 { // a rune has at most 4 bytes
		return string(r[:80]) + "…"
	}
	return text
}

// repeated returns the first value of a list that an earlier one equals, if any does.
func repeated[T comparable](list []T) (value T, twice bool) {
	seen := make(map[T]bool, len(list))
	for _, value = range list {
		if seen[value] {
			return value, true
		}
		seen[value] = true
	}
	return value, false
}
