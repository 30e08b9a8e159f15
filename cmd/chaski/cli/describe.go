package cli

import (
	"cmp"
	"embed"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// help has a text for each command, called by its path, such as bench-load.txt: the short description, the long one,
// below "Examples:" the examples, and below "Flags:" what its flags mean. flags.txt has the flags that several commands
// share.
//
//go:embed help
var help embed.FS

// describe gives a command, its flags and all below it their texts, and shells the values of flags. What a command
// says about itself comes after its text.
func describe(cmd *cobra.Command, shared map[string]string) {
	path := strings.Fields(cmd.CommandPath())
	name := strings.Join(path[min(1, len(path)-1):], "-")
	text, err := help.ReadFile("help/" + name + ".txt")
	if err != nil {
		return // cobra's own commands have theirs
	}
	intro, flags, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n\nFlags:\n\n")
	short, long, _ := strings.Cut(intro, "\n\n")
	long, examples, _ := strings.Cut(long, "\n\nExamples:\n\n")
	cmd.Short, cmd.Long, cmd.Example = short, long+cmd.Long, examples
	usages := flagTexts(flags)
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		console.Complete(cmd, flag)
		if flag.Usage == "" {
			flag.Usage = cmp.Or(usages[flag.Name], shared[flag.Name])
		}
	})
	for _, below := range cmd.Commands() {
		describe(below, shared)
	}
}

// flagTexts returns the meanings of flags by their names. A flag begins a line with "--NAME", and other lines go on.
func flagTexts(text string) map[string]string {
	texts := map[string]string{}
	for flag := range strings.SplitSeq("\n"+text, "\n--") {
		name, meaning, _ := strings.Cut(flag, " ")
		texts[name] = strings.Join(strings.Fields(meaning), " ")
	}
	return texts
}

// sharedFlags returns the meanings of the flags that several commands share.
func sharedFlags() map[string]string {
	text, err := help.ReadFile("help/flags.txt")
	if err != nil {
		panic("chaski: " + err.Error()) // it is embedded
	}
	return flagTexts(string(text))
}

// flagColumns is the width of the text of a flag in a help: behind the longest name, of 35 columns, it ends at column
// 110, as the lines above the flags do.
const flagColumns = 75

// wrapFlags makes the helps of a command, and of those below it, show the texts of flags in several lines. cobra shows
// each in one.
func wrapFlags(root *cobra.Command) {
	plain := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			flags.VisitAll(func(flag *pflag.Flag) {
				flag.Usage = strings.Join(console.Wrap(flag.Usage, flagColumns), "\n")
			})
		}
		return plain(cmd)
	})
}
