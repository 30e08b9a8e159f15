package spec

import (
	_ "embed"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// schema is the content of a file, because a binary has no comments to make the schema from at run
// time, and so that a review shows every change of the spec. TestSchema compares the file with the
// types.
//
//go:embed spec.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a spec: its members with their types, defaults
// and documentation. ParseSpec also checks rules that a schema cannot express.
func Schema() []byte { return slices.Clone(schema) }

// SamplerMember is a member of Sampler that only one kind has.
type SamplerMember struct {
	Name string // in JSON
	Kind string // the kind that has it
	Type reflect.Type
	Doc  string // as Schema has it
}

// SamplerMembers yields the members that only one kind of sampler has, kind by kind. It leaves out those for which a
// pair stands, such as stride_y and stride_x.
func SamplerMembers() iter.Seq[SamplerMember] {
	docs := samplerDocs()
	return func(yield func(SamplerMember) bool) {
		for i := range samplers {
			kind := &samplers[i]
			var names []string
			for name, value := range kind.each(&Sampler{}) {
				if slices.ContainsFunc(names, func(pair string) bool { return isSide(name, pair) }) {
					continue
				}
				names = append(names, name)
				if !yield(SamplerMember{name, kind.name, value.Type(), docs[name].Description}) {
					return
				}
			}
		}
	}
}

// samplerDocs returns what the schema says of the members of samplers. It is read once: each command has its flags of
// them.
var samplerDocs = sync.OnceValue(func() map[string]property {
	var document struct {
		Types map[string]struct {
			Properties map[string]property `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &document); err != nil {
		panic(err) // it is a file of this package
	}
	return document.Types["Sampler"].Properties
})

type property struct {
	Description string `json:"description"`
}

// isSide reports whether a member is one of the two for which a pair stands.
func isSide(name, pair string) bool {
	side, found := strings.CutPrefix(name, pair+"_")
	return found && slices.Contains([]string{"y", "x", "height", "width", "min", "max"}, side)
}
