package serve

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/report"
)

type topFlags struct {
	once  bool
	every time.Duration
	ca    string
}

// NewTop has the command top, which shows what the ranks that train with engines wait for.
func NewTop(env console.Env) *cobra.Command {
	var f topFlags
	cmd := console.Command("top [flags] TARGET...", console.AtLeastOne("TARGET"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args) })
	fl := cmd.Flags()
	console.Var(fl, &f.once, "once", false)
	console.DurationVar(fl, &f.every, "every", 2*time.Second)
	console.Var(fl, &f.ca, "ca", "")
	return cmd
}

func (f *topFlags) run(ctx context.Context, env console.Env, targets []string) error {
	client, err := f.dial(targets)
	if err != nil {
		return err
	}
	defer client.Close()
	screen := !f.once && console.IsTerminal(env.Out)
	var old map[string]report.Figures
	for {
		now, err := report.ParseAll(client.Report(ctx))
		code := status.Code(err)
		gone := code == codes.Unavailable || code == codes.DeadlineExceeded
		switch {
		case gone && len(now) == 0:
			return &fault.RequestError{URI: strings.Join(targets, ","), Part: "report", Off: fault.NoOffset,
				Attempts: 1, Err: err}
		case err != nil && !gone:
			return err
		}
		table := since(now, old).Table()
		if gone {
			table += "\nno answer: " + fault.Line(err)
		}
		if screen {
			table = "\x1b[H\x1b[2J" + table // from the upper left corner of an empty screen
		}
		if _, err := fmt.Fprintln(env.Out, table); err != nil || f.once {
			return err
		}
		old = now
		select {
		case <-time.After(f.every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// since joins what several engines have counted since old, which lacks those that have joined.
func since(now, old map[string]report.Figures) (all report.Figures) {
	for _, address := range slices.Sorted(maps.Keys(now)) {
		f := now[address]
		if before, known := old[address]; known {
			f = f.Since(before)
		}
		all.Join(f)
	}
	return all
}

// dial returns a client of all engines. It sends the token of the environment.
func (f *topFlags) dial(targets []string) (*client.Client, error) {
	token, err := client.FromEnvironment()
	if err != nil {
		return nil, err
	}
	options := client.Options{Token: token, Timeout: 10 * time.Second}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		config, err := auth.ClientTLS(pem, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		options.Credentials = credentials.NewTLS(config)
	}
	return client.Dial(strings.Join(targets, ","), options)
}
