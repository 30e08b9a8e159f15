package query

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables"
)

func textFunctions() []*function {
	one, two, three := []param{textParam}, []param{textParam, textParam}, []param{textParam, textParam, textParam}
	cut := []param{textParam, wholeParam}
	pad := []param{textParam, wholeParam, textParam}
	test := func(f func(s, x []byte) bool) evaluation {
		return ofBools(func(_ *node, r row) bool { return f(r.text(0), r.text(1)) })
	}
	cased := func(f func(rune) rune) evaluation {
		return ofTexts(func(w *textWriter, _ *node, r row) error {
			for s := r.text(0); len(s) > 0; {
				c, n := utf8.DecodeRune(s)
				w.v.data = utf8.AppendRune(w.v.data, f(c))
				s = s[n:]
			}
			return nil
		})
	}
	return []*function{
		{names: []string{"left"}, sig: "left(text, count)", doc: "the first characters; a count below 0 leaves out as many at the end", params: cut, typ: textType, eval: ofTexts(left)},
		{names: []string{"right"}, sig: "right(text, count)", doc: "the last characters; a count below 0 leaves out as many in front", params: cut, typ: textType, eval: ofTexts(right)},
		{names: []string{"substring", "substr"}, sig: "substring(text, from[, count])", doc: "the characters from a number on, the first is 1; also `substring(text FROM from FOR count)`",
			params: []param{textParam, wholeParam, wholeParam}, optional: 1, typ: textType, eval: ofTexts(substring)},
		{names: []string{"lower", "lcase"}, sig: "lower(text)", doc: "in lower case", params: one, typ: textType, eval: cased(unicode.ToLower)},
		{names: []string{"upper", "ucase"}, sig: "upper(text)", doc: "in upper case", params: one, typ: textType, eval: cased(toUpper)},
		{names: []string{"trim"}, sig: "trim(text[, characters])", doc: "without the characters (default: spaces) at both ends; also `trim(BOTH characters FROM text)`",
			params: two, optional: 1, typ: textType, eval: trimmed(true, true)},
		{names: []string{"ltrim"}, sig: "ltrim(text[, characters])", doc: "the same, in front only", params: two, optional: 1, typ: textType, eval: trimmed(true, false)},
		{names: []string{"rtrim"}, sig: "rtrim(text[, characters])", doc: "the same, at the end only", params: two, optional: 1, typ: textType, eval: trimmed(false, true)},
		{names: []string{"replace"}, sig: "replace(text, old, new)", doc: "with every old text replaced", params: three, typ: textType, eval: ofTexts(replace)},
		{names: []string{"concat"}, sig: "concat(x, …)", doc: "the texts of all values; NULLs are left out", bind: bindConcat, eval: evalConcatAll},
		{names: []string{"concat_ws"}, sig: "concat_ws(separator, x, …)", doc: "the same, with a separator", bind: bindConcat, eval: evalConcatWith},
		{names: []string{"lpad"}, sig: "lpad(text, count, fill)", doc: "padded in front, or cut, to a number of characters", params: pad, typ: textType, eval: padded(true)},
		{names: []string{"rpad"}, sig: "rpad(text, count, fill)", doc: "padded at the end, or cut, to a number of characters", params: pad, typ: textType, eval: padded(false)},
		{names: []string{"repeat"}, sig: "repeat(text, count)", doc: "as many times", params: cut, typ: textType, eval: ofTexts(repeat)},
		{names: []string{"reverse"}, sig: "reverse(text)", doc: "from back to front", params: one, typ: textType, eval: ofTexts(reverse)},
		{names: []string{"split_part"}, sig: "split_part(text, separator, number)", doc: "a part between separators; the first is 1, the last is -1",
			params: []param{textParam, textParam, wholeParam}, typ: textType, eval: ofTexts(splitPart)},
		{names: []string{"starts_with", "prefix"}, sig: "starts_with(text, part)", doc: "whether the text begins so", params: two, typ: boolType, eval: test(bytes.HasPrefix)},
		{names: []string{"ends_with", "suffix"}, sig: "ends_with(text, part)", doc: "whether the text ends so", params: two, typ: boolType, eval: test(bytes.HasSuffix)},
		{names: []string{"contains"}, sig: "contains(text, part)", doc: "whether the part is in the text; of a column of lists, as list_contains", typ: boolType, bind: bindTextContains, params: two, eval: test(bytes.Contains)},
		{names: []string{"instr", "strpos", "position"}, sig: "instr(text, part)", doc: "the number of the character where the part begins, 0 if it is not there", params: two, typ: int64Type,
			eval: ofInts(func(_ *node, r row) (int64, error) { return position(r.text(0), r.text(1)), nil })},
		{names: []string{"strlen"}, sig: "strlen(text)", doc: "the bytes of the text", params: one, typ: int64Type, eval: ofInts(func(_ *node, r row) (int64, error) { return int64(len(r.text(0))), nil })},
		{names: []string{"regexp_matches"}, sig: "regexp_matches(text, pattern[, options])", doc: "whether a regular expression of RE2 (a literal) matches a part; options are c, i, s, m",
			params: three, optional: 1, typ: boolType, prepare: preparePattern(1, 2), eval: ofBools(func(n *node, r row) bool { return n.state.(*pattern).re.Match(r.text(0)) })},
		{names: []string{"regexp_full_match"}, sig: "regexp_full_match(text, pattern[, options])", doc: "whether it matches the whole text; also `text SIMILAR TO pattern`",
			params: three, optional: 1, typ: boolType, prepare: preparePattern(1, 2), eval: ofBools(func(n *node, r row) bool { return n.state.(*pattern).whole(r.text(0)) })},
		{names: []string{"regexp_extract"}, sig: "regexp_extract(text, pattern[, group[, options]])", doc: "the first match, or a group of it; empty if there is none",
			params: []param{textParam, textParam, wholeParam, textParam}, optional: 2, typ: textType, prepare: preparePattern(1, 3), eval: ofTexts(regexpExtract)},
		{names: []string{"regexp_replace"}, sig: "regexp_replace(text, pattern, new[, options])", doc: `with the first match replaced, all of them with the option g; \1 is a group`,
			params: []param{textParam, textParam, textParam, textParam}, optional: 1, typ: textType, prepare: preparePattern(1, 3), eval: ofTexts(regexpReplace)},
	}
}

