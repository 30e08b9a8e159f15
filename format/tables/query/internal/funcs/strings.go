package funcs

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Strings returns the functions of strings.
func Strings() []*bind.Function {
	return []*bind.Function{
		bind.Define("left(string, count)", "the first characters; a negative count leaves out as many at the end",
			sql.String, eval.Strings(left)),
		bind.Define("right(string, count)", "the last characters; a negative count leaves out as many at the start",
			sql.String, eval.Strings(right)),
		bind.Define("substring(string, from[, count]) substr", "the characters from number from on, counted from 1",
			sql.String, eval.Strings(substring)),
		bind.Define("lower(string) lcase", "in lower case", sql.String, mapped(unicode.ToLower)),
		bind.Define("upper(string) ucase", "in upper case", sql.String, mapped(toUpper)),
		bind.Define("trim(string)", "without spaces at both ends", sql.String, trimmed(bytes.Trim)),
		bind.Define("ltrim(string)", "without spaces at the start", sql.String, trimmed(bytes.TrimLeft)),
		bind.Define("rtrim(string)", "without spaces at the end", sql.String, trimmed(bytes.TrimRight)),
		bind.Define("replace(string, old, new)", "with every old replaced by new", sql.String,
			eval.Strings(replace)),
		bind.Define("concat(x, …)", "the values as one string; ignores NULLs", sql.String, evalConcatAll).
			Bound(bindConcat),
		bind.Define("repeat(string, count)", "the string count times", sql.String, eval.Strings(repeat)),
		bind.Define("split_part(string, separator, number)",
			"the part with a number between separators; the first is 1, the last is -1", sql.String,
			eval.Strings(splitPart)),
		bind.Define("starts_with(string, part) prefix", "whether the string begins with part", sql.Bool,
			test(bytes.HasPrefix)),
		bind.Define("ends_with(string, part) suffix", "whether the string ends with part", sql.Bool,
			test(bytes.HasSuffix)),
		bind.Define("contains(string, part)",
			"whether part is in the string; for a column of lists, as list_contains", sql.Bool,
			test(bytes.Contains)).Bound(bindStringOrListContains),
		bind.Define("regexp_matches(string, pattern[, options])",
			"whether a regular expression matches a part of the string; the pattern is a literal in the syntax of "+
				"RE2; options are c, i, s, m", sql.Bool, eval.Bools(func(n *eval.Node, r eval.Row) bool {
				return n.State.(*regexp.Regexp).Match(r.Bytes(0))
			})).Prepared(preparePattern(2)),
		bind.Define("regexp_extract(string, pattern[, group[, options]])",
			"the first match, or a group of it; empty if nothing matches", sql.String,
			eval.Strings(regexpExtract)).Prepared(preparePattern(3)),
	}
}

// test returns the evaluation of a condition on two strings.
func test(f func(s, x []byte) bool) eval.Evaluation {
	return eval.Bools(func(_ *eval.Node, r eval.Row) bool { return f(r.Bytes(0), r.Bytes(1)) })
}

// mapped returns the evaluation of a function of each character.
func mapped(f func(rune) rune) eval.Evaluation {
	return eval.Strings(func(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
		for rest := r.Bytes(0); len(rest) > 0 && w.HasRoom(0); {
			char, size := utf8.DecodeRune(rest)
			w.Data = utf8.AppendRune(w.Data, f(char))
			rest = rest[size:]
		}
		return nil
	})
}

// trimmed returns the evaluation of a function that cuts spaces off.
func trimmed(trim func(s []byte, cutset string) []byte) eval.Evaluation {
	return eval.Strings(func(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
		w.Add(trim(r.Bytes(0), " "))
		return nil
	})
}

// offset returns the byte at which character number count begins, or the length of s if it has fewer characters.
func offset(s []byte, count int64) int {
	if count >= int64(len(s)) {
		return len(s) // a character takes a byte at least
	}
	pos := 0
	for ; count > 0 && pos < len(s); count-- {
		_, n := utf8.DecodeRune(s[pos:])
		pos += n
	}
	return pos
}

func left(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	text, count := r.Bytes(0), r.Int(1)
	if count < 0 {
		count = max(0, int64(utf8.RuneCount(text))+max(count, -1<<40))
	}
	w.Add(text[:offset(text, count)])
	return nil
}

func right(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	text, count := r.Bytes(0), r.Int(1)
	skip := -max(count, -1<<40)
	if count >= 0 {
		skip = max(0, int64(utf8.RuneCount(text))-count)
	}
	w.Add(text[offset(text, skip):])
	return nil
}

// substring is DuckDB's: from counts from 1, or from the end if it is negative; a negative count extends to the left.
// If from is past the end and count negative, DuckDB starts at the end, but only if it knows a column to be ASCII,
// which it never does for Parquet and Arrow.
func substring(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	text := r.Bytes(0)
	size := int64(utf8.RuneCount(text))
	clamp := func(x int64) int64 { return min(max(x, -1<<40), 1<<40) }
	start, count := clamp(r.Int(1)), int64(1<<41)
	if len(r.Args) > 2 {
		count = clamp(r.Int(2))
	}
	switch {
	case start > 0:
		start--
	case start < 0:
		if start += size; start < 0 { // characters before the start count
			start, count = 0, max(min(count, 0), count+start)
		}
	default: // character 0 is before the first
		if count--; count < 0 {
			count = 0
		}
	}
	if count < 0 {
		start, count = max(0, start+count), min(start, -count)
	}
	lo := offset(text, start)
	w.Add(text[lo : lo+offset(text[lo:], count)])
	return nil
}

