package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// tree reads objects from elements inside each other: members of JSON, whose lists are transparent, or elements and
// attributes of XML. What lies around an object, before or behind it, may name its image.
type tree struct {
	*labels
	objects  [][]string // the paths of objects
	ends     bool       // paths are ends of paths, as in XML
	in, out  []spot     // places below an object, and around objects
	shared   []string   // the path of the element that objects share the latter in
	waits    bool       // objects are added at the end of that element
	keyed    bool       // the image is the name of a member whose path is shared
	numbered bool       // paths have numbers of elements
	outlines []string   // places whose texts are points or coordinates, each in an element
	drops    []string   // the path of the member that is true where the objects beside it do not count
	first    int        // number in held of the first object around which that member is
	lists    int        // how many elements around objects of an image have objects that count
	byNumber bool       // a list of objects may be an object, whose members are numbered
	add      func(ctx context.Context, of record) error
	around   func() error     // declares the image that objects share
	text     *textguard.Parts // of JSON, or nil

	path    []string
	within  bool       // an object, whose depth is inside
	inside  int        // likewise
	held    [][][]byte // what objects that wait have in places
	size    int        // bytes of the object
	owed    int64      // bytes of objects that wait, not charged yet
	count   int        // objects
	known   bool       // a place of coordinates is there
	empty   bool       // a list of objects is empty, or null
	seen    []string   // the first members, for errors
	skipped json.RawMessage
}

// spot is a place by its path, and what is there: nil for nothing.
type spot struct {
	name string
	path []string
	text []byte
	key  int // the spot is the name of the element around the object that is so deep in its path, from 1; 0: no name
}

// anyMember stands in a path for a member of any name, and as a place for its name.
const anyMember = "*"

// pathOf returns the path of a place.
func pathOf(name string) []string {
	return strings.Split(strings.Trim(strings.ReplaceAll(name, "/", "."), "."), ".")
}

// begins returns how many names two paths have in common at their begin, without the last one of the first.
func begins(path, other []string) (n int) {
	for n < min(len(path)-1, len(other)) && path[n] == other[n] {
		n++
	}
	return n
}

// newTree returns the tree of the places that Options.Box names.
func (l *labels) newTree(ends bool) *tree {
	t := &tree{labels: l, ends: ends}
	l.form = l.form.withHoles()
	box, values := l.form.names(), slices.Concat(l.o.Columns, l.o.WhereColumns, []string{l.o.Column})
	object := pathOf(box[0])
	isName := func(name string) bool { return slices.Contains(values, name) && strings.HasSuffix(name, anyMember) }
	for i, name := range append(box, l.o.columns()...) {
		if isName(name) {
			continue
		}
		if n := begins(pathOf(name), object); i < len(box) || n > 0 && slices.Contains(values, name) {
			object = object[:n]
		}
	}
	t.objects = [][]string{object}
	for _, name := range append(box, l.o.columns()...) {
		path := pathOf(name)
		n := begins(path, object)
		if isName(name) && len(path) <= len(object) && follows(path, object) {
			t.in = append(t.in, spot{name: name, key: len(path)})
			continue
		}
		if n == len(object) {
			t.in = append(t.in, spot{name: name, path: path[n:]})
			t.numbered = t.numbered || slices.ContainsFunc(path[n:], isNumber)
			continue
		}
		if path[len(path)-1] == anyMember { // the name of a member
			t.keyed, t.shared = true, path
			path = nil
		}
		if t.out = append(t.out, spot{name: name, path: path}); n > len(t.shared) {
			t.shared = path[:n]
		}
	}
	t.waits = len(t.out) > 0
	if l.form.kind.roles[0] == "outline" {
		t.outlines = box[:1]
	}
	t.around = func() error {
		name, err := l.imageOf(l.o.Image, t.of)
		if err != nil || l.o.OneImage { // objects say what lacks
			return nil //nolint:nilerr // likewise
		}
		_, err = l.declare(name, name, 0, 0)
		return err
	}
	t.add = func(ctx context.Context, of record) error {
		if !slices.ContainsFunc(box, func(name string) bool { return textAt(of, name) != "" }) {
			l.remarks.Add(NoBox, "object ", t.count)
			return nil
		}
		return l.record(ctx, of)
	}
	return t
}

