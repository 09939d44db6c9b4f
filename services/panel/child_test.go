package panel_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/storetest"
)

// the URL of NATS and the paths of the store and of its keys, separated by spaces
const childVariable = "PANEL_TEST_CHILD"

// childMain runs a panel in this process if the environment variable is set.
func childMain() {
	settings := strings.Fields(os.Getenv(childVariable))
	if len(settings) != 3 {
		return
	}
	natsURL, path, keys := settings[0], settings[1], settings[2]
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		var s *panel.Service
		s, err = panel.New(panel.Config{
			Base:      service.Base{NATS: config.NATS{NATSURL: natsURL}, Logger: slog.New(slog.DiscardHandler)},
			Storage:   storage.Config{Store: config.Store{SQLitePath: path}},
			Secrets:   config.Secrets{SecretsKeyFile: keys},
			WidgetURL: "http://127.0.0.1:1", ClientURL: "http://127.0.0.1:2", Listener: ln,
			Files:   config.Files{FileStore: config.FileStoreNATS, FileMaxBytes: 25 << 20},
			Uploads: config.Uploads{MaxUploads: 8, UploadTimeout: time.Minute},
		})
		if err == nil {
			fmt.Println("http://" + ln.Addr().String())
			err = s.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// child runs a panel in its own process and returns its address and process id.
func (w *world) child() (base string, pid int, kill func()) {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+w.natsURL+" "+w.storePath+" "+storetest.KeyFile(w.t))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	w.must(err)
	w.must(c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	w.must(err)
	kill = func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()
	}
	w.t.Cleanup(kill)
	return strings.TrimSpace(line), c.Process.Pid, kill
}
