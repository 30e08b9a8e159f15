package taco3

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/rules"
)

// Current is taco:version of all collections that are read and written.
const Current = "3.0.0"

// collection is the document about a container.
type collection struct {
	raw       json.RawMessage
	structure *Layout
	metadata  map[string]map[string]Declared // by level and column
	sources   *sources                       // nil without taco:sources
}

// Declared is what taco:metadata says of a column.
type Declared struct {
	Type        string   `json:"type"`
	Nullable    *bool    `json:"nullable"`
	Description *string  `json:"description"`
	Files       []string `json:"files"` // entries of taco:structure; nil for all files of the level
}

// sources is what taco:sources says of the ZIPs of a catalog.
type sources struct {
	Samples    *int64 `json:"samples"`
	Partitions []struct {
		File    string `json:"file"`
		Samples int64  `json:"samples"`
	} `json:"partitions"`
}

// Version returns taco:version of a document about a container, or "".
func Version(doc []byte) string {
	var head struct {
		Version json.RawMessage `json:"taco:version"`
	}
	var text string
	if json.Unmarshal(doc, &head) != nil || json.Unmarshal(head.Version, &text) != nil {
		return ""
	}
	return text
}

// readCollection reads the document at a place of an object.
func readCollection(ctx context.Context, r source.Reader, place span) (*collection, error) {
	data, err := model.ReadDocument(ctx, r, place, model.CollectionName)
	if err != nil {
		return nil, err
	}
	return parseCollection(data)
}

func collectionFault(format string, args ...any) error {
	return corrupt(model.CollectionName, format, args...)
}

// parseCollection checks a document in UTF-8 by the rules of taco-eo, which refuses what breaks one.
func parseCollection(b []byte) (*collection, error) {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, collectionFault("is not a JSON object: %v", err)
	}
	c := &collection{raw: b}
	if have := doc["taco:version"]; string(have) != `"`+Current+`"` {
		return nil, fault.New(fault.Unsupported, model.CollectionName,
			"taco:version is %.40s: %s is read", orMissing(have), Current)
	}
	var paths []string
	if json.Unmarshal(doc["taco:structure"], &paths) != nil {
		return nil, structureFault("is %.80s: it must be a list of paths", orMissing(doc["taco:structure"]))
	}
	var err error
	if c.structure, err = NewLayout(paths); err != nil {
		return nil, err
	}
	if err := c.parseMetadata(doc["taco:metadata"]); err != nil {
		return nil, err
	}
	if s, ok := doc["taco:sources"]; ok && (json.Unmarshal(s, &c.sources) != nil || c.sources == nil) {
		return nil, collectionFault("taco:sources is %.80s", s)
	}
	return c, checkMembers(doc)
}

func orMissing(b json.RawMessage) string {
	if b == nil {
		return "missing"
	}
	return string(b)
}

// reservedSpaces are namespaces that only the format uses.
var reservedSpaces = []string{"internal", "taco", "cozip"}

