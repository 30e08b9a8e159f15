package rows

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxIDs bounds a list of ids in bytes: 10 million names of 100 bytes.
const maxIDs = 1 << 30

// maxID bounds an id in bytes: paths of Linux have at most 4 KiB.
const maxID = 64 << 10

// readIDs reads a list of ids: the lines of a text file or, as PATH::COLUMN, a column of a table. Of a CSV of one
// column that is not named, head is the first line: a header, or an id.
func readIDs(ctx context.Context, list string, o resources.Options) (ids []string, head string, err error) {
	file, column, named := strings.Cut(list, source.Separator)
	table := file
	// FILE::CAPTION+::COLUMN: a column beside one that has the rest of each line.
	if caption, id, ok := strings.Cut(column, source.Separator); ok && strings.HasSuffix(caption, texts.ToEnd) {
		table, column = file+source.Separator+caption, id
	}
	lines := !named && strings.EqualFold(path.Ext(source.Name(file)), ".txt")
	var noMember error
	if magic.Named(source.Name(file)).Class == magic.Items {
		// A list of ids, also of one member of each of its objects, or else a column.
		if ids, _, err = columnOf(ctx, strings.TrimSuffix(list, source.Separator), texts.ValueColumn, o); err == nil {
			return ids, "", nil
		}
		if named {
			noMember = fault.WithFile(err, file)
		}
	}
	if !lines && magic.Named(source.Name(file)).Class.Table() {
		if ids, head, err = columnOf(ctx, table, column, o); err != nil {
			return nil, "", cmp.Or(noMember, fault.WithFile(err, file))
		}
		if column != "" || head == "0" || magic.Named(source.Name(file)).Class != magic.CSV {
			head = "" // pandas calls a column without a name "0"
		}
		return ids, head, nil
	}
	if named {
		return nil, "", fmt.Errorf("%q is no table (.csv, .tsv, .parquet, .json), which a column needs", file)
	}
	opened, err := o.Opener.Open(ctx, file)
	if err != nil {
		return nil, "", fault.WithFile(err, file)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if opened.Size() > maxIDs {
		return nil, "", fault.WithFile(fault.New(fault.Limit, "ids", "%d bytes, at most %d",
			opened.Size(), maxIDs), file)
	}
	text := bufio.NewScanner(io.LimitReader(source.Sequential(ctx, opened), maxIDs))
	text.Buffer(nil, maxID)
	for number := 1; text.Scan(); number++ {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		id := strings.TrimSpace(strings.TrimPrefix(text.Text(), texts.Mark))
		if !utf8.ValidString(id) || strings.Contains(id, "\x00") {
			return nil, "", fault.WithFile(fault.New(fault.Unsupported, "ids", "line %d is no text in "+
				"UTF-8: save the list as lines of UTF-8, .csv, .parquet or .json", number), file)
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	if errors.Is(text.Err(), bufio.ErrTooLong) {
		return nil, "", fault.WithFile(fault.New(fault.Limit, "ids", "a line of over %d bytes", maxID),
			file)
	}
	return ids, "", fault.WithFile(text.Err(), file)
}

// columnOf reads a column of a table as strings, and returns its name; "" is the only one. Other columns in braces, or
// an expression of SQL over them, are one, too.
func columnOf(ctx context.Context, file, name string, o resources.Options) (ids []string, column string, err error) {
	parts := inBraces([]string{name})
	table, closer, err := catalog.ReadTable(ctx, o.Opener, file, append(parts, name)...)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if cols := table.Columns(); name == "" && len(cols) == 1 {
		name = cols[0].Name
	} else if name == "" {
		var names []string
		for _, c := range cols {
			names = append(names, c.Name)
		}
		return nil, "", fault.New(fault.NotFound, "ids", "name the column with the ids, as in %s::%s; "+
			"there are %s", path.Base(file), names[0], fault.Names(names))
	}
	switch {
	case table.Index(name) < 0 && len(parts) > 0:
		ids, err = joined(ctx, table, name)
	case table.Index(name) < 0 && inSQL.MatchString(name):
		ids, err = computed(ctx, numbered(table), name)
	default:
		ids, err = table.Names(ctx, name)
	}
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" }), name, err
}

// joined returns the texts that a name with the columns of a table in braces becomes, "" where one is null.
func joined(ctx context.Context, table *tables.Table, name string) ([]string, error) {
	made, err := column.Filled(name, false, func(part string) (*Column, error) {
		texts, err := table.Names(ctx, part)
		return textsOrNull(texts), err
	})
	if err != nil {
		return nil, err
	}
	ids := make([]string, table.Len())
	return ids, made.Scan(ctx, func(row int64, v catalog.Value) error {
		ids[row] = string(v.Text)
		return nil
	})
}

// checkIDs returns an error about ids that name no sample, unless they are dropped, or several.
func checkIDs(found *join.Join, list, column string, dropped bool, o resources.Options) error {
	const inColumn = `name the column that holds it (id_column), or several, such as "{scene}_{id}"`
	way := "write more of the path, or " + inColumn
	if column != "" {
		way = fmt.Sprintf("write it as the column %q has it", column)
	}
	if err := found.Err("ids", way); err != nil {
		return err
	}
	missing, all := found.Missing()
	if len(missing) == 0 {
		return nil
	}
	some := fmt.Sprintf("%q", missing[:min(3, len(missing))])
	if dropped {
		o.Logger.Warn("ids that name no sample are left out", "ids", list, "missing", len(missing), "of", all,
			"such as", some)
		return nil
	}
	if len(missing) == all {
		columns := ""
		if strings.EqualFold(path.Ext(list), ".txt") && strings.ContainsAny(missing[0], ",;\t ") {
			columns = fmt.Sprintf("; if its lines have columns, name one, as in %s::0", list)
		} else if column == "" && strings.Contains(found.Example, "/") {
			columns = ": " + inColumn
		}
		return fault.New(fault.NotFound, "ids", "no id of %s names a sample, such as %s: samples are "+
			"called like %q%s", list, some, found.Example, columns)
	}
	return fault.New(fault.NotFound, "ids", "%d of %d ids of %s name no sample, such as %s: missing "+
		"\"drop\" leaves them out", len(missing), all, list, some)
}

// listed keeps the samples that the list of a subset names.
func (s *Selector) listed(ctx context.Context, subset *spec.Subset) error {
	ids, head, err := readIDs(ctx, subset.IDList, s.options)
	if err != nil {
		return err
	}
	if head != "" {
		found, err := s.table.match(ctx, []string{head}, subset.IDColumn, false)
		if err != nil {
			return err
		}
		if !found.None() && found.Err("", "") == nil {
			ids = append([]string{head}, ids...)
		}
	}
	found, err := s.table.match(ctx, ids, subset.IDColumn, false)
	if err == nil {
		err = checkIDs(found, path.Base(subset.IDList), subset.IDColumn, subset.Missing == spec.MissingDrop, s.options)
	}
	if err != nil {
		return err
	}
	s.Meet(func(yield func(int32) bool) {
		for row := range found.Matches() {
			if !yield(row) {
				return
			}
		}
	})
	return nil
}