func replace(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	rest, old, replacement := r.Bytes(0), r.Bytes(1), r.Bytes(2)
	for len(old) > 0 {
		found := bytes.Index(rest, old)
		if found < 0 || !w.Read(found+len(old)) {
			break
		}
		w.Add(rest[:found], replacement)
		rest = rest[found+len(old):]
	}
	w.Add(rest)
	return nil
}

func repeat(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	text, count := r.Bytes(0), r.Int(1)
	if len(text) == 0 || count <= 0 {
		return nil
	}
	// The count is cut before it is multiplied, so the product does not overflow.
	if !w.HasRoom(int(min(count, vec.MaxBatchBytes+1)) * len(text)) {
		return nil
	}
	w.Data = append(w.Data, bytes.Repeat(text, int(count))...)
	return nil
}

func splitPart(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
	text, sep, number := r.Bytes(0), r.Bytes(1), r.Int(2)
	count := int64(bytes.Count(text, sep)) + 1
	if len(sep) == 0 { // characters
		count = int64(utf8.RuneCount(text))
	}
	if number < 0 {
		number += count + 1
	}
	if number < 1 || number > count {
		return nil
	}
	if len(sep) == 0 {
		lo := offset(text, number-1)
		w.Add(text[lo : lo+offset(text[lo:], 1)])
		return nil
	}
	for ; number > 1; number-- {
		text = text[bytes.Index(text, sep)+len(sep):]
	}
	if end := bytes.Index(text, sep); end >= 0 {
		text = text[:end]
	}
	w.Add(text)
	return nil
}

// toUpper is DuckDB's: it has a capital ß, which Go's table does not.
func toUpper(r rune) rune {
	if r == 'ß' {
		return 'ẞ'
	}
	return unicode.ToUpper(r)
}

// bindStringOrListContains binds CONTAINS, which has one meaning for strings and one for lists.
func bindStringOrListContains(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) == 2 && args[0].Type.Kind == tables.List {
		return bindContains(b, b.Library.Functions["list_contains"], args)
	}
	return b.ByParams(f, args)
}

// bindConcat binds CONCAT, which casts all values to strings.
func bindConcat(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) == 0 {
		return b.WrongArguments(f, args)
	}
	texts := make([]*eval.Node, len(args))
	for i, arg := range args {
		texts[i] = b.AsString(arg)
	}
	return b.Call(f, sql.String, texts...)
}

func evalConcatAll(ev *eval.Evaluator, n *eval.Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
	writer := ev.Strings(b.N)
	for row := range b.N {
		for i, values := range args {
			if n.Args[i].Type.Kind != tables.Null && !values.Null(row) {
				writer.Add(values.Bytes(row))
			}
		}
		writer.End(row)
	}
	return writer.Finish()
}

// maxPattern bounds a regular expression, in bytes: the time and memory of a match grow with its size.
const maxPattern = 1 << 10

// preparePattern compiles argument 1, with the options in another argument, which may be missing.
func preparePattern(options int) func(n *eval.Node) (any, error) {
	return func(n *eval.Node) (any, error) {
		text, err := bind.LiteralString(n, 1)
		if err != nil {
			return nil, err
		}
		// As in DuckDB, a point matches a newline too.
		flags := "(?s)"
		if options < len(n.Args) {
			letters, err := bind.LiteralString(n, options)
			if err != nil {
				return nil, err
			}
			for _, letter := range letters {
				switch letter {
				case 'c', 's':
				case 'i':
					flags += "(?i)"
				case 'm', 'n', 'p':
					flags += "(?-s)"
				default:
					return nil, sql.Unsupported("the option %q of %s", letter, n.Call.Name)
				}
			}
		}
		if len(text) > maxPattern {
			return nil, sql.Unsupported("a regular expression of %d bytes", len(text))
		}
		compiled, err := regexp.Compile(flags + text)
		if err != nil {
			return nil, sql.Bind("%v", err)
		}
		return compiled, nil
	}
}

func regexpExtract(w *vec.StringWriter, n *eval.Node, r eval.Row) error {
	group := int64(0)
	if len(r.Args) > 2 {
		group = r.Int(2)
	}
	pattern := n.State.(*regexp.Regexp)
	if group < 0 || group > int64(pattern.NumSubexp()) {
		return fmt.Errorf("regexp_extract has no group %d: the pattern has %d", group, pattern.NumSubexp())
	}
	text := r.Bytes(0)
	if match := pattern.FindSubmatchIndex(text); match != nil && match[2*group] >= 0 {
		w.Add(text[match[2*group]:match[2*group+1]])
	}
	return nil
}
