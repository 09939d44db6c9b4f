package parleyctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/ops"
)

const name = "parleyctl"

// Terminal is the environment of a command.
type Terminal struct {
	In          io.Reader
	Out, Err    io.Writer
	Interactive bool                // In is a terminal
	Getenv      func(string) string // the environment
	Now         func() time.Time
}

// Run runs one command line and returns the exit code. It prints an error as one line on Err.
func Run(ctx context.Context, args []string, t Terminal) int {
	a := &app{Terminal: t}
	defer a.close()
	root := a.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && exitCode(err) != ExitOK {
		_, _ = fmt.Fprintf(t.Err, "%s: %s\n", name, describe(err))
	}
	return exitCode(err)
}

// app is one run of the command.
type app struct {
	Terminal
	flags       flags
	connections connections
}

// flags are the global flags.
type flags struct {
	natsURL, natsCreds string
	mongoURI, mongoDB  string
	sqlite             string
	secretsFile        string
	output             string
}

// command returns the command tree.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "Operate Parley: companies, chats, tokens, streams, dead letters",
		Long: `Operate Parley: companies, applications, templates, tokens, chats, streams and dead letters.

It connects to NATS and the store with the same settings as the services (NATS_URL, NATS_CREDS, and MONGODB_URI with MONGODB_DATABASE
or SQLITE_PATH); flags override the environment. Without NATS_URL, MONGODB_URI and SQLITE_PATH it uses the settings of ` + "`make run`" + ` from
.parley/demo.json in this folder (or in PARLEY_DATA_DIR).

Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 not found, 4 NATS or MongoDB is down, 5 refused, 6 drift.`,
		Example: `  parleyctl companies list
  parleyctl tokens create --company COMPANY --name CRM
  parleyctl watch --since 10m
  parleyctl trace MESSAGE
  parleyctl dead replay --all --dry-run
  parleyctl doctor`,
		Version:       ops.ReadBuild().String(),
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, RunE: group, SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkFlags() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(err.Error() + "; see " + c.CommandPath() + " --help")
	})
	a.addFlags(root)
	root.AddCommand(
		a.companies(), a.applications(), a.templates(), a.tokens(), a.chats(), a.visitors(), a.users(),
		a.reply(), a.watch(), a.dead(), a.trace(), a.webhooks(), a.bots(), a.modelConnections(), a.documents(), a.ranking(), a.keys(), a.secrets(), a.streams(),
		a.backup(), a.migrate(), a.doctor(), idle(),
	)
	return root
}

// idle keeps a pod running in which commands are executed: the image has no shell with sleep.
func idle() *cobra.Command {
	return &cobra.Command{
		Use:   "idle",
		Short: "Do nothing until stopped: for a pod in which commands are run with kubectl exec",
		Args:  exactArgs(),
		RunE:  func(c *cobra.Command, _ []string) error { <-c.Context().Done(); return nil },
	}
}

func (a *app) addFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.flags.natsURL, "nats-url", "", "URLs of the NATS servers (NATS_URL)")
	f.StringVar(&a.flags.natsCreds, "nats-creds", "", "file with NATS credentials (NATS_CREDS)")
	f.StringVar(&a.flags.sqlite, "sqlite-path", "", "file of the SQLite database (SQLITE_PATH)")
	f.StringVar(&a.flags.mongoURI, "mongodb-uri", "", "connection string of MongoDB (MONGODB_URI)")
	f.StringVar(&a.flags.mongoDB, "mongodb-database", "", "name of the database (MONGODB_DATABASE)")
	f.StringVarP(&a.flags.output, "output", "o", outputTable, "table or json")
	_ = root.RegisterFlagCompletionFunc("output", fixed(outputTable, outputJSON)) // the flag exists
}

// checkFlags validates the global flags.
func (a *app) checkFlags() error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	return a.checkAddresses()
}

func (a *app) checkOutput() error {
	if !slices.Contains([]string{outputTable, outputJSON}, a.flags.output) {
		return usage("--output must be table or json")
	}
	return nil
}

// group runs a command that only has subcommands: it prints its help, and rejects unknown arguments.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	text := fmt.Sprintf("there is no command %q; see %s --help", args[0], c.CommandPath())
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text = fmt.Sprintf("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usage(text)
}

// commandGroup returns a command group.
func commandGroup(use, short string, aliases []string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:                        use,
		Short:                      short,
		Aliases:                    aliases,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       group,
		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(commands...)
	return c
}

// exactArgs requires exactly these arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := strings.Join(names, " ")
		if len(names) == 0 {
			want = "no argument"
		}
		return usage(fmt.Sprintf("got %d arguments, want %s; see %s --help", len(args), want, c.CommandPath()))
	}
}

// required reports all missing flags at once.
func required(c *cobra.Command, names ...string) error {
	var missing []string
	for _, n := range names {
		if f := c.Flags().Lookup(n); f == nil || f.Value.String() == "" {
			missing = append(missing, "--"+n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return usage(strings.Join(missing, ", ") + " required; see " + c.CommandPath() + " --help")
}

// fixed completes a flag or an argument with fixed words.
func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}