// treeOf returns the tree of a named format, in XML or JSON.
func (l *labels) treeOf(f *named, isXML bool) *tree {
	t := &tree{labels: l, ends: isXML, waits: f.shared != "", byNumber: f.shared != ""}
	l.inJSON = !isXML
	class, _, _ := strings.Cut(f.class, " ")
	if class != "" {
		l.classIs(class)
	}
	for _, objects := range strings.Fields(f.objects) {
		t.objects = append(t.objects, pathOf(objects))
	}
	t.in = spots(t.in, class, f.values, strings.Fields(f.class))
	for _, form := range f.forms {
		for _, name := range form.names() {
			t.in = spots(t.in, name, "", []string{name})
		}
		if form.kind.roles[0] == "outline" {
			t.outlines = append(t.outlines, form.places[0].name)
		}
	}
	for _, column := range l.values {
		if column.optional = true; column.column != "" && column.column != class { // an object may lack members
			t.in = spots(t.in, column.column, f.values, []string{column.column})
		}
	}
	if f.shared != "" && f.shared != "." {
		t.shared = pathOf(f.shared)
	}
	if f.drops != "" {
		t.drops = pathOf(f.drops)
		t.out = append(t.out, spot{name: f.drops, path: t.drops})
	}
	for i, image := range f.image {
		t.out = spots(t.out, imagePlaces[i], "", strings.Fields(image))
	}
	number := uint32(0)
	t.around = func() (err error) {
		text := func(i int) string { return unquoted(textAt(t.of, imagePlaces[i])) }
		name := text(0)
		path := name
		if f.path != nil {
			path = f.path(name)
		}
		if name != "" || !t.waits || len(t.held) > 0 {
			number, err = l.declare(name, path, sizeOf(text(1)), sizeOf(text(2)))
		}
		return err
	}
	t.add = func(ctx context.Context, of record) error {
		form, err := l.choose(f, of)
		if err == nil {
			err = l.put(ctx, form, of, number)
		}
		return err
	}
	return t
}

// imagePlaces are the names of the places of the image of a named format, which no file has.
var imagePlaces = [3]string{"\x00image", "\x00width", "\x00height"}

// list reads the value of the member of a file that has a path. Errors name it and the object.
func (t *tree) list(ctx context.Context, d *json.Decoder, path ...string) error {
	t.path = append(t.path[:0], path...)
	first := t.count
	err := t.value(ctx, d)
	if err == nil {
		return nil
	}
	return fault.WithPart(err, t.path[0]+" "+strconv.Itoa(max(0, t.count-first-1)), fault.NoOffset)
}

// spots appends the spots of a place: alternatives below a member, "" for none. A name of a member may have dots.
func spots(to []spot, name, below string, alternatives []string) []spot {
	for _, place := range alternatives {
		for _, path := range [][]string{{place}, pathOf(place)} {
			if below != "" {
				path = append([]string{below}, path...)
			}
			if n := len(to); n == 0 || to[n-1].name != name || !slices.Equal(to[n-1].path, path) {
				to = append(to, spot{name: name, path: path})
			}
		}
	}
	return to
}

// check refuses a file in which no object has coordinates where box says.
func (t *tree) check() error {
	for _, column := range t.values {
		for _, name := range t.seen {
			column.names[name] = true
		}
	}
	if t.known || t.count == 0 && t.empty {
		return nil
	}
	return fault.New(fault.NotFound, t.format, "no object has %s, which box names; there are %s",
		fault.Names(t.form.names()), fault.Names(t.seen))
}

// at reports whether the element has a path.
func (t *tree) at(path []string) bool {
	here := t.path
	if t.ends && len(path) < len(here) {
		here = here[len(here)-len(path):]
	}
	return len(path) == len(here) && follows(here, path)
}

// follows reports whether names stand in a path one after the other.
func follows(names, path []string) bool {
	for i, name := range names {
		if path[i] != name && path[i] != anyMember {
			return false
		}
	}
	return true
}

