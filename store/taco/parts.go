package taco

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
)

// cutPart splits the name of a part, NAME.0003.part.tortilla, into the name of the whole,
// NAME.tortilla, and the number of the part.
func cutPart(uri string) (whole string, number int, ok bool) {
	for _, ext := range [...]string{".tortilla", ".taco"} {
		rest, ok := strings.CutSuffix(uri, ".part"+ext)
		i := strings.LastIndexByte(rest, '.')
		if !ok || i < 0 || len(rest)-i-1 < 4 {
			continue
		}
		n, err := strconv.ParseUint(rest[i+1:], 10, 31)
		return rest[:i] + ext, int(n), err == nil
	}
	return "", 0, false
}

// Parts implements store.Lists: it reports whether a name without a file stands for a container split into parts, by
// looking for the first part. Open opens such a container.
func (Kind) Parts(ctx context.Context, o source.Opener, whole string) bool {
	set, _ := partsOf(ctx, o, whole)
	return set != nil
}

// partsOf returns the names of the parts of a split container, given the name of the whole, or nil if the first does
// not exist. An error says that this cannot be found out. Numbers begin at 0000 in files as writers make them, and at
// 0001 in the specification.
func partsOf(ctx context.Context, o source.Opener, whole string) ([]string, error) {
	if !strings.HasSuffix(whole, ".tortilla") && !strings.HasSuffix(whole, ".taco") {
		return nil, nil
	}
	// Both numberings are tried, because writers begin at 0000 and the specification at 0001.
	for first := range 2 {
		count, err := partitions(ctx, o, tortilla.PartName(whole, first))
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range count {
			names = append(names, tortilla.PartName(whole, first+i))
		}
		if names != nil {
			return names, nil
		}
	}
	return nil, nil
}

// maxParts limits the parts of a container: their numbers have four digits.
const maxParts = 10000

// partitions returns the number of parts in the header of a part, or 0 if it has none. An error says that it cannot be
// reached.
func partitions(ctx context.Context, o source.Opener, uri string) (int, error) {
	file, err := o.Open(ctx, uri)
	if err != nil {
		return 0, source.Outage(err)
	}
	defer file.Close()
	head, err := source.Read(ctx, file, 0, min(headBytes, file.Size()))
	if err != nil {
		return 0, source.Outage(err)
	}
	header, err := tortilla.ParseHeader(head, file.Size())
	if err != nil || header.Partitions > maxParts {
		return 0, nil
	}
	return int(max(header.Partitions, 1)), nil
}

// wholeSets checks that all parts of a split container are opened if more than one is. A single
// part is a container like any other.
func (d *Dataset) wholeSets() error {
	sets := map[string]map[int]*model.Container{} // by the name of the whole and the number of the part
	for _, container := range d.parts {
		whole, number, ok := cutPart(container.URI)
		if !ok || container.Partitions < 2 {
			continue
		}
		if sets[whole] == nil {
			sets[whole] = map[int]*model.Container{}
		}
		sets[whole][number] = container
		for _, other := range sets[whole] {
			if other.Partitions != container.Partitions {
				return fault.WithFile(fault.At(fault.Corrupt, "header", 18,
					"split into %d files, but %d according to %s", container.Partitions, other.Partitions, other.URI),
					container.URI)
			}
		}
	}
	for whole, set := range sets {
		numbers := slices.Sorted(maps.Keys(set))
		first := set[numbers[0]]
		if len(set) == 1 || len(set) == first.Partitions {
			continue
		}
		missing := min(numbers[0], 1) // numbers begin at 0 or 1
		for set[missing] != nil {
			missing++
		}
		return fault.WithFile(fault.New(fault.NotFound, "part "+strconv.Itoa(missing),
			"%d of %d parts of %s are opened", len(set), first.Partitions, whole), first.URI)
	}
	return nil
}
