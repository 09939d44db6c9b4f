package parleyctl_test

import (
	"testing"

	"github.com/parley-chat/parley/services/parleyctl"
)

// Secrets are read from the environment, a file or standard input: other users of the machine can read arguments.
func TestSecretsAreNotArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ctl("companies", "list", "--nats-url", "nats://operator:pw@127.0.0.1:4222").fails(parleyctl.ExitUsage, "NATS_URL")
	w.ctl("companies", "list", "--nats-url", "nats://token@127.0.0.1:4222").fails(parleyctl.ExitUsage, "NATS_URL")
	w.ctl("companies", "list", "--mongodb-uri", "mongodb://a.example,u:pw@b.example/parley").fails(parleyctl.ExitUsage, "MONGODB_URI")
	w.ctl("migrate", "--from", "sqlite", "--to", "mongodb://u:pw@127.0.0.1/parley").fails(parleyctl.ExitUsage, "MONGODB_URI")
	w.ctl("webhooks", "create", "--company", companyID, "--url", "https://x.example", "--header", "X-Api-Key: abc").fails(parleyctl.ExitUsage, "unknown flag")
}
