package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/fault"
)

// usageError is a mistake in the command line. It exits with ExitUsage.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// WrongUsage marks err as a mistake in the command line.
func WrongUsage(err error) error { return usageError{err} }

// Usagef makes an error about the command line.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// FlagError is the cobra.FlagErrorFunc of all commands. It names a malformed value and its rule as the checks of this
// package do.
func FlagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() { // a word before the flag is a command that there is not
		if unknown := Verb(cmd, cmd.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return Usagef("%w%s", err, similar(names, "--"+unknown.GetSpecifiedName()))
	}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return WrongUsage(err)
	}
	kind := wrong.GetFlag().Value.Type()
	rule := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0", "float64": "a number",
		"intSlice": "whole numbers, such as 0,2", "float64Slice": "numbers, such as 0.5,2",
		"bool": "true or false", "duration": "a duration, such as 30s or 5m",
	}[kind]
	name, value := wrong.GetFlag().Name, wrong.GetValue()
	switch {
	case errors.As(err, new(outsideError)):
		return Usagef("--%s is %s: %w", name, value, wrong.Unwrap())
	case rule == "" || kind != "duration" && !errors.As(err, new(*strconv.NumError)):
		// The error of a Value of chaski is the rule itself.
		return Usagef("--%s is %q: %w", name, value, wrong.Unwrap())
	case errors.Is(err, strconv.ErrRange) && strings.HasPrefix(kind, "float"):
		return Usagef("--%s is %q: it must be %s, and at most 1.8e308", name, value, rule)
	case errors.Is(err, strconv.ErrRange):
		return Usagef("--%s is %q: it must be %s of at most 64 bits", name, value, rule)
	}
	return Usagef("--%s is %q: it must be %s", name, value, rule)
}

// Verb refuses the arguments of a command that only has commands below it.
func Verb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		var names []string
		for _, below := range cmd.Commands() { // with help, which cobra would not suggest
			names = append(names, below.Name())
		}
		return Usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), similar(names, args[0]))
	}
	return nil
}

// similar returns a question about the names that are near to one that does not exist, such as ": did you mean info?",
// or "". A name whose first word is another one is near, too: --batch to --batch-size.
func similar(names []string, name string) string {
	cmd := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares names of commands only
	for _, n := range names {
		below := &cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}}
		if strings.HasPrefix(name, n+"-") {
			below.SuggestFor = []string{name}
		}
		cmd.AddCommand(below)
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Sprintf(": did you mean %s?", orList(near))
	}
	return ""
}

// UsageUnlessFault marks err as a mistake in the command line unless something else explains it:
// every fault of a file has a kind, which errors about options lack.
func UsageUnlessFault(err error) error {
	switch {
	case err == nil, fault.KindOf(err) != 0, errors.Is(err, context.Canceled), SystemKind(err) != 0:
		return err
	case errors.As(err, new(*fault.RequestError)):
		// A server that is silent has no kind either: this says nothing about the file.
		return err
	}
	return WrongUsage(err)
}

// AtLeastOne checks that a command has arguments. It is cobra.MinimumNArgs(1) with a message that
// names the missing argument.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("%s is missing", what)
		}
		return nil
	}
}

// ExactlyOne checks that a command has one argument.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return Usagef("%s is missing", what)
		case 1:
			return nil
		}
		return Usagef("the arguments are %q: the command takes one %s, and flags begin with a dash", args, what)
	}
}

// OneOf checks the value of a flag that is a choice.
func OneOf(flag, value string, choices ...string) error {
	if !slices.Contains(choices, value) {
		return Usagef("--%s is %q: it must be %s", flag, value, orList(choices))
	}
	return nil
}

// Command returns a command. use is its line of usage; its help stands in cli/help.
func Command(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: run}
}

// Var declares a flag, "NAME" or "NAME,LETTER", with a default. Its help stands in cli/help, like the help of all
// flags. A list of strings takes one of them for each time that the flag is given.
func Var[T any](fl *pflag.FlagSet, p *T, name string, value T) {
	name, letter, _ := strings.Cut(name, ",")
	switch p := any(p).(type) {
	case *string:
		fl.StringVarP(p, name, letter, any(value).(string), "")
	case *bool:
		fl.BoolVarP(p, name, letter, any(value).(bool), "")
	case *int:
		fl.IntVarP(p, name, letter, any(value).(int), "")
	case *int64:
		fl.Int64VarP(p, name, letter, any(value).(int64), "")
	case *uint64:
		fl.Uint64VarP(p, name, letter, any(value).(uint64), "")
	case *float64:
		fl.Float64VarP(p, name, letter, any(value).(float64), "")
	case *time.Duration:
		fl.DurationVarP(p, name, letter, any(value).(time.Duration), "")
	case *[]string:
		fl.StringArrayVarP(p, name, letter, any(value).([]string), "")
	case *[]float64:
		fl.Float64SliceVarP(p, name, letter, any(value).([]float64), "")
	default:
		panic(fmt.Sprintf("flag --%s is a %T", name, p))
	}
}

