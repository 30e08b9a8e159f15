package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/arrow"
	"github.com/chaski-eo/chaski/tables/query"
)

func newSQL(s streams) *cobra.Command {
	var f containerFlags
	var given givenFlags
	var format string
	cmd := &cobra.Command{
		Use:   "sql [flags] QUERY CONTAINER...",
		Short: "Run a SELECT over the tables of containers",
		Long: `Run one SELECT over the tables of TACO containers: data, level1, … have the columns that are
stored; l0, l1, … have a row for each row of that level, with the columns of all levels up to it,
named "l0:id", "l1:id", … A streaming TACO has chunks too; the histograms that it holds among its
samples are in no table (--stored shows them). A plain scan keeps the order in the file.

The SELECT has WITH, joins, GROUP BY, HAVING, UNION, ORDER BY, LIMIT, USING SAMPLE, CASE, casts,
FILTER, EXCLUDE and queries inside of queries, and means what it means in DuckDB; docs/sql.md says
where it does not. The command chaski-full has DuckDB itself for everything else.

With --format json: {"columns":[…],"rows":[[…],…]}; binary values are {"hex":"…"}, NaN and the
infinities are texts. With --format arrow: a stream of Arrow IPC. With --given, data has only the
samples that meet its conditions. A QUERY that is @FILE is what the file holds.

` + functionHelp(),
		Example: `  chaski sql 'SELECT id, score FROM data WHERE score < 0.5 ORDER BY 2' data.tacozip
  chaski sql --format json 'SELECT "l0:id", count(*) AS n FROM l1 GROUP BY 1' data.tacozip`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("a QUERY and a CONTAINER are needed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, "text", "json", "arrow"); err != nil {
				return err
			}
			if format == "arrow" {
				if err := notTyped(s.out, format); err != nil {
					return err
				}
			}
			sql, err := fromFile(args[0])
			if err != nil {
				return err
			}
			return f.told(s, runSQL(cmd.Context(), s, &f, &given, format, sql, args[1:]))
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "text", "text, json or arrow")
	given.add(cmd.Flags())
	given.sql = s.sql
	cmd.Flags().BoolVar(&given.stored, "stored", false, "tables have every row of the file, also the histograms of a streaming TACO")
	cmd.MarkFlagsMutuallyExclusive("given", "stored")
	return cmd
}

// functionHelp lists the functions of queries by their groups.
func functionHelp() string {
	var b strings.Builder
	group := ""
	for _, f := range query.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		for i, line := range wrap(strings.ReplaceAll(f.Doc, "`", ""), helpWidth-helpIndent) {
			if i == 0 && len(f.Signature) <= helpIndent-3 {
				fmt.Fprintf(&b, "  %-*s%s\n", helpIndent-2, f.Signature, line)
				continue
			}
			if i == 0 {
				fmt.Fprintf(&b, "  %s\n", f.Signature)
			}
			fmt.Fprintf(&b, "%*s%s\n", helpIndent, "", line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	helpWidth  = 100 // columns: as wide as the help of the other commands
	helpIndent = 36  // columns before a description: most signatures are shorter than 34
)

// wrap breaks text between words into lines of at most width runes. A longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func runSQL(ctx context.Context, s streams, f *containerFlags, given *givenFlags, format, sql string, paths []string) (err error) {
	subset, err := given.subset()
	if err != nil {
		return err
	}
	f.chosen = subset.Joins()
	d, done, err := f.dataset(ctx, paths)
	if err != nil {
		return err
	}
	defer func() { done(err) }()
	from, err := given.tables(ctx, d)
	if err != nil {
		return err
	}
	t, err := query.RunOr(ctx, sql, d.SQLTables(), from, s.sql)
	if err == nil {
		w := bufio.NewWriterSize(s.out, 1<<16)
		write := writeSQLText
		switch format {
		case "json":
			write = writeSQLJSON
		case "arrow":
			write = func(ctx context.Context, w io.Writer, t *tables.Table) error { return arrow.Write(ctx, w, t) }
		}
		err = firstError(write(ctx, w, t), w.Flush())
	}
	return usage(fault.WithFile(err, paths[0]))
}

// vectors returns all columns of a table.
func vectors(ctx context.Context, t *tables.Table) ([]*tables.Vector, error) {
	out := make([]*tables.Vector, len(t.Columns()))
	for i := range out {
		var err error
		if out[i], err = t.At(ctx, i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func writeSQLJSON(ctx context.Context, w io.Writer, t *tables.Table) error {
	cols, err := vectors(ctx, t)
	if err != nil {
		return err
	}
	names := make([]string, len(cols))
	for i, c := range t.Columns() {
		names[i] = c.Name
	}
	head, err := json.Marshal(names)
	if err != nil {
		return err
	}
	line := append(append([]byte(`{"columns":`), head...), `,"rows":[`...)
	for row := range t.Len() {
		if row > 0 {
			line = append(line, ',')
		}
		line = append(line, '[')
		for i, c := range cols {
			if i > 0 {
				line = append(line, ',')
			}
			line = c.AppendJSON(line, row)
		}
		line = append(line, ']')
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = line[:0]
	}
	_, err = w.Write(append(line, "]}\n"...))
	return err
}

// writeSQLText prints a line of names and a line a row, cells between tabs.
func writeSQLText(ctx context.Context, w io.Writer, t *tables.Table) error {
	cols, err := vectors(ctx, t)
	if err != nil {
		return err
	}
	cells := make([]string, len(cols))
	for i, c := range t.Columns() {
		cells[i] = clean(c.Name)
	}
	if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
		return err
	}
	for row := range t.Len() {
		for i, c := range cols {
			switch {
			case c.Null(row):
				cells[i] = ""
			case c.Kind() == tables.Text:
				cells[i] = clean(c.Text(row))
			default:
				cells[i] = clean(strings.Trim(string(c.AppendJSON(nil, row)), `"`))
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// chooseRows returns those of the rows of a level for which a condition holds, in the order of a
// column, "COLUMN [asc | desc]". Both may be empty.
func chooseRows(ctx context.Context, t *tables.Table, rows []int, where, orderBy string) ([]int, error) {
	if where != "" {
		found, err := query.Where(ctx, t, where)
		if err != nil {
			return nil, usage(err)
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(r int) bool {
			_, ok := slices.BinarySearch(found, r)
			return !ok
		})
	}
	if orderBy == "" {
		return rows, nil
	}
	name, desc := orderColumn(orderBy)
	in := t.Take(rows)
	if in.Index(name) < 0 {
		for _, c := range t.Columns() {
			if strings.EqualFold(c.Name, name) {
				name = c.Name
				break
			}
		}
	}
	order, err := query.Sort(ctx, in, name, desc)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(order))
	for i, k := range order {
		out[i] = rows[k]
	}
	return out, nil
}

// orderColumn splits "COLUMN [asc | desc]"; the column may stand in double quotes.
func orderColumn(s string) (name string, desc bool) {
	name = strings.TrimSpace(s)
	if i := strings.LastIndexByte(name, ' '); i > 0 {
		switch word := strings.ToLower(name[i+1:]); word {
		case "asc", "desc":
			name, desc = strings.TrimSpace(name[:i]), word == "desc"
		}
	}
	if n := len(name); n > 2 && name[0] == '"' && name[n-1] == '"' {
		name = strings.ReplaceAll(name[1:n-1], `""`, `"`)
	}
	return name, desc
}
