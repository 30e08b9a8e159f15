package spec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Members that change no byte of a batch have a tag `hash`, which says why the spec hash leaves them out:
//
//	place  a path, or the name of a source: a run resumes after its data has moved
//	rule   it only ends or refuses a run, or states what the fingerprint covers: users may change it to continue
//	note   chaski passes it on to who asks
//	pool   it gives the default of Pool, and counts as long as that is not filled in

// Placeless returns a copy of the spec without the members that the spec hash leaves out.
func (s Spec) Placeless() Spec {
	unhashed(reflect.ValueOf(&s).Elem(), func(why, _ string, member, of reflect.Value) {
		if why != "pool" || of.Addr().Interface().(*TileWindows).Pool > 0 {
			member.SetZero()
		}
	})
	if s.Last == steps.LastShort { // the default, which older specs do not have
		s.Last = ""
	}
	return s
}

// Places returns a key made of the paths, names and notes that Placeless removes. The spec hash does not cover them,
// but an engine depends on them.
func (s Spec) Places() string {
	var b strings.Builder
	unhashed(reflect.ValueOf(&s).Elem(), func(why, name string, member, _ reflect.Value) {
		switch {
		case why == "place":
			fmt.Fprintf(&b, "%s %q\n", name, member.Interface())
		case why == "note" && !member.IsZero():
			fmt.Fprintf(&b, "%s %v\n", name, member.Interface())
		}
	})
	return b.String()
}

// unhashed calls do for the members with a tag `hash` in a value, at any depth: with the tag, the name of the member,
// and the struct that has it. Lists and structs are copied on the way: a caller shares them, and do may
// change members.
func unhashed(v reflect.Value, do func(why, name string, member, of reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		fresh := reflect.New(v.Type().Elem())
		fresh.Elem().Set(v.Elem())
		v.Set(fresh)
		unhashed(fresh.Elem(), do)
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		for i := range v.Len() {
			unhashed(v.Index(i), do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if why := field.Tag.Get("hash"); why != "" {
				do(why, field.Name, v.Field(i), v)
			} else if field.IsExported() {
				unhashed(v.Field(i), do)
			}
		}
	}
}
