package text

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// maxWalk bounds how deep lists and objects nest that a path leads through.
const maxWalk = 64

// maxSeen is how many names of members an error lists.
const maxSeen = 20

// at reads the rows at a path of members, which points separate: NAME is a member of an object, and {column} each of
// its members, whose names are the values of that column. Of a list every element is meant, or the one whose number the
// path has, from 0, unless objects in the list have a member of this name. At the end of the path the elements of a
// list are rows. Where the path leads through objects in lists, or through {column}, rows also have the members of
// these objects that they lack: they are outer, and below says that there may be some. "[]" behind a name is allowed.
// It returns io.EOF at the end of the text.
func (in *items) at(d *json.Decoder, path string, outer map[string]json.RawMessage, below bool) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if in.depth++; in.depth > maxWalk {
		return fault.At(fault.Limit, "items", d.InputOffset(), "lists nest over %d deep", maxWalk)
	}
	defer func() { in.depth-- }()
	name, rest, _ := strings.Cut(path, ".")
	column, each := columnOf(name)
	switch token {
	case json.Delim('['):
		if path == "" {
			return in.list(d, outer)
		}
		if k, err := strconv.ParseUint(name, 10, 31); err == nil {
			return in.numbered(d, path, rest, int(k), outer)
		}
		return textguard.EachElement(d, func() error { return in.at(d, path, outer, true) })
	case json.Delim('{'):
		switch {
		case path == "" && !below:
			return in.object(d)
		case each:
			return in.each(d, column, rest, outer)
		case below:
			return in.inside(d, path, outer)
		}
		return in.chain(d, path)
	}
	switch {
	case path != "" && !below:
		return fault.At(fault.Corrupt, "member "+path, d.InputOffset(), "neither an object nor a list has it")
	case in.member == "":
		return fault.At(fault.Corrupt, "items", d.InputOffset(), "neither an object nor a list")
	case path != "":
		return nil
	}
	raw, err := json.Marshal(token)
	if err != nil {
		return err
	}
	return in.element(raw, outer, d.InputOffset())
}

// numbered reads the rows below element k of a list, from behind its bracket on, or at the path in every element if
// objects among them have such a member.
func (in *items) numbered(d *json.Decoder, path, rest string, k int, outer map[string]json.RawMessage) error {
	var element json.RawMessage // k, if it has no such member
	found, next := false, 0
	err := textguard.EachElement(d, func() error {
		defer in.file.Next()
		var raw json.RawMessage
		var members map[string]json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		_ = json.Unmarshal(raw, &members) // none, if it is no object
		i := next
		if next++; len(fitting(members, path)) > 0 {
			found = true
			return in.part(raw, path, outer)
		}
		if i == k {
			element = raw
		}
		return nil
	})
	if err != nil || element == nil {
		return err
	}
	if found {
		return fault.At(fault.Corrupt, "member "+path, d.InputOffset(),
			"element %d of a list and members of other elements fit it", k)
	}
	return in.part(element, rest, outer)
}

// part reads the rows at a path in an element of a list.
func (in *items) part(raw json.RawMessage, path string, outer map[string]json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return in.at(d, path, outer, true)
}

// columnOf returns the column of {column} in a path.
func columnOf(name string) (column string, ok bool) {
	column, ok = strings.CutPrefix(strings.TrimSuffix(name, "[]"), "{")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(column, "}")
}

// each reads the rows in every member of an object, from behind its brace on.
func (in *items) each(d *json.Decoder, column, rest string, outer map[string]json.RawMessage) error {
	return textguard.EachMember(d, func(name string) error {
		inside := map[string]json.RawMessage{}
		maps.Copy(inside, outer)
		inside[column] = keyValue(name)
		err := in.at(d, rest, inside, true)
		in.file.Next()
		return err
	})
}

// keyValue is the value of a column of names of members: a number if the name is one as JSON writes it.
func keyValue(key string) json.RawMessage {
	if n, err := strconv.ParseInt(key, 10, 64); err == nil && strconv.FormatInt(n, 10) == key {
		return json.RawMessage(key)
	}
	raw, _ := json.Marshal(key) // strings have JSON
	return raw
}

// chain follows a path in an object that is in no list, from behind its brace on.
func (in *items) chain(d *json.Decoder, path string) error {
	var seen []string
	found := ""
	err := textguard.EachMember(d, func(name string) (err error) {
		switch rest, ok := within(path, name); {
		case ok && found != "":
			err = twice(path, found, name, d.InputOffset())
		case ok:
			found, err = name, in.at(d, rest, nil, false)
		default:
			err = in.skip(d)
		}
		if len(seen) < maxSeen {
			seen = append(seen, name)
		}
		return err
	})
	if found == "" {
		in.seen = seen
	}
	return err
}

// twice returns the error about a path that leads to two members of an object.
func twice(path, name, other string, at int64) error {
	return fault.At(fault.Corrupt, "member "+path, at, "the members %.80q and %.80q of one object fit it", name, other)
}

