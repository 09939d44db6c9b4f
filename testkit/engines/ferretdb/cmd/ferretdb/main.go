// Command ferretdb runs FerretDB on SQLite files until SIGTERM: a MongoDB server for end-to-end tests, which
// can kill it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-chat/parley/testkit/engines/ferretdb"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	dir := flag.String("dir", "", "the folder of the files; it is created")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server, err := ferretdb.Start(ferretdb.Config{Addr: *addr, Dir: *dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb:", err)
		os.Exit(1)
	}
	defer server.Stop()
	fmt.Println("MONGODB_URI=" + server.URI())
	<-ctx.Done()
}
