package taco3

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// version is taco:version of all collections that are read.
const version = "3.0.0"

const collectionName = "COLLECTION.json"

// collection is the document about a container.
type collection struct {
	raw       json.RawMessage
	structure *structure
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
	data, err := model.ReadDocument(ctx, r, place, collectionName)
	if err != nil {
		return nil, err
	}
	return parseCollection(data)
}

func collectionFault(format string, args ...any) error {
	return corrupt(collectionName, format, args...)
}

// parseCollection checks a document by the rules of taco-eo, which refuses what breaks one.
func parseCollection(b []byte) (*collection, error) {
	var doc map[string]json.RawMessage
	if !utf8.Valid(b) {
		return nil, collectionFault("is not UTF-8")
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, collectionFault("is not a JSON object: %v", err)
	}
	c := &collection{raw: b}
	if have := doc["taco:version"]; string(have) != `"`+version+`"` {
		return nil, fault.New(fault.Unsupported, collectionName, fault.NoOffset, "taco:version is %.40s: %s is read",
			orMissing(have), version)
	}
	var paths []string
	if json.Unmarshal(doc["taco:structure"], &paths) != nil {
		return nil, structureFault("is %.80s: it must be a list of paths", orMissing(doc["taco:structure"]))
	}
	var err error
	if c.structure, err = parseStructure(paths); err != nil {
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
	for _, level := range c.structure.levels {
		if c.metadata[level] == nil {
			return collectionFault("taco:metadata has nothing about the level %q", level)
		}
	}
	for level, columns := range c.metadata {
		if !slices.Contains(c.structure.levels, level) {
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
				return fault.New(fault.Unsupported, collectionName, fault.NoOffset,
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

// members are the members of a document beside those with a colon, and what is wrong with a value, or "".
var members = map[string]struct {
	must  bool
	check func(b json.RawMessage) (wrong string)
}{
	"id": {true, func(b json.RawMessage) string {
		if s, ok := text(b); !ok || strings.ContainsAny(s, "/\\:\x00") {
			return `must be a text without / \ : and NUL`
		}
		return ""
	}},
	"description": {true, wantText},
	"licenses":    {true, wantTexts},
	"providers":   {true, wantProviders},
	"tasks":       {false, wantTexts},
	"title":       {false, wantText},
	"keywords":    {false, wantTexts},
	"curators":    {false, wantCurators},
	"extent":      {false, wantExtent},
}

// checkMembers checks the members that are not taco-eo's own.
func checkMembers(doc map[string]json.RawMessage) error {
	for name, m := range members {
		raw, ok := doc[name]
		if !ok && !m.must {
			continue
		}
		if wrong := m.check(raw); wrong != "" {
			return collectionFault("%s is %.80s: it %s", name, orMissing(raw), wrong)
		}
	}
	for name := range doc {
		space, _, qualified := strings.Cut(name, ":")
		_, known := members[name]
		switch {
		case known, slices.Contains([]string{"taco:version", "taco:structure", "taco:metadata", "taco:sources",
			"taco:derived"}, name):
		case !qualified || slices.Contains(reservedSpaces, space):
			return collectionFault("has the member %.80q, which is not defined", name)
		}
	}
	return nil
}

// text returns a JSON string that is not blank.
func text(b json.RawMessage) (string, bool) {
	var s string
	ok := bytes.HasPrefix(b, []byte(`"`)) && json.Unmarshal(b, &s) == nil && strings.TrimSpace(s) != ""
	return s, ok
}

func wantText(b json.RawMessage) string {
	if _, ok := text(b); !ok {
		return "must be a text that is not blank"
	}
	return ""
}

func wantTexts(b json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil || len(list) == 0 ||
		slices.ContainsFunc(list, func(b json.RawMessage) bool { return wantText(b) != "" }) {
		return "must be a list of texts, with at least one"
	}
	return ""
}

func wantProviders(b json.RawMessage) string {
	var list []map[string]json.RawMessage
	if json.Unmarshal(b, &list) != nil || len(list) == 0 {
		return "must be a list of objects, with at least one"
	}
	for _, p := range list {
		if wantText(p["name"]) != "" {
			return "must give every provider a name"
		}
		for member := range p {
			if !slices.Contains([]string{"name", "roles", "url", "links"}, member) {
				return "must have no members of providers but name, roles, url and links"
			}
		}
		if u, ok := text(p["url"]); p["url"] != nil && (!ok || !strings.HasPrefix(u, "http")) {
			return "must have URLs of providers that begin with http"
		}
	}
	return ""
}

func wantCurators(b json.RawMessage) string {
	var list []map[string]json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return "must be a list of objects"
	}
	for _, c := range list {
		email, ok := text(c["email"])
		switch {
		case wantText(c["name"]) != "" && wantText(c["organization"]) != "":
			return "must give every curator a name or an organization"
		case c["email"] != nil && (!ok || !strings.Contains(email, "@")):
			return "must have e-mail addresses with @"
		}
	}
	return ""
}

func wantExtent(b json.RawMessage) string {
	var e struct {
		Spatial  []float64 `json:"spatial"`
		Temporal []string  `json:"temporal"`
	}
	if json.Unmarshal(b, &e) != nil {
		return "must have spatial, four numbers, and temporal, two times"
	}
	if e.Spatial != nil && !model.OnGlobe(e.Spatial) {
		return "must have spatial: west, south, east and north on the globe"
	}
	if e.Temporal != nil && len(e.Temporal) != 2 {
		return "must have temporal: two times or null"
	}
	return ""
}
