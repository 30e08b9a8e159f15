package taco2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Members of COLLECTION.json that extensions of a dataset define: Labels, OpticalData, SplitStrategy and Publications
// of tacotoolbox 0.26.9, which the text of TACO 0.2.0 has under other names; and the people of the text of
// 2.0.0.

// splitStrategies are the values of split:strategy. The text of TACO 0.2.0 has all but "manual".
var splitStrategies = []string{"random", "stratified", "manual", "other", "none", "unknown"}

// extensions are the members of extensions with the rule of each.
var extensions = []field{
	must("labels:classes", list("name", must("name", text), must("category", textOrWhole),
		may("description", text))),
	may("labels:description", text), may("labels:num_classes", whole),
	must("optical:sensor", text),
	may("optical:bands", list("name", must("name", text), may("index", whole),
		may("common_name", text), may("description", text), may("unit", text),
		may("center_wavelength", number), may("full_width_half_max", number))), may("optical:num_bands", whole),
	may("publications", list("", must("doi", text), must("citation", text),
		may("summary", text))),
	may("split:strategy", oneOf(splitStrategies)),
}

// Counts are members that say how many elements another has.
var Counts = map[string]string{"labels:num_classes": "labels:classes", "optical:num_bands": "optical:bands"}

// ExtensionMembers returns the members of a namespace, such as "labels", or nil if no extension has it.
func ExtensionMembers(namespace string) (names []string) {
	for _, f := range extensions {
		if strings.HasPrefix(f.name, namespace+":") {
			names = append(names, f.name)
		}
	}
	return names
}

// Violations returns the violations in members of extensions in COLLECTION.json, one sentence each.
func Violations(doc map[string]json.RawMessage) (all []string) {
	c := checker{func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }}
	values := map[string]any{}
	for _, f := range extensions {
		if Has(doc[f.name]) {
			values[f.name] = decoded(doc[f.name])
		}
	}
	for _, field := range extensions {
		v := values[field.name]
		namespace, _, some := strings.Cut(field.name, ":")
		if v != nil {
			field.is(c, field.name, v)
		} else if some && field.need {
			missing := func(name string) bool { return values[name] == nil }
			others := slices.DeleteFunc(ExtensionMembers(namespace), missing)
			if len(others) > 0 {
				c.bad("%s is missing: %s needs it", field.name, others[0])
			}
		}
		if list, ok := values[Counts[field.name]].([]any); ok && v != nil && fmt.Sprint(v) != fmt.Sprint(len(list)) {
			c.bad("%s is %s: %s has %d", field.name, shown(v), Counts[field.name], len(list))
		}
	}
	return all
}

// person is what providers and curators have.
var person = []field{may("name", text), may("organization", text), may("url", text), may("email", text)}

// people is the rule of providers and curators: objects with the members of the text of 2.0.0 and of tacotoolbox.
func people(c checker, at string, v any) {
	list("", person...)(c, at, v)
	all, _ := v.([]any)
	for i := range all {
		p, ok := all[i].(map[string]any)
		if ok && empty(p["name"]) && empty(p["organization"]) {
			c.bad("%s[%d] has neither name nor organization: it must have one", at, i)
		}
		if mail, ok := p["email"].(string); ok && !strings.Contains(mail, "@") {
			c.bad("%s[%d].email is %q: it must be an address with @", at, i, mail)
		}
	}
}

// decoded decodes a value. Numbers keep their digits.
func decoded(b json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // the whole document was parsed before
	}
	return v
}

// checker collects violations.
type checker struct {
	bad func(format string, args ...any)
}

// A rule adds the violations of the value at a path.
type rule func(c checker, at string, v any)

// field is a member of an object. A member that is null is taken to be missing, because tacotoolbox writes null for
// what its user did not give.
type field struct {
	name string
	// need says that the member must be there and not be empty text; of a namespace it must be there if another is.
	need bool
	is   rule
}

func must(name string, is rule) field { return field{name, true, is} }
func may(name string, is rule) field  { return field{name, false, is} }

func leaf(what string, ok func(v any) bool) rule {
	return func(c checker, at string, v any) {
		if !ok(v) {
			c.bad("%s is %s: it must be %s", at, shown(v), what)
		}
	}
}

var (
	text   = leaf("text", isText)
	number = leaf("a number", func(v any) bool { _, ok := v.(json.Number); return ok })
	whole  = leaf("a whole number, at least 0", func(v any) bool { n, ok := isWhole(v); return ok && n >= 0 })
	texts  = leaf("a list of texts", func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !isText(v) })
	})
	textOrWhole = leaf("text or a whole number", func(v any) bool { _, ok := isWhole(v); return ok || isText(v) })
)

func isText(v any) bool { _, ok := v.(string); return ok }

func isWhole(v any) (float64, bool) {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return f, ok && err == nil && f == math.Trunc(f)
}

func empty(v any) bool { return v == nil || v == "" }

func oneOf(values []string) rule {
	return leaf("one of "+strings.Join(values, ", "), func(v any) bool {
		s, ok := v.(string)
		return ok && slices.Contains(values, s)
	})
}

// list is the rule of a list whose elements have different values of the member unique, if that is not "".
func list(unique string, members ...field) rule {
	return func(c checker, at string, v any) {
		l, ok := v.([]any)
		if !ok {
			c.bad("%s is %s: it must be a list", at, shown(v))
			return
		}
		first := map[any]int{}
		for i, v := range l {
			place := fmt.Sprintf("%s[%d]", at, i)
			o, ok := v.(map[string]any)
			if !ok {
				c.bad("%s is %s: it must be an object", place, shown(v))
				continue
			}
			object(c, place, o, members)
			key, ok := o[unique].(string)
			if before, again := first[key]; ok && again {
				c.bad("%s.%s is %q, as of %s[%d]: they must differ", place, unique, key, at, before)
			} else if ok {
				first[key] = i
			}
		}
	}
}

// object checks the members of an object. Others may be there.
func object(c checker, at string, o map[string]any, members []field) {
	for _, field := range members {
		v, name := o[field.name], at+"."+field.name
		switch {
		case field.need && empty(v):
			c.bad("%s is missing or empty", name)
		case v != nil:
			field.is(c, name, v)
		}
	}
}

// shown returns the beginning of a value as JSON.
func shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "not JSON" // it was decoded from JSON
	}
	return fmt.Sprintf("%.100s", data)
}
