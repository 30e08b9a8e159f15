package recipe

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// members returns the members of COLLECTION.json that the recipe b has, nil if it has none. Dates are strings as they
// are written, and so are keys: JSON has no other.
func members(b []byte) (map[string]any, error) {
	var top struct {
		Collection yaml.Node `yaml:"collection"`
	}
	if err := yaml.Unmarshal(b, &top); err != nil || top.Collection.Kind == 0 {
		return nil, err
	}
	asJSON(&top.Collection, map[*yaml.Node]bool{})
	var m map[string]any
	if err := top.Collection.Decode(&m); err != nil {
		return nil, err
	}
	left := maxBytes
	if measure(m, &left); left < 0 {
		return nil, fmt.Errorf("collection: more than %d bytes, with aliases written out", maxBytes)
	}
	return m, nil
}

// asJSON makes strings of dates and keys. seen has the targets of aliases, which are changed once.
func asJSON(n *yaml.Node, seen map[*yaml.Node]bool) {
	const text = "!!str"
	switch {
	case n.Kind == yaml.AliasNode && !seen[n.Alias]:
		seen[n.Alias] = true
		asJSON(n.Alias, seen)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!timestamp":
		n.Tag = text
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Tag != "!!merge" {
			c.Tag = text
		}
		asJSON(c, seen)
	}
}

// measure subtracts from left what a value has in bytes at least, and stops below 0: a long string to which many
// aliases point is in memory once, but in JSON many times.
func measure(v any, left *int) {
	*left--
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			measure(v[i], left)
		}
	case map[string]any:
		for key, value := range v {
			if *left -= len(key); *left < 0 {
				return
			}
			measure(value, left)
		}
	}
}
