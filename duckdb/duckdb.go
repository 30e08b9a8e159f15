// Package duckdb runs SQL over tables of package table by DuckDB, in process and in C++. It is a
// module of its own, so that a program that does not import it downloads nothing of DuckDB.
//
// A query is one SELECT (or what DuckDB takes for one: WITH, FROM first, VALUES). It sees the given
// tables and nothing else: files, the network, extensions and settings are locked away before it
// runs, memory is bounded, and nothing is written to disk.
package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/taco/query"
	"github.com/chaski-eo/chaski/taco/table"
)

// Memory is what DuckDB may take for a query, beside the columns that are loaded.
const Memory = "1GB"

// Run runs a query over the tables with the given names. Only those that it names are opened, and only
// the columns that it uses are loaded. The result is complete: the tables may be closed then.
func Run(ctx context.Context, query string, names []string, tables query.Tables) (*table.Table, error) {
	if err := single(query); err != nil {
		return nil, err
	}
	connector, err := duck.NewConnector("", nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text := strings.ToLower(query)
	for i, name := range names {
		if !strings.Contains(text, strings.ToLower(name)) {
			continue // a table that is not named need not be opened
		}
		t, err := tables(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := addTable(ctx, conn, i, name, t); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "table "+name, fault.NoOffset, err)
		}
	}
	for _, s := range settings() {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	var out *table.Table
	err = conn.Raw(func(c any) (err error) {
		out, err = run(ctx, c.(*duck.Conn), query)
		return err
	})
	return out, kind(err)
}

// settings lock everything away but the tables; the last keeps a query from unlocking it.
func settings() []string {
	return []string{
		"SET threads = " + fmt.Sprint(min(runtime.GOMAXPROCS(0), 8)),
		"SET memory_limit = '" + Memory + "'",
		"SET temp_directory = ''",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	}
}

func run(ctx context.Context, c *duck.Conn, query string) (*table.Table, error) {
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	st := prepared.(*duck.Stmt)
	defer st.Close()
	if typ, err := st.StatementType(); err != nil || typ != duck.STATEMENT_TYPE_SELECT {
		return nil, errors.Join(errors.New("only a SELECT is run"), err)
	}
	if st.NumInput() > 0 {
		return nil, errors.New("a query without parameters is run")
	}
	n, err := st.ColumnCount()
	if err != nil {
		return nil, err
	}
	names, types := make([]string, n), make([]duck.TypeInfo, n)
	for i := range n {
		if names[i], err = st.ColumnName(i); err == nil {
			types[i], err = st.ColumnTypeInfo(i)
		}
		if err != nil {
			return nil, err
		}
	}
	rows, err := st.QueryContext(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells, err := collect(rows, n)
	if err != nil {
		return nil, err
	}
	cols := make([]*table.Vector, n)
	for i := range cols {
		if cols[i], err = vector(types[i], cells[i]); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "column "+names[i], fault.NoOffset, err)
		}
	}
	return table.FromVectors(names, cols), nil
}

// collect reads all rows, column by column.
func collect(rows driver.Rows, n int) ([][]any, error) {
	cells := make([][]any, n)
	row := make([]driver.Value, n)
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return cells, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			cells[i] = append(cells[i], v)
		}
	}
}

// kind gives DuckDB's errors the kinds that package query gives; those of a query that is wrong have
// none.
func kind(err error) error {
	var e *duck.Error
	if !errors.As(err, &e) {
		return err
	}
	msg, _, _ := strings.Cut(e.Msg, "\n")
	switch {
	case e.Type == duck.ErrorTypeCatalog, strings.Contains(msg, "not found in FROM clause"):
		return fault.New(fault.NotFound, "query", fault.NoOffset, "%s", msg)
	case e.Type == duck.ErrorTypeOutOfMemory:
		return fault.New(fault.Limit, "query", fault.NoOffset, "%s", msg)
	case e.Type == duck.ErrorTypePermission, e.Type == duck.ErrorTypeIO, e.Type == duck.ErrorTypeMissingExtension,
		e.Type == duck.ErrorTypeAutoLoad, e.Type == duck.ErrorTypeNotImplemented:
		return fault.New(fault.Unsupported, "query", fault.NoOffset, "%s", msg)
	}
	return errors.New(msg)
}

// single refuses a text of more than one statement: the driver runs all but the last before anyone
// can look at them.
func single(query string) error {
	if strings.IndexByte(query, 0) >= 0 {
		return errors.New("a query with a zero byte")
	}
	for at := 0; at < len(query); {
		if query[at] == ';' {
			rest := query[at+1:]
			for n := blank(rest); n > 0 && n < len(rest) || strings.HasPrefix(rest, ";"); n = blank(rest) {
				rest = rest[max(n, 1):]
			}
			if blank(rest) < len(rest) {
				return errors.New("more than one statement: only a single SELECT is run")
			}
			return nil
		}
		at += token(query[at:])
	}
	return nil
}

// blank returns the length of the blanks and comments in front.
func blank(s string) int {
	at := 0
	for at < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f\v", s[at]) >= 0:
			at++
		case strings.HasPrefix(s[at:], "--"), strings.HasPrefix(s[at:], "/*"):
			at += token(s[at:])
		default:
			return at
		}
	}
	return at
}

// token returns the length of what must not be looked into: a string, a quoted name, a comment; else 1.
func token(s string) int {
	until := func(end string, from int) int {
		if i := strings.Index(s[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(s)
	}
	switch {
	case strings.HasPrefix(s, "--"):
		return until("\n", 2)
	case strings.HasPrefix(s, "/*"):
		return until("*/", 2) // comments inside of comments end it early: more is refused, not less
	case (s[0] == 'e' || s[0] == 'E') && len(s) > 1 && s[1] == '\'':
		for i := 2; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '\'':
				return i + 1
			}
		}
		return len(s)
	case s[0] == '\'', s[0] == '"': // a doubled quote begins another string at once
		return until(s[:1], 1)
	case s[0] == '$':
		n := 1
		for n < len(s) && (s[n] == '_' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || n > 1 && s[n] >= '0' && s[n] <= '9') {
			n++
		}
		if n < len(s) && s[n] == '$' {
			return until(s[:n+1], n+1)
		}
	}
	return 1
}
