package serve

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/grpc/server"
)

// addLimits declares the flags of the limits of all clients, and of each. 0 is a default of the server.
func addLimits(fl *pflag.FlagSet, o *server.Options) {
	console.CountVar(fl, &o.MaxStreams, "max-streams", server.DefaultMaxStreams, 1, "streams that are served at a time")
	console.CountVar(fl, &o.MaxEngines, "max-datasets", server.DefaultMaxEngines, 1, "datasets that are open at a time")
	console.CountVar(fl, &o.MaxClientStreams, "max-client-streams", 0, 0,
		"streams of one client: a host, or a process on a Unix socket (default: half of --max-streams, at least 64)")
	console.CountVar(fl, &o.MaxClientEngines, "max-client-datasets", 0, 0,
		"datasets that one client has unanswered tickets for (default: half of --max-datasets, at least 16)")
	console.CountVar(fl, &o.MaxClientOpenings, "max-client-openings", 0, 0,
		"openings that one client has begun, also those that wait (default: half of all, at least 64)")
	console.CountVar(fl, &o.ClientRate, "client-rate", 0, 0,
		"bytes a second to send to one client, on average over its answers; tokens may set others\n"+
			"(default 0: no limit)")
}
