// Command reference writes the pages of the command for the site: tools/site/hooks.py runs it.
//
//	go run ./tools/site/reference FOLDER
//	go run ./tools/site/reference FOLDER man
//
// They come from the generator of cobra, as Markdown, with lines of code that fit beside the menus; or as pages of man
// for a release.
package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/cli"
)

const columns = 88

func main() {
	root := cli.Command()
	root.DisableAutoGenTag = true // a date
	pages := write
	if len(os.Args) > 2 {
		pages = func(cmd *cobra.Command, dir string) error { return doc.GenManTree(cmd, nil, dir) }
	}
	if err := pages(root, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

var (
	heading = regexp.MustCompile(`(?m)^##(#*) (.*)$`)
	special = regexp.MustCompile("[*_<\\[`]")
	flag    = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	// listed is in blocks that are lists of terms: a gap behind a term, or a line that continues an entry.
	listed = regexp.MustCompile(`\S  +\S|(?m:^   )`)
	entry  = regexp.MustCompile(`^  (\S.*?)(?:  +(\S.*))?$`)
)

// write writes the page of a command and of each command below it into dir.
func write(cmd *cobra.Command, dir string) error {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			if err := write(c, dir); err != nil {
				return err
			}
		}
	}
	cmd.Long, cmd.Example = markdown(cmd.Long), wrap(cmd.Example)
	var page bytes.Buffer
	if err := doc.GenMarkdownCustom(cmd, &page, strings.ToLower); err != nil {
		return err
	}
	text := page.String()
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		usages := flags.FlagUsages()
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = strings.Join(strings.Fields(f.Usage), " ") })
		text = strings.Replace(text, usages, flags.FlagUsagesWrapped(columns), 1)
	}
	text = heading.ReplaceAllString(text, "#$1 $2") // the name of the command is the title of its page
	// Who searches for an example wants a guide.
	exclude := "## Examples { data-search-exclude }"
	text = strings.NewReplacer("## SEE ALSO", "## See also", "## Examples", exclude).Replace(text)
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
}

// markdown returns the text of a command's help as Markdown. Its lists of terms become lists of definitions.
func markdown(help string) string {
	blocks := strings.Split(help, "\n\n")
	for i, block := range blocks {
		switch {
		case !strings.HasPrefix(block, "  "):
			blocks[i] = escape(block)
		case strings.HasPrefix(block, "  - "):
			blocks[i] = escape(strings.ReplaceAll(block[2:], "\n  ", "\n"))
		case listed.MatchString(block) && !strings.Contains(block, "  # "): // but code with comments
			blocks[i] = definitions(block)
		default:
			blocks[i] = "```text" + strings.ReplaceAll("\n"+block, "\n  ", "\n") + "\n```"
		}
	}
	return strings.Join(blocks, "\n\n")
}

// definitions returns a list of terms as a list of definitions.
func definitions(block string) string {
	var out strings.Builder
	for line := range strings.Lines(block) {
		if m := entry.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			out.WriteString("\n\n`" + m[1] + "`\n:   " + escape(m[2]))
		} else {
			out.WriteString(" " + escape(strings.TrimSpace(line)))
		}
	}
	return strings.TrimSpace(out.String())
}

func escape(text string) string {
	return flag.ReplaceAllString(special.ReplaceAllString(text, `\$0`), "`$0`")
}

// wrap breaks the lines of a shell that are too long, before a flag.
func wrap(example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		if len(line) > columns {
			if end := strings.LastIndex(line[:columns-2], " -"); end > 0 {
				lines[i] = line[:end] + " \\\n     " + line[end:]
			}
		}
	}
	return strings.Join(lines, "\n")
}