// begin begins an element.
func (t *tree) begin(attributes []xml.Attr) error {
	if !t.within {
		if t.areBelow() {
			t.first = len(t.held)
		}
		if t.size = 0; slices.ContainsFunc(t.objects, t.at) {
			t.within, t.inside = true, len(t.path)
			t.count++
			for i := range t.in {
				if s := &t.in[i]; s.key == 0 {
					s.text = nil
				} else if s.text = []byte(t.path[len(t.path)-len(t.objects[0])+s.key-1]); !t.ends {
					s.text, _ = json.Marshal(string(s.text)) // no error: it is a string
				}
			}
		}
	}
	for _, a := range attributes {
		t.path = append(t.path, "@"+a.Name.Local)
		if err := t.leaf([]byte(a.Value)); err != nil {
			return err
		}
		t.path = t.path[:len(t.path)-1]
	}
	return nil
}

// here returns the next place of the element, from number i on; nil without one.
func (t *tree) here(i int) (found *spot, next int) {
	spots, path := t.out, t.path
	if t.within {
		spots, path = t.in, t.path[t.inside:]
	}
	for ; i < len(spots); i++ {
		if s := &spots[i]; len(s.path) > 0 && (t.within && len(s.path) == len(path) && follows(path, s.path) ||
			!t.within && t.at(s.path)) {
			return s, i + 1
		}
	}
	return nil, i
}

// leaf notes the text of an element, or the value of a member.
func (t *tree) leaf(text []byte) error {
	if t.size += len(text) + len(t.path[len(t.path)-1]); t.ends && t.within && t.size > maxLine {
		return fault.New(fault.Limit, "object", "over %d bytes", maxLine)
	}
	for s, i := t.here(0); s != nil; s, i = t.here(i) {
		if !t.within && s.text != nil && len(t.held) > 0 {
			return fault.New(fault.Unsupported, "image", "%q is there several times beside the objects: begin all "+
				`places with the element around both, as in "frame/object/x1" and "frame/@number"`, s.name)
		}
		t.known = t.known || t.form != nil && slices.Contains(t.form.names(), s.name)
		several := t.ends && t.within && slices.Contains(t.outlines, s.name)
		if several && s.path[len(s.path)-1] == anyMember {
			if err := t.isNext(s.text); err != nil {
				return err
			}
		}
		switch {
		case !t.within || s.text == nil:
			s.text = append([]byte{}, text...)
		case several:
			s.text = append(append(s.text, ' '), text...)
		} // a second box or name is one of a part
	}
	return nil
}

// isNext refuses an element that is not the next coordinate of an outline, whose elements are x1, y1, x2, …
func (t *tree) isNext(before []byte) error {
	number := 0
	if before != nil {
		number = 1 + bytes.Count(before, []byte(" "))
	}
	name, want := t.path[len(t.path)-1], fmt.Sprint("xy"[number%2:][:1], number/2+1)
	if name != want {
		return fault.New(fault.Unsupported, "outline", "%q stands where %q must: box says where they lie", name, want)
	}
	return nil
}

// end ends an element.
func (t *tree) end(ctx context.Context) error {
	if t.within && len(t.path) == t.inside {
		if t.within = false; !t.waits {
			return t.add(ctx, t.of)
		}
		const each = 24 // bytes of a slice
		if t.owed += int64(t.size + each*(len(t.in)+1)); t.owed >= chargeStep {
			if err := t.o.Grow(ctx, t.owed); err != nil {
				return err
			}
			t.owed = 0
		}
		var held [][]byte
		for _, s := range t.in {
			held = append(held, s.text)
		}
		t.held = append(t.held, held)
	}
	if !t.within && t.areBelow() {
		t.drop()
	}
	isRoot := len(t.path) == 0 || t.ends && len(t.path) == 1
	if t.within || len(t.out) == 0 || !isRoot && (len(t.shared) == 0 || !t.at(t.shared)) {
		return nil
	}
	if err := t.around(); err != nil { // also one without objects
		return err
	}
	for _, held := range t.held {
		for i := range t.in {
			t.in[i].text = held[i]
		}
		if err := t.add(ctx, t.of); err != nil {
			return err
		}
	}
	if t.held = t.held[:0]; t.lists > 1 {
		t.remarks.Add(Annotators, t.paths[len(t.paths)-1])
	}
	t.lists = 0
	for i := range t.out {
		if path := t.out[i].path; len(path) > len(t.shared) && begins(path, t.shared) == len(t.shared) {
			t.out[i].text = nil
		}
	}
	return nil
}

