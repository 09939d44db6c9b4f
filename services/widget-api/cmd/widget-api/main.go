// Command widget-api serves the Widget API.
package main

import (
	"os"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

func main() {
	ops.CollectSeldom()
	os.Exit(service.Main("widget-api", widgetapi.New))
}
