package taco3

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Item is an entry of taco:structure: the path of a file below a sample, or of a sequence of files.
type Item struct {
	entry  string // as taco:structure has it
	path   string // of a sequence without the bounds and what follows: "aux/mask"
	Folder string // "" or "before"
	Name   string // of the file; of a sequence what stands in front of the number
	Suffix string // of a sequence, what stands behind the number
	// Least and Most are how many files a sequence has; both are 0 for a single file.
	Least, Most int
}

// Entry returns a sequence as taco:structure has it.
func (i *Item) Entry() string {
	name := i.Name + "*[" + strconv.Itoa(i.Least) + "," + strconv.Itoa(i.Most) + "]" + i.Suffix
	return strings.TrimPrefix(i.Folder+"/"+name, "/")
}

func (i *Item) sequence() bool { return i.Most > 0 }

// file returns the name of file n of a sequence, counted from 0, and the name of another item.
func (i *Item) file(n int) string {
	if !i.sequence() {
		return i.Name
	}
	return i.Name + strconv.Itoa(n) + i.Suffix
}

// Number returns the number of a file of a sequence, or -1 if a name is not one of them.
func (i *Item) Number(name string) int {
	digits, ok := strings.CutPrefix(name, i.Name)
	if ok {
		digits, ok = strings.CutSuffix(digits, i.Suffix)
	}
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || digits != strconv.Itoa(n) || n >= i.Most {
		return -1
	}
	return n
}

// folderMember is a child that every sample has in a folder: a folder, or the files of an item.
type folderMember struct {
	folder string // its path; "" for an item
	item   *Item
}

// Layout is what taco:structure says of every sample.
type Layout struct {
	items []Item
	// Levels are the names of the levels in their order: "sample", "children", then folders by depth, and in a depth
	// as they are first mentioned.
	Levels []string
	// members are the children in each folder, in order.
	members map[string][]folderMember
}

// name returns the name of a folder or a file in its folder; of a sequence what stands in front of the number.
func (m folderMember) name() string {
	if m.item != nil {
		return m.item.Name
	}
	return m.folder[strings.LastIndexByte(m.folder, '/')+1:]
}

// FolderOf returns the folder whose children a level has, "" for the root of a sample.
func FolderOf(level string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(level, "sample"), "children"), "/")
}

// Above returns the level that has the parents of the rows of another one: "sample" for "children", "children" for
// "children/before".
func Above(level string) string {
	if cut := strings.LastIndexByte(level, '/'); cut >= 0 {
		return level[:cut]
	}
	return "sample"
}

// Depth returns how many levels lie above one.
func Depth(level string) int {
	if level == "sample" {
		return 0
	}
	return 1 + strings.Count(level, "/")
}

// levelOf returns the name of the level that has the children of a folder.
func levelOf(folder string) string {
	if folder == "" {
		return "children"
	}
	return "children/" + folder
}

// Limits of a structure. A level is a table, and each is looked at for every row of its depth; a sample of satellite
// images has some ten files in a few folders.
const (
	maxItems  = 1 << 16
	maxLevels = 1 << 10
)

// maxParts bounds the folders of a path: a level is a table, and its depth a level of the model.
const maxParts = 64

// sequencePattern is the last part of the path of a sequence: PREFIX*[MIN,MAX]SUFFIX. Zeros in front of the bounds and
// blanks behind the comma are accepted, as by taco-eo.
var sequencePattern = regexp.MustCompile(`^([^*\[\]]+)\*\[0*([0-9]{1,9}), *0*([0-9]{1,9})\]([^*\[\]]*)$`)

// NewLayout checks the paths of taco:structure.
func NewLayout(paths []string) (*Layout, error) {
	layout := &Layout{Levels: []string{"sample", "children"}, members: map[string][]folderMember{}}
	if len(paths) == 0 {
		return nil, structureFault("is empty")
	}
	if len(paths) > maxItems {
		return nil, fault.New(fault.Limit, "COLLECTION.json taco:structure", "%d paths, at most %d",
			len(paths), maxItems)
	}
	layout.items = make([]Item, len(paths))
	depths := [][]string{{""}} // the folders of each depth, as they are first mentioned
	for k, path := range paths {
		item := &layout.items[k]
		if err := item.parse(path); err != nil {
			return nil, err
		}
		for d, above := 0, ""; item.Folder != above; d++ {
			part, _, _ := strings.Cut(strings.TrimPrefix(item.Folder[len(above):], "/"), "/")
			folder := strings.TrimPrefix(above+"/"+part, "/")
			if len(depths) == d+1 {
				depths = append(depths, nil)
			}
			if _, known := layout.members[folder]; !known {
				depths[d+1] = append(depths[d+1], folder)
				layout.members[folder] = nil
				layout.members[above] = append(layout.members[above], folderMember{folder: folder})
			}
			above = folder
		}
		layout.members[item.Folder] = append(layout.members[item.Folder], folderMember{item: item})
	}
	for _, folders := range depths[1:] {
		for _, f := range folders {
			layout.Levels = append(layout.Levels, levelOf(f))
		}
	}
	if len(layout.Levels) > maxLevels {
		return nil, fault.New(fault.Limit, "COLLECTION.json taco:structure", "%d levels, at most %d",
			len(layout.Levels), maxLevels)
	}
	for _, members := range layout.members {
		if err := distinct(members); err != nil {
			return nil, err
		}
	}
	return layout, nil
}