// columnPattern is the name of a column: a namespace, ":" and a name in it.
var columnPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*:[^:/\x00]+$`)

// rumiPattern are the columns of the extension rumi: the header of a file, and statistics of its pixels, of a step of
// time or a band.
var rumiPattern = regexp.MustCompile(`^rumi:(header|(minimum|maximum|mean|stddev|p2|p98)(_t[0-9]+)?(_b[0-9]+)?)$`)

// parseMetadata checks taco:metadata.
func (c *collection) parseMetadata(b json.RawMessage) error {
	if json.Unmarshal(b, &c.metadata) != nil || c.metadata == nil {
		return collectionFault("taco:metadata is %.80s: it must have an object for every level", orMissing(b))
	}
	for _, level := range c.structure.Levels {
		if c.metadata[level] == nil {
			return collectionFault("taco:metadata has nothing about the level %q", level)
		}
	}
	for level, columns := range c.metadata {
		if !slices.Contains(c.structure.Levels, level) {
			return collectionFault("taco:metadata has the level %.80q, which is not in taco:structure", level)
		}
		seen := map[string]bool{}
		for name, declared := range columns {
			space, _, _ := strings.Cut(name, ":")
			low := strings.ToLower(name)
			switch {
			case !columnPattern.MatchString(name) || strings.Contains(name, "__") ||
				slices.Contains(reservedSpaces, space):
				return collectionFault("taco:metadata: %.80q in the level %q is not the name of a column", name, level)
			case space == "rumi" && !rumiPattern.MatchString(name):
				return collectionFault("taco:metadata: %.80q in the level %q is not a column of rumi", name, level)
			case seen[low]:
				return collectionFault("taco:metadata: two columns of the level %q are called %.80q", level, name)
			case declared.Nullable == nil || declared.Description == nil:
				return collectionFault("taco:metadata: %.80q in the level %q lacks a member", name, level)
			case typeName(declared.Type) == "":
				return fault.New(fault.Unsupported, model.CollectionName,
					"taco:metadata: %.80q in the level %q has the type %.80q", name, level, declared.Type)
			}
			seen[low] = true
		}
		if err := checkGroups(level, columns); err != nil {
			return err
		}
	}
	return nil
}

// checkGroups checks that a level has one of the groups at most, with all its columns.
func checkGroups(level string, columns map[string]Declared) error {
	var found []string
	for name := range columns {
		space, _, _ := strings.Cut(name, ":")
		if len(groupColumns(space)) > 0 && !slices.Contains(found, space) {
			found = append(found, space)
		}
	}
	if len(found) > 1 {
		return collectionFault("taco:metadata: the level %q has columns of both %s and %s", level, found[0], found[1])
	}
	for _, space := range found {
		for _, c := range groupColumns(space) {
			if _, ok := columns[space+":"+c.Name]; !ok {
				return collectionFault("taco:metadata: the level %q lacks %s:%s", level, space, c.Name)
			}
		}
	}
	return nil
}

// Rules of texts, which must not be blank.
var (
	text = rules.Leaf("a text that is not blank", func(v any) bool {
		s, ok := v.(string)
		return ok && strings.TrimSpace(s) != ""
	})
	texts = rules.Leaf("a list of texts, with at least one", func(v any) bool {
		list, ok := v.([]any)
		return ok && len(list) > 0 && !slices.ContainsFunc(list, isBlank)
	})
)

func isBlank(v any) bool {
	s, ok := v.(string)
	return !ok || strings.TrimSpace(s) == ""
}

// members are the members of a document beside those with a colon.
var members = []rules.Field{
	rules.Must("id", rules.Leaf(`a text without / \ : and NUL`, func(v any) bool {
		s, _ := v.(string)
		return !isBlank(v) && !strings.ContainsAny(s, "/\\:\x00")
	})),
	rules.Must("description", text), rules.Must("licenses", texts), rules.Must("providers", people),
	rules.May("tasks", texts), rules.May("title", text), rules.May("keywords", texts), rules.May("curators", people),
	rules.May("extent", rules.Extent),
}

// people is the rule of providers and curators.
func people(c rules.Checker, at string, v any) {
	rules.List("")(c, at, v)
	list, _ := v.([]any)
	if len(list) == 0 && at == "providers" {
		c("%s is %s: it must have at least one", at, rules.Shown(v))
	}
	for i := range list {
		person, _ := list[i].(map[string]any)
		url, mail := fmt.Sprint(person["url"]), fmt.Sprint(person["email"])
		switch {
		case isBlank(person["name"]) && (at == "providers" || isBlank(person["organization"])):
			c("%s[%d] has no name", at, i)
		case at == "curators" && person["email"] != nil && !strings.Contains(mail, "@"):
			c("%s[%d].email is %q: it must be an address with @", at, i, mail)
		case at == "providers" && person["url"] != nil && !strings.HasPrefix(url, "http"):
			c("%s[%d].url is %q: it must begin with http", at, i, url)
		}
		for member := range person {
			if at == "providers" && !slices.Contains([]string{"name", "roles", "url", "links"}, member) {
				c("%s[%d] has %q: it may have name, roles, url and links", at, i, member)
			}
		}
	}
}

// checkMembers checks the members that are not taco-eo's own.
func checkMembers(doc map[string]json.RawMessage) (err error) {
	bad := func(format string, args ...any) { err = cmp.Or(err, collectionFault(format, args...)) }
	known := map[string]bool{}
	for _, m := range members {
		raw, ok := doc[m.Name]
		if known[m.Name] = true; !ok && m.Need {
			bad("%s is missing", m.Name)
		} else if ok {
			m.Is(bad, m.Name, rules.Decoded(raw))
		}
	}
	for name := range doc {
		space, _, qualified := strings.Cut(name, ":")
		switch {
		case known[name], slices.Contains([]string{"taco:version", "taco:structure", "taco:metadata", "taco:sources",
			"taco:derived"}, name):
		case !qualified || slices.Contains(reservedSpaces, space):
			return collectionFault("has the member %.80q, which is not defined", name)
		}
	}
	return err
}
