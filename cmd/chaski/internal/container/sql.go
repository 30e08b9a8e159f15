package container

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/loader"
)

func NewSQL(env console.Env) *cobra.Command {
	var f containerFlags
	var options sqlOptions
	cmd := &cobra.Command{
		Use:  "sql [flags] QUERY CONTAINER...",
		Long: "\n\n" + functionHelp(),
		Args: atLeastTwo("QUERY and at least one CONTAINER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if options.format == "parquet" {
				if err := console.NotToTerminal("", env.Out, options.format); err != nil {
					return err
				}
			}
			question, err := readQuestion(env.In, args[0])
			if err == nil && !question.fromPython {
				err = query.Check(question.SQL) // before containers are looked for under its words
			}
			if err != nil {
				return console.UsageUnlessFault(err)
			}
			return f.warn(env, runSQL(cmd.Context(), env, &f, options, question, args[1:]))
		},
	}
	f.add(cmd.Flags())
	console.ChoiceVar(cmd.Flags(), &options.format, "format", "text", "text", "json", "parquet")
	flags.AddSQLLimits(cmd.Flags(), &options.limits)
	console.Var(cmd.Flags(), &options.stored, "stored", false)
	return cmd
}

// sqlOptions has the flags of sql.
type sqlOptions struct {
	format string
	limits tables.QueryLimits
	stored bool // tables have all rows of the file
}

// question is what Python asks.
type question struct {
	SQL        string             `json:"sql"`
	Where      []loader.Condition `json:"where"`
	fromPython bool
}

// readQuestion returns the question of an argument. For "-" standard input has it as JSON.
func readQuestion(in io.Reader, arg string) (asked question, err error) {
	if arg != "-" {
		asked.SQL, err = fromFile(arg)
		return asked, err
	}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	asked.fromPython = true
	if err := decoder.Decode(&asked); err != nil {
		return asked, console.WrongUsage(err)
	}
	return asked, nil
}

// fromFile returns the content of FILE for an argument "@FILE", and any other argument unchanged. It
// exists because Linux refuses arguments over 128 KiB, and a list of ids may be longer.
func fromFile(arg string) (string, error) {
	name, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", console.Usagef("%w", err)
	}
	return string(data), nil
}

func runSQL(ctx context.Context, env console.Env, f *containerFlags, options sqlOptions, asked question,
	paths []string) error {
	f.joins = (&loader.Subset{Where: asked.Where}).Joins()
	dataset, err := f.open(ctx, env.Files, paths)
	if err != nil {
		return err
	}
	defer dataset.Close()
	if asked.SQL == "" {
		return console.PrintInput(env.Out, dataset.About())
	}
	source := dataset.SQLTable
	var table *tables.Table
	switch {
	case options.stored:
		source = dataset.StoredTable
	case asked.fromPython:
		source, err = dataset.Tables(ctx, asked.Where, loader.Options{SQLLimits: options.limits})
	}
	if err == nil {
		table, err = query.RunWithin(ctx, asked.SQL, source, options.limits)
	}
	if err == nil {
		writer := bufio.NewWriterSize(env.Out, 1<<16)
		write := writeSQLText
		switch options.format {
		case "json":
			write = writeSQLJSON
		case "parquet":
			write = encode.Table
		}
		err = cmp.Or(write(ctx, writer, table), writer.Flush())
	}
	return console.UsageUnlessFault(fault.WithFile(err, paths[0]))
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
		for i, values := range cols {
			if i > 0 {
				line = append(line, ',')
			}
			line = values.AppendJSON(line, row)
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
		cells[i] = console.Printable(c.Name)
	}
	if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
		return err
	}
	for row := range t.Len() {
		for i, values := range cols {
			switch {
			case values.Null(row):
				cells[i] = ""
			case values.Kind() == tables.String:
				cells[i] = console.Printable(values.Str(row))
			default:
				cells[i] = console.Printable(strings.Trim(string(values.AppendJSON(nil, row)), `"`))
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// functionHelp describes the SQL functions, by groups. The query package writes it, so help and
// engine agree. Tests make the commands thousands of times in one process.
var functionHelp = sync.OnceValue(func() string {
	var b strings.Builder
	group := ""
	for _, f := range query.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		for i, line := range console.Wrap(strings.ReplaceAll(f.Doc, "`", ""), helpWidth-helpIndent) {
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
})

const (
	helpWidth  = 100 // columns: as wide as the help of the other commands
	helpIndent = 36  // columns before a description: most signatures are shorter than 34
)