// within returns the rest of a path behind a member's name, which may have points itself.
func within(path, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, name)
	if !ok || name == "" {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "[]")
	if rest == "" {
		return "", true
	}
	return strings.CutPrefix(rest, ".")
}

// fitting returns the names of the members that a path fits, in order.
func fitting(members map[string]json.RawMessage, path string) []string {
	names := slices.Sorted(maps.Keys(members))
	return slices.DeleteFunc(names, func(name string) bool { _, ok := within(path, name); return !ok })
}

// inside reads the rows at a path in an object of a list, from behind its brace on.
func (in *items) inside(d *json.Decoder, path string, outer map[string]json.RawMessage) error {
	members := map[string]json.RawMessage{}
	err := textguard.EachMember(d, func(name string) error {
		var raw json.RawMessage
		err := d.Decode(&raw)
		members[name] = raw
		return err
	})
	if err != nil {
		return err
	}
	if path == "" {
		return in.row(members, outer, d.InputOffset())
	}
	names := fitting(members, path)
	if len(names) > 1 {
		return twice(path, names[0], names[1], d.InputOffset())
	}
	if len(names) == 0 {
		in.seen = slices.Sorted(maps.Keys(members))
		in.seen = in.seen[:min(len(in.seen), maxSeen)]
		return nil
	}
	rest, _ := within(path, names[0])
	raw := members[names[0]]
	delete(members, names[0])
	for name, v := range outer {
		if members[name] == nil {
			members[name] = v
		}
	}
	return in.part(raw, rest, members)
}

// skip reads a value and forgets it.
func (in *items) skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		in.file.Next()
		if depth == 0 {
			return nil
		}
	}
}

// noMember returns the error about a path that leads to no row.
func (in *items) noMember(path string) error {
	if len(in.seen) == 0 {
		return fault.New(fault.NotFound, "member "+path, "it has no rows")
	}
	return fault.New(fault.NotFound, "member "+path, "no object has such a member; there are %s", fault.Names(in.seen))
}

// maxDepth bounds how deep values of columns nest: each level is read once more.
const maxDepth = 8

// nested adds what a value holds to the last row: of a list of lists always (see tuples), and otherwise the columns
// that somebody wants. NAME.MEMBER is a member of an object, or of each object of a list, NAME.K an element of a list.
func (in *items) nested(name string, raw json.RawMessage, part string, at int64) error {
	if isLists(raw) {
		return in.tuples(name, raw, part, at)
	}
	if raw[0] == '"' && in.want(name+".") != in.want(noColumn) {
		raw = jsonIn(raw)
	}
	if raw[0] != '{' && raw[0] != '[' || in.want(name+".") == in.want(noColumn) || strings.Count(name, ".") > maxDepth {
		return nil
	}
	var members map[string]json.RawMessage
	var err error
	if raw[0] == '{' {
		err = json.Unmarshal(raw, &members)
	} else {
		members, err = elements(raw)
	}
	if err != nil {
		return fault.WrapAt(fault.Corrupt, part, at, err)
	}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		full := name + "." + member
		if in.want(full) == in.want(noColumn) && in.want(full+".") == in.want(noColumn) {
			continue
		}
		if err := in.cell(full, members[member], part, at); err != nil {
			return err
		}
	}
	return nil
}

// jsonIn returns the object or list of JSON that a string holds, and other strings as they are.
func jsonIn(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		made := json.RawMessage(strings.TrimSpace(text))
		if len(made) > 0 && (made[0] == '{' || made[0] == '[') && json.Valid(made) {
			return made
		}
	}
	return raw
}

// elements gives the members of the objects of a list as lists, whose value is null of an object that lacks it, and the
// first elements of a list by their numbers, where no member has such a name.
func elements(raw json.RawMessage) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	counts := map[string]int{} // of the values of a list
	decoder := json.NewDecoder(bytes.NewReader(raw))
	_, err := decoder.Token()
	for n := 0; err == nil && decoder.More() && n < texts.MaxList; n++ {
		var element json.RawMessage
		var object map[string]json.RawMessage
		if err = decoder.Decode(&element); err != nil {
			break
		}
		if number := strconv.Itoa(n); n < maxTuple && counts[number] == 0 {
			members[number] = element
		}
		if element[0] != '{' {
			continue
		}
		err = json.Unmarshal(element, &object)
		for member, value := range object {
			list := members[member]
			if counts[member] == 0 {
				list = nil
			}
			for ; counts[member] < n; counts[member]++ {
				list = append(list, ",null"...)
			}
			counts[member]++
			members[member] = append(append(list, ','), value...)
		}
		if len(members) > maxItemColumns {
			return nil, fault.New(fault.Limit, "", "objects with over %d members", maxItemColumns)
		}
	}
	for member := range counts {
		list := members[member]
		list[0] = '['
		members[member] = append(list, ']')
	}
	return members, err
}
