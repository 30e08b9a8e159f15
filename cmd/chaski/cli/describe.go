package cli

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

// help has a text for each command, called by its path, such as bench-load.txt: the short description, the long one
// and, below "Examples:", the examples.
//
//go:embed help
var help embed.FS

// describe gives a command and all below it their texts. What a command says about itself comes after its text.
func describe(cmd *cobra.Command) {
	path := strings.Fields(cmd.CommandPath())
	name := strings.Join(path[min(1, len(path)-1):], "-")
	if text, err := help.ReadFile("help/" + name + ".txt"); err == nil { // cobra's own commands have theirs
		short, long, _ := strings.Cut(string(text), "\n\n")
		long, examples, _ := strings.Cut(long, "\n\nExamples:\n\n")
		cmd.Short, cmd.Long, cmd.Example = short, long+cmd.Long, strings.TrimSuffix(examples, "\n")
	}
	for _, below := range cmd.Commands() {
		describe(below)
	}
}