// sequence returns the sequence of files that a name means: see Container.Sequence.
func (s *Layout) sequence(name string) *Item {
	if len(s.items) == 1 && s.items[0].sequence() && name == "image" {
		return &s.items[0]
	}
	var found *Item
	for i := range s.items {
		it := &s.items[i]
		switch {
		case !it.sequence() && (it.path == name || strings.TrimSuffix(it.path, path.Ext(it.path)) == name):
			return nil
		case it.sequence() && (it.entry == name || it.path+"*"+it.Suffix == name || it.path == name):
			found = it
		}
	}
	return found
}

// Order returns the order in which the children of a folder stand, as places in names. It returns the name of the first
// child that is missing or that the structure does not have.
func (s *Layout) Order(folder string, names []string) (order []int, wrong string) {
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[name] = i
	}
	take := func(name string) bool {
		i, ok := places[name]
		if ok {
			order = append(order, i)
			delete(places, name)
		}
		return ok
	}
	for _, member := range s.members[folder] {
		if member.item == nil || !member.item.sequence() {
			if !take(member.name()) {
				return nil, member.name()
			}
			continue
		}
		n := 0
		for n < member.item.Most && take(member.item.file(n)) {
			n++
		}
		if n < member.item.Least {
			return nil, member.item.file(n)
		}
	}
	if len(order) == len(names) {
		return order, ""
	}
	// In this order: the error is always the same.
	for i, name := range names {
		if !slices.Contains(order, i) {
			return nil, name
		}
	}
	return order, ""
}

// parse parses a path of taco:structure.
func (i *Item) parse(path string) error {
	bad := func(why string) error { return structureFault("%.200q %s", path, why) }
	parts := strings.Split(path, "/")
	if len(parts) > maxParts {
		return fault.New(fault.Limit, "COLLECTION.json taco:structure", "%.200q has over %d parts", path, maxParts)
	}
	last := parts[len(parts)-1]
	i.entry, i.Folder, i.Name = path, strings.Join(parts[:len(parts)-1], "/"), last
	if names := sequencePattern.FindStringSubmatch(last); names != nil {
		i.Name, i.Suffix = names[1], names[4]
		i.Least, _ = strconv.Atoi(names[2]) // nine digits
		i.Most, _ = strconv.Atoi(names[3])
		if i.Least < 1 || i.Most < i.Least {
			return bad(fmt.Sprintf("has from %d to %d files: it must have at least 1", i.Least, i.Most))
		}
		parts[len(parts)-1] = i.file(0)
	}
	i.path = strings.TrimPrefix(i.Folder+"/"+i.Name, "/")
	for _, part := range parts {
		switch {
		case part == "" || part == "." || part == "..":
			return bad("is not a path below the sample")
		case strings.ContainsFunc(part, notPrintable) || strings.ContainsAny(part, `<>:"\|?*[]`):
			return bad(`has a letter that is not printable ASCII, or one of < > : " \ | ? * [ ]`)
		case strings.Contains(part, "__") || strings.HasSuffix(part, " ") || strings.HasSuffix(part, "."):
			return bad(`has "__", or a part that ends in a blank or a point`)
		}
	}
	return nil
}

// distinct checks that the children of a folder have different names, also where case does not count.
func distinct(members []folderMember) error {
	seen := map[string]bool{}
	for _, member := range members {
		name := strings.ToLower(member.name())
		if member.item != nil && member.item.sequence() {
			// No name has a star, so a sequence differs from a file of its prefix.
			name += "*"
		}
		if seen[name] {
			return structureFault("two children of a folder are called %q", name)
		}
		seen[name] = true
	}
	return apart(members)
}

// apart checks that no sequence could make the name of another file.
func apart(members []folderMember) error {
	var items []*Item
	for _, m := range members {
		if m.item != nil {
			items = append(items, m.item)
		}
	}
	// Names that begin with the prefix of a sequence follow it in this order, so most pairs need no look.
	slices.SortFunc(items, func(a, b *Item) int { return strings.Compare(a.Name, b.Name) })
	for k, item := range items {
		if !item.sequence() {
			continue
		}
		for _, other := range items[k+1:] {
			if !strings.HasPrefix(other.Name, item.Name) {
				break
			}
			if item.meets(other) {
				return structureFault("%q and %q could be the same file", item.path, other.path)
			}
		}
	}
	return nil
}

// meets reports whether a file of a sequence may have the name of a file of another item.
func (i *Item) meets(other *Item) bool {
	if !other.sequence() {
		return i.Number(other.Name) >= 0
	}
	digits, ok := strings.CutPrefix(other.Name, i.Name)
	return ok && i.Suffix == other.Suffix && strings.Trim(digits, "0123456789") == "" && !strings.HasPrefix(digits, "0")
}

func structureFault(format string, args ...any) error {
	return corrupt("COLLECTION.json taco:structure", format, args...)
}
