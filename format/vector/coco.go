package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// coco is a file of COCO's JSON that is read: lists of objects, or one object.
type coco struct {
	*tree
	categories map[string]string // names by the text of their ids
	named      bool              // the first column is the name of the category
}

func newCOCO(o *Options, text *textguard.Parts) *coco {
	t := newLabels(o, &cocoFormat).newTree(false)
	c := &coco{tree: t, categories: map[string]string{}, named: t.values[0].column == cocoFormat.class}
	t.add, t.word, t.text = c.object, c.named, text
	for _, column := range t.values {
		column.optional = o.OneImage
	}
	return c
}

// idOf returns an id in JSON as one text for all spellings of a number, as pandas writes 1 as 1.0.
func idOf(raw json.RawMessage) string {
	if bytes.HasPrefix(raw, []byte(`"`)) || !bytes.ContainsAny(raw, ".eE") {
		return string(raw)
	}
	x, err := parseNumber(string(raw))
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return string(raw)
	}
	return strconv.FormatInt(int64(x), 10)
}

// object adds an element of a list.
func (c *coco) object(ctx context.Context, of record) error {
	text := func(name string) string { return unquoted(textAt(of, name)) }
	id := idOf(json.RawMessage(textAt(of, "id")))
	if id == "" && c.path[0] != "annotations" {
		return fault.New(fault.Corrupt, "id", "it has none")
	}
	switch c.path[0] {
	case "images":
		if _, err := c.declare(id, text("file_name"), sizeOf(text("width")), sizeOf(text("height"))); err != nil {
			return err
		}
		return c.charge(ctx)
	case "categories":
		if c.categories[id] = text("name"); len(c.categories) > maxWords || len(text("name")) > maxName {
			return fault.New(fault.Limit, "categories", "over %d, or a name of over %d bytes", maxWords, maxName)
		}
		return nil
	}
	number, err := c.imageNumber(idOf(json.RawMessage(textAt(of, "image_id"))))
	if err != nil {
		return err
	}
	form, err := c.choose(of)
	if err != nil {
		return err
	}
	return c.put(ctx, form, func(name string) (string, bool) {
		if name == cocoFormat.class && c.named || name == "category_id" {
			return idOf(json.RawMessage(textAt(of, "category_id"))), true
		}
		return of(name)
	}, number)
}

// layer returns the layer of the file.
func (c *coco) layer(size int64) (*Layer, error) {
	if first := c.values[0]; c.named && len(c.categories) > 0 {
		for id := range first.codes.of {
			if _, ok := c.categories[id]; !ok {
				return nil, fault.New(fault.Corrupt, "categories", "no category has the id %s", fault.Short(id))
			}
		}
		first.codes.rename(c.categories)
	} else if c.named { // numbers of categories without names
		first.words = c.o.Words
	}
	layer, err := c.labels.layer(size)
	if err == nil && c.named {
		layer.Listed = slices.Collect(maps.Values(c.categories))
	}
	return layer, err
}
