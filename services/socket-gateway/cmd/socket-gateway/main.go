// Command socket-gateway runs one of Parley's socket gateways.
package main

import (
	"os"

	"github.com/redis/go-redis/v9/logging"

	"github.com/parley-chat/parley/pkg/service"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/services/socket-gateway/internal/legacy"
)

func main() {
	logging.Disable() // go-redis logs each attempt to stderr; the gateway logs the loss once
	if len(os.Args) == 2 && os.Args[1] == legacy.Command {
		os.Exit(legacy.Main())
	}
	os.Exit(service.Main("socket-gateway", socketgateway.New))
}
