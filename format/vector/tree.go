package vector

import (
	"bytes"
	"cmp"
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
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// tree reads objects from elements inside each other: members of JSON, whose lists are transparent, or elements and
// attributes of XML. What lies around an object, before or behind it, may name its image.
type tree struct {
	*labels
	places
	add func(ctx context.Context, of record) error
	// member reads a member of the outermost object; nil: value does.
	member func(ctx context.Context, d *json.Decoder, key string) error
	text   *textguard.Parts // of JSON, or nil
	path   []string
	depth  int    // of the value of JSON that is read
	inside int    // how deep the object lies in whose elements the path is; -1: in none
	image  uint32 // of objects

	waiting [][][]byte // what objects that wait have in places.in
	first   int        // number in waiting of the first object around which the member places.drops is
	lists   int        // how many elements around objects of an image have objects that count
	size    int        // bytes of the object
	owed    int64      // bytes of objects that wait, not charged yet

	count   int      // objects
	placed  bool     // a place of coordinates is there
	empty   bool     // a list of objects is empty, or null
	members []string // the first ones, for errors
	skipped json.RawMessage
}

// places says where a tree has objects, and what they have.
type places struct {
	objects  [][]string // the paths of objects
	ends     bool       // paths are ends of paths, as in XML
	in, out  []spot     // places below an object, and around objects
	shared   []string   // the path of the element that objects share the latter in
	waits    bool       // objects are added at the end of that element
	keyed    bool       // the image is the name of a member whose path is shared
	numbered bool       // paths have numbers of elements
	spaced   []string   // places whose texts are points or coordinates, each in an element
	drops    []string   // the path of the member that is true where the objects beside it do not count
}

// spot is a place by its path, and what is there: nil for nothing.
type spot struct {
	name string
	path []string
	text []byte
	key  int // the spot is the name of the element around the object that is so deep in its path, from 1; 0: no name
}

// maxLevels bounds lists and objects of JSON in each other, as encoding/json does.
const maxLevels = 10_000

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

// newTree returns the tree of the places that Options.Box names, or of the format.
func (l *labels) newTree(isXML bool) *tree {
	t := &tree{labels: l, inside: -1, places: places{ends: isXML}}
	l.inJSON = !isXML
	switch t.add = t.object; {
	case l.form != nil:
		t.placeBox()
	case l.format.name != "":
		t.placeFormat()
	}
	return t
}

// placeBox sets the places that Options.Box and the columns name.
func (t *tree) placeBox() {
	l := t.labels
	l.form = l.form.withHoles()
	box, values := l.form.names(), slices.Concat(l.o.Columns, l.o.WhereColumns, []string{l.o.Column})
	object := pathOf(box[0])
	isName := func(name string) bool { return slices.Contains(values, name) && strings.HasSuffix(name, anyMember) }
	all := append(box, l.o.columns()...)
	for i, name := range all {
		if isName(name) {
			continue
		}
		if n := begins(pathOf(name), object); i < len(box) || n > 0 && slices.Contains(values, name) {
			object = object[:n]
		}
	}
	t.objects = [][]string{object}
	for _, name := range all {
		path := pathOf(name)
		n := begins(path, object)
		switch {
		case isName(name) && len(path) <= len(object) && follows(path, object):
			t.in = append(t.in, spot{name: name, key: len(path)})
			continue
		case n == len(object):
			t.in = append(t.in, spot{name: name, path: path[n:]})
			t.numbered = t.numbered || slices.ContainsFunc(path[n:], isNumber)
			continue
		case path[len(path)-1] == anyMember: // the name of a member
			t.keyed, t.shared, path = true, path, nil
		}
		if t.out = append(t.out, spot{name: name, path: path}); n > len(t.shared) {
			t.shared = path[:n]
		}
	}
	t.waits = len(t.out) > 0
	if l.form.kind.roles[0] == "outline" {
		t.spaced = box[:1]
	}
}

// use sets the format of a file, whose members show it. The first one counts.
func (t *tree) use(f *format) {
	if t.format.name == "" {
		if t.format = f; f.many {
			t.out = nil // members around the objects of a file of one image
		}
		t.placeFormat()
	}
}

// placeFormat sets the places of a named format.
func (t *tree) placeFormat() {
	f := t.format
	class, _, _ := strings.Cut(f.class, " ")
	if class != "" {
		t.classIs(class)
	}
	for _, objects := range strings.Fields(f.objects) {
		t.objects = append(t.objects, pathOf(objects))
	}
	for _, form := range f.forms {
		for _, name := range form.names() {
			t.in = spots(t.in, name, name)
		}
		if form.kind.roles[0] == "outline" {
			t.spaced = append(t.spaced, form.places[0].name)
		}
	}
	for _, name := range strings.Fields(f.shape + " " + f.more + " " + f.values) {
		t.in = spots(t.in, name, name)
	}
	if f.values == "" {
		t.in = spots(t.in, class, strings.Fields(f.class)...)
		for _, column := range t.values {
			if column.optional = true; column.column != "" && column.column != class { // an object may lack members
				t.in = spots(t.in, column.column, column.column)
			}
		}
	}
	if t.waits = f.shared != ""; t.waits && f.shared != "." {
		t.shared = pathOf(f.shared)
	}
	if f.drops != "" {
		t.drops = pathOf(f.drops)
		t.out = append(t.out, spot{name: f.drops, path: t.drops})
	}
	for i, image := range f.image {
		t.out = spots(t.out, imagePlaces[i], strings.Fields(image)...)
	}
}

// object adds the objects of a record.
func (t *tree) object(ctx context.Context, of record) error {
	if t.form == nil {
		return t.labels.object(ctx, of, t.image)
	}
	if !slices.ContainsFunc(t.form.names(), func(name string) bool { return textAt(of, name) != "" }) {
		t.remarks.Add(NoBox, "object ", t.count)
		return nil
	}
	return t.record(ctx, of)
}

// around declares the image that objects share.
func (t *tree) around() (err error) {
	if t.form != nil {
		if _, wrong := t.imageOf(t.o.Image, t.of); wrong == nil && !t.o.OneImage { // objects say what lacks
			_, err = t.declareImage(t.o.Image, t.of)
		}
		return err
	}
	text := func(i int) string { return unquoted(textAt(t.of, imagePlaces[i])) }
	name := text(0)
	path := name
	if t.format.path != nil {
		path = t.format.path(name)
	}
	if name != "" || !t.format.many || len(t.waiting) > 0 {
		t.image, err = t.declare(name, path, sizeOf(text(1)), sizeOf(text(2)))
	}
	return err
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

// spots appends the spots of a place, which may have alternatives. A name of a member may have dots.
func spots(to []spot, name string, places ...string) []spot {
	for _, place := range places {
		for _, path := range [][]string{{place}, pathOf(place)} {
			isThere := func(s spot) bool { return s.name == name && slices.Equal(s.path, path) }
			if (len(path) > 1 || strings.IndexByte(place, '/') < 0) && !slices.ContainsFunc(to, isThere) {
				to = append(to, spot{name: name, path: path})
			}
		}
	}
	return to
}

// check refuses a file in which no object has coordinates where box says.
func (t *tree) check() error {
	for _, column := range t.values {
		for _, name := range t.members {
			column.names[name] = true
		}
	}
	if t.placed || t.count == 0 && t.empty {
		return nil
	}
	return fault.New(fault.NotFound, t.format.name, "no object has %s, which box names; there are %s",
		fault.Names(t.form.names()), fault.Names(t.members))
}

// within reports whether the path is of an object, or below it.
func (t *tree) within() bool { return t.inside >= 0 }

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
	if !t.within() {
		if t.areBelow() {
			t.first = len(t.waiting)
		}
		if t.size = 0; slices.ContainsFunc(t.objects, t.at) {
			t.inside = len(t.path)
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
	if t.within() {
		spots, path = t.in, t.path[t.inside:]
	}
	for ; i < len(spots); i++ {
		if s := &spots[i]; len(s.path) > 0 && (t.within() && len(s.path) == len(path) && follows(path, s.path) ||
			!t.within() && t.at(s.path)) {
			return s, i + 1
		}
	}
	return nil, i
}

// leaf notes the text of an element, or the value of a member.
func (t *tree) leaf(text []byte) error {
	if t.size += len(text) + len(t.path[len(t.path)-1]); t.ends && t.within() && t.size > maxLine {
		return fault.New(fault.Limit, "object", "over %d bytes", maxLine)
	}
	for s, i := t.here(0); s != nil; s, i = t.here(i) {
		if !t.within() && s.text != nil && len(t.waiting) > 0 {
			return fault.New(fault.Unsupported, "image", "%q is there several times beside the objects: begin all "+
				`places with the element around both, as in "frame/object/x1" and "frame/@number"`, s.name)
		}
		t.placed = t.placed || t.form != nil && slices.Contains(t.form.names(), s.name)
		several := t.ends && t.within() && slices.Contains(t.spaced, s.name)
		if several && s.path[len(s.path)-1] == anyMember {
			if err := t.isNext(s.text); err != nil {
				return err
			}
		}
		switch {
		case !t.within() || s.text == nil:
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
	if t.within() && len(t.path) == t.inside {
		if t.inside = -1; !t.waits {
			return t.add(ctx, t.of)
		}
		const each = 24 // bytes of a slice
		if t.owed += int64(t.size + each*(len(t.in)+2)); t.owed >= chargeStep {
			if err := t.o.Grow(ctx, t.owed); err != nil {
				return err
			}
			t.owed = 0
		}
		held := make([][]byte, 0, len(t.in))
		for _, s := range t.in {
			held = append(held, s.text)
		}
		t.waiting = append(t.waiting, held)
	}
	if !t.within() && t.areBelow() {
		t.drop()
	}
	isRoot := len(t.path) == 0 || t.ends && len(t.path) == 1
	if t.within() || len(t.out) == 0 || !isRoot && (len(t.shared) == 0 || !t.at(t.shared)) {
		return nil
	}
	if err := t.around(); err != nil { // also one without objects
		return err
	}
	for _, held := range t.waiting {
		for i := range t.in {
			t.in[i].text = held[i]
		}
		if err := t.add(ctx, t.of); err != nil {
			return err
		}
	}
	if t.waiting = t.waiting[:0]; t.lists > 1 {
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
		t.waiting = t.waiting[:t.first]
	}
	t.out[i].text = nil
	if len(t.waiting) > t.first {
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
	case token == json.Delim('{') && t.waits && t.form == nil && !t.within() && slices.ContainsFunc(t.objects, t.at):
		return t.numbers(ctx, d)
	}
	return t.behind(ctx, d, token)
}

// numbers reads objects that wait, which are the members of one by their numbers.
func (t *tree) numbers(ctx context.Context, d *json.Decoder) error {
	first, numbers := len(t.waiting), []int(nil) // of objects
	err := textguard.EachMember(d, func(key string) error {
		t.text.Next()
		number, err := strconv.Atoi(key)
		if err != nil {
			return fault.Wrap(fault.Corrupt, "object", err)
		}
		token, err := d.Token()
		if err == nil {
			err = t.behind(ctx, d, token)
		}
		for first+len(numbers) < len(t.waiting) {
			numbers = append(numbers, number)
		}
		return err
	})
	if err != nil {
		return err
	}
	order := num.Range[int](0, len(numbers))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	copy(t.waiting[first:], num.Pick(t.waiting[first:], order))
	return nil
}

// leads reports whether a place may be in the element.
func (t *tree) leads() bool {
	spots, path := t.out, t.path
	if t.within() {
		spots, path = t.in, t.path[t.inside:]
	}
	for i := range spots {
		if to := spots[i].path; len(to) > len(path) && follows(path, to) {
			return true
		}
	}
	return t.leadsToObjects()
}

// leadsToObjects reports whether objects may be in the element.
func (t *tree) leadsToObjects() bool {
	return !t.within() && slices.ContainsFunc(t.objects, func(to []string) bool {
		return len(to) >= len(t.path) && follows(t.path, to)
	})
}

// behind reads the rest of a value of JSON, whose first token was read.
func (t *tree) behind(ctx context.Context, d *json.Decoder, token json.Token) error {
	if t.depth++; t.depth > maxLevels {
		return fault.At(fault.Limit, "JSON", d.InputOffset(), "over %d lists and objects in each other", maxLevels)
	}
	defer func() { t.depth-- }()
	switch token {
	case json.Delim('{'):
		if err := t.begin(nil); err != nil {
			return err
		}
		err := textguard.EachMember(d, func(key string) error { return t.below(ctx, d, key) })
		if err != nil {
			return err
		}
		return t.end(ctx)
	case json.Delim('['):
		t.empty = t.empty || !d.More()
	default:
		return t.quoted(ctx, d, token)
	}
	i, row := 0, false // elements that are no lists have their numbers as names
	err := textguard.EachElement(d, func() error {
		t.text.Next()
		token, err := d.Token()
		if err != nil {
			return err
		}
		i++
		switch _, nested := token.(json.Delim); {
		case nested:
			return t.behind(ctx, d, token)
		case !t.numbered:
			return t.quoted(ctx, d, token)
		case !row:
			row = true
			err = t.begin(nil)
		}
		t.path = append(t.path, strconv.Itoa(i-1))
		text, _ := json.Marshal(token) // no error: it is a number, a string, a bool or null
		err = errors.Join(err, t.leaf(text))
		t.path = t.path[:len(t.path)-1]
		return err
	})
	if err == nil && row {
		err = t.end(ctx)
	}
	return err
}

// below reads the value of a member.
func (t *tree) below(ctx context.Context, d *json.Decoder, key string) (err error) {
	if t.path = append(t.path, key); len(t.members) < maxListed && !slices.Contains(t.members, key) {
		t.members = append(t.members, key)
	}
	if t.keyed && t.at(t.shared) {
		i := slices.IndexFunc(t.out, func(s spot) bool { return s.name == t.o.Image })
		t.out[i].text, _ = json.Marshal(key) // no error: it is a string
	}
	if t.member != nil && len(t.path) == 1 {
		err = t.member(ctx, d, key)
	} else {
		err = t.value(ctx, d)
	}
	t.path = t.path[:len(t.path)-1]
	return err
}

// quoted reads the value in a string where objects must stand: it holds JSON, as cells of Parquet do that were made by
// json.dumps. null stands for no object, and so do other values where Options.Box says what objects are. Members around
// objects that a format has, such as the size of the image, may be anything else in a file of another format.
func (t *tree) quoted(ctx context.Context, d *json.Decoder, token json.Token) error {
	if token == nil || t.form == nil && !t.within() && !t.leadsToObjects() {
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

// walkJSON reads the values of a file, one after the other.
func (t *tree) walkJSON(ctx context.Context, r source.Reader) error {
	t.text = newParts(ctx, r, "JSON", maxPiece)
	d := json.NewDecoder(unseparated{t.text})
	d.UseNumber()
	for number := 0; ; number++ {
		t.text.Next()
		err := t.value(ctx, d)
		if errors.Is(err, io.EOF) && number > 0 {
			return nil
		}
		if err != nil {
			return jsonError(d, err)
		}
	}
}

// readTasks reads the tasks of Label Studio.
func readTasks(ctx context.Context, r source.Reader, l *labels, _ []byte) error {
	t := l.newTree(false)
	err := t.walkJSON(ctx, r)
	if err == nil && !slices.Contains(t.members, "annotations") && !slices.Contains(t.members, "completions") {
		err = fault.New(fault.Unsupported, "JSON", "it is a list of objects with %s, and Label Studio's JSON (not "+
			"JSON-MIN) has annotations: box says where others have their coordinates", fault.Names(t.members))
	}
	return err
}
