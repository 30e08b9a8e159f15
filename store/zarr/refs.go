package zarr

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Limits of a file of references. A reference to a chunk takes some 100 bytes and four values: its list, the commas of
// the URL and of the offset, and the comma after it.
const (
	maxRefsFile  = 128 << 20
	maxRefs      = 1 << 20
	maxRefValues = 4*maxRefs + maxValues
	// refBytes is the memory of a reference beside its name and its content: two string headers, a pointer and two
	// numbers.
	refBytes = 64
)

// referredRefs is how many times refBytes a file takes that references lead to, with its place among the URLs.
const referredRefs = 2

const refsPart = "references"

// ref is one object of a store: its content, or a range of a file.
type ref struct {
	inline []byte    // without to
	to     *referred // nil for content
	off, n int64     // n is -1 for the whole file
}

// refList has the objects of a store by name, sorted.
type refList struct {
	refs  []namedRef
	files []*referred // of the URLs, each once
}

// namedRef is an object with its name.
type namedRef struct {
	name string
	ref
}

func (r namedRef) compare(name string) int { return strings.Compare(r.name, name) }

// find implements refTable.
func (l *refList) find(_ context.Context, name string) (ref, bool, error) {
	i, ok := slices.BinarySearchFunc(l.refs, name, namedRef.compare)
	if !ok {
		return ref{}, false, nil
	}
	return l.refs[i].ref, true, nil
}

// refsParser reads the JSON of kerchunk's specification, of version 0 or 1: each member of the object, or of the member
// "refs" of it, is the name of an object in the store with its content, or a list of a URL, an offset and a length.
type refsParser struct {
	ctx       context.Context
	grow      func(refs int, bytes int64) error // charges memory
	list      refList
	known     map[string]*referred // by URL
	templates map[string]string
	version1  bool
}

// parseReferences parses a file of references. grow charges the memory that it keeps.
func parseReferences(ctx context.Context, b []byte, grow func(refs int, bytes int64) error) (*refList, error) {
	b, _, err := plainText(b, maxRefValues)
	if err != nil {
		return nil, err
	}
	parser := refsParser{ctx: ctx, grow: grow, known: map[string]*referred{}, templates: map[string]string{}}
	decoder := json.NewDecoder(bytes.NewReader(b))
	if err := parser.members(decoder, parser.member); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, refsCorrupt("more follows after the object")
	}
	for _, file := range parser.list.files {
		short := file.uri
		var err error
		if file.uri, err = parser.expand(short); err != nil {
			return nil, err
		}
		// Templates make long URLs of short ones. Resolving them makes another copy.
		if extra := int64(len(file.uri) - len(short)); extra > 0 {
			if err := parser.grow(0, 2*extra); err != nil {
				return nil, err
			}
		}
	}
	return &parser.list, parser.sort()
}

// members calls each for every key of the object that follows; each reads the value.
func (p *refsParser) members(d *json.Decoder, each func(d *json.Decoder, key string) error) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return refsCorrupt("%v where an object is expected", cmp.Or[any](err, t))
	}
	for d.More() {
		if err := p.ctx.Err(); err != nil { // a million references take seconds
			return err
		}
		token, err := d.Token()
		if err != nil {
			return refsCorrupt("%v", err)
		}
		key, _ := token.(string)
		if err := each(d, key); err != nil {
			return fault.AtOffset(err, d.InputOffset())
		}
	}
	if _, err := d.Token(); err != nil {
		return refsCorrupt("%v", err)
	}
	return nil
}

// member reads a member of the file's object.
func (p *refsParser) member(d *json.Decoder, key string) error {
	switch key {
	case "refs":
		if !p.version1 && len(p.list.refs) > 0 {
			return refsCorrupt("names of objects stand beside \"refs\"")
		}
		p.version1 = true
		return p.members(d, p.reference)
	case "version":
		var version int
		if err := d.Decode(&version); err != nil || version < 0 || version > 1 {
			return fault.New(fault.Unsupported, refsPart, fault.NoOffset, "version %d, not 0 or 1", version)
		}
		return nil
	case "templates":
		return p.members(d, p.template)
	case "gen":
		var list [1]json.RawMessage // of more elements it drops the others
		if err := d.Decode(&list); err != nil {
			return refsCorrupt("gen: %v", err)
		}
		if list[0] != nil {
			return fault.New(fault.Unsupported, refsPart, fault.NoOffset, "references that are generated (\"gen\")")
		}
		return nil
	}
	if p.version1 {
		return refsCorrupt("%.80q stands beside \"refs\"", key)
	}
	return p.reference(d, key)
}

