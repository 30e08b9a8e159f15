package serve

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/grpc/server"
)

// clientFlags are the limits of all clients, and of each. 0 is a default of the server.
type clientFlags struct {
	streams, datasets              int
	each, eachDatasets, eachOpened int
	rate                           int64
}

func (f *clientFlags) add(fl *pflag.FlagSet) {
	console.CountVar(fl, &f.streams, "max-streams", server.DefaultMaxStreams, 1, "streams that are served at a time")
	console.CountVar(fl, &f.datasets, "max-datasets", server.DefaultMaxEngines, 1, "datasets that are open at a time")
	console.CountVar(fl, &f.each, "max-client-streams", 0, 0,
		"streams of one client: a host, or a process on a Unix socket (default: half of --max-streams, at least 64)")
	console.CountVar(fl, &f.eachDatasets, "max-client-datasets", 0, 0,
		"datasets that one client has unanswered tickets for (default: half of --max-datasets, at least 16)")
	console.CountVar(fl, &f.eachOpened, "max-client-openings", 0, 0,
		"openings that one client has begun, also those that wait (default: half of all, at least 64)")
	console.CountVar(fl, &f.rate, "client-rate", 0, 0,
		"bytes a second to send to one client, on average over its answers; tokens may set others\n"+
			"(default 0: no limit)")
}

func (f *clientFlags) set(o *server.Options) {
	o.MaxStreams, o.MaxEngines = f.streams, f.datasets
	o.MaxClientStreams, o.MaxClientEngines, o.MaxClientOpenings = f.each, f.eachDatasets, f.eachOpened
	o.ClientRate = f.rate
}
