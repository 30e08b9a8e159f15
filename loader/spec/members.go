package spec

import (
	"iter"
	"reflect"
	"strings"
	"sync"
)

// structMember is a member of an object that stands for a struct.
type structMember struct {
	name  string
	of    reflect.Type
	index []int // of the field of the struct
	roles []string
}

// structs holds the members of structs by their types. A spec may have 300,000 empty objects, and reflect would take
// seconds to find the members for each of them.
var structs sync.Map

// membersOf returns the members of a struct in the order of its fields.
func membersOf(t reflect.Type) (all []structMember) {
	if known, ok := structs.Load(t); ok {
		return known.([]structMember)
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" { // an embedded struct has no name, and its fields are visible
			all = append(all, structMember{name, field.Type, field.Index, strings.Split(field.Tag.Get("role"), ",")})
		}
	}
	structs.Store(t, all)
	return all
}

// eachMember yields the members of the struct that a pointer leads to, with their names in JSON.
func eachMember(pointer any) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		v := reflect.ValueOf(pointer).Elem()
		for _, m := range membersOf(v.Type()) {
			if !yield(m.name, v.FieldByIndex(m.index)) {
				return
			}
		}
	}
}

// firstMember returns the first member of the pointer's struct that is set and for which counts is true, or "".
func firstMember(pointer any, counts func(name string) bool) string {
	for name, value := range eachMember(pointer) {
		if !value.IsZero() && counts(name) {
			return name
		}
	}
	return ""
}
