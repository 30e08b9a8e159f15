package taco2

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/store/taco/internal/rules"
)

// Members of COLLECTION.json that extensions of a dataset define: Labels, OpticalData, SplitStrategy and Publications
// of tacotoolbox 0.26.9, which the text of TACO 0.2.0 has under other names; and the people of the text of 2.0.0.

// extensions are the members of extensions with the rule of each.
var extensions = []rules.Field{
	rules.Must("labels:classes", rules.List("name", rules.Must("name", rules.Text),
		rules.Must("category", rules.TextOrWhole), rules.May("description", rules.Text))),
	rules.May("labels:description", rules.Text), rules.May("labels:num_classes", rules.Whole),
	rules.Must("optical:sensor", rules.Text),
	rules.May("optical:bands", rules.List("name", rules.Must("name", rules.Text), rules.May("index", rules.Whole),
		rules.May("common_name", rules.Text), rules.May("description", rules.Text), rules.May("unit", rules.Text),
		rules.May("center_wavelength", rules.Number), rules.May("full_width_half_max", rules.Number))),
	rules.May("optical:num_bands", rules.Whole),
	rules.May("publications", rules.List("", rules.Must("doi", rules.Text), rules.Must("citation", rules.Text),
		rules.May("summary", rules.Text))),
	// The text of TACO 0.2.0 has all strategies but "manual".
	rules.May("split:strategy", rules.OneOf("random", "stratified", "manual", "other", "none", "unknown")),
}

// Counts are members that say how many elements another has.
var Counts = map[string]string{"labels:num_classes": "labels:classes", "optical:num_bands": "optical:bands"}

// ExtensionMembers returns the members of a namespace, such as "labels", or nil if no extension has it.
func ExtensionMembers(namespace string) (names []string) {
	for _, f := range extensions {
		if strings.HasPrefix(f.Name, namespace+":") {
			names = append(names, f.Name)
		}
	}
	return names
}

// Violations returns the violations in members of extensions in COLLECTION.json, one sentence each.
func Violations(doc map[string]json.RawMessage) (all []string) {
	c := rules.Checker(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	values := map[string]any{}
	for _, f := range extensions {
		if Has(doc[f.Name]) {
			values[f.Name] = rules.Decoded(doc[f.Name])
		}
	}
	for _, field := range extensions {
		v := values[field.Name]
		namespace, _, some := strings.Cut(field.Name, ":")
		if v != nil {
			field.Is(c, field.Name, v)
		} else if some && field.Need {
			missing := func(name string) bool { return values[name] == nil }
			others := slices.DeleteFunc(ExtensionMembers(namespace), missing)
			if len(others) > 0 {
				c("%s is missing: %s needs it", field.Name, others[0])
			}
		}
		if list, ok := values[Counts[field.Name]].([]any); ok && v != nil && fmt.Sprint(v) != fmt.Sprint(len(list)) {
			c("%s is %s: %s has %d", field.Name, rules.Shown(v), Counts[field.Name], len(list))
		}
	}
	return all
}

// person is what providers and curators have.
var person = []rules.Field{rules.May("name", rules.Text), rules.May("organization", rules.Text),
	rules.May("url", rules.Text), rules.May("email", rules.Text)}

// people is the rule of providers and curators: objects with the members of the text of 2.0.0 and of tacotoolbox.
func people(c rules.Checker, at string, v any) {
	rules.List("", person...)(c, at, v)
	all, _ := v.([]any)
	for i := range all {
		p, ok := all[i].(map[string]any)
		if ok && rules.Empty(p["name"]) && rules.Empty(p["organization"]) {
			c("%s[%d] has neither name nor organization: it must have one", at, i)
		}
		if mail, ok := p["email"].(string); ok && !strings.Contains(mail, "@") {
			c("%s[%d].email is %q: it must be an address with @", at, i, mail)
		}
	}
}
