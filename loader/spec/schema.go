package spec

import (
	_ "embed"
	"slices"
)

// schema is the content of a file: a binary has no comments to make it from at run time, and a
// review shows every change of the spec. TestSchema compares the file with the types.
//
//go:embed spec.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a spec: its members with their types, defaults
// and documentation. ParseSpec also checks rules that a schema cannot express.
func Schema() []byte { return slices.Clone(schema) }
