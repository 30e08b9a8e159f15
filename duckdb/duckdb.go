// Package duckdb runs SQL over tables of package tables with DuckDB, in process and in C++. It is a
// module of its own, so that programs that do not import it do not download DuckDB.
//
// A query is one SELECT (or what DuckDB accepts as one: WITH, FROM first, VALUES). It sees the given
// tables and nothing else: files, the network, extensions and settings are disabled before it runs,
// functions that log, profile or run another query are refused, memory is bounded including the memory of
// the result, and nothing is written to disk.
package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"runtime"
	"slices"
	"strconv"
	"strings"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// Memory bounds the memory of DuckDB for a query and its result, beside the loaded columns.
const Memory = "1GB"

// Bounds of a query, whose result may have far more rows than its tables.
var (
	memory    = Memory         // inside DuckDB
	maxResult = int64(4) << 30 // of the result as Go values, in bytes
)

// Run runs a query over the tables with the given names. It opens only the tables that the query names, and loads only
// the columns that it uses. The result is complete: the caller may close the tables.
func Run(ctx context.Context, query string, names []string, open query.Tables) (*tables.Table, error) {
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
			continue // opening a table may read a container
		}
		t, err := open(ctx, name)
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
	var out *tables.Table
	err = conn.Raw(func(c any) (err error) {
		out, err = run(ctx, c.(*duck.Conn), query)
		return err
	})
	return out, kind(err)
}

// settings disable everything except the tables. The last one keeps the query from enabling it again.
func settings() []string {
	return []string{
		"SET threads = " + fmt.Sprint(min(runtime.GOMAXPROCS(0), 8)),
		"SET memory_limit = '" + memory + "'",
		"SET temp_directory = ''",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	}
}

func run(ctx context.Context, c *duck.Conn, query string) (*tables.Table, error) {
	if err := harmless(ctx, c, query); err != nil {
		return nil, err
	}
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
		return nil, errors.New("a query with parameters is not run")
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
	cells, err := result(ctx, c, query, n)
	if err != nil {
		return nil, err
	}
	cols := make([]*tables.Vector, n)
	for i := range cols {
		if cols[i], err = vector(types[i], cells[i]); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "column "+names[i], fault.NoOffset, err)
		}
	}
	return tables.FromVectors(names, cols), nil
}

// effects are functions of a SELECT that do more than return rows: they write logs and profiles, also to standard
// output, change how the next query is parsed, or run a query that harmless has not checked.
var effects = []string{
	"arrow_scan", "arrow_scan_dumb", "checkpoint", "disable_logging", "disable_peg_parser", "disable_profiling",
	"enable_logging", "enable_peg_parser",
	"enable_profiling", "force_checkpoint", "json_execute_serialized_sql", "query", "truncate_duckdb_logs", "write_log",
}

// harmless refuses a query that calls one of effects anywhere.
func harmless(ctx context.Context, c *duck.Conn, query string) error {
	refused := func(name string) error {
		return fault.New(fault.Unsupported, "query", fault.NoOffset, "the function %s is not run", name)
	}
	cells, err := cellsOf(ctx, c, "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", 1,
		driver.NamedValue{Ordinal: 1, Value: query})
	if err != nil {
		return err
	}
	var tree any
	if text, ok := cells[0][0].(string); ok {
		if err := json.Unmarshal([]byte(text), &tree); err != nil {
			return err
		}
	}
	if top, ok := tree.(map[string]any); ok && top["error"] == false {
		if name := calls(tree); name != "" {
			return refused(name)
		}
		return nil
	}
	// DuckDB cannot serialize the query: it has an error, or is of another form. Look for the names in its source.
	text := strings.ToLower(query)
	for _, name := range effects {
		if strings.Contains(text, name) {
			return refused(name)
		}
	}
	return nil
}

// calls returns one of effects that is called in the tree of a query, or "".
func calls(tree any) (name string) {
	switch t := tree.(type) {
	case []any:
		for _, x := range t {
			if name = calls(x); name != "" {
				return name
			}
		}
	case map[string]any:
		if f, ok := t["function_name"].(string); ok && slices.Contains(effects, strings.ToLower(f)) {
			return f
		}
		for _, x := range t {
			if name = calls(x); name != "" {
				return name
			}
		}
	}
	return ""
}

// result runs a SELECT of n columns. DuckDB first writes the rows to a table, because it does not count the rows of a
// result that it holds for its driver against memory_limit.
func result(ctx context.Context, c *duck.Conn, query string, n int) ([][]any, error) {
	names := make([]string, n) // the query may have two columns of one name
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	// The line break ends a comment at the end of the query.
	sql := "CREATE TEMP TABLE chaski_result(" + strings.Join(names, ", ") + ") AS FROM (" + statement(query) + "\n)"
	if _, err := c.ExecContext(ctx, sql, nil); err != nil {
		return nil, err
	}
	return cellsOf(ctx, c, "FROM temp.chaski_result", n)
}

// cellsOf returns the result of one of our own queries, column by column.
func cellsOf(ctx context.Context, c *duck.Conn, sql string, n int, args ...driver.NamedValue) ([][]any, error) {
	rows, err := c.QueryContext(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return collect(rows, n)
}

// statement returns the only statement of a query, without the semicolon after it.
func statement(query string) string {
	for at := 0; at < len(query); at += token(query[at:]) {
		if query[at] == ';' {
			return query[:at]
		}
	}
	return query
}

// collect reads all rows, column by column.
func collect(rows driver.Rows, n int) ([][]any, error) {
	cells := make([][]any, n)
	row := make([]driver.Value, n)
	for held := int64(0); ; {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return cells, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			cells[i] = append(cells[i], v)
			held += size(v)
		}
		if held > maxResult {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset,
				"its result takes more than %d bytes", maxResult)
		}
	}
}

// size returns about how many bytes a cell takes.
func size(v any) int64 {
	const word, boxed = 16, 8
	n := int64(word + boxed)
	switch v := v.(type) {
	case nil, bool:
		return word
	case string:
		n += boxed + int64(len(v))
	case []byte:
		n += word + int64(len(v))
	case []any:
		n += word
		for _, x := range v {
			n += size(x)
		}
	case map[string]any:
		n += 2 * word
		for _, x := range v {
			n += 2*word + size(x)
		}
	case *big.Int, duck.Decimal:
		n += 2 * word
	}
	return n
}

// kind gives DuckDB's errors the kinds that package query has. Errors in the query itself have none.
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

// single refuses more than one statement: the driver runs all but the last one when it prepares them.
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

// blank returns the length of the leading blanks and comments.
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

// token returns the length of a leading string, quoted name or comment, in which a semicolon ends nothing; otherwise 1.
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
		return until("*/", 2) // nested comments end it early, so that more is refused and not less
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
	case s[0] == '\'', s[0] == '"': // after a doubled quote the next call reads on
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
