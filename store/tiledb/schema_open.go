package tiledb

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// maxSchema limits a decoded schema, in bytes: 65,536 attributes with names and filters of 1 KiB each.
const maxSchema = 64 << 20

// schema returns the schema in a file of the array.
func (a *Array) schema(ctx context.Context, name string) (*Schema, error) {
	if s := a.schemas[name]; s != nil {
		return s, nil
	}
	uri := a.uri + "/" + name
	schema, err := a.readSchema(ctx, uri)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	a.schemas[name] = schema
	return schema, nil
}

func (a *Array) readSchema(ctx context.Context, uri string) (*Schema, error) {
	file, err := a.store.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	generic, err := readGeneric(ctx, file, schemaPart, 0, file.Size(), min(maxSchema, a.o.MaxTile))
	if err != nil {
		return nil, err
	}
	if generic.encrypted {
		if a.o.Key == nil {
			return nil, errNoKey(schemaPart)
		}
		if a.key == nil {
			if a.key, err = filter.NewKey(a.o.Key); err != nil {
				return nil, err
			}
		}
	}
	data, err := generic.decode(filter.NewDecoder(a.key), schemaPart)
	if err != nil {
		return nil, err
	}
	schema, err := parseSchema(data, a.o.MaxTile)
	if err != nil {
		return nil, err
	}
	if schema.content = data; generic.encrypted {
		schema.encrypt()
	}
	return schema, nil
}

// latest returns the file of the schema that counts: the last one that was written until
// Options.Until, or the first one if all are later, as in TileDB.
func (l *arrayListing) latest(o *Options) string {
	name := l.schemas[0].name
	for _, file := range l.schemas {
		if o.Until == 0 || file.from <= o.Until {
			name = file.name
		}
	}
	return name
}

// encrypt adds the encryption filter to every pipeline. Schemas of encrypted arrays do not list it.
func (s *Schema) encrypt() {
	s.Encrypted = true
	last := filter.Filter{ID: filter.AES256GCM}
	s.Coords, s.Offsets, s.Validity = s.Coords.With(last), s.Offsets.With(last), s.Validity.With(last)
	form, _ := formatOf(s.version())
	for i := range s.Dims {
		// Otherwise the filters of Coords count, which are encrypted already.
		if len(s.Dims[i].Pipeline.Filters) > 0 || !form.dimTypes {
			s.Dims[i].Pipeline = s.Dims[i].Pipeline.With(last)
		}
	}
	for i := range s.Attrs {
		s.Attrs[i].Pipeline = s.Attrs[i].Pipeline.With(last)
	}
}
