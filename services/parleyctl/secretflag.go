package parleyctl

import (
	"net/url"
	"strings"
)

// checkAddresses refuses addresses with a password on the command line, where other users of the machine can read it.
func (a *app) checkAddresses() error {
	if hasPassword(a.flags.natsURL) {
		return passwordInFlag("--nats-url", "NATS_URL")
	}
	if hasPassword(a.flags.mongoURI) {
		return passwordInFlag("--mongodb-uri", "MONGODB_URI")
	}
	return nil
}

func passwordInFlag(flag, variable string) error {
	return usage(flag + " must not contain a password or a token, which other users can read there: " +
		"set " + variable + " instead")
}

// hasPassword reports whether one of the addresses has a user: NATS takes a user without a password as a token.
func hasPassword(addresses string) bool {
	for address := range strings.SplitSeq(addresses, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err == nil && u.User != nil || err != nil && strings.Contains(address, "@") {
			return true
		}
	}
	return false
}