// areBelow reports whether the element has the member that says whether objects count.
func (t *tree) areBelow() bool { return len(t.drops) > 0 && t.at(t.drops[:len(t.drops)-1]) }

// drop leaves out the objects of the element if they do not count.
func (t *tree) drop() {
	i := slices.IndexFunc(t.out, func(s spot) bool { return slices.Equal(s.path, t.drops) })
	if string(t.out[i].text) == "true" {
		t.held = t.held[:t.first]
	}
	t.out[i].text = nil
	if len(t.held) > t.first {
		t.lists++
	}
}

// of is the record of an object.
func (t *tree) of(name string) (text string, ok bool) {
	for _, spots := range [][]spot{t.in, t.out} {
		for i := range spots {
			if s := &spots[i]; s.name == name && s.text != nil {
				if text = string(s.text); t.ends || text != "null" {
					return text, true
				}
			}
		}
	}
	return text, false
}

// value reads the next value of JSON.
func (t *tree) value(ctx context.Context, d *json.Decoder) error {
	if s, _ := t.here(0); s != nil {
		err := d.Decode(&t.skipped)
		if err == nil {
			err = t.leaf(t.skipped)
		}
		return err
	}
	if !t.leads() {
		return d.Decode(&t.skipped)
	}
	token, err := d.Token()
	switch t.empty = t.empty || err == nil && token == nil; {
	case err != nil:
		return err
	case token == json.Delim('{') && t.byNumber && !t.within && slices.ContainsFunc(t.objects, t.at):
		return t.numbers(ctx, d)
	}
	return t.behind(ctx, d, token)
}

// numbers reads objects that wait, which are the members of one by their numbers.
func (t *tree) numbers(ctx context.Context, d *json.Decoder) error {
	type numbered struct {
		number int
		held   [][]byte
	}
	var objects []numbered
	first := len(t.held)
	for d.More() {
		t.text.Next()
		key, err := d.Token()
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(key.(string)) // the decoder takes no other keys
		if err != nil {
			return fault.Wrap(fault.Corrupt, "object", err)
		}
		token, err := d.Token()
		if err == nil {
			err = t.behind(ctx, d, token)
		}
		if err != nil {
			return err
		}
		for i := first + len(objects); i < len(t.held); i++ {
			objects = append(objects, numbered{number, t.held[i]})
		}
	}
	slices.SortStableFunc(objects, func(a, b numbered) int { return a.number - b.number })
	for i, object := range objects {
		t.held[first+i] = object.held
	}
	return expect(d, '}')
}

// leads reports whether a place may be in the element.
func (t *tree) leads() bool {
	spots, path := t.out, t.path
	if t.within {
		spots, path = t.in, t.path[t.inside:]
	}
	for i := range spots {
		if to := spots[i].path; len(to) > len(path) && follows(path, to) {
			return true
		}
	}
	return !t.within && slices.ContainsFunc(t.objects, func(to []string) bool {
		return len(to) >= len(path) && follows(path, to)
	})
}

