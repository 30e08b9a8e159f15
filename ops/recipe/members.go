package recipe

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/internal/yamljson"
)

// members returns the members of COLLECTION.json that the recipe n has, nil if it has none.
func members(n *yaml.Node) (map[string]any, error) {
	var top struct {
		Collection yaml.Node `yaml:"collection"`
	}
	if err := n.Decode(&top); err != nil {
		return nil, err
	}
	m, err := yamljson.Members(&top.Collection)
	if err != nil {
		err = fmt.Errorf("collection: %w", err)
	}
	return m, err
}
