package e2e

import (
	"strings"
	"testing"
)

// natsUsers are the users of deploy/nats/accounts.conf.
func natsUsers() []string {
	return []string{"client-api", "widget-api", "socket-gateway", "processor", "operator", "watcher"}
}

func passwordOf(user string) string { return "of" + strings.ReplaceAll(user, "-", "") }

// natsPasswords are the settings from which the server's configuration takes the passwords, and what the streams may reserve.
func natsPasswords() []string {
	settings := []string{"NATS_MAX_FILE_STORE=20GB"}
	for _, user := range natsUsers() {
		settings = append(settings, "NATS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD="+passwordOf(user))
	}
	return settings
}

// redisPasswords are the settings from which deploy/redis/start.sh takes the passwords, and where it writes its users.
func redisPasswords(dir string) []string {
	settings := []string{"TMPDIR=" + dir}
	for _, user := range []string{"client-api", "widget-api", "socket-gateway", "operator"} {
		settings = append(settings, "REDIS_"+strings.ToUpper(strings.ReplaceAll(user, "-", "_"))+"_PASSWORD="+passwordOf(user))
	}
	return settings
}

// permissions: every service did its work with its own user (the sessions before), and none was refused anything. What each of
// them is refused the tests of deploy/manifests hold.
func (f *fleet) permissions(t *testing.T) {
	for _, name := range f.services {
		// NATS says permission, Redis NOPERM.
		if log := strings.ToLower(f.run[name].stderr.String()); strings.Contains(log, "permission") || strings.Contains(log, "noperm") {
			t.Errorf("%s was refused something:\n%s", name, log)
		}
	}
}
