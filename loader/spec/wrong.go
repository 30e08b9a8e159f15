package spec

import "fmt"

// MemberError says which member of a spec is wrong. Each front end may name the member as its user wrote it.
type MemberError struct {
	Member string // its name in JSON, such as "per_asset"
	Value  any
	Rule   string // such as "it must be from 1 to 1048576"
}

// Error implements error.
func (e *MemberError) Error() string { return e.Named(e.Member) }

// Named returns the text of the error for a member that the user knows by another name.
func (e *MemberError) Named(name string) string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("%s is %q: %s", name, s, e.Rule)
	}
	return fmt.Sprintf("%s is %v: %s", name, e.Value, e.Rule)
}

// wrong returns the error for a member whose value breaks a rule.
func wrong(member string, value any, rule string, args ...any) error {
	return &MemberError{member, value, fmt.Sprintf(rule, args...)}
}
