// Package yamljson reads YAML as the JSON that it would be.
package yamljson

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds the size of a document as JSON, with aliases written out.
const MaxBytes = 1 << 20

// Object returns the members of a YAML document, which is an object, as members of a JSON object. An empty document has
// none.
func Object(b []byte) (map[string]json.RawMessage, error) {
	// YAML does not have all of JSON: a character as two escapes, which Python writes, or integers of over 64 bits.
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err == nil && doc != nil {
		return doc, nil
	}
	var top yaml.Node
	if err := yaml.Unmarshal(b, &top); err != nil {
		return nil, err
	}
	members, err := Members(&top)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(members))
	for name, value := range members {
		if out[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Members returns the members of a YAML object. Dates are strings as they are written, and so are keys, because all
// keys of JSON are strings. An empty node has no members.
func Members(n *yaml.Node) (map[string]any, error) {
	if n.Kind == 0 {
		return nil, nil
	}
	top := n
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		top = n.Content[0]
	}
	if top.Kind == yaml.SequenceNode || top.Kind == yaml.ScalarNode && top.Tag != "!!null" {
		// The decoder's own error has a type of Go.
		return nil, fmt.Errorf("line %d: it must be an object of keys and values", top.Line)
	}
	asText(n, map[*yaml.Node]bool{})
	var m map[string]any
	if err := n.Decode(&m); err != nil {
		return nil, err
	}
	left := MaxBytes
	if measure(m, &left); left < 0 {
		return nil, fmt.Errorf("more than %d bytes, with aliases written out", MaxBytes)
	}
	return m, nil
}

// noNumber has the strings for the numbers of YAML that JSON has not, as specs write them.
var noNumber = map[string]string{".nan": "nan", ".inf": "inf", "+.inf": "inf", "-.inf": "-inf"}

// asText makes strings of dates, keys and numbers that JSON has not. seen has the targets of aliases,
// which are changed once.
func asText(n *yaml.Node, seen map[*yaml.Node]bool) {
	const text = "!!str"
	switch {
	case n.Kind == yaml.AliasNode && !seen[n.Alias]:
		seen[n.Alias] = true
		asText(n.Alias, seen)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!timestamp":
		n.Tag = text
	case n.Kind == yaml.ScalarNode && n.Tag == "!!float" && noNumber[strings.ToLower(n.Value)] != "":
		n.Tag, n.Value = text, noNumber[strings.ToLower(n.Value)]
	}
	for i, node := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && node.Kind == yaml.ScalarNode && node.Tag != "!!merge" {
			node.Tag = text
		}
		asText(node, seen)
	}
}

// measure subtracts the least size of a value in bytes from left, and stops below 0: a long string to which many
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