// template reads a template, the text that a name stands for in URLs.
func (p *refsParser) template(d *json.Decoder, name string) error {
	var text string
	if err := d.Decode(&text); err != nil {
		return refsCorrupt("template %.80q: %v", name, err)
	}
	if err := p.grow(1, int64(len(name)+len(text))); err != nil {
		return err
	}
	p.templates[name] = text
	return nil
}

// reference reads the value of an object's name.
func (p *refsParser) reference(d *json.Decoder, name string) error {
	if err := checkPath(name); err != nil {
		return fault.WithPart(err, refsPart, fault.NoOffset)
	}
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return refsCorrupt("%.80q: %v", name, err)
	}
	if len(p.list.refs) == maxRefs {
		return fault.New(fault.Limit, refsPart, fault.NoOffset, "more than %d references", maxRefs)
	}
	value, err := p.value(raw)
	if err != nil {
		return fault.WithPart(err, firstBytes(name), fault.NoOffset)
	}
	if err := p.grow(1, int64(len(name)+len(value.inline))); err != nil {
		return err
	}
	p.list.refs = append(p.list.refs, namedRef{name, value})
	return nil
}

// value reads a reference.
func (p *refsParser) value(raw json.RawMessage) (ref, error) {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return ref{}, refsCorrupt("%v", err)
		}
		return content(text)
	case '{':
		return ref{inline: raw}, nil
	case '[':
		return p.place(raw)
	}
	return ref{}, refsCorrupt("%.40q is neither content nor a list with a URL", raw)
}

// content makes the reference of the text that stands for an object's content.
func content(s string) (ref, error) {
	code, ok := strings.CutPrefix(s, "base64:")
	if !ok {
		return ref{inline: []byte(s)}, nil
	}
	data, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return ref{}, refsCorrupt("%v", err)
	}
	return ref{inline: data}, nil
}

// place reads the list of a URL, an offset and a length.
func (p *refsParser) place(raw json.RawMessage) (ref, error) {
	var list [4]json.RawMessage // of more elements it drops the others
	if err := json.Unmarshal(raw, &list); err != nil {
		return ref{}, refsCorrupt("%v", err)
	}
	var url string
	found := ref{n: -1}
	ranged := list[2] != nil
	if list[0] == nil || ranged != (list[1] != nil) || list[3] != nil {
		return ref{}, refsCorrupt("a list that is not a URL, or a URL, an offset and a length")
	}
	err := json.Unmarshal(list[0], &url)
	if err == nil && ranged {
		err = cmp.Or(json.Unmarshal(list[1], &found.off), json.Unmarshal(list[2], &found.n))
	}
	if err != nil {
		return ref{}, refsCorrupt("%v", err)
	}
	if err := found.check(url, ranged); err != nil {
		return ref{}, err
	}
	if found.to = p.known[url]; found.to == nil {
		if err := p.grow(referredRefs, int64(2*len(url))); err != nil {
			return ref{}, err
		}
		found.to = &referred{uri: url}
		p.known[url] = found.to
		p.list.files = append(p.list.files, found.to)
	}
	return found, nil
}

// check returns an error if the reference cannot be one to a file at u.
func (r *ref) check(u string, ranged bool) error {
	possible := r.off >= 0 && r.n >= 0 && r.n <= math.MaxInt64-r.off
	if u == "" || ranged && !possible {
		return refsCorrupt("%d bytes at %d of %.80q", r.n, r.off, u)
	}
	return nil
}

// maxURL bounds a URL after its templates, as a template may be long and stand in it many times.
const maxURL = 8 << 10

