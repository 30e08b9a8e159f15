package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// shortPart bounds the strings that a state holds as they are, in bytes. Of longer ones it holds a
// hash, so long lists do not make states long.
const shortPart = 64

// dataIdentity is what identifies the data of a run.
type dataIdentity struct {
	samples int64
	digest  string // may be ""
	sources []hashedSource
}

// hashedSource is what identifies one dataset.
type hashedSource struct {
	name        string
	fingerprint string
	rows        int64
}

// partsOf returns the input of the spec hash: the members of the spec by their paths, and the
// identity of the data. A resume compares them, to name what differs.
func partsOf(s *Spec, data dataIdentity) (steps.Parts, error) {
	text, err := json.Marshal(s.Placeless())
	if err != nil {
		return "", err
	}
	var spec map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&spec); err != nil {
		return "", err
	}
	delete(spec, "version") // the version is the same for all specs, and the state has the seed
	delete(spec, "seed")
	out := map[string]any{steps.PartSamples: data.samples}
	var names []string
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	out["fields"] = textOrHash(strings.Join(names, ", "))
	flattenNamed(out, "fields", spec["fields"], names)
	delete(spec, "fields")
	flattenSources(out, "", spec["sources"], s.Sources)
	delete(spec, "sources")
	flatten(out, "", spec)
	for _, source := range data.sources {
		whose := ""
		if source.name != "" {
			whose = " of " + source.name
		}
		out["data"+whose] = "#" + source.fingerprint
		out["rows"+whose] = source.rows
	}
	if data.digest != "" {
		out["selected rows, weights, sizes or boxes"] = "#" + data.digest
	}
	return steps.NewParts(out)
}

// flatten adds the members of an object, and of objects in it, to out by their paths. Whole
// numbers, strings and booleans stay as they are; fractions become their text, because two
// programs may write the same fraction differently.
func flatten(out map[string]any, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			flatten(out, strings.TrimPrefix(path+"."+name, "."), m)
		}
	case string:
		out[path] = textOrHash(v)
	case bool:
		out[path] = v
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			out[path] = v.String()
		} else {
			out[path] = v
		}
	case nil:
	default:
		data, err := json.Marshal(v)
		if err != nil {
			data = fmt.Append(nil, v)
		}
		out[path] = textOrHash(string(data))
	}
}

// flattenNamed flattens a list of objects by their names.
func flattenNamed(out map[string]any, path string, v any, names []string) {
	list, _ := v.([]any)
	for i, m := range list {
		if o, ok := m.(map[string]any); ok {
			delete(o, "name")
			flatten(out, path+"."+names[i], o)
		}
	}
}

// flattenSources flattens the sources of a mixture by their names, which the list v lacks.
func flattenSources(out map[string]any, path string, v any, sources []Source) {
	list, _ := v.([]any)
	for i, m := range list {
		members, ok := m.(map[string]any)
		if !ok {
			continue
		}
		where := path + "sources." + sources[i].Named(i)
		var names []string
		for _, f := range sources[i].Fields {
			names = append(names, f.Name)
		}
		flattenNamed(out, where+".fields", members["fields"], names)
		flattenSources(out, where+".", members["sources"], sources[i].Sources)
		delete(members, "fields")
		delete(members, "sources")
		flatten(out, where, members)
	}
}

// textOrHash returns a short string as it is, and the hash of a longer one after "#".
func textOrHash(s string) string {
	if len(s) <= shortPart && !strings.HasPrefix(s, "#") {
		return s
	}
	return fmt.Sprintf("#%016x", xxh3.HashString(s))
}