// DurationVar declares a flag for a time that is longer than 0.
func DurationVar(fl *pflag.FlagSet, p *time.Duration, name string, value time.Duration) {
	*p = value
	fl.Var(duration{p}, name, "")
}

type duration struct{ value *time.Duration }

func (d duration) String() string { return d.value.String() }
func (d duration) Type() string   { return "duration" }

func (d duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err == nil && v <= 0 {
		return outsideError("longer than 0s")
	}
	*d.value = v
	return err
}

// ListVar declares a flag for names between commas. Without the flag the list is empty.
func ListVar(fl *pflag.FlagSet, p *[]string, name string) { fl.StringSliceVar(p, name, nil, "") }

// ChoiceVar declares a flag whose value is one of the choices, which shells complete. value is its default, which an
// empty text stands for, as an unset variable of a shell does.
func ChoiceVar(fl *pflag.FlagSet, p *string, name, value string, choices ...string) {
	ChoiceOrVar(fl, p, name, value, nil, choices...)
}

// ChoiceOrVar is ChoiceVar for a flag that also takes other texts. other reports which.
func ChoiceOrVar(fl *pflag.FlagSet, p *string, name, value string, other func(string) bool, choices ...string) {
	*p = value
	fl.Var(&choice{p, value, other, choices}, name, "")
}

// IsObject reports whether a text is JSON of an object.
func IsObject(text string) bool { return strings.HasPrefix(text, "{") }

// choice is a pflag.Value with a list of allowed values.
type choice struct {
	value   *string
	initial string
	other   func(string) bool // nil: the choices are all
	choices []string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(text string) error {
	if text != "" && (c.other == nil || !c.other(text)) && !slices.Contains(c.choices, text) {
		return errors.New("it must be " + orList(c.choices))
	}
	*c.value = cmp.Or(text, c.initial)
	return nil
}

// Complete makes shells offer the values of a flag of ChoiceVar.
func Complete(cmd *cobra.Command, f *pflag.Flag) {
	if c, ok := f.Value.(*choice); ok {
		offer := cobra.FixedCompletions(c.choices, cobra.ShellCompDirectiveNoFileComp)
		_ = cmd.RegisterFlagCompletionFunc(f.Name, offer) // it fails if the flag has values already
	}
}

// AtLeast checks the value of a flag that has a lower limit.
func AtLeast[T int | int64](flag string, value, least T) error {
	if value < least {
		return Usagef("--%s is %d: it must be at least %d", flag, value, least)
	}
	return nil
}

// Between checks the value of a flag that has two limits, both allowed.
func Between[T int | int64](flag string, value, least, most T) error {
	if value < least || value > most {
		return Usagef("--%s is %d: it must be from %d to %d", flag, value, least, most)
	}
	return nil
}

// NumberVar declares a flag for a whole number from least to most. value is its default, which may lie outside.
func NumberVar[T int | int64](fl *pflag.FlagSet, p *T, name string, value, least, most T) {
	*p = value
	fl.Var(&number[T]{p, least, most}, name, "")
}

// CountVar is NumberVar without an upper limit.
func CountVar[T int | int64](fl *pflag.FlagSet, p *T, name string, value, least T) {
	NumberVar(fl, p, name, value, least, T(math.MaxInt))
}

// NonEmptyVar declares a flag for a text that is not empty. An empty one mostly comes from an unset variable of a
// shell, and would for example choose all samples in silence.
func NonEmptyVar(fl *pflag.FlagSet, p *string, name string) { fl.Var(nonEmpty{p}, name, "") }

type nonEmpty struct{ text *string }

func (n nonEmpty) String() string { return *n.text }
func (n nonEmpty) Type() string   { return "string" }

func (n nonEmpty) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it is empty; leave the flag out instead")
	}
	*n.text = s
	return nil
}

// number is a pflag.Value with limits.
type number[T int | int64] struct {
	value       *T
	least, most T
}

func (n *number[T]) String() string { return strconv.FormatInt(int64(*n.value), 10) }
func (n *number[T]) Type() string   { return reflect.TypeFor[T]().Name() }

func (n *number[T]) Set(text string) error {
	parsed, err := strconv.ParseInt(text, 0, 64)
	switch {
	case err != nil:
		return err
	case T(parsed) < n.least && n.most == T(math.MaxInt):
		return outsideError(fmt.Sprintf("at least %d", n.least))
	case T(parsed) < n.least || T(parsed) > n.most:
		return outsideError(fmt.Sprintf("from %d to %d", n.least, n.most))
	}
	*n.value = T(parsed)
	return nil
}

// outsideError says what a number must be.
type outsideError string

func (e outsideError) Error() string { return "it must be " + string(e) }

// orList returns "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Wrap breaks text between words into lines of at most width runes. A longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
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