// offset returns the byte at which character count begins, the length of s if it has fewer.
func offset(s []byte, count int64) int {
	if count >= int64(len(s)) {
		return len(s) // a character takes a byte at least
	}
	at := 0
	for ; count > 0 && at < len(s); count-- {
		_, n := utf8.DecodeRune(s[at:])
		at += n
	}
	return at
}

func left(w *textWriter, _ *node, r row) error {
	s, n := r.text(0), r.whole(1)
	if n < 0 {
		n = max(0, int64(utf8.RuneCount(s))+max(n, -1<<40))
	}
	w.add(s[:offset(s, n)])
	return nil
}

func right(w *textWriter, _ *node, r row) error {
	s, n := r.text(0), r.whole(1)
	skip := -max(n, -1<<40)
	if n >= 0 {
		skip = max(0, int64(utf8.RuneCount(s))-n)
	}
	w.add(s[offset(s, skip):])
	return nil
}

// substring is DuckDB's: from counts from 1, from the end below 0, and a count below 0 goes to the left. DuckDB starts at the end
// of the text where from is behind it and count below 0, but only if it knows a column to be ASCII, which it does not of Parquet
// and Arrow.
func substring(w *textWriter, _ *node, r row) error {
	s := r.text(0)
	size := int64(utf8.RuneCount(s))
	clamp := func(x int64) int64 { return min(max(x, -1<<40), 1<<40) }
	from, count := clamp(r.whole(1)), int64(1<<41)
	if r.has(2) {
		count = clamp(r.whole(2))
	}
	switch {
	case from > 0:
		from--
	case from < 0:
		if from += size; from < 0 { // characters before the text count
			from, count = 0, max(min(count, 0), count+from)
		}
	default: // character 0 stands before the first
		if count--; count < 0 {
			count = 0
		}
	}
	if count < 0 {
		from, count = max(0, from+count), min(from, -count)
	}
	lo := offset(s, from)
	w.add(s[lo : lo+offset(s[lo:], count)])
	return nil
}

