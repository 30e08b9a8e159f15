package recipe

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wholes returns an error if a number with a fraction is where t has a whole one: the library cuts the fraction off.
// n has been decoded into a t.
func wholes(n *yaml.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Pair]() {
		t = reflect.TypeFor[[]int]()
	}
	switch n.Kind {
	case yaml.AliasNode:
		return wholes(n.Alias, t)
	case yaml.MappingNode:
		return wholesOfMembers(n, t)
	case yaml.DocumentNode, yaml.SequenceNode:
		if n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		for _, c := range n.Content {
			if err := wholes(c, t); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		if t.Kind() == reflect.Slice { // a Pair of one number
			t = t.Elem()
		}
		if t.Kind() < reflect.Int || t.Kind() > reflect.Uint64 || n.ShortTag() != "!!float" {
			return nil
		}
		if v, err := strconv.ParseFloat(n.Value, 64); err != nil || v != math.Trunc(v) {
			return fmt.Errorf("line %d: %q is not a whole number", n.Line, n.Value)
		}
	}
	return nil
}

func wholesOfMembers(n *yaml.Node, t reflect.Type) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		typ := t // a merge key has members of the same struct
		if key := n.Content[i].Value; key != "<<" {
			typ = member(t, key)
		}
		if typ == nil {
			continue
		}
		if err := wholes(n.Content[i+1], typ); err != nil {
			return err
		}
	}
	return nil
}

// member returns the type of a key of a struct or map, nil if it has none.
func member(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == key && key != "" {
			return field.Type
		}
		if options == "inline" {
			if in := member(field.Type, key); in != nil {
				return in
			}
		}
	}
	return nil
}