// behind reads the rest of a value of JSON, whose first token was read.
func (t *tree) behind(ctx context.Context, d *json.Decoder, token json.Token) (err error) {
	switch token {
	case json.Delim('{'):
		if err = t.begin(nil); err != nil {
			return err
		}
		for d.More() {
			token, err = d.Token()
			if err != nil {
				return err
			}
			key := token.(string) // the decoder takes no other keys
			if t.path = append(t.path, key); len(t.seen) < maxListed && !slices.Contains(t.seen, key) {
				t.seen = append(t.seen, key)
			}
			if t.keyed && t.at(t.shared) {
				i := slices.IndexFunc(t.out, func(s spot) bool { return s.name == t.o.Image })
				t.out[i].text, _ = json.Marshal(key) // no error: it is a string
			}
			if err = t.value(ctx, d); err != nil {
				return err
			}
			t.path = t.path[:len(t.path)-1]
		}
		if err = t.end(ctx); err == nil {
			err = expect(d, '}')
		}
	case json.Delim('['):
		row := false // its elements have their numbers as names
		t.empty = t.empty || !d.More()
		for i := 0; d.More(); i++ {
			t.text.Next()
			if token, err = d.Token(); err != nil {
				return err
			}
			_, nested := token.(json.Delim)
			switch {
			case nested:
				err = t.behind(ctx, d, token)
			case !t.numbered:
				err = t.quoted(ctx, d, token)
			default:
				if !row {
					row = true
					err = t.begin(nil)
				}
				t.path = append(t.path, strconv.Itoa(i))
				text, _ := json.Marshal(token) // no error: it is a number, a string, a bool or null
				err = errors.Join(err, t.leaf(text))
				t.path = t.path[:len(t.path)-1]
			}
			if err != nil {
				return err
			}
		}
		if row {
			err = t.end(ctx)
		}
		if err == nil {
			err = expect(d, ']')
		}
	default:
		return t.quoted(ctx, d, token)
	}
	return err
}

// quoted reads the value in a string where objects must stand: it holds JSON, as cells of Parquet do that were made by
// json.dumps. null stands for no object, and so do other values where Options.Box says what objects are.
func (t *tree) quoted(ctx context.Context, d *json.Decoder, token json.Token) error {
	if token == nil {
		return nil
	}
	if text, _ := token.(string); strings.TrimLeft(text, " \t\r\n[{") != text { // perhaps
		inner := json.NewDecoder(strings.NewReader(asJSON(text)))
		inner.UseNumber()
		first, err := inner.Token()
		if _, nested := first.(json.Delim); err == nil && nested {
			err = t.behind(ctx, inner, first)
			if _, more := inner.Token(); err == nil && !errors.Is(more, io.EOF) {
				err = fault.New(fault.Corrupt, "JSON", "a string holds more than one value")
			}
			return jsonError(inner, err)
		}
	}
	if t.form == nil { // the format says what stands there
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "it has %v where an object or a list must stand",
			fault.Short(fmt.Sprint(token)))
	}
	t.remarks.Add(NoObject, token)
	return nil
}

// readJSON reads the objects of JSON, or of a value a line.
func (l *labels) readJSON(ctx context.Context, r source.Reader) error {
	l.format, l.inJSON = "JSON", true
	t := l.newTree(false)
	t.text = newParts(ctx, r, "JSON", maxPiece)
	d := json.NewDecoder(unseparated{t.text})
	d.UseNumber()
	for number := 0; ; number++ {
		t.text.Next()
		err := t.value(ctx, d)
		if errors.Is(err, io.EOF) && number > 0 {
			break
		}
		if err != nil {
			return jsonError(d, err)
		}
	}
	return t.check()
}

// readTasks reads the tasks of Label Studio.
func readTasks(ctx context.Context, r source.Reader, l *labels) error {
	t := l.treeOf(&tasksFormat, false)
	t.text = newParts(ctx, r, "JSON", maxPiece)
	d := json.NewDecoder(unseparated{t.text})
	d.UseNumber()
	if err := t.value(ctx, d); err != nil {
		return jsonError(d, err)
	}
	if !slices.Contains(t.seen, "annotations") && !slices.Contains(t.seen, "completions") {
		return fault.New(fault.Unsupported, "JSON", "it is a list of objects with %s, and Label Studio's JSON (not "+
			"JSON-MIN) has annotations: box says where others have their coordinates", fault.Names(t.seen))
	}
	return nil
}

// readXML reads the objects of XML.
func (l *labels) readXML(ctx context.Context, r source.Reader) error {
	l.format = "XML"
	t := l.newTree(true)
	if len(t.objects[0]) == 0 {
		return fault.New(fault.Unsupported, "box", "it has %s: in XML places begin with the element of an object, as "+
			`in "object/x1"`, fault.Names(l.form.names()))
	}
	t.empty = true // as far as can be told
	if _, err := t.walkXML(ctx, r); err != nil {
		return err
	}
	return t.check()
}