func trimmed(front, back bool) evaluation {
	return ofTexts(func(w *textWriter, _ *node, r row) error {
		s, cut := r.text(0), " "
		if r.has(1) {
			cut = string(r.text(1))
		}
		if front {
			s = bytes.TrimLeft(s, cut)
		}
		if back {
			s = bytes.TrimRight(s, cut)
		}
		w.add(s)
		return nil
	})
}

func replace(w *textWriter, _ *node, r row) error {
	s, old, with := r.text(0), r.text(1), r.text(2)
	for len(old) > 0 {
		at := bytes.Index(s, old)
		if at < 0 || !w.room(0) {
			break
		}
		w.add(s[:at], with)
		s = s[at+len(old):]
	}
	w.add(s)
	return nil
}

func repeat(w *textWriter, _ *node, r row) error {
	s, n := r.text(0), r.whole(1)
	if len(s) == 0 || n <= 0 {
		return nil
	}
	if n > maxBatchText || !w.room(int(n)*len(s)) {
		w.ev.full = true
		return nil
	}
	w.v.data = append(w.v.data, bytes.Repeat(s, int(n))...)
	return nil
}

func reverse(w *textWriter, _ *node, r row) error {
	for s := r.text(0); len(s) > 0; {
		_, n := utf8.DecodeLastRune(s)
		w.add(s[len(s)-n:])
		s = s[:len(s)-n]
	}
	return nil
}

func padded(front bool) evaluation {
	return ofTexts(func(w *textWriter, n *node, r row) error {
		s, count, fill := r.text(0), r.whole(1), r.text(2)
		missing := count - int64(utf8.RuneCount(s))
		if missing <= 0 {
			w.add(s[:offset(s, max(0, count))])
			return nil
		}
		if len(fill) == 0 {
			return fmt.Errorf("%s to %d characters with a fill that is empty", n.fn.names[0], count)
		}
		if !w.room(int(min(missing, maxBatchText+1))) { // a character takes a byte at least
			return nil
		}
		if !front {
			w.add(s)
		}
		for missing > 0 && w.room(0) {
			part := fill[:offset(fill, missing)]
			w.add(part)
			missing -= int64(utf8.RuneCount(part))
		}
		if front {
			w.add(s)
		}
		return nil
	})
}

func splitPart(w *textWriter, _ *node, r row) error {
	s, by, number := r.text(0), r.text(1), r.whole(2)
	count := int64(bytes.Count(s, by)) + 1
	if len(by) == 0 { // characters
		count = int64(utf8.RuneCount(s))
	}
	if number < 0 {
		number += count + 1
	}
	if number < 1 || number > count {
		return nil
	}
	if len(by) == 0 {
		lo := offset(s, number-1)
		w.add(s[lo : lo+offset(s[lo:], 1)])
		return nil
	}
	for ; number > 1; number-- {
		s = s[bytes.Index(s, by)+len(by):]
	}
	if end := bytes.Index(s, by); end >= 0 {
		s = s[:end]
	}
	w.add(s)
	return nil
}

func position(s, part []byte) int64 {
	at := bytes.Index(s, part)
	if at < 0 {
		return 0
	}
	return int64(utf8.RuneCount(s[:at])) + 1
}

// toUpper is DuckDB's: it has a capital of ß, which Go's table has not.
func toUpper(r rune) rune {
	if r == 'ß' {
		return 'ẞ'
	}
	return unicode.ToUpper(r)
}

func bindTextContains(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 2 && args[0].typ.Kind == tables.List {
		return bindContains(b, functions["list_contains"], args)
	}
	return b.byParams(f, args)
}

// bindConcat binds the functions that take values of any type as texts.
func bindConcat(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 0 || f.names[0] == "concat_ws" && len(args) < 2 {
		return nil, wrongArgs(f, args)
	}
	args = slices.Clone(args)
	for i, a := range args {
		var err error
		if args[i], err = b.asText(a); err != nil {
			return nil, err
		}
	}
	return b.fn(f, textType, args...)
}

