package spec

import (
	_ "embed"
	"slices"
)

// The schema is a file, not made at run time, because comments are not in the binary, and so that a
// change of the spec is seen in review. TestSchema holds it to the types.
//
//go:embed spec.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a spec: its members with their types, defaults
// and documentation. ParseSpec checks more than a schema can say.
func Schema() []byte { return slices.Clone(schema) }
