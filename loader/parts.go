package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/shuffle"
)

// shortPart bounds the text of a list that a state has as it is; of longer ones it has a hash.
const shortPart = 64

// parts says what the spec hash is made of: the members of the spec by their paths, and what names the data.
func (e *Engine) parts() (shuffle.Parts, error) {
	b, err := json.Marshal(e.spec.Placeless())
	if err != nil {
		return "", err
	}
	var spec map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&spec); err != nil {
		return "", err
	}
	delete(spec, "version") // of the specs, and the state has the seed
	delete(spec, "seed")
	out := map[string]any{shuffle.PartSamples: e.samples}
	var names []string
	for _, f := range e.spec.Fields {
		names = append(names, f.Name)
	}
	out["fields"] = textOrHash(strings.Join(names, ", "))
	flattenNamed(out, "fields", spec["fields"], names)
	delete(spec, "fields")
	flattenSources(out, "", spec["sources"], e.spec.Sources)
	delete(spec, "sources")
	flatten(out, "", spec)
	for _, s := range e.sets {
		of := ""
		if s.name != "" {
			of = " of " + s.name
		}
		out["data"+of] = "#" + s.table.Fingerprint()
		out["rows"+of] = s.table.Len()
	}
	if digest := e.digest(); digest != "" {
		out["selected rows, weights or sizes"] = "#" + digest
	}
	return shuffle.NewParts(out)
}

// flatten notes the members of an object, and of those in it, by their paths. Whole numbers, texts and booleans are noted as they
// are, fractions as their text: two programs may write them differently.
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
		b, err := json.Marshal(v)
		if err != nil {
			b = fmt.Append(nil, v)
		}
		out[path] = textOrHash(string(b))
	}
}

// flattenNamed does so with a list of objects that have names.
func flattenNamed(out map[string]any, path string, v any, names []string) {
	list, _ := v.([]any)
	for i, m := range list {
		if o, ok := m.(map[string]any); ok {
			delete(o, "name")
			flatten(out, path+"."+names[i], o)
		}
	}
}

// flattenSources does so with the sources of a mixture, of which the list v has no names.
func flattenSources(out map[string]any, path string, v any, sources []Source) {
	list, _ := v.([]any)
	for i, m := range list {
		o, ok := m.(map[string]any)
		if !ok {
			continue
		}
		at := path + "sources." + sources[i].Named(i)
		var names []string
		for _, f := range sources[i].Fields {
			names = append(names, f.Name)
		}
		flattenNamed(out, at+".fields", o["fields"], names)
		flattenSources(out, at+".", o["sources"], sources[i].Sources)
		delete(o, "fields")
		delete(o, "sources")
		flatten(out, at, o)
	}
}

func textOrHash(s string) string {
	if len(s) <= shortPart && !strings.HasPrefix(s, "#") {
		return s
	}
	return fmt.Sprintf("#%016x", xxh3.HashString(s))
}
