// Command client-api serves the Client API.
package main

import (
	"os"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	clientapi "github.com/parley-chat/parley/services/client-api"
)

func main() {
	ops.CollectSeldom()
	os.Exit(service.Main("client-api", clientapi.New))
}
