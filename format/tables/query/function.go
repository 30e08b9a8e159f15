package query

import (
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/funcs"
)

// functionGroups are the functions of one row's values, in the order of the documentation.
var functionGroups = []functionGroup{
	{"Strings", funcs.Strings()}, {"Numbers", funcs.Numbers()}, {"Dates and times", funcs.Times()},
	{"Choices and lists", funcs.Others()},
}

type functionGroup struct {
	title string
	list  []*bind.Function
}

var aggregateFunctions = funcs.Aggregates()

// functionLibrary holds all functions by each of their names.
var functionLibrary = func() *bind.Library {
	l := &bind.Library{Functions: map[string]*bind.Function{}, Aggregates: map[string]*bind.AggregateFunction{}}
	for _, g := range functionGroups {
		for _, f := range g.list {
			l.Add(f)
		}
	}
	for _, f := range aggregateFunctions {
		for _, name := range f.Names {
			l.Aggregates[name] = f
		}
	}
	return l
}()

// Function describes a function or an aggregate for the documentation.
type Function struct {
	Group     string
	Signature string // left(string, count)
	Aliases   []string
	Doc       string
}

// Functions returns all functions and aggregates.
func Functions() []Function {
	var out []Function
	for _, group := range functionGroups {
		for _, f := range group.list {
			out = append(out, Function{group.title, f.Signature, f.Names[1:], f.Doc})
		}
	}
	for _, a := range aggregateFunctions {
		out = append(out, Function{"Aggregates", a.Signature, a.Names[1:], a.Doc})
	}
	return out
}