func evalConcatAll(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	w := ev.texts(b.n)
	for k := range b.n {
		for i, a := range args {
			if n.args[i].typ.Kind != tables.Null && !a.null(k) {
				w.add(a.bytes(k))
			}
		}
		w.end(k)
	}
	return w.finish()
}

func evalConcatWith(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	if n.args[0].typ.Kind == tables.Null {
		return allNull(textType, b.n), nil
	}
	w := ev.texts(b.n)
	for k := range b.n {
		if args[0].null(k) {
			w.null(k)
			continue
		}
		first := true
		for i, a := range args[1:] {
			if n.args[i+1].typ.Kind == tables.Null || a.null(k) {
				continue
			}
			if !first {
				w.add(args[0].bytes(k))
			}
			w.add(a.bytes(k))
			first = false
		}
		w.end(k)
	}
	return w.finish()
}

// pattern is a regular expression with its options.
type pattern struct {
	re     *regexp.Regexp
	full   *regexp.Regexp
	global bool
}

// whole reports whether the expression matches the whole of a text.
func (p *pattern) whole(s []byte) bool { return p.full.Match(s) }

// maxPattern bounds a regular expression, in bytes: matching takes time and memory in proportion to its size.
const maxPattern = 1 << 10

// preparePattern compiles the argument at, with the options of another that may be missing.
func preparePattern(at, options int) func(n *node) (any, error) {
	return func(n *node) (any, error) {
		text, err := literalText(n, at)
		if err != nil {
			return nil, err
		}
		p := &pattern{}
		flags := "s" // RE2 as DuckDB sets it: a point is any character
		if options < len(n.args) {
			given, err := literalText(n, options)
			if err != nil {
				return nil, err
			}
			for _, o := range given {
				switch o {
				case 'c':
				case 'i':
					flags += "i"
				case 'g':
					p.global = true
				case 's':
				case 'm', 'n', 'p':
					flags = string(bytes.ReplaceAll([]byte(flags), []byte("s"), nil))
				default:
					return nil, unsupported("the option %q of %s", o, n.fn.names[0])
				}
			}
		}
		if len(text) > maxPattern {
			return nil, unsupported("a regular expression of %d bytes", len(text))
		}
		prefix := ""
		if flags != "" {
			prefix = "(?" + flags + ")"
		}
		if p.re, err = regexp.Compile(prefix + text); err != nil {
			return nil, binderError("%v", err)
		}
		p.full, err = regexp.Compile(prefix + `\A(?:` + text + `)\z`)
		return p, err
	}
}

func regexpExtract(w *textWriter, n *node, r row) error {
	group := int64(0)
	if r.has(2) {
		group = r.whole(2)
	}
	p := n.state.(*pattern)
	if group < 0 || group > int64(p.re.NumSubexp()) {
		return fmt.Errorf("regexp_extract has no group %d: the pattern has %d", group, p.re.NumSubexp())
	}
	s := r.text(0)
	if at := p.re.FindSubmatchIndex(s); at != nil && at[2*group] >= 0 {
		w.add(s[at[2*group]:at[2*group+1]])
	}
	return nil
}

func regexpReplace(w *textWriter, n *node, r row) error {
	p, s, with := n.state.(*pattern), r.text(0), r.text(2)
	most := 1
	if p.global {
		most = -1
	}
	end := 0
	for _, at := range p.re.FindAllSubmatchIndex(s, most) {
		if !w.room(0) {
			break
		}
		w.add(s[end:at[0]])
		rewrite(w, with, s, at)
		end = at[1]
	}
	w.add(s[end:])
	return nil
}

// rewrite writes a replacement, in which \0 to \9 are groups of the match and \\ is a backslash.
func rewrite(w *textWriter, with, s []byte, at []int) {
	for {
		i := bytes.IndexByte(with, '\\')
		if i < 0 || i+1 == len(with) {
			w.add(with)
			return
		}
		w.add(with[:i])
		c := with[i+1]
		if g := 2 * int(c-'0'); c < '0' || c > '9' {
			w.add(with[i+1 : i+2])
		} else if g < len(at) && at[g] >= 0 {
			w.add(s[at[g]:at[g+1]])
		}
		with = with[i+2:]
	}
}
