package loader_test

import (
	_ "github.com/chaski-eo/chaski/loader/formats"
	"github.com/chaski-eo/chaski/tools/testkit/engines"
)

// What tests call by a short name.
var (
	coast, condition      = engines.Coast, engines.Condition
	open, mustOpen, first = engines.Open, engines.MustOpen, engines.First
	ranks                 = engines.Ranks
)
