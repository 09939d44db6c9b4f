package ops

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Set by the linker (-X); a build from a checkout gets its commit and date without it.
var (
	version string
	commit  string
	date    string
)

// Build describes what a binary was built from. Unknown fields are empty, and the version is "dev".
type Build struct {
	Version string
	Commit  string
	Date    string // of the commit, RFC 3339
	Go      string
}

// ReadBuild returns the build information of this binary.
func ReadBuild() Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.complete(info.Settings)
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	return b
}

func (b *Build) complete(settings []debug.BuildSetting) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && b.Commit == "":
			b.Commit = s.Value
		case s.Key == "vcs.time" && b.Date == "":
			b.Date = s.Value
		}
	}
}

// String returns the line that --version prints after the service's name.
func (b Build) String() string {
	line := b.Version
	if b.Commit != "" {
		line += " commit " + b.Commit
	}
	if b.Date != "" {
		line += " of " + b.Date
	}
	return line + " " + b.Go
}

// Metric returns a collector that is always 1; its labels describe the build.
func (b Build) Metric(service string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_build_info",
		Help: "Build information of the process; always 1.",
		ConstLabels: prometheus.Labels{
			"service": service, "version": b.Version, "commit": b.Commit, "date": b.Date, "goversion": b.Go,
		},
	}, func() float64 { return 1 })
}

func printVersion(service string) { fmt.Println(service, ReadBuild()) }