// expand puts the templates into a URL: {{name}}. Of the language of templates that kerchunk takes, nothing else is
// known.
func (p *refsParser) expand(u string) (string, error) {
	var expanded strings.Builder
	for rest := u; ; {
		before, after, ok := strings.Cut(rest, "{{")
		if !ok {
			expanded.WriteString(rest)
			break
		}
		name, end, closed := strings.Cut(after, "}}")
		text, known := p.templates[strings.TrimSpace(name)]
		// A template is not expanded again, so that none can refer to itself.
		if !closed || !known || strings.Contains(text, "{{") {
			return "", fault.New(fault.Unsupported, refsPart, fault.NoOffset,
				"the URL %.80q: of templates, only {{NAME}} with a text without templates is known", u)
		}
		expanded.WriteString(before)
		expanded.WriteString(text)
		rest = end
		if expanded.Len() > maxURL {
			break
		}
	}
	if expanded.Len() > maxURL {
		return "", fault.New(fault.Limit, refsPart, fault.NoOffset, "the URL %.80q has more than %d bytes", u, maxURL)
	}
	return expanded.String(), nil
}

// sort sorts the objects by name. Two of one name are corrupt.
func (p *refsParser) sort() error {
	refs := p.list.refs
	slices.SortFunc(refs, func(a, b namedRef) int {
		if p.ctx.Err() != nil { // a million names take seconds; equal ones are sorted at once
			return 0
		}
		return strings.Compare(a.name, b.name)
	})
	for k := range refs[:max(len(refs), 1)-1] {
		if refs[k].name == refs[k+1].name {
			return cmp.Or(p.ctx.Err(), refsCorrupt("%.80q is there twice", refs[k].name))
		}
	}
	return p.ctx.Err()
}

// names implements refTable. It skips the names below subdirectories.
func (l *refList) names(ctx context.Context, dir string) (out []string, err error) {
	if dir != "" {
		dir += "/"
	}
	for next := dir; ctx.Err() == nil; {
		i, _ := slices.BinarySearchFunc(l.refs, next, namedRef.compare)
		if i == len(l.refs) || !strings.HasPrefix(l.refs[i].name, dir) {
			return out, nil
		}
		name, _, below := strings.Cut(l.refs[i].name[len(dir):], "/")
		next = dir + name + "\x00" // the first name after this one
		if below {
			next = dir + name + "0" // '0' is the byte after '/'
			name += "/"
		}
		out = append(out, name)
	}
	return nil, ctx.Err()
}

// resolve returns the URI that a URL of a file of references means: relative ones begin at the directory of the file.
func resolve(file, u string) (string, error) {
	if _, err := source.Resolve(u); err != nil {
		return "", err
	}
	var err error
	uri := source.ResolveFrom(u, func(name string) string {
		name, err = resolveURL(file, name)
		return name
	})
	return uri, err
}

// resolveURL is resolve for a URL that does not stand for a part of a file.
func resolveURL(file, u string) (string, error) {
	wrong := func(why string) error {
		return fault.New(fault.Unsupported, refsPart, fault.NoOffset, "the URL %.80q %s", u, why)
	}
	remote := source.IsRemote(file)
	switch {
	case strings.ContainsFunc(u, func(r rune) bool { return r < ' ' }):
		return "", wrong("has control characters")
	case source.IsRemote(u):
		return u, nil
	case source.Scheme(u) == "" && strings.Contains(u, "://"):
		return "", wrong("is a chain of file systems")
	case remote && (source.Scheme(u) == "file" || strings.HasPrefix(u, "/")):
		return "", wrong("is a local path in a remote file")
	case remote && (slices.Contains(strings.Split(u, "/"), "..") || strings.Contains(u, "\\")):
		return "", wrong("leads out of the file's directory")
	case remote:
		return source.Join(file[:strings.LastIndexByte(file, '/')], u), nil
	}
	if local := source.LocalPath(u); path.IsAbs(local) {
		return local, nil
	}
	return path.Join(path.Dir(source.LocalPath(file)), u), nil
}

// firstBytes returns the beginning of a name, for the part of an error.
func firstBytes(name string) string { return name[:min(len(name), 80)] }

func refsCorrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, refsPart, fault.NoOffset, format, args...)
}
