package fault

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// MemberError says which member of a spec is wrong. A front end names the member as its user wrote it: --per-asset,
// per_asset= or windows.per_file.
type MemberError struct {
	Where  string // the source and the field around it, such as `spec: field "image": `; may be empty
	Member string // its name in JSON, such as "per_asset"
	Value  any    // of json.RawMessage if it has not the type of the member
	Rule   string // such as "it must be from 1 to 1048576"
}

// Error implements error.
func (e *MemberError) Error() string { return e.Where + e.Named(e.Member) }

// Named returns the text of the error, without Where, for a member that the user knows by another name.
func (e *MemberError) Named(name string) string { return name + " is " + e.Given() + ": " + e.Rule }

// Given returns the value as JSON may write it.
func (e *MemberError) Given() string {
	switch value := reflect.ValueOf(e.Value); {
	case value.Type() == reflect.TypeFor[json.RawMessage]():
		return string(value.Bytes())
	case value.Kind() == reflect.String, value.Type() == reflect.TypeFor[[]string]():
		return fmt.Sprintf("%q", e.Value)
	case value.Type() == reflect.TypeFor[[2]float64]():
		return fmt.Sprintf("[%v,%v]", value.Index(0), value.Index(1))
	}
	return fmt.Sprint(e.Value)
}
